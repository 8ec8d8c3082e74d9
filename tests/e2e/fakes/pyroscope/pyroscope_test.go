package pyroscope

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	check.Must(t, err)
	t.Cleanup(s.Down)
	return s
}

func envelope(raw []byte, labels ...string) []byte {
	var one []byte
	for i := 0; i < len(labels); i += 2 {
		one = pprof.AppendBytes(one, 1,
			pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(labels[i])), 2, []byte(labels[i+1])))
	}
	one = pprof.AppendBytes(one, 2, pprof.AppendBytes(nil, 1, raw))
	return pprof.AppendBytes(nil, 1, one)
}

func post(t *testing.T, url, contentType string, body []byte, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	check.Must(t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	check.Must(t, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header
}

const pushPath = "/push.v1.PusherService/Push"

func cpu() []byte { return pprof.Gzip(pprof.Make("cpu", pprof.Options{})) }

var names = []string{"__name__", "process_cpu", "service_name", "demo"}

func TestPushAccepts(t *testing.T) {
	s := start(t, Options{BasePath: "/profile"})
	raw := cpu()
	status, body, header := post(t, s.URL()+pushPath, "application/proto", envelope(raw, names...))
	check.Require(t, status == 200 && body == "" && header.Get("Content-Type") == "application/proto",
		"%d %q %v", status, body, header)
	got := s.Profiles()
	check.Require(t, len(got) == 1 && bytes.Equal(got[0].Raw, raw) && got[0].Labels["service_name"] == "demo",
		"stored %+v", got)
	// A compressed request may be answered by a compressed nothing.
	status, body, header = post(t, s.URL()+pushPath, "application/proto", pprof.Gzip(envelope(raw, names...)),
		"Content-Encoding", "gzip")
	check.Expect(t, status == 200 && header.Get("Content-Encoding") == "gzip" && pprof.IsGzip([]byte(body)),
		"gzip envelope: %d %q %v", status, body, header)
}

func TestPushRefuses(t *testing.T) {
	s := start(t, Options{})
	old := pprof.Gzip(pprof.Make("cpu", pprof.Options{Time: time.Now().Add(-2 * time.Hour)}))
	var many []string
	for i := 0; i < 31; i++ {
		many = append(many, fmt.Sprint("l", i), "x")
	}
	proto := "application/proto"
	cases := []struct {
		name, contentType string
		body              []byte
		header            []string
		status            int
		message           string
	}{
		{"content type", "application/x-protobuf", envelope(cpu(), names...), nil, 415, ""},
		{"no body", proto, nil, nil, 400, `"no profiles received"`},
		{"not protobuf", proto, []byte("<html>"), nil, 400, "unmarshal message"},
		{"header says gzip", proto, envelope(cpu(), names...), []string{"Content-Encoding", "gzip"}, 400, "gzip: invalid header"},
		{"zstd", proto, envelope(cpu(), names...), []string{"Content-Encoding", "zstd"}, 501, "unimplemented"},
		{"connect version", proto, envelope(cpu(), names...), []string{"Connect-Protocol-Version", "2"}, 400, "invalid_argument"},
		{"connect timeout", proto, envelope(cpu(), names...), []string{"Connect-Timeout-Ms", "1e3"}, 400, "invalid_argument"},
		{"empty profile", proto, envelope(nil, names...), nil, 500, "gzip reset: EOF"},
		{"truncated gzip", proto, envelope([]byte{0x1f, 0x8b, 8, 0}, names...), nil, 500, `"code":"unknown"`},
		{"twice gzip", proto, envelope(pprof.Gzip(cpu()), names...), nil, 500, "proto"},
		{"no __name__", proto, envelope(cpu(), "service_name", "x"), nil, 400, "invalid metric name"},
		{"duplicate label", proto, envelope(cpu(), append([]string{"pod", "a", "pod", "b"}, names...)...), nil, 400, "duplicate label name: 'pod'"},
		{"31 labels", proto, envelope(cpu(), many...), nil, 400, "has 31 label names; limit 30"},
		{"long value", proto, envelope(cpu(), append([]string{"v", strings.Repeat("x", 2049)}, names...)...), nil, 400, "label value too long"},
		{"two hours old", proto, envelope(old, names...), nil, 400, "outside of ingestion window"},
		{"tenant", proto, envelope(cpu(), names...), []string{"X-Scope-OrgID", "a|b"}, 401, "unauthenticated"},
	}
	for _, c := range cases {
		status, body, header := post(t, s.URL()+pushPath, c.contentType, c.body, c.header...)
		check.Expect(t, status == c.status && strings.Contains(body, c.message),
			"%s: %d %s, expected %d %s", c.name, status, body, c.status, c.message)
		check.Expect(t, status == 415 || header.Get("Content-Type") == "application/json",
			"%s: error of type %q", c.name, header.Get("Content-Type"))
	}
	check.Expect(t, s.Count() == 0, "%d profiles were stored", s.Count())
}

func multipartBody(t *testing.T, parts ...[3]string) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p[0])
		if p[1] != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p[1])
		}
		h.Set("Content-Disposition", disposition)
		part, err := w.CreatePart(h)
		check.Must(t, err)
		_, _ = part.Write([]byte(p[2]))
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

func ingestURL(s *Server, name, more string) string {
	return fmt.Sprintf("%s/ingest?name=%s&from=%d&until=%d&spyName=gospy%s", s.URL(), url.QueryEscape(name),
		time.Now().Add(-10*time.Second).Unix(), time.Now().Unix(), more)
}

func TestIngestAccepts(t *testing.T) {
	s := start(t, Options{})
	raw := cpu()
	body, contentType := multipartBody(t, [3]string{"profile", "profile.pprof", string(raw)})
	status, text, _ := post(t, ingestURL(s, "shop/cart{env=prod,pod=cart-7f}", ""), contentType, body)
	check.Require(t, status == 200 && text == "", "%d %q", status, text)
	got := s.Profiles()
	check.Require(t, len(got) == 1, "stored %d; %q", len(got), s.Refused())
	want := map[string]string{"__name__": "process_cpu", "__delta__": "false", "pyroscope_spy": "gospy",
		"service_name": "shop/cart", "env": "prod", "pod": "cart-7f"}
	check.Expect(t, fmt.Sprint(got[0].Labels) == fmt.Sprint(want), "labels %v", got[0].Labels)
	status, _, _ = post(t, ingestURL(s, "a", "&format=pprof"), "application/octet-stream", raw)
	check.Expect(t, status == 200 && s.Count() == 2, "raw: %d, %d stored", status, s.Count())
}

func TestIngestBlockNeedsConfig(t *testing.T) {
	s := start(t, Options{})
	block := string(pprof.Gzip(pprof.Make("contention", pprof.Options{})))
	profile := [3]string{"profile", "p", block}
	config := [3]string{"sample_type_config", "c.json",
		`{"contentions":{"display-name":"block_count"},"delay":{"display-name":"block_duration"}}`}
	for _, parts := range [][][3]string{{profile}, {profile, config}} {
		body, contentType := multipartBody(t, parts...)
		post(t, ingestURL(s, "a", ""), contentType, body)
	}
	got := s.Profiles()
	check.Expect(t, len(got) == 2 && got[0].Name() == "mutex" && got[1].Name() == "block",
		"%d stored; %q", len(got), s.Refused())
}

func TestIngestRefuses(t *testing.T) {
	s := start(t, Options{})
	good, goodType := multipartBody(t, [3]string{"profile", "p", string(cpu())})
	old := pprof.Gzip(pprof.Make("cpu", pprof.Options{Time: time.Now().Add(-2 * time.Hour)}))
	oldForm, oldType := multipartBody(t, [3]string{"profile", "p", string(old)})
	unnamed, unnamedType := multipartBody(t, [3]string{"profile", "", string(cpu())})
	badConfig, badConfigType := multipartBody(t, [3]string{"profile", "p", string(cpu())}, [3]string{"sample_type_config", "c", "{units}"})
	prev, prevType := multipartBody(t, [3]string{"profile", "p", string(cpu())}, [3]string{"prev_profile", "p", string(cpu())})
	cases := []struct {
		name, url, contentType string
		body                   []byte
		status                 int
		message                string
	}{
		{"no name", s.URL() + "/ingest", goodType, good, 400, "name: service name is required"},
		{"bad app", ingestURL(s, "a b", ""), goodType, good, 400, "invalid service name: a b: character is not allowed: ' '"},
		{"bad key", ingestURL(s, "a{my-label=1}", ""), goodType, good, 400, "invalid label name: my-label: character is not allowed: '-'"},
		{"format and multipart", ingestURL(s, "a", "&format=pprof"), goodType, good, 422, "parsing IngestInput-pprof failed"},
		{"boundary", ingestURL(s, "a", ""), "multipart/form-data; boundary=other", good, 422, "multipart"},
		{"no boundary", ingestURL(s, "a", ""), "multipart/form-data", good, 422, "malformed multipart content type header"},
		{"cut", ingestURL(s, "a", ""), goodType, good[:len(good)-10], 422, "unexpected EOF"},
		{"old", ingestURL(s, "a", ""), oldType, oldForm, 422, "outside of ingestion window"},
		{"config", ingestURL(s, "a", ""), badConfigType, badConfig, 422, "invalid character"},
		{"prev_profile", ingestURL(s, "a", ""), prevType, prev, 422, "unsupported client version"},
		{"slash at the end", s.URL() + "/ingest/?name=a", goodType, good, 404, ""},
		{"two slashes", s.URL() + "//ingest?name=a", goodType, good, 301, ""},
		// The two traps: 200, and nothing is stored.
		{"no filename", ingestURL(s, "a", ""), unnamedType, unnamed, 200, ""},
		{"nothing", ingestURL(s, "a", "&format=pprof"), "application/octet-stream", nil, 200, ""},
	}
	for _, c := range cases {
		status, body, _ := post(t, c.url, c.contentType, c.body)
		check.Expect(t, status == c.status && strings.Contains(body, c.message),
			"%s: %d %s, expected %d %s", c.name, status, body, c.status, c.message)
	}
	check.Expect(t, s.Count() == 0, "%d profiles were stored", s.Count())
	text := strings.Join(s.Refused(), "\n")
	check.Expect(t, strings.Contains(text, `parts without filename: ["profile"]`),
		"the part without a filename left no trace: %s", text)
}

func TestParseName(t *testing.T) {
	cases := []struct {
		in, app, labels string
		wide            bool
	}{
		{"shop.cart{env=prod, pod = x}", "shop.cart", "map[env:prod pod:x]", true},
		{"app{region=\"cn\"}", "app", `map[region:"cn"]`, true},
		{"app{bar=1", "app", "map[]", true},
		{"app{bar}", "app", "map[]", true},
		{"app{a=1}b=2}", "app", "map[a:1 b:2]", true},
		{"app{a=x=y{z}", "app", "map[a:x=y{z]", true},
		{"app{a=}", "app", "map[a:]", true},
		{"app{otel.scope=x}", "app", "map[otel.scope:x]", true},
		{"app{otel.scope=x}", "", "", false},
		{"ns/app", "ns/app", "map[]", true},
		{"ns/app", "", "", false},
		{"app{__name__=other}", "other", "map[]", true},
		{"", "", "", true},
	}
	for _, c := range cases {
		app, labels, err := ParseName(c.in, c.wide)
		if c.app == "" {
			check.Expect(t, err != nil, "%q: accepted", c.in)
		} else if err != nil || app != c.app || fmt.Sprint(labels) != c.labels {
			t.Errorf("%q: %q %v %v", c.in, app, labels, err)
		}
	}
}

func TestAttime(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for text, want := range map[string]int64{
		"1699999000": 1699999000, "1699999000000": 1699999000, "1699999000000000": 1699999000,
		"1699999000000000000": 1699999000, "": 1700000000, "garbage": 1700000000, "-5": 1700000000,
	} {
		got := Attime(text, now).Unix()
		check.Expect(t, got == want, "%q: %d", text, got)
	}
}

func TestDeepFlow(t *testing.T) {
	s := start(t, Options{DeepFlow: true})
	good, goodType := multipartBody(t, [3]string{"profile", "p", string(cpu())})
	base := s.URL() + "/api/v1/profile/ingest?spyName=gospy&from=1700000000&name="
	status, _, _ := post(t, base+"shop.cart%7Benv%3Dprod%7D", goodType, good)
	check.Require(t, status == 200 && s.Count() == 1, "%d, %d stored, %q", status, s.Count(), s.Refused())
	lost := []struct{ url, contentType string }{
		{base + "ns/app", goodType},
		{base + "app", "application/octet-stream"},
		{s.URL() + "/api/v1/profile/ingest?spyName=gospy&from=1700000000000000000&name=app", goodType},
		{s.URL() + "/api/v1/profile/ingest?spyName=mine&from=1700000000&name=app", goodType},
	}
	for _, c := range lost {
		status, _, _ := post(t, c.url, c.contentType, good)
		check.Expect(t, status == 200, "%s: %d", c.url, status)
	}
	check.Expect(t, s.Count() == 1 && len(s.Refused()) == len(lost), "%d stored; %q", s.Count(), s.Refused())
	status, _, _ = post(t, s.URL()+pushPath, "application/proto", nil)
	check.Expect(t, status == 404, "Push: %d", status)
}

func TestFaults(t *testing.T) {
	s := start(t, Options{})
	body := envelope(cpu(), names...)
	s.Faults.Set(&loop.Fault{Status: 503, Body: "later", Times: 1})
	status, text, _ := post(t, s.URL()+pushPath, "application/proto", body)
	check.Expect(t, status == 503 && text == "later", "fault: %d %s", status, text)
	status, _, _ = post(t, s.URL()+pushPath, "application/proto", body)
	check.Expect(t, status == 200, "after it: %d", status)
	s.Down()
	_, err := http.Get(s.URL())
	check.Expect(t, err != nil, "down, and still answering")
	check.Must(t, s.Up())
	status, _, _ = post(t, s.URL()+pushPath, "application/proto", body)
	check.Expect(t, status == 200 && s.Count() == 2, "up again: %d, %d stored", status, s.Count())
	s.Faults.Set(&loop.Fault{Hang: true})
	client := http.Client{Timeout: 50 * time.Millisecond}
	_, err = client.Post(s.URL()+pushPath, "application/proto", bytes.NewReader(body))
	check.Expect(t, err != nil, "hanging, and still answering")
}
