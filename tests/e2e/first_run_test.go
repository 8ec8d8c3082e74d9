package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The directory of --data is a path, not a URL; messages name what to change.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runIn := func(args ...string) result {
		cmd := command(t, append([]string{"run", "--for", "10ms"}, args...)...)
		cmd.Dir = dir
		return callCommand(t, cmd, "")
	}
	for _, name := range []string{"a b", "x%41y", "h#1", "deep/er", "q?x=1"} {
		ends(t, runIn("--target", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--data", name), exitDone, "*", "*")
		if _, err := os.Stat(filepath.Join(dir, name, "lock")); err != nil {
			t.Errorf("no store in it: %v", err)
		}
	}
	for _, name := range []string{"", "/", "//"} {
		ends(t, runIn("--target", "127.0.0.1:1", "--data", name), exitInput, "*", "--data: expected a directory other than /")
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	ends(t, runIn("--target", "127.0.0.1:1", "--data", "file/x"), exitInput, "*", "--data: cannot make the directory file")
	contained := command(t, "run", "--for", "10ms", "--target", "127.0.0.1:1", "--data", "file/x")
	contained.Dir, contained.Env = dir, append(os.Environ(), "container=oci")
	ends(t, callCommand(t, contained, ""), exitInput, "*",
		"Not a directory; in a container, mount a volume and name it: -v profiles:/data, --data /data")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	if r := runIn("--target", "127.0.0.1:1", "--data", "a b", "--listen", taken.Addr().String()); r.code != exitInput || !strings.Contains(r.stderr, "Address already in use: choose another one with --listen") {
		t.Errorf("%+v", r)
	}
	r := runIn()
	for _, way := range []string{"--target", "--write.url", "--config"} {
		expect(t, r.code == exitUsage && strings.Contains(r.stderr, "  profpull run "+way), "%s is not named: %+v", way, r)
	}
}

// make and make run compile with a job for each processor, other goals as the user says.
func TestMakeIsParallel(t *testing.T) {
	t.Parallel()
	for goals, want := range map[string]bool{"": true, "all": true, "run": true, "check": false, "check lint": false, "all -j1": false} {
		cmd := exec.Command("make", append([]string{"-C", "../..", "-npq"}, strings.Fields(goals)...)...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "MAKE") { // the tests may run below make
				cmd.Env = append(cmd.Env, v)
			}
		}
		text, _ := cmd.Output() // -q: the code says whether something is to be done
		flags := ""
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "MAKEFLAGS = ") {
				flags = line
			}
		}
		expect(t, flags != "" && (strings.Contains(flags, "-j") && !strings.Contains(flags+" ", "-j1 ")) == want,
			"make %s: %q, expected parallel: %v", goals, flags, want)
	}
}
