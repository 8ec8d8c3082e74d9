// Package e2e runs the real program against real programs and against fakes of its neighbours.
//
// Every test makes its own fakes on addresses of their own, writes a configuration, starts the
// program as a child process and looks at what arrives, at /metrics and at /api/v1/targets. Waiting
// is polling with a deadline far beyond what is needed; no pause decides a result. Whatever a test
// does, the program must end with the exit code expected and without a report of a sanitizer.
//
// PROFPULL_BIN       the program under test; without it all tests are skipped
// PROFPULL_PROGRAMS  where scripts/test-programs.sh has put the real programs
// PROFPULL_LOADGEN   the built program of tests/tools/loadgen
// PROFPULL_VALGRIND  1 runs the program under valgrind
// E2E_LONG           1 makes the outage of an endpoint two minutes long, shares 3,000 targets for five,
//
//	kills the program 200 times (twice: with a store, and with acknowledged profiles), fills a spool with a gigabyte and waits until
//	credentials are read again
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// patience is how long a test waits for what should come at once. It is not a measure of anything.
// An instrumented program may need several times as long.
func patience() time.Duration {
	if isInstrumented() {
		return 10 * time.Minute
	}
	return 2 * time.Minute
}

func bin(t *testing.T) string {
	t.Helper()
	name := os.Getenv("PROFPULL_BIN")
	if name == "" {
		t.Skip("PROFPULL_BIN names no program")
	}
	return name
}

// goTool is the go command that runs these tests.
func goTool() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// ---- child processes ----------------------------------------------------------------------------

// output collects what a child writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// sanitizerReport finds what AddressSanitizer, UBSan, TSan, LeakSanitizer or valgrind say.
var sanitizerReport = regexp.MustCompile(
	`(?m)(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: |^==\d+== ERROR SUMMARY: [1-9])`)

// command prepares the program under test, under valgrind if that is wanted.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	name := bin(t)
	if os.Getenv("PROFPULL_VALGRIND") == "1" {
		if args[0] == "run" { // valgrind opens files of its own
			args = append(args, "--sandbox", "off")
		}
		args = append([]string{"--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
			"--errors-for-leak-kinds=definite,indirect", "--error-exitcode=99", name}, args...)
		name = "valgrind"
	}
	cmd := exec.Command(name, args...)
	// Exit codes that cannot be taken for one of the program's own.
	// The kubeconfig of the person who runs the tests is not theirs.
	cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent/kubeconfig", "PROFPULL_ALLOW_SPECIAL_ADDRESS=true", "ASAN_OPTIONS=exitcode=98", "TSAN_OPTIONS=exitcode=97",
		"UBSAN_OPTIONS=print_stacktrace=1", "LSAN_OPTIONS=exitcode=96")
	return cmd
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// result of a subcommand that ends by itself.
type result struct {
	code           int
	stdout, stderr string
	args           []string
}

// call runs a subcommand to its end; stdin may be empty.
func call(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	cmd := command(t, args...)
	return callCommand(t, cmd, stdin)
}

func callCommand(t *testing.T, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var stdout, stderr output
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(patience()):
		_ = cmd.Process.Kill()
		<-done
		t.Fatalf("%v did not end\nstderr:\n%s", cmd.Args, stderr.String())
	}
	r := result{exitCode(err), stdout.String(), stderr.String(), cmd.Args}
	m := sanitizerReport.FindString(r.stderr)
	require(t, m == "", "%v: %s\n%s", cmd.Args, m, r.stderr)
	return r
}

// program is a running `profpull run`.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	admin  string // http://host:port
	config string
	stderr output
	done   chan struct{}
	code   int
}

var jobLine = regexp.MustCompile(`(?m)^( *)- job_name: .*$`)

// allowLoopback lets jobs scrape pods on loopback addresses, where all pods of these tests are.
func allowLoopback(text string) string {
	if !strings.Contains(text, "kubernetes_sd_configs") || strings.Contains(text, "allow_special_address") {
		return text
	}
	return jobLine.ReplaceAllString(text, "$0\n$1  allow_special_address: true")
}

// writeConfig writes a file into a directory of the test.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	text = allowLoopback(text)
	file := filepath.Join(t.TempDir(), "profpull.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	return content
}

// run starts `profpull run` with a configuration and waits until its admin server answers. The
// program is ended when the test is over, if the test has not done so.
func run(t *testing.T, config string, args ...string) *program {
	t.Helper()
	p := startUnder(t, nil, config, args...)
	p.waitUp()
	return p
}

// waitUp waits until the admin server answers.
func (p *program) waitUp() {
	p.t.Helper()
	p.wait("the admin server", func() string {
		require(p.t, !p.ended(), "the program ended: %v", p.cmd.ProcessState)
		resp, err := http.Get(p.admin + "/-/healthy")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return ""
	})
}

// startUnder is run without waiting; wrapper is a command in front of the program, which it must
// replace itself with.
func startUnder(t *testing.T, wrapper []string, config string, args ...string) *program {
	t.Helper()
	return startFile(t, wrapper, writeConfig(t, config), args...)
}

// startFile is startUnder with the configuration in a file.
func startFile(t *testing.T, wrapper []string, file string, args ...string) *program {
	t.Helper()
	p := &program{t: t, config: file, done: make(chan struct{})}
	listen := loop.Host() + ":4041"
	p.admin = "http://" + listen
	p.cmd = command(t, append([]string{"run", "--config", p.config, "--listen", listen}, args...)...)
	if len(wrapper) > 0 {
		p.cmd.Path, p.cmd.Args = wrapper[0], append(append([]string(nil), wrapper...), p.cmd.Args...)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stderr, &p.stderr
	must(t, p.cmd.Start())
	go func() {
		p.code = exitCode(p.cmd.Wait())
		close(p.done)
	}()
	t.Cleanup(p.cleanup)
	return p
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *program) cleanup() {
	if !p.ended() {
		if p.t.Failed() || p.t.Skipped() {
			_ = p.cmd.Process.Kill()
			<-p.done
		} else {
			p.stop()
		}
	}
	equal(p.t, "report of a sanitizer", sanitizerReport.FindString(p.stderr.String()), "")
	if p.t.Failed() {
		p.t.Logf("stderr of the program:\n%s", tailLines(p.stderr.String(), 80))
	}
}

func tailLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("... %d lines ...", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}

// stop sends SIGTERM and expects a clean end. It returns how long that took.
func (p *program) stop() time.Duration {
	p.t.Helper()
	begin := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience()):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.t.Fatalf("the program did not end after SIGTERM")
	}
	expect(p.t, p.code == 0, "%v after SIGTERM, expected exit status 0", p.cmd.ProcessState)
	return time.Since(begin)
}

// ---- waiting ------------------------------------------------------------------------------------

// orNothing is for a check of wait that says what it has seen: that may be empty, which would end the
// wait.
func orNothing(seen string) string {
	if seen == "" {
		return "nothing"
	}
	return seen
}

// wait polls until check returns "" or patience is at its end; what it said last is the message.
func wait(t *testing.T, what string, check func() string) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		missing := check()
		if missing == "" {
			return time.Since(begin)
		}
		require(t, time.Since(begin) <= patience(), "waited for %s: %s", what, missing)
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *program) wait(what string, check func() string) time.Duration {
	p.t.Helper()
	return wait(p.t, what, check)
}

// says waits for a part of the log, which comes through a pipe: later than what it is about.
func (p *program) says(part string) {
	p.t.Helper()
	p.wait("a line of the log with "+part, func() string {
		return unless(strings.Contains(p.stderr.String(), part), "there is none")
	})
}

// ---- the admin server ---------------------------------------------------------------------------

func (p *program) get(path string) (int, string) {
	p.t.Helper()
	client := http.Client{Timeout: patience()}
	resp, err := client.Get(p.admin + path)
	require(p.t, err == nil, "%s: %v", path, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require(p.t, err == nil, "%s: %v", path, err)
	return resp.StatusCode, string(body)
}

// answers checks the status of a path and that its body has each of these parts.
func (p *program) answers(path string, status int, parts ...string) {
	p.t.Helper()
	got, text := p.get(path)
	expect(p.t, got == status, "%s: %d, expected %d: %s", path, got, status, text)
	has(p.t, path, text, parts...)
}

// bodyOf reads and closes the body of a response.
func bodyOf(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return body
}

// sample is one line of /metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

type metrics []sample

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

func parseMetrics(text string) (metrics, error) {
	var all metrics
	for _, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("not a sample: %q", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %v", line, err)
		}
		s := sample{name: m[1], labels: map[string]string{}, value: value}
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			s.labels[pair[1]] = pair[2]
		}
		all = append(all, s)
	}
	return all, nil
}

func (p *program) metrics() metrics {
	p.t.Helper()
	status, text := p.get("/metrics")
	all, err := parseMetrics(text)
	require(p.t, status == 200 && err == nil, "/metrics: %d %v", status, err)
	return all
}

// sum adds up what has this name and these labels ("job", "pods", ...).
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, s := range m {
		ok := s.name == name
		for i := 0; ok && i < len(labels); i += 2 {
			ok = s.labels[labels[i]] == labels[i+1]
		}
		if ok {
			total += s.value
		}
	}
	return total
}

// ledger is what the metrics say of one endpoint.
type ledger struct{ accepted, replayed, sent, dropped, merged, queued, inFlight, queuedBytes, limit float64 }

func (m metrics) ledger(endpoint string) ledger {
	get := func(name string) float64 { return m.sum("profpull_write_"+name, "endpoint", endpoint) }
	return ledger{
		accepted: get("accepted_profiles_total"), replayed: get("replayed_profiles_total"), sent: get("sent_profiles_total"),
		dropped: get("dropped_profiles_total"), merged: get("merged_profiles_total"), queued: get("queued_profiles"),
		inFlight: get("in_flight_profiles"), queuedBytes: get("queued_bytes"), limit: get("queue_limit_bytes"),
	}
}

// balance is "" if nothing is missing: accepted + replayed = sent + dropped + merged + queued + in
// flight.
func (l ledger) balance() string {
	if l.accepted+l.replayed == l.sent+l.dropped+l.merged+l.queued+l.inFlight {
		return ""
	}
	return fmt.Sprintf("the ledger does not balance: %+v", l)
}

// waitMetric waits until the sum of a metric is at least this.
func (p *program) waitMetric(least float64, name string, labels ...string) {
	p.t.Helper()
	reaches(p.t, fmt.Sprint(name, labels), least, func() float64 { return p.metrics().sum(name, labels...) })
}

// waitMetrics is wait for a check of the metrics.
func (p *program) waitMetrics(what string, check func(m metrics) string) {
	p.t.Helper()
	p.wait(what, func() string { return check(p.metrics()) })
}

// waitQueued waits until so many profiles wait for an endpoint, and waitSent until none does.
func (p *program) waitQueued(endpoint string, n float64) {
	p.t.Helper()
	p.wait("a queue", func() string {
		l := p.metrics().ledger(endpoint)
		return unless(l.queued >= n, "%+v", l)
	})
}

func (p *program) waitSent(endpoint string) {
	p.t.Helper()
	p.wait("the queue to be empty", func() string {
		l := p.metrics().ledger(endpoint)
		return unless(l.queued+l.inFlight == 0, "%+v", l)
	})
}

// scrape is one entry of /api/v1/targets.
type scrape struct {
	Job, Type, Follows, URL, Health, Reason, LastError string
	Labels                                             map[string]string
	LastScrape, NextDue                                *time.Time
	InFlight                                           bool
	LastDurationSeconds                                float64
	LastSizeBytes                                      int64
	Successes, Failures, Skipped                       int64
	Conflicts                                          struct{ Found, Of int }
}

func (p *program) scrapes(query string) []scrape {
	p.t.Helper()
	status, text := p.get("/api/v1/targets" + query)
	var page struct {
		Status string
		Data   struct{ Scrapes []scrape }
	}
	err := json.Unmarshal([]byte(text), &page)
	require(p.t, err == nil && status == 200 && page.Status == "success",
		"/api/v1/targets: %d %v\n%s", status, err, text)
	return page.Data.Scrapes
}

// scrape returns the one whose URL contains the text, or nil.
func (p *program) scrape(part string) *scrape {
	p.t.Helper()
	for _, s := range p.scrapes("") {
		if strings.Contains(s.URL, part) {
			return &s
		}
	}
	return nil
}

// rss is the resident memory of the program in bytes.
func (p *program) rss() int64 {
	p.t.Helper()
	text := readFile(p.t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	require(p.t, m != nil, "no VmRSS in\n%s", text)
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// instrumented builds have other sizes and speeds.
func instrumented(t *testing.T) bool {
	bin(t)
	return isInstrumented()
}

var instrumentation struct {
	once  sync.Once
	found bool
}

// isInstrumented reads the program once.
func isInstrumented() bool {
	instrumentation.once.Do(func() {
		if os.Getenv("PROFPULL_VALGRIND") == "1" {
			instrumentation.found = true
			return
		}
		text, err := os.ReadFile(os.Getenv("PROFPULL_BIN"))
		instrumentation.found = err == nil && (bytes.Contains(text, []byte("__asan_init")) || bytes.Contains(text, []byte("__tsan_init")))
	})
	return instrumentation.found
}

// ---- fakes --------------------------------------------------------------------------------------

func newPyroscope(t *testing.T, o pyroscope.Options) *pyroscope.Server {
	t.Helper()
	s, err := pyroscope.Start(o)
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

func newTarget(t *testing.T, o target.Options) *target.Target {
	t.Helper()
	tg, err := target.Start(o)
	must(t, err)
	t.Cleanup(tg.Down)
	return tg
}

// newNeighbours starts a server to write to and a target to scrape.
func newNeighbours(t *testing.T) (*pyroscope.Server, *target.Target) {
	t.Helper()
	return newPyroscope(t, pyroscope.Options{}), newTarget(t, target.Options{})
}

func newTargets(t *testing.T, n int, o target.Options) []*target.Target {
	t.Helper()
	all := make([]*target.Target, n)
	for i := range all {
		all[i] = newTarget(t, o)
	}
	return all
}

// serve starts an HTTP server of a test's own.
func serve(t *testing.T, handle http.HandlerFunc) *loop.Server {
	t.Helper()
	s, err := loop.Start("", handle, nil)
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

// newKube starts a fake cluster and writes a kubeconfig for it.
func newKube(t *testing.T, o kube.Options) (*kube.Server, string) {
	t.Helper()
	s, err := kube.Start(o)
	must(t, err)
	t.Cleanup(s.Down)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, s.WriteKubeconfig(file))
	return s, file
}

// waitProfiles waits until the server has n profiles that match (nil: all).
func waitProfiles(t *testing.T, s *pyroscope.Server, n int, match func(*pyroscope.Received) bool) []pyroscope.Received {
	t.Helper()
	var found []pyroscope.Received
	wait(t, fmt.Sprintf("%d profiles", n), func() string {
		found = found[:0]
		all := s.Profiles()
		for i := range all {
			if match == nil || match(&all[i]) {
				found = append(found, all[i])
			}
		}
		return unless(len(found) >= n, "%d have arrived; refused: %q", len(found), s.Refused())
	})
	return found
}

// noneRefused fails if the server had to refuse anything.
func noneRefused(t *testing.T, s *pyroscope.Server) {
	t.Helper()
	if r := s.Refused(); len(r) > 0 {
		t.Errorf("the server refused %d requests, the first: %s", len(r), r[0])
	}
}

// pprofTop is what `go tool pprof -top` says of a profile.
func pprofTop(t *testing.T, raw []byte, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.pb.gz")
	must(t, os.WriteFile(file, raw, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	args = append(append([]string{"tool", "pprof", "-top"}, args...), file)
	text, err := exec.CommandContext(ctx, goTool(), args...).CombinedOutput()
	require(t, err == nil, "go tool pprof: %v\n%s", err, text)
	return string(text)
}
