package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// A real Go program whose next CPU profile begins the moment that the last one ends: by its own
// account, at least 99 % of the time lies within a profile. On a busy machine the best pair shows
// that nothing but the machine was waited for; no pair leaves an interval out.
func TestContinuous(t *testing.T) {
	t.Parallel()
	const seconds = 3
	address := startLoadgen(t)
	server := newPyroscope(t, pyroscope.Options{})
	profiles := only(fmt.Sprintf("process_cpu: {continuous: true, interval: %ds}", seconds))
	p := run(t, scraping(jobAt("real", "profiles: "+profiles, address), to(server)))
	var gaps []time.Duration
	p.wait("profiles that follow each other at once", func() string {
		gaps = gapsBetween(server.Profiles())
		return unless(len(gaps) >= 3 && (gaps[0] <= seconds*time.Second/100 || instrumented(t)),
			"between profiles of %d s: %v", seconds, gaps)
	})
	p.stop()
	t.Logf("between two profiles of %d s: %v", seconds, gaps)
	expect(t, gaps[0] >= -50*time.Millisecond, "two profiles overlap by %v", -gaps[0])
	worst := gaps[len(gaps)-1]
	expect(t, worst < seconds*time.Second, "%v between two profiles: an interval was left out", worst)
}

// gapsBetween returns the times between each profile and the next one, by the target's account, the
// shortest first.
func gapsBetween(got []pyroscope.Received) []time.Duration {
	sort.Slice(got, func(i, k int) bool { return got[i].Profile.TimeNanos < got[k].Profile.TimeNanos })
	var gaps []time.Duration
	for i := 1; i < len(got); i++ {
		last := got[i-1].Profile
		gaps = append(gaps, time.Duration(got[i].Profile.TimeNanos-last.TimeNanos-last.DurationNanos))
	}
	sort.Slice(gaps, func(i, k int) bool { return gaps[i] < gaps[k] })
	return gaps
}

// A type that is not there is asked for rarely, shown, and back when it is there.
func TestAbsentType(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	tg.SetFault("/debug/pprof/mutex", target.NotFound)
	p := run(t, scraping(job("a", "scrape_interval: 300ms, profiles: "+only("mutex: {delta: off}, goroutine: {}"), tg),
		to(server)))
	p.wait("absent", func() string {
		s := p.scrape("/mutex")
		return unless(s != nil && s.Health == "absent" && s.Reason == "http_404", "%+v", s)
	})
	equal(t, "absent scrapes", p.metrics().sum("profpull_scrapes", "state", "absent"), 1)
	n := len(tg.RequestsFor("/debug/pprof/mutex"))
	before := len(tg.RequestsFor("/debug/pprof/goroutine"))
	until(t, "the other type", func() bool { return len(tg.RequestsFor("/debug/pprof/goroutine")) >= before+6 })
	atMost(t, "requests in six intervals", len(tg.RequestsFor("/debug/pprof/mutex"))-n, 1)
	tg.SetFault("/debug/pprof/mutex", target.None)
	waitProfiles(t, server, 2, func(r *pyroscope.Received) bool { return r.Name() == "mutex" })
	p.stop()
	for text, want := range map[string]int{"scrape failed": 1, "profile type is absent": 1, "profile type exists again": 1} {
		equal(t, "lines that say "+text, strings.Count(p.stderr.String(), text), want)
	}
}

// Somebody else profiles the target: it is tried twice in an interval, and the page says so.
func TestProfiledBySomebodyElse(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	tg.SetFault("", target.CPUInUse)
	p := run(t, scraping(job("a", "scrape_interval: 2s, profiles: "+only("process_cpu: {interval: 6s, seconds: 2s}"), tg),
		to(server)))
	p.wait("two conflicts", func() string {
		s := p.scrape("/profile")
		return unless(s != nil && s.Reason == "cpu_in_use" && s.Conflicts.Found >= 2 &&
			strings.Contains(s.LastError, "somebody else profiles this process (so in 2 of the last 2 attempts)"),
			"%+v", s)
	})
	r := tg.Requests()
	expect(t, r[1].Start.Sub(r[0].Start) <= 6*time.Second || instrumented(t),
		"the second attempt came after %v, in another interval", r[1].Start.Sub(r[0].Start))
	tg.SetFault("", target.None)
	waitProfiles(t, server, 1, nil)
	s := p.scrape("/profile")
	expect(t, s != nil && s.Health == "up" && s.Conflicts.Found >= 2, "%+v", s)
}

// Servers that allow an answer less time than the profile takes: one that says so, as older
// versions of Go do, and one that cuts the connection.
func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	says := newTarget(t, target.Options{MaxSeconds: 1})
	cuts := loop.Host() + ":6060"
	srv := &http.Server{Addr: cuts, WriteTimeout: 500 * time.Millisecond,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			_, _ = w.Write([]byte("profile"))
		})}
	go func() { _ = srv.ListenAndServe() }()
	t.Cleanup(func() { _ = srv.Close() })
	p := run(t, `
global: {scrape_interval: 3s}
scrape_configs:
  - job_name: a
`+types("process_cpu: {}")+`    static_configs:
      - {targets: ["`+cuts+`"]}
`+staticTargets("a", says)+writeTo(server))
	for _, address := range []string{says.Addr(), cuts} {
		p.wait("the reason", func() string {
			s := p.scrape(address + "/")
			return unless(s != nil && s.Reason == "duration_too_long" &&
				strings.Contains(s.LastError, "set seconds of the profile type process_cpu (now 2s) below"),
				"%+v", s)
		})
	}
}

// Two processes of each service are scraped, always the same ones, and the page says how many are
// left out.
func TestSampledServices(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	targets := newTargets(t, 8, target.Options{})
	p := run(t, `
global: {scrape_interval: 300ms}
scrape_configs:
  - job_name: some
    sampling: {max_per_service: 2}
`+types("goroutine: {}, memory: {delta: off}")+`    static_configs:
`+staticTargets("shop/cart", targets[:6]...)+staticTargets("shop/till", targets[6:]...)+writeTo(server))
	waitProfiles(t, server, 24, nil)
	_, text := p.get("/api/v1/targets")
	var page struct {
		Data struct {
			Scrapes []scrape
			Sampled []struct {
				Job, Service       string
				Processes, Scraped int
			}
		}
	}
	must(t, json.Unmarshal([]byte(text), &page))
	equal(t, "scrapes (two types of four processes)", len(page.Data.Scrapes), 8)
	s := page.Data.Sampled
	expect(t, len(s) == 1 && s[0].Job == "some" && s[0].Service == "shop/cart" && s[0].Processes == 6 && s[0].Scraped == 2,
		"sampled: %+v", s)
	equal(t, "targets left out", p.metrics().sum("profpull_targets", "state", "left_out"), 4)
	p.stop()
	asked := 0
	for _, tg := range targets[:6] {
		if len(tg.Requests()) > 0 {
			asked++
		}
	}
	expect(t, asked == 2, "%d processes were asked", asked)
}

// The program is stopped for some intervals: what it missed is counted and not made up for.
func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	targets := newTargets(t, 20, target.Options{})
	p := run(t, scraping(job("a", "scrape_interval: 500ms, profiles: "+only("goroutine: {}"), targets...), to(server)))
	waitProfiles(t, server, 40, nil)
	must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(4 * time.Second)
	must(t, p.cmd.Process.Signal(syscall.SIGCONT))
	again := time.Now()
	p.wait("scrapes", func() string {
		for _, tg := range targets {
			r := tg.Requests()
			if n := len(r); n < 2 || r[n-2].Start.Before(again) {
				return "one has not been asked twice since"
			}
		}
		return ""
	})
	atLeast(t, "scrapes counted as skipped", p.metrics().sum("profpull_scrapes_total", "result", "skipped"), 20*6)
	p.answers("/-/healthy", 200)
	p.stop()
	for _, tg := range targets {
		var starts []time.Time
		for _, r := range tg.Requests() {
			if r.Start.After(again) {
				starts = append(starts, r.Start)
			}
		}
		// Its own phase, not one scrape for each that was missed.
		most := int(time.Since(again)/(500*time.Millisecond)) + 2
		expect(t, len(starts) <= most, "%d requests since the program goes on, expected at most %d", len(starts), most)
	}
}
