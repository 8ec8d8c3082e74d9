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
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	var targets []*target.Target
	for i := 0; i < 10; i++ {
		targets = append(targets, newTarget(t, target.Options{Functions: 300}))
	}
	p := run(t, `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: down
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("down", targets...)+`
write:
  - name: main
    url: "`+server.URL()+`"
    retry: {min_backoff: 100ms, max_backoff: 1s}
    queue: {max_bytes: 64MiB}
`)
	waitProfiles(t, server, 40, nil)
	before, rss := p.metrics(), p.rss()
	server.DownBetweenRequests()
	begin := time.Now()
	samples, worstRSS := 0, rss
	for time.Since(begin) < outage() {
		m := p.metrics()
		if b := m.ledger("main").balance(); b != "" {
			t.Fatal(b)
		}
		if l := m.ledger("main"); l.queuedBytes > l.limit {
			t.Fatalf("over the limit: %+v", l)
		}
		samples++
		if r := p.rss(); r > worstRSS {
			worstRSS = r
		}
		time.Sleep(100 * time.Millisecond)
	}
	after, took := p.metrics(), time.Since(begin)
	l := after.ledger("main")
	t.Logf("after %v: %d samples, %+v, RSS %d KiB (%d KiB before)", took.Round(time.Second), samples, l, worstRSS>>10, rss>>10)
	if l.queued == 0 || l.dropped != 0 {
		t.Errorf("expected a queue and no drops: %+v", l)
	}
	// 10 targets x 4 types a second.
	scraped := after.sum("profpull_scrapes_total", "result", "ok") - before.sum("profpull_scrapes_total", "result", "ok")
	if due := took.Seconds() * 40; scraped < due*0.9-40 || scraped > due*1.1+40 {
		t.Errorf("%.0f scrapes while the endpoint was down, due were %.0f", scraped, due)
	}
	if failed := after.sum("profpull_scrape_failures_total"); failed != 0 {
		t.Errorf("%.0f scrapes failed", failed)
	}
	if bound := rss + int64(l.queuedBytes) + 32<<20; worstRSS > bound && !instrumented(t) {
		t.Errorf("RSS rose to %d KiB with %.0f KiB queued", worstRSS>>10, l.queuedBytes/1024)
	}
	must(t, server.Up())
	p.wait("the queue to empty", func() string {
		l := p.metrics().ledger("main")
		if l.balance() != "" {
			t.Fatal(l.balance())
		}
		if l.queued > 20 {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
	noneRefused(t, server)
	summary := endpointSummary(t, p, "main")
	if summary["dropped"] != 0 || summary["accepted"] != summary["sent"] || summary["sent"] != server.Count() {
		t.Errorf("%v, and %d have arrived", summary, server.Count())
	}
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
	p := run(t, `
scrape_configs:
  - job_name: full
    scrape_interval: 200ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("full", tg)+`
write:
  - name: main
    url: "`+server.URL()+`"
    concurrency: 2
    retry: {min_backoff: 100ms, max_backoff: 500ms}
    queue: {max_bytes: 1MiB}
`)
	p.wait("drops", func() string {
		m := p.metrics()
		l := m.ledger("main")
		if l.balance() != "" || l.queuedBytes > l.limit || l.limit != 1<<20 {
			t.Fatalf("%s %+v", l.balance(), l)
		}
		if n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned"); n < 150 || n != l.dropped {
			return fmt.Sprintf("%.0f thinned out, %.0f dropped in all", n, l.dropped)
		}
		return ""
	})
	// Nothing comes after what is queued now, however slowly it leaves.
	tg.SetFault("", target.NotFound)
	p.wait("the last profile to be queued", func() string {
		for _, r := range tg.Requests() {
			if r.End.IsZero() {
				return "a request is being answered"
			}
		}
		if l := p.metrics().ledger("main"); int(l.accepted) != len(tg.Sent()) {
			return fmt.Sprintf("%.0f of %d", l.accepted, len(tg.Sent()))
		}
		return ""
	})
	must(t, server.Up())
	p.wait("the queue to empty", func() string {
		if l := p.metrics().ledger("main"); l.queued+l.inFlight > 0 {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, tg)
	expectEven(t, tg, server.Profiles())
	summary := endpointSummary(t, p, "main")
	if summary["accepted"] != summary["sent"]+summary["dropped"] || summary["sent"] != server.Count() {
		t.Errorf("%v, and %d have arrived", summary, server.Count())
	}
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
		if len(places) < 3 || step < 2 || len(places)-1-gaps[step] > 2*inFlight || len(sent)-places[len(places)-1] > step {
			t.Errorf("%s: not spread evenly", path)
		}
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
	p := run(t, `
scrape_configs:
  - job_name: two
    scrape_interval: 500ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("two", tg)+`
write:
  - {name: good, url: "`+good.URL()+`"}
  - {name: bad, url: "`+bad.URL()+`", concurrency: 3, remote_timeout: 60s}
`, "--drain-timeout", "2s")
	got := waitProfiles(t, good, 80, nil)
	m := p.metrics()
	for _, name := range []string{"good", "bad"} {
		l := m.ledger(name)
		t.Logf("%s: %+v", name, l)
		if b := l.balance(); b != "" {
			t.Errorf("%s: %s", name, b)
		}
	}
	if l := m.ledger("bad"); l.sent != 0 || l.inFlight != 3 || l.queued == 0 {
		t.Errorf("the hanging endpoint: %+v", l)
	}
	if st := bad.Stats(); st.MaxBusy != 3 {
		t.Errorf("%d requests at once at the hanging endpoint", st.MaxBusy)
	}
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
	if worst > 20*time.Second && !instrumented(t) {
		t.Errorf("a profile took %v to the good endpoint", worst)
	}
	// The hanging one may not hold up the end either.
	if took := p.stop(); took > 15*time.Second && !instrumented(t) {
		t.Errorf("the end took %v", took)
	}
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
	p := run(t, `
scrape_configs:
  - job_name: answers
    scrape_interval: 1s
    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, memory: {enabled: false}}
    static_configs:
`+staticTargets("answers", tg)+`
write:
  - {name: later, url: "`+later.URL()+`", retry: {min_backoff: 50ms, max_backoff: 100ms}}
  - {name: never, url: "`+never.URL()+`", retry: {min_backoff: 50ms, max_backoff: 100ms}}
`)
	waitProfiles(t, later, 5, nil)
	p.wait("rejected profiles", func() string {
		m := p.metrics()
		if n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "never", "reason", "rejected"); n < 3 {
			return fmt.Sprintf("%.0f rejected", n)
		}
		return ""
	})
	p.stop()
	checkArrived(t, later.Profiles(), nameOfPath, tg)
	if asked := later.Asked(); asked[1].Sub(asked[0]) < 1900*time.Millisecond {
		t.Errorf("the next request came %v after 429 with Retry-After: 2", asked[1].Sub(asked[0]))
	}
	if st := never.Stats(); st.Requests > int64(len(tg.Requests())) {
		t.Errorf("%d requests for %d profiles that will never be taken", st.Requests, len(tg.Requests()))
	}
	if strings.Contains(p.stderr.String(), "\x1b") {
		t.Error("a control character of the server's answer is in the log")
	}
}

// CPU profiles and fgprof of one process never overlap, not even from two jobs, and all get their
// turn.
func TestSamplingNeverOverlaps(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	profiles := `{process_cpu: {seconds: 1s}, fgprof: {enabled: true, seconds: 1s}, memory: {enabled: false},
      goroutine: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}`
	p := run(t, `
global: {scrape_interval: 4s}
scrape_configs:
  - job_name: one
    profiles: `+profiles+`
    static_configs:
`+staticTargets("one", tg)+`
  - job_name: two
    profiles: `+profiles+`
    params: {second: ["job"]}
    static_configs:
`+staticTargets("two", tg)+`
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	for _, job := range []string{"one", "two"} {
		for _, name := range []string{"process_cpu", "fgprof"} {
			job, name := job, name
			waitProfiles(t, server, 2, func(r *pyroscope.Received) bool {
				return r.Name() == name && r.Labels["job"] == job
			})
		}
	}
	p.stop()
	if n := tg.Overlaps(); n != 0 {
		t.Errorf("%d sampling requests began while another one ran", n)
	}
	for _, r := range tg.Requests() {
		if r.Status == 500 {
			t.Error("the target had to refuse a CPU profile")
		}
	}
}

// On SIGTERM what is queued is still sent, however slowly the server takes it, and the program ends
// with 0; all that was accepted has arrived.
func TestTerminationDrains(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Faults.Set(&loop.Fault{Delay: 200 * time.Millisecond})
	tg := newTarget(t, target.Options{})
	p := run(t, `
scrape_configs:
  - job_name: drain
    scrape_interval: 100ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("drain", tg)+`
write:
  - {name: main, url: "`+server.URL()+`", concurrency: 2}
`)
	p.wait("a queue", func() string {
		if l := p.metrics().ledger("main"); l.queued < 20 {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	took := p.stop()
	summary := endpointSummary(t, p, "main")
	t.Logf("drained in %v: %v", took, summary)
	if summary["dropped"] != 0 || summary["accepted"] != summary["sent"] || summary["sent"] != server.Count() {
		t.Errorf("%v, and %d have arrived", summary, server.Count())
	}
	checkArrived(t, server.Profiles(), nameOfPath, tg)
}

// A CPU profile that is being sampled when SIGTERM comes is finished and sent; the target is not asked
// for another one.
func TestTerminationFinishesProfiles(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	p := run(t, `
scrape_configs:
  - job_name: finish
`+types("process_cpu: {interval: 5s}")+`    static_configs:
`+staticTargets("finish", tg)+`
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	p.wait("a request", func() string {
		if len(tg.RequestsFor("/debug/pprof/profile")) == 0 {
			return "none yet"
		}
		return ""
	})
	p.stop()
	asked := len(tg.RequestsFor("/debug/pprof/profile"))
	summary := endpointSummary(t, p, "main")
	if summary["sent"] != asked || server.Count() != asked {
		t.Errorf("%d profiles were asked for: %v, and %d have arrived", asked, summary, server.Count())
	}
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
	p := run(t, `
scrape_configs:
  - job_name: deadline
    scrape_interval: 200ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("deadline", tg, hanging)+`
write:
  - {name: main, url: "`+server.URL()+`", concurrency: 2, remote_timeout: 60s}
`, "--drain-timeout", "2s")
	p.wait("a queue", func() string {
		if l := p.metrics().ledger("main"); l.queued < 5 {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	took := p.stop()
	t.Logf("ended in %v", took)
	if took > 15*time.Second && !instrumented(t) {
		t.Errorf("a drain of 2 s took %v", took)
	}
	summary := endpointSummary(t, p, "main")
	if summary["sent"] != 0 || summary["dropped"]+summary["queued"] != summary["accepted"] || summary["accepted"] < 7 {
		t.Errorf("%v", summary)
	}
}

// A signal that comes doubled, as from timeout(1), is one; another one after a while ends the drain.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Faults.Set(&loop.Fault{Hang: true})
	tg := newTarget(t, target.Options{})
	p := run(t, `
scrape_configs:
  - job_name: second
    scrape_interval: 200ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("second", tg)+`
write:
  - {name: main, url: "`+server.URL()+`", concurrency: 2, remote_timeout: 60s}
`, "--drain-timeout", "10m")
	p.wait("a queue", func() string {
		if l := p.metrics().ledger("main"); l.queued < 5 {
			return fmt.Sprintf("%+v", l)
		}
		return ""
	})
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	time.Sleep(time.Second) // not a matter of speed: what comes within half a second is no second one
	if strings.Contains(p.stderr.String(), "second signal") {
		t.Error("the doubled signal counted twice")
	}
	p.stop()
	p.says("second signal")
}

// Every way in which a target can fail is distinguished in /api/v1/targets and in the metrics, costs no
// other target anything, and none of the rubbish is pushed.
func TestBadTargets(t *testing.T) {
	t.Parallel()
	bin(t)
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
	p := run(t, `
scrape_configs:
  - job_name: bad
    scrape_interval: 2s
    scrape_timeout: 1s
    body_size_limit: 1MiB
    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, memory: {enabled: false}}
    static_configs:
`+staticTargets("bad", append(targets, gone, good)...)+`
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	check := func(address, reason, says string) {
		p.wait("reason "+reason, func() string {
			s := p.scrape(address + "/")
			if s == nil {
				return "no such target"
			}
			// A path that is not found three times in a row has made the type absent.
			failing := s.Health == "down" || (reason == "http_404" && s.Health == "absent")
			if !failing || s.Reason != reason || s.LastError == "" || !strings.Contains(s.LastError, says) {
				return fmt.Sprintf("%+v", *s)
			}
			return ""
		})
		if n := p.metrics().sum("profpull_scrape_failures_total", "reason", reason); n == 0 {
			t.Errorf("no failure counted with reason %s", reason)
		}
	}
	for i, c := range cases {
		check(targets[i].Addr(), c.reason, c.says)
	}
	check(gone.Addr(), "connect", "")
	waitProfiles(t, server, 3, nil)
	if s := p.scrape(good.Addr() + "/"); s == nil || s.Health != "up" || s.Failures != 0 {
		t.Errorf("the good target: %+v", s)
	}
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, good)
	if n := len(elsewhere.Requests()); n != 0 {
		t.Errorf("a redirect to another host was followed %d times", n)
	}
	for _, line := range strings.Split(p.stderr.String(), "\n") {
		if len(line) > 4200 {
			t.Errorf("a log line of %d bytes", len(line))
		}
	}
}

// A target that was down is scraped again when it comes back, without a restart of anything.
func TestTargetComesBack(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	p := run(t, `
scrape_configs:
  - job_name: back
    scrape_interval: 500ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("back", tg)+`
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	waitProfiles(t, server, 4, nil)
	tg.Down()
	p.wait("the target to be down", func() string {
		if s := p.scrape(tg.Addr()); s.Health != "down" {
			return orNothing(s.Health)
		}
		return ""
	})
	must(t, tg.Up())
	before := server.Count()
	waitProfiles(t, server, before+4, nil)
	p.wait("the target to be up", func() string {
		if s := p.scrape(tg.Addr()); s.Health != "up" || s.Reason != "" || s.LastError != "" {
			return fmt.Sprintf("%+v", *s)
		}
		return ""
	})
	p.stop()
}
