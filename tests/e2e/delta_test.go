package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// served is a line of what the program notes of each profile that it hands out.
type served struct {
	Path          string
	Start, End    int64
	Before, After struct{ Objects, Bytes, Mutex, Block int64 }
	Body          []byte
}

// totals is what a process counted until the last profile that it handed out: the sums of that
// profile by sample type. Profiles of another path do not count.
func totals(t *testing.T, process []served, path string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for _, s := range process {
		if s.Path != path {
			continue
		}
		p, err := pprof.ParseGzip(s.Body)
		must(t, err)
		for counter, n := range p.Sums() {
			if n > sums[counter] {
				sums[counter] = n
			}
		}
	}
	return sums
}

// counted is what the program did by its own account in the time of an interval: from just before
// the profile at its start to just after the one at its end. False if these are not of one process.
func counted(lines [][]served, path string, from, until int64) (first, last *served) {
	for _, process := range lines {
		first, last = nil, nil
		for i := range process {
			s := &process[i]
			if s.Path == path && s.Start <= from && from <= s.End {
				first = s
			}
			if s.Path == path && s.Start <= until && until <= s.End {
				last = s
			}
		}
		if first != nil && last != nil {
			return first, last
		}
	}
	return nil, nil
}

func readServed(t *testing.T, path string) (lines []served) {
	t.Helper()
	body := readFile(t, path)
	for _, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
		var s served
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			continue // the one that was being written when it was killed
		}
		lines = append(lines, s)
	}
	return lines
}

// checkIntervals compares each delta with what the program did in its interval.
func checkIntervals(t *testing.T, received []pyroscope.Received, lines [][]served, types map[string]string) {
	t.Helper()
	checked := map[string]int{}
	for _, r := range received {
		sums := r.Profile.Sums()
		if sums["alloc_objects"]+sums["contentions"] == 0 {
			continue // gauges only
		}
		until := r.Profile.TimeNanos
		from := until - r.Profile.DurationNanos
		first, last := counted(lines, types[r.Name()], from, until)
		if first == nil {
			t.Errorf("%s from %d to %d is not of one process", r.Name(), from, until)
			continue
		}
		did := map[string]int64{}
		switch r.Name() {
		case "memory":
			did["alloc_objects"] = last.After.Objects - first.Before.Objects
			did["alloc_space"] = last.After.Bytes - first.Before.Bytes
		case "mutex":
			did["contentions"] = last.After.Mutex - first.Before.Mutex
		case "block":
			did["contentions"] = last.After.Block - first.Before.Block
		}
		for counter, n := range did {
			checked[r.Name()+"/"+counter]++
			expect(t, sums[counter] <= n,
				"%s from %d to %d: %d %s, but the program did %d", r.Name(), from, until, sums[counter], counter, n)
		}
	}
	t.Logf("intervals compared with what the program did: %v", checked)
	for _, key := range []string{"memory/alloc_objects", "memory/alloc_space", "mutex/contentions", "block/contentions"} {
		expect(t, checked[key] >= 3, "only %d intervals of %s", checked[key], key)
	}
}

// A Go program under load is killed and started again, three times (E2E_LONG=1: twenty) at the same
// address: no delta has a negative value, none is more than the program did in its interval by its
// own account, and together they are not more than all processes counted, nor next to nothing.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	path := os.Getenv("PROFPULL_LOADGEN")
	if path == "" {
		t.Skip("PROFPULL_LOADGEN names no program")
	}
	address := loop.Host() + ":6060"
	server := newPyroscope(t, pyroscope.Options{})
	restarts := 3
	if os.Getenv("E2E_LONG") == "1" {
		restarts = 20
	}
	dir := t.TempDir()
	processes := 0
	notes := func(i int) string { return filepath.Join(dir, fmt.Sprint("counts-", i)) }
	launch := func() *exec.Cmd {
		// Each allocation is recorded, so that the profile counts what the program counts.
		cmd := exec.Command(path, "-listen", address, "-busy", "0.3", "-memprofilerate", "1",
			"-counts", notes(processes))
		processes++
		must(t, cmd.Start())
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
	types := map[string]string{"memory": "heap", "mutex": "mutex", "block": "block"}
	counters := []string{"alloc_objects", "alloc_space", "contentions", "delay"}
	cmd := launch()
	// Without a collection Go's heap profile lags; /allocs does not know gc=1.
	p := run(t, scraping(jobAt("loadgen", "scrape_interval: 500ms, profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}, "+
		`memory: {path: /debug/pprof/heap, params: {gc: "1"}}}`, address), to(server)))
	for round := 0; round <= restarts; round++ {
		before := p.metrics().sum("profpull_delta_total", "result", "delta")
		reaches(t, "some deltas of each type", float64(9+3*(round%4)),
			func() float64 { return p.metrics().sum("profpull_delta_total", "result", "delta") - before })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if round < restarts {
			cmd = launch()
		}
	}
	p.waitSent("main")
	var lines [][]served
	all := map[string]int64{} // name/counter -> what all processes counted
	largest := map[string]int64{}
	for i := 0; i < processes; i++ {
		lines = append(lines, readServed(t, notes(i)))
		for name, path := range types {
			sums := totals(t, lines[i], path)
			for _, counter := range counters {
				key := name + "/" + counter
				all[key] += sums[counter]
				if sums[counter] > largest[key] {
					largest[key] = sums[counter]
				}
			}
		}
	}
	sent := map[string]int64{}
	for _, r := range server.Profiles() {
		expect(t, r.Labels["__delta__"] == "false", "%s has the labels %v", r.Name(), r.Labels)
		expect(t, !r.Profile.Negative, "a negative value in %s of %v", r.Name(), r.At)
		for _, counter := range counters {
			key := r.Name() + "/" + counter
			n := r.Profile.Sums()[counter]
			sent[key] += n
			expect(t, n <= largest[key], "%d %s in one interval; no process counted more than %d", n, key, largest[key])
		}
	}
	for key, n := range all {
		if n == 0 {
			continue
		}
		t.Logf("%s: %d of %d sent", key, sent[key], n)
		expect(t, sent[key] <= n && sent[key] >= n/10, "%s: %d sent, %d counted", key, sent[key], n)
	}
	m := p.metrics()
	checkIntervals(t, server.Profiles(), lines, types)
	atLeast(t, "restarts seen", m.sum("profpull_delta_total", "result", "rebased"), float64(restarts))
	noneRefused(t, server)
}
