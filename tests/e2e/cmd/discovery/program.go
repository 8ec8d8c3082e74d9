package main

import (
	"fmt"
	"log"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
)

// program is profpull under test.
type program struct {
	cmd   *exec.Cmd
	admin string
	log   string
}

const configText = `global: {scrape_interval: %[1]s}
server: {listen: "%[2]s"}
scrape_configs:
  - job_name: pods
    allow_special_address: true
    profiles: {block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: {enabled: false}, memory: {delta: off}}
    kubernetes_sd_configs:
      - {role: pod, api_server: "%[3]s"}
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_phase], regex: Pending|Succeeded|Failed, action: drop}
      - {source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_memory_scrape], regex: "true", action: keep}
      - {source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_memory_port], target_label: __tmp_wanted}
      - {source_labels: [__meta_kubernetes_pod_container_port_number], target_label: __tmp_wanted, action: keepequal}
      - {regex: __meta_kubernetes_pod_label_(.+), action: labelmap}
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {source_labels: [__meta_kubernetes_pod_container_name], target_label: container}
write:
  - {name: main, url: "%[4]s"}
`

// startProgram runs profpull on one core, against an API server, with an interval between scrapes and
// more lines of configuration.
func startProgram(server, sink string, interval time.Duration, more string) *program {
	p := &program{admin: fmt.Sprintf("127.0.0.1:%d", freePort()), log: filepath.Join(*dir, "profpull.log")}
	file := filepath.Join(*dir, "discovery.yaml")
	measure.Check(os.WriteFile(file, []byte(fmt.Sprintf(configText, interval, p.admin, server, sink)+more), 0o600))
	name, args := *programPath, []string{"run", "--config", file}
	if *wrapper != "" {
		args = append(append(strings.Fields(*wrapper)[1:], name), args...)
		name = strings.Fields(*wrapper)[0]
	}
	var err error
	p.cmd, err = measure.Command(*pinned, 0, p.log, name, args...)
	measure.Check(err)
	measure.Check(p.cmd.Start())
	return p
}

func (p *program) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		log.Printf("profpull: %v\n%s", err, measure.Tail(p.log))
	}
}

// cpu is the seconds that all threads that are alive have run, to the nanosecond, except the admin
// server, which works for this program only.
func (p *program) cpu() float64 {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	measure.Check(err)
	sum := 0.0
	for _, file := range files {
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		text, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(name)) == "admin" {
			continue // the thread has ended, or does not count
		}
		ns, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		measure.Check(err)
		sum += ns / 1e9
	}
	return sum
}

// status is a field of /proc/PID/status in bytes: VmRSS, or VmHWM for the peak.
func (p *program) status(field string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	measure.Check(err)
	_, rest, found := strings.Cut(string(text), field+":")
	if !found {
		log.Fatalf("no %s in /proc/PID/status", field)
	}
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	measure.Check(err)
	return kib * 1024
}

// resetPeak makes VmHWM begin again from what is resident now.
func (p *program) resetPeak() {
	measure.Check(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0))
}

type metrics map[string]float64

// metrics returns the samples of /metrics by name and labels; nil while there is no answer.
func (p *program) metrics() metrics {
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	m := metrics{}
	_, err = measure.Samples(resp.Body, func(name string, value float64) { m[name] = value })
	measure.Check(err)
	return m
}

// sum adds what has the name, and the labels if any are given.
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for key, v := range m {
		ok := key == name || strings.HasPrefix(key, name+"{")
		for _, l := range labels {
			ok = ok && strings.Contains(key, l)
		}
		if ok {
			total += v
		}
	}
	return total
}

// late is the bound of the highest bucket of lateness that was used between two moments, in seconds,
// and the one below which share of the scrapes lie.
func late(before, after metrics, share float64) float64 {
	const name = "profpull_scrape_lateness_seconds_bucket"
	counts := map[float64]float64{}
	total := 0.0
	for key := range after {
		if strings.HasPrefix(key, name) {
			_, rest, _ := strings.Cut(key, `le="`)
			le, err := strconv.ParseFloat(rest[:strings.IndexByte(rest, '"')], 64)
			measure.Check(err)
			counts[le] += after[key] - before[key]
			total = math.Max(total, counts[le])
		}
	}
	bound := math.Inf(1)
	for le, n := range counts {
		if n >= share*total && le < bound {
			bound = le
		}
	}
	return bound
}

func (p *program) wait(what string, done func(m metrics) bool) metrics {
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if m := p.metrics(); m != nil && done(m) {
			return m
		}
		if time.Now().After(deadline) {
			log.Fatalf("waited too long: %s\n%s", what, measure.Tail(p.log))
		}
	}
}
