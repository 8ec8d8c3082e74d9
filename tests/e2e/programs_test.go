package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// startProgram starts a program, in a directory of its own unless it has one, and kills it when the
// test ends.
func startProgram(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	must(t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(cmd.Path), tailLines(out.String(), 10))
		}
	})
	return out
}

// realProgram starts a program that serves /debug/pprof and waits until it answers.
func realProgram(t *testing.T, path, address string, args ...string) {
	t.Helper()
	out := startProgram(t, exec.Command(path, args...))
	wait(t, filepath.Base(path), func() string {
		resp, err := http.Get("http://" + address + "/debug/pprof/cmdline")
		if err != nil {
			return err.Error() + "\n" + out.String()
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			return resp.Status
		}
		return ""
	})
}

// findProgram looks below the directory where the packages have been unpacked.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PROFPULL_PROGRAMS")
	if dir == "" {
		t.Skip("PROFPULL_PROGRAMS names no directory (scripts/test-programs.sh)")
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*", "usr", "bin", name))
	if len(found) == 0 {
		t.Skipf("no %s below %s (scripts/test-programs.sh)", name, dir)
	}
	return found[0]
}

func startLoadgen(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PROFPULL_LOADGEN")
	if path == "" {
		t.Skip("PROFPULL_LOADGEN names no program")
	}
	address := loop.Host() + ":6060"
	realProgram(t, path, address, "-listen", address)
	return address
}

func startPrograms(t *testing.T) map[string]string {
	t.Helper()
	addresses := map[string]string{"loadgen": startLoadgen(t)}

	address := loop.Host() + ":9100"
	realProgram(t, findProgram(t, "prometheus-node-exporter"), address, "--web.listen-address="+address)
	addresses["node-exporter"] = address

	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte("global: {}\n"), 0o600))
	address = loop.Host() + ":9090"
	realProgram(t, findProgram(t, "prometheus"), address, "--web.listen-address="+address,
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"))
	addresses["prometheus"] = address

	host := loop.Host()
	address = host + ":2379"
	peer := "http://" + host + ":2380"
	realProgram(t, findProgram(t, "etcd"), address, "--enable-pprof", "--data-dir", filepath.Join(dir, "etcd"),
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	addresses["etcd"] = address
	return addresses
}

// Prometheus, node-exporter, etcd and a Go program under load are scraped and pushed: CPU, memory and
// goroutine profiles of each, mutex and block profiles of the last, arrive at a strict server with
// the right labels and sample types, and what arrived of the load program names its functions.
func TestRealPrograms(t *testing.T) {
	t.Parallel()
	addresses := startPrograms(t)
	server := newPyroscope(t, pyroscope.Options{})
	var static strings.Builder
	for name, address := range addresses {
		fmt.Fprintf(&static, "      - {targets: [%q], labels: {service_name: %s}}\n", address, name)
	}
	p := run(t, `
global: {scrape_interval: 4s, external_labels: {cluster: test}}
scrape_configs:
  - job_name: real
    profiles: {process_cpu: {seconds: 2s}}
    static_configs:
`+static.String()+`
`+writeTo(server))
	sampleTypes := map[string]string{"process_cpu": "cpu", "memory": "alloc_space", "goroutine": "goroutine",
		"mutex": "delay", "block": "delay"}
	for service, address := range addresses {
		for name, sampleType := range sampleTypes {
			if service != "loadgen" && (name == "mutex" || name == "block") {
				continue // they do not record any: nothing but zeros, which is not sent
			}
			got := waitProfiles(t, server, 1, func(r *pyroscope.Received) bool {
				return r.Name() == name && r.Labels["service_name"] == service
			})[0]
			expect(t, got.Profile.HasSampleType(sampleType),
				"%s of %s has the sample types %v", name, service, got.Profile.SampleTypes)
			hasLabels(t, got.Labels, "instance", address, "job", "real", "cluster", "test")
			expect(t, pprof.IsGzip(got.Raw), "%s of %s did not arrive as gzip", name, service)
			for label := range got.Labels {
				expect(t, !strings.HasPrefix(label, "__") || label == "__name__" || label == "__delta__",
					"%s of %s has the internal label %s", name, service, label)
			}
		}
	}
	expectFunctions(t, server)
	noneRefused(t, server)
	for _, s := range p.scrapes("?health=down") {
		t.Errorf("%s is down: %s", s.URL, s.LastError)
	}
}

// expectFunctions waits for profiles of the load program that name what it does: at least one of
// each type does after a while.
func expectFunctions(t *testing.T, server *pyroscope.Server) {
	t.Helper()
	for _, c := range []struct{ name, function, index string }{
		{"process_cpu", "main.burnCPU", "cpu"},
		{"memory", "main.allocateALot", "alloc_space"},
		{"goroutine", "main.waitForever", "goroutine"},
		{"mutex", "main.contendOnMutex", "delay"},
		{"block", "main.blockOnChannel", "delay"},
	} {
		match := func(r *pyroscope.Received) bool {
			if r.Name() != c.name || r.Labels["service_name"] != "loadgen" || r.Profile.Sums()[c.index] == 0 {
				return false
			}
			for _, f := range r.Profile.Functions {
				if f == c.function {
					return true
				}
			}
			return false
		}
		got := waitProfiles(t, server, 1, match)[0]
		top := pprofTop(t, got.Raw, "-nodecount=200", "-sample_index="+c.index)
		has(t, "pprof -top", top, c.function)
	}
}
