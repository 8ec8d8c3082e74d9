// Package s3 is a fake of a bucket of S3, or of Google with the same API: it computes the signature of what has
// arrived, or compares the token, counts requests, and fails on demand with the errors of the real one.
package s3

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"sync"
	"time"

	"profpull.test/e2e/fakes/loop"
)

const (
	stamp = "20060102T150405Z"
	// The limits of AWS.
	maxSkew     = 15 * time.Minute
	maxKey      = 1024
	maxMetadata = 2048
	maxBody     = 64 << 20
)

// The credentials and names with which a server starts.
const (
	Bucket = "profiles"
	Region = "eu-test-1"
	KeyID  = "AKIDEXAMPLE"
	Secret = "hunter2/secret+key"
)

// Object is one that was stored.
type Object struct {
	Body     []byte
	Metadata map[string]string
	Type     string
	Puts     int
	ETag     string
	modified time.Time
	stored   time.Time // by the clock of this machine
}

// Server is a running fake with one bucket.
type Server struct {
	*loop.Server
	Faults loop.Faults
	// Bucket, region and the only access key; a Token must come along if there is one.
	Bucket, Region, KeyID, Secret, Token string
	// Domain is what a host has after the bucket; empty: the bucket is in the path.
	Domain string
	// Ahead is by how much the server's clock differs.
	Ahead time.Duration
	// Later is added to the times of objects that are stored from now on, so that tests need not wait for objects to
	// become old. Requests are checked by the clock.
	Later time.Duration
	// ReadOnly denies the access key to write.
	ReadOnly bool
	// Bearer is the only access token that is accepted, in place of signatures, if it is set.
	Bearer string
	// ListLate is for how long lists do not have a new object. PageMax limits the keys of a page; 0: 1,000.
	ListLate time.Duration
	PageMax  int
	// WithoutRanges answers a range with the whole object. LosePart forgets the first part of each upload.
	WithoutRanges, LosePart bool
	// Cut ends the connection in the middle of an object that is sent, Lose after a change and before its answer; both
	// are the part of the requests to which that happens, as is Busy for 503 SlowDown and Vanish for 404.
	Cut, Lose, Busy, Vanish float64
	// Arrived is called with each request, before it is answered.
	Arrived func(r *http.Request)
	// Delay comes before each answer; Quota is the number of bytes that the bucket takes, 0: any.
	Delay time.Duration
	Quota int

	mu          sync.Mutex
	objects     map[string]*Object
	uploads     map[string]*upload
	uploadCount int
	refused     []string
	counts      map[string]int
	sentBytes   int
}

// Start runs a server on an address of its own.
func Start() (*Server, error) {
	s := &Server{Bucket: Bucket, Region: Region, KeyID: KeyID, Secret: Secret,
		objects: map[string]*Object{}, uploads: map[string]*upload{}, counts: map[string]int{}}
	var err error
	s.Server, err = loop.Start("", http.HandlerFunc(s.serve), nil)
	return s, err
}

// Objects returns what is stored, by key.
func (s *Server) Objects() map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Object{}
	for key, o := range s.objects {
		all[key] = *o
	}
	return all
}

// Expect sets the only session token that is accepted, while the server runs.
func (s *Server) Expect(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token = token
}

// Refused lists the requests that were not taken, by the code of the answer.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

type failure struct {
	status              int
	code, message, more string
}

func fail(status int, code, message string) *failure {
	return &failure{status: status, code: code, message: message}
}

// Error is the body of a refusal. The real one shows parts of the request in it.
func Error(code, message, more string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>" + message + "</Message>" + more +
		"<RequestId>4442587FB7D0A2F9</RequestId></Error>"
}

// Set changes settings while the server runs.
func (s *Server) Set(change func(s *Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Requests counts the requests of a method that have come since Forget; "": all.
func (s *Server) Requests(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method != "" {
		return s.counts[method]
	}
	n := 0
	for _, c := range s.counts {
		n += c
	}
	return n
}

// Sent counts the bytes of objects that were sent since Forget.
func (s *Server) Sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sentBytes
}

// Forget sets the counts to 0.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts, s.sentBytes = map[string]int{}, 0
}

func (s *Server) sent(n int) { s.sentBytes += n }

func (s *Server) arrived(method string) (time.Duration, func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[method]++
	return s.Delay, s.Arrived
}

// happens is true for a part of the calls.
func happens(part float64) bool { return part > 0 && rand.Float64() < part }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	delay, arrived := s.arrived(r.Method)
	if arrived != nil {
		arrived(r)
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	if s.Faults.Apply(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	f := fail(http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header")
	if err == nil {
		f = s.answer(w, r, body)
	}
	if f == nil {
		return
	}
	s.mu.Lock()
	s.refused = append(s.refused, f.code)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, Error(f.code, f.message, f.more))
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) *failure {
	if (r.Method == http.MethodPut || len(body) > 0) && (r.ContentLength < 0 || len(r.TransferEncoding) > 0) {
		return fail(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.check(r, body); f != nil {
		return f
	}
	if sent := r.Header.Get("Content-Md5"); sent != "" {
		if h := md5.Sum(body); base64.StdEncoding.EncodeToString(h[:]) != sent {
			return fail(http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received.")
		}
	}
	if happens(s.Busy) {
		return fail(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && happens(s.Lose) {
		defer panic(http.ErrAbortHandler)
	}
	bucket, key := s.keyOf(r)
	if bucket != s.Bucket {
		return fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	}
	if r.Method != http.MethodPut || r.URL.RawQuery != "" {
		return s.handle(w, r, key, body)
	}
	if s.ReadOnly {
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	if f := s.store(r, key, body); f != nil {
		return f
	}
	w.Header().Set("ETag", s.objects[key].ETag)
	return nil
}

// full returns true if the bucket has no room for so many bytes.
func (s *Server) full(n int) bool {
	for _, o := range s.objects {
		n += len(o.Body)
	}
	return s.Quota > 0 && n > s.Quota
}

func (s *Server) store(r *http.Request, key string, body []byte) *failure {
	if len(key) > maxKey {
		return fail(http.StatusBadRequest, "KeyTooLongError", "Your key is too long")
	}
	size, metadata := 0, map[string]string{}
	for name := range r.Header {
		if short := strings.TrimPrefix(name, "X-Amz-Meta-"); short != name {
			metadata[strings.ToLower(short)] = r.Header.Get(name)
			size += len(name) + len(r.Header.Get(name))
		}
	}
	if size > maxMetadata {
		return fail(http.StatusBadRequest, "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}
	if s.full(len(body)) {
		return fail(http.StatusInsufficientStorage, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")
	}
	o := s.put1(key, body, etag(body))
	o.Metadata, o.Type = metadata, r.Header.Get("Content-Type")
	return nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// authorization is what the header of that name says.
type authorization struct {
	id, date, region string
	signed           []string
	signature        string
}

func parse(header string) (a authorization, ok bool) {
	rest := strings.TrimPrefix(header, "AWS4-HMAC-SHA256 ")
	if rest == header {
		return a, false
	}
	for _, part := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			scope := strings.Split(value, "/")
			if len(scope) != 5 || scope[3] != "s3" || scope[4] != "aws4_request" {
				return a, false
			}
			a.id, a.date, a.region = scope[0], scope[1], scope[2]
		case "SignedHeaders":
			a.signed = strings.Split(value, ";")
		case "Signature":
			a.signature = value
		}
	}
	return a, a.id != "" && len(a.signed) > 0 && a.signature != ""
}

// check is about who asks.
func (s *Server) check(r *http.Request, body []byte) *failure {
	if s.Bearer != "" {
		if r.Header.Get("Authorization") != "Bearer "+s.Bearer {
			return fail(http.StatusUnauthorized, "AuthenticationRequired", "Authentication required.")
		}
		return nil
	}
	a, ok := parse(r.Header.Get("Authorization"))
	if r.Header.Get("Authorization") == "" {
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	if !ok {
		return fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed")
	}
	if a.id != s.KeyID {
		return fail(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	}
	if a.region != s.Region {
		f := fail(http.StatusBadRequest, "AuthorizationHeaderMalformed",
			"The authorization header is malformed; the region &apos;"+a.region+"&apos; is wrong; expecting &apos;"+s.Region+"&apos;")
		f.more = "<Region>" + s.Region + "</Region>"
		return f
	}
	if r.Header.Get("X-Amz-Security-Token") != s.Token {
		return fail(http.StatusBadRequest, "ExpiredToken", "The provided token has expired.")
	}
	at, err := time.Parse(stamp, r.Header.Get("X-Amz-Date"))
	now := time.Now().Add(s.Ahead)
	if err != nil || !strings.HasPrefix(r.Header.Get("X-Amz-Date"), a.date) || at.Before(now.Add(-maxSkew)) || at.After(now.Add(maxSkew)) {
		return fail(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	}
	return s.checkSignature(r, a, body)
}

func (s *Server) checkSignature(r *http.Request, a authorization, body []byte) *failure {
	content := r.Header.Get("X-Amz-Content-Sha256")
	if content != sum(body) {
		return fail(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	signed := map[string]bool{}
	for _, name := range a.signed {
		signed[name] = true
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !signed[name] {
			return fail(http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed")
		}
	}
	if !signed["host"] || !sort.StringsAreSorted(a.signed) || s.sign(r, a, content) != a.signature {
		f := fail(http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your key and signing method.")
		f.more = "<AWSAccessKeyId>" + a.id + "</AWSAccessKeyId><CanonicalRequest>" + r.Header.Get("X-Amz-Security-Token") + "</CanonicalRequest>"
		return f
	}
	return nil
}

// encode is the encoding that a signature wants: everything but the unreserved characters.
func encode(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c == '/' || strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// query is the canonical query of a signature: sorted, and everything but the unreserved characters encoded.
func query(u *url.URL) string {
	var all []string
	for name, values := range u.Query() {
		for _, v := range values {
			all = append(all, strings.ReplaceAll(encode(name), "/", "%2F")+"="+strings.ReplaceAll(encode(v), "/", "%2F"))
		}
	}
	sort.Strings(all)
	return strings.Join(all, "&")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, text)
	return h.Sum(nil)
}

// sign computes the signature by the published rules.
func (s *Server) sign(r *http.Request, a authorization, content string) string {
	path, err := url.PathUnescape(r.URL.EscapedPath())
	if err != nil {
		return ""
	}
	canonical := r.Method + "\n" + encode(path) + "\n" + query(r.URL) + "\n"
	for _, name := range a.signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch {
		case name == "host":
			value = r.Host
		case name == "content-length":
			value = fmt.Sprint(r.ContentLength)
		case len(r.Header.Values(name)) == 0:
			return "" // signed and not sent
		}
		canonical += name + ":" + strings.Join(strings.Fields(value), " ") + "\n"
	}
	canonical += "\n" + strings.Join(a.signed, ";") + "\n" + content
	scope := a.date + "/" + a.region + "/s3/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+s.Secret), a.date), a.region), "s3"), "aws4_request")
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+sum([]byte(canonical))))
}
