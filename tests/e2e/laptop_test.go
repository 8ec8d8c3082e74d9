package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/target"
)

// laptop is a person's machine: a cluster elsewhere, and kubeconfigs that lead to it.
type laptop struct {
	t       *testing.T
	cluster *kube.Server
	dir     string
	env     []string
}

const laptopToken = "hunter2-of-jane"

// newLaptop splits a kubeconfig in two files: the contexts, and the clusters with the users.
func newLaptop(t *testing.T) *laptop {
	t.Helper()
	cluster, file := newKube(t, kube.Options{TLS: true, Token: laptopToken})
	l := &laptop{t: t, cluster: cluster, dir: t.TempDir()}
	var all map[string]any
	must(t, json.Unmarshal([]byte(readText(t, file)), &all))
	clusters := all["clusters"].([]any)
	clusters = append(clusters, map[string]any{"name": "gone", "cluster": map[string]any{"server": "https://127.0.0.1:1"}},
		map[string]any{"name": "far", "cluster": map[string]any{"server": "https://192.0.2.1:6443"}})
	users := append(all["users"].([]any), map[string]any{"name": "late", "user": map[string]any{"token": "expired-hunter3"}},
		map[string]any{"name": "plugin", "user": map[string]any{"exec": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable", "command": "sh",
			"args": []string{"-c", `echo "$PLUGIN_SAYS" >&2; printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$PLUGIN_TOKEN"; exit ${PLUGIN_EXIT:-0}`},
		}}})
	l.write("clusters", map[string]any{"clusters": clusters, "users": users})
	var contexts []any
	for _, c := range [][3]string{{"test", "fake", "tester"}, {"late", "fake", "late"}, {"away", "gone", "tester"}, {"far", "far", "tester"}, {"plugin", "fake", "plugin"}} {
		contexts = append(contexts, map[string]any{"name": c[0],
			"context": map[string]any{"cluster": c[1], "user": c[2], "namespace": "shop"}})
	}
	l.write("contexts", map[string]any{"current-context": "test", "contexts": contexts})
	l.env = []string{"KUBECONFIG=" + filepath.Join(l.dir, "contexts") + ":" + filepath.Join(l.dir, "missing") + ":" + filepath.Join(l.dir, "clusters")}
	return l
}

func (l *laptop) write(name string, content map[string]any) {
	l.t.Helper()
	text, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, name), text, 0o600)
	}
	must(l.t, err)
}

// call runs a command on the laptop, checks its exit code, and that both outputs together have all parts and no secret.
func (l *laptop) call(code int, parts []string, args ...string) result {
	l.t.Helper()
	cmd := command(l.t, args...)
	cmd.Env = append(cmd.Env, l.env...)
	r := callCommand(l.t, cmd, "")
	expect(l.t, r.code == code, "%v: exit code %d, expected %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
	for _, part := range parts {
		expect(l.t, strings.Contains(r.stdout+r.stderr, part), "%v: %q is missing:\n%s%s", args, part, r.stdout, r.stderr)
	}
	expect(l.t, !strings.Contains(r.stdout+r.stderr, "hunter"), "%v: a secret is shown:\n%s%s", args, r.stdout, r.stderr)
	return r
}

func (l *laptop) pod(name string, annotations map[string]string, ports ...int) kube.Pod {
	return kube.Pod{Namespace: "shop", Name: name, IP: "10.1.2.3", Annotations: annotations, Labels: map[string]string{"app": "cart"},
		Containers: []kube.Container{container("main", ports...)}}
}

// The kubeconfig is read as kubectl does, and each way in which it does not lead to the cluster is named with its context and its file.
func TestKubeconfigOfALaptop(t *testing.T) {
	t.Parallel()
	bin(t)
	l := newLaptop(t)
	l.cluster.Put(l.pod("cart-1", grafana("cpu.scrape", "true", "cpu.port", "6060"), 6060))
	found := []string{`"source":"pod/shop/cart-1"`, "http://10.1.2.3:6060/debug/pprof/profile"}
	l.call(exitDone, found, "discover")
	l.call(exitDone, found, "discover", "--context", "test")
	contexts := filepath.Join(l.dir, "contexts")
	l.call(exitPeer, []string{`context "away" of ` + contexts, "the API server does not answer", "https://127.0.0.1:1"}, "discover", "--context", "away")
	l.call(exitPeer, []string{`context "late" of ` + contexts, "401", "Renew the token"}, "discover", "--context", "late")
	l.call(exitInput, []string{"no context with the name \"tset\"", contexts, `did you mean "test"?`}, "discover", "--context", "tset")
	l.call(exitInput, []string{"/nonexistent", "No such file"}, "discover", "--kubeconfig", "/nonexistent")
	config := writeConfig(t, "scrape_configs: [{job_name: a, static_configs: [{targets: [\"10.0.0.1:1\"]}]}]\nwrite: [{url: \"http://127.0.0.1\"}]\n")
	l.call(exitInput, []string{"--context has no effect"}, "discover", "--config", config, "--context", "test")

	// An exec plugin gives the token; what it says when it fails is quoted without its secrets.
	env := l.env
	l.env = append(env, "PLUGIN_TOKEN="+laptopToken)
	l.call(exitDone, found, "discover", "--context", "plugin")
	l.env = append(env, "PLUGIN_TOKEN=wrong")
	l.call(exitPeer, []string{`context "plugin" of ` + contexts, "401", "Log in again with the tool"}, "discover", "--context", "plugin")
	l.env = append(env, "PLUGIN_EXIT=3", "PLUGIN_SAYS=log in first")
	l.call(exitPeer, []string{`context "plugin" of ` + contexts, "exec plugin sh: it ended with status 3: log in first"}, "discover", "--context", "plugin")

	// A proxy in the environment is used, but not for a cluster on this machine.
	asked := make(chan string, 100)
	proxy, err := loop.Start("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}), nil)
	must(t, err)
	t.Cleanup(proxy.Down)
	l.env = append(env, "HTTPS_PROXY="+proxy.URL())
	l.call(exitDone, found, "discover")
	l.call(exitPeer, []string{`context "far" of ` + contexts, "the API server does not answer"}, "discover", "--context", "far")
	select {
	case got := <-asked:
		expect(t, got == "CONNECT 192.0.2.1:6443", "the proxy was asked for %s", got)
	default:
		t.Error("the proxy was not asked")
	}

	l.env = []string{"KUBECONFIG=", "HOME=" + l.dir}
	l.call(exitInput, []string{filepath.Join(l.dir, ".kube/config"), "KUBERNETES_SERVICE_HOST", "--kubeconfig FILE"}, "discover")
	must(t, os.Mkdir(filepath.Join(l.dir, ".kube"), 0o700))
	must(t, l.cluster.WriteKubeconfig(filepath.Join(l.dir, ".kube/config")))
	l.call(exitDone, found, "discover")
}

// explain says of one pod whether it is scraped, with its exit code as well, and reads nothing but this pod.
func TestExplainCommand(t *testing.T) {
	t.Parallel()
	bin(t)
	l := newLaptop(t)
	asks := grafana("cpu.scrape", "true", "cpu.port", "6060")
	pending := l.pod("cart-2", asks, 6060)
	pending.IP, pending.Phase, pending.Waiting = "", "Pending", [2]string{"Unschedulable", "0/3 nodes are available"}
	l.cluster.Put(l.pod("cart-1", asks, 6060))
	l.cluster.Put(pending)
	l.cluster.Put(l.pod("quiet", nil, 6060))
	l.cluster.Forbid("pods", "", 403) // the whole cluster is not for everybody
	for _, args := range [][]string{{"pod/shop/cart-1"}, {"pod/cart-1"}, {"shop/cart-1"}, {"po/cart-1", "-n", "shop"}} {
		l.call(exitDone, []string{"Pod shop/cart-1 is scraped by job \"annotated-pods\""}, append([]string{"explain"}, args...)...)
	}
	l.call(exitPeer, []string{"Pod shop/cart-2 is not scraped: it exists and has no IP address yet, its phase is Pending (Unschedulable: 0/3 nodes are available)"},
		"explain", "pod/shop/cart-2")
	l.call(exitDone, []string{`{"pod":"shop/cart-1","found":true,"scraped":true,"explanation":"Pod shop/cart-1 is scraped`}, "explain", "--json", "pod/shop/cart-1")
	l.call(exitPeer, []string{`"scraped":false`}, "explain", "--json", "pod/shop/quiet")
	l.call(exitPeer, []string{"Pod shop/quiet is not scraped", "Add profiles.grafana.com/cpu.scrape"}, "explain", "pod/shop/quiet")
	l.call(exitPeer, []string{"No pod that is watched has the name shop/nobody. There is none: `kubectl get pods -n shop`"}, "explain", "pod/shop/nobody")
	for i, query := range l.cluster.Stats().Queries {
		expect(t, strings.Contains(query, "metadata.name"), "request %d asked for all pods: %s", i, query)
	}
	config := func(rest string) string {
		return writeConfig(t, "scrape_configs:\n- job_name: mine\n  kubernetes_sd_configs: [{role: pod, "+rest+"}]\nwrite: [{url: \"http://127.0.0.1\"}]\n")
	}
	l.call(exitPeer, []string{"exists, and no job watches it", "watches only the namespace pay"},
		"explain", "pod/shop/cart-1", "--config", config("namespaces: {names: [pay]}"))
	l.call(exitPeer, []string{"exists, and no job watches it", "label selector \"app=pay\""},
		"explain", "pod/shop/cart-1", "--config", config("selectors: [{role: pod, label: app=pay}]"))
	l.call(exitDone, []string{"is scraped by job \"mine\""},
		"explain", "pod/shop/cart-1", "--config", config("selectors: [{role: pod, label: app=cart, field: status.phase=Running}]"))
	l.cluster.Forbid("pods", "shop", 403)
	l.call(exitPeer, []string{`context "test" of `, "may not list pods in the namespace shop", "Ask for a Role with the verbs list and watch on pods"}, "explain", "pod/shop/cart-1")
	l.call(exitUsage, []string{"a pod is needed"}, "explain")
	l.call(exitUsage, []string{"expected pod/NAME"}, "explain", "deploy/cart")
	l.call(exitUsage, []string{"expected KIND/NAME"}, "explain", "cart")
	l.call(exitInput, []string{"two namespaces are given: shop and pay"}, "explain", "pod/shop/cart-1", "-n", "pay")
}

// scrape fetches a profile of a pod through the API server: of a pod, or of one of a Deployment or Service, at the
// port that its annotations, the name of a port or --port say.
func TestScrapeAPod(t *testing.T) {
	t.Parallel()
	bin(t)
	l := newLaptop(t)
	tg := newTarget(t, target.Options{})
	l.cluster.Route("shop/cart-1:6060", tg.Addr())
	l.cluster.Route("shop/plain:8081", tg.Addr())
	notReady, pending := l.pod("cart-0", grafana("memory.scrape", "true", "memory.port", "6060"), 6060), l.pod("cart-9", nil)
	notReady.NotReady, pending.IP, pending.Phase = true, "", "Pending"
	plain := l.pod("plain", nil, 8080)
	plain.Labels = nil
	plain.Containers[0].Ports = append(plain.Containers[0].Ports, kube.Port{Name: "http-pprof", Number: 8081})
	several := l.pod("several", nil, 1, 2)
	for _, p := range []kube.Pod{pending, notReady, plain, several,
		l.pod("cart-1", grafana("memory.scrape", "true", "memory.port", "6060", "memory.path", "/debug/pprof/heap", "cpu.scrape", "true", "cpu.port", "6060"), 6060)} {
		l.cluster.Put(p)
	}
	l.cluster.PutWorkload("/apis/apps/v1/namespaces/shop/deployments/cart", map[string]any{"selector": map[string]any{
		"matchLabels": map[string]string{"app": "cart"}}})
	l.cluster.PutWorkload("/apis/apps/v1/namespaces/shop/deployments/none", map[string]any{"selector": map[string]any{
		"matchLabels": map[string]string{"app": "none"}}})
	memory := []string{"pod:       shop/cart-1, through the API server", "format:    pprof", "/debug/pprof/heap"}
	l.call(exitDone, memory, "scrape", "pod/shop/cart-1", "--type", "memory")
	l.call(exitDone, memory, "scrape", "pod/cart-1", "--type", "alloc")   // a short name of the type
	l.call(exitDone, memory, "scrape", "deploy/cart", "--type", "memory") // the one that is ready
	file := filepath.Join(t.TempDir(), "out.pb.gz")
	r := l.call(exitDone, []string{"sampling pod shop/cart-1 for 2 s", "url:       http://10.1.2.3:6060/debug/pprof/profile?seconds=2\n"},
		"scrape", "deploy/shop/cart", "--seconds", "2", "-o", file)
	if info, err := os.Stat(file); err != nil || !strings.Contains(r.stdout, fmt.Sprint(info.Size())) {
		t.Errorf("%v: %s", err, r.stdout)
	}
	l.call(exitDone, []string{"pod:       shop/plain", ":8081/debug/pprof/allocs"}, "scrape", "pod/plain", "--type", "memory")
	l.call(exitDone, []string{"pod:       shop/plain"}, "scrape", "pod/plain", "--type", "memory", "--port", "http-pprof")
	l.call(exitDone, []string{"pod:       shop/plain"}, "scrape", "pod/plain", "--type", "memory", "-p", "8081")
	l.call(exitPeer, []string{"the API server cannot reach the pod: HTTP 503", "connection refused", "127.0.0.1 only"}, "scrape", "pod/plain", "--type", "memory", "-p", "8080")
	l.call(exitInput, []string{"no port named \"nope\"", "8081 (\"http-pprof\", container main)"}, "scrape", "pod/plain", "-p", "nope")
	l.call(exitInput, []string{"nothing says which port of pod shop/several has the profile process_cpu: its ports are 1 (\"main-0\"", "--port"}, "scrape", "pod/several")
	l.call(exitInput, []string{"pod shop/cart-9 has no IP address yet: its phase is Pending"}, "scrape", "pod/cart-9")
	l.call(exitInput, []string{"there is no pod shop/nobody: `kubectl get pods -n shop`"}, "scrape", "pod/nobody")
	l.call(exitInput, []string{"there is no deployment shop/nothing: `kubectl get deployments -n shop`"}, "scrape", "deploy/nothing")
	l.call(exitInput, []string{"deployment shop/none has no pods"}, "scrape", "deploy/none")
	tg.SetFault("", target.HTML)
	l.call(exitPeer, []string{"HTML"}, "scrape", "pod/cart-1", "--type", "memory")
	tg.SetFault("", target.None)
	// A refusal by the program itself is not reported as a missing permission.
	for _, row := range []struct{ resource, verb string }{{"pods/proxy", "get"}, {"deployments", "get"}, {"pods", "list"}} {
		l.cluster.Forbid(row.resource, "shop", 403)
		name := row.resource
		if name == "deployments" {
			name += ".apps"
		}
		l.call(exitPeer, []string{fmt.Sprintf("may not %s %s in namespace shop", row.verb, name), "Ask for a Role",
			fmt.Sprintf("`kubectl auth can-i %s %s -n shop`", row.verb, name), "The API server says: "}, "scrape", "deploy/cart", "--type", "memory")
		l.cluster.Forbid(row.resource, "shop", 0)
	}
	l.call(exitUsage, []string{"go with a pod"}, "scrape", "http://127.0.0.1:1/x", "--context", "test")
}

// kubectl runs the program as its plugin; Debian's real one.
func (l *laptop) kubectl(code int, parts []string, args ...string) result {
	l.t.Helper()
	cmd := l.plugin(args...)
	r := callCommand(l.t, cmd, "")
	expect(l.t, r.code == code, "kubectl profpull %v: exit code %d, expected %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
	for _, part := range parts {
		expect(l.t, strings.Contains(r.stdout+r.stderr, part),
			"kubectl profpull %v: %q is missing:\n%s%s", args, part, r.stdout, r.stderr)
	}
	return r
}

func (l *laptop) plugin(args ...string) *exec.Cmd {
	l.t.Helper()
	dir := filepath.Join(l.dir, "bin")
	_ = os.Mkdir(dir, 0o700)
	program, err := filepath.Abs(bin(l.t))
	must(l.t, err)
	if err := os.Symlink(program, filepath.Join(dir, "kubectl-profpull")); err != nil && !os.IsExist(err) {
		l.t.Fatal(err)
	}
	cmd := command(l.t, "version")
	cmd.Path = findProgram(l.t, "kubectl")
	cmd.Args = append([]string{"kubectl", "profpull"}, args...)
	cmd.Env = append(append(cmd.Env, l.env...), "PATH="+dir+":/usr/bin:/bin")
	return cmd
}

// TestKubectlPlugin runs the program as a plugin of kubectl: it reaches the cluster, its own state and
// its pages through the API server.
func TestKubectlPlugin(t *testing.T) {
	t.Parallel()
	bin(t)
	l := newLaptop(t)
	tg := newTarget(t, target.Options{})
	l.cluster.Put(l.pod("cart-1", grafana("memory.scrape", "true", "memory.port", "6060"), 6060))
	l.cluster.PutWorkload("/apis/apps/v1/namespaces/shop/deployments/cart", map[string]any{"selector": map[string]any{"matchLabels": map[string]string{"app": "cart"}}})
	l.cluster.Route("shop/cart-1:6060", tg.Addr())
	l.kubectl(exitInput, []string{"no pod of profpull runs in the cluster", "kubectl get pods -A -l app.kubernetes.io/name=profpull"}, "status")
	p := run(t, "scrape_configs: [{job_name: shop, profiles: {process_cpu: {enabled: false}}, static_configs: [{targets: [\""+tg.Addr()+"\"], labels: {service_name: cart}}]}]\n"+
		"write: [{name: kept, url: \"store://"+t.TempDir()+"\"}]\n")
	agent := l.pod("profpull-0", nil)
	agent.Namespace, agent.Labels = "profiling", map[string]string{"app.kubernetes.io/name": "profpull"}
	agent.Containers = []kube.Container{{Name: "profpull", Image: "profpull:1", Ports: []kube.Port{{Name: "admin", Number: 4040}}}}
	l.cluster.Put(agent)
	l.cluster.Route("profiling/profpull-0:4040", strings.TrimPrefix(p.admin, "http://"))
	p.wait("a scrape", func() string {
		return unless(len(p.scrapes("?health=up")) != 0, "none")
	})

	l.kubectl(exitDone, []string{"shop", "kept"}, "status")
	l.kubectl(exitDone, []string{`"version"`}, "status", "--json", "-n", "profiling")
	other := agent
	other.Name, other.UID = "profpull-1", ""
	l.cluster.Put(other)
	l.cluster.Route("profiling/profpull-1:4040", strings.TrimPrefix(p.admin, "http://"))
	l.kubectl(exitDone, []string{"pod profiling/profpull-0\n", "\n\npod profiling/profpull-1\n"}, "status")
	l.cluster.Route("profiling/profpull-1:4040", tg.Addr())
	l.kubectl(exitPeer, []string{"pod profiling/profpull-1: GET /api/v1/status on port 4040: HTTP 404, which is not a status of profpull"}, "status")
	l.cluster.Delete("profiling/profpull-1")
	l.kubectl(exitInput, []string{"no pod of profpull runs in namespace shop"}, "status", "-n", "shop")
	l.call(exitDone, []string{"shop", "kept"}, "status", "pod/profiling/profpull-0")
	l.call(exitUsage, []string{"go with --cluster"}, "status", "-n", "profiling")
	l.kubectl(exitDone, []string{"Pod shop/cart-1 is scraped"}, "explain", "pod/shop/cart-1")
	r := l.kubectl(exitDone, []string{"pod:       shop/cart-1, through the API server", "shop/cart-1"}, "scrape", "deploy/cart", "--type", "allocs", "--flame")
	expect(t, strings.Contains(r.stdout, "heap.(*Cart).step1 100.0%") && !strings.Contains(r.stdout, "format:"),
		"the flame graph is\n%s", r.stdout)
	// A user who may not list the pods of all namespaces gets those of the context's, or names one.
	l.cluster.Forbid("pods", "", 403)
	l.kubectl(exitPeer, []string{"may not list pods in the whole cluster", "name the namespace of profpull with -n"}, "status")
	l.cluster.Forbid("pods/proxy", "profiling", 403)
	l.kubectl(exitPeer, []string{"may not get pods/proxy in namespace profiling", "the verb \"get\" on the resource \"pods/proxy\" is missing"}, "status", "-n", "profiling")
	l.cluster.Forbid("pods/proxy", "profiling", 0)

	l.open(tg)
	p.stop()
}

// open looks at pages through `kubectl profpull open`, as a browser does.
func (l *laptop) open(tg *target.Target) {
	l.t.Helper()
	cmd := l.plugin("open", "cart", "--print", "-n", "profiling")
	out, err := cmd.StdoutPipe()
	must(l.t, err)
	must(l.t, cmd.Start())
	l.t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(l.t, err)
	base, query, ok := strings.Cut(strings.TrimSpace(line), "/?")
	require(l.t, ok && query == "service=cart" && strings.HasPrefix(base, "http://127.0.0.1:"), "the URL is %q", line)
	get := func(path, host string) (int, string, string) {
		req, err := http.NewRequest("GET", base+path, nil)
		must(l.t, err)
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		must(l.t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(l.t, err)
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
	}
	code, kind, page := get("/targets", "")
	expect(l.t, code == 200 && strings.HasPrefix(kind, "text/html") && strings.Contains(page, tg.Addr()),
		"/targets: %d %s\n%.300s", code, kind, page)
	// A real API server puts the path of the pod in front of absolute links, so pages have relative ones only.
	expect(l.t, !strings.Contains(page, `href="/`) && !strings.Contains(page, `src="/`) && !strings.Contains(page, `action="/`),
		"the page has absolute links:\n%.500s", page)
	if code, kind, body := get("/api/v1/targets?job=nothing", ""); code != 200 || !strings.HasPrefix(kind, "application/json") || strings.Contains(body, tg.Addr()) {
		l.t.Errorf("/api/v1/targets with a query: %d %s\n%.300s", code, kind, body)
	}
	code, _, _ = get("/targets", "evil.example")
	equal(l.t, "a name of somebody else", code, 421)
	code, _, _ = get("/nothing%20here", "")
	equal(l.t, "a page that does not exist", code, 404)
	must(l.t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		l.t.Errorf("after Ctrl-C: %v", err)
	}
}
