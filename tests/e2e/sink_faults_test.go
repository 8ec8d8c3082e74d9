package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sort"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/parca"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// oneSnapshot enables the goroutine type alone: one profile a round.
const oneSnapshot = "{process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, memory: {enabled: false}}"

// finalLedger ends the program and checks what it says of an endpoint at last: everything that was
// accepted was sent or dropped. The ledger goes to the test's log.
func finalLedger(t *testing.T, p *program, name string) map[string]int {
	t.Helper()
	if !p.ended() {
		p.stop()
	}
	s := endpointSummary(t, p, name)
	t.Logf("%s: accepted %d = sent %d + dropped %d", name, s["accepted"], s["sent"], s["dropped"])
	expect(t, s["accepted"] != 0 && s["accepted"] == s["sent"]+s["dropped"],
		"%s: the ledger does not balance: %v", name, s)
	return s
}

// An endpoint without a spool is down for long (ten minutes with E2E_LONG). What waits stays
// within the queue, the rest is thinned out and counted, scrapes stay on schedule, and what has
// gathered does not fall upon the server at once when it is back.
func TestLongOutageWithoutSpool(t *testing.T) {
	t.Parallel()
	const limit, concurrency, pace = 1 << 20, 8, 250 * time.Millisecond
	down, interval := 5*time.Second, 500*time.Millisecond
	if os.Getenv("E2E_LONG") != "" {
		down = 10 * time.Minute
	}
	server := newPyroscope(t, pyroscope.Options{})
	targets := newTargets(t, 4, target.Options{Functions: 1000})
	p := run(t, scraping(job("long", "scrape_interval: 500ms, profiles: "+snapshotsOnly, targets...), to(server)+fmt.Sprintf(
		", concurrency: %d, retry: {min_backoff: 50ms, max_backoff: 200ms}, queue: {max_bytes: 1MiB}", concurrency)))
	waitProfiles(t, server, 16, nil)
	server.DownBetweenRequests()
	begin, before, rss, most := time.Now(), p.metrics(), p.rss(), int64(0)
	full := func() bool {
		m := p.metrics()
		l := m.ledger("main")
		text := l.balance()
		require(t, text == "" && l.queuedBytes <= limit && l.limit == limit, "%s %+v", text, l)
		if r := p.rss(); r > most {
			most = r
		}
		return m.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned") > 0
	}
	for time.Since(begin) < down {
		full()
		time.Sleep(100 * time.Millisecond)
	}
	until(t, "the queue to overflow", func() bool { return full() })
	after, took := p.metrics(), time.Since(begin)
	count := func(name string, labels ...string) float64 {
		return after.sum(name, labels...) - before.sum(name, labels...)
	}
	l := after.ledger("main")
	t.Logf("after %v: %+v, RSS %d KiB (%d KiB before)", took.Round(time.Second), l, most>>10, rss>>10)
	lost := after.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned")
	expect(t, lost == l.dropped, "%.0f dropped, %.0f of them for the queue", l.dropped, lost)
	expect(t, most <= rss+limit+24<<20 || instrumented(t),
		"RSS rose from %d to %d KiB for a queue of 1 MiB", rss>>10, most>>10)
	// How many there are is for people: a busy machine skips some.
	due := took.Seconds() / interval.Seconds() * float64(4*len(targets))
	got := count("profpull_scrapes_total", "result", "ok")
	t.Logf("%.0f scrapes while the endpoint was down, due were %.0f", got, due)
	expect(t, got >= float64(2*4*len(targets)), "%.0f scrapes while the endpoint was down", got)
	equal(t, "failed scrapes", count("profpull_scrape_failures_total"), 0)

	// Answers take longer than a step of the pace, so that what is sent is what is allowed. Each step
	// allows twice as many at a time; a request that was on its way before it was read may still be
	// counted, hence the one more.
	calls := len(server.Asked())
	server.Faults.Set(&loop.Fault{Delay: 4 * pace})
	must(t, server.Up())
	reaches(t, "requests of every place", 2*concurrency, func() int { return len(server.Asked()) - calls })
	asked := server.Asked()[calls:]
	sort.Slice(asked, func(i, j int) bool { return asked[i].Before(asked[j]) })
	// The probe comes first and is answered after its delay; only then is the outage over.
	recovered := asked[0].Add(4 * pace)
	early := 0
	for _, at := range asked[1:] {
		expect(t, !at.Before(recovered), "a request came %v before the first one was answered", recovered.Sub(at))
		if at.Before(recovered.Add(pace)) {
			early++
		}
	}
	t.Logf("%d requests within the first step after the outage, %d with all places", early, concurrency)
	expect(t, early <= 1, "%d requests at once after an outage", early)
	server.Faults.Set(nil)
	s := finalLedger(t, p, "main")
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
	ended := map[string]time.Time{}
	for _, tg := range targets {
		for _, r := range tg.Requests() {
			ended[r.SHA256] = r.End
		}
	}
	halves := map[bool]int{}
	for _, r := range server.Profiles() {
		if at := ended[r.SHA256]; at.After(begin) && at.Before(begin.Add(took)) {
			halves[at.After(begin.Add(took/2))]++
		}
	}
	t.Logf("%d profiles of the first half of the outage have arrived, %d of the second", halves[false], halves[true])
	expect(t, halves[false] != 0 && halves[true] != 0, "what has arrived is not spread over the outage")
	expect(t, s["dropped"] != 0 && s["sent"] == server.Count(), "%v, and %d have arrived", s, server.Count())
}

// hasty is a server that answers before it has read the body, and then cuts the connection with a
// reset. It counts what it has answered.
type hasty struct {
	answer   string
	listener net.Listener
	mu       sync.Mutex
	answers  int
}

func startHasty(t *testing.T, answer string) *hasty {
	t.Helper()
	l, err := net.Listen("tcp", loop.Host()+":0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	h := &hasty{answer: answer, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.serve(c.(*net.TCPConn))
		}
	}()
	return h
}

func (h *hasty) serve(c *net.TCPConn) {
	defer c.Close()
	_ = c.SetReadBuffer(4096)
	r := bufio.NewReaderSize(c, 4096)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	h.mu.Lock()
	h.answers++
	h.mu.Unlock()
	_, _ = c.Write([]byte("HTTP/1.1 " + h.answer))
	time.Sleep(50 * time.Millisecond) // the other side is still sending
	_ = c.SetLinger(0)                // closing is a reset
}

func (h *hasty) answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// early is a server that answers before it has read the body.
type early struct {
	url      string
	answered func() int
}

func (s *sinkProtocol) startEarly(t *testing.T, refuses bool) *early {
	t.Helper()
	if s.protocol == "parca" {
		p := startParca(t, true)
		p.Early = &parca.Answer{}
		if refuses {
			p.Early = &parca.Answer{Code: 8, Message: "grpc: received message larger than max (2 vs. 1)"}
		}
		return &early{p.URL(), func() int { return len(p.Asked()) }}
	}
	answer := "200 OK\r\n" + s.taken
	if refuses {
		answer = "413 Too Large\r\nContent-Length: 0\r\n\r\n"
	}
	h := startHasty(t, answer)
	return &early{"http://" + h.listener.Addr().String(), h.answered}
}

// A server answers while the body is still on its way and then resets the connection. A refusal
// counts. An acceptance is doubtful, since the server has not read the profile: it is tried five times
// and never counts as sent.
func TestAnswerBeforeTheBody(t *testing.T) {
	t.Parallel()
	// Far more than the buffers of two sockets hold.
	big := newTarget(t, target.Options{Functions: 40000})
	big.SetFault("", target.Plain)
	type pair struct{ done, refused *early }
	servers, config := map[string]pair{}, ""
	for _, sink := range sinks {
		s := pair{sink.startEarly(t, false), sink.startEarly(t, true)}
		servers[sink.protocol] = s
		for name, e := range map[string]*early{sink.protocol: s.done, sink.protocol + "_refused": s.refused} {
			config += fmt.Sprintf("  - {name: %s, %s%s, remote_timeout: 2m, retry: {min_backoff: 50ms, max_backoff: 100ms}}\n", name, sink.keys(e.url), sink.large)
		}
	}
	// An instrumented program needs longer for twelve times such a profile than two seconds.
	interval := "2s"
	if instrumented(t) {
		interval = "30s"
	}
	p := run(t, scraping(job("early", "scrape_interval: "+interval+", scrape_timeout: "+interval+
		", body_size_limit: 64MiB, profiles: "+oneSnapshot, big))+config)
	p.waitMetrics("two profiles", func(m metrics) string {
		for name := range servers {
			a, b := m.ledger(name), m.ledger(name+"_refused")
			require(t, a.balance() == "" && b.balance() == "", "%v %v", a.balance(), b.balance())
			if a.sent+a.dropped < 2 || b.sent+b.dropped < 2 {
				return fmt.Sprintf("%s: %+v %+v", name, a, b)
			}
		}
		return ""
	})
	// A machine that is slow has more to send than the drain at the end has time for.
	big.Down()
	p.waitMetrics("the queues to be empty", func(m metrics) string {
		n := m.sum("profpull_write_queued_profiles") + m.sum("profpull_write_in_flight_profiles")
		return unless(n == 0, "%.0f profiles", n)
	})
	p.stop()
	// One that was repeated would have been answered twice.
	for name, s := range servers {
		l := finalLedger(t, p, name)
		expect(t, l["sent"] == 0 && 5*l["dropped"] == s.done.answered(),
			"%s answered 200: %v after %d answers", name, l, s.done.answered())
		l = finalLedger(t, p, name+"_refused")
		expect(t, l["sent"] == 0 && l["dropped"] == s.refused.answered(),
			"%s answered 413: %v after %d answers", name, l, s.refused.answered())
	}
	p.says("reason=too_large")
}
