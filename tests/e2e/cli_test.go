package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// Exit codes of the program.
const (
	exitDone  = 0
	exitInput = 1
	exitUsage = 2
	exitPeer  = 3
)

// expectCall runs a subcommand and checks exit code and a part of each output ("" = must be empty,
// "*" = anything).
func expectCall(t *testing.T, code int, stdout, stderr string, args ...string) result {
	t.Helper()
	return ends(t, call(t, "", args...), code, stdout, stderr)
}

// ends checks exit code and a part of each output of a subcommand, as expectCall does.
func ends(t *testing.T, r result, code int, stdout, stderr string) result {
	t.Helper()
	check := func(name, got, want string) {
		t.Helper()
		expect(t, want == "*" || (want != "" || got == "") && strings.Contains(got, want),
			"%v: %s is %q, expected %q in it", r.args, name, got, want)
	}
	expect(t, r.code == code, "%v: exit code %d, expected %d\n%s%s", r.args, r.code, code, r.stdout, r.stderr)
	check("stdout", r.stdout, stdout)
	check("stderr", r.stderr, stderr)
	return r
}

// Results go to stdout and everything else to stderr; wrong usage is exit code 2 and mentions --help,
// wrong input is 1.
func TestUsage(t *testing.T) {
	t.Parallel()
	good := writeConfig(t, "scrape_configs: [{job_name: a, static_configs: [{targets: ['127.0.0.1:1']}]}]\nwrite: [{name: main, url: 'http://127.0.0.1:1'}]\n")
	for _, c := range []struct {
		code           int
		stdout, stderr string
		args           []string
	}{
		{exitDone, "profpull ", "", []string{"version"}},
		{exitDone, "profpull ", "", []string{"--version"}},
		{exitDone, "run", "", []string{"--help"}},
		{exitDone, "run", "", []string{"help"}},
		{exitUsage, "", "run", nil},
		{exitUsage, "", "frobnicate", []string{"frobnicate"}},
		{exitUsage, "", "unexpected argument", []string{"version", "x"}},
		{exitUsage, "", "top: unexpected argument: cpu.pb.gz; --file FILE asks a file", []string{"query", "top", "cpu.pb.gz"}},
		{exitPeer, "", "connection refused; does the server run? --url or PROFPULL_URL names another", []string{"query", "services", "--url", "127.0.0.1:1"}},
		{exitUsage, "", "--config", []string{"run"}},
		{exitUsage, "", "nonsense", []string{"run", "--nonsense"}},
		{exitUsage, "", "--drain-timeout", []string{"run", "--config", good, "--drain-timeout", "soon"}},
		{exitUsage, "", "--config", []string{"check"}},
		{exitInput, "", "KUBERNETES_SERVICE_HOST", []string{"discover"}},
		{exitUsage, "", "--pod", []string{"discover", "--pod", "a/b"}},
		{exitDone, "scrape_configs:", "", []string{"check", "--print-default"}},
		{exitUsage, "", "--rules", []string{"relabel"}},
		{exitInput, "", "/no/such/file", []string{"verify", "-c", "/no/such/file"}},
		{exitInput, "", "/no/such/file", []string{"import", "-c", "/no/such/file", "--name", "a", "."}},
		{exitUsage, "", "*", []string{"scrape"}},
		{exitInput, "", "/no/such/file", []string{"run", "--config", "/no/such/file"}},
		{exitInput, "", "/no/such/file", []string{"check", "--config", "/no/such/file"}},
		{exitInput, "", "/no/such/file", []string{"discover", "--config", "/no/such/file"}},
		{exitInput, "", "/no/such/file", []string{"relabel", "--rules", "/no/such/file"}},
	} {
		expectCall(t, c.code, c.stdout, c.stderr, c.args...)
	}
	for _, name := range []string{"run", "check", "discover", "relabel", "scrape", "import", "verify", "status", "spool", "store", "version"} {
		expectCall(t, exitDone, "Usage: profpull "+name, "", name, "--help")
	}
	expectCall(t, exitDone, "good", "", "check", "--config", good)
	tight := writeConfig(t, "global: {memory_limit: 64MiB, bodies_max_bytes: 64MiB}\nwrite: [{url: 'http://x'}]\n")
	expectCall(t, exitDone, "over global.memory_limit of 64.0 MiB", "", "check", "--config", tight)
}

// A file with eleven mistakes gives eleven errors in one run, each with its place, the key and what was
// expected; exit code 1, and `run` prints the same and does not start.
func TestEveryMistakeIsReported(t *testing.T) {
	t.Parallel()
	text := `global:
  scrape_interval: fast
scrape_configs:
  - job_name: one
    scheme: htttp
    scrape_timeot: 5s
    body_size_limit: lots
    static_configs:
      - targets: ["http://127.0.0.1:80/x"]
    relabel_configs:
      - {regex: "(", target_label: a}
      - {action: keeep}
      - {source_labels: [a], action: replace}
  - job_name: two
    job_name: three
write:
  - {name: main, url: "ftp://x", protocol: push}
  - {name: other, url: "http://127.0.0.1:1", protocol: pusch}
`
	mistakes := []struct{ at, path, says string }{
		{"fast", "global.scrape_interval", `expected a duration .*got "fast"`},
		{"htttp", "scrape_configs[0].scheme", `expected "http" or "https", got "htttp"`},
		{"scrape_timeot", "scrape_configs[0].scrape_timeot", `unknown key; did you mean "scrape_timeout"\?`},
		{"lots", "scrape_configs[0].body_size_limit", `expected .*got "lots"`},
		{`"http://127.0.0.1:80/x"`, "scrape_configs[0].static_configs[0].targets[0]", `expected host:port`},
		{`"("`, "scrape_configs[0].relabel_configs[0]", `missing closing \)`},
		{"keeep", "scrape_configs[0].relabel_configs[1].action", `keeep`},
		{"{source_labels: [a]", "scrape_configs[0].relabel_configs[2]", `target_label`},
		{"job_name: three", "scrape_configs[1].job_name", `duplicate key \(first on line 14\)`},
		{`"ftp://x"`, "write[0].url", `URL`},
		{"pusch", "write[1].protocol", `"push".*got "pusch"`},
	}
	file := writeConfig(t, text)
	for _, subcommand := range []string{"check", "run", "discover"} {
		r := expectCall(t, exitInput, "", "*", subcommand, "--config", file)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		var errors []string
		for _, line := range lines {
			if strings.HasPrefix(line, file+":") {
				errors = append(errors, strings.TrimPrefix(line, file))
			}
		}
		require(t, len(errors) == len(mistakes),
			"%s: %d errors, expected %d:\n%s", subcommand, len(errors), len(mistakes), r.stderr)
		for i, m := range mistakes {
			line, column := place(text, m.at)
			want := regexp.MustCompile(fmt.Sprintf(`^:%d:%d: %s[^ ]*: .*%s`, line, column, regexp.QuoteMeta(m.path), m.says))
			expect(t, want.MatchString(errors[i]), "%s: error %q, expected %s", subcommand, errors[i], want)
		}
	}
}

// place is the line and column of a text in a file, counted from one.
func place(text, part string) (line, column int) {
	before := text[:strings.Index(text, part)]
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}

// The normalised configuration loads to the same configuration and shows no secret.
func TestDumpIsAFixedPoint(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `
scrape_configs:
  - job_name: a
    basic_auth: {username: u, password: hidden-word}
    static_configs: [{targets: ["127.0.0.1:1"], labels: {"odd name": "x: [y]"}}]
    relabel_configs: [{source_labels: [a], regex: "b|c", target_label: d, replacement: "${1}"}]
write:
  - {name: main, url: "http://127.0.0.1:1", authorization: {credentials: hidden-word}, headers: {X-Key: hidden-word}}
`)
	first := expectCall(t, exitDone, "*", "", "check", "--dump", "--config", file)
	lacks(t, "the dump", first.stdout, "hidden-word")
	has(t, "the dump", first.stdout, "<secret>")
	again := expectCall(t, exitDone, "*", "", "check", "--dump", "--config", writeConfig(t, first.stdout))
	expect(t, again.stdout == first.stdout,
		"the dump of a dump is another:\n%s\n---\n%s", first.stdout, again.stdout)
}

// The examples in the repository are valid configurations.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.[ya][al]*")
	require(t, err == nil && len(files) != 0, "no examples: %v", err)
	for _, file := range files {
		expectCall(t, exitDone, "good", "", "check", "--config", file)
	}
}

type found struct {
	Job, Source string
	Labels      map[string]string
	Scrapes     []struct{ Type, URL string }
	DroppedBy   *struct {
		Rule int
		Text string
	} `json:"dropped_by"`
	Error string
}

func discoverLines(t *testing.T, text string) []found {
	t.Helper()
	var all []found
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var f found
		err := json.Unmarshal([]byte(line), &f)
		require(t, err == nil, "%v: %s", err, line)
		all = append(all, f)
	}
	return all
}

// discover prints the targets of static lists and of a cluster, with the URLs that would be fetched,
// and with --explain the rule that dropped the others; a cluster that does not answer is exit code 3.
func TestDiscover(t *testing.T) {
	t.Parallel()
	cluster, kubeconfig := newKube(t, kube.Options{})
	cluster.Put(kube.Annotated("kept", "10.1.2.3:6060", "memory"))
	cluster.Put(kube.Annotated("dropped", "10.1.2.4:6060"))
	file := writeConfig(t, strings.Replace(kubeConfig(kubeconfig, "http://127.0.0.1:1", "1h"), "write:\n", `  - job_name: fixed
    scheme: https
    params: {gc: ["1"]}
    profiles: {path_prefix: /admin, process_cpu: {seconds: 7s}}
    static_configs: [{targets: ["db.example:8443"], labels: {service_name: db}}]
write:
`, 1))
	r := expectCall(t, exitDone, "*", "", "discover", "--config", file)
	byJob := map[string]found{}
	lines := discoverLines(t, r.stdout)
	for _, f := range lines {
		byJob[f.Job] = f
	}
	require(t, len(lines) == 2, "%d targets:\n%s", len(lines), r.stdout)
	pod := byJob["pods"]
	expect(t, pod.Labels["pod"] == "kept" && len(pod.Scrapes) == 1 && pod.Scrapes[0].URL == "http://10.1.2.3:6060/debug/pprof/allocs",
		"the pod: %+v", pod)
	urls := map[string]string{}
	for _, s := range byJob["fixed"].Scrapes {
		urls[s.Type] = s.URL
	}
	expect(t, len(urls) == 5 && urls["process_cpu"] == "https://db.example:8443/admin/debug/pprof/profile?gc=1&seconds=7" &&
		urls["memory"] == "https://db.example:8443/admin/debug/pprof/allocs?gc=1",
		"the static target: %v", urls)
	r = expectCall(t, exitDone, "*", "*", "discover", "--explain", "--config", file)
	rules := map[string]int{}
	for _, f := range discoverLines(t, r.stdout) {
		if f.DroppedBy != nil {
			rules[f.Labels["__meta_kubernetes_pod_name"]] = f.DroppedBy.Rule
		}
	}
	expect(t, len(rules) == 1 && rules["dropped"] == 2, "dropped by rule: %v", rules)

	cluster.Down()
	expectCall(t, exitPeer, "*", "in time", "discover", "--timeout", "2s", "--config", file)
	must(t, cluster.Up())
	cluster.SetToken("another")
	expectCall(t, exitPeer, "*", "401", "discover", "--timeout", "2s", "--config", file)
}

// relabel reads JSON objects and prints one result or null per line; input that is not an object ends
// it with code 1 and the line number.
func TestRelabel(t *testing.T) {
	t.Parallel()
	rules := writeConfig(t, `
- {source_labels: [a, b], separator: "-", regex: "(x+)-(.*)", target_label: c, replacement: "$2:${1}"}
- {source_labels: [drop], regex: "yes", action: drop}
- {regex: "b", action: labeldrop}
`)
	r := call(t, `{"a":"xx","b":"ü"}
{"a":"q","drop":"yes"}
{}
`, "relabel", "--rules", rules)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require(t, r.code == exitDone && len(lines) == 3 && lines[1] == "null", "%d %q %q", r.code, r.stdout, r.stderr)
	var first map[string]string
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(first) != 2 || first["a"] != "xx" || first["c"] != "ü:xx" {
		t.Errorf("%s %v", lines[0], err)
	}
	ends(t, call(t, "{\"a\":\"x\"}\nnonsense\n", "relabel", "--rules", rules), exitInput, "*", "2")
	bad := writeConfig(t, "- {regex: '(?=x)', target_label: a}\n")
	expectCall(t, exitInput, "*", bad+":1:", "relabel", "--rules", bad)
}

// scrape fetches one profile, describes it and stores it byte for byte; a response that is not a
// profile, and a target that does not answer, are exit code 3 with the reason.
func TestScrape(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	file := filepath.Join(t.TempDir(), "out.pb.gz")
	r := expectCall(t, exitDone, "*", "*", "scrape", tg.URL(), "--type", "memory", "-o", file)
	raw := readFile(t, file)
	p, err := pprof.ParseGzip(raw)
	expect(t, err == nil && p.HasSampleType("alloc_space"), "stored: %v", err)
	has(t, "the output", r.stdout+r.stderr, fmt.Sprint(len(raw)))
	sent, _ := pprof.Inflate(raw, 1<<20)
	want := pprof.Make("heap", pprof.Options{})
	expect(t, len(sent) == len(want) && bytes.Equal(sent[:20], want[:20]), "other bytes were stored than sent")
	tg.SetFault("", target.HTML)
	expectCall(t, exitPeer, "*", "HTML", "scrape", tg.URL()+"/debug/pprof/heap")
	tg.SetFault("", target.CPUInUse)
	expectCall(t, exitPeer, "*", "already in use\nprofpull: a process can run one CPU profile at a time", "scrape", tg.URL()+"/debug/pprof/heap")
	expectCall(t, exitPeer, "*", "*", "scrape", "http://"+loop.Host()+":1/debug/pprof/heap")
	expectCall(t, exitUsage, "", "*", "scrape", tg.URL(), "--type", "nonsense")
}

// With a job of a configuration, its credentials and scheme are used.
func TestScrapeAsAJob(t *testing.T) {
	t.Parallel()
	profile := pprof.Make("heap", pprof.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "p" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(profile)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	config := writeConfig(t, fmt.Sprintf("scrape_configs:\n  - job_name: shop\n    basic_auth: {username: u, password: p}\n"+
		"    static_configs: [{targets: [%q]}]\nwrite: [{url: \"http://x\"}]\n", address))
	wrong := writeConfig(t, strings.Replace(readText(t, config), "password: p", "password: q", 1))
	expectCall(t, exitPeer, "", "HTTP 401\nprofpull: the target refuses access: --config FILE --job JOB sends the credentials of a job\n",
		"scrape", address, "--type", "memory")
	expectCall(t, exitPeer, "", "HTTP 401\nprofpull: the target refuses access: check basic_auth, authorization or tls_config of the job\n",
		"scrape", address, "--type", "memory", "--config", wrong, "--job", "shop")
	expectCall(t, exitDone, "alloc_space", "", "scrape", address, "--type", "memory", "--config", config, "--job", "shop")
	expectCall(t, exitInput, "", "did you mean \"shop\"?", "scrape", address, "--type", "memory", "--config", config, "--job", "shp")
	expectCall(t, exitUsage, "", "belong together", "scrape", address, "--job", "shop")
}

// A password file that cannot be read is reported with the reason, and nothing else breaks.
func TestPasswordFileUnreadable(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("secret-of-the-file\n"), 0o000))
	config := writeConfig(t, scraping(job("a", "scrape_interval: 500ms, profiles: "+snapshotsOnly, tg),
		"name: closed, url: "+server.URL()+", basic_auth: {username: u, password_file: "+file+"}, retry: {min_backoff: 100ms, max_backoff: 200ms}",
		"name: open, url: "+server.URL()))
	cmd := command(t, "run", "--config", config, "--listen", loop.Host()+":4041", "--drain-timeout", "1s")
	if os.Geteuid() == 0 {
		// Root may read everything.
		for dir := filepath.Dir(config); dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
			_ = os.Chmod(dir, 0o755)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var stderr output
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot run the program as another user: %v", err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
	}()
	wait(t, "a message that names the file", func() string {
		if text := stderr.String(); strings.Contains(text, file) && strings.Contains(text, "ermission denied") {
			return ""
		} else if len(text) > 0 {
			return tailLines(text, 5)
		}
		return "nothing"
	})
	select {
	case <-done:
		equal(t, "exit code", cmd.ProcessState.ExitCode(), exitInput)
	case <-time.After(100 * time.Millisecond):
		waitProfiles(t, server, 4, nil) // the other endpoint works
		if os.Getenv("E2E_LONG") != "1" {
			break // the next attempt with the closed one is due in half a minute
		}
		must(t, os.Chmod(file, 0o644))
		waitProfiles(t, server, 1, func(r *pyroscope.Received) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "Basic ")
		})
	}
	expect(t, !strings.Contains(stderr.String(), "secret-of-the-file"), "the password is in the log")
}

// The admin server: its pages, the format of its metrics, other methods and paths, and clients that are
// slow, many or hostile, which delay nobody else.
func TestAdminServer(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	p := run(t, scraping(job(`odd "job" \ name`, "scrape_interval: 500ms, profiles: "+snapshotsOnly, tg), to(server)))
	waitProfiles(t, server, 8, nil)
	for path, want := range map[string]int{"/": 200, "/links": 200, "/-/healthy": 200, "/-/ready": 200, "/metrics": 200,
		"/api/v1/targets": 200, "/nothing": 404, "/../etc/passwd": 404} {
		p.answers(path, want)
	}
	_, text := p.get("/metrics")
	checkExposition(t, text)
	m := p.metrics()
	atLeast(t, "scrapes counted for the job",
		m.sum("profpull_scrapes_total", "job", `odd \"job\" \\ name`, "result", "ok"), 4)
	b := m.ledger("main").balance()
	expect(t, b == "", "%s", b)
	atLeast(t, "scrapes with a lateness", m.sum("profpull_scrape_lateness_seconds_count"), 4)
	equal(t, "scrapes that are up", len(p.scrapes("?health=up")), 4)
	equal(t, "scrapes that are down", len(p.scrapes("?health=down")), 0)
	resp, err := http.Post(p.admin+"/metrics", "text/plain", strings.NewReader("x"))
	must(t, err)
	resp.Body.Close()
	expect(t, resp.StatusCode >= 400 && resp.StatusCode != 500, "POST: %s", resp.Status)
	rude(t, strings.TrimPrefix(p.admin, "http://"))
	before := server.Count()
	waitProfiles(t, server, before+4, nil)
	p.answers("/-/healthy", 200)
}

// checkExposition checks the text format: HELP and TYPE before the samples of each family, every
// sample readable, no sample twice.
func checkExposition(t *testing.T, text string) {
	t.Helper()
	types := map[string]string{}
	helped := map[string]bool{}
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP ") && len(words) == 4:
			helped[words[2]] = true
		case strings.HasPrefix(line, "# TYPE ") && len(words) == 4:
			expect(t, types[words[2]] == "", "TYPE of %s twice", words[2])
			types[words[2]] = words[3]
		default:
			all, err := parseMetrics(line)
			if err != nil || len(all) != 1 {
				t.Errorf("line %q: %v", line, err)
				continue
			}
			name := all[0].name
			family := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); base != name && types[base] == "histogram" {
					family = base
				}
			}
			expect(t, types[family] != "" && helped[family], "no TYPE or HELP before %s", line)
			expect(t, types[family] != "counter" || strings.HasSuffix(family, "_total"),
				"counter %s does not end with _total", family)
			key := line[:strings.LastIndexByte(line, ' ')]
			expect(t, !seen[key], "twice: %s", key)
			seen[key] = true
		}
	}
	expect(t, len(seen) >= 10, "only %d samples", len(seen))
}

// TestOutputThatCannotBeWritten checks that the exit code reports an output that is not complete.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	good := writeConfig(t, "scrape_configs: [{job_name: a, static_configs: [{targets: ['127.0.0.1:1']}]}]\nwrite: [{name: main, url: 'http://127.0.0.1:1'}]\n")
	for _, args := range [][]string{{"help"}, {"help", "run"}, {"--version"}, {"run", "--help"}, {"check", "-c", good}, {"check", "-c", good, "--dump"},
		{"check", "--print-default"}, {"discover", "-c", good}, {"convert", good}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		var stderr output
		cmd := command(t, args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		err = cmd.Run()
		full.Close()
		expect(t, exitCode(err) == exitInput && strings.Count(stderr.String(), "standard output: ") == 1,
			"%v: exit code %d, stderr %q", args, exitCode(err), stderr.String())
	}
}
