// Command outage runs the program under test through an outage of its destination, with many targets
// whose counters grow, and prints how much of the growth has arrived in the end. scripts/faults/outage.sh
// builds and calls it. It judges nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"profpull.test/e2e/cmd/internal/growth"
	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/target"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	nTargets    = flag.Int("targets", 1000, "targets, each with five types")
	interval    = flag.Duration("interval", 15*time.Second, "scrape interval")
	down        = flag.Duration("down", 2*time.Minute, "how long the destination is away")
	second      = flag.Bool("second", false, "another destination stays up")
	queue       = flag.String("queue", "", "queue of each destination, as in the configuration; empty = the default")
	dir         = flag.String("dir", ".", "directory for configuration and log")
	pinned      = flag.Bool("pin", true, "give the program a core of its own")
)

func main() {
	measure.Begin("outage")
	b := growth.NewBodies()
	targets := b.Targets(*nTargets)
	sinks := map[string]*growth.Sink{"main": growth.NewSink("main")}
	if *second {
		sinks["second"] = growth.NewSink("second")
	}
	p := growth.Start(*pinned, *dir, *programPath, writeConfig(targets, sinks))
	defer p.End()

	time.Sleep(2**interval + *interval/3)
	fmt.Printf("%d targets x 5 types every %s, %d destinations\n", *nTargets, *interval, len(sinks))
	p.Line("before the outage")
	sinks["main"].Server.DownBetweenRequests()
	time.Sleep(*down)
	p.Line("at the end of the outage")
	measure.Check(sinks["main"].Server.Up())
	back := time.Now()
	time.Sleep(*interval + *interval/3)
	want := b.Grown(targets)
	growth.WaitUntil(3*time.Minute, func() bool { return done(want, sinks) })
	p.Line("in the end")
	for name, s := range sinks {
		s.Report(want)
		if first := s.FirstAfter(back); !first.IsZero() {
			fmt.Printf("  %-8s the first profile came %.2f s after the return\n", name+":", first.Sub(back).Seconds())
		}
	}
}

func done(want map[string]int64, sinks map[string]*growth.Sink) bool {
	for _, s := range sinks {
		if s.Short(want) > 0 {
			return false
		}
	}
	return true
}

func writeConfig(targets []*target.Target, sinks map[string]*growth.Sink) string {
	var text strings.Builder
	fmt.Fprintf(&text, "global: {scrape_interval: %s}\nscrape_configs:\n  - job_name: outage\n    static_configs:\n", *interval)
	fmt.Fprintf(&text, "      - labels: {service_name: outage}\n        targets:\n")
	for _, t := range targets {
		fmt.Fprintf(&text, "          - %q\n", t.Addr())
	}
	text.WriteString("write:\n")
	for name, s := range sinks {
		fmt.Fprintf(&text, "  - {name: %s, url: %q%s}\n", name, s.Server.URL(), queueKey())
	}
	config := filepath.Join(*dir, "outage.yaml")
	measure.Check(os.WriteFile(config, []byte(text.String()), 0o600))
	return config
}

func queueKey() string {
	if *queue == "" {
		return ""
	}
	return fmt.Sprintf(", queue: {max_bytes: %s}", *queue)
}
