package e2e

import (
	"fmt"
	"testing"

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
	p := startUnder(t, group.Wrapper(), `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: small
    profiles: {block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: {enabled: false}}
    static_configs:
`+staticTargets("small", small...)+`
  - job_name: large
    profiles: {block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: {enabled: false}, heap: {enabled: true}}
    static_configs:
`+staticTargets("large", large...)+`
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	p.waitUp()
	var m metrics
	p.wait("scrapes of both", func() string {
		m = p.metrics()
		good := m.sum("profpull_scrapes_total", "job", "small", "result", "ok")
		bad := m.sum("profpull_scrapes_total", "job", "large", "result", "failed")
		if good < 30 || bad < 30 {
			return fmt.Sprintf("%v good ones of small, %v failed ones of large", good, bad)
		}
		return ""
	})
	if n := m.sum("profpull_scrapes_total", "job", "small", "result", "failed"); n != 0 {
		t.Errorf("%v scrapes of small profiles failed", n)
	}
	// Which of the ceilings a body meets first depends on what else arrives at that moment.
	refused := m.sum("profpull_work_refused_total") + m.sum("profpull_http_requests_total", "client", "scrape", "result", "no_room")
	limit := m.sum("profpull_memory_limit_bytes")
	if refused == 0 || limit <= 0 || limit > 128<<20 {
		t.Errorf("%v profiles refused for lack of memory, the limit is %v", refused, limit)
	}
	if n := group.Killed(); n != 0 || p.ended() {
		t.Errorf("the kernel has killed %d: %s", n, group.Figures())
	}
	p.stop()
}
