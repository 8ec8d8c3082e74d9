package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/target"
)

// inStatus is a line of /proc/PID/status; "self" is this process.
func inStatus(t *testing.T, pid any, key string) string {
	t.Helper()
	text := readFile(t, fmt.Sprintf("/proc/%v/status", pid))
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key+":") {
			return strings.TrimSpace(strings.TrimPrefix(line, key+":"))
		}
	}
	return ""
}

func threadNames(t *testing.T, pid int) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	must(t, err)
	names := map[string]bool{}
	for _, file := range files {
		// One that has ended meanwhile has no name.
		if name, err := os.ReadFile(file); err == nil {
			names[strings.TrimSpace(string(name))] = true
		}
	}
	return names
}

// A running program keeps to what its configuration names: a file with credentials that has become
// a link to elsewhere is not read.
func TestSandbox(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	token := secretFile{t, filepath.Join(t.TempDir(), "token")}
	token.set("first-token")
	elsewhere := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(elsewhere, []byte("stolen"), 0o600))
	p := run(t, scraping(job("one", "scrape_interval: 1s, authorization: {credentials_file: \""+token.path+"\"}, profiles: {process_cpu: {enabled: false}}", tg),
		"name: main, url: \"file://"+filepath.Join(t.TempDir(), "deep", "out")+"\""))
	_, metrics := p.get("/metrics")
	on := func(part string) bool {
		return strings.Contains(metrics, `profpull_sandbox{part="`+part+`"} 1`)
	}
	expect(t, !on("no_new_privs") || inStatus(t, p.cmd.Process.Pid, "NoNewPrivs") == "1",
		"the metric says no_new_privs, the kernel does not")
	expect(t, !on("seccomp") || inStatus(t, p.cmd.Process.Pid, "Seccomp") == "2",
		"the metric says seccomp, the kernel does not")
	for _, name := range []string{"discovery", "network", "writer"} {
		names := threadNames(t, p.cmd.Process.Pid)
		expect(t, names[name], "no thread is named %s: %v", name, names)
	}
	p.says("msg=sandbox no_new_privs=")
	sent := func(n int) func() string {
		return func() string {
			got := p.metrics().ledger("main").sent
			return unless(got >= float64(n), "%v profiles sent", got)
		}
	}
	p.wait("profiles in the directory", sent(1))
	if !on("landlock") {
		t.Skip("this kernel has no Landlock, or the build leaves it out")
	}
	must(t, os.Symlink(elsewhere, token.path+".new"))
	must(t, os.Rename(token.path+".new", token.path))
	p.says("Permission denied")
	p.wait("scrapes with the old token", sent(len(tg.Requests())+1))
	for _, r := range tg.Requests() {
		if got := r.Header.Get("Authorization"); got != "Bearer first-token" {
			t.Fatalf("the target got %q", got)
		}
	}
}

// The sandbox can be left out, and be asked for.
func TestSandboxModes(t *testing.T) {
	t.Parallel()
	const config = `
scrape_configs:
  - {job_name: one, static_configs: [{targets: ["127.0.0.1:1"]}]}
write:
  - {name: main, url: "http://127.0.0.1:1"}
`
	p := run(t, config, "--sandbox", "off")
	for _, key := range []string{"NoNewPrivs", "Seccomp"} {
		got, want := inStatus(t, p.cmd.Process.Pid, key), inStatus(t, "self", key)
		expect(t, got == want, "%s: %s with --sandbox=off, %s without profpull", key, got, want)
	}
	p.says("msg=sandbox no_new_privs=off seccomp=off landlock=off")

	// Nobody knows what a plugin opens.
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, []byte(`{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
"clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
"users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true", "interactiveMode": "Never"}}}]}`), 0o600))
	file := writeConfig(t, `
scrape_configs:
  - {job_name: one, kubernetes_sd_configs: [{role: pod, kubeconfig_file: "`+kubeconfig+`"}]}
write:
  - {name: main, url: "http://127.0.0.1:1"}
`)
	expectCall(t, 1, "*", "--sandbox=required: ", "run", "--config", file, "--listen", "", "--sandbox", "required")
}

// TestWriteURLKeepsSecrets checks that credentials of one server never reach another one: the program
// refuses to start.
func TestWriteURLKeepsSecrets(t *testing.T) {
	t.Parallel()
	var bytes atomic.Int64
	listener, err := net.Listen("tcp", loop.Host()+":0")
	must(t, err)
	server := &http.Server{
		Handler:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ConnState: func(_ net.Conn, s http.ConnState) { bytes.Add(1) },
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	wrong := "http://" + listener.Addr().String()
	tg := newTarget(t, target.Options{})
	for _, row := range []struct{ keys, url, what string }{
		{`basic_auth: {username: u, password: geheim}`, wrong, "credentials"},
		{`bearer_token: geheim`, wrong + "/ingest", "credentials"},
		{`headers: {X-Key: geheim}`, wrong, "headers"},
		{`http_headers: {X-Key: {secrets: [geheim]}}`, wrong, "http_headers"},
		{`tenant_id: geheim`, wrong, "tenant_id"},
		{`bearer_token: geheim`, "http://127.0.0.1:4040", "credentials"}, // the same host without TLS
	} {
		file := writeConfig(t, `
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: one, static_configs: [{targets: ["`+tg.Addr()+`"]}]}
write:
  - {name: main, url: "https://127.0.0.1:4040", `+row.keys+`}
`)
		want := "--write.url: " + row.url + ` is not the server of the endpoint "main", https://127.0.0.1:4040, and must not get its ` + row.what
		r := expectCall(t, 1, "*", want, "run", "--config", file, "--listen", "", "--write.url", row.url)
		lacks(t, row.keys, r.stderr, "geheim")
	}
	equal(t, "changes of connections at the wrong host", bytes.Load(), 0)
}
