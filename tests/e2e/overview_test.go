package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

type overviewService struct {
	Service             string
	CPUCores            *float64 `json:"cpuCores"`
	AllocBytesPerSecond *float64
	LiveHeapBytes       *float64
	Goroutines          *float64
	Targets             struct{ Up, Down int }
	Version             string
	VersionBefore       string
	VersionSinceMs      int64
}

// overview reads the rows of /api/v1/overview by service.
func (p *program) overview(query string) map[string]overviewService {
	p.t.Helper()
	status, body := p.get("/api/v1/overview?" + query)
	var answer struct{ Services []overviewService }
	if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil {
		p.t.Fatalf("overview: %d %v %.300s", status, err, body)
	}
	services := map[string]overviewService{}
	for _, s := range answer.Services {
		services[s.Service] = s
	}
	return services
}

func isAbout(got *float64, want, tolerance float64) bool {
	return got != nil && math.Abs(*got-want) <= tolerance*want
}

// pushAt sends a profile with labels by the push API.
func pushAt(t *testing.T, base string, labels map[string]string, profile []byte) {
	t.Helper()
	type pair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var pairs []pair
	for name, value := range labels {
		pairs = append(pairs, pair{name, value})
	}
	body, err := json.Marshal(map[string]any{"series": []any{map[string]any{
		"labels": pairs, "samples": []any{map[string]any{"rawProfile": base64.StdEncoding.EncodeToString(profile)}}}}})
	must(t, err)
	resp, err := http.Post(base+"/push.v1.PusherService/Push", "application/json", bytes.NewReader(body))
	must(t, err)
	resp.Body.Close()
	require(t, resp.StatusCode == 200, "push: %s", resp.Status)
}

// Cores, bytes and counts of profiles whose times and sums are known; the page, and labels to click, in
// a browser.
func TestOverview(t *testing.T) {
	t.Parallel()
	receive := loop.Host() + ":4040"
	p := run(t, `
receive: {listen: "`+receive+`", allow_unauthenticated: true}
scrape_configs:
  - job_name: seen
    static_configs: [{targets: ["127.0.0.1:1"], labels: {service_name: gone}}]
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	// Ten minutes of two pods: ten seconds of CPU every fifteen. In the middle, the version changes.
	const hostile = `<img src=x onerror=alert(1)>`
	long := strings.Repeat("N", 2000)
	end := time.Now().Truncate(time.Minute)
	begin := end.Add(-10 * time.Minute)
	var cpu, inuse, goroutines float64
	for at := begin; at.Before(end); at = at.Add(15 * time.Second) {
		version := "v1"
		if at.Sub(begin) >= 5*time.Minute {
			version = "v2"
		}
		made := map[string][]byte{}
		for _, kind := range []string{"cpu", "heap", "goroutine"} {
			made[kind] = pprof.Make(kind, pprof.Options{Time: at, Duration: 10 * time.Second})
			parsed, err := pprof.Parse(made[kind])
			must(t, err)
			sums := parsed.Sums()
			switch kind {
			case "cpu":
				cpu = float64(sums["cpu"])
			case "heap":
				inuse = float64(sums["inuse_space"])
			default:
				goroutines = float64(sums["goroutine"])
			}
		}
		for _, service := range []string{"cart", hostile, long} {
			for _, pod := range []string{"a", "b"} {
				labels := map[string]string{"service_name": service, "pod": pod, "version": version, "note": hostile}
				for kind, name := range map[string]string{"cpu": "process_cpu", "heap": "memory", "goroutine": "goroutine"} {
					labels["__name__"] = name
					pushAt(t, "http://"+receive, labels, made[kind])
				}
			}
		}
	}
	last := "last=15m&at=" + fmt.Sprint(end.UnixMilli())
	p.wait("the profiles in the overview", func() string {
		s, ok := p.overview(last)["cart"]
		return unless(ok && s.CPUCores != nil && s.VersionBefore != "", "%+v", s)
	})
	cart := p.overview(last)["cart"]
	if want := 2 * cpu / 10e9; !isAbout(cart.CPUCores, want, 1e-6) {
		t.Errorf("%v cores, expected %v", *cart.CPUCores, want)
	}
	expect(t, isAbout(cart.LiveHeapBytes, 2*inuse, 1e-6) && isAbout(cart.Goroutines, 2*goroutines, 1e-6),
		"%v bytes and %v goroutines, expected %v and %v", *cart.LiveHeapBytes, *cart.Goroutines, 2*inuse, 2*goroutines)
	if want := begin.Add(5 * time.Minute).UnixMilli(); cart.Version != "v2" || cart.VersionBefore != "v1" || cart.VersionSinceMs != want {
		t.Errorf("version %q since %d after %q, expected v2 since %d after v1", cart.Version, cart.VersionSinceMs, cart.VersionBefore, want)
	}
	p.wait("the target that is down", func() string {
		gone := p.overview("")["gone"]
		return unless(gone.Targets.Down == 1 && gone.Targets.Up == 0 && gone.CPUCores == nil, "%+v", gone)
	})

	b := newBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1400, 400} {
			b.look(width, 1000, scheme)
			b.open(p.admin+"/?"+last, `document.querySelectorAll("table.overview tbody tr").length === 4`)
			atMost(t, "the width of the page", b.eval("document.documentElement.scrollWidth").(float64), float64(width))
			b.shoot(fmt.Sprintf("overview-%d-%s", width, scheme))
		}
	}
	equal(t, "elements that came from names", b.eval(`document.querySelectorAll("img").length`).(float64), 0)
	// While a page is left, there is no document for a moment.
	const arrived = `document.documentElement !== null && ` + readyPage
	// A click opens the service; its timeline has a unit and the change of version.
	b.look(1400, 1000, "light")
	b.eval(`[...document.querySelectorAll("table.overview th a")].find((a) => a.textContent === "cart").click()`)
	wait(t, "the page of the service", func() string {
		return unless(b.eval(arrived+` && location.pathname.endsWith("/profiles") && profpull.timeline.data !== null`) == true,
			"not yet")
	})
	axis := b.text(`JSON.stringify([profpull.timeline.data.rateUnit, profpull.timeline.data.versions.map((v) => v.version)])`)
	equal(t, "the axis of the timeline", axis, `["cores",["v2"]]`)
	b.shoot("timeline-versions")

	// Labels: one click shows only a value, the next one excludes it, the third one forgets it.
	click := func(text, want string) {
		t.Helper()
		b.eval(`[...document.querySelectorAll("a.chip")].find((a) => a.textContent.startsWith(` + text + `)).click()`)
		wait(t, "a click", func() string {
			got := b.text(arrived + ` ? document.querySelector("input[name=labels]").value : "-"`)
			return unless(got == want, "the selector is %q, expected %q", got, want)
		})
	}
	click(`"b "`, `pod="b"`)
	click(`"= b "`, `pod!="b"`)
	click(`"<img"`, `pod!="b", note="`+hostile+`"`)
	click(`"≠ b "`, `note="`+hostile+`"`)
	b.sound()

	// The same without scripts.
	_, page := p.get("/profiles?service=" + url.QueryEscape(long) + "&from=" + fmt.Sprint(begin.UnixMilli()) + "&until=" + fmt.Sprint(end.UnixMilli()))
	for _, part := range []string{`<svg class="bars"`, ` cores</span>`, `<b class="mono">v2</b> since`, `class="chip"`} {
		expect(t, strings.Contains(page, part), "the page has no %s", part)
	}
}

// The cores of a real program are the CPU time of its profiles, divided by the time that they say they cover:
// computed from the files that another destination has got.
func TestCoresOfRealProgram(t *testing.T) {
	t.Parallel()
	address := startLoadgen(t)
	dir := t.TempDir()
	p := run(t, `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: seen
    profiles: {process_cpu: {seconds: 1s}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}}
    static_configs: [{targets: ["`+address+`"], labels: {service_name: busy}}]
write:
  - {name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}
  - {name: files, url: "file://`+dir+`"}
`)
	type step struct{ cpu, covered float64 }
	const stepMs = 15000
	p.wait("cores", func() string {
		end := time.Now().UnixMilli()/stepMs*stepMs + stepMs
		steps := map[int64]step{}
		var files []string
		must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && strings.HasSuffix(path, ".pb.gz") {
				files = append(files, path)
			}
			return err
		}))
		for _, path := range files {
			data, err := os.ReadFile(path)
			must(t, err)
			profile, err := pprof.ParseGzip(data)
			if err != nil {
				return err.Error()
			}
			s := steps[profile.TimeNanos/1e6/stepMs]
			s.cpu += float64(profile.Sums()["cpu"])
			s.covered += float64(profile.DurationNanos)
			steps[profile.TimeNanos/1e6/stepMs] = s
		}
		// On a busy machine a step may have no profile: the one before stands for it.
		want, before, n := 0.0, 0.0, 0.0
		for i := (end - 900000) / stepMs; i < end/stepMs; i++ {
			if s, ok := steps[i]; ok {
				before = s.cpu / s.covered
			}
			if n > 0 || before > 0 {
				want += before
				n++
			}
		}
		want /= math.Max(n, 1)
		got := p.overview("last=15m&at=" + fmt.Sprint(end))["busy"]
		if len(files) < 5 || want == 0 || !isAbout(got.CPUCores, want, 1e-6) {
			return fmt.Sprintf("%d files with %v cores, the overview has %+v", len(files), want, got.CPUCores)
		}
		return unless(got.Targets.Up == 1 && got.Targets.Down == 0, "targets: %+v", got.Targets)
	})
}
