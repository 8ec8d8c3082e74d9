package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// relay starts a profpull that takes profiles and hands them on. more: further keys of receive.
func relay(t *testing.T, more, write string) (*program, string) {
	t.Helper()
	listen := loop.Host() + ":4040"
	p := run(t, fmt.Sprintf("receive: {listen: %q%s}\nscrape_configs: []\nwrite: [%s]\n", listen, more, write))
	return p, "http://" + listen
}

// post sends one request and returns its status and body.
func post(t *testing.T, url, contentType string, body []byte, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	must(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

// ---- profpull to profpull -----------------------------------------------------------------------

// Whatever the protocol between two profpulls is, the same bytes come out of the second one, with the
// labels that went into the first.
func TestRelayKeepsBytesAndLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, protocol, path string
		adds                 string // labels that come with the protocol
	}{
		{"push", "push", "", "__delta__"}, // import sets it
		{"ingest", "ingest", "", "__delta__ pyroscope_spy"},
		{"deepflow", "ingest", "/api/v1/profile", "__delta__ pyroscope_spy"},
		{"profefe", "profefe", "", ""},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startPyroscope(t, pyroscope.Options{})
			p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
			expectCall(t, exitDone, "sent 6 profiles", "*", "import", "--url", base+c.path, "--protocol", c.protocol, "--name", "shop.cart",
				"--label", "pod=cart-7f", "--label", "zone=a b=c", realFiles(t))
			want := realProfiles(t)
			got := map[string]bool{}
			for _, p := range waitProfiles(t, s, len(want), nil) {
				expect(t, bytes.Equal(p.Raw, want[p.Name()]), "%s: other bytes than the file's, or of another type", p.Name())
				got[p.Name()] = true
				labels := map[string]string{"__name__": p.Name(), "service_name": "shop.cart", "pod": "cart-7f",
					"zone": "a b=c"}
				for name, value := range p.Labels {
					if want, ok := labels[name]; ok && value == want {
						delete(labels, name)
					} else if ok || !strings.Contains(" "+c.adds+" ", " "+name+" ") {
						t.Errorf("%s: label %s is %q", p.Name(), name, value)
					}
				}
				expect(t, len(labels) == 0, "%s: lacks %v", p.Name(), labels)
			}
			expect(t, len(got) == len(want), "types %v, expected %d", got, len(want))
			noneRefused(t, s)
			m := p.metrics()
			n := m.sum("profpull_receive_profiles_total", "result", "accepted", "protocol", c.name)
			expect(t, n == 6, "%v accepted of %s", n, c.name)
			text := m.ledger("main").balance()
			expect(t, text == "", "%s", text)
		})
	}
}

// Profiles that profpull sends as OTLP, a message for each type, are whole again at the other end: with
// their names, all values and the labels that became attributes.
func TestRelayOfOtlp(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
	expectCall(t, exitDone, "sent 6 profiles", "*", "import", "--url", base, "--protocol", "otlp", "--name", "shop.cart", "--label", "pod=cart-7f",
		"--label", "team=blue", realFiles(t))
	expectRealProfiles(t, p, s)
}

// expectRealProfiles waits until the server has what import has sent as OTLP through a relay.
func expectRealProfiles(t *testing.T, p *program, s *pyroscope.Server) {
	t.Helper()
	want := realProfiles(t)
	got := map[string]bool{}
	for _, p := range waitProfiles(t, s, len(want), nil) {
		sent, err := fakepprof.ParseGzip(want[p.Name()])
		require(t, err == nil, "%s was not sent: %v", p.Name(), err)
		expect(t, fmt.Sprint(p.Profile.Sums()) == fmt.Sprint(sent.Sums()),
			"%s: %v, expected %v", p.Name(), p.Profile.Sums(), sent.Sums())
		got[p.Name()] = true
		labels := fmt.Sprint(p.Labels)
		wantLabels := fmt.Sprint(map[string]string{"__name__": p.Name(), "__delta__": "false", "service_name": "shop.cart",
			"k8s.pod.name": "cart-7f", "team": "blue"})
		expect(t, labels == wantLabels, "%s: %s, expected %s", p.Name(), labels, wantLabels)
	}
	expect(t, len(got) == len(want), "types %v, expected %d", got, len(want))
	noneRefused(t, s)
	m := p.metrics()
	equal(t, "accepted profiles", m.sum("profpull_receive_profiles_total", "result", "accepted", "protocol", "otlp"), 6)
	text := m.ledger("main").balance()
	expect(t, text == "", "%s", text)
}

// A scraped profile that goes through a relay arrives as one that goes there directly.
func TestRelayOfScrapes(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	_, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
	direct := startPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	run(t, fmt.Sprintf(`
scrape_configs:
- job_name: shop
  scrape_interval: 1s
  scrape_timeout: 1s
  static_configs: [{targets: [%q], labels: {service_name: cart, app.kubernetes.io/name: cart}}]
  profiles: {process_cpu: {enabled: false}}
write:
- {name: relay, url: %q}
- {name: direct, url: %q}
`, tg.Addr(), base, direct.URL()))
	waitProfiles(t, direct, 5, nil)
	relayed := map[string]pyroscope.Received{}
	for _, p := range waitProfiles(t, s, 5, nil) {
		relayed[p.SHA256] = p
	}
	compared := 0
	for _, p := range direct.Profiles() {
		r, ok := relayed[p.SHA256]
		if !ok {
			continue // on its way
		}
		expect(t, fmt.Sprint(r.Labels) == fmt.Sprint(p.Labels),
			"labels %v by the relay, %v directly", r.Labels, p.Labels)
		compared++
	}
	expect(t, compared != 0, "none of the profiles came both ways")
	noneRefused(t, s)
}

// ---- what SDKs send -----------------------------------------------------------------------------

func form(t *testing.T, parts ...string) (string, []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		f, err := w.CreateFormFile(parts[i], parts[i])
		must(t, err)
		_, _ = io.WriteString(f, parts[i+1])
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// The requests of the SDKs as they are today: the paths, parameters, parts and encodings of each.
func TestReceiveFromSDKs(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, ", profile_relabel_configs: [{source_labels: [app], regex: noisy, action: drop}]",
		fmt.Sprintf("{name: main, url: %q, protocol: ingest}, {name: push, url: %q}", s.URL(), s.URL()))
	now := time.Now()
	cpu := fakepprof.Make("cpu", fakepprof.Options{})
	name := func(app string) string { return url.QueryEscape(app) }
	goForm, goBody := form(t, "profile", string(realProfiles(t)["mutex"]),
		"sample_type_config", `{"contentions":{"display-name":"mutex_count","units":"lock_samples"},`+
			`"delay":{"display-name":"mutex_duration","units":"lock_nanoseconds"}}`)
	javaForm, javaBody := form(t, "jfr", string(gzipped(recording(now))), "labels", string(gzipped(contexts(t))))
	nodeForm, nodeBody := form(t, "profile", string(fakepprof.Gzip(cpu)))
	series := fakepprof.AppendBytes(nil, 1, pair("__name__", "process_cpu"))
	series = fakepprof.AppendBytes(series, 1, pair("service_name", "rust"))
	series = fakepprof.AppendBytes(series, 1, pair("otel.scope.name", "com.grafana.pyroscope/rust"))
	series = fakepprof.AppendBytes(series, 2, fakepprof.AppendBytes(fakepprof.AppendBytes(nil, 1, cpu), 2, []byte("id")))
	push := fakepprof.AppendBytes(nil, 1, series)
	for _, c := range []struct {
		what, path, contentType string
		body                    []byte
		header                  []string
	}{
		{"go", fmt.Sprintf("/ingest?aggregationType=&from=%d&name=%s&sampleRate=100&spyName=gospy&units=&until=%d",
			now.Add(-15*time.Second).UnixNano(), name("go{__session_id__=0123456789abcdef,otel.scope.name=x}"), now.UnixNano()),
			goForm, goBody, nil},
		{"java", fmt.Sprintf("/ingest?name=%s&units=samples&aggregationType=sum&sampleRate=100&from=%d&until=%d&spyName=javaspy&format=jfr",
			name("java{}"), now.Unix()-10, now.Unix()), javaForm, javaBody, nil},
		{"node", fmt.Sprintf("/pyroscope/ingest?from=%d&until=%d&name=%s&spyName=nodespy&sampleRate=100", now.Unix()-10, now.Unix(),
			name("node{env=x}")), nodeForm, nodeBody, nil},
		{"rust", "/push.v1.PusherService/Push", "application/proto", gzipped(push),
			[]string{"Content-Encoding", "gzip", "Connect-Protocol-Version", "1"}},
		{"noisy", "/ingest?name=" + name("x{app=noisy}"), nodeForm, nodeBody, nil},
		{"folded", fmt.Sprintf("/ingest?name=%s&from=%d&until=%d", name("text.cpu{env=x}"), now.Unix()-10, now.Unix()), "",
			[]byte("main;work 3\nmain;idle 5\n"), nil},
	} {
		status, text := post(t, base+c.path, c.contentType, c.body, c.header...)
		expect(t, status == 200, "%s: %d %s", c.what, status, text)
	}
	want := map[string]string{ // by service and API of the destination
		"go push":   `__delta__="false" __name__="mutex" otel.scope.name="x" pyroscope_spy="gospy" service_name="go"`,
		"node push": `__delta__="false" __name__="process_cpu" env="x" pyroscope_spy="nodespy" service_name="node"`,
		"rust push": `__name__="process_cpu" otel.scope.name="com.grafana.pyroscope/rust" service_name="rust"`,
		"text push": `__delta__="false" __name__="process_cpu" env="x" pyroscope_spy="unknown" service_name="text"`,
	}
	// The destination that cannot carry the recording gets the nine profiles in it.
	waitProfiles(t, s, 4+9, func(r *pyroscope.Received) bool { return r.API == "push" })
	waitProfiles(t, s, 5, func(r *pyroscope.Received) bool { return r.API == "ingest" })
	for _, r := range s.Profiles() {
		key := r.Labels["service_name"] + " " + r.API
		if r.API != "push" {
			continue
		}
		if key == "java push" {
			hasLabels(t, r.Labels, "jfr_event", "wall", "pyroscope_spy", "javaspy")
			continue
		}
		equal(t, key+": labels", describeLabels(r.Labels), want[key])
		expect(t, key != "rust push" || bytes.Equal(r.Raw, cpu), "rust: other bytes")
	}
	m := p.metrics()
	for result, n := range map[string]float64{"accepted": 5, "dropped": 1} {
		got := m.sum("profpull_receive_profiles_total", "result", result)
		expect(t, got == n, "%v %s, expected %v", got, result, n)
	}
	equal(t, "parts with labels", m.sum("profpull_receive_extras_total", "kind", "jfr_labels"), 1)
	for metric, n := range map[string]float64{"profpull_recordings_total": 1, "profpull_recordings_profiles_total": 9} {
		got := m.sum(metric)
		expect(t, got == n, "%s is %v, expected %v", metric, got, n)
	}
}

// contexts is the part labels of the recording.
func contexts(t *testing.T) []byte {
	b := readFile(t, "../unit/data/jfr/labels.pb")
	return b
}

func pair(name, value string) []byte {
	return fakepprof.AppendBytes(fakepprof.AppendBytes(nil, 1, []byte(name)), 2, []byte(value))
}

// ---- outages ------------------------------------------------------------------------------------

// TestReceivedProfilesAreSpooled checks that pushed profiles go to the spool as well, and are sent by the
// next process if this one is killed.
func TestReceivedProfilesAreSpooled(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	s.Down()
	dir := t.TempDir()
	write := fmt.Sprintf("{name: main, url: %q, queue: {spool_directory: %q}}", s.URL(), dir)
	p, base := relay(t, "", write)
	raw := fakepprof.Gzip(fakepprof.Make("cpu", fakepprof.Options{}))
	for i := 0; i < 5; i++ {
		status, text := post(t, fmt.Sprintf("%s/ingest?name=a{n=%d}", base, i), "", raw)
		require(t, status == 200, "%d %s", status, text)
	}
	becomes(t, "the spool", 5, func() float64 { return p.metrics().sum("profpull_write_spool_profiles", "endpoint", "main") })
	_ = p.cmd.Process.Kill()
	<-p.done
	must(t, s.Up())
	relay(t, "", write)
	got := map[string]bool{}
	for _, r := range waitProfiles(t, s, 5, nil) {
		got[r.Labels["n"]] = true
	}
	expect(t, len(got) == 5, "%v came", got)
}

// With memory and spool full a sender gets 503, and nothing that got 200 is thinned out or dropped: it
// all arrives after the outage, and so does what was refused once it is pushed again.
func TestReceivedProfilesAreNotThinned(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	s.Down()
	p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q, queue: {max_bytes: 1MiB, spool_directory: %q, "+
		"spool_max_bytes: 1MiB, fsync: always}, retry: {max_backoff: 200ms, min_backoff: 50ms}}", s.URL(), t.TempDir()))
	raw := fakepprof.Make("goroutine", fakepprof.Options{Functions: 800}) // not compressed, for its size
	push := func(n int) int {
		status, text := post(t, fmt.Sprintf("%s/ingest?name=a{n=%d}", base, n), "", raw)
		require(t, status == 200 || status == 503, "%d %s", status, text)
		return status
	}
	var refused []int
	const total = 120
	for n := 0; n < total; n++ {
		if push(n) == 503 {
			refused = append(refused, n)
		}
	}
	require(t, len(refused) != 0 && len(refused) <= total-20, "%d of %d were refused", len(refused), total)
	l := p.metrics().ledger("main")
	expect(t, l.dropped == 0 && l.balance() == "", "%v dropped during the outage, %s", l.dropped, l.balance())
	must(t, s.Up())
	for _, n := range refused {
		p.wait("a profile to be taken", func() string {
			status := push(n)
			return unless(status == 200, "%v", status)
		})
	}
	got := map[string]int{}
	for _, r := range waitProfiles(t, s, total, nil) {
		got[r.Labels["n"]]++
	}
	expect(t, len(got) == total, "%d of %d came", len(got), total)
}

// ---- labels that start with "__" ----------------------------------------------------------------

// privateLabels are those in the store that it has not computed itself.
func privateLabels(t *testing.T, p *program, service string) string {
	t.Helper()
	var got struct {
		LabelsSet []struct {
			Labels []struct{ Name, Value string }
		}
	}
	askJSON(t, p, "Series", map[string]any{
		"matchers": []string{`{service_name="` + service + `"}`},
		"start":    time.Now().Add(-time.Hour).UnixMilli(),
		"end":      time.Now().Add(time.Minute).UnixMilli(),
	}, &got)
	if len(got.LabelsSet) == 0 {
		return "not stored"
	}
	const computed = " __name__ __type__ __unit__ __period_type__ __period_unit__ __profile_type__ __service_name__ "
	found := map[string]bool{}
	for _, set := range got.LabelsSet {
		for _, l := range set.Labels {
			if strings.HasPrefix(l.Name, "__") && !strings.Contains(computed, " "+l.Name+" ") || l.Value == "bogus" {
				found[l.Name+"="+l.Value] = true
			}
		}
	}
	var all []string
	for label := range found {
		all = append(all, label)
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// A store keeps what a sender calls "__foo__", but no session, no tenant, and nothing that the store
// computes; of a scraped target it keeps none. Other destinations get none.
func TestPrivateLabelsOfSenders(t *testing.T) {
	t.Parallel()
	listen := loop.Host() + ":4040"
	direct := startPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	p := run(t, fmt.Sprintf(`
receive: {listen: %q}
scrape_configs:
- job_name: shop
  scrape_interval: 1s
  scrape_timeout: 1s
  relabel_configs: [{target_label: __bar__, replacement: x}]
  static_configs: [{targets: [%q], labels: {service_name: scraped}}]
  profiles: {process_cpu: {enabled: false}}
write:
- {name: store, url: "store://%s"}
- {name: direct, url: %q}
`, listen, tg.Addr(), t.TempDir(), direct.URL()))
	push := pushOf(cpuProfile(), "godeltaprof_memory", "pushed", "__foo__", "bar", "__type__", "bogus",
		"__session_id__", "0123456789abcdef", "__tenant_id__", "t", "pod", "a")
	status, text := post(t, "http://"+listen+"/push.v1.PusherService/Push", "application/proto", push)
	require(t, status == 200, "%d %s", status, text)
	for service, labels := range map[string]string{
		"pushed":  "__foo__=bar __name_replaced__=godeltaprof_memory",
		"scraped": "",
	} {
		becomes(t, service, labels, func() string { return privateLabels(t, p, service) })
	}
	isPushed := func(r *pyroscope.Received) bool { return r.Labels["service_name"] == "pushed" }
	for name := range waitProfiles(t, direct, 1, isPushed)[0].Labels {
		expect(t, !strings.HasPrefix(name, "__") || name == "__name__" || name == "__delta__",
			"label %s went to another destination", name)
	}
}
