// Command outage runs the program under test through an outage of its destination, with many targets
// whose counters grow, and prints how much of the growth has arrived in the end. scripts/faults/outage.sh
// builds and calls it. It judges nothing.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
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

var adminAddress = loop.Host() + ":4041"

func main() {
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("outage: ")
	b := newBodies()
	var targets []*target.Target
	for i := 0; i < *nTargets; i++ {
		set := i % sets
		t, err := target.Start(target.Options{Quiet: true, Bodies: b.plain[set],
			Body: func(path string, n int) []byte { return b.get(set, path, n) }})
		check(err)
		targets = append(targets, t)
	}
	sinks := []*sink{newSink("main")}
	if *second {
		sinks = append(sinks, newSink("second"))
	}
	p := start(targets, sinks)
	defer p.end()

	time.Sleep(2**interval + *interval/3)
	fmt.Printf("%d targets x 5 types every %s, %d destinations\n", *nTargets, *interval, len(sinks))
	p.line("before the outage")
	sinks[0].server.DownBetweenRequests()
	p.watch(*down)
	p.line("at the end of the outage")
	check(sinks[0].server.Up())
	back := time.Now()
	p.watch(*interval + *interval/3)
	want := b.grown(targets)
	p.watchUntil(3*time.Minute, func() bool { return done(want, sinks) })
	p.line("in the end")
	for _, s := range sinks {
		s.report(want, back)
	}
}

func done(want map[string]int64, sinks []*sink) bool {
	for _, s := range sinks {
		if short, _, _ := s.compare(want); short > 0 {
			return false
		}
	}
	return true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// ---- profiles that grow ---------------------------------------------------------------------------

const sets = 20

var growing = map[string]string{
	"/debug/pprof/allocs": "memory", "/debug/pprof/mutex": "mutex", "/debug/pprof/block": "block",
}

// bodies makes each body once: targets of a set answer alike.
type bodies struct {
	plain     []map[string][]byte
	functions []map[string]int

	mu   sync.Mutex
	made map[string]*body
}

type body struct {
	once sync.Once
	gz   []byte
}

func newBodies() *bodies {
	b := &bodies{made: map[string]*body{}}
	var paths []string
	for path := range target.Paths {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for i := 0; i < sets; i++ {
		plain, functions := map[string][]byte{}, map[string]int{}
		for j, path := range paths {
			functions[path] = functionsFor(quantile((float64((i+7*j)%sets) + 0.5) / sets))
			plain[path] = pprof.Gzip(pprof.Make(target.Paths[path], pprof.Options{Functions: functions[path]}))
		}
		b.plain, b.functions = append(b.plain, plain), append(b.functions, functions)
	}
	return b
}

func (b *bodies) get(set int, path string, n int) []byte {
	if growing[path] == "" {
		return nil
	}
	key := fmt.Sprint(set, path, n)
	b.mu.Lock()
	one := b.made[key]
	if one == nil {
		one = &body{}
		b.made[key] = one
	}
	b.mu.Unlock()
	one.once.Do(func() {
		o := pprof.Options{Functions: b.functions[set][path], Round: n}
		one.gz = pprof.Gzip(pprof.Make(target.Paths[path], o))
	})
	return one.gz
}

// The compressed sizes follow a log-normal curve, as in cmd/fakes.
func quantile(p float64) float64 {
	const median, p90 = 6000.0, 67000.0
	sigma := math.Log(p90/median) / 1.2816
	return median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
}

func functionsFor(bytes float64) int {
	return int(math.Min(math.Max(bytes/35, 3), 15000))
}

var counters = map[string]bool{"alloc_objects": true, "alloc_space": true, "contentions": true, "delay": true}

// grown ends the growth, and returns by how much each counter has grown since the first answer.
func (b *bodies) grown(targets []*target.Target) map[string]int64 {
	known := map[string]map[string]int64{}
	sums := func(set int, path string, n int) map[string]int64 {
		key := fmt.Sprint(set, path, n)
		if known[key] == nil {
			s, err := pprof.QuickSums(b.get(set, path, n))
			check(err)
			known[key] = s
		}
		return known[key]
	}
	out := map[string]int64{}
	for i, t := range targets {
		for path, n := range t.Freeze() {
			first := sums(i%sets, path, 1)
			for counter, v := range sums(i%sets, path, n) {
				if counters[counter] && v > first[counter] {
					out[t.Addr()+" "+growing[path]+" "+counter] = v - first[counter]
				}
			}
		}
	}
	return out
}

// ---- the destinations -----------------------------------------------------------------------------

type sink struct {
	name   string
	server *pyroscope.Server

	mu    sync.Mutex
	sums  map[string]int64
	times []time.Time
}

func newSink(name string) *sink {
	s := &sink{name: name, sums: map[string]int64{}}
	var err error
	s.server, err = pyroscope.Start(pyroscope.Options{Cheap: true, Take: s.take})
	check(err)
	return s
}

func (s *sink) take(r pyroscope.Received) {
	var sums map[string]int64
	counts := r.Name() == "memory" || r.Name() == "mutex" || r.Name() == "block"
	if counts {
		var err error
		sums, err = pprof.QuickSums(r.Raw)
		check(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, r.At)
	for counter, v := range sums {
		if counters[counter] {
			s.sums[r.Labels["instance"]+" "+r.Name()+" "+counter] += v
		}
	}
}

// compare counts the sums that are not exact, and the share of the growth that has arrived.
func (s *sink) compare(want map[string]int64) (short, more int, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, got float64
	for key, n := range want {
		all += float64(n)
		got += float64(s.sums[key])
		if s.sums[key] < n {
			short++
		} else if s.sums[key] > n {
			more++
		}
	}
	return short, more, got / all
}

func (s *sink) report(want map[string]int64, back time.Time) {
	short, more, share := s.compare(want)
	fmt.Printf("  %-8s %.4f %% of the growth has arrived; of %d sums %d are short, %d too great\n",
		s.name+":", 100*share, len(want), short, more)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.times {
		if at.After(back) {
			fmt.Printf("  %-8s the first profile came %.2f s after the return\n", s.name+":", at.Sub(back).Seconds())
			break
		}
	}
}

// ---- the program ----------------------------------------------------------------------------------

type program struct {
	wait func() error
	pid  int
	peak int64 // bytes, since start
}

func start(targets []*target.Target, sinks []*sink) *program {
	var text strings.Builder
	fmt.Fprintf(&text, "global: {scrape_interval: %s}\nserver: {listen: %q}\nscrape_configs:\n  - job_name: outage\n    static_configs:\n", *interval, adminAddress)
	fmt.Fprintf(&text, "      - labels: {service_name: outage}\n        targets:\n")
	for _, t := range targets {
		fmt.Fprintf(&text, "          - %q\n", t.Addr())
	}
	text.WriteString("write:\n")
	for _, s := range sinks {
		fmt.Fprintf(&text, "  - {name: %s, url: %q%s}\n", s.name, s.server.URL(), queueKey())
	}
	config := filepath.Join(*dir, "outage.yaml")
	check(os.WriteFile(config, []byte(text.String()), 0o600))
	cmd, err := measure.Command(*pinned, 0, filepath.Join(*dir, "outage.log"), *programPath, "run", "--config", config)
	check(err)
	check(cmd.Start())
	return &program{wait: cmd.Wait, pid: cmd.Process.Pid}
}

func queueKey() string {
	if *queue == "" {
		return ""
	}
	return fmt.Sprintf(", queue: {max_bytes: %s}", *queue)
}

func (p *program) end() {
	_ = syscall.Kill(p.pid, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		log.Printf("the program: %v", err)
	}
}

func (p *program) watch(d time.Duration) { p.watchUntil(d, func() bool { return false }) }

func (p *program) watchUntil(d time.Duration, over func() bool) {
	for end := time.Now().Add(d); time.Now().Before(end) && !over(); time.Sleep(500 * time.Millisecond) {
		if rss := p.status("VmRSS"); rss > p.peak {
			p.peak = rss
		}
	}
}

func (p *program) status(key string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		var n int64
		if strings.HasPrefix(line, key+":") {
			_, err := fmt.Sscan(strings.TrimPrefix(line, key+":"), &n)
			check(err)
			return n << 10
		}
	}
	return 0
}

// line prints what the metrics say of each destination.
func (p *program) line(when string) {
	resp, err := http.Get("http://" + adminAddress + "/metrics")
	check(err)
	defer resp.Body.Close()
	values := map[string]map[string]float64{}
	_, err = measure.Samples(resp.Body, func(sample string, v float64) {
		name, labels, _ := strings.Cut(sample, "{")
		if short := strings.TrimPrefix(name, "profpull_write_"); short != name {
			_, endpoint, _ := strings.Cut(labels, `endpoint="`)
			endpoint, _, _ = strings.Cut(endpoint, `"`)
			if values[endpoint] == nil {
				values[endpoint] = map[string]float64{}
			}
			if _, reason, ok := strings.Cut(labels, `reason="`); ok && v > 0 {
				values[endpoint]["dropped "+strings.TrimSuffix(reason, `"}`)] += v
			}
			values[endpoint][short] += v
		}
	})
	check(err)
	fmt.Printf("%s (resident %d MiB, peak %d MiB, cpu %.1f s)\n", when, p.status("VmRSS")>>20, p.status("VmHWM")>>20, p.cpu())
	for endpoint, v := range values {
		if _, ok := v["accepted_profiles_total"]; !ok {
			continue
		}
		balance := "balances"
		if v["accepted_profiles_total"] != v["sent_profiles_total"]+v["dropped_profiles_total"]+v["merged_profiles_total"]+v["queued_profiles"]+v["in_flight_profiles"] {
			balance = "DOES NOT BALANCE"
		}
		fmt.Printf("  %-8s accepted %.0f, sent %.0f, merged %.0f, refused %.0f, queued %.0f (%.1f MiB), %s", endpoint+":", v["accepted_profiles_total"],
			v["sent_profiles_total"], v["merged_profiles_total"], v["refused_profiles_total"], v["queued_profiles"], v["queued_bytes"]/(1<<20), balance)
		for name, n := range v {
			if strings.HasPrefix(name, "dropped ") {
				fmt.Printf(", %s %.0f", name, n)
			}
		}
		fmt.Println()
	}
}

func (p *program) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	check(err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system float64
	_, err = fmt.Sscan(fields[11], &user)
	check(err)
	_, err = fmt.Sscan(fields[12], &system)
	check(err)
	return (user + system) / 100
}
