package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// startOne starts a program like startProgram(), and returns a function that ends it.
func startOne(t *testing.T, cmd *exec.Cmd) func() {
	t.Helper()
	must(t, cmd.Start())
	end := func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	return end
}

// baseOf is where the system has mapped the file of a running program.
func baseOf(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var base string
	wait(t, "the program to be mapped", func() string {
		maps := readText(t, fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		for _, line := range strings.Split(maps, "\n") {
			if strings.HasSuffix(line, "/app") {
				base, _, _ = strings.Cut(line, "-")
				return ""
			}
		}
		return maps
	})
	return base
}

var placeInApp = regexp.MustCompile(`app!0x[0-9a-f]+`)

// placesIn is the set of places in the program that the profile names.
func placesIn(t *testing.T, gz []byte) map[string]bool {
	t.Helper()
	plain, err := inflate(gz)
	must(t, err)
	places := map[string]bool{}
	for _, place := range placeInApp.FindAll(plain, -1) {
		places[string(place)] = true
	}
	return places
}

// A program with gperftools, built as Debian builds programs (PIE), is loaded elsewhere each time that it
// starts. The names of its addresses stay the same, and scrapes of its old process do not name the new one.
func TestNamesStayWhenAProgramStartsAgain(t *testing.T) {
	t.Parallel()
	bin(t)
	r := recipes[0]
	dir, host := r.make(t), loop.Host()
	start := func() (*exec.Cmd, func()) {
		cmd := exec.Command("./app", host, "6060")
		cmd.Dir = dir
		return cmd, startOne(t, cmd)
	}
	first, end := start()
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(host+":6060", server.URL(), "{target: auto}"))
	places := map[string]bool{}
	for _, got := range waitProfiles(t, server, 2, named("process_cpu", "app!0x")) {
		for place := range placesIn(t, got.Raw) {
			places[place] = true
		}
	}
	base := baseOf(t, first)
	end()

	second, _ := start()
	for i := 0; i < 50 && baseOf(t, second) == base; i++ { // by chance, or without ASLR
		_ = second.Process.Kill()
		_ = second.Wait()
		second, _ = start()
	}
	if baseOf(t, second) == base {
		t.Skip("the system loads the program at the same address each time")
	}
	n := len(server.Profiles())
	p.wait("a profile of the new process", func() string {
		all := server.Profiles()
		for i := n + 1; i < len(all); i++ { // one scrape may have been under way
			if len(placesIn(t, all[i].Raw)) > 0 {
				return ""
			}
		}
		return fmt.Sprint(len(all), " profiles")
	})
	all := server.Profiles()
	same := 0
	for place := range placesIn(t, all[len(all)-1].Raw) {
		if places[place] {
			same++
		}
	}
	if same == 0 {
		t.Errorf("no name of the old process is in the new one: %v, then %v", places, placesIn(t, all[len(all)-1].Raw))
	}
	noneRefused(t, server)
	p.stop()
}

// startDebuginfod starts Debian's debuginfod over a directory and waits until it has the build id.
func startDebuginfod(t *testing.T, dir, buildID string) string {
	t.Helper()
	program, err := exec.LookPath("debuginfod")
	if err != nil {
		t.Skip("debuginfod is missing: scripts/deps.sh test")
	}
	// debuginfod does not say which port it has chosen. Below 32768 no connection of another test takes it meanwhile.
	port := ""
	for n := 20000 + os.Getpid()%10000; port == ""; n++ {
		if listener, err := net.Listen("tcp", fmt.Sprintf(":%d", n)); err == nil {
			port = fmt.Sprint(n)
			must(t, listener.Close())
		}
	}
	startProgram(t, exec.Command(program, "-F", "-p", port, "-d", filepath.Join(t.TempDir(), "index.sqlite"), "-t", "1", dir))
	url := "http://127.0.0.1:" + port
	wait(t, "debuginfod to scan its directory", func() string {
		resp, err := http.Get(url + "/buildid/" + buildID + "/debuginfo")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return unless(resp.StatusCode == http.StatusOK, "%s", resp.Status)
	})
	return url
}

// Debian's own debuginfod gives the names, which agree with eu-addr2line.
func TestRealDebuginfod(t *testing.T) {
	t.Parallel()
	bin(t)
	native := buildNative(t)
	dir := t.TempDir()
	must(t, os.Rename(native.debug, filepath.Join(dir, "app.debug")))
	url := startDebuginfod(t, dir, native.buildID)
	native.debug = filepath.Join(dir, "app.debug")
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, debugConfig(native.serve(t), server.URL(), fmt.Sprintf("{debuginfod: [%q], cache: {directory: %s}}", url, filepath.Join(t.TempDir(), "c"))))
	got := waitProfiles(t, server, 1, named("process_cpu", "shop::Cart<int>::add", "twice"))[0]
	native.check(t, frames(t, got.Raw))
	expect(t, p.metrics().sum("profpull_symbols_downloads_total", "result", "ok") == 1, "the download is not counted")
	p.stop()
}

// readerMemory is the limit of address space of the process that reads debug information for a profpull, as
// /proc has it; "" if there is none.
func readerMemory(t *testing.T, pid int) string {
	t.Helper()
	childOf := func(parent int) int {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			text, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			if fields[1] == fmt.Sprint(parent) {
				n, _ := strconv.Atoi(strings.Split(name, "/")[2])
				return n
			}
		}
		return 0
	}
	launcher := childOf(pid)
	if launcher == 0 {
		return ""
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", childOf(launcher)))
	if err != nil {
		return ""
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "Max address space") {
			return strings.Fields(line)[3]
		}
	}
	return ""
}

// Another symbols.max_memory holds for the next file: a fresh process reads it.
func TestReloadOfTheReadersMemory(t *testing.T) {
	t.Parallel()
	bin(t)
	first, second := buildNative(t), buildNative(t)
	require(t, first.buildID != second.buildID, "both programs have the same build id")
	directories := fmt.Sprintf("%q, %q", first.buildIDs(t), second.buildIDs(t))
	symbols := func(memory string) string {
		return fmt.Sprintf("{directories: [%s], max_memory: %s, max_file_size: 32MiB}", directories, memory)
	}
	server := newPyroscope(t, pyroscope.Options{})
	at, other := first.serve(t), second.serve(t)
	p := run(t, debugConfig(at, server.URL(), symbols("1GiB")))
	waitProfiles(t, server, 1, named("process_cpu", "shop::Cart<int>::add", "twice"))
	limited := func(bytes int) string {
		if instrumented(t) {
			return "unlimited" // AddressSanitizer reserves terabytes of addresses
		}
		return fmt.Sprint(bytes)
	}
	equal(t, "bytes that the first process may have", readerMemory(t, p.cmd.Process.Pid), limited(1<<30))
	p.reloadWith(debugConfig(at+`", "`+other, server.URL(), symbols("768MiB")))
	p.waitMetrics("a second process that reads files", func(m metrics) string {
		return unless(m.sum("profpull_symbols_opened_total") == 2 && m.sum("profpull_symbols_readers_total") == 2, "%v files, %v processes",
			m.sum("profpull_symbols_opened_total"), m.sum("profpull_symbols_readers_total"))
	})
	equal(t, "bytes that the second process may have", readerMemory(t, p.cmd.Process.Pid), limited(768<<20))
	lacks(t, "the log", p.stderr.String(), "needs a restart")
	p.stop()
}
