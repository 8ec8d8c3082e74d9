// Package profefe is a fake of profefe's collector: POST /api/0/profiles and reading back, as strict
// as the real one, with the same answers.
package profefe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

const path = "/api/0/profiles"

// types are profefe's names; anything else is refused.
var types = map[string]bool{
	"cpu": true, "heap": true, "block": true, "mutex": true, "goroutine": true, "threadcreate": true,
	"other": true, "trace": true,
}

// Label is one pair of a profile; a key may come twice.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Profile is one that was stored.
type Profile struct {
	ID        string
	Service   string
	Instance  string
	Type      string
	Labels    []Label
	CreatedAt time.Time
	Raw       []byte
}

// Get is the value of the first label with that key.
func (p *Profile) Get(key string) string {
	for _, l := range p.Labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Server is a running fake.
type Server struct {
	*loop.Server
	loop.Record[Profile]
	Faults loop.Faults
	// Of2019 is the collector as it was then: it demands instance_id, answers {"code":200} without an
	// id, and sends what it finds as a profile instead of a list.
	Of2019 bool

	stored int64 // atomic
}

// Start runs a server on an address of its own.
func Start() (*Server, error) {
	s := &Server{}
	var err error
	s.Server, err = loop.Start("", http.HandlerFunc(s.serve), nil)
	return s, err
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.Faults.Apply(w, r) {
		return
	}
	switch {
	case strings.Contains(r.URL.Path, "//"):
		clean := *r.URL
		for strings.Contains(clean.Path, "//") {
			clean.Path = strings.ReplaceAll(clean.Path, "//", "/")
		}
		http.Redirect(w, r, clean.String(), http.StatusMovedPermanently)
	case r.URL.Path == path && r.Method == http.MethodPost:
		s.post(w, r)
	case r.URL.Path == path && r.Method == http.MethodGet:
		s.list(w, r)
	case r.URL.Path == path:
		// The real one says 200 to other methods and does nothing.
		s.Note("200 nothing done: %s", r.Method)
	default:
		s.Note("404 %s", r.URL.Path)
		http.NotFound(w, r)
	}
}

// reply sets the type too late, as the real one does: the wire shows text/plain.
func reply(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

func (s *Server) fail(w http.ResponseWriter, status int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.Note("%d %s", status, text)
	reply(w, status, map[string]any{"code": status, "error": text})
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := Profile{Service: query.Get("service"), Instance: query.Get("instance_id"), Type: strings.TrimSpace(query.Get("type"))}
	if p.Service == "" {
		s.fail(w, 400, "bad request: missing \"service\"")
		return
	}
	if s.Of2019 && query.Get("instance_id") == "" {
		s.fail(w, 400, "bad request: bad instance id \"\"")
		return
	}
	if !types[p.Type] {
		s.fail(w, 400, "bad request: unknown profile type")
		return
	}
	var err error
	if p.Labels, err = parseLabels(query.Get("labels")); err != nil {
		s.fail(w, 400, "bad request: bad \"labels\" %q: %v", query.Get("labels"), err)
		return
	}
	p.CreatedAt = time.Now()
	if text := query.Get("created_at"); text != "" {
		if p.CreatedAt, err = time.Parse("2006-01-02T15:04:05", text); err != nil {
			s.fail(w, 400, "bad request: bad \"created_at\" %q: time in unsupported format", text)
			return
		}
	}
	if p.Raw, err = io.ReadAll(r.Body); err != nil {
		s.fail(w, 500, "failed to collect profile")
		return
	}
	// Content-Type and Content-Encoding are not looked at.
	parsed, err := pprof.ParseGzip(p.Raw)
	if err == nil && parsed.Samples == 0 {
		err = fmt.Errorf("profile is empty: no samples")
	}
	if err != nil {
		s.fail(w, 400, "malformed profile (could not parse pprof profile: %v)", err)
		return
	}
	if parsed.TimeNanos > 0 {
		p.CreatedAt = time.Unix(0, parsed.TimeNanos)
	}
	s.store(w, p)
}

func (s *Server) store(w http.ResponseWriter, p Profile) {
	p.ID = fmt.Sprintf("bpc%017d", atomic.AddInt64(&s.stored, 1)-1)
	s.Take(p)
	if s.Of2019 {
		reply(w, 200, map[string]any{"code": 200})
		return
	}
	reply(w, 200, answer{200, idFirst(p)})
}

// answer is the good one, in the order of the real one.
type answer struct {
	Code int `json:"code"`
	Body any `json:"body"`
}

// idFirst keeps the order of the keys of the real answer.
func idFirst(p Profile) any {
	return struct {
		ID        string  `json:"id"`
		Type      string  `json:"type"`
		Service   string  `json:"service"`
		Labels    []Label `json:"labels,omitempty"`
		CreatedAt string  `json:"created_at"`
	}{p.ID, p.Type, p.Service, p.Labels, p.CreatedAt.UTC().Format(time.RFC3339)}
}

// parseLabels decodes a second time what the query's decoding has left.
func parseLabels(text string) (labels []Label, err error) {
	for _, piece := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(piece, "=")
		if key, err = url.QueryUnescape(strings.TrimSpace(key)); err != nil {
			return nil, err
		}
		if value, err = url.QueryUnescape(strings.TrimSpace(value)); err != nil {
			return nil, err
		}
		if key != "" {
			labels = append(labels, Label{key, value})
		}
	}
	sort.SliceStable(labels, func(i, j int) bool { return labels[i].Key < labels[j].Key })
	return labels, nil
}

// list answers GET: what lies between from and to, 204 if there is nothing.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, err1 := time.Parse("2006-01-02T15:04:05", query.Get("from"))
	to, err2 := time.Parse("2006-01-02T15:04:05", query.Get("to"))
	if err1 != nil || err2 != nil || to.Before(from) {
		s.fail(w, 400, "bad request: bad \"from\" or \"to\"")
		return
	}
	found := []any{}
	var raw []byte
	for _, p := range s.Profiles() {
		typ := query.Get("type")
		if p.Service == query.Get("service") && (typ == "" || typ == p.Type) && !p.CreatedAt.Before(from) &&
			!p.CreatedAt.After(to) {
			found = append(found, idFirst(p))
			raw = p.Raw
		}
	}
	if len(found) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if s.Of2019 {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(raw)
		return
	}
	reply(w, 200, answer{200, found})
}
