package e2e

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
)

const oldMaps = `55550000-55551000 r--p 00000000 fd:01 1234   /usr/bin/server
55551000-55560000 r-xp 00001000 fd:01 1234   /usr/bin/server
70000000-70010000 r-xp 00000000 fd:01 1235   /lib/libc.so.6
`

const oldHeap = `heap profile:     10:    10240 [    30:    40960] @ heapprofile
     4:     4096 [    20:    20480] @ 0x55551100 0x55552200
     6:     6144 [    10:    20480] @ 0x55551100 0x70000330

MAPPED_LIBRARIES:
` + oldMaps

// oldCPU is what a C++ program with gperftools answers with.
func oldCPU() []byte {
	words := []uint64{0, 3, 0, 10000, 0, 30, 2, 0x55551100, 0x55552200, 12, 2, 0x70000100, 0x55552200, 0, 1, 0}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, words)
	b.WriteString(oldMaps)
	return b.Bytes()
}

func serveOldProfiles(t *testing.T) string {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pprof/profile":
			w.Write(oldCPU())
		case "/pprof/heap":
			w.Write([]byte(oldHeap))
		case "/cut":
			w.Write(oldCPU()[:60])
		default:
			http.NotFound(w, r)
		}
	})
	return s.Addr()
}

// Profiles of gperftools arrive as pprof, with a time, and pprof reads them.
func TestOldProfiles(t *testing.T) {
	t.Parallel()
	target := serveOldProfiles(t)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, scraping(jobAt("shop/cpp", "scrape_interval: 2s, profiles: "+only("process_cpu: {path: /pprof/profile}, "+
		"heap: {enabled: true, path: /pprof/heap}, custom: [{name: cut, path: /cut}]"), target), to(server)))
	of := func(name string) func(*pyroscope.Received) bool {
		return func(r *pyroscope.Received) bool { return r.Name() == name }
	}
	cpu := waitProfiles(t, server, 1, of("process_cpu"))[0]
	top := pprofTop(t, cpu.Raw)
	has(t, "pprof -top", top, "cpu", "300ms", "120ms", "server", "Time: ", "Duration: ")
	heap := waitProfiles(t, server, 1, of("memory"))[0]
	has(t, "10 KiB in use", pprofTop(t, heap.Raw, "-sample_index=inuse_space"), "10kB")
	p.wait("the one that is cut to fail", func() string {
		s := p.scrape("/cut")
		return unless(s != nil && s.Reason == "bad_legacy" && strings.Contains(s.LastError, "ends within"),
			"no error yet")
	})
	noneRefused(t, server)
	m := p.metrics()
	expect(t, m.sum("profpull_conversions_total", "result", "ok") >= 2, "conversions are not counted")
	text := m.ledger("main").balance()
	expect(t, text == "", "%s", text)
}

// `profpull scrape` says what an old profile is, and writes what it is converted to.
func TestScrapeOldProfile(t *testing.T) {
	t.Parallel()
	target := serveOldProfiles(t)
	file := filepath.Join(t.TempDir(), "out.pb.gz")
	r := expectCall(t, 0, "an old format, converted to pprof, gzip", "*", "scrape", "http://"+target+"/pprof/profile?seconds=1", "-o", file)
	has(t, "scrape", r.stdout, "samples/count cpu/nanoseconds")
	raw := readFile(t, file)
	has(t, "go tool pprof", pprofTop(t, raw), "300ms")
	expectCall(t, 3, "*", "bad_legacy", "scrape", "http://"+target+"/cut")
}
