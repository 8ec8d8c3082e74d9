package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// deadDNS is a wrapper for a program whose only name server takes questions and never answers.
func deadDNS(t *testing.T) []string {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare (util-linux)")
	}
	server, err := net.ListenPacket("udp", loop.Host()+":53")
	if err != nil {
		t.Skipf("needs the right to be a name server: %v", err)
	}
	t.Cleanup(func() { server.Close() })
	host, _, _ := net.SplitHostPort(server.LocalAddr().String())
	file := filepath.Join(t.TempDir(), "resolv.conf")
	must(t, os.WriteFile(file, []byte("nameserver "+host+"\n"), 0o644))
	wrapper := []string{unshare, "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, file}
	if out, err := exec.Command(wrapper[0], append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("needs the right to replace /etc/resolv.conf: %v: %s", err, out)
	}
	return wrapper
}

// openFiles and threads are those of the program.
func (p *program) openFiles() int { return p.entries("fd") }
func (p *program) threads() int   { return p.entries("task") }

func (p *program) entries(directory string) int {
	p.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, directory))
	must(p.t, err)
	return len(all)
}

// More than a thousand targets by name, and no name server that answers: the lookups take a few
// threads and descriptors, the admin server answers, and targets by address are scraped as ever.
func TestDeadNameServer(t *testing.T) {
	t.Parallel()
	wrapper := deadDNS(t)
	server := newPyroscope(t, pyroscope.Options{})
	good := newTarget(t, target.Options{})
	var names []string
	for i := 0; i < 1100; i++ {
		names = append(names, fmt.Sprintf("dead-%d.zone.test:6060", i))
	}
	p := startUnder(t, wrapper, "global: {scrape_interval: 10s, scrape_timeout: 10s}\n"+scraping(jobAt("dead", "profiles: "+oneSnapshot, names...)+
		job("good", "scrape_interval: 1s, profiles: {process_cpu: {enabled: false}}", good), to(server)))
	p.waitUp()
	p.waitMetric(1000, "profpull_http_in_flight", "client", "scrape")
	threads, files := p.threads(), p.openFiles()
	t.Logf("%d threads, %d descriptors", threads, files)
	expect(t, threads <= 100 && files <= 300, "%d threads and %d descriptors, expected few", threads, files)
	p.answers("/-/healthy", 200)
	before := p.metrics().sum("profpull_scrapes_total", "job", "good", "result", "ok")
	reaches(t, "scrapes of the good target", 20,
		func() float64 {
			return p.metrics().sum("profpull_scrapes_total", "job", "good", "result", "ok") - before
		})
	atMost(t, "failed scrapes of the good target",
		p.metrics().sum("profpull_scrapes_total", "job", "good", "result", "failed"), 0)
	p.wait("failures of the others", func() string {
		for _, s := range p.scrapes("") {
			if s.Job == "dead" && strings.Contains(s.LastError, "no address of dead-") {
				return ""
			}
		}
		return "no scrape says that there is no address"
	})
}
