package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
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

// A profile that the ledger has counted as sent is in the store after kill -9 at any moment: five kills, or
// two hundred with E2E_LONG.
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
		kept := p.metrics().sum("profpull_store_profiles")
		require(t, kept >= acknowledged,
			"round %d: the store has %v profiles, %v were acknowledged", i, kept, acknowledged)
		sent := 0.0
		p.waitMetrics("profiles to be sent", func(m metrics) string {
			balance := m.ledger("local").balance()
			require(t, balance == "", "%s", balance)
			sent = m.ledger("local").sent
			return unless(sent != 0, "none")
		})
		time.Sleep(time.Duration(rand.Intn(300)) * time.Millisecond)
		sent = p.metrics().ledger("local").sent
		_ = p.cmd.Process.Kill()
		<-p.done
		acknowledged += sent
	}
	p := run(t, config)
	m := p.metrics()
	kept := m.sum("profpull_store_profiles")
	require(t, kept >= acknowledged, "the store has %v profiles, %v were acknowledged", kept, acknowledged)
	n := m.sum("profpull_store_file_faults_total")
	require(t, n == 0, "%v files with a fault", n)
	t.Logf("%d rounds, %v acknowledged, %v kept", rounds, acknowledged, m.sum("profpull_store_profiles"))
}

// waitStored waits until this process has stored so many profiles more.
func (p *program) waitStored(more float64) {
	p.t.Helper()
	before := p.metrics().ledger("local").sent
	until(p.t, "profiles to be stored", func() bool { return p.metrics().ledger("local").sent >= before+more })
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
	require(t, r.code != 0 && strings.Contains(r.stderr, want), "exit code %d, %s", r.code, r.stderr)
}

// sumOfStore is the sum of all values of a type of job0 in the store, asked for as Grafana asks.
func (p *program) sumOfStore() float64 {
	p.t.Helper()
	status, text := p.get(fmt.Sprintf("/pyroscope/render?format=json&from=now-1h&until=%d&query=", time.Now().Add(time.Hour).UnixMilli()) +
		url.QueryEscape(`goroutine:goroutine:count:goroutine:count{}`))
	var answer struct {
		Flamebearer struct{ NumTicks float64 }
	}
	err := json.Unmarshal([]byte(text), &answer)
	require(p.t, status == 200 && err == nil, "%d %v %s", status, err, text)
	return answer.Flamebearer.NumTicks
}

// waitEmptied waits until nothing is queued and the ledger balances; nothing may have been dropped.
func (p *program) waitEmptied() {
	p.t.Helper()
	p.wait("the queue to be empty", func() string {
		l := p.metrics().ledger("local")
		require(p.t, l.dropped == 0, "%v were dropped", l.dropped)
		if l.queued != 0 {
			return fmt.Sprint(l.queued, " wait")
		}
		return l.balance()
	})
}

// waitRefused waits until the store takes nothing, the log says why (a pattern), and profiles wait.
func (p *program) waitRefused(why string) {
	p.t.Helper()
	p.waitMetrics("a refusal for "+why, func(m metrics) string {
		balance := m.ledger("local").balance()
		require(p.t, balance == "", "%s", balance)
		switch {
		case m.sum("profpull_store_puts_total", "result", "failed") == 0:
			return "none"
		case m.ledger("local").queued < 20:
			return "too few wait"
		case m.sum("profpull_write_up", "endpoint", "local") != 0:
			return "the destination is up"
		case !regexp.MustCompile(why).MatchString(p.stderr.String()):
			return "the log says something else"
		}
		return ""
	})
}

// openWay lets other users in: each directory above a test's own is for its maker alone.
func openWay(dir string) {
	for ; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
}

// writeUntilFull fills a disk to its last byte.
func writeUntilFull(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	must(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// mountDisk makes a directory that is a disk of its own; the test is skipped for who may not.
func mountDisk(t *testing.T, disk string) {
	t.Helper()
	must(t, os.Mkdir(disk, 0o755))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot mount a disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
}

// The disk of the store is full: profiles wait, and the queue says why; what is stored is answered.
// A process that is killed then and started again on the full disk goes on waiting. When there is room
// again, all is stored.
func TestStoreOnAFullDisk(t *testing.T) {
	t.Parallel()
	full := "is full|No space left on device" // before a file is written, and while it is
	dir := t.TempDir()
	disk := filepath.Join(dir, "store")
	mountDisk(t, disk)
	tg := newTarget(t, target.Options{Functions: 50})
	config := storeConfig(tg.Addr(), dir)
	p := run(t, config)
	until(t, "stacks in the store", func() bool { return p.sumOfStore() != 0 })
	ballast := filepath.Join(disk, "ballast")
	writeUntilFull(t, ballast)
	p.waitRefused(full)
	before := p.metrics().ledger("local").sent
	expect(t, p.sumOfStore() != 0, "nothing is answered")
	_ = p.cmd.Process.Kill()
	<-p.done

	p = run(t, config)
	p.waitRefused(full)
	kept := p.metrics().sum("profpull_store_profiles")
	expect(t, kept >= before, "%v profiles were acknowledged, the store has %v", before, kept)
	expect(t, p.sumOfStore() != 0, "nothing is answered")
	must(t, os.Remove(ballast))
	p.waitEmptied()
	equal(t, "files given up", p.metrics().sum("profpull_store_file_faults_total"), 0)
}

// On a disk that is read-only the program does not start, and says where it is; what is stored stays.
func TestStoreOnAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk := filepath.Join(dir, "store")
	mountDisk(t, disk)
	remount := func(flags uintptr) {
		must(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|flags, "size=64m"))
	}
	tg := newTarget(t, target.Options{Functions: 50})
	config := storeConfig(tg.Addr(), dir)
	p := run(t, config)
	p.waitStored(1)
	kept := p.metrics().sum("profpull_store_profiles")
	p.stop()
	remount(syscall.MS_RDONLY)
	r := call(t, "", "run", "--config", writeConfig(t, config), "--listen", "127.0.0.1:0")
	expect(t, r.code != exitDone && strings.Contains(r.stderr, `endpoint "local": cannot open `+disk+"/lock: Read-only file system"),
		"exit code %d: %s", r.code, r.stderr)
	remount(0)
	p = run(t, config)
	n := p.metrics().sum("profpull_store_profiles")
	expect(t, n >= kept, "%v profiles were stored, %v are left", kept, n)
}

// The directory of the store cannot be written any more, so that no further file can be made.
// Profiles wait; what is stored is answered.
func TestStoreInADirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	// A further file is made for each half of a megabyte.
	config := strings.Replace(storeConfig(tg.Addr(), dir), "    retry:", "    retention: {max_bytes: 4MiB}\n    retry:", 1)
	wrapper := []string(nil)
	if os.Geteuid() == 0 {
		// Root may write everywhere.
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("needs setpriv (util-linux)")
		}
		wrapper = []string{setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"}
		must(t, os.Chown(dir, 65534, 65534))
		openWay(dir)
	}
	file := writeConfig(t, config)
	if os.Geteuid() == 0 {
		openWay(filepath.Dir(file))
	}
	p := startFile(t, wrapper, file)
	p.waitUp()
	until(t, "stacks in the store", func() bool { return p.sumOfStore() != 0 })
	store := filepath.Join(dir, "store")
	must(t, os.Chmod(store, 0o555))
	t.Cleanup(func() { _ = os.Chmod(store, 0o755) })
	p.waitRefused("cannot write to ")
	sum := p.sumOfStore()
	expect(t, sum != 0, "nothing is answered")
	must(t, os.Chmod(store, 0o755))
	p.waitEmptied()
}

// The directory of the store is removed, or cannot be written to, while profiles come: they wait, and
// none is lost.
func TestStoreWaitsForItsDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	// In its sandbox the program may not make the directory again.
	p := run(t, storeConfig(tg.Addr(), dir), "--sandbox", "off")
	p.waitStored(1)
	// A file in the place of the directory stops root, too.
	moved := filepath.Join(dir, "moved")
	must(t, os.Rename(filepath.Join(dir, "store"), moved))
	must(t, os.WriteFile(filepath.Join(dir, "store"), nil, 0o644))
	p.waitMetric(1, "profpull_store_puts_total", "result", "failed")
	must(t, os.Remove(filepath.Join(dir, "store")))
	p.waitStored(1)
	p.waitEmptied()
	p.stop()
	p.says("is not there any more")
}

// The directory of the store is removed while the sandbox is on, which does not let it be made again: the
// log, a metric and /-/healthy say that only a restart helps, and with a spool nothing is lost by it.
func TestStoreDirectoryIsRemovedInTheSandbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	config := storeConfig(tg.Addr(), dir)
	p := run(t, config)
	if p.metrics().sum("profpull_sandbox", "part", "landlock") != 1 {
		t.Skip("needs Landlock")
	}
	p.waitStored(1)
	if status, text := p.get("/-/healthy"); status != 200 || p.metrics().sum("profpull_store_up") != 1 {
		t.Errorf("/-/healthy: %d %s", status, text)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "store")))
	p.wait("the loss to be noticed", func() string {
		status, text := p.get("/-/healthy")
		if status != 503 || !strings.Contains(text, `endpoint "local": the directory `+dir+`/store was removed`) {
			return fmt.Sprint(status, text)
		}
		return unless(p.metrics().sum("profpull_store_up") == 0, "profpull_store_up")
	})
	p.says("the directory of the store may not be made or opened again: restart profpull")
	queued := 0.0
	p.wait("profiles to wait", func() string {
		queued = p.metrics().sum("profpull_write_spool_stored_profiles_total")
		return unless(queued >= 20, "%v", queued)
	})
	_ = p.cmd.Process.Kill()
	<-p.done
	p = run(t, config)
	p.waitMetrics("them to be stored", func(m metrics) string {
		return unless(m.sum("profpull_store_profiles") >= queued && m.sum("profpull_store_up") == 1,
			"%v", m.sum("profpull_store_profiles"))
	})
	p.waitEmptied()
}
