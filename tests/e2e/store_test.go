package e2e

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/target"
)

// storeConfig scrapes a target by ten jobs, forty profiles a second.
func storeConfig(target, dir string) string {
	jobs := ""
	for i := 0; i < 10; i++ {
		jobs += fmt.Sprintf(`
  - job_name: job%d
    profiles: {memory: {delta: off}, mutex: {delta: off}, block: {delta: off}, goroutine: {}, process_cpu: {enabled: false}}
    static_configs: [{targets: ["%s"]}]`, i, target)
	}
	return fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:%s
write:
  - name: local
    url: "store://%[2]s/store"
    retry: {max_backoff: 200ms, min_backoff: 10ms}
    queue: {spool_directory: "%[2]s/spool"}
`, jobs, dir)
}

// What the ledger has counted as sent is in the store after kill -9, at any moment: five times, and two
// hundred with E2E_LONG.
func TestStoreKeepsWhatItHasAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	config := storeConfig(tg.Addr(), dir)
	rounds := 5
	if os.Getenv("E2E_LONG") != "" {
		rounds = 200
	}
	acknowledged := 0.0
	for i := 0; i < rounds; i++ {
		p := run(t, config)
		if kept := p.metrics().sum("profpull_store_profiles"); kept < acknowledged {
			t.Fatalf("round %d: the store has %v profiles, %v were acknowledged", i, kept, acknowledged)
		}
		sent := 0.0
		p.wait("profiles to be sent", func() string {
			m := p.metrics()
			if balance := m.ledger("local").balance(); balance != "" {
				t.Fatal(balance)
			}
			sent = m.ledger("local").sent
			if sent == 0 {
				return "none"
			}
			return ""
		})
		time.Sleep(time.Duration(rand.Intn(300)) * time.Millisecond)
		sent = p.metrics().ledger("local").sent
		_ = p.cmd.Process.Kill()
		<-p.done
		acknowledged += sent
	}
	p := run(t, config)
	m := p.metrics()
	if kept := m.sum("profpull_store_profiles"); kept < acknowledged {
		t.Fatalf("the store has %v profiles, %v were acknowledged", kept, acknowledged)
	}
	if n := m.sum("profpull_store_file_faults_total"); n != 0 {
		t.Fatalf("%v files with a fault", n)
	}
	t.Logf("%d rounds, %v acknowledged, %v kept", rounds, acknowledged, m.sum("profpull_store_profiles"))
	p.stop()
}

// A second process says who has the lock, and ends.
func TestStoreOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 5})
	config := storeConfig(tg.Addr(), dir)
	p := run(t, config)
	second := strings.Replace(config, "/spool", "/spool2", 1)
	r := call(t, "", "run", "--config", writeConfig(t, second), "--listen", "127.0.0.1:0")
	want := fmt.Sprintf(`endpoint "local": another process (%d) writes to the directory %s/store`, p.cmd.Process.Pid, dir)
	if r.code == 0 || !strings.Contains(r.stderr, want) {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	p.stop()
}

// The directory of the store is removed, or cannot be written to, while profiles come: they wait, and
// none is lost.
func TestStoreWaitsForItsDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	p := run(t, storeConfig(tg.Addr(), dir))
	waitSent := func(more float64) {
		before := p.metrics().ledger("local").sent
		p.wait("profiles to be sent", func() string {
			if p.metrics().ledger("local").sent < before+more {
				return "not enough"
			}
			return ""
		})
	}
	waitSent(1)
	// A file in the place of the directory stops root, too.
	moved := filepath.Join(dir, "moved")
	if err := os.Rename(filepath.Join(dir, "store"), moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "store"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.wait("a failure", func() string {
		if p.metrics().sum("profpull_store_puts_total", "result", "failed") == 0 {
			return "none"
		}
		return ""
	})
	if err := os.Remove(filepath.Join(dir, "store")); err != nil {
		t.Fatal(err)
	}
	waitSent(1)
	p.wait("the queue to be empty", func() string {
		l := p.metrics().ledger("local")
		if l.queued != 0 {
			return fmt.Sprint(l.queued, " wait")
		}
		return l.balance()
	})
	p.stop()
	if !strings.Contains(p.stderr.String(), "is not there any more") {
		t.Fatal("the missing file is not named")
	}
}
