package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
	builds := regexp.MustCompile(`(?i)\$\{?go[^ ]* build |GOFLAGS=[^ ]`)
	for _, script := range scripts {
		text := readText(t, script)
		if builds.MatchString(text) && !strings.Contains(text, "-buildvcs=false") && filepath.Base(script) != "charts.sh" {
			t.Errorf("%s builds programs without -buildvcs=false", script)
		}
	}
}
