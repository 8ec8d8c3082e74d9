package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// ---- the file format, read and written from docs/spool.md alone ---------------------------------

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	segmentHeader = 512
	recordHead    = 64
	ackHeader     = 32
)

// spooled is what a directory holds.
type spooled struct {
	waiting map[string]int // by SHA-256 of the profile
	done    int
	torn    int // segments that end in the middle of a record
}

// readSpool reads the directory of an endpoint and fails on anything that is not as documented; only
// the last record of a file may be cut off, as a kill leaves it.
func readSpool(t *testing.T, dir string) spooled {
	t.Helper()
	s := spooled{waiting: map[string]int{}}
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	sort.Strings(files)
	for _, file := range files {
		b := readFile(t, file)
		if len(b) < segmentHeader {
			s.torn++
			continue
		}
		require(t, string(b[:8]) == "PPSPOOL\n" && binary.LittleEndian.Uint32(b[8:]) == 1 &&
			crc32.Checksum(b[:508], castagnoli) == binary.LittleEndian.Uint32(b[508:]),
			"%s: bad header", file)
		salt := b[24:32]
		acks := readAcks(t, strings.TrimSuffix(file, ".seg")+".ack", salt)
		for at := segmentHeader; at < len(b); {
			if len(b)-at < recordHead {
				s.torn++
				break
			}
			h := b[at : at+recordHead]
			require(t, string(h[:4]) == "PPRC" && crc32.Checksum(h[:60], castagnoli) == binary.LittleEndian.Uint32(h[60:]) &&
				string(h[8:16]) == string(salt) && binary.LittleEndian.Uint64(h[48:]) == uint64(at),
				"%s: bad record at %d of %d", file, at, len(b))
			labels, data := int(binary.LittleEndian.Uint32(h[16:])), int(binary.LittleEndian.Uint32(h[20:]))
			end := at + recordHead + labels + data
			if end > len(b) {
				s.torn++
				break
			}
			body := b[at+recordHead : end]
			require(t, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(h[56:]),
				"%s: bad check sum at %d", file, at)
			if acks[uint32(at)] {
				s.done++
			} else {
				sum := sha256.Sum256(body[labels:])
				s.waiting[hex.EncodeToString(sum[:])]++
			}
			at = end
		}
	}
	return s
}

func readAcks(t *testing.T, file string, salt []byte) map[uint32]bool {
	t.Helper()
	acks := map[uint32]bool{}
	b, err := os.ReadFile(file)
	if err != nil || len(b) < ackHeader {
		return acks
	}
	for at := ackHeader; at+8 <= len(b); at += 8 {
		require(t, crc32.Checksum(append(append([]byte{}, salt...), b[at:at+4]...), castagnoli) ==
			binary.LittleEndian.Uint32(b[at+4:]),
			"%s: bad acknowledgement at %d", file, at)
		acks[binary.LittleEndian.Uint32(b[at:])] = true
	}
	return acks
}

// appendRecord writes one record of a segment.
func appendRecord(b []byte, salt uint64, labels map[string]string, data []byte, when time.Time) []byte {
	var encoded []byte
	var names []string
	for name := range labels {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, text := range []string{name, labels[name]} {
			encoded = binary.LittleEndian.AppendUint32(encoded, uint32(len(text)))
			encoded = append(encoded, text...)
		}
	}
	h := make([]byte, recordHead)
	copy(h, "PPRC")
	binary.LittleEndian.PutUint64(h[8:], salt)
	binary.LittleEndian.PutUint32(h[16:], uint32(len(encoded)))
	binary.LittleEndian.PutUint32(h[20:], uint32(len(data)))
	for i, ns := range []int64{when.Add(-time.Second).UnixNano(), when.UnixNano(), when.UnixNano()} {
		binary.LittleEndian.PutUint64(h[24+8*i:], uint64(ns))
	}
	binary.LittleEndian.PutUint64(h[48:], uint64(len(b)))
	binary.LittleEndian.PutUint32(h[56:], crc32.Update(crc32.Checksum(encoded, castagnoli), castagnoli, data))
	binary.LittleEndian.PutUint32(h[60:], crc32.Checksum(h[:60], castagnoli))
	return append(append(append(b, h...), encoded...), data...)
}

// makeSpool writes about total bytes of profiles as an earlier process would have left them, and
// returns how many.
func makeSpool(t *testing.T, dir string, total int, profile []byte) int {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	n := 0
	for segment := uint64(1); total > 0; segment++ {
		b := make([]byte, segmentHeader, 17<<20)
		copy(b, "PPSPOOL\n")
		salt := rand.Uint64()
		binary.LittleEndian.PutUint32(b[8:], 1)
		binary.LittleEndian.PutUint32(b[12:], segmentHeader)
		binary.LittleEndian.PutUint64(b[16:], segment)
		binary.LittleEndian.PutUint64(b[24:], salt)
		binary.LittleEndian.PutUint64(b[32:], uint64(time.Now().UnixNano()))
		binary.LittleEndian.PutUint32(b[40:], 4)
		copy(b[44:], "main")
		binary.LittleEndian.PutUint32(b[508:], crc32.Checksum(b[:508], castagnoli))
		for len(b) < 16<<20 && total > 0 {
			before := len(b)
			labels := map[string]string{"__name__": "memory", "service_name": "past", "n": fmt.Sprint(n)}
			b = appendRecord(b, salt, labels, profile, time.Now().Add(-time.Minute))
			total -= len(b) - before
			n++
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%016x.seg", segment)), b, 0o600))
	}
	return n
}

// ---- helpers ------------------------------------------------------------------------------------

// kill ends the program without a chance to do anything.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// tryMetrics is metrics for a program that may not be up yet.
func (p *program) tryMetrics() (metrics, bool) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(p.admin + "/metrics")
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var text strings.Builder
	buf := make([]byte, 1<<16)
	for {
		n, err := resp.Body.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			break
		}
	}
	all, err := parseMetrics(text.String())
	return all, err == nil
}

func spoolConfig(url, dir, queue string, targets ...*target.Target) string {
	return scraping(job("spool", "scrape_interval: 1s, profiles: "+snapshotsOnly, targets...),
		"name: main, url: "+url+", concurrency: 4, retry: {min_backoff: 50ms, max_backoff: 200ms}, queue: {spool_directory: \""+dir+"\", "+queue+"}")
}

func someTargets(t *testing.T, n int) (all []*target.Target) {
	for i := 0; i < n; i++ {
		all = append(all, newTarget(t, target.Options{Functions: 60}))
	}
	return all
}

// emptied waits until nothing is queued and the past has been read.
func (p *program) emptied() {
	p.t.Helper()
	p.waitMetrics("the queue to empty", func(m metrics) string {
		l := m.ledger("main")
		require(p.t, l.balance() == "", "%s", l.balance())
		reading := m.sum("profpull_write_spool_reading")
		return unless(l.queued <= 60 && reading == 0, "%+v reading %.0f", l, reading)
	})
}

// ---- tests --------------------------------------------------------------------------------------

// The program is killed at random moments under load, the server up or down. What was on disk and
// not acknowledged arrives, every time; what was reported as stored was on disk; no more come twice
// than may have been in flight; and the ledger balances in every life.
func TestSpoolSurvivesKills(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("E2E_LONG") == "1" {
		kills = 200
	}
	server := newPyroscope(t, pyroscope.Options{})
	targets := someTargets(t, 15)
	root := t.TempDir()
	dir := filepath.Join(root, "main")
	due := map[string]bool{}
	down, stored, torn, checked := false, 0.0, 0, 0
	waitingBefore := 0
	for i := 0; i < kills; i++ {
		if wantDown := i%3 == 1; wantDown != down {
			down = wantDown
			if down {
				server.Down()
			} else if err := server.Up(); err != nil {
				t.Fatal(err)
			}
		}
		fsync := []string{"always", "20ms"}[i%2]
		p := startUnder(t, nil, spoolConfig(server.URL(), root, "fsync: "+fsync, targets...))
		life := time.Duration(100+rand.Intn(700)) * time.Millisecond
		if kills < 20 {
			life += 700 * time.Millisecond
		}
		time.Sleep(life)
		m, ok := p.tryMetrics()
		p.kill()
		s := readSpool(t, dir)
		torn += s.torn
		n := 0
		for sum, count := range s.waiting {
			due[sum] = true
			n += count
		}
		if ok {
			checked++
			b := m.ledger("main").balance()
			require(t, b == "", "%s", b)
			now := m.sum("profpull_write_spool_stored_profiles_total", "endpoint", "main")
			stored += now
			// Nobody takes anything away while the server is down.
			require(t, !down || float64(n) >= float64(waitingBefore)+now,
				"life %d: %.0f were stored, %d had been waiting, and %d wait now", i, now, waitingBefore, n)
		}
		waitingBefore = n
	}
	if down {
		must(t, server.Up())
	}
	p := run(t, spoolConfig(server.URL(), root, "fsync: 20ms", targets...))
	p.emptied()
	m := p.metrics()
	damaged := m.sum("profpull_write_dropped_profiles_total", "reason", "damaged")
	dropped := m.ledger("main").dropped
	p.stop()
	arrived := map[string]int{}
	twice := 0
	for _, r := range server.Profiles() {
		if arrived[r.SHA256]++; arrived[r.SHA256] > 1 {
			twice++
		}
	}
	lost := 0
	for sum := range due {
		if arrived[sum] == 0 {
			lost++
		}
	}
	sent := 0
	for _, tg := range targets {
		sent += len(tg.Sent())
	}
	t.Logf("%d kills: %d profiles scraped, %d arrived, %d had been on disk, %d of these lost, %d came twice, %d torn files, "+
		"%.0f stored in %d lives that were asked", kills, sent, len(arrived), len(due), lost, twice, torn, stored, checked)
	expect(t, lost == 0 && damaged == 0 && dropped == 0,
		"%d lost, %.0f damaged, %.0f dropped", lost, damaged, dropped)
	expect(t, twice <= kills*4, "%d came twice, at most %d may have been in flight", twice, kills*4)
	expect(t, len(due) != 0 && stored != 0, "nothing was ever on disk")
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	expect(t, len(files) == 0, "%d segments are left", len(files))
}

// startReady starts the program and returns how long it takes to be ready.
func startReady(t *testing.T, config string) (*program, time.Duration) {
	t.Helper()
	begin := time.Now()
	p := startUnder(t, nil, config)
	p.wait("readiness", func() string {
		resp, err := http.Get(p.admin + "/-/ready")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			return resp.Status
		}
		return ""
	})
	return p, time.Since(begin)
}

// A spool of an earlier process, large as it may be, does not delay the start; all of it arrives.
func TestSpoolOfThePast(t *testing.T) {
	t.Parallel()
	total := 48 << 20
	if os.Getenv("E2E_LONG") == "1" {
		total = 1000 << 20
	}
	server := newPyroscope(t, pyroscope.Options{Cheap: true})
	targets := someTargets(t, 2)
	root := t.TempDir()
	profile := pprof.Gzip(pprof.Make("heap", pprof.Options{Functions: 600}))
	n := makeSpool(t, filepath.Join(root, "main"), total, profile)
	server.Down()
	begin := time.Now()
	p, ready := startReady(t, spoolConfig(server.URL(), root, "max_bytes: 64MiB", targets...))
	p.waitMetrics("the spool to be read", func(m metrics) string {
		return unless(m.sum("profpull_write_spool_reading") == 0,
			"%.0f bytes are unread", m.sum("profpull_write_spool_unread_bytes"))
	})
	read := time.Since(begin)
	m := p.metrics()
	got := m.sum("profpull_write_replayed_profiles_total")
	expect(t, got == float64(n), "%.0f replayed, %d are there", got, n)
	rss := p.rss()
	t.Logf("%d profiles of %d bytes, %d MiB: ready after %v, all known after %v, RSS %d KiB", n, len(profile), total>>20,
		ready.Round(time.Millisecond), read.Round(time.Millisecond), rss>>10)
	if ready > time.Second && !instrumented(t) {
		// On a busy machine any start takes long.
		_, without := startReady(t, spoolConfig(server.URL(), t.TempDir(), "max_bytes: 64MiB", targets...))
		expect(t, ready <= 3*without, "ready after %v, without a spool after %v", ready, without)
	}
	// The list of a live spool, from outside, and without disturbing it.
	r := expectCall(t, 0, "in use", "*", "spool", "verify", root)
	has(t, "verify", r.stdout, "0 damaged")
	must(t, server.Up())
	p.emptied()
	p.stop()
	arrived := server.Stats().ByStatus[http.StatusOK]
	expect(t, arrived >= int64(n), "%d arrived of %d", arrived, n)
}

// The server is down, the program ends in order and starts again: nothing is dropped, everything
// arrives once, and `profpull spool list` shows what waits in between.
func TestSpoolAcrossRestart(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	targets := someTargets(t, 5)
	root := t.TempDir()
	server.Down()
	config := spoolConfig(server.URL(), root, "fsync: 1m", targets...)
	p := run(t, config, "--drain-timeout", "300ms")
	p.waitQueued("main", 30)
	// Another process may not have the directory meanwhile, even if it starts right after somebody has
	// removed the lock.
	must(t, os.Remove(filepath.Join(root, "main", "lock")))
	expectCall(t, 1, "*", "another process uses this directory", "run", "--config", writeConfig(t, config), "--listen", "")
	p.stop()
	summary := endpointSummary(t, p, "main")
	expect(t, summary["dropped"] == 0 && summary["queued"] == summary["accepted"], "%v", summary)
	list := call(t, "", "spool", "list", root)
	lines := strings.Split(strings.TrimSpace(list.stdout), "\n")
	require(t, list.code == 0 && len(lines) == summary["queued"],
		"list: %d, %d lines, expected %d\n%s%s", list.code, len(lines), summary["queued"], list.stdout, list.stderr)
	for _, line := range lines {
		var entry struct {
			State, Spool string
			Bytes        int
			Labels       map[string]string
		}
		err := json.Unmarshal([]byte(line), &entry)
		require(t, err == nil && entry.State == "waiting" && entry.Spool == "main" &&
			entry.Labels["service_name"] == "spool" && entry.Bytes != 0,
			"%v in %s", err, line)
	}
	must(t, server.Up())
	p = run(t, config)
	p.emptied()
	p.stop()
	again := endpointSummary(t, p, "main")
	expect(t, again["replayed"] == summary["queued"] && again["dropped"] == 0 &&
		server.Count() == summary["sent"]+again["sent"] && again["sent"] == again["replayed"]+again["accepted"],
		"before %v, after %v, arrived %d", summary, again, server.Count())
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
	noneRefused(t, server)
	// A flipped bit is found, and its place is reported.
	n := makeSpool(t, filepath.Join(root, "main"), 100000, pprof.Gzip(pprof.Make("heap", pprof.Options{Functions: 60})))
	file := filepath.Join(root, "main", fmt.Sprintf("%016x.seg", 1))
	b := readFile(t, file)
	b[len(b)-5] ^= 1
	must(t, os.WriteFile(file, b, 0o600))
	verify := expectCall(t, 1, "1 damaged", "*", "spool", "verify", filepath.Join(root, "main"))
	has(t, "verify", verify.stdout, fmt.Sprintf("%d profiles wait", n))
	// A segment that is skipped as a whole is a failure, another file is not.
	b[8] = 2
	binary.LittleEndian.PutUint32(b[508:], crc32.Checksum(b[:508], crc32.MakeTable(crc32.Castagnoli)))
	for _, c := range []struct {
		name, bytes string
		code        int
		want        string
	}{
		{"notes.txt", "mine", 0, "1 files skipped"},
		{"0000000000000001.seg", string(b), 1, "0000000000000001.seg: newer version"},
		{"0000000000000001.seg", strings.Repeat("x", len(b)), 1, "0000000000000001.seg: foreign"},
	} {
		dir := t.TempDir()
		for _, f := range [][2]string{{"lock", ""}, {c.name, c.bytes}} {
			must(t, os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o600))
		}
		expectCall(t, c.code, c.want, "*", "spool", "verify", dir)
	}
	for _, args := range [][]string{{"spool"}, {"spool", "list"}, {"spool", "burn", root}, {"spool", "list", root, "x"}} {
		expectCall(t, 2, "*", "*", args...)
	}
	expectCall(t, 1, "*", "*", "spool", "verify", filepath.Join(root, "nowhere"))
}

// Somebody removes the directory of all spools. The sandbox forbids to make another one, which is
// said; a restart uses it again.
func TestSpoolDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Down()
	targets := someTargets(t, 2)
	root := filepath.Join(t.TempDir(), "spools")
	config := spoolConfig(server.URL(), root, "max_bytes: 64MiB", targets...)
	p := run(t, config)
	onDisk := func() string {
		m := p.metrics()
		return unless(m.sum("profpull_write_spool_profiles") >= 2 && m.sum("profpull_write_spool_up") == 1,
			"%v profiles on disk", m.sum("profpull_write_spool_profiles"))
	}
	p.wait("profiles on disk", onDisk)
	must(t, os.RemoveAll(root))
	_, text := p.get("/metrics")
	if !strings.Contains(text, `profpull_sandbox{part="landlock"} 1`) {
		p.says("has been removed")
		p.wait("another directory", onDisk)
		return
	}
	p.says("spool directory cannot be used")
	p.waitMetrics("the metrics to say so", func(m metrics) string {
		up, lost := m.sum("profpull_write_spool_up"), m.sum("profpull_write_spool_needs_restart")
		return unless(up == 0 && lost == 1, "up %v, needs_restart %v", up, lost)
	})
	p.answers("/-/healthy", 200, "cannot be used again before a restart")
	p.kill()
	p = run(t, config)
	p.wait("profiles on disk again", onDisk)
}

// A disk that is full costs nothing but durability, and is used again when there is room.
func TestSpoolOnAFullDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
	server := newPyroscope(t, pyroscope.Options{})
	targets := someTargets(t, 5)
	server.Down()
	ballast := filepath.Join(root, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 200<<10), 0o600))
	p := run(t, spoolConfig(server.URL(), root, "fsync: 20ms", targets...))
	p.waitMetrics("the disk to be full", func(m metrics) string {
		b := m.ledger("main").balance()
		require(t, b == "", "%s", b)
		return unless(m.sum("profpull_write_spool_up") == 0 && m.sum("profpull_write_spool_errors_total", "operation", "write") != 0,
			"%.0f bytes are in the spool", m.sum("profpull_write_spool_bytes"))
	})
	before := p.metrics().sum("profpull_scrapes_total", "result", "ok")
	p.waitMetric(before+20, "profpull_scrapes_total", "result", "ok")
	must(t, os.Remove(ballast))
	p.waitMetrics("the spool to work again", func(m metrics) string {
		return unless(m.sum("profpull_write_spool_up") == 1, "it does not")
	})
	equal(t, "lines of the log that say that the spool fails", strings.Count(p.stderr.String(), "spool fails"), 1)
	must(t, server.Up())
	p.emptied()
	s := finalLedger(t, p, "main")
	expect(t, s["dropped"] == 0 && s["sent"] == server.Count(), "%v, %d arrived", s, server.Count())
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
}

// Somebody removes the directory of a spool that is in use. It is made again, with all that waits;
// the process may be killed after that, and nothing is lost.
func TestSpoolIsRemoved(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	server.Down()
	targets := someTargets(t, 2)
	root := t.TempDir()
	config := spoolConfig(server.URL(), root, "max_bytes: 64MiB", targets...)
	p := run(t, config)
	stored := func(least float64) func() string {
		return func() string {
			m := p.metrics()
			l := m.ledger("main")
			n, up := m.sum("profpull_write_spool_profiles"), m.sum("profpull_write_spool_up")
			require(t, l.balance() == "", "%s", l.balance())
			if up != 1 || n < least || n != l.queued+l.inFlight {
				return fmt.Sprintf("up %.0f, %.0f of %.0f on disk", up, n, l.queued+l.inFlight)
			}
			s := readSpool(t, filepath.Join(root, "main"))
			return unless(len(s.waiting) >= int(n), "%.0f on disk, but the files have %d", n, len(s.waiting))
		}
	}
	p.wait("profiles on disk", stored(16))
	must(t, os.RemoveAll(filepath.Join(root, "main")))
	for _, tg := range targets {
		tg.SetFault("", target.NotFound)
	}
	p.wait("all of them on disk again", stored(16))
	p.says("the directory or its lock has been removed")
	p.kill()
	must(t, server.Up())
	p = run(t, config)
	p.wait("everything to arrive", func() string {
		got, want := server.Count(), len(targets[0].Sent())+len(targets[1].Sent())
		return unless(got >= want, "%d of %d", got, want)
	})
	p.stop()
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
}
