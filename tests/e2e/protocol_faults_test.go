package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// sinkProtocol is one whose destination answers over a network, and so can fail in all the ways that are
// tested here. A row is what a new protocol needs for these tests.
type sinkProtocol struct {
	protocol string
	// Keys of its endpoints besides the URL, and keys for large profiles.
	more, large string
	together    bool // several profiles go in a request
	start       func(t *testing.T) *destination
	// The answer of a server of HTTP/1.1, after its first line, to a profile that it accepts.
	taken string
}

var sinks = []sinkProtocol{
	{protocol: "push", start: startPyroscopeSink, taken: "Content-Type: application/proto\r\nContent-Length: 0\r\n\r\n"},
	{protocol: "ingest", start: startPyroscopeSink, taken: "Content-Length: 0\r\n\r\n"},
	{protocol: "profefe", taken: "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 35\r\n\r\n{\"code\":200,\"body\":{\"id\":\"bpc000\"}}",
		start: func(t *testing.T) *destination {
			s := startProfefe(t)
			return &destination{s.URL(), &s.Faults, func() int { return len(s.Profiles()) }, s}
		}},
	{protocol: "otlp", together: true, taken: "Content-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
		large: ", otlp: {compression: none, max_request_size: 64KiB}", // each alone
		start: func(t *testing.T) *destination {
			s := startOtlp(t)
			return &destination{s.URL(), &s.Faults, func() int { return len(s.Profiles()) }, s}
		}},
	{protocol: "s3", taken: "Content-Length: 0\r\n\r\n",
		start: func(t *testing.T) *destination {
			s := startS3(t)
			return &destination{s.URL(), &s.Faults, func() int { return len(s.Objects()) }, s}
		}},
	{protocol: "parca", more: ", tls_config: {insecure_skip_verify: true}",
		start: func(t *testing.T) *destination {
			s := startParca(t, true)
			return &destination{s.URL(), &s.Faults, s.Count, s}
		}},
}

// localProtocols have no server that could answer late, wrongly or not at all. What a disk can do is in
// the tests of the spool, of the store and of TestHangingDisk.
var localProtocols = []string{"file", "store"}

func startPyroscopeSink(t *testing.T) *destination {
	s := newPyroscope(t, pyroscope.Options{})
	return &destination{s.URL(), &s.Faults, s.Count, s}
}

// keys are those of an endpoint with this URL.
func (s *sinkProtocol) keys(url string) string {
	if s.protocol == "s3" {
		return fmt.Sprintf("url: s3://profiles, s3: {%s}", s3Keys(url))
	}
	return fmt.Sprintf("protocol: %s, url: %q%s", s.protocol, url, s.more)
}

// destination is a strict server of a protocol. What a destination has to stand is the same for all of them.
type destination struct {
	url    string
	faults *loop.Faults
	count  func() int // profiles that were taken
	server interface {
		DownBetweenRequests()
		Up() error
	}
}

// Every protocol that the program knows is in one of the tables above, and so in each test of faults.
func TestFaultsOfEveryProtocol(t *testing.T) {
	t.Parallel()
	tested := append([]string{"auto"}, localProtocols...)
	for _, s := range sinks {
		tested = append(tested, s.protocol)
	}
	r := call(t, "", "check", "--config", writeConfig(t, "write: [{url: 'http://a', protocol: none-of-these}]\n"))
	_, list, _ := strings.Cut(r.stderr+r.stdout, "write[0].protocol: expected ")
	list, _, _ = strings.Cut(list, ", got ")
	var known []string
	for _, quoted := range regexp.MustCompile(`"([a-z0-9]+)"`).FindAllStringSubmatch(list, -1) {
		known = append(known, quoted[1])
	}
	sort.Strings(tested)
	sort.Strings(known)
	expect(t, reflect.DeepEqual(tested, known), "the program knows %v, the tests %v", known, tested)
}

// The tests that docs/testing.md names exist.
func TestTestsOfTheDocumentExist(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../docs/testing.md")
	var source strings.Builder
	for _, pattern := range []string{"*_test.go", "fakes/*/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			b := readFile(t, file)
			source.Write(b)
		}
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
		expect(t, strings.Contains(source.String(), "func "+name+"("), "%s is not there", name)
	}
	for _, name := range regexp.MustCompile(`\btest_\w+[*]?`).FindAllString(string(text), -1) {
		files, _ := filepath.Glob("../unit/*/" + name + ".c")
		expect(t, len(files) != 0, "%s is not there", name)
	}
}

// toSinks is a configuration with one target and these endpoints, each with keys of its own. Another
// job may follow.
func toSinks(tg *target.Target, interval, endpoints string) string {
	return `
global: {scrape_interval: ` + interval + `}
write:
` + endpoints + `
scrape_configs:
  - job_name: sinks
    profiles: ` + oneSnapshot + `
    static_configs:
` + staticTargets("sinks", tg)
}

// Targets that hang, drip, break off, refuse or answer with something else give nothing to any
// destination; what a good one beside them sends arrives at each, once.
func TestBadTargetsReachNoDestination(t *testing.T) {
	t.Parallel()
	good := newTarget(t, target.Options{})
	var targets []*target.Target
	for _, fault := range []target.Fault{target.Hang, target.Drip, target.CutBody, target.CPUInUse, target.HTML, target.BadGzip} {
		bad := newTarget(t, target.Options{})
		bad.SetFault("", fault)
		targets = append(targets, bad)
	}
	servers, names := map[string]*destination{}, localProtocols
	config := fmt.Sprintf("  - {name: file, url: \"file://%s\"}\n  - {name: store, url: \"store://%s\"}\n", t.TempDir(), t.TempDir())
	for _, s := range sinks {
		servers[s.protocol] = s.start(t)
		names = append(names[:len(names):len(names)], s.protocol)
		config += fmt.Sprintf("  - {name: %s, %s}\n", s.protocol, s.keys(servers[s.protocol].url))
	}
	p := run(t, toSinks(good, "500ms", config)+`
  - job_name: bad
    scrape_timeout: 1s
    profiles: `+oneSnapshot+`
    static_configs:
`+staticTargets("bad", targets...))
	p.waitMetrics("failures and profiles", func(m metrics) string {
		for _, reason := range []string{"timeout", "cut", "cpu_in_use", "not_pprof_html", "bad_gzip"} {
			if m.sum("profpull_scrape_failures_total", "reason", reason) == 0 {
				return "no failure with reason " + reason
			}
		}
		l := m.ledger("push")
		return unless(l.sent >= 3, "%+v", l)
	})
	good.SetFault("", target.NotFound)
	p.wait("the last profile", func() string {
		for _, r := range good.Requests() {
			if r.End.IsZero() {
				return "a request is being answered"
			}
		}
		for _, name := range names {
			if l := p.metrics().ledger(name); int(l.accepted) != len(good.Sent()) {
				return fmt.Sprintf("%s: %.0f of %d", name, l.accepted, len(good.Sent()))
			}
		}
		return ""
	})
	p.stop()
	for _, name := range names {
		s := finalLedger(t, p, name)
		expect(t, s["dropped"] == 0 && s["sent"] == len(good.Sent()), "%s: %v of %d", name, s, len(good.Sent()))
		if d := servers[name]; d != nil && d.count() != len(good.Sent()) {
			t.Errorf("%s: %d have arrived of %d", name, d.count(), len(good.Sent()))
		}
	}
}

// The time in Retry-After is honoured as seconds and as a date, up to a cap; nonsense is not.
// At the end it is honoured as well: what may not be sent before the deadline is not sent, and nobody
// waits for the deadline in vain.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	type waiting struct {
		name, header string
		least, most  float64 // of retry_in_s
		*destination
	}
	var cases []*waiting
	config := ""
	for _, s := range sinks {
		for _, c := range []waiting{
			{"seconds", "30", 30, 30, nil},
			{"text", "abc", 0, 0.2, nil},
			{"date", time.Now().Add(60 * time.Second).UTC().Format(http.TimeFormat), 1, 60, nil},
			{"past", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0.2, nil},
			{"negative", "-5", 0, 0.2, nil},
			{"capped", "1000000000", 300, 300, nil},
			{"power", "1e9", 0, 0.2, nil},
		} {
			if s.protocol != "push" && c.name != "seconds" && c.name != "text" {
				continue
			}
			c := c
			c.name += "_" + s.protocol
			c.destination = s.start(t)
			c.faults.Set(&loop.Fault{Status: 429, Header: http.Header{"Retry-After": {c.header}}, Times: 1})
			cases = append(cases, &c)
			config += fmt.Sprintf("  - {name: %s, %s, concurrency: 1, retry: {min_backoff: 50ms, max_backoff: 100ms}}\n", c.name, s.keys(c.url))
		}
	}
	p := run(t, toSinks(tg, "500ms", config))
	line := regexp.MustCompile(`(?:endpoint fails|profile refused), retrying.* endpoint=(\w+) .*retry_in_s=([0-9.e+-]+)`)
	said := map[string]float64{}
	p.wait("all answers", func() string {
		for _, m := range line.FindAllStringSubmatch(p.stderr.String(), -1) {
			if _, known := said[m[1]]; !known {
				said[m[1]], _ = strconv.ParseFloat(m[2], 64)
			}
		}
		return unless(len(said) >= len(cases), "%v", said)
	})
	for _, c := range cases {
		got := said[c.name]
		expect(t, got >= c.least && got <= c.most,
			"%s: Retry-After: %s: waits %v s, expected %v to %v", c.name, c.header, got, c.least, c.most)
		if c.least > 0 {
			n := c.faults.Calls()
			expect(t, n == 1, "%s: Retry-After: %s: %d requests, expected 1 and a rest", c.name, c.header, n)
			continue
		}
		reaches(t, "profiles of "+c.name, 2, func() int { return c.count() })
	}
	p.stop()
	for _, c := range cases {
		s := finalLedger(t, p, c.name)
		expect(t, s["sent"] <= c.count() && (c.least > 0) == (s["dropped"] != 0),
			"%s: %v, and %d have arrived", c.name, s, c.count())
		n := c.faults.Calls()
		expect(t, c.least == 0 || n == 1, "%s: %d requests, expected 1", c.name, n)
	}
}

// fourOfFive matches all requests but each fifth. A server that refuses every request fails as a
// whole, and loses no profile: a slow machine sees that before three profiles are given up.
func fourOfFive() func(*http.Request) bool {
	n := 0
	return func(*http.Request) bool {
		n++
		return n%5 != 0
	}
}

// A 422 may be the server's fault or the profile's. The profile is sent again, a bounded number of
// times, and those after it are not held up; 400 and 413 are for good.
func TestDoubtfulAnswers(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	type doubt struct {
		name   string
		fault  loop.Fault
		reason string  // of the drops; "" for none
		most   float64 // requests for each profile
		*destination
		together bool
	}
	var cases []*doubt
	config := ""
	for _, s := range sinks {
		for _, c := range []doubt{
			{"once", loop.Fault{Status: 422, Times: 1}, "", 2, nil, s.together},
			{"often", loop.Fault{Status: 422, Match: fourOfFive()}, "retries", 20, nil, s.together},
			{"bad", loop.Fault{Status: 400}, "rejected", 1, nil, s.together},
			{"large", loop.Fault{Status: 413}, "too_large", 1, nil, s.together},
		} {
			c := c
			c.name += "_" + s.protocol
			c.destination = s.start(t)
			if c.together {
				c.most *= 2 // the halves of a request that is refused
			}
			c.faults.Set(&c.fault)
			cases = append(cases, &c)
			config += fmt.Sprintf("  - {name: %s, %s, retry: {min_backoff: 5ms, max_backoff: 10ms}}\n", c.name, s.keys(c.url))
		}
	}
	p := run(t, toSinks(tg, "200ms", config))
	for _, c := range cases {
		c := c
		p.waitMetrics("the end of three profiles of "+c.name, func(m metrics) string {
			n, all := m.sum("profpull_write_dropped_profiles_total", "endpoint", c.name, "reason", c.reason), m.ledger(c.name)
			text := all.balance()
			require(t, text == "" && (c.reason == "" || n == all.dropped), "%s: %s %.0f %+v", c.name, text, n, all)
			return unless((c.reason != "" || all.sent >= 3) && (c.reason == "" || n >= 3), "%+v", all)
		})
	}
	// Before the end: a drain gives no profile up, however often its server refuses it.
	for _, c := range cases {
		requests := float64(c.faults.Calls())
		accepted := p.metrics().ledger(c.name).accepted
		t.Logf("%s: %.0f requests for %.0f profiles", c.name, requests, accepted)
		expect(t, requests/accepted <= c.most,
			"%s: %.0f requests for %.0f profiles, expected at most %v each", c.name, requests, accepted, c.most)
		expect(t, c.fault.Status != 422 || c.together || requests >= 4,
			"%s: %.0f requests: no profile was sent again", c.name, requests)
	}
	p.stop()
	for _, c := range cases {
		s := finalLedger(t, p, c.name)
		expect(t, (s["dropped"] == 0) == (c.reason == "") && s["sent"] <= c.count(),
			"%s: %v, and %d have arrived", c.name, s, c.count())
		calls := c.faults.Calls()
		expect(t, c.reason != "" || c.together || calls == c.count()+1,
			"%s: %d requests for %d profiles, one of them twice", c.name, calls, c.count())
	}
}

// Beside each destination stands one of the same protocol that hangs; then all of them are down until
// their queues run over. None holds up another one, memory stays within the queues, what is lost is
// counted, and the rest arrives.
func TestOutageOfEachProtocol(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{Functions: 1000})
	good, hanging := map[string]*destination{}, map[string]*destination{}
	config := ""
	for _, s := range sinks {
		protocol := s.protocol
		good[protocol], hanging[protocol] = s.start(t), s.start(t)
		hanging[protocol].faults.Set(&loop.Fault{Hang: true})
		config += fmt.Sprintf(`  - {name: %[1]s, %[2]s, retry: {min_backoff: 20ms, max_backoff: 100ms}, queue: {max_bytes: 1MiB}}
  - {name: hanging_%[1]s, %[3]s, remote_timeout: 2s, retry: {min_backoff: 20ms, max_backoff: 100ms}}
`, protocol, s.keys(good[protocol].url), s.keys(hanging[protocol].url))
	}
	p := run(t, toSinks(tg, "100ms", config))
	each := func(what string, check func(name string, m metrics, l ledger) bool) {
		t.Helper()
		p.waitMetrics(what, func(m metrics) string {
			for protocol := range good {
				l := m.ledger(protocol)
				text := l.balance()
				require(t, text == "" && l.queuedBytes <= l.limit, "%s: %s %+v", protocol, text, l)
				if !check(protocol, m, l) {
					return fmt.Sprintf("%s: %+v", protocol, l)
				}
			}
			return ""
		})
	}
	each("profiles beside a destination that hangs", func(name string, m metrics, l ledger) bool {
		n := m.ledger("hanging_" + name).sent
		require(t, n == 0, "%.0f profiles went to hanging_%s", n, name)
		return l.sent >= 3 && hanging[name].faults.Calls() > 0
	})
	for _, s := range good {
		s.server.DownBetweenRequests()
	}
	each("queues that run over", func(name string, m metrics, l ledger) bool {
		return m.sum("profpull_write_dropped_profiles_total", "endpoint", name, "reason", "thinned") > 0
	})
	sent := map[string]int{}
	for name, s := range good {
		sent[name] = s.count()
		hanging[name].faults.Set(nil)
		must(t, s.server.Up())
	}
	each("what was queued", func(name string, m metrics, l ledger) bool {
		return good[name].count() > sent[name]+3 && m.ledger("hanging_"+name).sent > 0
	})
	p.stop()
	for name := range good {
		for endpoint, s := range map[string]*destination{name: good[name], "hanging_" + name: hanging[name]} {
			// An answer that came too late, or was lost with the server, makes a profile arrive twice.
			sum := finalLedger(t, p, endpoint)
			expect(t, sum["sent"] <= s.count(), "%s: %v, and %d have arrived", endpoint, sum, s.count())
		}
	}
}

// killWithSpools runs the program until every endpoint has more profiles on disk than it had at the last
// kill, and kills it. It returns how many they are: what the program once counted there must be found again.
func killWithSpools(t *testing.T, config string, before map[string]float64) map[string]float64 {
	t.Helper()
	p := run(t, config)
	saved := map[string]float64{}
	p.waitMetrics("more profiles on disk", func(m metrics) string {
		for _, s := range sinks {
			saved[s.protocol] = m.sum("profpull_write_spool_profiles", "endpoint", s.protocol)
			if saved[s.protocol] < before[s.protocol]+5 {
				return fmt.Sprintf("%s: %.0f, %.0f before", s.protocol, saved[s.protocol], before[s.protocol])
			}
		}
		return ""
	})
	p.kill()
	return saved
}

// A process that is killed during an outage leaves its profiles on disk, and the next one sends all of
// them.
func TestSpoolOfEachProtocol(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	servers := map[string]*destination{}
	config := ""
	for _, s := range sinks {
		d := s.start(t)
		servers[s.protocol] = d
		d.faults.Set(&loop.Fault{Status: 503})
		config += fmt.Sprintf("  - {name: %s, %s, retry: {min_backoff: 20ms, max_backoff: 100ms}, queue: {spool_directory: %s, fsync: always}}\n",
			s.protocol, s.keys(d.url), t.TempDir())
	}
	config = toSinks(tg, "200ms", config)
	kills := 1
	if os.Getenv("E2E_LONG") == "1" {
		kills = 200
	}
	saved := map[string]float64{}
	for i := 0; i < kills; i++ {
		saved = killWithSpools(t, config, saved)
	}
	for name, s := range servers {
		n := s.count()
		require(t, n == 0, "%d profiles arrived at %s", n, name)
		s.faults.Set(nil)
	}
	p := run(t, config)
	p.waitMetrics("what was on disk", func(m metrics) string {
		for name := range servers {
			if l := m.ledger(name); l.replayed < saved[name] || l.sent < l.replayed {
				return fmt.Sprintf("%s: %+v, %.0f were on disk", name, l, saved[name])
			}
		}
		return ""
	})
	p.stop()
	for name, s := range servers {
		sum := endpointSummary(t, p, name)
		expect(t, sum["dropped"] == 0 && sum["sent"] == sum["accepted"]+sum["replayed"] && sum["sent"] <= s.count(),
			"%s: %v, and %d have arrived", name, sum, s.count())
	}
}
