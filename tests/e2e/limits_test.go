package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// cpuTime is what the program has used so far, of all its threads.
func (p *program) cpuTime() time.Duration {
	p.t.Helper()
	text := readFile(p.t, fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int64
	_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// With fewer descriptors than targets the program does what it can: it neither spins nor floods its
// log, answers on its admin server, and scrapes most targets.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	if instrumented(t) {
		t.Skip("valgrind and the sanitizers need descriptors of their own")
	}
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("needs prlimit (util-linux)")
	}
	server := newPyroscope(t, pyroscope.Options{})
	targets := newTargets(t, 100, target.Options{})
	p := startUnder(t, []string{prlimit, "--nofile=220:220", "--"}, scraping(job("few", "scrape_interval: 5s", targets...), to(server)))
	p.waitUp()
	begin := time.Now()
	waitProfiles(t, server, 500, nil)
	p.wait("/metrics", func() string {
		b := p.metrics().ledger("main").balance()
		return unless(b == "", "%s", b)
	})
	took := time.Since(begin)
	used := p.cpuTime()
	expect(t, used <= took/2+2*time.Second, "%v of CPU in %v", used, took)
	p.stop()
	atMost(t, "bytes of log", len(p.stderr.String()), 200<<10)
}
