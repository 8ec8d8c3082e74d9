package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/target"
)

// A SIGHUP that comes while the program still reads its configuration does not end it.
func TestSighupBeforeTheStart(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	fifo := filepath.Join(t.TempDir(), "config")
	must(t, syscall.Mkfifo(fifo, 0o600))
	p := startFile(t, nil, fifo)
	// This returns when the program has opened the other end.
	file, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	must(t, p.cmd.Process.Signal(syscall.SIGHUP))
	_, err = fmt.Fprintf(file, `
server: {listen: "127.0.0.1:0"}
scrape_configs:
  - job_name: one
    static_configs: [{targets: ["%s"]}]
write:
  - {name: main, url: "http://127.0.0.1:1"}
`, tg.Addr())
	must(t, err)
	file.Close()
	p.waitUp()
	p.says("there is no file to read the configuration from again")
	text := readFile(t, fmt.Sprintf("/proc/%d/limits", p.cmd.Process.Pid))
	for _, line := range strings.Split(string(text), "\n") {
		expect(t, !strings.HasPrefix(line, "Max core file size") || strings.Fields(line)[4] == "0" || strings.Fields(line)[4] == "1",
			"a core dump would hold the credentials: %s", line)
	}
}

// The summary after a second signal is final: what was queued is dropped, and counted so.
func TestSummaryAfterASecondSignal(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	p := run(t, scraping(job("one", "scrape_interval: 1s, profiles: {process_cpu: {enabled: false}}", tg),
		"name: main, url: \"http://127.0.0.1:1\""), "--drain-timeout", "10m")
	p.waitMetrics("queued profiles", func(m metrics) string {
		return unless(m.sum("profpull_write_queued_profiles") >= 4, "too few")
	})
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.says("msg=stopping signal=TERM note=\"another signal ends at once")
	time.Sleep(time.Second) // signals within half a second count as one
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	var line string
	for _, l := range strings.Split(p.stderr.String(), "\n") {
		if strings.Contains(l, "endpoint summary") {
			line = l
		}
	}
	expect(t, strings.Contains(line, " queued=0") && !strings.Contains(line, " dropped=0"), "summary: %q", line)
	expect(t, p.code == 0, "exit code %d", p.code)
}
