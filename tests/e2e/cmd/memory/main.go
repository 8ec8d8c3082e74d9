// Command memory runs profpull in a control group with little memory, against many programs with
// large heaps and a few pods that serve the largest profiles that are accepted. It prints what became
// of the process, of the good programs and of the others; it never fails on a figure.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/cgroup"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

var (
	programPath = flag.String("program", "", "profpull")
	dir         = flag.String("dir", "", "for files")
	nGood       = flag.Int("targets", 2000, "programs with a heap of -functions stacks")
	functions   = flag.Int("functions", 4000, "stacks of the heap of each")
	nBad        = flag.Int("pods", 8, "pods with the largest profiles that are accepted")
	limitMiB    = flag.Int("limit", 256, "memory of the group, in MiB; 0: no group")
	budgetMiB   = flag.Int("budget", 0, "global.memory_limit in MiB, where there are no groups; 0: not set")
	duration    = flag.Duration("time", time.Minute, "how long")
	interval    = flag.Duration("interval", 15*time.Second, "of the good programs")
	plain       = flag.Bool("plain", false, "heaps of the good programs are as large on the wire as inflated")
	sinkDown    = flag.Bool("sink-down", false, "the destination refuses connections")
)

// ---- the fakes ---------------------------------------------------------------------------------

// largeHeaps is a heap for each good program, of a few that differ.
func largeHeaps() []map[string][]byte {
	var all []map[string][]byte
	for i := 0; i < 4; i++ {
		heap := pprof.Make("heap", pprof.Options{Functions: *functions + i})
		body := pprof.Gzip(heap)
		if *plain {
			body = stored(heap)
		}
		all = append(all, map[string][]byte{"/debug/pprof/allocs": body})
		fmt.Printf("heap %d: %d bytes, %d on the wire\n", i, len(heap), len(body))
	}
	return all
}

// largest are profiles close to the limits: of a body (16 MiB) and of what a delta inflates (32 MiB).
func largest() map[string][]byte {
	heap := pprof.Make("heap", pprof.Options{Functions: 190000})
	contention := pprof.Make("contention", pprof.Options{Functions: 200000})
	goroutines := pprof.Make("goroutine", pprof.Options{Functions: 90000})
	fmt.Printf("largest profiles: heap %d bytes, contention %d, goroutine %d (plain)\n", len(heap), len(contention), len(goroutines))
	return map[string][]byte{
		"/debug/pprof/allocs":    pprof.Gzip(heap),
		"/debug/pprof/mutex":     pprof.Gzip(contention),
		"/debug/pprof/block":     pprof.Gzip(contention),
		"/debug/pprof/goroutine": stored(goroutines),
		"/debug/pprof/profile":   stored(goroutines),
	}
}

func start(n int, bodies []map[string][]byte) []*target.Target {
	var all []*target.Target
	for i := 0; i < n; i++ {
		t, err := target.Start(target.Options{Quiet: true, Functions: 3, Bodies: bodies[i%len(bodies)]})
		measure.Check(err)
		all = append(all, t)
	}
	return all
}

func list(targets []*target.Target) string {
	var out []string
	for _, t := range targets {
		out = append(out, `"`+t.Addr()+`"`)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// ---- profpull ----------------------------------------------------------------------------------

const configText = `global: {scrape_interval: %[1]s%[5]s}
server: {listen: "127.0.0.1:0"}
scrape_configs:
  - job_name: good
    profiles: {block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: {enabled: false}}
    static_configs: [{targets: %[2]s}]
  - job_name: bad
    scrape_interval: 5s
    scrape_timeout: 5s
    profiles: {process_cpu: {seconds: 1s}}
    static_configs: [{targets: %[3]s}]
write:
  - {name: main, url: "%[4]s"}
`

type process struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

// run starts profpull in the group: a shell joins it and becomes the program.
func run(g *cgroup.Group, config string) *process {
	p := &process{log: filepath.Join(*dir, "memory.log"), done: make(chan error, 1)}
	script := `exec "$0" run --config "$1"`
	if g != nil {
		script = `echo $$ > "$2/cgroup.procs" && ` + script
	}
	at := ""
	if g != nil {
		at = g.Dir
	}
	var err error
	p.cmd, err = measure.Command(false, 0, p.log, "/bin/sh", "-c", script, *programPath, config, at)
	measure.Check(err)
	measure.Check(p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	return p
}

// admin is the address of the admin server, from the log.
func (p *process) admin() string {
	for i := 0; i < 200; i++ {
		text, _ := os.ReadFile(p.log)
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "admin server listens") {
				_, rest, _ := strings.Cut(line, "port=")
				return "127.0.0.1:" + strings.Fields(rest)[0]
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	log.Fatalf("profpull does not start:\n%s", measure.Tail(p.log))
	return ""
}

func metrics(admin string) map[string]float64 {
	m := map[string]float64{}
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	_, _ = measure.Samples(resp.Body, func(name string, value float64) { m[name] = value })
	return m
}

// shown are the families that are printed, as far as they are not zero.
var shown = []string{"profpull_scrapes_total", "profpull_scrape_failures_total", "profpull_delta_total", "profpull_work_",
	"profpull_write_sent", "profpull_write_dropped", "profpull_write_queued_bytes", "profpull_memory_", "process_resident"}

func print(m map[string]float64) {
	var names []string
	for name, value := range m {
		for _, family := range shown {
			if value != 0 && strings.HasPrefix(name, family) {
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("  %-75s %.0f\n", name, m[name])
	}
}

// watch keeps the last metrics until the time is up or the program ends.
func (p *process) watch(admin string) (map[string]float64, time.Duration, bool) {
	begin := time.Now()
	var last map[string]float64
	most := 0.0
	for time.Since(begin) < *duration {
		select {
		case err := <-p.done:
			fmt.Printf("profpull ended after %.0f s: %v\n", time.Since(begin).Seconds(), err)
			return last, time.Since(begin), false
		case <-time.After(500 * time.Millisecond):
		}
		if m := metrics(admin); len(m) > 0 {
			last = m
			if rss := m["process_resident_memory_bytes"]; rss > most {
				most = rss
			}
		}
	}
	fmt.Printf("profpull lives after %.0f s; most resident memory seen %.1f MiB\n", time.Since(begin).Seconds(), most/(1<<20))
	return last, time.Since(begin), true
}

func main() {
	flag.Parse()
	var g *cgroup.Group
	if *limitMiB > 0 {
		var err error
		if g, err = cgroup.New(*limitMiB << 20); err != nil {
			fmt.Printf("no control group (%v): without a limit\n", err)
			g = nil
		}
	}
	bad := []map[string][]byte{nil}
	if *nBad > 0 {
		bad[0] = largest()
	}
	good, pods := start(*nGood, largeHeaps()), start(*nBad, bad)
	sink, err := pyroscope.Start(pyroscope.Options{Cheap: true})
	measure.Check(err)
	url := sink.URL()
	if *sinkDown {
		url = "http://127.0.0.1:1"
	}
	config := filepath.Join(*dir, "memory.yaml")
	budget := ""
	if *budgetMiB > 0 {
		budget = fmt.Sprintf(", memory_limit: %dMiB", *budgetMiB)
	}
	measure.Check(os.WriteFile(config, []byte(fmt.Sprintf(configText, *interval, list(good), list(pods), url, budget)), 0o600))
	p := run(g, config)
	m, took, alive := p.watch(p.admin())
	print(m)
	due := float64(*nGood) * took.Seconds() / interval.Seconds()
	fmt.Printf("good scrapes: %.0f of about %.0f due succeeded\n", m[`profpull_scrapes_total{job="good",type="memory",result="ok"}`], due)
	if alive {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.done
	}
	if g != nil {
		fmt.Println("group:", g.Figures())
		g.Remove()
	}
}

// stored is a gzip without compression: a body that is as large on the wire as it is plain.
func stored(plain []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	measure.Check(err)
	_, _ = w.Write(plain)
	measure.Check(w.Close())
	return out.Bytes()
}
