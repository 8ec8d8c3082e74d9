package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// addresses lists the targets that the program has.
func (p *program) addresses() string {
	p.t.Helper()
	var all []string
	for _, s := range p.scrapes("") {
		all = append(all, s.Labels["instance"])
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

func (p *program) waitAddresses(want ...string) {
	p.t.Helper()
	sort.Strings(want)
	becomes(p.t, "the targets", strings.Join(want, " "), p.addresses)
}

const memoryOnly = `    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, goroutine: {enabled: false}}
`

// A file is read when it is replaced; one that is cut off in the middle keeps its targets.
func TestFilesOfTargets(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	first, second := newTarget(t, target.Options{}), newTarget(t, target.Options{})
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(dir, "temporary")
		must(t, os.WriteFile(temporary, []byte(text), 0o644))
		must(t, os.Rename(temporary, filepath.Join(dir, name)))
	}
	put("a.yaml", "- targets: ['"+first.Addr()+"']\n  labels: {service_name: shop/first}\n")
	p := run(t, `
scrape_configs:
  - job_name: files
    scrape_interval: 1s
`+memoryOnly+`
    file_sd_configs: [{files: ["`+dir+`/*.yaml", "`+dir+`/b.json"], refresh_interval: 1d}]
`+writeTo(server))
	p.waitAddresses(first.Addr())
	waitProfiles(t, server, 1, func(r *pyroscope.Received) bool { return r.Labels["service_name"] == "shop/first" })
	put("b.json", `[{"targets": ["`+second.Addr()+`"]}]`)
	p.waitAddresses(first.Addr(), second.Addr())

	put("a.yaml", "- targets: ['"+first.Addr())
	failed := func() float64 {
		return p.metrics().sum("profpull_discovery_refreshes_total", "kind", "file", "result", "failed")
	}
	p.says("a.yaml")
	got := p.addresses()
	expect(t, strings.Contains(got, first.Addr()), "a broken file took its targets along: %s", got)
	if failed() < 2 { // b.json was missing at first
		t.Errorf("the broken file was not counted")
	}
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	p.waitAddresses(second.Addr())
}

// The list of a URL is asked for again and again; an answer that is none keeps the targets.
func TestListFromURL(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	only := newTarget(t, target.Options{})
	var mu sync.Mutex
	status, kind, body, asked := 200, "application/json; charset=utf-8", "", 0
	body = `[{"targets": ["` + only.Addr() + `"], "labels": {"service_name": "shop/url"}}]`
	set := func(s int, k, b string) (already int) {
		mu.Lock()
		defer mu.Unlock()
		status, kind, body = s, k, b
		return asked
	}
	sd := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		expect(t, r.Header.Get("X-Prometheus-Refresh-Interval-Seconds") == "1" &&
			r.Header.Get("Authorization") == "Bearer letmein" && r.Header.Get("Accept") == "application/json",
			"unexpected headers: %v", r.Header)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	p := run(t, `
scrape_configs:
  - job_name: urls
    scrape_interval: 1s
`+memoryOnly+`
    http_sd_configs: [{url: "`+sd.URL()+`/list?token=secret", refresh_interval: 1s, bearer_token: letmein}]
`+writeTo(server))
	p.waitAddresses(only.Addr())
	waitProfiles(t, server, 1, func(r *pyroscope.Received) bool { return r.Labels["service_name"] == "shop/url" })
	for _, bad := range []struct {
		status     int
		kind, body string
	}{
		{500, "application/json", `[]`},
		{200, "text/html", `[]`},
		{200, "application/json", `[{"targets": ["`},
	} {
		already := set(bad.status, bad.kind, bad.body)
		p.wait("two more requests", func() string {
			mu.Lock()
			defer mu.Unlock()
			return unless(asked >= already+2, "none")
		})
		got := p.addresses()
		expect(t, got == only.Addr(), "%d %s %s: the targets are %q", bad.status, bad.kind, bad.body, got)
	}
	set(200, "application/json", `[]`)
	p.waitAddresses()
	p.stop()
	lacks(t, "the log", p.stderr.String(), "secret", "letmein")
}

// discover fails if a list cannot be read, names it, and shows what will not be scraped because another target
// of its job is at the same URL.
func TestDiscoverOfLists(t *testing.T) {
	t.Parallel()
	config := func(more string) string {
		return writeConfig(t, `
scrape_configs:
  - job_name: web
    static_configs: [{targets: ["127.0.0.1:1"]}, {targets: ["127.0.0.1:1"]}]
    profiles: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}}
`+more+"write: [{url: 'http://127.0.0.1:1'}]\n")
	}
	r := expectCall(t, exitDone, `"duplicate_of":"static/0"`, "profpull: 1 scrape is set aside as duplicate", "discover", "--config", config(""))
	expect(t, strings.Count(r.stdout, "duplicate_of") == 1, "both are duplicates:\n%s", r.stdout)
	for list, why := range map[string]string{
		"http_sd_configs: [{url: 'http://127.0.0.1:1/targets?token=hidden'}]": "GET http://127.0.0.1:1/targets?token=...: connection refused",
		"file_sd_configs: [{files: [/no/such/targets.json]}]":                 "/no/such/targets.json: ",
	} {
		r := expectCall(t, exitPeer, `"job":"web"`, `profpull: not everything could be read: job "web": `+why, "discover", "--config", config("    "+list+"\n"))
		expect(t, !strings.Contains(r.stderr, "hidden"), "a secret: %s", r.stderr)
	}
}
