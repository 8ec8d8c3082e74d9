// Package s3 is a fake of a bucket of S3: PUT of objects, which computes the signature of what
// has arrived, and with the errors of the real one.
package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
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
	// ReadOnly denies the access key to write.
	ReadOnly bool

	mu      sync.Mutex
	objects map[string]*Object
	refused []string
}

// Start runs a server on an address of its own.
func Start() (*Server, error) {
	s := &Server{Bucket: Bucket, Region: Region, KeyID: KeyID, Secret: Secret,
		objects: map[string]*Object{}}
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

func (s *Server) token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Token
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

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.Faults.Apply(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	f := fail(http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header")
	if err == nil {
		f = s.put(r, body)
	}
	if f == nil {
		w.Header().Set("ETag", fmt.Sprintf("%q", sum(body)[:32]))
		return
	}
	s.mu.Lock()
	s.refused = append(s.refused, f.code)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, Error(f.code, f.message, f.more))
}

func (s *Server) put(r *http.Request, body []byte) *failure {
	if r.Method != http.MethodPut || r.URL.RawQuery != "" {
		return fail(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	if r.ContentLength < 0 || len(r.TransferEncoding) > 0 {
		return fail(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if f := s.check(r, body); f != nil {
		return f
	}
	bucket, key := strings.TrimSuffix(r.Host, "."+s.Domain), strings.TrimPrefix(r.URL.Path, "/")
	if s.Domain == "" {
		bucket, key, _ = strings.Cut(key, "/")
	}
	if bucket != s.Bucket {
		return fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	}
	if s.ReadOnly {
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	return s.store(r, key, body)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	if o == nil {
		o = &Object{}
		s.objects[key] = o
	}
	o.Body, o.Metadata, o.Type = body, metadata, r.Header.Get("Content-Type")
	o.Puts++
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
	if r.Header.Get("X-Amz-Security-Token") != s.token() {
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
	canonical := r.Method + "\n" + encode(path) + "\n\n"
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
