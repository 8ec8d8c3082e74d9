package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// peak is the most memory that the program had resident, in bytes.
func (p *program) peak() int64 {
	p.t.Helper()
	text := readFile(p.t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require(p.t, m != nil, "no VmHWM in\n%s", text)
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// serveOn runs a handler on an address of its own until the test ends.
func serveOn(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s, err := loop.Start("", handler, nil)
	must(t, err)
	t.Cleanup(s.Down)
	return s.Addr()
}

// A profile of 20 MB goes to two endpoints as it is: byte for byte, and held in memory once.
func TestLargePassthrough(t *testing.T) {
	t.Parallel()
	// 20 MB of noise, which gzip cannot compress, in an unknown field.
	noise := make([]byte, 20<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	body := pprof.Gzip(pprof.AppendBytes(pprof.Make("cpu", pprof.Options{}), 100, noise))
	var mu sync.Mutex
	served := false
	got := map[string]bool{}
	target := serveOn(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		first := !served
		served = true
		mu.Unlock()
		if !first {
			http.NotFound(w, r)
			return
		}
		w.(http.Flusher).Flush() // the size is not announced
		w.Write(body)
	})
	sink := serveOn(t, func(w http.ResponseWriter, r *http.Request) {
		all, err := io.ReadAll(r.Body)
		mu.Lock()
		got[r.URL.Path] = err == nil && bytes.Contains(all, body)
		mu.Unlock()
	})
	p := run(t, scraping(jobAt("large", "scrape_interval: 1s, body_size_limit: 64MiB, profiles: "+
		only("custom: [{name: large, path: /large, interval: 1s}]"), target),
		"name: push, url: http://"+sink, "name: ingest, url: http://"+sink+", protocol: ingest"))
	before := p.rss()
	p.wait("both endpoints to have it", func() string {
		mu.Lock()
		defer mu.Unlock()
		return unless(len(got) >= 2, "%v", got)
	})
	mu.Lock()
	defer mu.Unlock()
	for path, whole := range got {
		expect(t, whole, "%s has not got the profile as it was", path)
	}
	more := p.peak() - before
	t.Logf("a body of %d bytes took %d bytes more at the peak", len(body), more)
	expect(t, instrumented(t) || more <= int64(len(body))*3/2,
		"%d bytes of memory for a body of %d bytes", more, len(body))
}
