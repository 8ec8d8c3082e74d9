package e2e

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"

	"profpull.test/e2e/fakes/cgroup"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// A few pods with the largest profiles that are accepted, where there is little memory: the program is
// not killed, others do not notice, and what finds no room is counted.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	if instrumented(t) {
		t.Skip("valgrind and the sanitizers need memory of their own")
	}
	group, err := cgroup.New(128 << 20)
	if err != nil {
		t.Skipf("no control group: %v", err)
	}
	t.Cleanup(group.Remove)
	heap := pprof.Gzip(pprof.Make("heap", pprof.Options{Functions: 190000}))
	server := newPyroscope(t, pyroscope.Options{})
	var large, small []*target.Target
	for i := 0; i < 4; i++ {
		large = append(large, newTarget(t, target.Options{Bodies: map[string][]byte{"/debug/pprof/allocs": heap, "/debug/pprof/heap": heap}}))
		small = append(small, newTarget(t, target.Options{}))
	}
	p := startUnder(t, group.Wrapper(), scraping(job("small", "scrape_interval: 2s, profiles: "+only("memory: {}"), small...)+
		job("large", "scrape_interval: 2s, profiles: "+only("heap: {enabled: true}, memory: {}"), large...),
		to(server)))
	p.waitUp()
	var m metrics
	p.wait("scrapes of both", func() string {
		m = p.metrics()
		good := m.sum("profpull_scrapes_total", "job", "small", "result", "ok")
		bad := m.sum("profpull_scrapes_total", "job", "large", "result", "failed")
		return unless(good >= 30 && bad >= 30, "%v good ones of small, %v failed ones of large", good, bad)
	})
	equal(t, "failed scrapes of small profiles",
		m.sum("profpull_scrapes_total", "job", "small", "result", "failed"), 0)
	// Which of the ceilings a body meets first depends on what else arrives at that moment.
	refused := m.sum("profpull_work_refused_total") + m.sum("profpull_http_requests_total", "client", "scrape", "result", "no_room")
	limit := m.sum("profpull_memory_limit_bytes")
	expect(t, refused != 0 && limit > 0 && limit <= 128<<20,
		"%v profiles refused for lack of memory, the limit is %v", refused, limit)
	n := group.Killed()
	expect(t, n == 0 && !p.ended(), "the kernel has killed %d: %s", n, group.Figures())
}

// The test program as a program of its own whose heap profile is large: one stack for each path through
// a tree of calls.
func init() {
	address := os.Getenv("E2E_LARGE_HEAP")
	if address == "" {
		return
	}
	runtime.MemProfileRate = 1
	for path := 0; path < 1<<14; path++ {
		kept = append(kept, callLeft(path, 14))
	}
	runtime.GC() // a heap profile shows what the last collection has seen
	runtime.GC()
	fmt.Fprintln(os.Stderr, http.ListenAndServe(address, nil))
	os.Exit(1)
}

var kept [][]byte

//go:noinline
func callLeft(path, depth int) []byte {
	if depth == 0 {
		return make([]byte, 64)
	}
	if path&1 == 0 {
		return callLeft(path>>1, depth-1)
	}
	return callRight(path>>1, depth-1)
}

//go:noinline
func callRight(path, depth int) []byte {
	if depth == 0 {
		return make([]byte, 128)
	}
	if path&1 == 0 {
		return callLeft(path>>1, depth-1)
	}
	return callRight(path>>1, depth-1)
}

// TestMemoryIsShort checks that heap profiles of a real program that do not fit into memory at the same
// time are read one after the other: none fails, each target has its turn, and the process says what
// they wait for.
func TestMemoryIsShort(t *testing.T) {
	t.Parallel()
	const targets = 24
	address := loop.Host() + ":6071"
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "E2E_LARGE_HEAP="+address)
	startProgram(t, cmd)
	wait(t, "the program", func() string {
		resp, err := http.Get("http://" + address + "/debug/pprof/heap")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		var size int
		for buf := make([]byte, 1<<16); err == nil; {
			var n int
			n, err = resp.Body.Read(buf)
			size += n
		}
		require(t, size >= 70<<10, "its heap profile has %d bytes only", size)
		return ""
	})
	server := newPyroscope(t, pyroscope.Options{})
	config := `
global: {scrape_interval: 200ms, scrape_timeout: 60s, bodies_max_bytes: 1MiB}
scrape_configs:
  - job_name: large
    profiles: {block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: {enabled: false}, memory: {enabled: false}, heap: {enabled: true, delta: "off"}}
    static_configs:
`
	for i := 0; i < targets; i++ {
		config += fmt.Sprintf("      - {targets: [%q], labels: {service_name: \"s%d\", __param_n: \"%d\"}}\n", address, i, i)
	}
	p := run(t, config+"write:\n  - {name: main, url: \""+server.URL()+"\"}\n")
	p.waitUp()
	p.wait("all targets to be served in turn", func() string {
		for _, s := range p.scrapes("") {
			if s.Successes < 2 {
				return fmt.Sprintf("%+v", s)
			}
		}
		n := len(p.scrapes(""))
		return unless(n == targets, "%d scrapes", n)
	})
	least, most := int64(1<<62), int64(0)
	for _, s := range p.scrapes("") {
		if s.Successes < least {
			least = s.Successes
		}
		if s.Successes > most {
			most = s.Successes
		}
	}
	expect(t, most <= 2*least+2, "one target was served %d times, another one %d times", most, least)
	m := p.metrics()
	equal(t, "failed scrapes", m.sum("profpull_scrapes_total", "result", "failed"), 0)
	atLeast(t, "scrapes that waited for memory", m.sum("profpull_scrape_memory_wait_seconds_count"), 1)
	p.wait("the bottleneck to be named", func() string {
		r := call(t, "", "status", "--url", p.admin)
		if text := strings.Join(strings.Fields(r.stdout), " "); !strings.Contains(text, "-> memory is the bottleneck: raise global.memory_limit") {
			return r.stdout + r.stderr
		}
		return ""
	})
	_, page := p.get("/targets")
	has(t, "the page", page, "memory is the bottleneck")
}
