package e2e

import (
	"fmt"
	"sort"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

var counterPaths = map[string]string{
	"/debug/pprof/allocs": "memory", "/debug/pprof/mutex": "mutex", "/debug/pprof/block": "block",
}

// growing makes bodies whose counters grow with each answer, except the first ones: whichever of them
// is the first that the program has got, the growth since then is the same.
func growing(functions int) func(string, int) []byte {
	var mu sync.Mutex
	made := map[string][]byte{}
	return func(path string, n int) []byte {
		if counterPaths[path] == "" {
			return nil
		}
		const still = 5
		round := 1
		if n > still {
			round = n - still + 1
		}
		mu.Lock()
		defer mu.Unlock()
		key := fmt.Sprint(path, round)
		if made[key] == nil {
			made[key] = pprof.Gzip(pprof.Make(target.Paths[path], pprof.Options{Functions: functions, Round: round}))
		}
		return made[key]
	}
}

// grown is by how much the counters of each series have grown since the first answer of each
// target, by instance, type and sample type.
func grown(t *testing.T, body func(string, int) []byte, targets []*target.Target) map[string]int64 {
	t.Helper()
	sums := func(path string, n int) map[string]int64 {
		p, err := pprof.ParseGzip(body(path, n))
		must(t, err)
		return p.Sums()
	}
	out := map[string]int64{}
	for _, tg := range targets {
		for path, n := range tg.Freeze() {
			first := sums(path, 1)
			for counter, value := range sums(path, n) {
				if isCounter[counter] {
					out[tg.Addr()+" "+counterPaths[path]+" "+counter] = value - first[counter]
				}
			}
		}
	}
	return out
}

var isCounter = map[string]bool{"alloc_objects": true, "alloc_space": true, "contentions": true, "delay": true}

// arrived adds up what a server has got.
func arrived(server *pyroscope.Server) map[string]int64 {
	out := map[string]int64{}
	for _, r := range server.Profiles() {
		for counter, value := range r.Profile.Sums() {
			if isCounter[counter] {
				out[r.Labels["instance"]+" "+r.Name()+" "+counter] += value
			}
		}
	}
	return out
}

func compareSums(want, got map[string]int64) string {
	for key, n := range want {
		if got[key] != n {
			return fmt.Sprintf("%s: %d of %d", key, got[key], n)
		}
	}
	return ""
}

// Few profiles a second: a slow machine too has the time to merge what the endpoints do not take.
func outageConfig(targets []*target.Target, write string) string {
	return scraping(job("outage", "scrape_interval: 400ms, profiles: {process_cpu: {enabled: false}}", targets...)) + write
}

// One of two endpoints is down for many times the time that its queue could bridge. When it is back,
// it gets all that the counters have grown by; the other one has noticed nothing.
func TestOutageKeepsSums(t *testing.T) {
	t.Parallel()
	up := newPyroscope(t, pyroscope.Options{})
	down := newPyroscope(t, pyroscope.Options{})
	body := growing(150)
	targets := newTargets(t, 3, target.Options{Functions: 150, Body: body})
	p := run(t, outageConfig(targets, fmt.Sprintf(`
  - {name: up, url: %q, queue: {max_bytes: 1MiB}}
  - {name: down, url: %q, queue: {max_bytes: 1MiB}, retry: {min_backoff: 100ms, max_backoff: 500ms}}
`, up.URL(), down.URL())))
	waitProfiles(t, up, 30, nil)
	waitProfiles(t, down, 30, nil)
	down.DownBetweenRequests()
	p.waitMetrics("a long outage", func(m metrics) string {
		l := m.ledger("down")
		require(t, l.balance() == "" && l.queuedBytes <= l.limit, "%s %+v", l.balance(), l)
		thinned := m.sum("profpull_write_dropped_profiles_total", "endpoint", "down", "reason", "thinned")
		return unless(l.merged >= 150 && thinned != 0, "%.0f merged, %.0f thinned", l.merged, thinned)
	})
	must(t, down.Up())
	waitProfiles(t, down, down.Count()+30, nil)
	want := grown(t, body, targets)
	for name, server := range map[string]*pyroscope.Server{"up": up, "down": down} {
		p.wait("the sums of "+name, func() string { return compareSums(want, arrived(server)) })
	}
	p.stop()
	m := endpointSummary(t, p, "up")
	expect(t, m["dropped"] == 0 && m["merged"] == 0, "the endpoint that was up: %v", m)
	l := endpointSummary(t, p, "down")
	expect(t, l["accepted"] == l["sent"]+l["dropped"]+l["merged"] && l["accepted"] == m["accepted"],
		"the endpoint that was down: %v, the other one %v", l, m)
	noneRefused(t, down)
	for _, r := range down.Profiles() {
		expect(t, counterPathOf(r.Name()) == "" || time.Duration(r.Profile.DurationNanos) <= 10*time.Minute,
			"%s lasts %d ns", r.Name(), r.Profile.DurationNanos)
	}
}

func counterPathOf(name string) string {
	for path, n := range counterPaths {
		if n == name {
			return path
		}
	}
	return ""
}

// The queue of the only endpoint cannot even hold one delta of each series: what has no room is
// refused, its growth comes later, and the sums are exact all the same.
func TestOutageWithoutRoomKeepsSums(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	body := growing(150)
	targets := newTargets(t, 3, target.Options{Functions: 150, Body: body})
	p := run(t, outageConfig(targets, fmt.Sprintf(`
  - {name: main, url: %q, queue: {max_bytes: 32KiB}, retry: {min_backoff: 100ms, max_backoff: 500ms}}
`, server.URL())))
	waitProfiles(t, server, 30, nil)
	server.DownBetweenRequests()
	p.waitMetrics("refusals", func(m metrics) string {
		n := m.sum("profpull_write_refused_profiles_total")
		return unless(n >= 100, "%.0f refused", n)
	})
	must(t, server.Up())
	waitProfiles(t, server, server.Count()+20, nil)
	want := grown(t, body, targets)
	p.wait("the sums", func() string { return compareSums(want, arrived(server)) })
	l := p.metrics().ledger("main")
	expect(t, l.balance() == "", "%s", l.balance())
}

// With a spool that is too small for the outage, and a process that is killed again and again: what
// is on disk is merged, and nothing is counted twice. Little is lost: the profiles that were being
// written, and what comes between the last scrape of a process and the first of the next one.
func TestSpoolOutageWithKills(t *testing.T) {
	t.Parallel()
	bin(t)
	const lives = 4
	server := newPyroscope(t, pyroscope.Options{})
	server.Down()
	body := growing(150)
	targets := newTargets(t, 3, target.Options{Functions: 150, Body: body})
	config := outageConfig(targets, fmt.Sprintf(`
  - name: main
    url: %q
    retry: {min_backoff: 100ms, max_backoff: 500ms}
    queue: {max_bytes: 512KiB, spool_directory: %s, spool_max_bytes: 1MiB, fsync: always}
`, server.URL(), t.TempDir()))
	var p *program
	for life := 1; life <= lives; life++ {
		p = run(t, config)
		p.wait("merges", func() string {
			l := p.metrics().ledger("main")
			require(t, l.balance() == "", "%s", l.balance())
			return unless(l.merged >= 100, "%.0f merged", l.merged)
		})
		if life < lives {
			p.kill()
		}
	}
	must(t, server.Up())
	waitProfiles(t, server, 30, nil)
	want := grown(t, body, targets)
	p.emptied()
	p.stop()
	got := arrived(server)
	for key, n := range want {
		share := float64(got[key]) / float64(n)
		t.Logf("%s: %.1f %%", key, 100*share)
		expect(t, got[key] <= n && share >= 0.5, "%s: %d of %d", key, got[key], n)
	}
	checkWindows(t, server.Profiles())
}

// checkWindows checks that no two deltas of a series cover the same time.
func checkWindows(t *testing.T, received []pyroscope.Received) {
	t.Helper()
	ends := map[string][][2]int64{}
	for _, r := range received {
		sums := r.Profile.Sums()
		if sums["alloc_objects"]+sums["contentions"] == 0 || counterPathOf(r.Name()) == "" {
			continue // gauges only
		}
		key := r.Labels["instance"] + " " + r.Name()
		ends[key] = append(ends[key], [2]int64{r.Profile.TimeNanos - r.Profile.DurationNanos, r.Profile.TimeNanos})
	}
	for key, windows := range ends {
		sort.Slice(windows, func(i, j int) bool { return windows[i][1] < windows[j][1] })
		for i := 1; i < len(windows); i++ {
			expect(t, windows[i][0] >= windows[i-1][1],
				"%s: from %d to %d, and from %d to %d", key, windows[i-1][0], windows[i-1][1], windows[i][0], windows[i][1])
		}
		t.Logf("%s: %d windows", key, len(windows))
	}
}
