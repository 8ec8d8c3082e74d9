package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestDemo runs README's first command: `make run` prints the URL of a flame graph of a busy program,
// and ends in order.
func TestDemo(t *testing.T) {
	t.Parallel()
	binary := bin(t)
	cmd := exec.Command("./scripts/run.sh")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "BUILD="+filepath.Dir(binary), "DATA="+filepath.Join(t.TempDir(), "data"), "LISTEN=127.0.0.1:0")
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ended := false
	said := regexp.MustCompile(`busy program: (http://\S+)\n`)
	wait(t, "the address of the page", func() string {
		select {
		case err := <-done:
			done <- err
			ended = true
			return ""
		default:
		}
		return unless(said.MatchString(out.String()), "it has said: %s", out.String())
	})
	if match := said.FindStringSubmatch(out.String()); !ended && match != nil {
		resp, err := http.Get(match[1])
		must(t, err)
		page := bodyOf(t, resp)
		for _, part := range []string{`<svg class="flame"`, "<title>main.burnCPU: "} {
			expect(t, strings.Contains(string(page), part), "%s has no %s", match[1], part)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Log(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	expect(t, regexp.MustCompile(`Type: cpu\n(.*\n)*Showing nodes accounting for [1-9][0-9.]*m?s, `).MatchString(out.String()),
		"no CPU samples:\n%s", out.String())
}
