package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/s3"
)

// ---- writers and readers ------------------------------------------------------------------------

// bucketOf is a bucket that processes of a test share.
type bucketOf struct {
	url    string // of the archive
	server string // URL of the S3 server
}

// startBucket runs the fake. A list of all objects is due once an hour, so tests start readers when all is there.
func startBucket(t *testing.T) (*s3.Server, bucketOf) {
	t.Helper()
	s := startS3(t)
	return s, bucketOf{"s3://" + s3.Bucket + "/kept", s.URL()}
}

func (b bucketOf) keys() string {
	return fmt.Sprintf("{endpoint: %q, region: %s, access_key_id: %s, secret_access_key: %q}", b.server, s3.Region, s3.KeyID, s3.Secret)
}

// archiveConfig is a process that takes pushes, has a store with stretches of a minute, and archives it. more: further
// keys of the destination.
func archiveConfig(b bucketOf, writer, dir, receive, store, more string) string {
	return fmt.Sprintf(`
scrape_configs: []
receive: {listen: %q, acknowledge: stored}
write:
- name: kept
  url: "store://%s"
  store: {stretch: 1m, %sarchive: {url: %q, name: %s, s3: %s}}
%s`, receive, dir, store, b.url, writer, b.keys(), more)
}

// pushedStoreConfig is a process that takes pushes and has a store. keys: further keys of the store.
func pushedStoreConfig(receive, name, dir, keys string) string {
	return fmt.Sprintf("scrape_configs: []\nreceive: {listen: %q, acknowledge: stored}\nwrite: [{name: %s, url: \"store://%s\", store: {%s}}]\n",
		receive, name, dir, keys)
}

// readerConfig is a process that reads the archive of all writers.
func readerConfig(b bucketOf, cache string) string {
	return fmt.Sprintf(`
scrape_configs: []
write:
- name: kept
  url: "store:///nowhere"
  store: {read_only: true, archive: {url: %q, s3: %s%s}}
`, b.url, b.keys(), cache)
}

// waitArchived waits until the archive has so many files, and none waits.
func (p *program) waitArchived(files float64) {
	p.t.Helper()
	p.waitMetrics("the files to be archived", func(m metrics) string {
		n, waiting := m.sum("profpull_archive_files"), m.sum("profpull_archive_waiting_files")
		return unless(m.sum("profpull_archive_up") == 1 && n >= files && waiting <= 0, "%v files, %v wait", n, waiting)
	})
}

// askOf posts a question of Pyroscope's API in JSON. It returns the value of X-Profpull-Partial as well.
func askOf(t *testing.T, base, method string, request map[string]any, ret any) string {
	t.Helper()
	body, err := json.Marshal(request)
	must(t, err)
	// The server may end an idle connection just when a request is sent, which is none of these tests.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(base+"/querier.v1.QuerierService/"+method, "application/json", strings.NewReader(string(body)))
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	require(t, resp.StatusCode == http.StatusOK, "%s %s: %s %s", method, body, resp.Status, text)
	decode(t, text, ret)
	return resp.Header.Get("X-Profpull-Partial")
}

// ---- answers, in an order that does not depend on the place of the profiles ------------------------

func numberOf(t *testing.T, v any) int64 {
	t.Helper()
	switch n := v.(type) {
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		must(t, err)
		return i
	case float64:
		return int64(n)
	case nil:
		return 0
	}
	t.Fatalf("no number: %v", v)
	return 0
}

// flameOf lists the stacks of a flame graph with their own values.
func flameOf(t *testing.T, base string, request map[string]any) (lines []string, total int64, partial string) {
	t.Helper()
	var answer struct {
		Flamegraph struct {
			Names  []string
			Levels []struct{ Values []any }
			Total  any
		}
	}
	partial = askOf(t, base, "SelectMergeStacktraces", request, &answer)
	type bar struct {
		from, until int64
		stack       string
	}
	above := []bar{{0, 1 << 62, ""}}
	for _, level := range answer.Flamegraph.Levels {
		var row []bar
		at := int64(0)
		for i := 0; i+3 < len(level.Values); i += 4 {
			at += numberOf(t, level.Values[i])
			n, self := numberOf(t, level.Values[i+1]), numberOf(t, level.Values[i+2])
			parent := ""
			for _, a := range above {
				if a.from <= at && at < a.until || n == 0 && at == a.from {
					parent = a.stack
					break
				}
			}
			stack := parent + ";" + answer.Flamegraph.Names[numberOf(t, level.Values[i+3])]
			row = append(row, bar{at, at + n, stack})
			if self != 0 {
				lines = append(lines, fmt.Sprint(stack, " ", self))
			}
			at += n
		}
		above = row
	}
	sort.Strings(lines)
	return lines, numberOf(t, answer.Flamegraph.Total), partial
}

// seriesOf lists the points of a timeline.
func seriesOf(t *testing.T, base string, request map[string]any) (lines []string, partial string) {
	t.Helper()
	var answer struct {
		Series []struct {
			Labels []struct{ Name, Value string }
			Points []struct {
				Timestamp any
				Value     float64
			}
		}
	}
	partial = askOf(t, base, "SelectSeries", request, &answer)
	for _, s := range answer.Series {
		for _, p := range s.Points {
			lines = append(lines, fmt.Sprint(s.Labels, " ", numberOf(t, p.Timestamp), " ", p.Value))
		}
	}
	sort.Strings(lines)
	return lines, partial
}

// mergedOf lists the stacks of a merged profile, as `profpull query merge` fetches it and `go tool pprof` reads it.
func mergedOf(t *testing.T, base, service, profileType string, from, until time.Time) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "merged.pb.gz")
	r := call(t, "", "query", "merge", "--url", base, "--service", service, "--type", profileType, "-o", file,
		"--from", from.UTC().Format(time.RFC3339), "--until", until.UTC().Format(time.RFC3339))
	require(t, r.code == exitDone && r.stderr == "",
		"merge of %s %s: exit code %d\n%s%s", service, profileType, r.code, r.stdout, r.stderr)
	raw, err := os.ReadFile(file)
	must(t, err)
	lines := strings.Split(pprofTop(t, raw, "-nodecount=100000", "-sample_index=0"), "\n")
	sort.Strings(lines)
	return lines
}

// answersOf asks a server everything that a person sees: lists, timelines, flame graphs, and merged profiles of some
// services.
func answersOf(t *testing.T, base string, from, until time.Time, merged ...string) string {
	t.Helper()
	var out []string
	add := func(title string, lines []string) {
		out = append(out, fmt.Sprintf("%s: %d lines", title, len(lines)))
		out = append(out, lines...)
	}
	complete := func(what, partial string) {
		require(t, partial == "", "%s of %s is not complete: %s", what, base, partial)
	}
	window := func(more map[string]any) map[string]any {
		request := map[string]any{"start": from.UnixMilli(), "end": until.UnixMilli()}
		for k, v := range more {
			request[k] = v
		}
		return request
	}
	list := func(method string, more map[string]any) []string {
		var n names
		complete(method, askOf(t, base, method, window(more), &n))
		sort.Strings(n.Names)
		return n.Names
	}
	labels := list("LabelNames", nil)
	add("labels", labels)
	for _, name := range labels {
		add("values of "+name, list("LabelValues", map[string]any{"name": name}))
	}
	types := list("LabelValues", map[string]any{"name": "__profile_type__"})
	services := list("LabelValues", map[string]any{"name": "service_name"})
	for _, id := range types {
		lines, partial := seriesOf(t, base, window(map[string]any{"profileTypeID": id, "labelSelector": "{}", "groupBy": []string{"service_name"}, "step": 60}))
		complete("timeline", partial)
		add("timeline of "+id, lines)
		for _, s := range services {
			lines, total, partial := flameOf(t, base, window(map[string]any{"profileTypeID": id, "labelSelector": fmt.Sprintf("{service_name=%q}", s), "maxNodes": 100000}))
			complete("flame graph", partial)
			add(fmt.Sprintf("flame graph of %s %s, %d", s, id, total), lines)
			add("page of "+s+" "+id, pageOf(t, base, "/api/v1/flamegraph", s, id, from, until))
			for _, m := range merged {
				if m == s && total > 0 {
					add("merged "+s+" "+id, mergedOf(t, base, s, id, from, until))
				}
			}
		}
	}
	add("services of the pages", pageOf(t, base, "/api/v1/services", "", "", from, until))
	return strings.Join(out, "\n")
}

// pageOf reads an answer in JSON that the pages have as well.
func pageOf(t *testing.T, base, path, service, profileType string, from, until time.Time) []string {
	t.Helper()
	resp, err := http.Get(base + path + "?" + url.Values{"service": {service}, "type": {profileType},
		"from": {fmt.Sprint(from.UnixMilli())}, "until": {fmt.Sprint(until.UnixMilli())}}.Encode())
	must(t, err)
	text := bodyOf(t, resp)
	require(t, resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound, "%s %s: %s %s", path, service, resp.Status, text)
	require(t, resp.Header.Get("X-Profpull-Partial") == "", "%s of %s is not complete: %s", path, base, resp.Header.Get("X-Profpull-Partial"))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// sameAnswers compares two texts of answersOf and shows the first lines that differ.
func sameAnswers(t *testing.T, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		require(t, at(g) == at(w), "%s: line %d of %d and %d:\n got %s\nwant %s", name, i, len(g), len(w), at(g), at(w))
	}
}

// pushHour pushes profiles with fixed times: of each service and minute some of two types, to all of the places that
// choose returns for a service. It returns how many there were.
func pushHour(t *testing.T, start time.Time, minutes, services int, choose func(service int) []string) int {
	t.Helper()
	n := 0
	for i := 0; i < minutes; i++ {
		for s := 0; s < services; s++ {
			at := start.Add(time.Duration(i)*time.Minute + time.Duration(7*s%50)*time.Second)
			labels := map[string]string{"service_name": fmt.Sprintf("imported-%d", s), "pod": fmt.Sprintf("pod-%d", (s+i)%3)}
			for kind, name := range map[string]string{"cpu": "process_cpu", "goroutine": "goroutine"} {
				labels["__name__"] = name
				raw := pprof.Make(kind, pprof.Options{Time: at, Duration: 10 * time.Second, Functions: 3 + (i+s)%4})
				for _, base := range choose(s) {
					pushAt(t, base, labels, raw)
				}
				n++
			}
		}
	}
	return n
}

// newestOf lists the times of the newest profiles of a service, in the order of profefe's API.
func newestOf(t *testing.T, base string, from, until time.Time, limit int) string {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("%s/api/0/profiles?service=shared&from=%s&to=%s&limit=%d", base,
		from.UTC().Format("2006-01-02T15:04:05"), until.UTC().Format("2006-01-02T15:04:05"), limit))
	must(t, err)
	defer resp.Body.Close()
	var list struct {
		Body []struct {
			Created string `json:"created_at"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Body) == 0 {
		t.Fatalf("%s: %v, %d profiles", resp.Status, err, len(list.Body))
	}
	var times []string
	for _, p := range list.Body {
		times = append(times, p.Created)
	}
	return strings.Join(times, " ")
}

// ---- tests --------------------------------------------------------------------------------------

// Two writers with profiles of fixed times archive all stretches, their disks are wiped, and a reader with an empty disk
// gives the answers of one store that received the same profiles.
func TestArchiveOfTwoWriters(t *testing.T) {
	t.Parallel()
	bucket, b := startBucket(t)
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	until := start.Add(10 * time.Minute)
	receive := []string{loop.Host() + ":4040", loop.Host() + ":4040", loop.Host() + ":4040"}
	config := func(i int) string {
		return archiveConfig(b, fmt.Sprintf("w%d", i), fmt.Sprintf("%s/%d", dir, i), receive[i], "", "")
	}
	all := run(t, pushedStoreConfig(receive[2], "all", dir+"/all", ""))
	writers := []*program{run(t, config(0)), run(t, config(1))}
	pushHour(t, start, 4, 3, func(s int) []string { return []string{"http://" + receive[s%2], "http://" + receive[2]} })
	for i := 0; i < 12; i++ {
		at := start.Add(time.Duration(i) * 20 * time.Second)
		labels := map[string]string{"service_name": "shared", "__name__": "goroutine", "i": fmt.Sprint(i)}
		for _, place := range []string{receive[i%2], receive[2]} {
			pushAt(t, "http://"+place, labels, pprof.Make("goroutine", pprof.Options{Time: at}))
		}
	}
	want := answersOf(t, all.admin, start, until, "imported-1")
	require(t, strings.Count(want, "\n") >= 100, "too little to compare:\n%s", want)
	for i, p := range writers {
		// The first round of a process begins five seconds after its start.
		p.stop()
		writers[i] = run(t, config(i))
	}
	for i, p := range writers {
		// The metrics count the files of both writers. The process before may have archived a stretch that was not yet complete,
		// so that a second file of it waits.
		p.wait("its files in the bucket", func() string {
			n := len(bucket.Keys(fmt.Sprintf("w%d/index/", i)))
			files, err := filepath.Glob(fmt.Sprintf("%s/%d/*Z-*.db", dir, i))
			must(t, err)
			return unless(n >= 4 && n >= len(files) && p.metrics().sum("profpull_archive_waiting_files") <= 0, "%d of %d files", n, len(files))
		})
		p.stop()
		must(t, os.RemoveAll(fmt.Sprintf("%s/%d", dir, i)))
	}
	reader := run(t, readerConfig(b, ""))
	reader.waitArchived(8)
	sameAnswers(t, "the reader", answersOf(t, reader.admin, start, until, "imported-1"), want)
	// The newest profiles of a list are those of both writers.
	for _, limit := range []int{1, 5, 1000} {
		if got, want := newestOf(t, reader.admin, start, until, limit), newestOf(t, all.admin, start, until, limit); got != want {
			t.Errorf("the newest %d:\n got %s\nwant %s", limit, got, want)
		}
	}
	if _, err := os.Stat("/nowhere"); err == nil {
		t.Error("the reader has made a directory")
	}
	// A writer that has lost its disk answers for all, too.
	again := run(t, config(0))
	again.waitArchived(8)
	sameAnswers(t, "a writer", answersOf(t, again.admin, start, until, "imported-1"), want)
}

// If the bucket cannot be read, answers say so wherever people look.
func TestArchiveThatCannotBeReadIsReported(t *testing.T) {
	t.Parallel()
	s, b := startBucket(t)
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	receive := loop.Host() + ":4040"
	p := run(t, archiveConfig(b, "w0", dir+"/store", receive, "", ""))
	pushHour(t, start, 2, 1, func(int) []string { return []string{"http://" + receive} })
	p.stop()
	p = run(t, archiveConfig(b, "w0", dir+"/store", receive, "", ""))
	p.waitArchived(2)
	p.stop()
	reader := run(t, readerConfig(b, ""))
	reader.waitArchived(2)
	indexes := s.Keys("/index/")
	require(t, len(indexes) == 2, "%v", s.Keys(""))
	s.Change(indexes[0], nil)
	until := start.Add(time.Hour)
	window := fmt.Sprintf("from=%d&until=%d", start.UnixMilli(), until.UnixMilli())
	_, text := reader.get("/pyroscope/render?format=json&" + window + "&query=" + "goroutine%3Agoroutine%3Acount%3Agoroutine%3Acount%7B%7D")
	var rendered struct {
		Partial struct {
			Parts int
			Why   string
		}
		Flamebearer struct{ NumTicks float64 }
	}
	if err := json.Unmarshal([]byte(text), &rendered); err != nil || rendered.Partial.Parts != 1 || rendered.Flamebearer.NumTicks == 0 {
		t.Errorf("%v %+v in %s", err, rendered, text)
	}
	expect(t, strings.Contains(rendered.Partial.Why, indexes[0][len("kept/"):]),
		"the reason %q does not name %s", rendered.Partial.Why, indexes[0])
	args := []string{"--url", reader.admin, "--service", "imported-0", "--type", "goroutine",
		"--from", start.UTC().Format(time.RFC3339), "--until", until.UTC().Format(time.RFC3339)}
	expectCall(t, exitDone, "*", "profpull: the answer is not complete; number of parts that cannot be read: 1; ",
		append([]string{"query", "top"}, args...)...)
	r := call(t, "", append([]string{"query", "top", "--json"}, args...)...)
	var top struct{ Partial struct{ Parts int } }
	if err := json.Unmarshal([]byte(r.stdout), &top); err != nil || top.Partial.Parts != 1 {
		t.Errorf("%v in %s", err, r.stdout)
	}
	_, page := reader.get(fmt.Sprintf("/profiles?service=imported-0&from=%d&until=%d", start.UnixMilli(), until.UnixMilli()))
	expect(t, strings.Contains(page, "This page is not complete: parts that cannot be read: 1."),
		"the page says nothing:\n%s", page)
	// Assistants read the text only.
	status, answer := post(t, reader.admin+"/mcp", "application/json", []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"top_functions","arguments":{"service":"imported-0","type":"goroutine","from":%q,"until":%q}}}`,
		start.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))), "Accept", "application/json")
	expect(t, status == 200 && strings.Contains(answer, "This answer is not complete: parts that cannot be read: 1."),
		"an assistant sees %d %s", status, answer)
	// Without a bucket, the state of the destination says why.
	s.Set(func(s *s3.Server) { s.Secret = "other" })
	blind := run(t, readerConfig(b, ""))
	blind.wait("the failure to be shown", func() string {
		_, text := blind.get("/api/v1/destinations")
		return unless(strings.Contains(text, `"up":false`) && strings.Contains(text, "SignatureDoesNotMatch"), "%s", text)
	})
	if r := call(t, "", "status", "--url", blind.admin); r.code != exitPeer || !strings.Contains(r.stdout, "archive s3://profiles/kept: 0 files") ||
		!strings.Contains(r.stdout, "SignatureDoesNotMatch") || strings.Contains(r.stdout+blind.stderr.String(), s3.Secret) {
		t.Errorf("status: exit code %d\n%s", r.code, r.stdout)
	}
	blind.answers("/destinations", 200, "SignatureDoesNotMatch")
}

// A flame graph over 30 days of an archive takes no more memory than query.max_bytes, beside the cache and the files that
// stay open, which have limits of their own. If it needs more, it ends with an error, and the process goes on.
func TestArchiveQueryKeepsToItsMemory(t *testing.T) {
	t.Parallel()
	const days, functions = 30, 5000
	each := 6 // profiles of a day
	if instrumented(t) {
		each = 1 // which takes long enough, and memory is not compared
	}
	_, b := startBucket(t)
	dir := t.TempDir()
	start := time.Now().Add(-(days + 2) * 24 * time.Hour).Truncate(24 * time.Hour)
	receive := loop.Host() + ":4040"
	config := strings.Replace(archiveConfig(b, "w0", dir+"/store", receive, "", ""), "stretch: 1m", "stretch: 24h", 1)
	config = strings.Replace(config, "acknowledge: stored", "acknowledge: stored, max_age: 0s", 1)
	p := run(t, config)
	for i := 0; i < days*each; i++ {
		at := start.Add(time.Duration(i*24/each) * time.Hour)
		raw := pprof.Gzip(pprof.Make("goroutine", pprof.Options{Time: at, Functions: functions}))
		pushAt(t, "http://"+receive, map[string]string{"service_name": "large", "__name__": "goroutine", "n": fmt.Sprint(i % 3)}, raw)
	}
	p.stop()
	p = run(t, config)
	p.waitArchived(days)
	p.stop()
	reader := func(limit string) *program {
		r := run(t, readerConfig(b, ", cache: {max_bytes: 4MiB}")+"query: {timeout: 10m, max_bytes: "+limit+"}\n")
		r.waitArchived(days)
		return r
	}
	request := map[string]any{"start": start.UnixMilli(), "end": start.Add(days * 24 * time.Hour).UnixMilli(),
		"profileTypeID": goroutines, "labelSelector": `{service_name="large"}`}

	const limit, margin = 16 << 20, 16 << 20
	r := reader("16MiB")
	before := r.peak()
	_, total, partial := flameOf(t, r.admin, request)
	if partial != "" || total == 0 {
		t.Fatalf("a total of %d, partial: %s", total, partial)
	}
	opened := r.metrics().sum("profpull_store_readers_opened_total")
	for i := 0; i < 3; i++ {
		if _, again, _ := flameOf(t, r.admin, request); again != total {
			t.Errorf("a total of %d, then of %d", total, again)
		}
	}
	m := r.metrics()
	cache, open, bytes := m.sum("profpull_archive_cache_memory_bytes"), m.sum("profpull_store_readers_bytes"), m.sum("profpull_archive_bytes")
	t.Logf("%.0f bytes in the archive; the peak has grown by %d, of which %.0f are the cache, and %.0f open files", bytes, r.peak()-before, cache, open)
	if cache > 5<<20 || open > 64<<20 {
		t.Errorf("a cache of %.0f bytes, open files of %.0f", cache, open)
	}
	if grown := float64(r.peak() - before); !instrumented(t) && grown-cache-open > limit+margin {
		t.Errorf("the query has taken %.0f bytes, expected at most %d and %d for the rest", grown-cache-open, limit, margin)
	}
	// The files of a month stay open. Besides the query, the first look at a file may open it.
	if n := m.sum("profpull_store_readers_opened_total"); opened < days || n != opened {
		t.Errorf("%v files were opened by the first query, %v by the further ones, expected at least %d and none", opened, n-opened, days)
	}

	r = reader("1MiB")
	body, err := json.Marshal(request)
	must(t, err)
	status, text := post(t, r.admin+"/querier.v1.QuerierService/SelectMergeStacktraces", "application/json", body)
	if status != http.StatusTooManyRequests || !strings.Contains(text, `"resource_exhausted"`) {
		t.Errorf("%d %s", status, text)
	}
	if n := r.metrics().sum("profpull_connect_calls_total", "method", "querier.v1.QuerierService/SelectMergeStacktraces", "code", "resource_exhausted"); n != 1 {
		t.Errorf("%v queries that needed too much memory", n)
	}
	var services names
	if partial := askOf(t, r.admin, "LabelValues", map[string]any{"start": request["start"], "end": request["end"], "name": "service_name"}, &services); partial != "" || len(services.Names) != 1 {
		t.Errorf("services %v, partial: %s", services.Names, partial)
	}
}
