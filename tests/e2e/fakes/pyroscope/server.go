// Package pyroscope is a fake of a Pyroscope server: its Push and /ingest endpoints, as strict as the
// real ones, with the same answers. In DeepFlow mode it is the agent's HTTP endpoint instead, which
// answers 200 to almost everything; what it would not understand is listed by Refused.
package pyroscope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// Defaults of the real server.
const (
	MaxProfileSize  = 4 << 20 // uncompressed
	MaxSamples      = 16000
	MaxLabels       = 30
	MaxLabelName    = 1024
	MaxLabelValue   = 2048
	MaxBody         = 256 << 20
	RejectOlderThan = time.Hour
	RejectNewerThan = 10 * time.Minute
)

// Options of a server. The zero value is Pyroscope 2 without tenants.
type Options struct {
	Addr        string // "" = an address of its own
	BasePath    string // "/profile" serves below it, as behind a gateway
	Multitenant bool   // X-Scope-OrgID is required
	Username    string // if set: Basic auth is required
	Password    string
	OldLabels   bool // label names as servers before 2.0 take them
	NoWindow    bool // do not check the time of profiles
	DeepFlow    bool
	NoQuerier   bool // only takes profiles, as a gateway for writing does
	HiddenFor   int  // so many queries find nothing, whatever has come
	// Fresh has compacted nothing yet: it says that it has no data, and finds profiles by their service
	// alone; Blind not even then.
	Fresh, Blind bool
	// Take, if set, gets each accepted profile, which is not kept then. In Cheap mode it is called from
	// many goroutines, with labels and bytes of what came by push.
	Take func(Received)
	// Cheap only counts: bodies are read to the end and neither checked nor kept.
	Cheap bool
}

// Received is one profile that was accepted.
type Received struct {
	At      time.Time
	API     string // "push" or "ingest"
	Tenant  string
	Labels  map[string]string
	ID      string
	Raw     []byte // as it came
	SHA256  string // of Raw, in hex
	Profile *pprof.Profile
	Query   url.Values  // ingest
	Header  http.Header // of the request
	Config  map[string]SampleTypeConfig
}

// Name is the label `__name__`.
func (r *Received) Name() string { return r.Labels["__name__"] }

// SampleTypeConfig is an entry of the part of that name.
type SampleTypeConfig struct {
	Units       string `json:"units,omitempty"`
	DisplayName string `json:"display-name,omitempty"`
	Aggregation string `json:"aggregation,omitempty"`
	Cumulative  bool   `json:"cumulative,omitempty"`
	Sampled     bool   `json:"sampled,omitempty"`
}

// Stats counts what happened.
type Stats struct {
	Requests int64
	Accepted int64 // profiles
	Bytes    int64 // of request bodies
	InFlight int
	MaxBusy  int            // most requests at once
	ByStatus map[int]int64  // answers
	ByName   map[string]int // accepted profiles by __name__
}

// Server is a running fake.
type Server struct {
	*loop.Server
	loop.Record[Received]
	Faults loop.Faults
	opts   Options

	mu      sync.Mutex
	asked   []time.Time
	stats   Stats
	queries int
}

// Start runs a server.
func Start(opts Options) (*Server, error) {
	s := &Server{opts: opts}
	s.stats.ByStatus = map[int]int64{}
	s.stats.ByName = map[string]int{}
	var err error
	s.Server, err = loop.Start(opts.Addr, http.HandlerFunc(s.serve), nil)
	return s, err
}

// URL is what goes into the configuration.
func (s *Server) URL() string { return s.Server.URL() + s.opts.BasePath }

// Asked lists when each request came, whatever became of it (not in Cheap mode).
func (s *Server) Asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.asked...)
}

// Stats returns a copy of the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.stats
	c.ByStatus, c.ByName = map[int]int64{}, map[string]int{}
	for k, v := range s.stats.ByStatus {
		c.ByStatus[k] = v
	}
	for k, v := range s.stats.ByName {
		c.ByName[k] = v
	}
	return c
}

func (s *Server) accept(r Received) {
	sum := sha256.Sum256(r.Raw)
	r.SHA256 = hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Accepted++
	s.stats.ByName[r.Name()]++
	if s.opts.Take != nil {
		s.opts.Take(r)
		return
	}
	s.Take(r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.stats.Requests++
	s.stats.InFlight++
	if !s.opts.Cheap {
		s.asked = append(s.asked, time.Now())
	}
	if s.stats.InFlight > s.stats.MaxBusy {
		s.stats.MaxBusy = s.stats.InFlight
	}
	s.mu.Unlock()
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		s.mu.Lock()
		s.stats.InFlight--
		s.stats.ByStatus[rec.status]++
		s.mu.Unlock()
	}()
	if s.Faults.Apply(rec, r) {
		return
	}
	s.route(rec, r)
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, s.opts.BasePath)
	if s.opts.DeepFlow {
		s.deepflow(w, r)
		return
	}
	if strings.Contains(r.URL.Path, "//") {
		clean := *r.URL
		for strings.Contains(clean.Path, "//") {
			clean.Path = strings.ReplaceAll(clean.Path, "//", "/")
		}
		http.Redirect(w, r, clean.String(), http.StatusMovedPermanently)
		return
	}
	if s.opts.Username != "" {
		if user, pass, ok := r.BasicAuth(); !ok || user != s.opts.Username || pass != s.opts.Password {
			s.Note("401 basic auth")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
	}
	switch path {
	case "/push.v1.PusherService/Push":
		s.push(w, r)
	case "/ingest", "/pyroscope/ingest":
		s.ingest(w, r)
	case "/querier.v1.QuerierService/SelectMergeStacktraces":
		if !s.opts.NoQuerier {
			s.selectMergeStacktraces(w, r)
			return
		}
		s.Note("404 %s", r.URL.Path)
		http.NotFound(w, r)
	case "/querier.v1.QuerierService/GetProfileStats":
		s.profileStats(w, r)
	default:
		s.Note("404 %s", r.URL.Path)
		http.NotFound(w, r)
	}
}

// tenant checks X-Scope-OrgID; the message is empty if it is fine.
func (s *Server) tenant(r *http.Request) (id, message string) {
	id = r.Header.Get("X-Scope-OrgID")
	if id == "" {
		if s.opts.Multitenant {
			return "", "no org id"
		}
		return "anonymous", ""
	}
	if len(id) > 150 || id == "." || id == ".." {
		return "", "tenant ID is too long or unsafe"
	}
	for _, c := range id {
		ok := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.ContainsRune("!-_.*'()", c)
		if !ok {
			return "", fmt.Sprintf("tenant ID '%s' contains unsupported character '%c'", id, c)
		}
	}
	return id, ""
}

// checkTime is the ingestion window.
func (s *Server) checkTime(t time.Time, labels string) error {
	now := time.Now()
	start, end := now.Add(-RejectOlderThan), now.Add(RejectNewerThan)
	if s.opts.NoWindow || (t.After(start) && t.Before(end)) {
		return nil
	}
	return fmt.Errorf("profile with labels '%s' is outside of ingestion window (profile timestamp: %s, "+
		"the ingestion window starts at %s and ends at %s)", labels, t.UTC().Format(time.RFC3339),
		start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
}

func writeJSONError(w http.ResponseWriter, status int, code, message, end string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(map[string]string{"code": code, "message": message})
	_, _ = w.Write(append(body, end...))
}
