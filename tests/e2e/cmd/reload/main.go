// Command reload gives the program under test another configuration many times a second, good and bad
// ones by turns, while it scrapes many targets whose counters grow, and prints what that has cost:
// scrapes, connections, phases, growth, memory. scripts/faults/reload.sh builds and calls it. It judges
// nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"profpull.test/e2e/cmd/internal/growth"
	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/configmap"
	"profpull.test/e2e/fakes/target"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	nTargets    = flag.Int("targets", 300, "targets, each with five types")
	interval    = flag.Duration("interval", 5*time.Second, "scrape interval")
	seconds     = flag.Duration("time", 2*time.Minute, "how long it is reloaded")
	rate        = flag.Int("rate", 100, "reloads a second, half of them bad")
	dir         = flag.String("dir", ".", "directory for configuration and log; it must be empty")
	pinned      = flag.Bool("pin", true, "give the program a core of its own")
)

const (
	jobs     = 10
	fileName = "profpull.yaml"
)

func main() {
	measure.Begin("reload")
	b := growth.NewBodies()
	targets := b.Targets(*nTargets)
	sink := growth.NewSink("main")
	measure.Check(os.MkdirAll(filepath.Join(*dir, "volume"), 0o755))
	l := &load{volume: filepath.Join(*dir, "volume"), jobs: jobsText(targets), sink: sink}
	l.write(0)
	p := growth.Start(*pinned, *dir, *programPath, filepath.Join(l.volume, fileName))
	defer p.End()

	time.Sleep(2**interval + *interval/3)
	fmt.Printf("%d targets x 5 types every %s in %d jobs; the last job changes with each good configuration\n",
		*nTargets, *interval, jobs)
	// The first changes allocate some things once, which are not the cost of each change.
	l.run(p, 5*time.Second)
	before := look(p)
	p.Line("before")
	l.good, l.bad, l.wrong = 0, 0, 0
	took := l.run(p, *seconds)
	after := look(p)
	fmt.Printf("%d good and %d bad reloads in %.0f s; %d had another result\n", l.good, l.bad, took.Seconds(), l.wrong)
	time.Sleep(*interval + *interval/3)
	want := b.Grown(targets)
	growth.WaitUntil(time.Minute, func() bool { return sink.Short(want) == 0 })
	p.Line("in the end")
	sink.Report(want)
	report(before, after, took)
}

// ---- the load -------------------------------------------------------------------------------------

// load is the volume of a ConfigMap that is switched from one version to the next.
type load struct {
	volume  string
	jobs    string
	sink    *growth.Sink
	version int

	good, bad, wrong int
}

// jobsText is the jobs with their targets; the label of the last one is another one in each version.
func jobsText(targets []*target.Target) string {
	var text strings.Builder
	for job := 0; job < jobs; job++ {
		labels := fmt.Sprintf("service_name: service-%d", job)
		if job == jobs-1 {
			labels += `, version: "%d"`
		}
		fmt.Fprintf(&text, "  - job_name: job-%d\n    static_configs:\n      - labels: {%s}\n        targets:\n", job, labels)
		for i := job; i < len(targets); i += jobs {
			fmt.Fprintf(&text, "          - %q\n", targets[i].Addr())
		}
	}
	return text.String()
}

func (l *load) write(version int) {
	text := fmt.Sprintf("global: {scrape_interval: %s}\nwrite: [{name: main, url: %q}]\nscrape_configs:\n%s",
		*interval, l.sink.Server.URL(), fmt.Sprintf(l.jobs, version))
	if version%2 == 1 {
		text += "unknown_key: 1\n"
	}
	measure.Check(configmap.Write(l.volume, fmt.Sprint(version), fileName, text))
	measure.Check(configmap.Remove(l.volume, fmt.Sprint(version-1)))
}

// run reloads at the rate, and returns how long that has taken.
func (l *load) run(p *growth.Program, d time.Duration) time.Duration {
	begin := time.Now()
	for i := 0; i < int(d.Seconds()*float64(*rate)); i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(*rate))))
		l.version++
		l.write(l.version)
		resp, err := http.Post(p.Admin+"/-/reload", "", nil)
		measure.Check(err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		want := http.StatusOK
		if l.version%2 == 1 {
			want = http.StatusInternalServerError
			l.bad++
		} else {
			l.good++
		}
		if resp.StatusCode != want {
			l.wrong++
		}
	}
	return time.Since(begin)
}

// ---- what it has cost -----------------------------------------------------------------------------

// state is what can be seen of the program from outside.
type state struct {
	sums     map[string]float64
	phases   map[string]time.Duration // where in its interval each scrape is due
	resident int64
	cpu      float64
}

// The metrics that must not grow, or only by so much.
var counted = []struct{ name, label, value, words string }{
	{"profpull_scrapes_total", "result", "ok", "scrapes that succeeded"},
	{"profpull_scrapes_total", "result", "failed", "scrapes that failed"},
	{"profpull_scrapes_total", "result", "skipped", "ticks that were skipped"},
	{"profpull_http_connections_total", "kind", "new", "connections to targets that were made"},
	{"profpull_delta_total", "result", "first", "baselines that were lost"},
	{"profpull_write_dropped_profiles_total", "", "", "profiles that were dropped"},
	{"profpull_write_refused_profiles_total", "", "", "deltas that found no room"},
}

func look(p *growth.Program) state {
	s := state{sums: map[string]float64{}, phases: map[string]time.Duration{},
		resident: p.Status("VmRSS"), cpu: p.CPU()}
	p.Metrics(func(sample string, v float64) {
		name, _, _ := strings.Cut(sample, "{")
		for _, c := range counted {
			client := growth.Label(sample, "client")
			if c.name == name && (c.label == "" || growth.Label(sample, c.label) == c.value) &&
				(client == "" || client == "scrape") {
				s.sums[c.words] += v
			}
		}
	})
	var page struct {
		Data struct {
			Scrapes []struct {
				URL     string
				NextDue *time.Time
			}
		}
	}
	p.Get("/api/v1/targets", func(r io.Reader) error { return json.NewDecoder(r).Decode(&page) })
	for _, scrape := range page.Data.Scrapes {
		if scrape.NextDue != nil {
			s.phases[scrape.URL] = time.Duration(scrape.NextDue.UnixNano()) % *interval
		}
	}
	return s
}

func report(before, after state, took time.Duration) {
	for _, c := range counted {
		fmt.Printf("  %-38s %.0f\n", c.words, after.sums[c.words]-before.sums[c.words])
	}
	moved, gone := 0, 0
	for url, phase := range before.phases {
		now, there := after.phases[url]
		away := (now - phase + *interval) % *interval
		if !there {
			gone++
		} else if away > 100*time.Millisecond && away < *interval-100*time.Millisecond {
			moved++
		}
	}
	fmt.Printf("  of %d scrapes with a phase, %d have another one by more than 0.1 s, %d have none\n", len(before.phases), moved, gone)
	fmt.Printf("  resident memory %d KiB -> %d KiB, %.1f s of CPU in %.0f s\n", before.resident>>10, after.resident>>10,
		after.cpu-before.cpu, took.Seconds())
}
