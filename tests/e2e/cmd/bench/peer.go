package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
)

// measurePeer runs another agent that reads Alloy's configuration, at the same targets and the same
// server, and compares. What arrives is counted by the server.
func measurePeer(l load, fakes *process, program cost) {
	p := launch(0, nil, *peerPath, "run", fakes.peerConfig(l),
		"--storage.path="+filepath.Join(*dir, "peer-data"), "--server.http.listen-addr="+adminAddress,
		"--stability.level=experimental", "--disable-reporting")
	defer p.end()
	// Alloy waits for up to an interval before the first scrape of a target, scrapes at the next tick,
	// and drops the first of each cumulative type, so that all types arrive after three intervals.
	time.Sleep(time.Second + 4*l.interval)
	before := takePeer(p, fakes)
	time.Sleep(l.time)
	after := takePeer(p, fakes)
	peer := cost{after.seconds - before.seconds, after.profiles - before.profiles}
	var s sample
	s.readStatus(p.cmd.Process.Pid)

	fmt.Printf("the peer %s\n", filepath.Base(*peerPath))
	if peer.profiles == 0 {
		fmt.Printf("  nothing arrived; the end of its log:\n%s\n", measure.Tail(logName(0)))
		return
	}
	line("profiles that arrived", "%.0f: %.0f/s", peer.profiles, peer.profiles/l.time.Seconds())
	line("CPU for 1,000 profiles", "%.3f s", 1000*peer.each())
	line("CPU profpull : peer", "%.2f", program.each()/peer.each())
	line("resident memory", "%.1f MiB", mib(s.rss))
}

func takePeer(p, fakes *process) (c cost) {
	user, system := cpu(p.cmd.Process.Pid)
	c.seconds = user + system
	c.profiles = fakes.accepted()
	return c
}

// accepted asks the fakes what has arrived so far; they answer a signal.
func (p *process) accepted() (n float64) {
	measure.Check(p.cmd.Process.Signal(syscall.SIGUSR1))
	text, err := p.stdout.ReadString('\n')
	if err != nil {
		p.failed(1, "the fakes ended", err)
	}
	if _, err := fmt.Sscan(text, &n); err != nil {
		p.failed(1, "the fakes said "+text, err)
	}
	return n
}

// peerConfig says in Alloy's language what config() says in ours.
func (p *process) peerConfig(l load) string {
	var targets strings.Builder
	for _, t := range p.hello.Targets {
		fmt.Fprintf(&targets, "    {\"__address__\" = %q, \"service_name\" = \"bench\", \"namespace\" = \"bench\", \"pod\" = \"bench-0\"},\n", t)
	}
	text := fmt.Sprintf(`pyroscope.scrape "bench" {
  targets = [
%[1]s  ]
  forward_to      = [pyroscope.write.main.receiver]
  scrape_interval = "%[2]s"
  profiling_config {
    profile.process_cpu { enabled = %[3]t }
  }
}
pyroscope.write "main" {
  endpoint { url = "http://%[4]s" }
  external_labels = {"cluster" = "bench"}
}
`, targets.String(), l.interval, l.types == 5, sinkAddress)
	file := filepath.Join(*dir, "peer.alloy")
	measure.Check(os.WriteFile(file, []byte(text), 0o600))
	return file
}
