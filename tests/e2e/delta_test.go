package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// totals is what a program has counted so far: the sums of a profile by sample type.
func totals(t *testing.T, url string) map[string]int64 {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pprof.ParseGzip(body)
	if err != nil {
		t.Fatal(err)
	}
	return p.Sums()
}

// A Go program under load is killed and started again, several times at the same address: no delta
// has a negative value, none is more than its process had counted at all, and together they are
// not more than all processes counted, nor next to nothing.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	bin(t)
	path := os.Getenv("PROFPULL_LOADGEN")
	if path == "" {
		t.Skip("PROFPULL_LOADGEN names no program")
	}
	address := loop.Host() + ":6060"
	server := newPyroscope(t, pyroscope.Options{})
	launch := func() *exec.Cmd {
		cmd := exec.Command(path, "-listen", address, "-busy", "0.3")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait(t, "the program", func() string {
			resp, err := http.Get("http://" + address + "/debug/pprof/cmdline")
			if err != nil {
				return err.Error()
			}
			resp.Body.Close()
			return ""
		})
		return cmd
	}
	types := map[string]string{"memory": "allocs", "mutex": "mutex", "block": "block"}
	counters := []string{"alloc_objects", "alloc_space", "contentions", "delay"}
	cmd := launch()
	p := run(t, `
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: restarts
    profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}}
    static_configs:
      - {targets: ["`+address+`"], labels: {service_name: loadgen}}
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	all := map[string]int64{} // name/counter -> what all processes counted
	largest := map[string]int64{}
	for round := 0; round < 4; round++ {
		before := p.metrics().sum("profpull_delta_total", "result", "delta")
		p.wait("some deltas of each type", func() string {
			n := p.metrics().sum("profpull_delta_total", "result", "delta") - before
			if n < float64(9+3*round) {
				return fmt.Sprint(n)
			}
			return ""
		})
		for name, path := range types {
			sums := totals(t, "http://"+address+"/debug/pprof/"+path)
			for _, counter := range counters {
				key := name + "/" + counter
				all[key] += sums[counter]
				if sums[counter] > largest[key] {
					largest[key] = sums[counter]
				}
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if round < 3 {
			cmd = launch()
		}
	}
	p.wait("the queue to be empty", func() string {
		if l := p.metrics().ledger("main"); l.queued+l.inFlight > 0 {
			return fmt.Sprint(l)
		}
		return ""
	})
	sent := map[string]int64{}
	for _, r := range server.Profiles() {
		if r.Labels["__delta__"] != "false" {
			t.Errorf("%s has the labels %v", r.Name(), r.Labels)
		}
		if r.Profile.Negative {
			t.Errorf("a negative value in %s of %v", r.Name(), r.At)
		}
		for _, counter := range counters {
			key := r.Name() + "/" + counter
			n := r.Profile.Sums()[counter]
			sent[key] += n
			if n > largest[key] {
				t.Errorf("%d %s in one interval; no process counted more than %d", n, key, largest[key])
			}
		}
	}
	for key, n := range all {
		if n == 0 {
			continue
		}
		t.Logf("%s: %d of %d sent", key, sent[key], n)
		if sent[key] > n || sent[key] < n/10 {
			t.Errorf("%s: %d sent, %d counted", key, sent[key], n)
		}
	}
	m := p.metrics()
	if n := m.sum("profpull_delta_total", "result", "rebased"); n < 3 {
		t.Errorf("%v restarts were seen", n)
	}
	noneRefused(t, server)
}
