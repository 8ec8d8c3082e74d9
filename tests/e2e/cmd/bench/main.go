// Command bench runs the program under test against many fake targets and a fake server that counts,
// and prints what that costs. scripts/bench.sh builds and calls it. It judges nothing: times differ
// from machine to machine.
//
// The fakes are a process of their own. With two cores or more the program has the first for itself
// and the fakes the second, so that neither steals the other's time.
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
	"profpull.test/e2e/fakes/loop"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	barePath    = flag.String("bare", "", "the built program of tests/tools/bare_loop.c; empty: no comparison with it")
	peerPath    = flag.String("peer", "", "another agent that reads Alloy's configuration; empty: no comparison with it")
	fakesPath   = flag.String("fakes", "build/fakes", "the built program of cmd/fakes")
	nTargets    = flag.Int("targets", 1000, "targets, each with five types")
	interval    = flag.Duration("interval", 15*time.Second, "scrape interval")
	sampled     = flag.Duration("cpu-seconds", 0, "for how long a CPU profile samples; 0: a second less than the interval, as by default")
	seconds     = flag.Duration("time", time.Minute, "how long to measure, after one interval to warm up")
	dir         = flag.String("dir", "", "directory for configuration and logs")
	pinned      = flag.Bool("pin", true, "give the program and the fakes a core each")
	delta       = flag.String("delta", "off", "deltas of memory, mutex and block: off, or auto, and then their counters grow with each answer")
	fast        = flag.Int("fast", 2000, "profiles a second of a second run; 0: none")
	repair      = flag.Bool("repair", true, "labels within samples are repaired, as by default")
	record      = flag.String("record", "", "five rules of recorded metrics: miss, of which no profile matches any, or match; empty: none")
	smoke       = flag.Bool("smoke", false, "a short run that only shows that all works")
)

// Addresses of this run alone: two runs at a time disturb each other's figures, but still work.
var adminAddress, sinkAddress = loop.Host() + ":4041", loop.Host() + ":4040"

func main() {
	measure.Begin("bench")
	if *smoke {
		*nTargets, *interval, *seconds = 10, 2*time.Second, 2*time.Second
	}
	fakes := startFakes()
	defer fakes.end()
	loads := []load{{*interval, *seconds, 5}}
	if *fast > 0 {
		loads = append(loads, fastest())
	}
	for _, l := range loads {
		profiles := measureProgram(l, fakes)
		if *barePath != "" {
			measureBare(l, fakes, profiles)
		}
		if *peerPath != "" {
			measurePeer(l, fakes, profiles)
		}
	}
}

// load is what is asked of the program.
type load struct {
	interval, time time.Duration
	types          int // of each target
}

// fastest asks for as many profiles a second as -fast says, for half of the time. CPU profiles are left
// out, since they take whole seconds.
func fastest() load {
	l := load{types: 4, time: *seconds / 2}
	l.interval = time.Duration(*nTargets*l.types) * time.Second / time.Duration(*fast)
	return l
}

// measureProgram returns what a profile cost the program.
func measureProgram(l load, fakes *process) cost {
	p := startProgram(fakes.config(l))
	defer p.end()
	waitReady(p)
	l.warmUp()
	before := takeSample(p, fakes)
	time.Sleep(l.time)
	after := takeSample(p, fakes)
	l.report(before, after)
	return cost{after.program - before.program, after.sent - before.sent}
}

// warmUp lasts for the first interval, which fills connections, pools and phases.
func (l load) warmUp() {
	time.Sleep(time.Second + l.interval + l.interval/3)
}

// ---- processes ----------------------------------------------------------------------------------

type process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	hello  struct{ Targets []string }
}

// launch starts a program, on one core if wanted, with its stderr in a file. stdin may be nil.
func launch(core int, stdin io.Reader, name string, args ...string) *process {
	cmd, err := measure.Command(*pinned, core, logName(core), name, args...)
	measure.Check(err)
	cmd.Stdin = stdin
	out, err := cmd.StdoutPipe()
	measure.Check(err)
	measure.Check(cmd.Start())
	return &process{cmd: cmd, stdout: bufio.NewReader(out)}
}

func logName(core int) string {
	return filepath.Join(*dir, fmt.Sprintf("bench-%d.log", core))
}

// failed ends everything, with the last that the process said.
func (p *process) failed(core int, what string, err error) {
	_ = p.cmd.Process.Kill()
	log.Fatalf("%s: %v\n%s", what, err, measure.Tail(logName(core)))
}

func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(p.stdout)
	if err := p.cmd.Wait(); err != nil {
		log.Printf("%s: %v", p.cmd.Args, err)
	}
	if text := strings.TrimSpace(string(rest)); text != "" {
		fmt.Printf("the fakes at the end: %s\n", text)
	}
}

func startFakes() *process {
	p := launch(1, nil, *fakesPath, "-targets", fmt.Sprint(*nTargets), "-sink", sinkAddress, "-cheap", "-shared",
		fmt.Sprintf("-grow=%t", *delta == "auto"))
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		p.failed(1, "the fakes did not start", err)
	}
	measure.Check(json.Unmarshal(line, &p.hello))
	return p
}

func (p *process) config(l load) string {
	var list strings.Builder
	for _, t := range p.hello.Targets {
		fmt.Fprintf(&list, "          - %q\n", t)
	}
	cpu := fmt.Sprintf("enabled: %t", l.types == 5)
	if *sampled > 0 {
		cpu += fmt.Sprintf(", seconds: %s", *sampled)
	}
	text := fmt.Sprintf(`global: {scrape_interval: %[1]s, external_labels: {cluster: bench}}
server: {listen: "%[2]s"}
scrape_configs:
  - job_name: bench
    profiles: {process_cpu: {%[6]s}, memory: {delta: %[5]s}, mutex: {delta: %[5]s}, block: {delta: %[5]s}}
    static_configs:
      - labels: {service_name: bench, namespace: bench, pod: bench-0}
        targets:
%[3]swrite:
  - {name: main, url: "http://%[4]s", sample_labels: {repair: %[7]t}}
%[8]s`, l.interval, adminAddress, list.String(), sinkAddress, *delta, cpu, *repair, recordSection(*record))
	file := filepath.Join(*dir, "bench.yaml")
	measure.Check(os.WriteFile(file, []byte(text), 0o600))
	return file
}

func startProgram(config string) *process {
	return launch(0, nil, *programPath, "run", "--config", config)
}

func waitReady(p *process) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + adminAddress + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			p.failed(0, "the program is not ready", err)
		}
	}
}
