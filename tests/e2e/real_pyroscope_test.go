package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
)

// startRealPyroscope starts the program that PROFPULL_PYROSCOPE names, all of it in one process, and returns its address. It
// says that it is ready after a minute or more.
func startRealPyroscope(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PROFPULL_PYROSCOPE")
	if path == "" {
		t.Skip("PROFPULL_PYROSCOPE names no program of Grafana Pyroscope (make pyroscope-check)")
	}
	dir, host := t.TempDir(), loop.Host()
	config := strings.ReplaceAll(strings.ReplaceAll(`
target: all
architecture_storage: v2
analytics: {reporting_enabled: false}
self_profiling: {disable_push: true}
server: {http_listen_address: HOST, http_listen_port: 4040, grpc_listen_address: HOST, grpc_listen_port: 9095}
memberlist: {bind_addr: [HOST], advertise_addr: HOST, bind_port: 7946}
limits: {ingestion_rate_mb: 100, ingestion_burst_size_mb: 100}
storage: {backend: filesystem, filesystem: {dir: DIR/shared}}
pyroscopedb: {data_path: DIR/v1}
metastore: {data_dir: DIR/metastore/data, raft: {dir: DIR/metastore/raft}}
`, "HOST", host), "DIR", dir)
	must(t, os.WriteFile(filepath.Join(dir, "pyroscope.yaml"), []byte(config), 0o600))
	args := []string{"-config.file=" + filepath.Join(dir, "pyroscope.yaml"), "-metastore.raft.bind-address=" + host + ":9099",
		"-metastore.raft.advertise-address=" + host + ":9099", "-metastore.address=" + host + ":9095",
		"-query-backend.address=" + host + ":9095", "-metastore.raft.snapshots-dir=" + filepath.Join(dir, "snapshots")}
	for _, ring := range []string{"segment-writer.lifecycler.addr", "distributor.ring.instance-addr", "compactor.ring.instance-addr",
		"overrides-exporter.ring.instance-addr", "query-frontend.instance-addr", "query-scheduler.ring.instance-addr",
		"store-gateway.sharding-ring.instance-addr"} {
		args = append(args, "-"+ring+"="+host)
	}
	startProgram(t, exec.Command(path, args...))
	address := host + ":4040"
	last := ""
	for until := time.Now().Add(10 * time.Minute); time.Now().Before(until); time.Sleep(time.Second) {
		resp, err := http.Get("http://" + address + "/ready")
		if err != nil {
			last = err.Error()
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == 200 {
			return address
		}
		last = string(text)
	}
	t.Fatalf("Pyroscope is not ready: %s", last)
	return ""
}

// stacksOf returns the self of each stack of what flame prints as JSON. Pyroscope drops samples without a stack, which are the
// self of the root.
func stacksOf(t *testing.T, text string) []string {
	t.Helper()
	type frame struct {
		Name     string
		Self     int64
		Children []frame
	}
	var got struct {
		Unit string
		Root frame
	}
	decode(t, []byte(text), &got)
	stacks := []string{got.Unit}
	var visit func(f frame, path string)
	visit = func(f frame, path string) {
		for _, c := range f.Children {
			if c.Self != 0 {
				stacks = append(stacks, fmt.Sprintf("%s;%s %d", path, c.Name, c.Self))
			}
			visit(c, path+";"+c.Name)
		}
	}
	visit(got.Root, "")
	sort.Strings(stacks)
	return stacks
}

// A real Pyroscope answers every subject of query as the store does that got the same profiles.
func TestRealPyroscope(t *testing.T) {
	t.Parallel()
	bin(t)
	server := startRealPyroscope(t)
	store := filepath.Join(t.TempDir(), "store")
	from := time.Now().Add(-time.Minute).Unix()
	p := run(t, fmt.Sprintf(`
global: {scrape_interval: 4s}
scrape_configs:
  - job_name: real
    profiles: {process_cpu: {seconds: 2s}}
    static_configs:
      - {targets: [%q], labels: {service_name: load, version: "1"}}
      - {targets: [%q], labels: {service_name: load, version: "2"}}
write:
  - {name: main, url: "http://%s"}
  - {name: store, url: "store://%s"}
`, startLoadgen(t), startLoadgen(t), server, store))
	p.waitMetrics("profiles at Pyroscope", func(m metrics) string {
		n := m.sum("profpull_write_sent_profiles_total", "endpoint", "main")
		return unless(n >= 40, "%v profiles", n)
	})
	p.stop()
	window := []string{"--from", fmt.Sprint(from), "--until", fmt.Sprint(time.Now().Unix() + 1), "--service", "load"}
	ask := func(where []string, args ...string) string {
		t.Helper()
		r := call(t, "", append(append(append([]string{"query"}, args...), window...), where...)...)
		require(t, r.code == exitDone, "%q of %q: exit code %d\n%s", args, where, r.code, r.stderr)
		return r.stdout
	}
	theirs, ours := []string{"--url", server}, []string{"--store", store}
	for _, args := range [][]string{
		{"types"}, {"top", "-n", "0"}, {"top", "-t", "heap", "-n", "0", "--json"}, {"top", "-t", "alloc"}, {"top", "-t", "mutex"},
		{"top", "-t", "process_cpu:samples:count:cpu:nanoseconds", "--json"}, {"top", "--label", "version=2"},
		{"peek", "checkSum|burnCPU"}, {"peek", "--json", "allocate", "-t", "alloc"},
		{"diff", "--label", "version=2", "--base-label", "version=1"},
		{"diff", "--label", "version=2", "--base-label", "version=1", "--normalize", "--json"},
		{"flame", "--width", "120"}, {"flame", "--width", "80", "--ascii", "-t", "heap", "--search", "main."},
	} {
		a, b := ask(theirs, args...), ask(ours, args...)
		expect(t, a == b, "%q: Pyroscope\n%s\nstore\n%s", args, a, b)
	}
	for _, kind := range []string{"cpu", "heap", "alloc", "goroutine", "mutex", "block"} {
		a, b := stacksOf(t, ask(theirs, "flame", "--json", "-t", kind)), stacksOf(t, ask(ours, "flame", "--json", "-t", kind))
		expect(t, strings.Join(a, "\n") == strings.Join(b, "\n") && len(a) >= 2,
			"%s: %d stacks of Pyroscope, %d of the store", kind, len(a)-1, len(b)-1)
	}
	merged := filepath.Join(t.TempDir(), "merged.pb.gz")
	ask(theirs, "merge", "-t", "cpu", "-o", merged)
	raw, err := os.ReadFile(merged)
	must(t, err)
	has(t, "merged", pprofTop(t, raw), "burnCPU")
	for _, args := range [][]string{{"--service", "nobody"}, {"--service", "load", "--label", "version=3"}} {
		expectCall(t, 3, "*", "has no profile of the type", append([]string{"query", "top", "--url", server}, args...)...)
	}
}
