package e2e

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// snapshotsOnly enables the types that answer at once, and passes them on as they come, so that what
// arrives can be compared.
const snapshotsOnly = "{process_cpu: {enabled: false}, memory: {delta: off}, mutex: {delta: off}, block: {delta: off}}"

func outage() time.Duration {
	if os.Getenv("E2E_LONG") == "1" {
		return 2 * time.Minute
	}
	return 12 * time.Second
}

// The only endpoint goes away for a while. Scrapes stay on schedule, the ledger balances in every
// sample of /metrics, memory stays below what the queue may hold, and when the endpoint is back all
// that was queued arrives, once, without anything dropped.
func TestEndpointDown(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	targets := newTargets(t, 10, target.Options{Functions: 300})
	p := run(t, scraping(job("down", "scrape_interval: 1s, profiles: "+snapshotsOnly, targets...),
		to(server)+", retry: {min_backoff: 100ms, max_backoff: 1s}, queue: {max_bytes: 64MiB}"))
	waitProfiles(t, server, 40, nil)
	before, rss := p.metrics(), p.rss()
	server.DownBetweenRequests()
	begin := time.Now()
	samples, worstRSS := 0, rss
	for time.Since(begin) < outage() {
		m := p.metrics()
		b := m.ledger("main").balance()
		require(t, b == "", "%s", b)
		l := m.ledger("main")
		require(t, l.queuedBytes <= l.limit, "over the limit: %+v", l)
		samples++
		if r := p.rss(); r > worstRSS {
			worstRSS = r
		}
		time.Sleep(100 * time.Millisecond)
	}
	after, took := p.metrics(), time.Since(begin)
	l := after.ledger("main")
	t.Logf("after %v: %d samples, %+v, RSS %d KiB (%d KiB before)", took.Round(time.Second), samples, l, worstRSS>>10, rss>>10)
	expect(t, l.queued != 0 && l.dropped == 0, "expected a queue and no drops: %+v", l)
	// 10 targets x 4 types a second.
	scraped := after.sum("profpull_scrapes_total", "result", "ok") - before.sum("profpull_scrapes_total", "result", "ok")
	due := took.Seconds() * 40
	expect(t, scraped >= due*0.9-40 && scraped <= due*1.1+40,
		"%.0f scrapes while the endpoint was down, due were %.0f", scraped, due)
	equal(t, "failed scrapes", after.sum("profpull_scrape_failures_total"), 0)
	bound := rss + int64(l.queuedBytes) + 32<<20
	expect(t, worstRSS <= bound || instrumented(t),
		"RSS rose to %d KiB with %.0f KiB queued", worstRSS>>10, l.queuedBytes/1024)
	must(t, server.Up())
	p.wait("the queue to empty", func() string {
		l := p.metrics().ledger("main")
		require(t, l.balance() == "", "%s", l.balance())
		return unless(l.queued <= 20, "%+v", l)
	})
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
	noneRefused(t, server)
	p.delivered("main", server.Count())
}

// delivered checks that an endpoint has sent all that it accepted, and that so many have arrived.
func (p *program) delivered(endpoint string, arrived int) {
	p.t.Helper()
	s := endpointSummary(p.t, p, endpoint)
	expect(p.t, s["dropped"] == 0 && s["accepted"] == s["sent"] && s["sent"] == arrived,
		"%s: %v, and %d have arrived", endpoint, s, arrived)
}

// endpointSummary reads the last line that the program logs of an endpoint.
func endpointSummary(t *testing.T, p *program, name string) map[string]int {
	t.Helper()
	for _, line := range strings.Split(p.stderr.String(), "\n") {
		if !strings.Contains(line, "endpoint summary") || !strings.Contains(line, "endpoint="+name+" ") {
			continue
		}
		numbers := map[string]int{}
		for _, word := range strings.Fields(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				n := 0
				if _, err := fmt.Sscan(value, &n); err == nil {
					numbers[key] = n
				}
			}
		}
		return numbers
	}
	t.Fatalf("no summary of endpoint %s:\n%s", name, tailLines(p.stderr.String(), 10))
	return nil
}

// A queue that is full thins out what it cannot merge, and counts it; what it holds never exceeds
// the limit, and what arrives later is spread evenly over the outage.
func TestQueueThinsOut(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{Functions: 500})
	server.Down()
	p := run(t, scraping(job("full", "scrape_interval: 200ms, profiles: "+snapshotsOnly, tg),
		to(server)+", concurrency: 2, retry: {min_backoff: 100ms, max_backoff: 500ms}, queue: {max_bytes: 1MiB}"))
	p.waitMetrics("drops", func(m metrics) string {
		l := m.ledger("main")
		require(t, l.balance() == "" && l.queuedBytes <= l.limit && l.limit == 1<<20, "%s %+v", l.balance(), l)
		n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned")
		return unless(n >= 150 && n == l.dropped, "%.0f thinned out, %.0f dropped in all", n, l.dropped)
	})
	// Nothing comes after what is queued now, however slowly it leaves.
	tg.SetFault("", target.NotFound)
	p.wait("the last profile to be queued", func() string {
		for _, r := range tg.Requests() {
			if r.End.IsZero() {
				return "a request is being answered"
			}
		}
		l := p.metrics().ledger("main")
		return unless(int(l.accepted) == len(tg.Sent()), "%.0f of %d", l.accepted, len(tg.Sent()))
	})
	must(t, server.Up())
	p.waitSent("main")
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, tg)
	expectEven(t, tg, server.Profiles())
	summary := endpointSummary(t, p, "main")
	expect(t, summary["accepted"] == summary["sent"]+summary["dropped"] && summary["sent"] == server.Count(),
		"%v, and %d have arrived", summary, server.Count())
}

// expectEven checks that what arrived of each path is every n-th profile that the target had sent.
// Those that were in flight when the queue became full come besides.
func expectEven(t *testing.T, tg *target.Target, got []pyroscope.Received) {
	t.Helper()
	arrived := map[string]bool{}
	for _, r := range got {
		arrived[r.SHA256] = true
	}
	for path := range nameOfPath {
		var sent []target.Request
		for _, r := range tg.RequestsFor(path) {
			if r.SHA256 != "" {
				sent = append(sent, r)
			}
		}
		if len(sent) == 0 {
			continue
		}
		sort.Slice(sent, func(i, j int) bool { return sent[i].End.Before(sent[j].End) })
		const inFlight = 2
		var places []int
		for i, r := range sent {
			if arrived[r.SHA256] {
				places = append(places, i)
			}
		}
		gaps := map[int]int{}
		step := 0
		for i := 1; i < len(places); i++ {
			gap := places[i] - places[i-1]
			gaps[gap]++
			if gaps[gap] > gaps[step] {
				step = gap
			}
		}
		t.Logf("%s: %d of %d have arrived, at %v", path, len(places), len(sent), places)
		expect(t, len(places) >= 3 && step >= 2 && len(places)-1-gaps[step] <= 2*inFlight && len(sent)-places[len(places)-1] <= step,
			"%s: not spread evenly", path)
	}
}

// One of two endpoints takes requests and never answers. The other gets every profile at once, the
// hanging one never more requests than its concurrency.
func TestOneEndpointHangs(t *testing.T) {
	t.Parallel()
	good := newPyroscope(t, pyroscope.Options{})
	bad := newPyroscope(t, pyroscope.Options{})
	bad.Faults.Set(&loop.Fault{Hang: true})
	tg := newTarget(t, target.Options{})
	p := run(t, scraping(job("two", "scrape_interval: 500ms, profiles: "+snapshotsOnly, tg),
		"name: good, url: "+good.URL(),
		"name: bad, url: "+bad.URL()+", concurrency: 3, remote_timeout: 60s"), "--drain-timeout", "2s")
	got := waitProfiles(t, good, 80, nil)
	m := p.metrics()
	for _, name := range []string{"good", "bad"} {
		l := m.ledger(name)
		t.Logf("%s: %+v", name, l)
		equal(t, name, l.balance(), "")
	}
	l := m.ledger("bad")
	expect(t, l.sent == 0 && l.inFlight == 3 && l.queued != 0, "the hanging endpoint: %+v", l)
	st := bad.Stats()
	expect(t, st.MaxBusy == 3, "%d requests at once at the hanging endpoint", st.MaxBusy)
	ends := map[string]time.Time{}
	for _, r := range tg.Requests() {
		ends[r.SHA256] = r.End
	}
	worst := time.Duration(0)
	for _, r := range got {
		if late := r.At.Sub(ends[r.SHA256]); !ends[r.SHA256].IsZero() && late > worst {
			worst = late
		}
	}
	t.Logf("slowest way through: %v", worst)
	expect(t, worst <= 20*time.Second || instrumented(t), "a profile took %v to the good endpoint", worst)
	// The hanging one may not hold up the end either.
	took := p.stop()
	expect(t, took <= 15*time.Second || instrumented(t), "the end took %v", took)
}

// A server that says "later" gets the same profile again, after the time that it names; one that says
// "never" does not get it again, and the profile is counted as rejected.
func TestAnswers(t *testing.T) {
	t.Parallel()
	later := newPyroscope(t, pyroscope.Options{})
	later.Faults.Set(&loop.Fault{Status: 429, Header: map[string][]string{"Retry-After": {"2"}}, Times: 1})
	never := newPyroscope(t, pyroscope.Options{})
	never.Faults.Set(&loop.Fault{Status: 400, Body: `{"code":"invalid_argument","message":"no \u001b[31mthanks"}`})
	tg := newTarget(t, target.Options{})
	p := run(t, scraping(job("answers", "scrape_interval: 1s, profiles: "+only("goroutine: {}"), tg),
		"name: later, url: "+later.URL()+", retry: {min_backoff: 50ms, max_backoff: 100ms}",
		"name: never, url: "+never.URL()+", retry: {min_backoff: 50ms, max_backoff: 100ms}"))
	waitProfiles(t, later, 5, nil)
	p.waitMetrics("rejected profiles", func(m metrics) string {
		n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "never", "reason", "rejected")
		return unless(n >= 3, "%.0f rejected", n)
	})
	p.stop()
	checkArrived(t, later.Profiles(), nameOfPath, tg)
	asked := later.Asked()
	expect(t, asked[1].Sub(asked[0]) >= 1900*time.Millisecond,
		"the next request came %v after 429 with Retry-After: 2", asked[1].Sub(asked[0]))
	st := never.Stats()
	expect(t, st.Requests <= int64(len(tg.Requests())),
		"%d requests for %d profiles that will never be taken", st.Requests, len(tg.Requests()))
	lacks(t, "the log", p.stderr.String(), "\x1b")
}

// CPU profiles and fgprof of one process never overlap, not even from two jobs, and all get their
// turn.
func TestSamplingNeverOverlaps(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	profiles := `{process_cpu: {seconds: 1s}, fgprof: {enabled: true, seconds: 1s}, memory: {enabled: false},
      goroutine: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}`
	p := run(t, scraping(job("one", "scrape_interval: 4s, profiles: "+profiles, tg)+
		job("two", "scrape_interval: 4s, profiles: "+profiles+", params: {second: [\"job\"]}", tg),
		to(server)))
	for _, job := range []string{"one", "two"} {
		for _, name := range []string{"process_cpu", "fgprof"} {
			waitProfiles(t, server, 2, func(r *pyroscope.Received) bool {
				return r.Name() == name && r.Labels["job"] == job
			})
		}
	}
	p.stop()
	equal(t, "sampling requests that began while another one ran", tg.Overlaps(), 0)
	for _, r := range tg.Requests() {
		expect(t, r.Status != 500, "the target had to refuse a CPU profile")
	}
}

// On SIGTERM what is queued is still sent, however slowly the server takes it, and the program ends
// with 0; all that was accepted has arrived.
func TestTerminationDrains(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Faults.Set(&loop.Fault{Delay: 200 * time.Millisecond})
	tg := newTarget(t, target.Options{})
	p := run(t, scraping(job("drain", "scrape_interval: 100ms, profiles: "+snapshotsOnly, tg),
		to(server)+", concurrency: 2"))
	p.waitQueued("main", 20)
	p.stop()
	p.delivered("main", server.Count())
	checkArrived(t, server.Profiles(), nameOfPath, tg)
}

// A CPU profile that is being sampled when SIGTERM comes is finished and sent; the target is not asked
// for another one.
func TestTerminationFinishesProfiles(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	p := run(t, scraping(job("finish", "profiles: "+only("process_cpu: {interval: 5s}"), tg), to(server)))
	until(t, "a request", func() bool { return len(tg.RequestsFor("/debug/pprof/profile")) != 0 })
	p.stop()
	asked := len(tg.RequestsFor("/debug/pprof/profile"))
	summary := endpointSummary(t, p, "main")
	expect(t, summary["sent"] == asked && server.Count() == asked,
		"%d profiles were asked for: %v, and %d have arrived", asked, summary, server.Count())
}

// When the server hangs, the drain ends at its deadline, with exit code 0, and what could not be
// sent is counted.
func TestTerminationDeadline(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Faults.Set(&loop.Fault{Hang: true})
	tg := newTarget(t, target.Options{})
	hanging := newTarget(t, target.Options{})
	hanging.SetFault("", target.Hang)
	p := run(t, scraping(job("deadline", "scrape_interval: 200ms, profiles: "+snapshotsOnly, tg, hanging),
		to(server)+", concurrency: 2, remote_timeout: 60s"), "--drain-timeout", "2s")
	p.waitQueued("main", 5)
	took := p.stop()
	t.Logf("ended in %v", took)
	expect(t, took <= 15*time.Second || instrumented(t), "a drain of 2 s took %v", took)
	summary := endpointSummary(t, p, "main")
	expect(t, summary["sent"] == 0 && summary["dropped"]+summary["queued"] == summary["accepted"] && summary["accepted"] >= 7,
		"%v", summary)
}

// A signal that comes doubled, as from timeout(1), is one; another one after a while ends the drain.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Faults.Set(&loop.Fault{Hang: true})
	tg := newTarget(t, target.Options{})
	p := run(t, scraping(job("second", "scrape_interval: 200ms, profiles: "+snapshotsOnly, tg),
		to(server)+", concurrency: 2, remote_timeout: 60s"), "--drain-timeout", "10m")
	p.waitQueued("main", 5)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	time.Sleep(time.Second) // not a matter of speed: what comes within half a second is no second one
	expect(t, !strings.Contains(p.stderr.String(), "second signal"), "the doubled signal counted twice")
	p.stop()
	p.says("second signal")
}

// Every way in which a target can fail is distinguished in /api/v1/targets and in the metrics, costs no
// other target anything, and none of the rubbish is pushed.
func TestBadTargets(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	good := newTarget(t, target.Options{})
	elsewhere := newTarget(t, target.Options{})
	cases := []struct {
		fault  target.Fault
		reason string
		says   string // part of lastError
	}{
		{target.CPUInUse, "cpu_in_use", "500"},
		{target.Hang, "timeout", ""}, // never answers
		{target.Drip, "timeout", ""}, // sends a byte now and then
		{target.CutBody, "cut", ""},
		{target.HTML, "not_pprof_html", "<!DOCTYPE"},
		{target.JSON, "not_pprof_json", ""},
		{target.Empty, "empty", ""},
		{target.Garbage, "bad_protobuf", ""},
		{target.TooLarge, "too_large", ""},
		{target.Redirect, "redirect", ""},
		{target.NotFound, "http_404", "404"},
		{target.LongHeader, "protocol", ""},
	}
	var targets []*target.Target
	for _, c := range cases {
		tg := newTarget(t, target.Options{RedirectTo: elsewhere.URL() + "/debug/pprof/goroutine"})
		tg.SetFault("", c.fault)
		targets = append(targets, tg)
	}
	gone := newTarget(t, target.Options{})
	gone.Down()
	p := run(t, scraping(job("bad", "scrape_interval: 2s, scrape_timeout: 1s, body_size_limit: 1MiB, profiles: "+only("goroutine: {}"), append(targets, gone, good)...),
		to(server)))
	check := func(address, reason, says string) {
		p.wait("reason "+reason, func() string {
			s := p.scrape(address + "/")
			if s == nil {
				return "no such target"
			}
			// A path that is not found three times in a row has made the type absent.
			failing := s.Health == "down" || (reason == "http_404" && s.Health == "absent")
			return unless(failing && s.Reason == reason && s.LastError != "" && strings.Contains(s.LastError, says), "%+v", *s)
		})
		n := p.metrics().sum("profpull_scrape_failures_total", "reason", reason)
		expect(t, n != 0, "no failure counted with reason %s", reason)
	}
	for i, c := range cases {
		check(targets[i].Addr(), c.reason, c.says)
	}
	check(gone.Addr(), "connect", "")
	waitProfiles(t, server, 3, nil)
	s := p.scrape(good.Addr() + "/")
	expect(t, s != nil && s.Health == "up" && s.Failures == 0, "the good target: %+v", s)
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, good)
	equal(t, "followed redirects to another host", len(elsewhere.Requests()), 0)
	for _, line := range strings.Split(p.stderr.String(), "\n") {
		expect(t, len(line) <= 4200, "a log line of %d bytes", len(line))
	}
}

// A target that was down is scraped again when it comes back, without a restart of anything.
func TestTargetComesBack(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	p := run(t, scraping(job("back", "scrape_interval: 500ms, profiles: "+snapshotsOnly, tg), to(server)))
	waitProfiles(t, server, 4, nil)
	tg.Down()
	p.wait("the target to be down", func() string {
		s := p.scrape(tg.Addr())
		return unless(s.Health == "down", "%s", s.Health)
	})
	must(t, tg.Up())
	before := server.Count()
	waitProfiles(t, server, before+4, nil)
	p.wait("the target to be up", func() string {
		s := p.scrape(tg.Addr())
		return unless(s.Health == "up" && s.Reason == "" && s.LastError == "", "%+v", *s)
	})
}
