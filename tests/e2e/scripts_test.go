package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// make deb says what it does and where the package is, and works without lintian. The tools that compile are stubs.
func TestDebWithoutLintian(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("no dpkg")
	}
	tools, build := t.TempDir(), t.TempDir()
	all, err := os.ReadDir("/usr/bin")
	must(t, err)
	for _, tool := range all {
		if tool.Name() != "lintian" {
			must(t, os.Symlink("/usr/bin/"+tool.Name(), filepath.Join(tools, tool.Name())))
		}
	}
	for name, text := range map[string]string{
		"dh": "", "fakeroot": "",
		"dpkg-buildpackage": "test -e debian/control && test -e debian/profpull.service && for arch; do :; done && : >../profpull_$(cat VERSION)_$arch.deb\n",
	} {
		_ = os.Remove(filepath.Join(tools, name))
		must(t, os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	cmd := exec.Command("/bin/sh", "scripts/deb.sh")
	cmd.Dir = "../.."
	// The checkout may belong to another user.
	cmd.Env = []string{"PATH=" + tools, "BUILD=" + build, "HOME=" + build, "GIT_TEST_ASSUME_DIFFERENT_OWNER=1"}
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"building the package profpull ", "with optimised code and debug symbols; the log is " + build,
		"lintian is not installed: the package is not checked\n", ".deb: install it with sudo apt-get install " + build + "/profpull_"} {
		expect(t, err == nil && strings.Contains(string(out), want), "%v, or no %q:\n%s", err, want, out)
	}
	found, _ := filepath.Glob(filepath.Join(build, "profpull_*.deb"))
	expect(t, len(found) == 1, "packages: %v", found)
}

// In a tree that another user owns, git refuses to answer, and with it a go that stamps what it builds with the commit. git says
// of itself that it takes every tree for such a one.
func TestGoBuildsInTheTreeOfAnotherUser(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("no checkout of git")
	}
	build := t.TempDir()
	cmd := exec.Command("sh", "-ec", ". scripts/go-tool.sh; e2e_tool benchtable")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GIT_TEST_ASSUME_DIFFERENT_OWNER=1", "BUILD="+build, "GO="+goTool(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(build, "benchtable")); err != nil {
		t.Error(err)
	}
	scripts, err := filepath.Glob("../../scripts/*.sh")
	must(t, err)
	builds := regexp.MustCompile(`(?i)\$\{?go(:-go)?\}?"? build `)
	for _, script := range scripts {
		text := readText(t, script)
		expect(t, !builds.MatchString(text) || strings.Contains(text, "-buildvcs=false") || filepath.Base(script) == "charts.sh",
			"%s builds programs without -buildvcs=false", script)
	}
}
