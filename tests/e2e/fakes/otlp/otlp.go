// Package otlp is a fake of an OTLP/HTTP receiver of profiles, stricter than the real ones: a request
// with an unknown field, an index out of range, a text that is not UTF-8 or a sample without exactly one
// value is refused as a whole.
package otlp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

const (
	path = "/v1development/profiles"
	// The limit that the specification recommends, after decompression.
	maxBody = 64 << 20
)

// Profile is one ResourceProfiles: a pprof of ours.
type Profile struct {
	Attributes map[string]string // of the resource
	Name       string            // the type, an attribute of the scope
	Tenant     string
	Sums       map[string]int64 // by sample type
	Times      []uint64         // of each message
	Original   []byte
}

// Server is a running fake.
type Server struct {
	*loop.Server
	loop.Record[Profile]
	Faults loop.Faults
	// Refuse says why a profile costs the whole request; "" takes it.
	Refuse func(p Profile) string
	// LeaveOut is what the server leaves out of a request that it takes.
	LeaveOut func(p Profile) bool

	mu       sync.Mutex
	requests int
}

// Start runs a server on an address of its own.
func Start() (*Server, error) {
	s := &Server{}
	var err error
	s.Server, err = loop.Start("", http.HandlerFunc(s.serve), nil)
	return s, err
}

// Requests counts those that were taken.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// fail answers with a google.rpc.Status.
func (s *Server) fail(w http.ResponseWriter, status int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.Note("%d %s", status, text)
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(status)
	_, _ = w.Write(pprof.AppendBytes(pprof.AppendInt(nil, 1, 3), 2, []byte(text)))
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.Faults.Apply(w, r) {
		return
	}
	body, status, err := read(r)
	if err != nil {
		s.fail(w, status, "%v", err)
		return
	}
	all, err := parse(body)
	if err != nil {
		s.fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	for i := range all {
		all[i].Tenant = r.Header.Get("X-Scope-OrgID")
		if s.Refuse != nil {
			if why := s.Refuse(all[i]); why != "" {
				s.fail(w, http.StatusBadRequest, "%s", why)
				return
			}
		}
	}
	s.take(w, all)
}

func (s *Server) take(w http.ResponseWriter, all []Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 0
	s.requests++
	for _, p := range all {
		if s.LeaveOut != nil && s.LeaveOut(p) {
			left += len(p.Times)
		} else {
			s.Take(p)
		}
	}
	var answer []byte
	if left > 0 {
		partial := pprof.AppendBytes(pprof.AppendInt(nil, 1, uint64(left)), 2, []byte("over the quota"))
		answer = pprof.AppendBytes(nil, 1, partial)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func read(r *http.Request) ([]byte, int, error) {
	if r.URL.Path != path || r.URL.RawQuery != "" {
		return nil, http.StatusNotFound, fmt.Errorf("404 page not found: %s", r.URL)
	}
	if r.Method != http.MethodPost {
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("method %s", r.Method)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-protobuf" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
		return data, 0, nil
	case "gzip":
		zr, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, http.StatusBadRequest, err
		}
		if data, err = io.ReadAll(io.LimitReader(zr, maxBody+1)); err != nil {
			return nil, http.StatusBadRequest, err
		}
		if len(data) > maxBody {
			return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("more than %d bytes", maxBody)
		}
		return data, 0, nil
	default:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("encoding %q", encoding)
	}
}
