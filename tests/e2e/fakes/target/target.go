// Package target serves /debug/pprof/* as a Go program would, and misbehaves on request.
//
// Bodies are compressed once; each answer still differs from every other (a comment in the gzip
// header), so that a test knows by its hash which answer arrived where. Every target has an
// address of its own.
package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// Paths of the types that a target serves, and the kind of profile at each.
var Paths = map[string]string{
	"/debug/pprof/profile":   "cpu",
	"/debug/pprof/heap":      "heap",
	"/debug/pprof/allocs":    "heap",
	"/debug/pprof/goroutine": "goroutine",
	"/debug/pprof/mutex":     "contention",
	"/debug/pprof/block":     "contention",
	"/debug/fgprof":          "fgprof",
}

// Fault is how a path misbehaves.
type Fault int

// The faults.
const (
	None       Fault = iota
	CPUInUse         // 500 in Go's words
	Hang             // takes the request, never answers
	Drip             // one byte a second
	CutBody          // announces more than it sends, then closes
	HTML             // 200 with a login page
	JSON             // 200 with an error in JSON
	Empty            // 200 without a body
	Garbage          // 200 with bytes that are no pprof
	TooLarge         // 200 with TooLargeBytes of octets, gzip magic in front
	Redirect         // 302 to RedirectTo
	NotFound         // 404
	BadGzip          // 200 with a gzip body whose middle is damaged
	TwiceGzip        // 200 with a profile compressed twice
	Plain            // no fault: the profile without compression
	LongHeader       // 200 with a header of 1 MiB
)

// TooLargeBytes is the size of the TooLarge answer.
const TooLargeBytes = 20 << 20

// Request is one request that a target has seen.
type Request struct {
	Path, Query string
	Header      http.Header
	Start, End  time.Time // End is zero while it runs
	Status      int
	SHA256      string // of the body that was sent in full, in hex; empty otherwise
	Canceled    bool   // the client went away
}

// Options of a target.
type Options struct {
	Addr       string // "" = an address of its own
	Functions  int    // size of the profiles, see pprof.Options
	MaxSeconds int    // what `seconds` may ask for; 0 = 60
	RedirectTo string
	// Quiet does not keep requests (benchmarks).
	Quiet bool
	// Body, if set, makes the answers of the paths for which it does not return nil; n counts the
	// answers of the path from 1.
	Body func(path string, n int) []byte
	// Bodies replaces the made-up profiles by path: compressed with pprof.Gzip.
	Bodies map[string][]byte
}

// Target is one running fake program.
type Target struct {
	*loop.Server
	opts Options

	served   int64 // atomic
	stamp    int64 // atomic: makes every answer different
	mu       sync.Mutex
	bodies   map[string][]byte
	rounds   map[string]int // answers from Body
	frozen   bool
	faults   map[string]Fault
	requests []*Request
	sampling int
	overlaps int
	cpu      bool
}

// Start runs a target.
func Start(opts Options) (*Target, error) {
	t := newTarget(opts)
	var err error
	t.Server, err = loop.Start(opts.Addr, t, nil)
	return t, err
}

// newTarget makes one that does not listen yet.
func newTarget(opts Options) *Target {
	if opts.MaxSeconds == 0 {
		opts.MaxSeconds = 60
	}
	t := &Target{opts: opts, bodies: map[string][]byte{}, rounds: map[string]int{}, faults: map[string]Fault{}}
	for path, kind := range Paths {
		if body, ok := opts.Bodies[path]; ok {
			t.bodies[path] = body
			continue
		}
		t.bodies[path] = pprof.Gzip(pprof.Make(kind, pprof.Options{Functions: opts.Functions}))
	}
	return t
}

// SetFault makes one path misbehave; the path "" means all without a fault of their own.
func (t *Target) SetFault(path string, f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[path] = f
}

// SetBody replaces what a path serves: compressed with pprof.Gzip.
func (t *Target) SetBody(path string, gz []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodies[path] = gz
}

// Freeze ends the growth: from now on, Body gets the number of the last answer of its path. It
// returns these numbers.
func (t *Target) Freeze() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
	out := map[string]int{}
	for path, n := range t.rounds {
		out[path] = n
	}
	return out
}

// nextBody returns what a path answers now, for a caller that holds the lock.
func (t *Target) nextBody(path string) (body []byte, known bool) {
	body, known = t.bodies[path]
	if t.opts.Body == nil || !known {
		return body, known
	}
	n := t.rounds[path]
	if !t.frozen || n == 0 {
		n++
	}
	if own := t.opts.Body(path, n); own != nil {
		t.rounds[path] = n
		return own, true
	}
	return body, known
}

// Requests returns what has been asked so far.
func (t *Target) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Request, 0, len(t.requests))
	for _, r := range t.requests {
		out = append(out, *r)
	}
	return out
}

// RequestsFor is Requests of one path.
func (t *Target) RequestsFor(path string) []Request {
	var out []Request
	for _, r := range t.Requests() {
		if r.Path == path {
			out = append(out, r)
		}
	}
	return out
}

// Sent returns the path of each answer that was sent in full, by the hash of its body.
func (t *Target) Sent() map[string]string {
	sent := map[string]string{}
	for _, r := range t.Requests() {
		if r.SHA256 != "" {
			sent[r.SHA256] = r.Path
		}
	}
	return sent
}

// Overlaps counts sampling requests (CPU, fgprof) that began while another one ran.
func (t *Target) Overlaps() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overlaps
}

// Served counts answers.
func (t *Target) Served() int64 { return atomic.LoadInt64(&t.served) }

// ServeHTTP answers a request and keeps a record of it.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	body, known := t.nextBody(r.URL.Path)
	fault, own := t.faults[r.URL.Path]
	if !own {
		fault = t.faults[""]
	}
	req := &Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Start: time.Now()}
	if !t.opts.Quiet {
		t.requests = append(t.requests, req)
	}
	t.mu.Unlock()

	status, sum := http.StatusNotFound, ""
	defer func() {
		atomic.AddInt64(&t.served, 1)
		t.mu.Lock()
		req.Status, req.SHA256, req.End = status, sum, time.Now()
		req.Canceled = r.Context().Err() != nil
		t.mu.Unlock()
	}()
	switch {
	case fault != None && fault != Plain:
		status = t.misbehave(w, r, fault, body)
	case !known:
		http.NotFound(w, r)
	default:
		status, sum = t.profile(w, r, req, body, fault == Plain)
	}
}

func (t *Target) profile(w http.ResponseWriter, r *http.Request, req *Request, gz []byte, plain bool) (status int, sum string) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
	sampling := Paths[r.URL.Path] == "cpu" || Paths[r.URL.Path] == "fgprof"
	if sampling && err != nil {
		seconds = 30 // as Go does
	}
	if seconds > t.opts.MaxSeconds {
		return fail(w, http.StatusBadRequest, "profile duration exceeds server's WriteTimeout"), ""
	}
	if sampling {
		if !t.beginSampling(r.URL.Path) {
			return fail(w, http.StatusInternalServerError, cpuInUse), ""
		}
		defer t.endSampling(r.URL.Path)
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-r.Context().Done():
		return 0, ""
	}
	body := t.body(gz, plain)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="profile"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if t.opts.Quiet {
		_, _ = w.Write(body)
		return http.StatusOK, ""
	}
	digest := sha256.Sum256(body)
	sum = hex.EncodeToString(digest[:])
	// On record before it is sent: it may arrive elsewhere before Write returns.
	t.mu.Lock()
	req.SHA256 = sum
	t.mu.Unlock()
	if _, err := w.Write(body); err != nil {
		return http.StatusOK, ""
	}
	return http.StatusOK, sum
}

// body makes an answer that differs from every other.
func (t *Target) body(gz []byte, plain bool) []byte {
	if t.opts.Quiet {
		return gz
	}
	stamp := atomic.AddInt64(&t.stamp, 1)
	if !plain {
		return pprof.Stamp(gz, fmt.Sprintf("%s %d", t.Addr(), stamp))
	}
	body, _ := pprof.Inflate(gz, 1<<30)
	// A field that nobody knows and everybody must skip.
	return pprof.AppendBytes(append([]byte(nil), body...), 1000, []byte(fmt.Sprintf("%s %d", t.Addr(), stamp)))
}

const cpuInUse = "Could not enable CPU profiling: cpu profiling already in use"

func fail(w http.ResponseWriter, status int, text string) int {
	w.Header().Set("X-Go-Pprof", "1")
	w.Header().Del("Content-Disposition")
	http.Error(w, text, status)
	return status
}

// beginSampling is false if a CPU profile runs already: fgprof does not take Go's lock, but counts
// as an overlap too.
func (t *Target) beginSampling(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sampling > 0 {
		t.overlaps++
	}
	if Paths[path] == "cpu" {
		if t.cpu {
			return false
		}
		t.cpu = true
	}
	t.sampling++
	return true
}

func (t *Target) endSampling(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sampling--
	if Paths[path] == "cpu" {
		t.cpu = false
	}
}
