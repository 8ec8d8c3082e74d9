package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/parca"
	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/target"
)

func startParca(t *testing.T, withTLS bool) *parca.Server {
	t.Helper()
	s, err := parca.Start(withTLS)
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

// oddProfile is one that profilers write and Parca does not take: its ids do not count up from 1, and
// it has no period type.
func oddProfile() []byte {
	appendInt, appendBytes := fakepprof.AppendInt, fakepprof.AppendBytes
	var b []byte
	for _, s := range []string{"", "samples", "count", "main"} {
		b = appendBytes(b, 6, []byte(s))
	}
	b = appendBytes(b, 1, appendInt(appendInt(nil, 1, 1), 2, 2))
	b = appendBytes(b, 2, appendInt(appendInt(nil, 1, 900), 2, 42))
	b = appendBytes(b, 4, appendBytes(appendInt(nil, 1, 900), 4, appendInt(appendInt(nil, 1, 70), 2, 5)))
	b = appendBytes(b, 5, appendInt(appendInt(nil, 1, 70), 2, 3))
	return appendInt(b, 9, 1795230000e9)
}

// Every kind of profile of a real program arrives at a strict server byte for byte, with and without
// TLS; profiles that the server could not read are sent with what they lack.
func TestParcaReal(t *testing.T) {
	t.Parallel()
	dir := realFiles(t)
	for _, withTLS := range []bool{false, true} {
		s := startParca(t, withTLS)
		s.Token = "hunter2"
		ca := writeFile(t, t.TempDir(), "ca.pem", []byte(s.Authority))
		config := writeConfig(t, `
write:
  - url: "`+s.URL()+`"
    protocol: parca
    authorization: {credentials: hunter2}
    tls_config: {ca_file: "`+ca+`"}
`)
		r := call(t, "", "import", "--config", config, "--name", "shop/cart", "--label", "team=d", dir)
		require(t, r.code == exitDone && strings.Contains(r.stdout, "sent 6 profiles") && len(s.Refused()) == 0,
			"exit code %d\n%s%s%v", r.code, r.stdout, r.stderr, s.Refused())
		want, seen := map[string]string{}, map[string]bool{}
		for kind, data := range realProfiles(t) {
			want[kind] = string(data)
		}
		for _, p := range s.Profiles() {
			name := p.Labels["__name__"]
			expect(t, string(p.Raw) == want[name], "%s is not what was sent", name)
			seen[p.Labels["__name__"]] = true
			hasLabels(t, p.Labels, "service_name", "shop/cart", "team", "d", "__delta__", "")
		}
		expect(t, len(seen) == len(want), "%d kinds came, expected %d", len(seen), len(want))
		for _, odd := range [][]byte{oddProfile(), fakepprof.Gzip(oddProfile())} {
			before := s.Count()
			file := writeFile(t, t.TempDir(), "odd.pb", odd)
			expectCall(t, exitDone, "sent 1 profile", "*", "import", "--config", config, "--name", "odd", "--type", "mine", file)
			got := s.Profiles()[before:]
			expect(t, len(got) != 0 && got[0].Sums()["samples"] == 42 && fmt.Sprint(got[0].Functions) == "[main]",
				"arrived %+v", got)
		}
		expect(t, s.Crashes() == 0, "%d crashes", s.Crashes())
	}
}

// Profiles share connections, with TLS and without: none is made for one that can take another's.
func TestParcaKeepsConnections(t *testing.T) {
	t.Parallel()
	config := toSinks(newTarget(t, target.Options{}), "100ms", "")
	const concurrency = 2
	servers := map[string]*parca.Server{"plain": startParca(t, false), "secure": startParca(t, true)}
	list := ""
	for name, s := range servers {
		list += fmt.Sprintf("  - {name: %s, url: %q, protocol: parca, concurrency: %d, tls_config: {insecure_skip_verify: true}}\n", name, s.URL(), concurrency)
	}
	p := run(t, strings.Replace(config, "write:\n", "write:\n"+list, 1))
	arrive := func(n int) {
		p.wait("profiles", func() string {
			for name, s := range servers {
				if s.Count() < n {
					return fmt.Sprintf("%s: %d of %d", name, s.Count(), n)
				}
			}
			return ""
		})
	}
	arrive(10)
	made := func() float64 {
		return p.metrics().sum("profpull_http_connections_total", "client", "write", "kind", "new")
	}
	n := made()
	expect(t, n >= 2 && n <= 2*concurrency, "%.0f connections", n)
	// The kept connection is gone: each profile that meets this is sent on another one.
	for _, s := range servers {
		s.DownBetweenRequests()
		must(t, s.Up())
	}
	arrive(20)
	p.stop()
	for name, s := range servers {
		sum := finalLedger(t, p, name)
		expect(t, sum["dropped"] == 0 && sum["sent"] <= s.Count(), "%s: %v, and %d have arrived", name, sum, s.Count())
	}
}

// A connection on which no answer comes is left: the profiles that wait there, and those after them, go
// out on another one.
func TestParcaLeavesAConnectionThatHangs(t *testing.T) {
	t.Parallel()
	s := startParca(t, true)
	var mu sync.Mutex
	first, waited := "", 0
	s.Faults.Set(&loop.Fault{Hang: true, Match: func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if first == "" {
			first = r.RemoteAddr
		}
		if r.RemoteAddr == first {
			waited++
		}
		return r.RemoteAddr == first
	}})
	p := run(t, toSinks(newTarget(t, target.Options{}), "500ms", fmt.Sprintf(
		"  - {name: main, protocol: parca, url: %q, remote_timeout: 1s, retry: {min_backoff: 50ms, max_backoff: 100ms},\n"+
			"     tls_config: {insecure_skip_verify: true}}\n", s.URL())))
	reaches(t, "profiles", 3, func() int { return s.Count() })
	s.Faults.Set(nil)
	p.stop()
	sum := finalLedger(t, p, "main")
	expect(t, sum["dropped"] == 0 && sum["sent"] <= s.Count() && waited != 0,
		"%v, %d have arrived, %d had to wait", sum, s.Count(), waited)
}

// TestParcaRefusals checks the meaning of each status of gRPC, wherever it stands in the answer, and the
// message that the user reads.
func TestParcaRefusals(t *testing.T) {
	t.Parallel()
	s := startParca(t, false)
	s.MessageMax = 1 << 20
	answers := map[string]parca.Answer{
		"bad":   {Code: 3, Message: "invalid%20label%0aname: 100%"},
		"older": {Code: 11, Message: "too old"},
	}
	s.Refuse = func(p parca.Profile) *parca.Answer {
		if a, ok := answers[p.Labels["service_name"]]; ok {
			return &a
		}
		return nil
	}
	file := writeFile(t, t.TempDir(), "p.pb.gz", realProfiles(t)["process_cpu"])
	for name, says := range map[string]string{"bad": "gRPC invalid_argument: invalid label name: 100%", "older": "gRPC out_of_range: too old"} {
		for i := 0; i < 2; i++ { // in the head, and in trailers
			expectCall(t, exitPeer, "1 not accepted", says, "import", "--url", s.URL(), "--protocol", "parca", "--name", name, file)
		}
	}
	large := writeFile(t, t.TempDir(), "l.pb", fakepprof.Make("cpu", fakepprof.Options{Functions: 20000}))
	expectCall(t, exitPeer, "1 not accepted", "gRPC resource_exhausted: grpc: received message larger than max", "import",
		"--url", s.URL(), "--protocol", "parca", "--name", "large", large)
	expect(t, s.Count() == 0, "%d profiles were taken", s.Count())
	expectLines(t, verifyLines(t, exitDone, "write: [{name: store, protocol: parca, url: \""+s.URL()+"\"}]\n"),
		map[string][]string{"store": {"accepted"}})
	s.Token = "hunter2"
	expectLines(t, verifyLines(t, exitPeer, "write: [{name: store, protocol: parca, url: \""+s.URL()+"\"}]\n"),
		map[string][]string{"store": {"gRPC unauthenticated: no token", "set basic_auth, authorization"}})
	other := startOtlp(t)
	config := writeConfig(t, "write: [{name: store, protocol: parca, url: \""+other.URL()+"\"}]\n") // a server without HTTP/2
	expectCall(t, exitPeer, "*", "*", "verify", "--config", config)
}

// An answer that breaks off before its status says nothing, even if a 200 has come: the profile is sent
// again.
func TestParcaWithoutStatus(t *testing.T) {
	t.Parallel()
	plain, secure := startParca(t, false), startParca(t, true)
	for _, s := range []*parca.Server{plain, secure} {
		var cuts atomic.Int32
		s.Refuse = func(parca.Profile) *parca.Answer {
			if cuts.Add(1) <= 3 {
				return &parca.Answer{Cut: true, Code: 2}
			}
			return nil
		}
	}
	const keys = ", protocol: parca, retry: {min_backoff: 5ms, max_backoff: 10ms}"
	p := run(t, scraping(job("cut", "scrape_interval: 1s, profiles: "+oneSnapshot, someTargets(t, 1)...),
		"name: plain, url: "+plain.URL()+keys, "name: secure, url: "+secure.URL()+keys+", tls_config: {insecure_skip_verify: true}"))
	servers := map[string]*parca.Server{"plain": plain, "secure": secure}
	p.wait("profiles after the cuts", func() string {
		for name := range servers {
			if l := p.metrics().ledger(name); l.sent < 2 {
				return fmt.Sprintf("%s: %+v", name, l)
			}
		}
		return ""
	})
	p.stop()
	for name, s := range servers {
		sum := finalLedger(t, p, name)
		expect(t, sum["sent"] <= s.Count() && sum["dropped"] == 0, "%s: %v, and %d have arrived", name, sum, s.Count())
	}
}
