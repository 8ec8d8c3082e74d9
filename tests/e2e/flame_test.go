package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	fakepprof "profpull.test/e2e/fakes/pprof"
)

// cartProfile is a CPU profile of a Go program: the handler of a shop's cart under load.
func cartProfile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../unit/data/flame/cart.pb.gz")
	must(t, err)
	return path
}

// total returns the total of what a subject of query prints as JSON.
func total(t *testing.T, args ...string) int64 {
	t.Helper()
	r := call(t, "", args...)
	var got struct {
		Unit  string
		Total int64
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitDone || got.Unit != "nanoseconds" {
		t.Fatalf("%q: %v, exit code %d\n%.500s%s", args, err, r.code, r.stdout, r.stderr)
	}
	return got.Total
}

// A file, a running profpull and its store, read after it has ended, are drawn alike.
func TestFlameFromEverywhere(t *testing.T) {
	t.Parallel()
	file := cartProfile(t)
	raw, err := os.ReadFile(file)
	must(t, err)
	parsed, err := fakepprof.ParseGzip(raw)
	must(t, err)
	want := parsed.Sums()["cpu"]
	at := parsed.TimeNanos / int64(time.Second)
	directory := t.TempDir()
	p, address := runCollectorIn(t, directory)
	postProfile(t, "http://"+address+"/api/0/profiles?service=cart&type=cpu&instance_id=i1&labels=version=1", raw)
	postProfile(t, "http://"+address+"/api/0/profiles?service=cart&type=cpu&instance_id=i2&labels=version=2", raw)
	window := []string{"--service", "cart", "--from", fmt.Sprint(at - 60), "--until", fmt.Sprint(at + 60)}
	p.wait("the profiles", func() string {
		r := call(t, "", append([]string{"query", "flame", "--json", "--url", p.admin}, window...)...)
		if !strings.Contains(r.stdout, fmt.Sprintf(`"total":%d,`, 2*want)) {
			return orNothing(r.stderr + fmt.Sprintf("%.80s", r.stdout))
		}
		return ""
	})
	places := map[string][]string{
		"file": {"--file", file},
		"url":  append([]string{"--url", p.admin, "--label", "version=1"}, window...),
	}
	check := func(name string, place []string) {
		for _, subject := range [][]string{{"flame"}, {"top"}, {"peek", "json.Unmarshal$"}} {
			args := append(append([]string{"query"}, subject...), place...)
			equal(t, fmt.Sprint(name, ": the total of ", subject), total(t, append(args, "--json")...), want)
			expectCall(t, exitDone, "5.05s", "", append(args, "--width", "160")...)
		}
		diff := append([]string{"query", "diff", "--base-file", file}, place...)
		expectCall(t, exitDone, "grew: 0 functions\nshrank: 0 functions\n", "", diff...)
	}
	for name, place := range places {
		check(name, place)
	}
	expectCall(t, exitDone, "grew: 0 functions\nshrank: 0 functions\n", "",
		append([]string{"query", "diff", "--url", p.admin, "--label", "version=1", "--base-label", "version=2"}, window...)...)
	expectCall(t, exitDone, "base 0.00s, now 10.10s: +10.10s\n", "",
		append([]string{"query", "diff", "--url", p.admin, "--base-before", "10m"}, window...)...)
	expectCall(t, exitInput, "", "--url instead of --store: http://127.0.0.1:4041, or the address of its server.listen", append([]string{"query", "top", "--store", directory}, window...)...)
	p.stop()
	check("store", append([]string{"--store", directory, "--label", "version=1"}, window...))
	expectCall(t, exitDone, "cart\n", "", append([]string{"query", "services", "--store", directory}, window...)...)
	expectCall(t, exitInput, "", "--store "+directory+"/none: ", "query", "top", "--store", directory+"/none")
	expectCall(t, exitUsage, "", "exclude each other", "query", "top", "--store", directory, "--file", file)
	expectCall(t, exitUsage, "", "diff needs a base", "query", "diff", "--file", file)
	expectCall(t, exitUsage, "", "peek needs a FUNCTION", "query", "peek", "--file", file)
}

// Without a terminal there is plain text, whatever the environment says; recordings of Java are drawn, too.
func TestFlameOfAFile(t *testing.T) {
	t.Parallel()
	cmd := command(t, "flame", cartProfile(t))
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C", "COLUMNS=100")
	r := callCommand(t, cmd, "")
	lines := strings.Split(r.stdout, "\n")
	if r.code != exitDone || strings.Contains(r.stdout, "\033") || len(lines) < 10 || len(lines[1]) != 100 ||
		lines[0] != "cart.pb.gz: 5.05s, 26 levels" || !strings.HasPrefix(lines[1], "|total 100.0%") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	expectCall(t, exitDone, "recording.jfr: ", "", "flame", "../unit/data/jfr/recording.jfr")
	expectCall(t, exitInput, "", "not a pprof profile", "flame", os.Args[0])
	expectCall(t, exitInput, "", "/dev/null: ", "flame", "/dev/null")
	expectCall(t, exitInput, "", "cannot open", "flame", "/none.pb.gz")
	expectCall(t, exitInput, "", `no sample type "nope"`, "flame", cartProfile(t), "--type", "nope")
	expectCall(t, exitUsage, "", "expected one FILE", "flame")
}

// query peek prints what go tool pprof prints.
func TestPeekAsPprof(t *testing.T) {
	t.Parallel()
	const pattern = `json.Unmarshal$|mallocgc$|handler.func1$`
	cmd := exec.Command(goTool(), "tool", "pprof", "-peek", pattern, "-nodefraction=0", "-edgefraction=0", "-unit=s",
		cartProfile(t))
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	text, err := cmd.Output()
	must(t, err)
	spaces := regexp.MustCompile(`[ \t]+`)
	lines := func(text string) (list []string) {
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "|") {
				line = strings.ReplaceAll(strings.TrimSpace(spaces.ReplaceAllString(line, " ")), "0.00s", "0")
				line = strings.TrimSuffix(line, " (inline)")
				list = append(list, line)
			}
		}
		return list
	}
	r := call(t, "", "query", "peek", pattern, "--as-recorded", "--file", cartProfile(t))
	got, want := lines(r.stdout), lines(string(text))
	expect(t, len(want) >= 10 && strings.Join(got, "\n") == strings.Join(want, "\n"),
		"profpull:\n%s\n%s\npprof:\n%s", r.stdout, r.stderr, text)
}

// top --watch asks again and again, and ends with a signal.
func TestTopWatch(t *testing.T) {
	t.Parallel()
	cmd := command(t, "query", "top", "--watch", "--interval", "100ms", "-n", "1", "--file", cartProfile(t))
	var out output
	cmd.Stdout = &out
	must(t, cmd.Start())
	deadline := time.Now().Add(patience())
	for strings.Count(out.String(), "5.05s in ") < 3 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // in the background of a shell, the program inherits that it ignores SIGINT
	_ = cmd.Wait()
	expect(t, strings.Count(out.String(), "5.05s in ") >= 3, "%s", out.String())
}

// The pictures of terminals in the docs are what profpull draws.
func TestFlamePictures(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	cmd := exec.Command("../../scripts/flame-pictures.sh", to)
	cmd.Env = append(os.Environ(), "BUILD="+filepath.Dir(bin(t)), "GO="+goTool())
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"flame-80-light.svg", "flame-80-dark.svg", "flame-160-light.svg", "flame-160-dark.svg",
		"flame-java.svg", "flame-cpp.svg", "flame-rust.svg", "flame-brpc.svg"} {
		got, err := os.ReadFile(filepath.Join(to, name))
		must(t, err)
		want, err := os.ReadFile("../../docs/" + name)
		expect(t, err == nil && string(got) == string(want),
			"docs/%s differs from what is drawn (%v): run make flame-pictures", name, err)
	}
}
