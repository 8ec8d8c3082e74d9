package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// ---- files --------------------------------------------------------------------------------------

var goProfiles struct {
	once     sync.Once
	profiles map[string][]byte // by the type that they are imported as
	err      error
}

// contend makes one goroutine wait for a lock, and one for a channel.
func contend() {
	var lock sync.Mutex
	done := make(chan bool)
	lock.Lock()
	go func() {
		lock.Lock()
		defer lock.Unlock()
		done <- true
	}()
	time.Sleep(10 * time.Millisecond)
	lock.Unlock()
	<-done
}

var sink []byte

func burn(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := 0; i < 1000; i++ {
			sink = append(sink[:0], fmt.Sprint(i)...)
		}
	}
}

func makeRealProfiles() (map[string][]byte, error) {
	old := runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	defer runtime.SetMutexProfileFraction(old)
	defer runtime.SetBlockProfileRate(0)
	all := map[string][]byte{}
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		return nil, err
	}
	burn(200 * time.Millisecond)
	contend()
	pprof.StopCPUProfile()
	all["process_cpu"] = cpu.Bytes()
	for name, kind := range map[string]string{"heap": "memory", "goroutine": "goroutine", "mutex": "mutex",
		"block": "block", "threadcreate": "threadcreate"} {
		var out bytes.Buffer
		if err := pprof.Lookup(name).WriteTo(&out, 0); err != nil {
			return nil, err
		}
		all[kind] = out.Bytes()
	}
	return all, nil
}

// realProfiles are those of this very process, written by Go's runtime.
func realProfiles(t *testing.T) map[string][]byte {
	t.Helper()
	goProfiles.once.Do(func() { goProfiles.profiles, goProfiles.err = makeRealProfiles() })
	require(t, goProfiles.err == nil, "%v", goProfiles.err)
	return goProfiles.profiles
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, data, 0o644))
	return path
}

// realFiles writes them under names without meaning.
func realFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	i := 0
	for _, data := range realProfiles(t) {
		i++
		writeFile(t, dir, fmt.Sprintf("%d/p%d.out", i%2, i), data)
	}
	return dir
}

// recording is a recording of Java of ten seconds from start: one chunk with an event of each type that
// profiles are made of, which are nine.
func recording(start time.Time) []byte {
	b, err := os.ReadFile("../unit/data/jfr/recording.jfr")
	if err != nil {
		panic(err)
	}
	binary.BigEndian.PutUint64(b[32:], uint64(start.UnixNano()))
	binary.BigEndian.PutUint64(b[40:], uint64(10*time.Second))
	return b
}

func startPyroscope(t *testing.T, o pyroscope.Options) *pyroscope.Server {
	t.Helper()
	s, err := pyroscope.Start(o)
	must(t, err)
	t.Cleanup(func() { s.Down() })
	return s
}

// ---- import -------------------------------------------------------------------------------------

// Every kind of profile that Go writes is recognised by its content and arrives byte for byte, with its
// own time, the labels of the command line, and the mark that no delta is to be made of it.
func TestImportRealProfiles(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"push", "ingest"} {
		s := startPyroscope(t, pyroscope.Options{})
		expectCall(t, exitDone, "sent 6 profiles", "", "import", "--url", s.URL(), "--protocol", protocol, "--name", "shop.cart",
			"--label", "env=prod", "--label", "pod=cart-7f", realFiles(t))
		want := map[string][]byte{}
		for kind, data := range realProfiles(t) {
			if protocol == "ingest" && kind == "goroutine" {
				kind = "goroutines" // the server makes the name from the samples
			}
			want[kind] = data
		}
		for _, p := range s.Profiles() {
			data, ok := want[p.Name()]
			expect(t, ok && bytes.Equal(data, p.Raw), "%s: %s: unknown, or other bytes than the file's", protocol, p.Name())
			delete(want, p.Name())
			for k, v := range map[string]string{"service_name": "shop.cart", "env": "prod", "pod": "cart-7f",
				"__delta__": "false"} {
				expect(t, p.Labels[k] == v, "%s: %s: %s is %q, expected %q", protocol, p.Name(), k, p.Labels[k], v)
			}
			if protocol == "ingest" {
				from := fmt.Sprint(p.Profile.TimeNanos / int64(time.Second))
				until := fmt.Sprint((p.Profile.TimeNanos + p.Profile.DurationNanos) / int64(time.Second))
				expect(t, p.Query.Get("from") == from && p.Query.Get("until") == until,
					"%s: from %s until %s, expected %s and %s", p.Name(), p.Query.Get("from"), p.Query.Get("until"), from, until)
			}
		}
		expect(t, len(want) == 0, "%s: did not come: %d of 6", protocol, len(want))
	}
}

// A recording is sent by ingest with its own time; push gets the profiles in it.
func TestImportRecording(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	start := time.Now().Add(-20 * time.Second)
	file := writeFile(t, t.TempDir(), "app.jfr", recording(start))
	expectCall(t, exitDone, "sent 1 profile ", "", "import", "--url", s.URL(), "--protocol", "ingest", "--name", "app", file)
	got := s.Profiles()
	expect(t, len(got) == 1 && bytes.Equal(got[0].Raw, recording(start)) &&
		got[0].Query.Get("from") == fmt.Sprint(start.Unix()) &&
		got[0].Query.Get("until") == fmt.Sprint(start.Add(10*time.Second).Unix()),
		"came: %v %v", got, s.Refused())
	expectCall(t, exitDone, "sent 9 profiles ", "", "import", "--url", s.URL(), "--name", "app", file)
	names := map[string]int{}
	for _, p := range s.Profiles()[1:] {
		names[p.Labels["__name__"]]++
		hasLabels(t, p.Labels, "service_name", "app", "jfr_event", "wall", "__delta__", "false")
	}
	expect(t, names["process_cpu"] == 1 && names["wall"] == 1 && names["memory"] == 5 && names["mutex"] == 1 && names["block"] == 1,
		"came: %v, refused: %v", names, s.Refused())
}

// The command says what is in a recording, and what is wrong with one.
func TestJfr(t *testing.T) {
	t.Parallel()
	whole := recording(time.Unix(1700000000, 0))
	file := writeFile(t, t.TempDir(), "app.jfr", whole)
	expectCall(t, exitDone, "chunks:     1\n", "", "jfr", file)
	expectCall(t, exitDone, "process_cpu       3 stacks, cpu 0.080 s", "", "jfr", file)
	expectCall(t, exitDone, `"types":[{"name":"jdk.ExecutionSample","events":1,`, "", "jfr", "--json", file)
	twice := writeFile(t, t.TempDir(), "two.jfr.gz", fakepprof.Gzip(append(append([]byte{}, whole...), whole[:500]...)))
	expectCall(t, exitInput, "chunks:     1\n", "two.jfr.gz: chunk 2 at byte ", "jfr", twice)
	expectCall(t, exitInput, "", "No such file", "jfr", file+"x")
	expectCall(t, exitUsage, "", "expected one FILE", "jfr")
	java, err := loop.Start("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(whole) }), nil)
	must(t, err)
	t.Cleanup(java.Down)
	expectCall(t, exitDone, "content:   1 chunks, 13 events, 12 samples\nprofile:   process_cpu ", "", "scrape", java.Addr()+"/app.jfr")
}

// DeepFlow's server can read the requests that its agent accepts.
func TestImportToDeepFlow(t *testing.T) {
	t.Parallel()
	agent := startPyroscope(t, pyroscope.Options{DeepFlow: true})
	expectCall(t, exitDone, "sent 6 ", "", "import", "--url", agent.URL()+"/api/v1/profile", "--protocol", "ingest",
		"--name", "cart", "--label", "pod=cart-7f", realFiles(t))
	n := len(agent.Refused())
	expect(t, n == 0 && agent.Count() == 6, "%d came, refused: %v", agent.Count(), agent.Refused())
	for _, p := range agent.Profiles() {
		expect(t, p.Labels["service_name"] == "cart" && p.Labels["pod"] == "cart-7f", "labels: %v", p.Labels)
	}
}

// Everything is described to DeepFlow by its own sample types, whatever runtime it is of; what it
// would not store is refused before it is sent.
func TestImportOtherRuntimesToDeepFlow(t *testing.T) {
	t.Parallel()
	agent := startPyroscope(t, pyroscope.Options{DeepFlow: true})
	dir := t.TempDir()
	for name, kind := range map[string]string{"threadcreate": "threads", "wall": "node wall", "memory": "node heap", "fgprof": "fgprof"} {
		file := writeFile(t, dir, name+".pb.gz", fakepprof.Gzip(fakepprof.Make(kind, fakepprof.Options{})))
		expectCall(t, exitDone, "sent 1 profile ", "", "import", "--url", agent.URL()+"/api/v1/profile", "--protocol", "ingest",
			"--name", "cart", "--type", name, file)
	}
	start := time.Now().Add(-20 * time.Second)
	file := writeFile(t, dir, "app.jfr", recording(start))
	expectCall(t, exitDone, "sent 1 profile ", "", "import", "--url", agent.URL()+"/api/v1/profile", "--protocol", "ingest",
		"--name", "cart", file)
	n := len(agent.Refused())
	expect(t, n == 0 && agent.Count() == 5, "%d came, refused: %v", agent.Count(), agent.Refused())
	got := agent.Profiles()
	expect(t, len(got) == 5 && bytes.Equal(got[4].Raw, recording(start)), "the recording is another one")
	empty := writeFile(t, dir, "empty.pb.gz", fakepprof.Gzip(withoutSamples()))
	expectCall(t, exitPeer, "1 not accepted", "it has no samples", "import", "--url", agent.URL()+"/api/v1/profile",
		"--protocol", "ingest", "--name", "cart", "--type", "mutex", empty)
	expect(t, agent.Count() == 5, "%d came", agent.Count())
}

// In a directory, files that are not profiles are skipped and counted; a damaged one is reported with
// the reason and does not affect the others. A file given by name must be a profile.
func TestImportRubbish(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	dir := realFiles(t)
	heap := realProfiles(t)["memory"]
	writeFile(t, dir, "README.md", []byte("# Profiles of last week, before the change of the allocator in the cart\n"))
	writeFile(t, dir, "deep/er/index.html", []byte("<html><body>no</body></html>"))
	writeFile(t, dir, "picture.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"))
	writeFile(t, dir, "empty", nil)
	writeFile(t, dir, "cut.pb.gz", heap[:len(heap)/2])
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	r := expectCall(t, exitInput, "sent 6 profiles", "cut.pb.gz: damaged", "import", "--url", s.URL(), "--name", "app", dir)
	has(t, "stdout", r.stdout, "1 bad file, 4 other files skipped")
	expectCall(t, exitInput, "2 bad files", "README.md: not a profile but text", "import", "--url", s.URL(), "--name", "app",
		filepath.Join(dir, "README.md"), filepath.Join(dir, "no-such-file"))
	expectCall(t, exitInput, "", "found no profile", "import", "-q", "--url", s.URL(), "--name", "app", filepath.Join(dir, "deep"))
	n := s.Count()
	expect(t, n == 6, "%d profiles came, expected 6: %v", n, s.Refused())
}

// Profiles in formats older than pprof's are converted, as scraping does; the time of the file becomes
// theirs. A damaged one is reported as one.
func TestImportOldFormats(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	dir := t.TempDir()
	written := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	for name, body := range map[string][]byte{
		"cpu.prof":       oldCPU(),
		"server.heap.gz": fakepprof.Gzip([]byte(oldHeap)),
		"broken.heap":    []byte(strings.Replace(oldHeap, "0x70000330", "0x7000033z", 1)),
	} {
		must(t, os.Chtimes(writeFile(t, dir, name, body), written, written))
	}
	r := expectCall(t, exitInput, "cpu.prof: process_cpu, from ", "broken.heap: an old format of pprof: ", "import", "--dry-run",
		"--url", s.URL(), "--name", "app", dir)
	expect(t, strings.Count(r.stdout, ", converted from an old format, time written into the profile\n") == 2,
		"%s", r.stdout)
	expectCall(t, exitInput, "sent 2 profiles", "broken.heap: an old format of pprof: ", "import", "--url", s.URL(), "--name", "app", dir)
	got := map[string]pyroscope.Received{}
	for _, p := range s.Profiles() {
		got[p.Name()] = p
	}
	cpu, isCPU := got["process_cpu"]
	heap, isHeap := got["memory"]
	require(t, len(got) == 2 && isCPU && isHeap, "came: %v %v", got, s.Refused())
	for _, p := range got {
		expect(t, p.Profile.TimeNanos == written.UnixNano(),
			"%s: time %d, the file is of %d", p.Name(), p.Profile.TimeNanos, written.UnixNano())
	}
	top := pprofTop(t, cpu.Raw)
	expect(t, strings.Contains(top, "300ms") && strings.Contains(top, "server"), "not 300 ms in server:\n%s", top)
	top = pprofTop(t, heap.Raw, "-sample_index=inuse_space")
	expect(t, strings.Contains(top, "10kB"), "not 10 KiB in use:\n%s", top)
	expectCall(t, exitDone, "sent 1 ", "", "import", "--url", s.URL(), "--name", "app", filepath.Join(dir, "cpu.prof"))
}

// The type of a contention profile without a stack is not guessed: the file's name or --type says it.
// Standard input has no date: its profile ends now.
func TestImportTypeAndTime(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{NoWindow: true})
	dir := t.TempDir()
	contention := fakepprof.Make("contention", fakepprof.Options{})
	file := writeFile(t, dir, "unclear.pb", contention)
	expectCall(t, exitInput, "1 bad file", "set --type", "import", "--url", s.URL(), "--name", "app", file)
	expectCall(t, exitDone, "sent 1 ", "", "import", "--url", s.URL(), "--name", "app",
		writeFile(t, dir, "mutex-1.pb", contention))
	expectCall(t, exitDone, "sent 1 ", "", "import", "--url", s.URL(), "--name", "app", "--type", "block", file)
	cmd := command(t, "import", "--url", s.URL(), "--name", "app", "-")
	ends(t, callCommand(t, cmd, string(fakepprof.Gzip(fakepprof.Make("heap", fakepprof.Options{})))), exitDone, "*", "*")
	// Another time than the profile's is written into it: servers read it there.
	expectCall(t, exitDone, "sent 1 ", "", "import", "--url", s.URL(), "--name", "app", "--type", "block",
		"--from", "2024-02-29T12:00:00+01:00", "--until", "1709204430", file)
	var names []string
	for _, p := range s.Profiles() {
		names = append(names, p.Name())
	}
	got := strings.Join(names, " ")
	require(t, got == "mutex block memory block", "came: %s %v", got, s.Refused())
	all := s.Profiles()
	last := all[3].Profile
	expect(t, last.TimeNanos == 1709204400e9 && last.DurationNanos == 30e9,
		"time %d, duration %d", last.TimeNanos, last.DurationNanos)
	expect(t, all[1].Profile.TimeNanos != last.TimeNanos && bytes.Equal(all[1].Raw, contention),
		"without --from the profile was changed")
}

// A profile that the server refuses does not affect the others.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	dir := realFiles(t)
	writeFile(t, dir, "a-old.pb", fakepprof.Make("heap", fakepprof.Options{Time: time.Now().Add(-48 * time.Hour)}))
	r := expectCall(t, exitPeer, "sent 6 profiles", "a-old.pb: not accepted: HTTP 400", "import", "--url", s.URL(), "--name", "app", dir)
	has(t, "stderr", r.stderr, "outside of ingestion window")
	has(t, "stdout", r.stdout, "1 not accepted")
	// A server that stumbles is tried again.
	s.Faults.Set(&loop.Fault{Status: 503, Times: 2})
	expectCall(t, exitDone, "sent 6 ", "HTTP 503", "import", "--url", s.URL(), "--name", "app", realFiles(t))
}

// A failure that needs a person ends the import at once; an absent server does after --retry-for.
func TestImportGivesUp(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{Username: "u", Password: "right"})
	dir := t.TempDir()
	wrong := writeFile(t, dir, "password", []byte("hunter2\n"))
	right := writeFile(t, dir, "right", []byte("right\n"))
	files := realFiles(t)
	base := []string{"import", "--name", "app", "--retry-for", "200ms"}
	r := expectCall(t, exitPeer, "gave up", "the server does not accept these credentials",
		append(base, "--url", s.URL(), "--username", "u", "--password-file", wrong, files)...)
	expect(t, !strings.Contains(r.stderr+r.stdout, "hunter2"), "the password was shown")
	expectCall(t, exitDone, "sent 6 ", "", append(base, "--url", s.URL(), "--username", "u", "--password-file", right, files)...)
	expectCall(t, exitPeer, "gave up", "url is the base URL",
		append(base, "--url", s.URL()+"/wrong", "--username", "u", "--password-file", right, files)...)
	expectCall(t, exitPeer, "gave up", "connection refused",
		append(base, "--url", "http://"+loop.Host()+":1", files)...)
}

// Go's own tool opens the files of a file endpoint; importing them again gives the same profiles.
func TestImportToFiles(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	expectCall(t, exitDone, "sent 6 ", "", "import", "--url", "file://"+out, "--name", "app", realFiles(t))
	found, _ := filepath.Glob(filepath.Join(out, "app", "*", "*.pb.gz"))
	require(t, len(found) == 6, "files: %v", found)
	// With its own time changed, too.
	expectCall(t, exitDone, "sent 6 ", "", "import", "--url", "file://"+out, "--name", "moved", "--from", "1709204400",
		filepath.Join(out, "app"))
	moved, _ := filepath.Glob(filepath.Join(out, "moved", "*", "20240229T1100*.pb.gz"))
	require(t, len(moved) == 6, "files: %v", moved)
	for _, path := range []string{found[0], moved[0], moved[3]} {
		text, err := exec.Command(goTool(), "tool", "pprof", "-raw", path).CombinedOutput()
		expect(t, err == nil && bytes.Contains(text, []byte("Samples:")), "%s: %v\n%s", path, err, text)
	}
}

// A store takes what is imported, is left as it is by retention, and is not written by two at a time;
// verify writes to it.
func TestImportToStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	expectCall(t, exitDone, "sent 6 ", "", "import", "--url", "store://"+dir, "--name", "app", "--from", "2020-02-29T12:00:00Z",
		realFiles(t))
	config := `
scrape_configs:
  - {job_name: a, static_configs: [{targets: ["127.0.0.1:1"]}]}
write:
  - {name: local, url: "store://` + dir + `", retention: {max_age: 0}}
`
	expectCall(t, exitDone, "accepted; not read back", "", "verify", "--config", writeConfig(t, config))
	p := run(t, config)
	equal(t, "profiles (6 and the one of verify)", p.metrics().sum("profpull_store_profiles"), 7)
	_, text := p.get("/api/0/services")
	expect(t, strings.Contains(text, `"app"`), "%s", text)
	expectCall(t, exitInput, "", "another process (", "import", "--url", "store://"+dir, "--name", "app", realFiles(t))
}

// An endpoint of a configuration is used with all its settings; nothing else of the file is touched.
func TestImportWithConfig(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{Multitenant: true})
	other := filepath.Join(t.TempDir(), "other")
	config := writeConfig(t, fmt.Sprintf(`
global: {external_labels: {cluster: prod}}
write:
  - {name: main, url: %q, tenant_id: team-a}
  - {name: files, url: "file://%s"}
`, s.URL(), other))
	files := realFiles(t)
	expectCall(t, exitInput, "", `say which with --endpoint ("main", "files")`, "import", "--config", config, "--name", "app", files)
	expectCall(t, exitInput, "", `no endpoint "nain"`, "import", "--config", config, "--endpoint", "nain", "--name", "app", files)
	expectCall(t, exitDone, "sent 6 ", "", "import", "--config", config, "--endpoint", "main", "--name", "app", files)
	expectCall(t, exitDone, "sent 6 ", "", "import", "--config", config, "--endpoint", "main", "--tenant", "team-b", "--name", "app", files)
	tenants := map[string]int{}
	for _, p := range s.Profiles() {
		tenants[p.Tenant]++
		expect(t, p.Labels["cluster"] == "prod", "labels: %v", p.Labels)
	}
	expect(t, tenants["team-a"] == 6 && tenants["team-b"] == 6, "tenants: %v", tenants)
	_, err := os.Stat(other)
	expect(t, err != nil, "the other endpoint's directory was made")
}

func TestImportUsage(t *testing.T) {
	t.Parallel()
	url := []string{"--url", "http://127.0.0.1:1"}
	for _, c := range []struct {
		code   int
		stderr string
		args   []string
	}{
		{exitUsage, "either --url or --config", []string{"--name", "a", "x"}},
		{exitUsage, "--name is needed", append(url, "x")},
		{exitUsage, "a FILE", append(url, "--name", "a")},
		{exitUsage, "given twice", append(url, "--name", "a", "--label", "k=1", "--label", "k=2", "x")},
		{exitUsage, "expected NAME=VALUE", append(url, "--name", "a", "--label", "k", "x")},
		{exitUsage, "has characters", append(url, "--name", "a", "--label", "k-1=2", "x")},
		{exitUsage, "has characters", append(url, "--protocol", "ingest", "--name", "a", "--label", "k.1=2", "x")},
		{exitUsage, "set by --name", append(url, "--name", "a", "--label", "service_name=2", "x")},
		{exitUsage, "set by profpull", append(url, "--name", "a", "--label", "__name__=2", "x")},
		{exitUsage, "expected a time", append(url, "--name", "a", "--from", "yesterday", "x")},
		{exitUsage, "later than", append(url, "--name", "a", "--from", "2000", "--until", "1000", "x")},
		{exitUsage, "once only", append(url, "--name", "a", "-", "-")},
		{exitUsage, "--max-size", append(url, "--name", "a", "--max-size", "2GiB", "x")},
		{exitInput, "protocol: expected", append(url, "--name", "a", "--protocol", "pusch", "x")},
		{exitInput, "url: expected a URL", []string{"--url", "ftp://x", "--name", "a", "x"}},
		{exitInput, "no-such-file: No such file", append(url, "--name", "a", "-q", "no-such-file")},
	} {
		expectCall(t, c.code, "", c.stderr, append([]string{"import"}, c.args...)...)
	}
	for _, name := range []string{"import", "verify"} {
		expectCall(t, exitDone, "Usage: profpull "+name, "", name, "--help")
	}
	expectCall(t, exitUsage, "", "--config is needed", "verify")
	big := writeFile(t, t.TempDir(), "big", bytes.Repeat([]byte("x"), 4096))
	expectCall(t, exitInput, "", "larger than 1KiB (--max-size)", append([]string{"import", "-q", "--name", "a", "--max-size", "1KiB", big}, url...)...)
}

// ---- verify -------------------------------------------------------------------------------------

// lines of verify, by the endpoint's name.
func verifyLines(t *testing.T, code int, config string, args ...string) map[string]string {
	t.Helper()
	r := expectCall(t, code, "*", "", append([]string{"verify", "--config", writeConfig(t, config)}, args...)...)
	expect(t, !strings.Contains(r.stdout, "hunter2"), "a secret was shown:\n%s", r.stdout)
	lines := map[string]string{}
	name := ""
	for _, line := range strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n") {
		if !strings.HasPrefix(line, " ") {
			name = strings.Fields(line)[1]
		}
		lines[name] += line + "\n"
	}
	return lines
}

func expectLines(t *testing.T, got map[string]string, want map[string][]string) {
	t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, part := range want[name] {
			expect(t, strings.Contains(got[name], part), "%s: expected %q in:\n%s", name, part, got[name])
		}
	}
}

// The profile is found on endpoints that work, if need be after a while; those that cannot be queried
// are reported as such.
func TestVerifyGood(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{Multitenant: true, HiddenFor: 2, Username: "u", Password: "hunter2", BasePath: "/profile"})
	gateway := startPyroscope(t, pyroscope.Options{NoQuerier: true})
	agent := startPyroscope(t, pyroscope.Options{DeepFlow: true})
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {external_labels: {cluster: prod}}
write:
  - {name: push, url: %q, tenant_id: a, basic_auth: {username: u, password: hunter2}}
  - {name: ingest, url: %q, protocol: ingest, tenant_id: b, basic_auth: {username: u, password: hunter2}}
  - {name: files, url: "file://%s"}
  - {name: gateway, url: %q}
  - {name: deepflow, url: "%s/api/v1/profile", protocol: ingest}
`, s.URL(), s.URL(), dir, gateway.URL(), agent.URL())
	expectLines(t, verifyLines(t, exitDone, config), map[string][]string{
		"push":     {"ok", "accepted, and found after"},
		"ingest":   {"ok", "accepted, and found after"},
		"files":    {"ok", "accepted, and found after"},
		"gateway":  {"ok", "accepted; not read back: nothing answers queries at this URL"},
		"deepflow": {"ok", "accepted; not read back", "--deepflow-querier"},
	})
	for _, p := range s.Profiles() {
		expect(t, p.Labels["service_name"] == "profpull-verify" && len(p.Labels["verify_id"]) == 16 && p.Profile.NonZero,
			"came: %v", p.Labels)
	}
	expect(t, s.Count() == 2 && gateway.Count() == 1 && agent.Count() == 1,
		"came: %d %d %d %v %v", s.Count(), gateway.Count(), agent.Count(), s.Refused(), agent.Refused())
}

// A Pyroscope that has compacted nothing yet finds a profile by its service alone. One that shows
// nothing at all of an empty tenant is no failure, but is waited for longer; if the tenant is not empty,
// it is one.
func TestVerifyFresh(t *testing.T) {
	t.Parallel()
	fresh := startPyroscope(t, pyroscope.Options{Fresh: true})
	blind := startPyroscope(t, pyroscope.Options{Blind: true})
	lossy := startPyroscope(t, pyroscope.Options{HiddenFor: 1 << 30})
	config := fmt.Sprintf("write:\n  - {name: fresh, url: %q}\n  - {name: ingest, url: %q, protocol: ingest}\n"+
		"  - {name: blind, url: %q}\n", fresh.URL(), fresh.URL(), blind.URL())
	expectLines(t, verifyLines(t, exitDone, config, "--timeout", "3s"), map[string][]string{
		"fresh":  {"ok", "accepted, and found after"},
		"ingest": {"ok", "accepted, and found after"},
		"blind":  {"ok", "accepted; not read back within 12s: the tenant was empty", "before its first compaction"},
	})
	config = fmt.Sprintf("write: [{name: lossy, url: %q}]\n", lossy.URL())
	expectLines(t, verifyLines(t, exitPeer, config, "--timeout", "3s"), map[string][]string{
		"lossy": {"FAILED", "accepted, but not found within 3s"},
	})
}

// An endpoint that does not work is reported with the reason and advice.
func TestVerifyBad(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{Username: "u", Password: "right"})
	blind := startPyroscope(t, pyroscope.Options{HiddenFor: 1 << 30})
	// A name server may take seconds to say that there is no such name.
	const patience = "60s"
	config := fmt.Sprintf(`
write:
  - {name: password, url: %q, basic_auth: {username: u, password: hunter2}}
  - {name: nobody, url: %q}
  - {name: path, url: "%s/profile", basic_auth: {username: u, password: right}}
  - {name: down, url: "http://%s:1"}
  - {name: tls, url: %q}
  - {name: dns, url: "http://no-such-host.invalid"}
  - {name: directory, url: "file:///proc/profiles"}
`, s.URL(), s.URL(), s.URL(), loop.Host(), strings.Replace(s.URL(), "http://", "https://", 1))
	expectLines(t, verifyLines(t, exitPeer, config, "--timeout", patience), map[string][]string{
		"password":  {"FAILED", "HTTP 401", "does not accept these credentials"},
		"nobody":    {"FAILED", "HTTP 401", "wants credentials"},
		"path":      {"FAILED", "HTTP 404", "url is the base URL"},
		"down":      {"FAILED", "connection refused", "check host and port"},
		"tls":       {"FAILED", "check that the server speaks TLS"},
		"dns":       {"FAILED", "no such host name"},
		"directory": {"FAILED", "cannot make the directory /proc/profiles"},
	})
	never := fmt.Sprintf("write: [{name: blind, url: %q}]\n", blind.URL())
	expectLines(t, verifyLines(t, exitPeer, never, "--timeout", "3s"), map[string][]string{
		"blind": {"FAILED", "accepted, but not found within 3s"},
	})
	expectLines(t, verifyLines(t, exitPeer, config, "--endpoint", "down"), map[string][]string{"down": {"connection refused"}})
	expectCall(t, exitInput, "", "/no/such/file", "verify", "--config", "/no/such/file")
}

// The profile is read back from DeepFlow's server, not from the agent, in the server's JSON.
func TestVerifyDeepFlow(t *testing.T) {
	t.Parallel()
	agent := startPyroscope(t, pyroscope.Options{DeepFlow: true})
	querier := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			AppService          string `json:"app_service"`
			ProfileEventType    string `json:"profile_event_type"`
			ProfileLanguageType string `json:"profile_language_type"`
			TimeStart           int64  `json:"time_start"`
			TimeEnd             int64  `json:"time_end"`
		}
		err := json.NewDecoder(r.Body).Decode(&q)
		if err != nil || r.Method != "POST" || r.URL.Path != "/v1/profile/ProfileTracing" || q.ProfileEventType != "cpu" ||
			q.ProfileLanguageType != "Golang" || q.TimeStart == 0 || q.TimeEnd <= q.TimeStart || q.AppService == "" {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"OPT_STATUS":"INVALID_POST_DATA","DESCRIPTION":"","result":null}`)
			return
		}
		values := []any{}
		for _, p := range agent.Profiles() {
			at := p.At.Unix()
			if p.Labels["service_name"] == q.AppService && at >= q.TimeStart && at <= q.TimeEnd {
				values = append(values, []int{0, -1, 1, 1})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"OPT_STATUS": "SUCCESS", "DESCRIPTION": "", "result": map[string]any{
			"node_values": map[string]any{"values": values}}})
	})
	config := fmt.Sprintf("write: [{name: deepflow, url: \"%s/api/v1/profile/ingest\", protocol: ingest}]\n", agent.URL())
	expectLines(t, verifyLines(t, exitDone, config, "--deepflow-querier", querier.URL()),
		map[string][]string{"deepflow": {"ok", "accepted, and found after"}})
}
