package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// nativeServer is a C++ server as brpc's documentation describes it: profiles of gperftools, and a
// service that names addresses.
type nativeServer struct {
	maps    func() string
	names   map[uint64]string // by address without its last byte; nil: no service
	asked   atomic.Int64      // POSTs
	counted atomic.Int64      // GETs
	large   atomic.Bool       // a request had too many addresses
	mu      sync.Mutex
	seen    map[string]int // by address
}

func (s *nativeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/pprof/profile":
		w.Write(nativeCPU(s.maps()))
	case "/pprof/heap":
		io.WriteString(w, oldHeapHead+s.maps())
	case "/pprof/growth":
		io.WriteString(w, strings.Replace(oldHeapHead, "heapprofile", "growthz", 1)+s.maps())
	case "/pprof/contention":
		if r.FormValue("seconds") == "" { // so does brpc
			http.Error(w, "You have to specify ?seconds=N. The maximum is 60", http.StatusBadRequest)
			return
		}
		io.WriteString(w, "--- contention\ncycles/second=1000000000\n5000 3 @ 0x55551100 0x55552200\n\n"+s.maps())
	case "/pprof/symbol":
		s.symbol(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *nativeServer) symbol(w http.ResponseWriter, r *http.Request) {
	if s.names == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodGet {
		s.counted.Add(1)
		fmt.Fprintf(w, "num_symbols: %d\n", len(s.names))
		return
	}
	s.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	addresses := strings.Split(string(body), "+")
	if len(addresses) > 10000 {
		s.large.Store(true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range addresses {
		s.seen[text]++
		address, _ := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
		if name, ok := s.names[address&^0xff]; ok {
			fmt.Fprintf(w, "%s\t%s\n", text, name)
		}
	}
}

func serveNative(t *testing.T, s *nativeServer) string {
	t.Helper()
	s.seen = map[string]int{}
	server, err := loop.Start("", s, nil)
	must(t, err)
	t.Cleanup(server.Down)
	return server.Addr()
}

const oldHeapHead = `heap profile:     10:    10240 [    30:    40960] @ heapprofile
     4:     4096 [    20:    20480] @ 0x55551100 0x55552200
     6:     6144 [    10:    20480] @ 0x55551100 0x70000330

MAPPED_LIBRARIES:
`

func nativeCPU(maps string) []byte {
	words := []uint64{0, 3, 0, 10000, 0, 30, 2, 0x55551100, 0x55552200, 12, 2, 0x70000100, 0x55552200, 0, 1, 0}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, words)
	b.WriteString(maps)
	return b.Bytes()
}

func nativeConfig(target, server, more string) string {
	return `
scrape_configs:
  - job_name: brpc
    scrape_interval: 2s
    profiles:
      memory: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
      mutex: {enabled: false}
      process_cpu: {path: /pprof/profile}
      heap: {enabled: true, path: /pprof/heap}
      custom:
        - {name: growth, path: /pprof/growth}
        - {name: contention, path: /pprof/contention, sampling: true}
    static_configs: [{targets: ["` + target + `"], labels: {service_name: shop/cpp}}]
write:
  - {name: main, url: "` + server + `"}
` + more
}

func inflate(raw []byte) ([]byte, error) { return pprof.Inflate(raw, 64<<20) }

// named matches a profile of this name that contains all texts.
func named(name string, parts ...string) func(*pyroscope.Received) bool {
	return func(r *pyroscope.Received) bool {
		if r.Name() != name {
			return false
		}
		raw, err := inflate(r.Raw)
		for _, part := range parts {
			if err != nil || !bytes.Contains(raw, []byte(part)) {
				return false
			}
		}
		return true
	}
}

// A program names its own addresses, and is asked once for each of them.
func TestSymbolService(t *testing.T) {
	t.Parallel()
	bin(t)
	native := &nativeServer{maps: func() string { return oldMaps }, names: map[uint64]string{
		0x55551000: "shop::Cart::add(int)", 0x55551100: "shop::Cart::add(int)", 0x70000100: "memcpy", 0x70000300: "0x7000032f"}}
	target := serveNative(t, native)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, nativeConfig(target, server.URL(), ""))
	cpu := waitProfiles(t, server, 1, named("process_cpu", "shop::Cart::add", "memcpy"))[0]
	lacks(t, "the profile", pprofTop(t, cpu.Raw), "!0x", "(int)")
	waitProfiles(t, server, 1, named("memory", "shop::Cart::add", "libc.so.6!0x32f"))
	waitProfiles(t, server, 1, named("growth", "shop::Cart::add"))
	waitProfiles(t, server, 1, named("contention", "shop::Cart::add", "contentions"))
	waitProfiles(t, server, 4, named("process_cpu", "shop::Cart::add"))
	native.mu.Lock()
	for address, n := range native.seen {
		// Each type may have asked at the same time.
		atMost(t, "requests for "+address, n, 4)
	}
	native.mu.Unlock()
	m := p.metrics()
	if m.sum("profpull_symbols_found_total", "source", "service") < 3 ||
		m.sum("profpull_symbols_services_total", "result", "ok") < 1 {
		t.Error("names are not counted")
	}
	equal(t, "balance", m.ledger("main").balance(), "")
	noneRefused(t, server)
	p.stop()
}

// Without any source, an address is named by its place in the file, which does not change when the
// program starts again elsewhere. A program without a service is not asked again and again.
func TestUnknownAddressesAreStable(t *testing.T) {
	t.Parallel()
	bin(t)
	native := &nativeServer{maps: func() string { return oldMaps }}
	target := serveNative(t, native)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, nativeConfig(target, server.URL(), ""))
	waitProfiles(t, server, 2, named("process_cpu", "server!0x1100", "libc.so.6!0x100"))
	waitProfiles(t, server, 1, named("memory", "server!0x10ff", "libc.so.6!0x32f"))
	m := p.metrics()
	expect(t, m.sum("profpull_symbols_locations_total", "result", "unknown") >= 3, "unknown addresses are not counted")
	noneRefused(t, server)
	p.stop()
}

// With symbols.wait, the first profile has the names already.
func TestSymbolWait(t *testing.T) {
	t.Parallel()
	bin(t)
	native := &nativeServer{maps: func() string { return oldMaps }, names: map[uint64]string{
		0x55551000: "shop::Cart::add(int)", 0x55551100: "shop::Cart::add(int)", 0x70000100: "memcpy"}}
	target := serveNative(t, native)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, nativeConfig(target, server.URL(), "symbols: {wait: 1m}\n"))
	for _, name := range []string{"process_cpu", "memory", "growth", "contention"} {
		first := waitProfiles(t, server, 1, named(name))[0]
		if !named(name, "shop::Cart::add")(&first) {
			t.Errorf("the first profile of %s has no names:\n%s", name, pprofTop(t, first.Raw))
		}
	}
	m := p.metrics()
	equal(t, "balance", m.ledger("main").balance(), "")
	// A profile that waits gets names twice, and counts with those that it has in the end.
	equal(t, "profiles without names", m.sum("profpull_symbols_profiles_total", "result", "unnamed"), 0)
	atLeast(t, "profiles with names", m.sum("profpull_symbols_profiles_total"), 4)
	noneRefused(t, server)
	p.stop()
}

// ---- debug information ------------------------------------------------------------------------

// nativeProgram is a program that was built with debug information, and where it is mapped.
type nativeProgram struct {
	picks                 func(symbol string) bool // the functions that are sampled
	full, stripped, debug string
	buildID               string
	start, limit, offset  uint64
	addresses             []uint64 // of the process
	base                  uint64
}

const cppSource = `
#include <vector>
namespace shop {
static inline __attribute__((always_inline)) int twice(volatile int &x) { x = x + 1; return x * 2; }
template <typename T> struct Cart {
    std::vector<T> items;
    __attribute__((noinline)) int add(T item) { volatile int n = 1; items.push_back(item); return twice(n) + (int)items.size(); }
};
}
int main() { shop::Cart<int> c; int sum = 0; for (int i = 0; i < 9; i++) sum += c.add(i); return sum == 0; }
`

func buildNative(t *testing.T) *nativeProgram {
	t.Helper()
	for _, tool := range []string{"g++", "objcopy", "eu-addr2line", "c++filt"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing: scripts/deps.sh test")
		}
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "app.cc")
	must(t, os.WriteFile(source, []byte(cppSource), 0o600))
	picks := func(symbol string) bool { return symbol == "main" || strings.Contains(symbol, "Cart") }
	return buildProgram(t, dir, picks, "g++", "-O2", "-g", "-pie", "-fPIE", "-Wl,--build-id", "-o", "app.full", source)
}

// buildProgram runs a compiler in a directory, where it makes app.full, and splits that into the program and
// its debug information.
func buildProgram(t *testing.T, dir string, picks func(symbol string) bool, compiler string, args ...string) *nativeProgram {
	t.Helper()
	p := &nativeProgram{picks: picks, full: filepath.Join(dir, "app.full"), stripped: filepath.Join(dir, "app"), debug: filepath.Join(dir, "app.debug")}
	for _, command := range [][]string{
		append([]string{compiler}, args...),
		{"objcopy", "--only-keep-debug", p.full, p.debug},
		{"objcopy", "--strip-all", p.full, p.stripped},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, text)
		}
	}
	p.read(t)
	return p
}

func (p *nativeProgram) read(t *testing.T) {
	t.Helper()
	f, err := elf.Open(p.full)
	must(t, err)
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	must(t, err)
	p.buildID = hex.EncodeToString(note[16:])
	if f.Type == elf.ET_DYN { // PIE; others are mapped where the linker says
		p.base = 0x55d000000000
	}
	for _, ph := range f.Progs {
		if ph.Type == elf.PT_LOAD && ph.Flags&elf.PF_X != 0 {
			p.start = p.base + ph.Vaddr&^0xfff
			p.offset = ph.Off &^ 0xfff
			p.limit = (p.base + ph.Vaddr + ph.Memsz + 0xfff) &^ 0xfff
		}
	}
	symbols, err := f.Symbols()
	must(t, err)
	for _, s := range symbols {
		if p.picks(s.Name) && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			for at := uint64(0); at < s.Size; at += 3 {
				p.addresses = append(p.addresses, p.base+s.Value+at)
			}
		}
	}
	for len(p.addresses) > 200 { // the tools that say what is expected run for each address
		for i := 0; i < len(p.addresses)/2; i++ {
			p.addresses[i] = p.addresses[2*i]
		}
		p.addresses = p.addresses[:len(p.addresses)/2]
	}
	if len(p.addresses) < 10 {
		t.Fatalf("%d addresses", len(p.addresses))
	}
}

// wants is what eu-addr2line says: for each address, its frames, the innermost first.
func (p *nativeProgram) wants(t *testing.T) map[uint64]string {
	t.Helper()
	return p.wantsOf(t, "eu-addr2line", p.addresses)
}

// wantsOf is what eu-addr2line or the addr2line of binutils says.
func (p *nativeProgram) wantsOf(t *testing.T, tool string, addresses []uint64) map[uint64]string {
	t.Helper()
	want := map[uint64]string{}
	for _, address := range addresses {
		text, err := exec.Command(tool, "-f", "-i", "-e", p.full, fmt.Sprintf("%#x", address-p.base)).Output()
		if err != nil {
			t.Fatal(err)
		}
		var frames []string
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			place, _, _ := strings.Cut(lines[i+1], " (discriminator")
			place = strings.Replace(place, ":?", ":0", 1) // binutils, of a place without a line
			if strings.Count(place, ":") > 1 {            // without the column
				place = place[:strings.LastIndex(place, ":")]
			}
			frames = append(frames, strings.Fields(lines[i])[0]+" "+place)
		}
		want[address] = strings.Join(frames, "; ")
	}
	return want
}

func varint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func pbNum(b []byte, field int, v uint64) []byte { return varint(varint(b, uint64(field)<<3), v) }

func pbMsg(b []byte, field int, m []byte) []byte {
	return append(varint(varint(b, uint64(field)<<3|2), uint64(len(m))), m...)
}

// profile is a CPU profile with a sample at each address.
func (p *nativeProgram) profile() []byte {
	b := pbMsg(nil, 1, pbNum(pbNum(nil, 1, 1), 2, 2))
	for i := range p.addresses {
		b = pbMsg(b, 2, pbNum(pbNum(nil, 1, uint64(i+1)), 2, 10))
	}
	m := pbNum(pbNum(pbNum(pbNum(nil, 1, 1), 2, p.start), 3, p.limit), 4, p.offset)
	b = pbMsg(b, 3, pbNum(pbNum(m, 5, 3), 6, 4))
	for i, address := range p.addresses {
		b = pbMsg(b, 4, pbNum(pbNum(pbNum(nil, 1, uint64(i+1)), 2, 1), 3, address))
	}
	for _, s := range []string{"", "cpu", "nanoseconds", "/usr/bin/app", p.buildID} {
		b = pbMsg(b, 6, []byte(s))
	}
	return b
}

func (p *nativeProgram) serve(t *testing.T) string {
	t.Helper()
	server, err := loop.Start("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/pprof/profile" {
			http.NotFound(w, r)
			return
		}
		w.Write(p.profile())
	}), nil)
	must(t, err)
	t.Cleanup(server.Down)
	return server.Addr()
}

// frames is the names of each address of a profile, as wants() has them.
func frames(t *testing.T, gz []byte) map[uint64]string {
	t.Helper()
	raw, err := inflate(gz)
	must(t, err)
	type function struct{ name, system, file uint64 }
	var texts []string
	functions := map[uint64]function{}
	type line struct{ function, line uint64 }
	lines := map[uint64][]line{}
	each(raw, func(field int, _ uint64, m []byte) {
		v := map[int]uint64{}
		var own []line
		if field == 4 || field == 5 {
			each(m, func(f int, n uint64, inner []byte) {
				v[f] = n
				if field == 4 && f == 4 {
					var l line
					each(inner, func(f int, n uint64, _ []byte) {
						if f == 1 {
							l.function = n
						} else if f == 2 {
							l.line = n
						}
					})
					own = append(own, l)
				}
			})
		}
		switch field {
		case 4:
			lines[v[3]] = own
		case 5:
			functions[v[1]] = function{v[2], v[3], v[4]}
		case 6:
			texts = append(texts, string(m))
		}
	})
	got := map[uint64]string{}
	for address, ls := range lines {
		var out []string
		for _, l := range ls {
			f := functions[l.function]
			out = append(out, fmt.Sprintf("%s %s:%d", texts[f.system], texts[f.file], l.line))
		}
		got[address] = strings.Join(out, "; ")
	}
	return got
}

func each(b []byte, fn func(field int, n uint64, m []byte)) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		b = b[n:]
		v, n := binary.Uvarint(b)
		b = b[n:]
		if tag&7 == 2 {
			fn(int(tag>>3), 0, b[:v])
			b = b[v:]
		} else {
			fn(int(tag>>3), v, nil)
		}
	}
}

func (p *nativeProgram) check(t *testing.T, got map[uint64]string) {
	t.Helper()
	for address, want := range p.wants(t) {
		expect(t, got[address] == want, "%#x:\n got %s\nwant %s", address-p.base, got[address], want)
	}
}

// checkEither is check() for a compiler that moves code of one line into other functions. There eu-addr2line
// has the callers of the first address of the line, so addr2line of binutils says which they are.
func (p *nativeProgram) checkEither(t *testing.T, got map[uint64]string) {
	t.Helper()
	wants := p.wants(t)
	var differ []uint64
	for address, want := range wants {
		if got[address] != want {
			differ = append(differ, address)
		}
	}
	for address, want := range p.wantsOf(t, "addr2line", differ) {
		if got[address] != want {
			t.Errorf("%#x:\n got %s\nwant %s\n  or %s", address-p.base, got[address], want, wants[address])
		}
	}
	atLeast(t, "addresses for which eu-addr2line has the same frames", len(wants)-len(differ), len(wants)/8)
}

func debugConfig(target, server, symbols string) string {
	return `
scrape_configs:
  - job_name: cpp
    scrape_interval: 2s
    profiles:
      memory: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
      mutex: {enabled: false}
    static_configs: [{targets: ["` + target + `"], labels: {service_name: shop/cpp}}]
write:
  - {name: main, url: "` + server + `"}
symbols: ` + symbols + "\n"
}

// Names, inlined functions, files and lines come from a directory, and agree with eu-addr2line.
func TestSymbolDirectory(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	dir := t.TempDir()
	at := filepath.Join(dir, ".build-id", native.buildID[:2])
	must(t, os.MkdirAll(at, 0o755))
	must(t, os.Rename(native.debug, filepath.Join(at, native.buildID[2:]+".debug")))
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(native.serve(t), server.URL(), "{directories: ["+dir+"]}"))
	got := waitProfiles(t, server, 1, named("process_cpu", "shop::Cart<int>::add", "twice"))[0]
	native.check(t, frames(t, got.Raw))
	m := p.metrics()
	if m.sum("profpull_symbols_found_total", "source", "debug") < 10 || m.sum("profpull_symbols_opened_total") != 1 ||
		m.sum("profpull_symbols_readers_total") != 1 || m.sum("profpull_symbols_partial_total") != 0 {
		t.Error("names are not counted")
	}
	if text := call(t, "", "status", "--url", p.admin).stdout; !strings.Contains(text, "Names for addresses\n") ||
		strings.Contains(text, "\n0 profiles got all names") {
		t.Error(text)
	}
	p.stop()
}

// buildIDs makes a directory with the program's debug information, in the layout of gdb.
func (p *nativeProgram) buildIDs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, ".build-id", p.buildID[:2])
	must(t, os.MkdirAll(at, 0o755))
	raw, err := os.ReadFile(p.debug)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(at, p.buildID[2:]+".debug"), raw, 0o600))
	return dir
}

const nativeType = "process_cpu:cpu:nanoseconds::"

// stackNames is the flame graph of all native profiles in the store, as text.
func (p *program) stackNames() string {
	p.t.Helper()
	status, text := p.get("/pyroscope/render?format=json&from=now-1h&until=" + fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()) +
		"&query=" + url.QueryEscape(nativeType+"{}"))
	require(p.t, status == http.StatusOK, "%d %s", status, text)
	return text
}

// mergedNames is the merged profile of the store, by `profpull query` and by profefe's API, without the
// locations' ids.
func (p *program) mergedNames() map[string][]byte {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "merged.pb.gz")
	expectCall(p.t, exitDone, "merged.pb.gz: ", "", "query", "merge", "--url", p.admin, "--service", "shop/cpp", "--type", nativeType, "-o", file)
	raw, err := os.ReadFile(file)
	must(p.t, err)
	status, body := p.get("/api/0/profiles/merge?service=shop/cpp&type=cpu&from=" + time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05") +
		"&to=" + time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05"))
	require(p.t, status == http.StatusOK, "%d %s", status, body)
	return map[string][]byte{"query merge": raw, "profefe": []byte(body)}
}

// Profiles that were stored without names get them when they are queried, once the configuration says
// where the debug information is. The stored profiles stay as they are.
func TestStoredProfilesGetNames(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	dir := t.TempDir()
	write := "write:\n  - {name: local, url: \"store://" + dir + "/store\"}\n"
	p := run(t, strings.Split(debugConfig(native.serve(t), "http://127.0.0.1:1", ""), "write:")[0]+write)
	p.wait("two stored profiles", func() string {
		n := p.metrics().sum("profpull_store_profiles")
		return unless(n >= 2, "%v", n)
	})
	if text := p.stackNames(); !strings.Contains(text, "app!0x") || strings.Contains(text, "Cart") {
		t.Fatal(text)
	}
	p.stop()

	for round := 0; round < 2; round++ { // a query changes nothing for the next start
		p = run(t, "scrape_configs: []\n"+write+"symbols: {directories: ["+native.buildIDs(t)+"]}\n")
		if text := p.stackNames(); strings.Contains(text, "app!0x") || !strings.Contains(text, "shop::Cart<int>::add") ||
			!strings.Contains(text, "twice") {
			t.Error(text)
		}
		for name, raw := range p.mergedNames() {
			if top := pprofTop(t, raw); strings.Contains(top, "!0x") || !strings.Contains(top, "shop::Cart<int>::add") ||
				!strings.Contains(top, "twice (inline)") {
				t.Errorf("%s: %s", name, top)
			}
		}
		m := p.metrics()
		if m.sum("profpull_symbols_stored_total", "result", "named") < 4 || m.sum("profpull_symbols_found_total", "source", "debug") < 10 ||
			m.sum("profpull_symbols_profiles_total") != 0 {
			t.Error("names are not counted")
		}
		p.stop()
	}

	p = run(t, "scrape_configs: []\n"+write)
	has(t, "the stored profiles", p.stackNames(), "app!0x")
	// A section that a reload adds works, also in the sandbox: the directory of the configuration is open.
	near := filepath.Join(filepath.Dir(p.config), "debug")
	must(t, os.Rename(native.buildIDs(t), near))
	replaceFile(t, p.config, "scrape_configs: []\n"+write+"symbols: {directories: ["+near+"]}\n")
	if status, text := p.reload(); status != http.StatusOK || strings.Contains(text, "restart") {
		t.Error(status, text)
	}
	if text := p.stackNames(); strings.Contains(text, "app!0x") || !strings.Contains(text, "shop::Cart<int>::add") {
		t.Error("after the reload:", text)
	}
	p.stop()
}

// A pushed profile gets names as a scraped one does: here its sender waits for them.
func TestPushedProfileGetsNames(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	server := newPyroscope(t, pyroscope.Options{})
	listen := loop.Host() + ":4040"
	p := run(t, fmt.Sprintf("receive: {listen: %q}\nscrape_configs: []\nwrite: [{name: main, url: %q}]\nsymbols: {wait: 1m, directories: [%q]}\n",
		listen, server.URL(), native.buildIDs(t)))
	form, body := form(t, "profile", string(native.profile()))
	status, text := post(t, "http://"+listen+"/ingest?name=shop.cpp&spyName=x", form, body)
	require(t, status == http.StatusOK, "%d %s", status, text)
	native.check(t, frames(t, waitProfiles(t, server, 1, nil)[0].Raw))
	expect(t, p.metrics().sum("profpull_symbols_profiles_total", "result", "named") != 0, "names are not counted")
	p.stop()
}

// `profpull import` adds names by the section `symbols` of its configuration: the first profile has them
// all. Without the section, profiles are sent as they are.
func TestImportAddsNames(t *testing.T) {
	t.Parallel()
	native := buildNative(t)
	fod := &debuginfod{id: native.buildID, files: map[string]string{"debuginfo": native.debug}}
	file := filepath.Join(t.TempDir(), "cpu.pb")
	must(t, os.WriteFile(file, native.profile(), 0o600))
	for _, c := range []struct {
		name, symbols string
		named         bool
	}{
		{"directory", fmt.Sprintf("symbols: {directories: [%q]}\n", native.buildIDs(t)), true},
		{"debuginfod", fmt.Sprintf("symbols: {debuginfod: [%q], cache: {directory: %q}}\n", serveDebuginfod(t, fod),
			filepath.Join(t.TempDir(), "cache")), true},
		{"a directory without the file", fmt.Sprintf("symbols: {directories: [%q]}\n", t.TempDir()), false},
		{"no section", "", false},
	} {
		server := newPyroscope(t, pyroscope.Options{})
		config := writeConfig(t, fmt.Sprintf("write: [{name: main, url: %q}]\n%s", server.URL(), c.symbols))
		expectCall(t, exitDone, "sent 1 profile ", "", "import", "--config", config, "--name", "app", "--type", "process_cpu", file)
		raw := waitProfiles(t, server, 1, nil)[0].Raw
		if c.named {
			native.check(t, frames(t, raw))
		} else if plain, err := inflate(raw); err != nil || bytes.Contains(plain, []byte("Cart")) ||
			bytes.Contains(plain, []byte("app!0x")) != (c.symbols != "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// debuginfod answers as Debian's does, for one build id. Files of kinds that it lacks are 404.
type debuginfod struct {
	files map[string]string // "debuginfo", "executable" -> file
	id    string
	asked sync.Map // path -> *atomic.Int64
}

func (d *debuginfod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := d.asked.LoadOrStore(r.URL.Path, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	kind := strings.TrimPrefix(r.URL.Path, "/buildid/"+d.id+"/")
	if file, ok := d.files[kind]; ok {
		http.ServeFile(w, r, file)
		return
	}
	http.NotFound(w, r)
}

func (d *debuginfod) count(path string) int64 {
	if n, ok := d.asked.Load(path); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

func serveDebuginfod(t *testing.T, d *debuginfod) string {
	t.Helper()
	server, err := loop.Start("", d, nil)
	must(t, err)
	t.Cleanup(server.Down)
	return "http://" + server.Addr()
}

// The second server has the debug information: it is fetched once, kept in the cache, and the next
// start of profpull needs no server any more.
func TestDebuginfod(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	empty := &debuginfod{id: native.buildID}
	full := &debuginfod{id: native.buildID, files: map[string]string{"debuginfo": native.debug}}
	cache := filepath.Join(t.TempDir(), "cache")
	symbols := fmt.Sprintf("{debuginfod: [%q, %q], cache: {directory: %s}}", serveDebuginfod(t, empty), serveDebuginfod(t, full), cache)
	server := newPyroscope(t, pyroscope.Options{})
	target := native.serve(t)
	p := run(t, debugConfig(target, server.URL(), symbols))
	got := waitProfiles(t, server, 2, named("process_cpu", "shop::Cart<int>::add", "twice"))[1]
	native.check(t, frames(t, got.Raw))
	path := "/buildid/" + native.buildID + "/"
	for name, n := range map[string]int64{
		"debuginfo of the first":   empty.count(path + "debuginfo"),
		"executable of the first":  empty.count(path + "executable"),
		"debuginfo of the second":  full.count(path + "debuginfo"),
		"executable of the second": full.count(path+"executable") + 1,
	} {
		expect(t, n == 1, "%s: asked %d times", name, n)
	}
	m := p.metrics()
	if m.sum("profpull_symbols_downloads_total", "result", "ok") != 1 ||
		m.sum("profpull_symbols_downloads_total", "result", "absent") != 1 ||
		m.sum("profpull_symbols_cache_bytes") == 0 {
		t.Error("downloads are not counted")
	}
	p.stop()

	again := newPyroscope(t, pyroscope.Options{})
	p = run(t, debugConfig(target, again.URL(), symbols))
	got = waitProfiles(t, again, 1, named("process_cpu", "shop::Cart<int>::add", "twice"))[0]
	native.check(t, frames(t, got.Raw))
	expect(t, p.metrics().sum("profpull_symbols_found_total", "source", "saved") >= 10 && full.count(path+"debuginfo") == 1,
		"the names do not come from the cache")
	p.stop()
}

// A program without separate debug information is fetched as an executable: its symbol table names
// functions. A file beyond max_file_size is refused, and costs the names alone.
func TestDebuginfodLimits(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	large := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(large, make([]byte, 3<<20), 0o600))
	tooLarge := &debuginfod{id: native.buildID, files: map[string]string{"debuginfo": large}}
	program := &debuginfod{id: native.buildID, files: map[string]string{"executable": native.full}}
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(native.serve(t), server.URL(), fmt.Sprintf(
		"{debuginfod: [%q, %q], max_file_size: 2MiB, cache: {directory: %s}}", serveDebuginfod(t, tooLarge), serveDebuginfod(t, program), filepath.Join(t.TempDir(), "c"))))
	waitProfiles(t, server, 1, named("process_cpu", "shop::Cart<int>::add"))
	expect(t, p.metrics().sum("profpull_symbols_downloads_total", "result", "failed") == 1, "the refused file is not counted")
	p.stop()
}
