// Command faults runs the program beside good targets and bad ones, and prints what the bad ones do to
// the good ones. scripts/faults builds and calls it. It judges nothing.
//
//	faults -bad silent -bad-targets 1500 -interval 12s -time 10m
//
// The good targets and the sink are a process of their own; the bad ones are in this one.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/hostile"
	"profpull.test/e2e/fakes/loop"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	fakesPath   = flag.String("fakes", "build/fakes", "the built program of cmd/fakes")
	kind        = flag.String("bad", "silent", "what the bad targets do: a kind of fakes/hostile")
	nBad        = flag.Int("bad-targets", 1500, "bad targets, of one type each")
	nGood       = flag.Int("targets", 60, "good targets, of one type each")
	interval    = flag.Duration("interval", 12*time.Second, "scrape interval")
	timeout     = flag.Duration("timeout", 10*time.Second, "scrape timeout: a request may last so long")
	seconds     = flag.Duration("time", 10*time.Minute, "how long to measure, after one interval to warm up")
	badKeys     = flag.String("bad-job", "", "further keys of the bad targets' job, as YAML: \"scheme: https\"")
	dir         = flag.String("dir", "", "directory for configuration and logs")
)

// A connection that is open for longer than this beyond its deadline is a late one.
const late = time.Second

// Addresses of this run alone.
var adminAddress, sinkAddress = loop.Host() + ":4041", loop.Host() + ":4040"

func main() {
	measure.Begin("faults")
	fakes := launch("fakes", *fakesPath, "-targets", fmt.Sprint(*nGood), "-sizes", "small", "-sink", sinkAddress, "-cheap")
	defer fakes.end()
	bad := startBad()
	p := launch("profpull", *programPath, "run", "--config", writeConfig(fakes.targets(), bad))
	defer p.end()
	waitReady()

	time.Sleep(*interval + *interval/3)
	before := take(p)
	time.Sleep(*seconds)
	report(before, take(p), bad)
}

// ---- processes ----------------------------------------------------------------------------------

type process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

func launch(name, path string, args ...string) *process {
	cmd, err := measure.Command(false, 0, filepath.Join(*dir, name+".log"), path, args...)
	measure.Check(err)
	out, err := cmd.StdoutPipe()
	measure.Check(err)
	measure.Check(cmd.Start())
	return &process{cmd: cmd, stdout: bufio.NewReader(out)}
}

func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, p.stdout)
	if err := p.cmd.Wait(); err != nil {
		log.Printf("%s: %v", p.cmd.Args, err)
	}
}

// targets reads the first line of the fakes.
func (p *process) targets() []string {
	var hello struct{ Targets []string }
	line, err := p.stdout.ReadBytes('\n')
	measure.Check(err)
	measure.Check(json.Unmarshal(line, &hello))
	return hello.Targets
}

func startBad() []*hostile.Peer {
	var all []*hostile.Peer
	for i := 0; i < *nBad; i++ {
		peer, err := hostile.Start(hostile.Kind(*kind))
		measure.Check(err)
		all = append(all, peer)
	}
	return all
}

func writeConfig(good []string, bad []*hostile.Peer) string {
	var addresses []string
	for _, peer := range bad {
		addresses = append(addresses, peer.Addr())
	}
	text := fmt.Sprintf(`global: {scrape_interval: %s, scrape_timeout: %s}
server: {listen: "%s"}
scrape_configs:
%s%swrite:
  - {name: main, url: "http://%s"}
`, *interval, *timeout, adminAddress, job("good", good, ""), job("bad", addresses, *badKeys), sinkAddress)
	file := filepath.Join(*dir, "faults.yaml")
	measure.Check(os.WriteFile(file, []byte(text), 0o600))
	return file
}

func job(name string, targets []string, keys string) string {
	for _, key := range strings.Split(keys, ";") {
		if key = strings.TrimSpace(key); key != "" {
			name += "\n    " + key
		}
	}
	service, _, _ := strings.Cut(name, "\n")
	return fmt.Sprintf(`  - job_name: %s
    profiles: {memory: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, process_cpu: {enabled: false}}
    static_configs: [{targets: ["%s"], labels: {service_name: %s}}]
`, name, strings.Join(targets, `", "`), service)
}

func waitReady() {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + adminAddress + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			log.Fatalf("the program is not ready: %v\n%s", err, measure.Tail(filepath.Join(*dir, "profpull.log")))
		}
	}
}

// ---- figures ------------------------------------------------------------------------------------

type sample struct {
	at      time.Time
	cpu     time.Duration
	scrapes map[string]float64 // by job and result, "good ok"
	overdue float64
	flying  float64
}

func take(p *process) sample {
	s := sample{at: time.Now(), scrapes: map[string]float64{}}
	resp, err := http.Get("http://" + adminAddress + "/metrics")
	measure.Check(err)
	defer resp.Body.Close()
	_, err = measure.Samples(resp.Body, func(text string, value float64) {
		name, labels, _ := strings.Cut(text, "{")
		switch {
		case name == "profpull_scrapes_total":
			s.scrapes[label(labels, "job")+" "+label(labels, "result")] += value
		case name == "profpull_http_overdue_total":
			s.overdue += value
		case name == "profpull_http_in_flight" && label(labels, "client") == "scrape":
			s.flying = value
		case name == "process_cpu_seconds_total":
			s.cpu = time.Duration(value * float64(time.Second))
		}
	})
	measure.Check(err)
	return s
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func report(before, after sample, bad []*hostile.Peer) {
	grown := func(key string) float64 { return after.scrapes[key] - before.scrapes[key] }
	line := func(name, format string, args ...any) {
		fmt.Printf("  %-44s %s\n", name, fmt.Sprintf(format, args...))
	}
	elapsed := after.at.Sub(before.at)
	due := float64(*nGood) * float64(elapsed) / float64(*interval)
	var connections, slow int
	var longest time.Duration
	for _, peer := range bad {
		for _, life := range peer.Lives() {
			connections++
			if life > *timeout+late {
				slow++
			}
			if life > longest {
				longest = life
			}
		}
	}
	fmt.Printf("%d good targets and %d of kind %s, every %s, timeout %s, measured for %.0f s\n", *nGood, *nBad, *kind, *interval, *timeout, elapsed.Seconds())
	line("good: scrapes, due", "%.0f, %.0f", grown("good ok"), due)
	line("good: failed, skipped ticks", "%.0f, %.0f", grown("good failed"), grown("good skipped"))
	line("bad: failed, skipped ticks", "%.0f, %.0f", grown("bad failed"), grown("bad skipped"))
	line("bad: connections, over 1 s late, longest", "%d, %d, %.2f s", connections, slow, longest.Seconds())
	line("profpull_http_overdue_total, in flight", "%.0f, %.0f", after.overdue, after.flying)
	line("CPU of profpull", "%.2f s", (after.cpu - before.cpu).Seconds())
}
