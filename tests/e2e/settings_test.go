package e2e

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"profpull.test/e2e/fakes/pyroscope"
)

const nothingEnabled = `    profiles:
      memory: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
      mutex: {enabled: false}
      process_cpu: {enabled: false}
`

// Labels of a file's entry say which profiles of a real program are fetched, where and how often;
// the job itself would fetch none, and that every hour. A wrong label costs its own type.
func TestSettingsOfOneTarget(t *testing.T) {
	t.Parallel()
	program := startLoadgen(t)
	host, port, _ := net.SplitHostPort(program)
	server := newPyroscope(t, pyroscope.Options{})
	list := filepath.Join(t.TempDir(), "targets.yaml")
	text := `
- targets: ["` + host + `:1"]
  labels:
    service_name: shop/steered
    __profile_heap_enabled__: "true"
    __profile_heap_port__: "` + port + `"
    __profile_heap_interval__: 1s
    __profile_process_cpu_enabled__: "true"
    __profile_process_cpu_port__: "` + port + `"
    __profile_process_cpu_interval__: 2s
    __profile_goroutine_enabled__: "true"
    __profile_goroutine_port__: "` + port + `"
    __profile_goroutine_path__: /debug//pprof/./goroutine
    __profile_goroutine_interval__: 1s
    __profile_mutex_enabled__: "true"
    __profile_mutex_port__: "99999"
- targets: ["` + program + `"]
  labels: {service_name: shop/plain}
`
	must(t, os.WriteFile(list, []byte(text), 0o644))
	config := `
scrape_configs:
  - job_name: files
    scrape_interval: 1h
` + nothingEnabled + `
    file_sd_configs: [{files: ["` + list + `"]}]
    profile_relabel_configs:
      - {action: drop, source_labels: [__name__], regex: goroutine}
      - {target_label: team, source_labels: [__name__, job], separator: "/"}
      - {target_label: __tenant_id__, replacement: perf}
      - {action: labeldrop, regex: instance|__delta__}
` + writeTo(server)
	p := run(t, config)
	of := func(name string) func(*pyroscope.Received) bool {
		return func(r *pyroscope.Received) bool { return r.Name() == name }
	}
	heaps := waitProfiles(t, server, 2, of("memory"))
	cpus := waitProfiles(t, server, 1, of("process_cpu"))
	p.wait("a goroutine profile to be dropped by its rule", func() string {
		return unless(p.metrics().sum("profpull_profile_relabel_total", "job", "files", "outcome", "dropped") > 0,
			"none yet")
	})
	for _, r := range append(heaps, cpus...) {
		want := map[string]string{"service_name": "shop/steered", "job": "files", "team": r.Name() + "/files",
			"__name__": r.Name()}
		if r.Name() == "memory" {
			want["__delta__"] = "false" // not the rules' to take away
		}
		for name, value := range r.Labels {
			expect(t, want[name] == value, "%s arrived with %s=%q", r.Name(), name, value)
			delete(want, name)
		}
		expect(t, len(want) == 0, "%s lacks %v", r.Name(), want)
		expect(t, r.Tenant == "perf", "%s came for the tenant %q", r.Name(), r.Tenant)
	}
	// How long it was is in the URL below: on a busy machine Go ends a profile somewhat sooner or later.
	has(t, "the CPU profile", pprofTop(t, cpus[0].Raw), "Type: cpu")
	for _, part := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/goroutine", "/debug/pprof/heap"} {
		s := p.scrape("http://" + program + part)
		expect(t, s != nil, "no scrape of %s", part)
	}
	equal(t, "scrapes", len(p.scrapes("")), 3)
	for _, r := range server.Profiles() {
		expect(t, r.Name() != "goroutine", "a profile arrived that a rule drops")
	}
	atLeast(t, "counts of the wrong port",
		p.metrics().sum("profpull_target_problems_total", "job", "files", "type", "mutex"), 1)
	const sentence = `label __profile_mutex_port__: expected a port from 1 to 65535, got \"99999\"`
	p.says(sentence)
	noneRefused(t, server)
	p.stop()

	r := expectCall(t, 0, `"problems":["profile type mutex: `+sentence+`"]`, "*", "discover", "--config", p.config)
	has(t, "discover", r.stdout, `/debug/pprof/profile?seconds=1","interval":"2s"}`)
}

// A recording goes byte for byte to where it can be read, and as profiles to where it cannot.
func TestRecordingsPassThrough(t *testing.T) {
	t.Parallel()
	recording := recording(time.Now())
	java := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/jfr" || r.URL.RawQuery != "seconds=1" {
			http.NotFound(w, r)
			return
		}
		w.Write(recording)
	})
	server := newPyroscope(t, pyroscope.Options{})
	dir := t.TempDir()
	p := run(t, `
scrape_configs:
  - job_name: java
    scrape_interval: 2s
`+nothingEnabled+`      custom: [{name: jfr, path: /jfr, format: jfr, sampling: true}]
    static_configs: [{targets: ["`+java.Addr()+`"], labels: {service_name: shop/java}}]
write:
  - {name: old, url: "`+server.URL()+`", protocol: ingest}
  - {name: new, url: "`+server.URL()+`"}
  - {name: disk, url: "file://`+dir+`"}
`)
	waitProfiles(t, server, 2*9, func(r *pyroscope.Received) bool { return r.API == "push" })
	for _, r := range waitProfiles(t, server, 2, func(r *pyroscope.Received) bool { return r.API == "ingest" }) {
		if r.API == "push" {
			expect(t, r.Labels["service_name"] == "shop/java" && r.Labels["jfr_event"] == "wall" && r.Labels["__name__"] != "jfr",
				"%v", r.Labels)
			continue
		}
		expect(t, bytes.Equal(r.Raw, recording), "%d bytes arrived, and not those that were sent", len(r.Raw))
		expect(t, r.API == "ingest" && r.Labels["service_name"] == "shop.java" && r.Query.Get("spyName") == "javaspy",
			"%s %v %v", r.API, r.Labels, r.Query)
	}
	noneRefused(t, server)
	p.waitMetrics("all recordings to be converted", func(m metrics) string {
		return unless(m.sum("profpull_recordings_total", "result", "converted") >= 2 && m.sum("profpull_recordings_pending") == 0,
			"not yet")
	})
	m := p.metrics()
	for _, endpoint := range []string{"old", "new", "disk"} {
		text := m.ledger(endpoint).balance()
		expect(t, text == "", "%s", text)
	}
	p.stop()
	files, _ := filepath.Glob(filepath.Join(dir, "shop_java", "jfr", "*.jfr"))
	require(t, len(files) >= 2, "files: %v", files)
	if stored, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(stored, recording) {
		t.Errorf("%s is not what was sent (%v)", files[0], err)
	}
}
