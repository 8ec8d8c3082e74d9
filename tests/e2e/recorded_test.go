package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

const (
	recordedTargets  = 300
	recordedServices = 7
	recordedFunction = "example.com/shop/heap.(*Cart).step2"
	recordedCPU      = "example.com/shop/cpu.(*Cart).step3"
)

// recordedRules are five rules, two of them for a function; changed is the group of the last one.
func recordedRules(changed string) string {
	return fmt.Sprintf(`
record:
  rules:
    - metric_name: profiles_recorded_alloc
      matchers: ['{__profile_type__="memory:alloc_space:bytes:space:bytes"}']
      group_by: [service_name]
    - metric_name: profiles_recorded_alloc_step2
      matchers: ['{__profile_type__="memory:alloc_space:bytes:space:bytes"}']
      group_by: [service_name]
      function: %q
    - metric_name: profiles_recorded_cpu
      matchers: ['{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"}']
      group_by: [service_name]
      external_labels: {team: shop}
    - metric_name: profiles_recorded_cpu_step3
      matchers: ['{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds", service_name=~"service-[0-3]"}']
      function: %q
    - metric_name: profiles_recorded_delay
      matchers: ['{__profile_type__="mutex:delay:nanoseconds:contentions:count"}', '{service_name!="service-0"}']
      group_by: [%s]
`, recordedFunction, recordedCPU, changed)
}

func recordedConfig(addresses []string, sink, rules, value string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
global: {scrape_interval: 2s}
write: [{name: main, url: %q, queue: {max_bytes: 256MiB}, retry: {min_backoff: 50ms, max_backoff: 200ms}}]
scrape_configs:
  - job_name: recorded
    allow_special_address: true
    profiles: {goroutine: {enabled: false}, block: {enabled: false}}
    profile_relabel_configs: [{target_label: stage, replacement: %s}]
    static_configs:
`, sink, value)
	for i, a := range addresses {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {service_name: service-%d}}\n", a, i%recordedServices)
	}
	return b.String() + rules
}

// functionTotal adds up a column of the samples whose stacks have a function.
func functionTotal(t *testing.T, gz []byte, sampleType, function string) int64 {
	t.Helper()
	plain, err := pprof.Inflate(gz, 64<<20)
	must(t, err)
	var texts []string
	var types []uint64
	names, locations := map[uint64]uint64{}, map[uint64][]uint64{}
	var samples [][2][]uint64
	numbers := func(b []byte, fn func(f pprof.Field)) {
		must(t, pprof.Each(b, func(f pprof.Field) error { fn(f); return nil }))
	}
	numbers(plain, func(f pprof.Field) {
		switch f.Number {
		case 1:
			numbers(f.Bytes, func(g pprof.Field) {
				if g.Number == 1 {
					types = append(types, g.Value)
				}
			})
		case 2:
			var s [2][]uint64
			numbers(f.Bytes, func(g pprof.Field) {
				if g.Number == 1 || g.Number == 2 {
					s[g.Number-1], err = pprof.Ints(s[g.Number-1], g)
				}
			})
			samples = append(samples, s)
		case 4:
			var id uint64
			var lines []uint64
			numbers(f.Bytes, func(g pprof.Field) {
				if g.Number == 1 {
					id = g.Value
				} else if g.Number == 4 {
					numbers(g.Bytes, func(h pprof.Field) {
						if h.Number == 1 {
							lines = append(lines, h.Value)
						}
					})
				}
			})
			locations[id] = lines
		case 5:
			var id, name uint64
			numbers(f.Bytes, func(g pprof.Field) {
				if g.Number == 1 {
					id = g.Value
				} else if g.Number == 2 {
					name = g.Value
				}
			})
			names[id] = name
		case 6:
			texts = append(texts, string(f.Bytes))
		}
	})
	total := int64(0)
	for _, s := range samples {
		found := false
		for _, id := range s[0] {
			for _, fn := range locations[id] {
				found = found || texts[names[fn]] == function
			}
		}
		for i, v := range s[1] {
			if found && texts[types[i]] == sampleType {
				total += int64(v)
			}
		}
	}
	return total
}

// recordedSums are the sums of received profiles that the rules stand for, by name of the metric and
// service, and by the stage of the profile for the rule that changes.
func recordedSums(t *testing.T, all []pyroscope.Received) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for i := range all {
		r := &all[i]
		service := r.Labels["service_name"]
		s := r.Profile.Sums()
		switch r.Name() {
		case "memory":
			sums["profiles_recorded_alloc_bytes_total "+service] += s["alloc_space"]
			sums["profiles_recorded_alloc_step2_bytes_total "+service] += functionTotal(t, r.Raw, "alloc_space", recordedFunction)
		case "process_cpu":
			sums["profiles_recorded_cpu_seconds_total "+service] += s["cpu"]
			if service <= "service-3" {
				sums["profiles_recorded_cpu_step3_seconds_total "] += functionTotal(t, r.Raw, "cpu", recordedCPU)
			}
		case "mutex":
			if service != "service-0" {
				sums["profiles_recorded_delay_seconds_total stage="+r.Labels["stage"]] += s["delay"]
			}
		}
	}
	return sums
}

// recorded reads the page exactly: seconds as nanoseconds.
func (p *program) recorded() map[string]int64 {
	p.t.Helper()
	_, text := p.get("/metrics/recorded")
	sums := map[string]int64{}
	for _, line := range strings.Split(text, "\n") {
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			labels[pair[1]] = pair[2]
		}
		key := m[1] + " " + labels["service_name"]
		if labels["stage"] != "" {
			key = m[1] + " stage=" + labels["stage"]
		}
		value, ok := new(big.Rat).SetString(m[3])
		require(p.t, ok, "not a number: %q", line)
		if strings.Contains(m[1], "_seconds") {
			value.Mul(value, big.NewRat(1e9, 1))
		}
		require(p.t, value.IsInt() && labels["profiles_rule_id"] != "", "%q", line)
		sums[key] += value.Num().Int64()
	}
	return sums
}

func compareRecorded(want, got map[string]int64) string {
	for key, n := range want {
		if got[key] != n {
			return fmt.Sprintf("%s: recorded %d, received %d", key, got[key], n)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			return "nothing received for " + key
		}
	}
	return ""
}

// Three hundred targets whose programs restart, an outage of the destination and reloads: the
// recorded metrics are the sums of the profiles that have arrived, to the unit.
func TestRecordedMetricsAreExact(t *testing.T) {
	t.Parallel()
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	var mu sync.Mutex
	made := map[string][]byte{}
	restarts := 0 // how often all programs were restarted
	body := func(path string, n int) []byte {
		kind := target.Paths[path]
		mu.Lock()
		defer mu.Unlock()
		if kind == "cpu" || kind == "" {
			return nil
		}
		round := n%40 + 1 // every program restarts by itself from time to time
		if restarts > 0 {
			round = n%11 + 1
		}
		key := fmt.Sprint(path, round)
		if made[key] == nil {
			made[key] = pprof.Gzip(pprof.Make(kind, pprof.Options{Functions: 20, Round: round}))
		}
		return made[key]
	}
	many, err := target.StartMany(recordedTargets, func(int) target.Options {
		return target.Options{Functions: 20, Body: body, Quiet: true}
	})
	must(t, err)
	p := run(t, recordedConfig(many.Addrs, server.URL(), recordedRules("stage"), "one"))
	waitProfiles(t, server, 3*recordedTargets, nil)
	server.DownBetweenRequests()
	p.wait("an outage", func() string {
		l := p.metrics().ledger("main")
		return unless(l.queued >= recordedTargets, "%+v", l)
	})
	// Rules for profiles have changed, those of the metrics have not; the programs restart.
	mu.Lock()
	restarts++
	mu.Unlock()
	replaceFile(t, p.config, recordedConfig(many.Addrs, server.URL(), recordedRules("stage"), "two"))
	p.reloaded()
	must(t, server.Up())
	waitProfiles(t, server, 8*recordedTargets, nil)
	// No more profiles: what is queued arrives. The rules stay, and so do their series.
	replaceFile(t, p.config, recordedConfig([]string{"127.0.0.1:1"}, server.URL(), recordedRules("stage"), "two"))
	p.reloaded()
	p.wait("equal sums", func() string {
		if l := p.metrics().ledger("main"); l.queued+l.inFlight > 0 {
			return fmt.Sprintf("%+v", l)
		}
		return compareRecorded(recordedSums(t, server.Profiles()), p.recorded())
	})
	m := p.metrics()
	if l := m.ledger("main"); l.dropped != 0 || l.merged == 0 {
		t.Logf("%+v", l)
	}
	for _, result := range []string{"no_series", "pending", "cumulative", "too_large", "damaged", "memory"} {
		equal(t, "values that are "+result, m.sum("profpull_record_values_total", "result", result), 0)
	}
	got := p.recorded()
	expect(t, len(got) == 3*recordedServices+3, "%d sums: %v", len(got), got)
	_, page := p.get("/metrics/recorded")
	promtool(t, page, "check", "metrics")
	// A rule that has changed begins at 0; all others go on.
	before := p.recorded()
	replaceFile(t, p.config, recordedConfig([]string{"127.0.0.1:1"}, server.URL(), recordedRules("service_name"), "two"))
	p.reloaded()
	for key := range before {
		if strings.Contains(key, "_delay_") {
			delete(before, key)
		}
	}
	equal(t, "the difference to the sums before", compareRecorded(before, p.recorded()), "")
	p.stop()
	noneRefused(t, server)
}

// Profiles that are pushed count as scraped ones do.
func TestRecordedMetricsOfReceivedProfiles(t *testing.T) {
	t.Parallel()
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	receive := loop.Host() + ":4040"
	p := run(t, fmt.Sprintf("write: [{url: %q}]\nreceive: {listen: %q}\n", server.URL(), receive)+recordedRules("stage"))
	for i := 0; i < 5; i++ {
		body := pprof.Gzip(pprof.Make("cpu", pprof.Options{Functions: 9}))
		resp, err := http.Post("http://"+receive+"/ingest?format=pprof&name="+url.QueryEscape("service-1{pod=a}"), "application/octet-stream",
			strings.NewReader(string(body)))
		must(t, err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		require(t, resp.StatusCode == 200, "%s %s", resp.Status, text)
	}
	waitProfiles(t, server, 5, nil)
	p.wait("equal sums", func() string {
		return compareRecorded(recordedSums(t, server.Profiles()), p.recorded())
	})
	p.stop()
}

// A real Prometheus scrapes the page, in the format that it asks for, and has the values.
func TestPrometheusScrapesRecordedMetrics(t *testing.T) {
	t.Parallel()
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	address := startLoadgen(t)
	rules, err := os.ReadFile(monitoring + "recorded-record.yaml")
	must(t, err)
	p := run(t, fmt.Sprintf(`
global: {scrape_interval: 2s}
write: [{url: %q}]
scrape_configs:
  - job_name: load
    static_configs: [{targets: [%q], labels: {service_name: load, namespace: test, version: "1"}}]
`, server.URL(), address)+string(rules))
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: recorded, honor_labels: true, metrics_path: /metrics/recorded, static_configs: [{targets: [%q]}]}
`, absolute(t, monitoring+"recorded-rules.yaml"), strings.TrimPrefix(p.admin, "http://"))
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	prometheus := loop.Host() + ":9090"
	startProgram(t, exec.Command(findProgram(t, "prometheus"), "--web.listen-address="+prometheus,
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data")))
	for _, metric := range []string{"profiles_recorded_cpu_seconds_total", "profiles_recorded_gc_cpu_seconds_total", "profiles_recorded_alloc_bytes_total",
		"profiles_recorded_heap_bytes", "profiles_recorded_goroutines", "rate(profiles_recorded_cpu_seconds_total[1m])"} {
		wait(t, metric, func() string {
			resp, err := http.Get("http://" + prometheus + "/api/v1/query?query=" + url.QueryEscape(metric))
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			var answer struct {
				Data struct {
					Result []struct {
						Metric map[string]string
						Value  [2]any
					}
				}
			}
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
				return err.Error()
			}
			r := answer.Data.Result
			if len(r) != 1 || r[0].Metric["service_name"] != "load" || r[0].Metric["version"] != "1" || r[0].Metric["profiles_rule_id"] == "" {
				return fmt.Sprint(r)
			}
			return unless(r[0].Value[1] != "0" || strings.Contains(metric, "_gc_"), "0")
		})
	}
	resp, err := http.Get("http://" + prometheus + "/api/v1/targets")
	must(t, err)
	defer resp.Body.Close()
	has(t, "the targets of Prometheus", string(bodyOf(t, resp)), `"health":"up"`, `"lastError":""`)
	_, page := p.get("/metrics/recorded")
	promtool(t, page, "check", "metrics")
	p.stop()
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	full, err := filepath.Abs(name)
	must(t, err)
	return full
}

// The alerts on recorded metrics are what Prometheus takes, and fire when they should.
func TestRecordedAlertRules(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", monitoring+"recorded-rules.yaml")
	promtool(t, "", "test", "rules", monitoring+"recorded-rules_test.yaml")
}
