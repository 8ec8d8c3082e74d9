package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// secretFile is replaced as a whole, as Kubernetes does it.
type secretFile struct {
	t    *testing.T
	path string
}

func (f secretFile) set(text string) {
	f.t.Helper()
	must(f.t, os.WriteFile(f.path+".new", []byte(text), 0o600))
	must(f.t, os.Rename(f.path+".new", f.path))
}

// withUser replaces the user of a kubeconfig.
func withUser(t *testing.T, kubeconfig string, user map[string]any) {
	t.Helper()
	text := readFile(t, kubeconfig)
	var all map[string]any
	must(t, json.Unmarshal(text, &all))
	all["users"] = []any{map[string]any{"name": "tester", "user": user}}
	text, _ = json.Marshal(all)
	must(t, os.WriteFile(kubeconfig, text, 0o600))
}

// putPod adds an annotated pod where nobody answers.
func putPod(cluster *kube.Server, name string) {
	cluster.Put(kube.Annotated(name, loop.Host()+":6060", "memory"))
}

// rotated runs a program whose credentials come from token; change is what happens before the server
// accepts "second-token" only.
func rotated(t *testing.T, user func(token secretFile) map[string]any, change func(p *program, token secretFile)) (*program, *kube.Server) {
	t.Helper()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{TLS: true, Token: "first-token"})
	token := secretFile{t, filepath.Join(t.TempDir(), "token")}
	token.set("first-token\n")
	withUser(t, kubeconfig, user(token))
	putPod(cluster, "a")
	p := run(t, kubeConfig(kubeconfig, server.URL(), "24h"))
	p.waitPods("a")
	change(p, token)
	cluster.SetToken("second-token")
	putPod(cluster, "b")
	p.waitPods("a b") // the watch that is open goes on
	before := cluster.Stats().Watches
	cluster.EndWatches()
	wait(t, "a watch with the new token", func() string {
		return unless(cluster.Stats().Watches > before, "%s", p.stderr.String())
	})
	putPod(cluster, "c")
	p.waitPods("a b c")
	atMost(t, "requests with the old token", cluster.Stats().Unauthorized, 1)
	equal(t, "lists", cluster.Stats().Lists, 1)
	for _, secret := range []string{"first-token", "second-token"} {
		expect(t, !strings.Contains(p.stderr.String(), secret), "%s is in the log", secret)
	}
	return p, cluster
}

// A token file that is replaced is used with at most one refused request, and an empty one on
// the way costs nothing.
func TestTokenFileRotates(t *testing.T) {
	t.Parallel()
	rotated(t, func(token secretFile) map[string]any {
		return map[string]any{"tokenFile": token.path}
	}, func(_ *program, token secretFile) {
		token.set("")
		token.set("second-token\n")
	})
}

// An exec plugin is run once for its credentials, and once more when they are refused.
func TestExecPluginRefresh(t *testing.T) {
	t.Parallel()
	bin(t)
	p, _ := rotated(t, func(token secretFile) map[string]any {
		return map[string]any{"exec": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable",
			"command": "sh", "args": []string{"-c", `echo "asked for: $KUBERNETES_EXEC_INFO" >&2
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$(cat "$TOKEN_FILE")"`},
			"env": []any{map[string]string{"name": "TOKEN_FILE", "value": token.path}},
		}}
	}, func(_ *program, token secretFile) { token.set("second-token") })
	equal(t, "runs of the plugin", p.metrics().sum("profpull_discovery_exec_plugin_runs_total", "result", "ok"), 2)
}

// A plugin that fails is quoted in the log, is not a reason to stop, and is tried again.
func TestExecPluginFails(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{Token: "first-token"})
	putPod(cluster, "a")
	ready := filepath.Join(t.TempDir(), "logged-in")
	withUser(t, kubeconfig, map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh",
		"args": []string{"-c", `test -e ` + ready + ` || { echo 'session has expired, log in again' >&2; exit 4; }
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"first-token"}}'`},
	}})
	p := run(t, kubeConfig(kubeconfig, server.URL(), "24h"))
	p.wait("the plugin's complaint", func() string {
		text := p.stderr.String()
		return unless(strings.Contains(text, "no credentials") && strings.Contains(text, "exec plugin sh: it ended with status 4: session has expired, log in again"),
			"%s", text)
	})
	equal(t, "requests without credentials", cluster.Stats().Unauthorized, 0)
	must(t, os.WriteFile(ready, nil, 0o600))
	p.waitPods("a")
}

// A streamed list that does not come to its end is said to be late after 10 s, and read in pages
// after 60 s; what is a target stays one until then.
func TestStreamStalls(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_LONG") != "1" {
		t.Skip("takes a minute (E2E_LONG=1)")
	}
	w := newWatched(t, kube.Options{})
	w.put("b")
	w.waitPods("a b")
	w.cluster.WatchFaults.Set(&loop.Fault{Status: 503})
	w.after("a watch that is refused", refused, w.cluster.AbortWatches)
	w.cluster.Delete("default/b")
	w.cluster.Compact()
	w.cluster.StallStreams(true)
	w.cluster.WatchFaults.Set(nil)
	w.says("the streamed list is not complete yet")
	equal(t, "targets while the list is not complete", w.pods(), "a b")
	time.Sleep(45 * time.Second) // patience for one thing is not enough
	w.waitPods("a")
}

// Secrets in parameters of requests reach the target and are shown nowhere: not in the log, by the
// API, in a dump, or by discover, and not even what the target repeats of them in its error page.
func TestSecretsInParameters(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", loop.Host()+":0")
	must(t, err)
	asked := make(chan string, 1000)
	target := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.RawQuery:
		default:
		}
		http.Error(w, "no such page: "+r.URL.String()+" "+r.URL.Query().Get("api_key"), 404)
	})}
	go func() { _ = target.Serve(listener) }()
	t.Cleanup(func() { target.Close() })
	for _, row := range []struct{ name, global, hidden, shown string }{
		{"secrets", "", "WORD", "VALUE"},
		{"all", ", mask_all_params: true", "(WORD|VALUE)", "\x00"},
	} {
		text := `
global: {scrape_interval: 300ms` + row.global + `}
log: {level: debug}
scrape_configs:
  - job_name: a
    params: {token: [XWORD1X], plain: [XVALUE1X]}
` + types("memory: {params: {sig: [XWORD2X]}}") + `    static_configs:
      - targets: ["` + listener.Addr().String() + `"]
        labels: {__param_api_key: "XWORD3/3X", __param_open: XVALUE2X}
      - targets: ["` + listener.Addr().String() + `"]
        labels: {__param_api_key: "XWORD3/3X", __param_open: XVALUE2X, job: again}
    relabel_configs:
      - {target_label: __param_client_secret, replacement: XWORD4X}
write: [{url: "file://` + t.TempDir() + `"}]
`
		p := run(t, text)
		p.says("scrape failed")
		query := <-asked
		has(t, row.name, query, "token=XWORD1X", "sig=XWORD2X", "api_key=XWORD3%2F3X", "client_secret=XWORD4X", "open=XVALUE2X")
		_, targets := p.get("/api/v1/targets")
		_, numbers := p.get("/metrics")
		p.stop()
		shown := map[string]string{
			"the log": p.stderr.String(), "the API": targets, "the metrics": numbers,
			"the dump": call(t, "", "check", "--dump", "--config", p.config).stdout,
			"discover": call(t, "", "discover", "--explain", "--config", p.config).stdout,
		}
		secret := regexp.MustCompile("X[A-Z]*" + row.hidden + "[0-9/%A-F]*X")
		for place, text := range shown {
			found := secret.FindAllString(text, -1)
			expect(t, found == nil, "%s: %s shows %q:\n%s", row.name, place, found, text)
			expect(t, place == "the metrics" || row.shown == "\x00" || strings.Contains(text, row.shown),
				"%s: %s hides everything:\n%s", row.name, place, text)
			for len(asked) > 0 {
				<-asked
			}
		}
	}
}
