package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
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
	if s["accepted"] == 0 || s["accepted"] != s["sent"]+s["dropped"] {
		t.Errorf("%s: the ledger does not balance: %v", name, s)
	}
	return s
}

// An endpoint without a spool is down for long (ten minutes with E2E_LONG). What waits stays
// within the queue, the rest is thinned out and counted, scrapes stay on schedule, and what has
// gathered does not fall upon the server at once when it is back.
func TestLongOutageWithoutSpool(t *testing.T) {
	t.Parallel()
	bin(t)
	const limit, concurrency, pace = 1 << 20, 8, 250 * time.Millisecond
	down, interval := 5*time.Second, 500*time.Millisecond
	if os.Getenv("E2E_LONG") != "" {
		down = 10 * time.Minute
	}
	server := newPyroscope(t, pyroscope.Options{})
	var targets []*target.Target
	for i := 0; i < 4; i++ {
		targets = append(targets, newTarget(t, target.Options{Functions: 1000}))
	}
	p := run(t, `
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: long
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("long", targets...)+fmt.Sprintf(`
write:
  - name: main
    url: %q
    concurrency: %d
    retry: {min_backoff: 50ms, max_backoff: 200ms}
    queue: {max_bytes: 1MiB}
`, server.URL(), concurrency))
	waitProfiles(t, server, 16, nil)
	server.DownBetweenRequests()
	begin, before, rss, most := time.Now(), p.metrics(), p.rss(), int64(0)
	full := func() bool {
		m := p.metrics()
		l := m.ledger("main")
		if text := l.balance(); text != "" || l.queuedBytes > limit || l.limit != limit {
			t.Fatalf("%s %+v", text, l)
		}
		if r := p.rss(); r > most {
			most = r
		}
		return m.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned") > 0
	}
	for time.Since(begin) < down {
		full()
		time.Sleep(100 * time.Millisecond)
	}
	p.wait("the queue to overflow", func() string {
		if !full() {
			return "nothing dropped"
		}
		return ""
	})
	after, took := p.metrics(), time.Since(begin)
	count := func(name string, labels ...string) float64 {
		return after.sum(name, labels...) - before.sum(name, labels...)
	}
	l := after.ledger("main")
	t.Logf("after %v: %+v, RSS %d KiB (%d KiB before)", took.Round(time.Second), l, most>>10, rss>>10)
	if lost := after.sum("profpull_write_dropped_profiles_total", "endpoint", "main", "reason", "thinned"); lost != l.dropped {
		t.Errorf("%.0f dropped, %.0f of them for the queue", l.dropped, lost)
	}
	if most > rss+limit+24<<20 && !instrumented(t) {
		t.Errorf("RSS rose from %d to %d KiB for a queue of 1 MiB", rss>>10, most>>10)
	}
	// How many there are is for people: a busy machine skips some.
	due := took.Seconds() / interval.Seconds() * float64(4*len(targets))
	got := count("profpull_scrapes_total", "result", "ok")
	t.Logf("%.0f scrapes while the endpoint was down, due were %.0f", got, due)
	if got < float64(2*4*len(targets)) {
		t.Errorf("%.0f scrapes while the endpoint was down", got)
	}
	if n := count("profpull_scrape_failures_total"); n != 0 {
		t.Errorf("%.0f scrapes failed", n)
	}

	// Answers take longer than a step of the pace, so that what is sent is what is allowed. Each step
	// allows twice as many at a time; a request that was on its way before it was read may still be
	// counted, hence the one more.
	calls := len(server.Asked())
	server.Faults.Set(&loop.Fault{Delay: 4 * pace})
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	p.wait("requests of every place", func() string {
		if n := len(server.Asked()) - calls; n < 2*concurrency {
			return fmt.Sprintf("%d requests", n)
		}
		return ""
	})
	asked := server.Asked()[calls:]
	sort.Slice(asked, func(i, j int) bool { return asked[i].Before(asked[j]) })
	// The probe comes first and is answered after its delay; only then is the outage over.
	recovered := asked[0].Add(4 * pace)
	early := 0
	for _, at := range asked[1:] {
		if at.Before(recovered) {
			t.Errorf("a request came %v before the first one was answered", recovered.Sub(at))
		}
		if at.Before(recovered.Add(pace)) {
			early++
		}
	}
	t.Logf("%d requests within the first step after the outage, %d with all places", early, concurrency)
	if early > 1 {
		t.Errorf("%d requests at once after an outage", early)
	}
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
	if halves[false] == 0 || halves[true] == 0 {
		t.Errorf("what has arrived is not spread over the outage")
	}
	if s["dropped"] == 0 || s["sent"] != server.Count() {
		t.Errorf("%v, and %d have arrived", s, server.Count())
	}
}

// The time in Retry-After is honoured as seconds and as a date, up to a cap; nonsense is not.
// At the end it is honoured as well: what may not be sent before the deadline is not sent, and nobody
// waits for the deadline in vain.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	bin(t)
	tg := newTarget(t, target.Options{})
	cases := []struct {
		name, header string
		least, most  float64 // of retry_in_s
	}{
		{"seconds", "30", 30, 30},
		{"date", time.Now().Add(60 * time.Second).UTC().Format(http.TimeFormat), 1, 60},
		{"past", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0.2},
		{"negative", "-5", 0, 0.2},
		{"text", "abc", 0, 0.2},
		{"capped", "1000000000", 300, 300},
		{"power", "1e9", 0, 0.2},
	}
	config, servers := "", map[string]*pyroscope.Server{}
	for _, c := range cases {
		s := newPyroscope(t, pyroscope.Options{})
		s.Faults.Set(&loop.Fault{Status: 429, Header: http.Header{"Retry-After": {c.header}}, Times: 1})
		servers[c.name] = s
		config += fmt.Sprintf("  - {name: %s, url: %q, retry: {min_backoff: 50ms, max_backoff: 100ms}}\n", c.name, s.URL())
	}
	p := run(t, `
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: later
    profiles: `+oneSnapshot+`
    static_configs:
`+staticTargets("later", tg)+"write:\n"+config)
	line := regexp.MustCompile(`endpoint fails, retrying.* endpoint=(\w+) .*retry_in_s=([0-9.e+-]+)`)
	said := map[string]float64{}
	p.wait("all answers", func() string {
		for _, m := range line.FindAllStringSubmatch(p.stderr.String(), -1) {
			if _, known := said[m[1]]; !known {
				said[m[1]], _ = strconv.ParseFloat(m[2], 64)
			}
		}
		if len(said) < len(cases) {
			return fmt.Sprint(said)
		}
		return ""
	})
	for _, c := range cases {
		if got := said[c.name]; got < c.least || got > c.most {
			t.Errorf("Retry-After: %s: waits %v s, expected %v to %v", c.header, got, c.least, c.most)
		}
		waits := c.least > 0
		if !waits {
			waitProfiles(t, servers[c.name], 2, nil)
		} else if n := len(servers[c.name].Asked()); n != 1 {
			t.Errorf("Retry-After: %s: %d requests, expected 1 and a rest", c.header, n)
		}
	}
	p.stop()
	for _, c := range cases {
		s := finalLedger(t, p, c.name)
		if s["sent"] != servers[c.name].Count() || (c.least > 0) != (s["dropped"] != 0) {
			t.Errorf("%s: %v, and %d have arrived", c.name, s, servers[c.name].Count())
		}
		if n := len(servers[c.name].Asked()); c.least > 0 && n != 1 {
			t.Errorf("%s: %d requests, expected 1", c.name, n)
			continue
		} else if c.least > 0 {
			continue
		}
		checkArrived(t, servers[c.name].Profiles(), nameOfPath, tg)
	}
}

// A 422 may be the server's fault or the profile's. The profile is sent again, a bounded number of
// times, and those after it are not held up; 400 and 413 are for good.
func TestDoubtfulAnswers(t *testing.T) {
	t.Parallel()
	bin(t)
	tg := newTarget(t, target.Options{})
	cases := []struct {
		name        string
		fault       loop.Fault
		reason      string  // of the drops; "" for none
		least, most float64 // requests for each profile that is over
	}{
		{"once", loop.Fault{Status: 422, Times: 1}, "", 1, 2},
		{"forever", loop.Fault{Status: 422}, "retries", 2, 20},
		{"bad", loop.Fault{Status: 400}, "rejected", 1, 1},
		{"large", loop.Fault{Status: 413}, "too_large", 1, 1},
	}
	config, servers := "", map[string]*pyroscope.Server{}
	for _, c := range cases {
		fault := c.fault
		s := newPyroscope(t, pyroscope.Options{})
		s.Faults.Set(&fault)
		servers[c.name] = s
		config += fmt.Sprintf("  - {name: %s, protocol: ingest, url: %q, retry: {min_backoff: 5ms, max_backoff: 10ms}}\n", c.name, s.URL())
	}
	p := run(t, `
global: {scrape_interval: 200ms}
scrape_configs:
  - job_name: doubt
    profiles: `+oneSnapshot+`
    static_configs:
`+staticTargets("doubt", tg)+"write:\n"+config)
	waitProfiles(t, servers["once"], 5, nil)
	for _, c := range cases[1:] {
		p.wait("drops of "+c.name, func() string {
			m := p.metrics()
			n, all := m.sum("profpull_write_dropped_profiles_total", "endpoint", c.name, "reason", c.reason), m.ledger(c.name)
			if text := all.balance(); text != "" || n != all.dropped {
				t.Fatalf("%s: %s %.0f %+v", c.name, text, n, all)
			}
			if n < 3 {
				return fmt.Sprintf("%.0f", n)
			}
			return ""
		})
	}
	// Before the end: a drain gives no profile up, however often its server refuses it.
	for _, c := range cases {
		requests := float64(len(servers[c.name].Asked()))
		accepted := p.metrics().ledger(c.name).accepted
		t.Logf("%s: %.0f requests for %.0f profiles", c.name, requests, accepted)
		if each := requests / accepted; each < c.least/2 || each > c.most {
			t.Errorf("%s: %.2f requests for each profile, expected %v to %v", c.name, each, c.least/2, c.most)
		}
	}
	p.stop()
	for _, c := range cases {
		s := finalLedger(t, p, c.name)
		if (s["dropped"] == 0) != (c.reason == "") || s["sent"] != servers[c.name].Count() {
			t.Errorf("%s: %v, and %d have arrived", c.name, s, servers[c.name].Count())
		}
	}
	if st := servers["once"].Stats(); st.ByStatus[422] != 1 || st.Requests != int64(servers["once"].Count())+1 {
		t.Errorf("422 once: %+v", st)
	}
}

// hasty is a server that answers before it has read the body, and then cuts the connection with a
// reset. It counts what it has answered.
type hasty struct {
	status   string
	listener net.Listener
	mu       sync.Mutex
	answers  int
}

func startHasty(t *testing.T, status string) *hasty {
	t.Helper()
	l, err := net.Listen("tcp", loop.Host()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	h := &hasty{status: status, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.answer(c.(*net.TCPConn))
		}
	}()
	return h
}

func (h *hasty) answer(c *net.TCPConn) {
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
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n", h.status)
	time.Sleep(50 * time.Millisecond) // the other side is still sending
	_ = c.SetLinger(0)                // closing is a reset
}

func (h *hasty) answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// A server answers while the body is still on its way and then resets the connection. The status
// line decides, and no profile is counted or sent twice.
func TestAnswerBeforeTheBody(t *testing.T) {
	t.Parallel()
	bin(t)
	// Far more than the buffers of two sockets hold.
	big := newTarget(t, target.Options{Functions: 60000})
	big.SetFault("", target.Plain)
	done, refused := startHasty(t, "200 OK"), startHasty(t, "413 Too Large")
	p := run(t, `
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
  - job_name: early
    body_size_limit: 64MiB
    profiles: `+oneSnapshot+`
    static_configs:
`+staticTargets("early", big)+`
write:
  - {name: done, url: "http://`+done.listener.Addr().String()+`", retry: {min_backoff: 50ms, max_backoff: 100ms}}
  - {name: refused, url: "http://`+refused.listener.Addr().String()+`", retry: {min_backoff: 50ms, max_backoff: 100ms}}
`)
	p.wait("two profiles", func() string {
		a, b := p.metrics().ledger("done"), p.metrics().ledger("refused")
		if a.balance() != "" || b.balance() != "" {
			t.Fatal(a.balance(), b.balance())
		}
		if a.sent+a.dropped < 2 || b.sent+b.dropped < 2 {
			return fmt.Sprintf("%+v %+v", a, b)
		}
		return ""
	})
	m := p.metrics()
	t.Logf("%.0f bytes of profiles sent", m.sum("profpull_write_sent_bytes_total", "endpoint", "done"))
	if n := m.sum("profpull_write_retries_total"); n != 0 {
		t.Errorf("%.0f attempts were repeated", n)
	}
	p.stop()
	if s := finalLedger(t, p, "done"); s["dropped"] != 0 || s["sent"] != done.answered() {
		t.Errorf("answered 200: %v after %d answers", s, done.answered())
	}
	if s := finalLedger(t, p, "refused"); s["sent"] != 0 || s["dropped"] != refused.answered() {
		t.Errorf("answered 413: %v after %d answers", s, refused.answered())
	}
	p.says("reason=too_large")
}
