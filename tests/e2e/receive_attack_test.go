package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// goodPushes sends profiles one after the other, by /ingest and Push in turn, until it is stopped. Each
// must be taken, whatever else goes on.
type goodPushes struct {
	cancel context.CancelFunc
	done   chan struct{}
	sent   int // after stop
	errs   []string
}

func startGoodPushes(base string) *goodPushes {
	ctx, cancel := context.WithCancel(context.Background())
	g := &goodPushes{cancel: cancel, done: make(chan struct{})}
	client := http.Client{Timeout: patience(), Transport: &http.Transport{DisableKeepAlives: true}}
	raw := fakepprof.Gzip(fakepprof.Make("cpu", fakepprof.Options{}))
	go func() {
		defer close(g.done)
		for ; ctx.Err() == nil && len(g.errs) < 5; g.sent++ {
			path, contentType, body := fmt.Sprintf("/ingest?name=good{n=%d}", g.sent), "", raw
			if g.sent%2 == 1 {
				path, contentType = "/push.v1.PusherService/Push", "application/proto"
				body = pushOf(raw, "process_cpu", "good", "n", fmt.Sprint(g.sent))
			}
			resp, err := client.Post(base+path, contentType, bytes.NewReader(body))
			if err != nil {
				g.errs = append(g.errs, err.Error())
				continue
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				g.errs = append(g.errs, resp.Status+" "+string(text))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return g
}

// stop ends the pushes and waits for all of them at the destination.
func (g *goodPushes) stop(t *testing.T, p *program, s *pyroscope.Server) {
	t.Helper()
	g.cancel()
	<-g.done
	expect(t, len(g.errs) == 0, "good pushes failed: %q", g.errs)
	expect(t, g.sent != 0, "nothing good was pushed")
	good := func(r *pyroscope.Received) bool { return r.Labels["service_name"] == "good" }
	numbers := map[string]bool{}
	for _, r := range waitProfiles(t, s, g.sent, good) {
		numbers[r.Labels["n"]] = true
	}
	expect(t, len(numbers) == g.sent, "%d of %d good pushes arrived", len(numbers), g.sent)
	text := p.metrics().ledger("main").balance()
	expect(t, text == "", "%s", text)
}

// pushOf is a PushRequest of one profile.
func pushOf(raw []byte, name, service string, more ...string) []byte {
	series := fakepprof.AppendBytes(nil, 1, pair("__name__", name))
	series = fakepprof.AppendBytes(series, 1, pair("service_name", service))
	for i := 0; i+1 < len(more); i += 2 {
		series = fakepprof.AppendBytes(series, 1, pair(more[i], more[i+1]))
	}
	series = fakepprof.AppendBytes(series, 2, fakepprof.AppendBytes(nil, 1, raw))
	return fakepprof.AppendBytes(nil, 1, series)
}

// Ten thousand connections to the receiving server, from 250 addresses: a quarter says nothing, the
// others are in the middle of a head or of a body that drips. Good pushes among them all arrive.
func TestPushesAmongTenThousandConnections(t *testing.T) {
	t.Parallel()
	const places, flood = 1000, 10000
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, fmt.Sprintf(", max_connections: %d, max_connections_per_address: %d", places, places/2),
		fmt.Sprintf("{name: main, url: %q}", s.URL()))
	receiver := strings.TrimPrefix(base, "http://")
	before := p.rss()
	good := startGoodPushes(base)
	conns := make([]net.Conn, 0, places*2)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := 0; i < flood; i++ {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 2, byte(1+i%250))}, Timeout: patience()}
		c, err := d.Dial("tcp", receiver)
		require(t, err == nil, "connection %d: %v", i, err)
		_, _ = io.WriteString(c, []string{
			"", "POST /ingest?name=a HTTP/1.1\r\nX: ",
			"POST /ingest?name=a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n\x1f",
			"POST /push.v1.PusherService/Push HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\x0a\r\n",
		}[i%4])
		if i%4 >= 2 && i >= places {
			_, _ = io.WriteString(conns[len(conns)-2], "1") // an older one drips
		}
		if conns = append(conns, c); len(conns) == cap(conns) {
			p.waitMetric(float64(i+1-places), "profpull_receive_connections_ended_total")
			for _, old := range conns[:places] {
				old.Close()
			}
			conns = append(conns[:0], conns[places:]...)
		}
	}
	m := p.metrics()
	atMost(t, "connections", m.sum("profpull_receive_connections"), places)
	atLeast(t, "connections that made room",
		m.sum("profpull_receive_connections_ended_total", "reason", "crowded"), flood-3*places)
	grown := p.rss() - before
	good.stop(t, p, s)
	t.Logf("%d places cost %d KiB, %d good pushes", places, grown>>10, good.sent)
	expect(t, instrumented(t) || grown <= 64<<20, "the memory has grown by %d MiB", grown>>20)
}

// zeros is what n bytes of zeros are in gzip.
func zeros(n int) []byte { return gzipped(make([]byte, n)) }

// Bodies against the receiving APIs that are small until they are inflated, that have many parts, or
// are all nesting. Each is refused for good, within a stated memory, while good pushes go on.
func TestReceivedBodiesThatAttack(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
	bomb := zeros(256 << 20)
	bombForm, bombParts := form(t, "profile", string(bomb))
	many := make([]string, 0, 200000)
	for i := 0; i < 100000; i++ {
		many = append(many, "p", "")
	}
	manyForm, manyParts := form(t, many...)
	const push, ingest = "/push.v1.PusherService/Push", "/ingest?name=bad"
	deep := strings.Repeat("[", 1<<20)
	field := append([]byte{0x1a}, 0xf0, 0xff, 0xff, 0x1f) // field 3, 64 MiB less 16 bytes
	field = append(field, make([]byte, 64<<20-16)...)
	zipped := []string{"Content-Encoding", "gzip"}

	before := p.rss()
	good := startGoodPushes(base)
	for _, c := range []struct {
		what, path, contentType string
		body                    []byte
		header                  []string
	}{
		{"a profile of gzip in Push", push, "application/proto", pushOf(bomb, "process_cpu", "bad"), nil},
		{"a part of gzip", ingest, bombForm, bombParts, nil},
		{"a body of gzip", ingest, "", bomb, nil},
		{"Push, encoded", push, "application/proto", bomb, zipped},
		{"/ingest, encoded", ingest, "", bomb, zipped},
		{"gzip in gzip at Push", push, "application/proto", gzipped(pushOf(bomb, "process_cpu", "bad")), zipped},
		{"gzip in gzip at /ingest", ingest, "", gzipped(bomb), zipped},
		{"gzip in gzip as a profile", ingest, "", gzipped(bomb), nil},
		{"a recording of gzip", ingest + "&format=jfr", "", bomb, nil},
		{"gzip at profefe's API", "/api/0/profiles?service=bad&type=cpu", "", bomb, nil},
		{"gzip at /v1/pprof", "/v1/pprof?service_name=bad", "", bomb, nil},
		{"100,000 parts", ingest, manyForm, manyParts, nil},
		{"JSON that nests", push, "application/json", []byte(deep), nil},
		{"JSON that nests in a field", push, "application/json", []byte(`{"series":` + deep), nil},
		{"JSON that nests in an unknown field", push, "application/json", []byte(`{"x":` + deep), nil},
		{"one field of 64 MiB as a profile", ingest, "", field, nil},
	} {
		status, text := post(t, base+c.path, c.contentType, c.body, c.header...)
		// Connect's word for what is too large is resource_exhausted, which is 429.
		limit := status == 429 && c.path == push && strings.Contains(text, `"code":"resource_exhausted"`)
		expect(t, status/100 == 4 && status != 408 && (status != 429 || limit) && len(text) <= 4096,
			"%s: %d, %d bytes: %.200s", c.what, status, len(text), text)
	}
	grown := p.rss() - before
	good.stop(t, p, s)
	t.Logf("the memory grew by %d KiB, %d good pushes", grown>>10, good.sent)
	// The defaults: bodies_max_bytes, and max_bytes for each of the two requests that are worked on.
	expect(t, instrumented(t) || grown <= (128+2*128)<<20, "the memory has grown by %d MiB", grown>>20)
	for _, r := range s.Profiles() {
		expect(t, r.Labels["service_name"] == "good", "handed on: %v", r.Labels)
	}
}

// Bodies of a byte now and then end with 408, and nobody else has to wait for them.
func TestReceivedBodiesThatDrip(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, ", request_timeout: 2s", fmt.Sprintf("{name: main, url: %q}", s.URL()))
	good := startGoodPushes(base)
	var wg sync.WaitGroup
	for i := 0; i < 50; i++ {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		must(t, err)
		defer c.Close()
		path := []string{"/ingest?name=a", "/push.v1.PusherService/Push", "/api/0/profiles?service=a&type=cpu"}[i%3]
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: 100000\r\n\r\n")
		ended := make(chan struct{})
		wg.Add(2)
		go func() {
			defer wg.Done()
			defer close(ended)
			answer, _ := io.ReadAll(c)
			expect(t, strings.HasPrefix(string(answer), "HTTP/1.1 408"), "%s: %q", path, answer)
		}()
		go func() {
			defer wg.Done()
			for {
				select {
				case <-ended:
					return
				case <-time.After(time.Second):
					_, _ = io.WriteString(c, "\x0a")
				}
			}
		}()
	}
	wg.Wait()
	good.stop(t, p, s)
	equal(t, "slow bodies counted",
		p.metrics().sum("profpull_receive_requests_refused_total", "reason", "slow_body"), 50)
}

// TestScrapesInTheStoreOfAnother checks that a profile that one profpull scrapes and pushes to another
// one is kept there with the same bytes and labels, by every protocol: the store's are compared with those
// of a fake Pyroscope, which gets them directly.
func TestScrapesInTheStoreOfAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, protocol, path string }{
		{"push", "push", ""},
		{"ingest", "ingest", ""},
		{"deepflow", "ingest", "/api/v1/profile"},
		{"profefe", "profefe", ""},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, address := runCollector(t)
			direct := startPyroscope(t, pyroscope.Options{})
			tg := newTarget(t, target.Options{Functions: 50})
			scraper := run(t, fmt.Sprintf(`
scrape_configs:
- job_name: shop
  scrape_interval: 1s
  scrape_timeout: 1s
  static_configs: [{targets: [%q], labels: {service_name: cart, zone: "a b"}}]
  profiles: {process_cpu: {enabled: false}}
write:
- {name: store, url: "http://%s%s", protocol: %s}
- {name: direct, url: %q}
`, tg.Addr(), address, c.path, c.protocol, direct.URL()))
			waitProfiles(t, direct, 8, nil)
			scraper.stop() // sends what is queued
			got := direct.Profiles()
			var kept map[[sha256.Size]byte]map[string]string
			store.wait("the store to have them", func() string {
				kept = inTheStore(t, store)
				missing := ""
				for _, r := range got {
					if kept[sha256.Sum256(r.Raw)] == nil {
						missing += " " + r.Name()
					}
				}
				return missing
			})
			for _, r := range got {
				labels := kept[sha256.Sum256(r.Raw)]
				for name, value := range r.Labels {
					if strings.HasPrefix(name, "__") {
						continue
					}
					expect(t, labels[name] == value,
						"%s: label %s is %q in the store, %q directly", r.Name(), name, labels[name], value)
				}
			}
			n := store.metrics().sum("profpull_receive_profiles_total", "result", "accepted", "protocol", c.name)
			expect(t, int(n) == len(got), "%v accepted of %s, %d came directly", n, c.name, len(got))
		})
	}
}

// inTheStore returns the labels of each profile of the service cart, by its bytes.
func inTheStore(t *testing.T, p *program) map[[sha256.Size]byte]map[string]string {
	t.Helper()
	const form = "2006-01-02T15:04:05"
	now := time.Now().UTC()
	kept := map[[sha256.Size]byte]map[string]string{}
	for _, kind := range []string{"heap", "mutex", "block", "goroutine"} {
		path := "/api/0/profiles?service=cart&type=" + kind + "&from=" + now.Add(-time.Hour).Format(form) +
			"&to=" + now.Add(time.Minute).Format(form)
		if status, _ := p.get(path); status == 404 {
			continue // none of this type
		}
		for _, l := range listProfiles(t, p, path) {
			status, raw := p.get("/api/0/profiles/" + l.ID)
			require(t, status == 200, "%s: %d %s", l.ID, status, raw)
			labels := map[string]string{"service_name": l.Service}
			for _, pair := range l.Labels {
				labels[pair.Key] = pair.Value
			}
			kept[sha256.Sum256([]byte(raw))] = labels
		}
	}
	return kept
}
