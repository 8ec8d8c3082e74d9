package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/configmap"
	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// replaceFile puts a text in the place of a file, as editors do.
func replaceFile(t *testing.T, file, text string) {
	t.Helper()
	next := file + ".next"
	must(t, os.WriteFile(next, []byte(text), 0o644))
	must(t, os.Rename(next, file))
}

// reload asks for it and returns status and text of the answer.
func (p *program) reload() (int, string) {
	p.t.Helper()
	resp, err := http.Post(p.admin+"/-/reload", "", nil)
	must(p.t, err)
	body := bodyOf(p.t, resp)
	return resp.StatusCode, string(body)
}

// reloaded asks for it, which must succeed with these parts in the answer.
func (p *program) reloaded(parts ...string) {
	p.t.Helper()
	status, text := p.reload()
	require(p.t, status == http.StatusOK, "%d %s", status, text)
	has(p.t, "the answer to the reload", text, parts...)
}

const reloadJobs = 10

// reloadConfig has a job for each pod of a cluster, with a watch of its own; one of them sets a label.
func reloadConfig(kubeconfig, sink string, changed int, value string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "write:\n  - {name: main, url: %q}\nscrape_configs:\n", sink)
	for i := 0; i < reloadJobs; i++ {
		label := ""
		if i == changed {
			label = fmt.Sprintf("{target_label: version, replacement: %q}", value)
		}
		fmt.Fprintf(&b, `  - job_name: job-%d
    allow_special_address: true
    scrape_interval: 1s
    profiles:
      process_cpu: {enabled: false}
      mutex: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
    kubernetes_sd_configs:
      - role: pod
        kubeconfig_file: %q
        selectors: [{role: pod, label: app=pod-%d}]
    relabel_configs: [%s]
`, i, kubeconfig, i, label)
	}
	return b.String()
}

// A configuration in which one job of ten is another one: its source is listed again, once, and
// its target keeps what is known of it; nothing else is touched.
func TestReloadOfOneJob(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	for i := 0; i < reloadJobs; i++ {
		tg := newTarget(t, target.Options{})
		cluster.Put(kube.Annotated(fmt.Sprintf("pod-%d", i), tg.Addr()))
	}
	p := run(t, reloadConfig(kubeconfig, server.URL(), -1, ""))
	allScraped := func(least map[string]int64) func() string {
		return func() string {
			n := 0
			for _, s := range p.scrapes("") {
				if s.Successes > least[s.Job] {
					n++
				}
			}
			return unless(n == reloadJobs, "%d of %d", n, reloadJobs)
		}
	}
	p.wait("a scrape of each job", allScraped(nil))
	const interval = time.Second
	before, due, successes := p.metrics(), phases(p, interval), map[string]int64{}
	for _, s := range p.scrapes("") {
		successes[s.Job] = s.Successes
	}
	lists := cluster.Stats().Lists
	groups := before.sum("profpull_relabel_targets_total")

	replaceFile(t, p.config, reloadConfig(kubeconfig, server.URL(), 5, "two"))
	p.wait("the new label", func() string {
		for _, s := range p.scrapes("") {
			require(t, s.Successes >= successes[s.Job],
				"%s: %d scrapes are known of %d", s.Job, s.Successes, successes[s.Job])
			if s.Labels["version"] == "two" && s.Job == "job-5" {
				return ""
			}
		}
		return "no scrape has it"
	})
	samePhases(t, due, phases(p, interval), interval)
	p.wait("another scrape of each job", allScraped(successes))
	stats := cluster.Stats()
	if stats.Lists != lists+1 || !strings.Contains(stats.Queries[len(stats.Queries)-1], "pod-5") {
		t.Errorf("%d lists before, %d after; the last query: %s", lists, stats.Lists,
			stats.Queries[len(stats.Queries)-1])
	}
	m := p.metrics()
	equal(t, "label sets relabelled", m.sum("profpull_relabel_targets_total"), groups+1)
	for _, same := range [][]string{
		{"profpull_http_connections_total", "client", "scrape", "kind", "new"},
		{"profpull_delta_total", "result", "first"},
	} {
		was, is := before.sum(same[0], same[1:]...), m.sum(same[0], same[1:]...)
		expect(t, was == is && was != 0, "%v: %v, expected %v", same, is, was)
	}
	for _, s := range p.scrapes("") {
		expect(t, s.Failures == 0, "%s: %d failures", s.Job, s.Failures)
	}
	equal(t, "reloads", m.sum("profpull_config_reloads_total", "result", "success"), 1)

	// A job without its source loses its target, and only it. What is gone has no metrics.
	text := reloadConfig(kubeconfig, server.URL(), 5, "two")
	replaceFile(t, p.config, strings.Replace(text, "job_name: job-3\n",
		"job_name: other\n    scrape_timeout: 9s\n", 1))
	p.wait("another name", func() string {
		var jobs []string
		for _, s := range p.scrapes("") {
			jobs = append(jobs, s.Job)
		}
		all := strings.Join(jobs, " ")
		return unless(len(jobs) == reloadJobs && strings.Contains(all, "other") && !strings.Contains(all, "job-3"), "%s", all)
	})
	warning := `msg="warning in the configuration" warning="` + p.config + ":"
	p.wait("the end of the change", func() string {
		for _, s := range p.metrics() {
			if s.labels["job"] == "job-3" {
				return fmt.Sprintf("%s%v is there after the job has gone", s.name, s.labels)
			}
		}
		return missingIn(p.stderr.String(), warning)
	})
	equal(t, "lists", cluster.Stats().Lists, lists+2)
}

// growingHeap serves a heap profile whose counters grow with each answer, and notes how many there were.
type growingHeap struct{ answers int64 }

func (g *growingHeap) body(path string, n int) []byte {
	if path != "/debug/pprof/allocs" {
		return nil
	}
	atomic.StoreInt64(&g.answers, int64(n))
	return pprof.Gzip(pprof.Make("heap", pprof.Options{Round: n}))
}

// phases returns where in its interval each scrape of the jobs is due.
func phases(p *program, interval time.Duration) map[string]time.Duration {
	found := map[string]time.Duration{}
	for _, s := range p.scrapes("") {
		if s.NextDue != nil {
			found[s.URL] = time.Duration(s.NextDue.UnixNano()) % interval
		}
	}
	return found
}

// samePhases compares what phases has returned.
func samePhases(t *testing.T, before, after map[string]time.Duration, interval time.Duration) {
	t.Helper()
	for url, phase := range before {
		moved := (after[url] - phase + interval) % interval
		_, there := after[url]
		expect(t, there && (moved <= interval/10 || moved >= interval-interval/10),
			"%s was due at %v of its interval, and is at %v", url, phase, after[url])
	}
}

// Many configurations in a row, good and bad ones by turns: targets that are not concerned keep
// their phase and what is known of them, no profile and no delta is lost, and no memory.
func TestManyReloads(t *testing.T) {
	t.Parallel()
	bin(t)
	const interval = time.Second
	server := newPyroscope(t, pyroscope.Options{})
	var steady growingHeap
	kept := newTarget(t, target.Options{Body: steady.body})
	other := newTarget(t, target.Options{})
	config := func(version int, more string) string {
		return fmt.Sprintf(`
global: {scrape_interval: 1s}
write: [{name: main, url: %q}]
scrape_configs:
  - job_name: kept
    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, goroutine: {enabled: false}}
    static_configs: [{targets: [%q]}]
  - job_name: changes
    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}
    static_configs: [{targets: [%q], labels: {version: "%d"}}]
%s`, server.URL(), kept.Addr(), other.Addr(), version, more)
	}
	// The volume of a ConfigMap, which each change swaps.
	volume, name := t.TempDir(), "profpull.yaml"
	writeVolume(t, volume, "0", name, config(0, ""))
	p := startFile(t, nil, filepath.Join(volume, name), "--config.no-watch")
	p.waitUp()
	p.wait("a profile of each", func() string {
		for _, s := range p.scrapes("") {
			if s.Successes == 0 {
				return s.URL
			}
		}
		return ""
	})
	before := phases(p, interval)
	const rounds, warm = 300, 100
	var rss int64
	var n [2]int // good and bad ones
	const answers = 4
	for i := 1; i <= rounds || atomic.LoadInt64(&steady.answers) < answers; i++ {
		n[(i+1)%2]++
		more, want := "", http.StatusOK
		if i%2 == 0 {
			more, want = "unknown_key: 1\n", http.StatusInternalServerError
		}
		writeVolume(t, volume, strconv.Itoa(i), name, config(i, more))
		must(t, configmap.Remove(volume, strconv.Itoa(i-1)))
		status, text := p.reload()
		require(t, status == want && (want == http.StatusOK || strings.Contains(text, "unknown_key")),
			"reload %d: %d %s", i, status, text)
		if i == warm {
			rss = p.rss()
		}
		time.Sleep(5 * time.Millisecond) // about a hundred a second
	}
	grown := p.rss() - rss
	t.Logf("%d reloads; resident memory grew by %d KiB after the first %d", n[0]+n[1], grown/1024, warm)
	expect(t, grown <= 8<<20 || instrumented(t), "resident memory grew by %d bytes", grown)
	samePhases(t, before, phases(p, interval), interval)
	m := p.metrics()
	good, bad := m.sum("profpull_config_reloads_total", "result", "success"), m.sum("profpull_config_reloads_total", "result", "failure")
	expect(t, good == float64(n[0]) && bad == float64(n[1]),
		"%v good and %v bad reloads are counted, expected %v", good, bad, n)
	for _, s := range p.scrapes("") {
		expect(t, s.Failures == 0, "%s: %d failures, the last one: %s", s.URL, s.Failures, s.LastError)
	}
	p.stop()
	l := m.ledger("main")
	expect(t, l.balance() == "", "%s", l.balance())
	checkGrowth(t, server, &steady)
	noneRefused(t, server)
}

// checkGrowth compares the deltas that a server has with what a growing target has counted.
func checkGrowth(t *testing.T, server *pyroscope.Server, g *growingHeap) {
	t.Helper()
	sums := func(n int) int64 {
		p, err := pprof.ParseGzip(pprof.Gzip(pprof.Make("heap", pprof.Options{Round: n})))
		must(t, err)
		return p.Sums()["alloc_objects"]
	}
	got, n := int64(0), 0
	all := server.Profiles()
	for i := range all {
		if all[i].Labels["job"] == "kept" && all[i].Name() == "memory" {
			got += all[i].Profile.Sums()["alloc_objects"]
			n++
		}
	}
	last := int(atomic.LoadInt64(&g.answers))
	want := sums(last) - sums(1)
	t.Logf("%d profiles with %d objects, after %d answers", n, got, last)
	expect(t, got == want, "deltas of %d objects have arrived, the target has counted %d", got, want)
}

// A volume of a ConfigMap gets another version.
func writeVolume(t *testing.T, directory, version, name, text string) {
	t.Helper()
	must(t, configmap.Write(directory, version, name, text))
}

// TestReloadOccasions checks each occasion at which the program reads its configuration again, for each
// kind of configuration.
func TestReloadOccasions(t *testing.T) {
	t.Parallel()
	bin(t)
	yaml := func(job string) string {
		return fmt.Sprintf(`
write: [{name: main, url: "http://127.0.0.1:1"}]
scrape_configs: [{job_name: %s, static_configs: [{targets: ["127.0.0.1:1"]}]}]
`, job)
	}
	alloy := func(job string) string {
		return fmt.Sprintf(`
pyroscope.scrape %q {
  targets    = [{"__address__" = "127.0.0.1:1", "service_name" = "s"}]
  forward_to = [pyroscope.write.main.receiver]
}
pyroscope.write "main" {
  endpoint {
    url = "http://127.0.0.1:1"
  }
}
`, job)
	}
	cases := []struct {
		name, file, bad string
		text            func(job string) string
	}{
		{"yaml", "profpull.yaml", "unknown_key: 1\n", yaml},
		{"alloy", "config.alloy", "pyroscope.scrape \"x\" { }\n", alloy},
		{"alloy directory", "", "pyroscope.scrape \"x\" { }\n", alloy},
	}
	for _, c := range cases {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			file, name := filepath.Join(directory, c.file), c.file
			if name == "" {
				file, name = directory, "config.alloy"
			}
			writeVolume(t, directory, "1", name, c.text("one"))
			p := startFile(t, nil, file)
			p.waitUp()
			hasJob := func(job string) func() string {
				return func() string {
					for _, s := range p.scrapes("") {
						if strings.Contains(s.Job, job) {
							return ""
						}
					}
					return "no scrape of job " + job
				}
			}
			p.wait("the first job", hasJob("one"))
			writeVolume(t, directory, "2", name, c.text("two"))
			p.wait("the second job", hasJob("two"))

			writeVolume(t, directory, "3", name, c.text("three")+c.bad)
			until(t, "the bad configuration", func() bool { return p.metrics().sum("profpull_config_last_reload_successful") == 0 })
			status, text := p.reload()
			expect(t, status == http.StatusInternalServerError && strings.Contains(text, name+":"),
				"a bad configuration: %d %s", status, text)
			reason := hasJob("two")()
			expect(t, reason == "", "%s", reason)

			writeVolume(t, directory, "4", name, c.text("four"))
			must(t, p.cmd.Process.Signal(syscall.SIGHUP))
			p.wait("the fourth job", hasJob("four"))
			until(t, "success", func() bool { return p.metrics().sum("profpull_config_last_reload_successful") == 1 })
			status, text = p.reload()
			expect(t, status == http.StatusOK && strings.Contains(text, "is the same"),
				"the same configuration: %d %s", status, text)
			status, _ = p.get("/-/reload")
			expect(t, status == http.StatusMethodNotAllowed, "GET: %d", status)
		})
	}
}

// The program ends by itself, as after a signal.
func TestRunForSomeTime(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `
server: {listen: ""}
write: [{name: main, url: "http://127.0.0.1:1"}]
scrape_configs: [{job_name: one, static_configs: [{targets: ["127.0.0.1:1"]}]}]
`)
	r := expectCall(t, 0, "*", "*", "run", "--config", file, "--listen", "", "--for", "200ms")
	has(t, "the log", r.stderr, `msg="profpull runs" version=`, "jobs=1 destinations=1", "the time of --for is over", "endpoint summary")
}

// Destinations come, change and go: each profile reaches those that its job has at the time, and
// nothing of a series that both get is lost on the way.
func TestReloadOfDestinations(t *testing.T) {
	t.Parallel()
	one, two := newPyroscope(t, pyroscope.Options{}), newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	config := func(write string) string {
		return fmt.Sprintf(`
global: {scrape_interval: 1s}
write: [%s]
scrape_configs:
  - job_name: kept
    profiles: {process_cpu: {enabled: false}, memory: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}
    static_configs: [{targets: [%q]}]
`, write, tg.Addr())
	}
	first := fmt.Sprintf("{name: one, url: %q}", one.URL())
	second := fmt.Sprintf("{name: two, url: %q, tenant_id: there}", two.URL())
	p := run(t, config(first), "--config.no-watch")
	waitProfiles(t, one, 1, nil)
	load := func(write string) {
		t.Helper()
		replaceFile(t, p.config, config(write))
		status, text := p.reload()
		require(t, status == http.StatusOK, "%d %s", status, text)
	}
	load(first + ", " + second)
	waitProfiles(t, two, 1, func(r *pyroscope.Received) bool { return r.Tenant == "there" })
	load(strings.Replace(second, "there", "here", 1))
	waitProfiles(t, two, 1, func(r *pyroscope.Received) bool { return r.Tenant == "here" })
	load(first)
	n := len(one.Profiles())
	waitProfiles(t, one, n+1, nil)
	p.wait("the end of an endpoint", func() string {
		for _, s := range p.metrics() {
			if s.labels["endpoint"] == "two" {
				return fmt.Sprint(s)
			}
		}
		return ""
	})
	for _, s := range p.scrapes("") {
		expect(t, s.Failures == 0, "%s: %d failures", s.URL, s.Failures)
	}
	noneRefused(t, one)
	noneRefused(t, two)
}
