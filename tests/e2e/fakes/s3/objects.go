package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The requests of an object store besides PUT: lists, ranges, removal, and uploads in parts. They are answered as
// AWS does, with the names of XML elements and the codes of its documentation.

const minPart = 5 << 20

type upload struct {
	key      string
	metadata map[string]string
	parts    map[int][]byte
	begun    time.Time
}

type listEntry struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
}

type commonPrefix struct{ Prefix string }

type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	KeyCount              int
	MaxKeys               int
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listEntry
	CommonPrefixes        []commonPrefix
}

// etag is that of an upload of one part.
func etag(body []byte) string {
	h := md5.Sum(body)
	return `"` + hex.EncodeToString(h[:]) + `"`
}

func writeXML(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(v)
}

func noKey() *failure {
	return fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
}

// keyOf returns bucket and key of a request.
func (s *Server) keyOf(r *http.Request) (bucket, key string) {
	bucket, key = strings.TrimSuffix(r.Host, "."+s.Domain), strings.TrimPrefix(r.URL.Path, "/")
	if s.Domain == "" {
		bucket, key, _ = strings.Cut(key, "/")
	}
	return bucket, key
}

// handle answers a request that has been checked. Objects are locked.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, key string, body []byte) *failure {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && key == "" && q.Has("uploads"):
		return s.listUploads(w, q)
	case r.Method == http.MethodGet && key == "":
		return s.list(w, q)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return s.get(w, r, key)
	case s.ReadOnly:
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	case r.Method == http.MethodPost && q.Has("uploads"):
		return s.begin(w, r, key)
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return s.complete(w, key, q.Get("uploadId"), body)
	case r.Method == http.MethodPut && q.Has("uploadId"):
		return s.part(w, r, q, body)
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		delete(s.uploads, q.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
		return nil
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return fail(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
}

func (s *Server) list(w http.ResponseWriter, q url.Values) *failure {
	if q.Get("list-type") != "2" {
		return fail(http.StatusBadRequest, "InvalidArgument", "list-type=2 is expected")
	}
	limit := 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil && n > 0 && n < limit {
		limit = n
	}
	if s.PageMax > 0 && limit > s.PageMax {
		limit = s.PageMax
	}
	after := q.Get("start-after")
	if token := q.Get("continuation-token"); token != "" {
		text, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return fail(http.StatusBadRequest, "InvalidArgument", "The continuation token provided is incorrect")
		}
		after = string(text)
	}
	keys := make([]string, 0, len(s.objects))
	for key, o := range s.objects {
		if strings.HasPrefix(key, q.Get("prefix")) && key > after && !o.unlisted(s.ListLate) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	result := listResult{Name: s.Bucket, Prefix: q.Get("prefix"), MaxKeys: limit, EncodingType: q.Get("encoding-type")}
	last := ""
	for _, key := range keys {
		common := ""
		if d := q.Get("delimiter"); d != "" {
			if i := strings.Index(key[len(q.Get("prefix")):], d); i >= 0 {
				common = key[:len(q.Get("prefix"))+i+len(d)]
			}
		}
		if common != "" && (common == last || common <= after) {
			continue
		}
		if result.KeyCount == limit {
			result.IsTruncated = true
			result.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
			break
		}
		result.KeyCount++
		if last = key; common != "" {
			// All keys below it sort before its end.
			last = common
			result.CommonPrefixes = append(result.CommonPrefixes, commonPrefix{encodeIf(result.EncodingType, common)})
			continue
		}
		o := s.objects[key]
		result.Contents = append(result.Contents, listEntry{encodeIf(result.EncodingType, key), o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), o.ETag, len(o.Body)})
	}
	writeXML(w, result)
	return nil
}

func encodeIf(encoding, key string) string {
	if encoding == "url" {
		return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
	}
	return key
}

func (o *Object) unlisted(late time.Duration) bool {
	return late > 0 && time.Since(o.stored) < late
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, key string) *failure {
	o := s.objects[key]
	if o == nil || happens(s.Vanish) {
		return noKey()
	}
	if want := r.Header.Get("If-Match"); want != "" && want != o.ETag {
		return fail(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	w.Header().Set("ETag", o.ETag)
	w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	w.Header().Set("Accept-Ranges", "bytes")
	for name, value := range o.Metadata {
		w.Header().Set("X-Amz-Meta-"+name, value)
	}
	body, status := o.Body, http.StatusOK
	if value := r.Header.Get("Range"); value != "" && !s.WithoutRanges {
		var from, to int
		if n, err := fmt.Sscanf(value, "bytes=%d-%d", &from, &to); n != 2 || err != nil || from > to {
			return fail(http.StatusBadRequest, "InvalidArgument", "Range: "+value)
		}
		if from >= len(body) {
			return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
		}
		if to >= len(body) {
			to = len(body) - 1
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(body)))
		body, status = body[from:to+1], http.StatusPartialContent
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		if happens(s.Cut) {
			_, _ = w.Write(body[:len(body)/2])
			panic(http.ErrAbortHandler)
		}
		s.sent(len(body))
		_, _ = w.Write(body)
	}
	return nil
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request, key string) *failure {
	s.uploadCount++
	id := fmt.Sprintf("upload-%d", s.uploadCount)
	s.uploads[id] = &upload{key: key, parts: map[int][]byte{}, metadata: map[string]string{}, begun: s.now()}
	for name := range r.Header {
		if short := strings.TrimPrefix(strings.ToLower(name), "x-amz-meta-"); short != strings.ToLower(name) {
			s.uploads[id].metadata[short] = r.Header.Get(name)
		}
	}
	writeXML(w, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: s.Bucket, Key: key, UploadId: id})
	return nil
}

func noUpload() *failure {
	return fail(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist.")
}

func (s *Server) part(w http.ResponseWriter, r *http.Request, q url.Values, body []byte) *failure {
	u := s.uploads[q.Get("uploadId")]
	n, err := strconv.Atoi(q.Get("partNumber"))
	if u == nil {
		return noUpload()
	}
	if err != nil || n < 1 || n > 10000 {
		return fail(http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000")
	}
	if !s.LosePart || n > 1 {
		u.parts[n] = body
	}
	w.Header().Set("ETag", etag(body))
	return nil
}

func (s *Server) complete(w http.ResponseWriter, key, id string, body []byte) *failure {
	var asked struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	u := s.uploads[id]
	if u == nil || u.key != key {
		return noUpload()
	}
	if err := xml.Unmarshal(body, &asked); err != nil || len(asked.Part) == 0 {
		return fail(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
	}
	var all []byte
	var sums []byte
	for i, p := range asked.Part {
		part, ok := u.parts[p.PartNumber]
		if !ok || strings.Trim(p.ETag, `"`) != strings.Trim(etag(part), `"`) {
			return fail(http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found.")
		}
		if len(part) < minPart && i+1 < len(asked.Part) {
			return fail(http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size.")
		}
		all = append(all, part...)
		h := md5.Sum(part)
		sums = append(sums, h[:]...)
	}
	h := md5.Sum(sums)
	tag := fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(h[:]), len(asked.Part))
	if s.full(len(all)) {
		return fail(http.StatusInsufficientStorage, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")
	}
	s.put1(key, all, tag).Metadata = u.metadata
	delete(s.uploads, id)
	writeXML(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: s.Bucket, Key: key, ETag: tag})
	return nil
}

func (s *Server) listUploads(w http.ResponseWriter, q url.Values) *failure {
	type entry struct{ Key, UploadId, Initiated string }
	result := struct {
		XMLName     xml.Name `xml:"ListMultipartUploadsResult"`
		Bucket      string
		IsTruncated bool
		Upload      []entry
	}{Bucket: s.Bucket}
	for id, u := range s.uploads {
		if strings.HasPrefix(u.key, q.Get("prefix")) {
			result.Upload = append(result.Upload, entry{u.key, id, u.begun.UTC().Format("2006-01-02T15:04:05.000Z")})
		}
	}
	sort.Slice(result.Upload, func(i, j int) bool { return result.Upload[i].Key < result.Upload[j].Key })
	writeXML(w, result)
	return nil
}

// put1 stores an object.
func (s *Server) put1(key string, body []byte, tag string) *Object {
	o := s.objects[key]
	if o == nil {
		o = &Object{}
		s.objects[key] = o
	}
	o.Body, o.ETag, o.modified, o.stored = body, tag, s.now(), time.Now()
	o.Puts++
	return o
}

func (s *Server) now() time.Time { return time.Now().Add(s.Ahead + s.Later) }

// Change replaces the bytes of an object, whose ETag changes; nil removes it.
func (s *Server) Change(key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if body == nil {
		delete(s.objects, key)
		return
	}
	s.put1(key, body, etag(body))
}

// Keys lists the keys that contain a text, in order.
func (s *Server) Keys(part string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for key := range s.objects {
		if strings.Contains(key, part) {
			all = append(all, key)
		}
	}
	sort.Strings(all)
	return all
}

// Uploads counts the uploads in parts that are not complete.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}
