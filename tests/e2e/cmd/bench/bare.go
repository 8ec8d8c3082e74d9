package main

import (
	"fmt"
	"profpull.test/e2e/cmd/internal/measure"
	"strings"
	"syscall"
	"time"
)

// cost is the processor time of so many profiles.
type cost struct{ seconds, profiles float64 }

func (c cost) each() float64 { return c.seconds / (c.profiles + 1e-9) }

// measureBare runs a loop of libcurl that fetches and posts the same bodies and does nothing else, at
// the same targets and the same server, and compares.
func measureBare(l load, fakes *process, program cost) {
	p := launch(0, strings.NewReader(strings.Join(fakes.hello.Targets, "\n")+"\n"), *barePath,
		"http://"+sinkAddress+"/ingest?name=bare", fmt.Sprint(l.interval.Milliseconds()))
	defer p.end()
	l.warmUp()
	before := takeBare(p)
	time.Sleep(l.time)
	after := takeBare(p)
	bare := cost{after.seconds - before.seconds, after.profiles - before.profiles}
	var s sample
	s.readStatus(p.cmd.Process.Pid)

	fmt.Println("a bare loop of libcurl that fetches and posts the same")
	line("profiles posted, failed, skipped", "%.0f, %.0f, %.0f: %.0f/s", bare.profiles, after.failed-before.failed, after.skipped-before.skipped, bare.profiles/l.time.Seconds())
	line("CPU for 1,000 profiles", "%.3f s", 1000*bare.each())
	line("CPU profpull : bare loop", "%.2f", program.each()/bare.each())
	line("resident memory", "%.1f MiB", mib(s.rss))
}

type bareSample struct {
	cost
	failed, skipped float64
}

// takeBare asks the loop what it has done so far; it answers a signal.
func takeBare(p *process) (s bareSample) {
	measure.Check(p.cmd.Process.Signal(syscall.SIGUSR1))
	text, err := p.stdout.ReadString('\n')
	if err != nil {
		p.failed(0, "the bare loop ended", err)
	}
	if _, err := fmt.Sscan(text, &s.profiles, &s.failed, &s.skipped); err != nil {
		p.failed(0, "the bare loop said "+text, err)
	}
	user, system := cpu(p.cmd.Process.Pid)
	s.seconds = user + system
	return s
}
