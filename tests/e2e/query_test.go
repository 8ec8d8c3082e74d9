package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	fakepprof "profpull.test/e2e/fakes/pprof"
)

// querier plays the part of a Pyroscope that `query` and `pgo` need, and keeps what it was asked.
type querier struct {
	*loop.Server
	mu     sync.Mutex
	asked  []string
	status int    // of every answer, unless 0
	body   []byte // of SelectMergeProfile
}

func newQuerier(t *testing.T, body []byte) *querier {
	t.Helper()
	q := &querier{body: body}
	var err error
	q.Server, err = loop.Start("", q, nil)
	must(t, err)
	t.Cleanup(q.Down)
	return q
}

func (q *querier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	q.mu.Lock()
	defer q.mu.Unlock()
	method := strings.TrimPrefix(r.URL.Path, "/querier.v1.QuerierService/")
	q.asked = append(q.asked, fmt.Sprintf("%s %s %s %s", r.Method, method, r.Header.Get("Content-Type"), describe(r, raw)))
	if q.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(q.status)
		_, _ = io.WriteString(w, `{"code":"invalid_argument","message":"start after end\u001b[31m"}`)
		return
	}
	switch {
	case method == "LabelValues" && strings.Contains(string(raw), "service_name\","):
		_, _ = io.WriteString(w, `{"names":["cart","shop/web\u001b[31m"]}`)
	case method == "LabelValues":
		_, _ = io.WriteString(w, `{"names":["memory:inuse_space:bytes:space:bytes",`+
			`"process_cpu:cpu:nanoseconds:cpu:nanoseconds","process_cpu:samples:count:cpu:nanoseconds"]}`)
	case method == "SelectMergeProfile":
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(q.body)
	default:
		http.NotFound(w, r)
	}
}

// describe gives the body without times; a message of protobuf as its fields.
func describe(r *http.Request, raw []byte) string {
	if r.Header.Get("Content-Type") != "application/proto" {
		var all map[string]any
		_ = json.Unmarshal(raw, &all)
		delete(all, "start")
		delete(all, "end")
		text, _ := json.Marshal(all)
		return string(text)
	}
	var out []string
	err := fakepprof.Each(raw, func(f fakepprof.Field) error {
		switch f.Number {
		case 3, 4:
			out = append(out, fmt.Sprintf("%d=time", f.Number))
		case 6:
			out = append(out, fmt.Sprintf("6=%x", f.Bytes))
		default:
			out = append(out, fmt.Sprintf("%d=%s", f.Number, f.Bytes))
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(out, " ")
}

func (q *querier) take() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	text := strings.Join(q.asked, "\n")
	q.asked = nil
	return text
}

// withStartLines gives each function of a profile the line that it starts at.
func withStartLines(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out []byte
	err := fakepprof.Each(raw, func(f fakepprof.Field) error {
		switch {
		case f.Number == 5:
			out = fakepprof.AppendBytes(out, 5, fakepprof.AppendInt(append([]byte(nil), f.Bytes...), 5, 10))
		case f.Type == 2:
			out = fakepprof.AppendBytes(out, f.Number, f.Bytes)
		default:
			out = fakepprof.AppendInt(out, f.Number, f.Value)
		}
		return nil
	})
	must(t, err)
	return out
}

func cpuProfile() []byte {
	return fakepprof.Make("cpu", fakepprof.Options{Time: time.Now(), Duration: 10 * time.Second})
}

// The lists of a Pyroscope come one a line, without characters that command a terminal.
func TestQueryLists(t *testing.T) {
	t.Parallel()
	q := newQuerier(t, nil)
	r := expectCall(t, exitDone, "cart\nshop/web\ufffd[31m\n", "", "query", "services", "--url", q.URL())
	expect(t, !strings.ContainsRune(r.stdout, 0x1b), "an escape reaches the terminal: %q", r.stdout)
	got := q.take()
	expect(t, got == `POST LabelValues application/json {"matchers":["{}"],"name":"service_name"}`, "%s", got)
	expectCall(t, exitDone, "process_cpu:samples:count:cpu:nanoseconds\n", "", "query", "types", "--url", q.URL(),
		"--service", `a"b`, "--label", "pod=x")
	want := `POST LabelValues application/json {"matchers":["{service_name=\"a\\\"b\",pod=\"x\"}"],"name":"__profile_type__"}`
	got = q.take()
	expect(t, got == want, "%s", got)
}

// A merged profile is written as gzip, and go tool pprof reads it. A short name of a type is looked up.
func TestQueryMerge(t *testing.T) {
	t.Parallel()
	q := newQuerier(t, cpuProfile())
	file := filepath.Join(t.TempDir(), "cart.pb.gz")
	expectCall(t, exitDone, "cart.pb.gz: ", "", "query", "merge", "--url", q.URL()+"/", "--service", "cart", "-o", file)
	want := "POST LabelValues application/json {\"matchers\":[\"{service_name=\\\"cart\\\"}\"],\"name\":\"__profile_type__\"}\n" +
		"POST SelectMergeProfile application/proto 1=process_cpu:cpu:nanoseconds:cpu:nanoseconds 2={service_name=\"cart\"} 3=time 4=time"
	got := q.take()
	expect(t, got == want, "%s", got)
	raw, err := os.ReadFile(file)
	require(t, err == nil && fakepprof.IsGzip(raw), "%v, gzip %v", err, fakepprof.IsGzip(raw))
	text := pprofTop(t, raw)
	expect(t, strings.Contains(text, "step1"), "%s", text)
	r := expectCall(t, exitDone, "*", "standard output: ", "query", "merge", "--url", q.URL(), "--type",
		"memory:inuse_space:bytes:space:bytes", "-o", "-")
	expect(t, fakepprof.IsGzip([]byte(r.stdout)), "no gzip on standard output")
	expectCall(t, exitInput, "", "no type is called \"wall\" in this time, only memory:inuse_space", "query", "merge",
		"--url", q.URL(), "--type", "wall", "-o", file)
}

// An error names the URL, and the exit code is different if the other side failed.
func TestQueryFailures(t *testing.T) {
	t.Parallel()
	q := newQuerier(t, nil)
	file := filepath.Join(t.TempDir(), "x")
	merge := []string{"query", "merge", "--url", q.URL(), "--service", "cart", "-o", file}
	expectCall(t, exitPeer, "", q.URL()+" has no profile of the type \"cpu\" and the service \"cart\" in this time", merge...)
	q.body = []byte("<html>")
	expectCall(t, exitPeer, "", "the server sent no profile: ", merge...)
	q.status = 400
	r := expectCall(t, exitPeer, "", q.URL()+"/querier.v1.QuerierService/LabelValues: HTTP 400: start after end", merge...)
	expect(t, !strings.ContainsRune(r.stderr, 0x1b), "an escape reaches the terminal: %q", r.stderr)
	_, err := os.Stat(file)
	expect(t, err != nil, "a file was written")
	q.Down()
	expectCall(t, exitPeer, "", strings.TrimPrefix(q.URL(), "http://"), merge...)
	expectCall(t, exitUsage, "", "expected one of services, types", "query")
	expectCall(t, exitUsage, "", "got flames", "query", "flames")
	expectCall(t, exitUsage, "", "merge needs --output", "query", "merge", "--url", q.URL())
	expectCall(t, exitUsage, "", "--from is after --until", "query", "types", "--from", "9", "--until", "8")
	expectCall(t, exitUsage, "", "--protocol", "query", "types", "--protocol", "carrier-pigeon")
	expectCall(t, exitInput, "", "url", "query", "types", "--url", "gopher://x")
}

// profefe is asked by its own API: labels are encoded twice, times have no zone.
func TestQueryProfefe(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	profile := fakepprof.Gzip(cpuProfile())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.RequestURI())
		mu.Unlock()
		switch {
		case r.URL.Path == "/api/0/services":
			_, _ = io.WriteString(w, `{"code":200,"body":["cart","esc"]}`)
		case r.URL.Query().Get("service") == "none":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":404,"error":"nothing found"}`)
		case r.URL.Path == "/api/0/profiles":
			_, _ = io.WriteString(w, `{"code":200,"body":[{"id":"1","type":"cpu"},{"id":"2","type":"heap"},{"id":"3","type":"cpu"}]}`)
		case r.URL.Path == "/api/0/profiles/merge":
			_, _ = w.Write(profile)
		}
	})
	args := func(more ...string) []string {
		return append([]string{"query", more[0], "--protocol", "profefe", "--url", s.URL()}, more[1:]...)
	}
	r := expectCall(t, exitDone, "cart\nesc\n", "", args("services")...)
	r = expectCall(t, exitDone, "cpu\nheap\n", "", args("types", "--service", "cart")...)
	expectCall(t, exitInput, "", "profefe needs a --service", args("types")...)
	r = expectCall(t, exitDone, "", "", args("types", "--service", "none")...)
	expect(t, r.stdout == "", "%s", r.stdout)
	file := filepath.Join(t.TempDir(), "cart.pb.gz")
	expectCall(t, exitDone, "cart.pb.gz: ", "", args("merge", "--service", "cart", "--label", "v=1,2", "--from",
		"2026-11-22T00:29:00Z", "--until", "2026-11-22T00:30:00.5Z", "-o", file)...)
	mu.Lock()
	last := asked[len(asked)-1]
	mu.Unlock()
	want := "/api/0/profiles/merge?service=cart&type=cpu&from=2026-11-22T00%3A29%3A00&to=2026-11-22T00%3A30%3A01&labels=v%3D1%252C2"
	expect(t, last == want, "%s\nexpected %s", last, want)
	raw, err := os.ReadFile(file)
	expect(t, err == nil && string(raw) == string(profile), "not the bytes of the server: %v", err)
	expectCall(t, exitPeer, "", "has no profile", args("merge", "--service", "none", "-o", file)...)
}

// pgo asks for what the compiler reads, and refuses what the compiler would.
func TestPGO(t *testing.T) {
	t.Parallel()
	q := newQuerier(t, withStartLines(t, cpuProfile()))
	file := filepath.Join(t.TempDir(), "default.pgo")
	pgo := []string{"pgo", "--url", q.URL(), "--service", "cart", "--label", "version=1.2", "-o", file}
	expectCall(t, exitDone, "default.pgo: ", "", pgo...)
	want := "POST SelectMergeProfile application/proto 1=process_cpu:cpu:nanoseconds:cpu:nanoseconds " +
		"2={service_name=\"cart\",version=\"1.2\"} 3=time 4=time 6=120408051001"
	got := q.take()
	expect(t, got == want, "%s\nexpected %s", got, want)
	raw, err := os.ReadFile(file)
	expect(t, err == nil && fakepprof.IsGzip(raw), "%v: %s", err, base64.StdEncoding.EncodeToString(raw))
	q.body = cpuProfile()
	expectCall(t, exitInput, "", "service \"cart\": no function of the profile says at which line it starts", pgo...)
	q.body = nil
	expectCall(t, exitPeer, "", "has no CPU profile of the service \"cart\" in this time", pgo...)
	expectCall(t, exitUsage, "", "--service is needed", "pgo")
}

// The functions of a merged profile, or of DeepFlow's trees in both of their shapes.
func TestQueryTop(t *testing.T) {
	t.Parallel()
	q := newQuerier(t, cpuProfile())
	r := expectCall(t, exitDone, "cpu.(*Cart).step1\n", "", "query", "top", "--url", q.URL(), "--service", "cart")
	has(t, "stdout", r.stdout, " in 3 functions, the first 3:\n", "100.00%")
	r = expectCall(t, exitDone, "the first 1:\n", "", "query", "top", "--url", q.URL(), "-n", "1", "--value", "samples")
	n := strings.Count(r.stdout, "step")
	expect(t, n == 1, "%d functions\n%s", n, r.stdout)
	expectCall(t, exitInput, "", "the profile has no sample type \"wall\", only samples/count cpu/nanoseconds", "query", "top",
		"--url", q.URL(), "--value", "wall")
	q.body = nil
	expectCall(t, exitPeer, "", "has no profile of the type \"cpu\"", "query", "top", "--url", q.URL())
}

// DeepFlow answers trees; parents may come after their children.
func TestQueryDeepFlow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked, result string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		asked = r.Method + " " + r.URL.Path + " " + string(raw)
		_, _ = io.WriteString(w, `{"OPT_STATUS":"SUCCESS","DESCRIPTION":"","result":`+result+`,"debug":null}`)
	})
	answer := func(text string) {
		mu.Lock()
		result = text
		mu.Unlock()
	}
	args := []string{"query", "top", "--protocol", "deepflow", "--url", s.URL(), "--service", "cart", "--type", "on-cpu",
		"--language", "eBPF", "--label", "pod=it's", "--from", "100", "--until", "200"}
	const functions = `"functions":["cart","main","work","x\u001b[31m"]`
	answer(`{` + functions + `,"node_values":{"columns":[],"values":[[0,-1,0,5000000],[3,2,1000000,1000000],[2,3,3000000,4000000],[1,0,1000000,5000000]]}}`)
	r := expectCall(t, exitDone, "       3.00s  60.00%        4.00s  80.00%  work\n", "", args...)
	expect(t, strings.HasPrefix(r.stdout, "5.00s in 3 functions, the first 3:\n") && !strings.ContainsRune(r.stdout, 0x1b),
		"%q", r.stdout)
	want := `POST /v1/profile/ProfileTracing {"app_service":"cart","profile_language_type":"eBPF","profile_event_type":"on-cpu",` +
		"\"tag_filter\":\"`pod` = 'it''s'\"," + `"time_start":100,"time_end":200}`
	mu.Lock()
	expect(t, asked == want, "%s\nexpected %s", asked, want)
	mu.Unlock()
	answer(`[{"profile_location_str":"cart","node_id":"","parent_node_id":"-1","self_value":0,"total_value":5},` +
		`{"profile_location_str":"main","node_id":"a","parent_node_id":"","self_value":2000000,"total_value":5000000},` +
		`{"profile_location_str":"work","node_id":"b","parent_node_id":"a","self_value":3000000,"total_value":3000000}]`)
	expectCall(t, exitDone, "       2.00s  40.00%        5.00s 100.00%  main\n", "", args...)
	for _, bad := range []string{
		`{` + functions + `,"node_values":{"values":[[0,-1,0,5],[1,2,1,1],[2,1,1,1]]}}`, // a circle
		`{` + functions + `,"node_values":{"values":[[0,-1,0,5],[1,9,1,1]]}}`,
		`{` + functions + `,"node_values":{"values":[[0,-1,0,5],[9,0,1,1]]}}`,
		`{` + functions + `,"node_values":{"values":[[0,-1,0,5],5,[-1,0,1,1]]}}`,
	} {
		answer(bad)
		expectCall(t, exitPeer, "", "the answer has nodes without a ", args...)
	}
	answer("null")
	expectCall(t, exitPeer, "", "has no profile of the type \"on-cpu\" and the service \"cart\"", args...)
	expectCall(t, exitUsage, "", "deepflow has no API for services", "query", "services", "--protocol", "deepflow")
	expectCall(t, exitUsage, "", "deepflow has no API for merged profiles", "query", "merge", "--protocol", "deepflow", "-o", "x")
	expectCall(t, exitInput, "", "deepflow needs a --service", "query", "top", "--protocol", "deepflow")
}

// Several threads read the profiles of a large flame graph, if the configuration and the machine have them: the answer is
// the same. The number changes with the configuration.
func TestQueryWithHelpers(t *testing.T) {
	t.Parallel()
	receive := loop.Host() + ":4040"
	text := `
receive: {listen: "` + receive + `", allow_unauthenticated: true}
query: {threads: %d}
scrape_configs: []
write: [{name: local, url: "store://` + filepath.Join(t.TempDir(), "store") + `"}]
`
	file := writeConfig(t, fmt.Sprintf(text, 1))
	p := startFile(t, nil, file)
	p.waitUp()
	for i := 0; i < 6; i++ {
		labels := map[string]string{"__name__": "process_cpu", "service_name": fmt.Sprint("large-", i)}
		pushAt(t, "http://"+receive, labels, fakepprof.Make("cpu", fakepprof.Options{Functions: 20000, Time: time.Now().Add(-time.Minute)}))
	}
	until(t, "profiles to be stored", func() bool { return p.metrics().ledger("local").sent >= 6 })
	now := time.Now().Unix()
	query := fmt.Sprintf("/pyroscope/render?format=json&from=%d&until=%d&query=process_cpu:cpu:nanoseconds:cpu:nanoseconds{}", now-3600, now)
	ask := func() string {
		status, answer := p.get(query)
		require(t, status == 200 && len(answer) > 100000, "%d, %d bytes", status, len(answer))
		return answer
	}
	alone := ask()
	helped := func() float64 { return p.metrics().sum("profpull_query_helped_total") }
	expect(t, helped() == 0, "helped with one thread: %v", helped())
	must(t, os.WriteFile(file, []byte(fmt.Sprintf(text, 2)), 0o600))
	resp, err := http.Post(p.admin+"/-/reload", "", nil)
	must(t, err)
	require(t, resp.StatusCode == 200, "%s: %s", resp.Status, bodyOf(t, resp))
	expect(t, ask() == alone, "another answer with two threads")
	want := 1.0
	if runtime.NumCPU() == 1 {
		want = 0
	}
	expect(t, helped() == want, "helped with two threads: %v, want %v", helped(), want)
}
