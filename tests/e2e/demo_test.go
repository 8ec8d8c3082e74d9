package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// What README shows first: `make run` stores CPU profiles that have samples, and prints one.
func TestDemo(t *testing.T) {
	t.Parallel()
	binary := bin(t)
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command("./scripts/run.sh")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "BUILD="+filepath.Dir(binary), "DATA="+data, "LISTEN=127.0.0.1:0", "RUN_SECONDS=600")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	stored := filepath.Join(data, "busy", "process_cpu", "*.pb.gz")
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if found, _ := filepath.Glob(stored); len(found) > 0 || len(done) > 0 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Log(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !regexp.MustCompile(`Type: cpu\n(.*\n)*.*Total samples = [1-9][0-9.]*m?s `).Match(out.Bytes()) {
		t.Errorf("no CPU samples:\n%s", out.String())
	}
}
