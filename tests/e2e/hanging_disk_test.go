package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// The disk of one destination hangs: its index is a pipe that nobody reads, so that a call of the
// system never returns. Deltas are computed and another destination gets them as ever, another
// directory gets its files, and the hang is in the log, in the metrics and at /-/healthy. It ends as
// it began; SIGTERM while it lasts ends the process soon after the deadline of the drain.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	address := startLoadgen(t)
	server := newPyroscope(t, pyroscope.Options{})
	hung, good := t.TempDir(), t.TempDir()
	index := filepath.Join(hung, "index.jsonl")
	must(t, syscall.Mkfifo(index, 0o600))
	p := run(t, scraping(jobAt("load", "scrape_interval: 500ms, scrape_timeout: 500ms, profiles: {process_cpu: {enabled: false}}", address),
		to(server),
		"name: hung, url: \"file://"+hung+"\", queue: {max_bytes: 1MiB}",
		"name: good, url: \"file://"+good+"\""), "--drain-timeout", "1s")
	noticed := func() string {
		m := p.metrics()
		return unless(m.sum("profpull_write_hung_seconds", "endpoint", "hung") >= 5 &&
			m.sum("profpull_write_up", "endpoint", "hung") == 0,
			"profpull_write_hung_seconds is low")
	}
	p.wait("the hang to be noticed", noticed)
	p.says(`msg="the disk of an endpoint hangs" endpoint=hung`)
	p.answers("/-/healthy", 200, `endpoint "hung": its disk`)
	before := len(server.Profiles())
	for _, name := range []string{"memory", "mutex", "block", "goroutine"} {
		p.wait("profiles of the other endpoint", func() string {
			n := 0
			for _, r := range server.Profiles()[before:] {
				if r.Name() == name {
					n++
				}
			}
			return unless(n >= 2, "%s: %d since the hang", name, n)
		})
		p.wait("files of the other directory", func() string {
			if files, _ := filepath.Glob(filepath.Join(good, "load", name, "*.pb.gz")); len(files) < 5 {
				return name + " is missing"
			}
			return ""
		})
	}
	m := p.metrics()
	for _, endpoint := range []string{"main", "good"} {
		up := m.sum("profpull_write_up", "endpoint", endpoint)
		expect(t, up == 1 && m.sum("profpull_write_hung_seconds", "endpoint", endpoint) == 0,
			"%s: up %.0f", endpoint, up)
	}

	// Somebody reads the pipe: everything goes on.
	reader, err := os.OpenFile(index, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	p.waitMetrics("the end of the hang", func(m metrics) string {
		return unless(m.sum("profpull_write_hung_seconds", "endpoint", "hung") == 0 &&
			m.sum("profpull_write_sent_profiles_total", "endpoint", "hung") != 0,
			"it hangs")
	})
	p.says(`msg="the disk of an endpoint answers again" endpoint=hung`)

	// And nobody again, until the end.
	reader.Close()
	p.wait("the next hang", noticed)
	p.stop()
	p.says("a thread hangs")
}

// With a spool, what a hanging disk has not taken by the deadline of the drain stays on the disk of the
// spool, and the next process writes it.
func TestHangingDiskWithSpool(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	hung, spool := t.TempDir(), t.TempDir()
	index := filepath.Join(hung, "index.jsonl")
	must(t, syscall.Mkfifo(index, 0o600))
	config := scraping(job("one", "scrape_interval: 300ms, scrape_timeout: 300ms, profiles: "+only("goroutine: {}"), tg),
		"name: hung, url: file://"+hung+", queue: {spool_directory: "+spool+"}")
	p := run(t, config, "--drain-timeout", "1s")
	p.waitMetric(8, "profpull_write_spool_profiles", "endpoint", "hung")
	p.stop()
	l := endpointSummary(t, p, "hung")
	expect(t, l["sent"] == 0 && l["accepted"] >= 8, "%v", l)
	must(t, os.Remove(index))
	tg.Down()
	p = run(t, config)
	p.waitMetrics("the rest to be written", func(m metrics) string {
		replayed := m.sum("profpull_write_replayed_profiles_total", "endpoint", "hung")
		sent := m.sum("profpull_write_sent_profiles_total", "endpoint", "hung")
		return unless(replayed >= 8 && sent == replayed, "%.0f of %.0f", sent, replayed)
	})
	files, _ := filepath.Glob(filepath.Join(hung, "one", "goroutine", "*.pb.gz"))
	expect(t, len(files) >= 8, "%d files", len(files))
}

// verify says that a hanging disk does not answer, and ends; other endpoints are checked as ever.
func TestVerifyHangingDisk(t *testing.T) {
	t.Parallel()
	server := startPyroscope(t, pyroscope.Options{})
	hung := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(hung, "index.jsonl"), 0o600))
	config := writeConfig(t, fmt.Sprintf("write:\n  - {name: hung, url: \"file://%s\"}\n  - {name: good, url: %q}\n", hung, server.URL()))
	r := expectCall(t, exitPeer, "no answer within 2s", "a thread hangs", "verify", "--config", config, "--timeout", "2s")
	has(t, "verify", r.stdout, "ok     good")
}

// mountHanging mounts a disk that never answers: a file system in user space without a user space. The
// returned function ends all calls that wait for it, and takes it away.
func mountHanging(t *testing.T, dir string) func() {
	t.Helper()
	must(t, os.Mkdir(dir, 0o755))
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("cannot make a disk that hangs: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse.Fd(), os.Getuid(), os.Getgid())
	if err := syscall.Mount("hanging", dir, "fuse", 0, options); err != nil {
		fuse.Close()
		t.Skipf("cannot make a disk that hangs: %v", err)
	}
	done := false
	end := func() {
		if !done {
			done = true
			_ = syscall.Unmount(dir, syscall.MNT_FORCE|syscall.MNT_DETACH)
			fuse.Close()
		}
	}
	t.Cleanup(end)
	return end
}

// The disks of a store, of a spool and of a directory do not answer at the start: another destination gets its profiles
// nevertheless, and the hang is in the log and at /-/healthy. When the disks answer, the store takes what
// has waited.
func TestHangingDiskAtStart(t *testing.T) {
	t.Parallel()
	bin(t)
	for _, sandbox := range []string{"on", "off"} {
		dir := t.TempDir()
		tg := newTarget(t, target.Options{Functions: 5})
		server := newPyroscope(t, pyroscope.Options{})
		endStore := mountHanging(t, filepath.Join(dir, "store"))
		endSpool := mountHanging(t, filepath.Join(dir, "spool"))
		endFiles := mountHanging(t, filepath.Join(dir, "files"))
		p := run(t, scraping(job("one", "scrape_interval: 300ms, scrape_timeout: 300ms, profiles: "+only("goroutine: {}"), tg),
			to(server),
			"name: local, url: \"store://"+dir+"/store/kept\", retry: {max_backoff: 200ms, min_backoff: 10ms}",
			"name: files, url: \"file://"+dir+"/files/kept\", retry: {max_backoff: 200ms, min_backoff: 10ms}",
			"name: spooled, url: "+server.URL()+", queue: {spool_directory: \""+dir+"/spool\"}"), "--sandbox", sandbox, "--drain-timeout", "1s")
		p.waitMetrics("profiles of the other endpoints", func(m metrics) string {
			return unless(m.sum("profpull_write_sent_profiles_total", "endpoint", "main") >= 3 &&
				m.sum("profpull_write_sent_profiles_total", "endpoint", "spooled") >= 3,
				"too few")
		})
		p.waitMetrics("the hang to be noticed", func(m metrics) string {
			return unless(m.sum("profpull_write_hung_seconds", "endpoint", "local") >= 1 && m.sum("profpull_write_hung_seconds", "endpoint", "files") >= 1 && m.sum("profpull_store_up") == 0 &&
				m.sum("profpull_write_spool_up", "endpoint", "spooled") == 0,
				"not yet")
		})
		p.answers("/-/healthy", 200, `its disk`)
		status, _ := p.get("/pyroscope/render?format=json&from=now-1h&query=goroutine:goroutine:count:goroutine:count{}")
		expect(t, status != 200, "a query of a store that is not open: %d", status)
		p.says(`msg="the disk of the store does not answer: profiles wait" endpoint=local`)
		endStore()
		endSpool()
		endFiles()
		if sandbox == "on" {
			// The sandbox knows the disk that has gone, not the directory below it.
			p.wait("the directory to be given up", func() string {
				if status, text := p.get("/-/healthy"); p.metrics().sum("profpull_sandbox", "part", "landlock") == 1 &&
					(status != 503 || !strings.Contains(text, "may not be used any more: restart")) {
					return fmt.Sprint(status, text)
				}
				return ""
			})
		} else {
			p.waitMetrics("the store to take profiles", func(m metrics) string {
				return unless(m.sum("profpull_write_sent_profiles_total", "endpoint", "local") >= 3 &&
					m.sum("profpull_write_sent_profiles_total", "endpoint", "files") >= 3 && m.sum("profpull_store_up") == 1 &&
					m.sum("profpull_write_spool_up", "endpoint", "spooled") == 1,
					"not yet")
			})
		}
		p.stop()
	}
}
