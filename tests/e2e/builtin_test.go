package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// ---- a program in a pod of the cluster ----------------------------------------------------------

// inCluster is the environment that the kubelet gives a container: the API server's address, and a
// directory with token, CA and namespace.
func inCluster(t *testing.T, server *kube.Server, kubeconfig, namespace string) []string {
	t.Helper()
	var file struct {
		Clusters []struct {
			Cluster map[string]string
		}
		Users []struct {
			User map[string]string
		}
	}
	text := readFile(t, kubeconfig)
	must(t, json.Unmarshal(text, &file))
	ca, err := base64.StdEncoding.DecodeString(file.Clusters[0].Cluster["certificate-authority-data"])
	must(t, err)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"token": file.Users[0].User["token"], "ca.crt": string(ca), "namespace": namespace,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	host, port, err := net.SplitHostPort(server.Addr())
	must(t, err)
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port,
		"PROFPULL_SERVICEACCOUNT_DIR=" + dir}
}

func newCluster(t *testing.T, more ...string) (*kube.Server, []string) {
	t.Helper()
	server, kubeconfig := newKube(t, kube.Options{TLS: true, Token: "a-token"})
	return server, append(inCluster(t, server, kubeconfig, "profpull"), more...)
}

// runWithin starts the program with these arguments and environment.
func runWithin(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, done: make(chan struct{})}
	listen := loop.Host() + ":4041"
	p.admin = "http://" + listen
	p.cmd = command(t, append([]string{"run", "--listen", listen}, args...)...)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stderr, &p.stderr
	must(t, p.cmd.Start())
	go func() {
		p.code = exitCode(p.cmd.Wait())
		close(p.done)
	}()
	t.Cleanup(p.cleanup)
	p.waitUp()
	return p
}

// goPrograms starts a real Go program on each port of a host of its own.
func goPrograms(t *testing.T, ports ...int) string {
	t.Helper()
	path := os.Getenv("PROFPULL_LOADGEN")
	if path == "" {
		t.Skip("PROFPULL_LOADGEN names no program")
	}
	host := loop.Host()
	for _, port := range ports {
		address := fmt.Sprintf("%s:%d", host, port)
		cmd := exec.Command(path, "-listen", address, "-busy", "0.02")
		must(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		wait(t, "the program", func() string {
			resp, err := http.Get("http://" + address + "/debug/pprof/cmdline")
			if err != nil {
				return err.Error()
			}
			resp.Body.Close()
			return ""
		})
	}
	return host
}

// ---- pods ---------------------------------------------------------------------------------------

func container(name string, ports ...int) kube.Container {
	c := kube.Container{Name: name, Image: name + ":1"}
	for i, port := range ports {
		c.Ports = append(c.Ports, kube.Port{Name: fmt.Sprintf("%s-%d", name, i), Number: port})
	}
	return c
}

func grafana(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all["profiles.grafana.com/"+pairs[i]] = pairs[i+1]
	}
	return all
}

func with(all map[string]string, pairs ...string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// scraped lists "pod container type port path service", one a line.
func (p *program) scraped() string {
	p.t.Helper()
	var lines []string
	for _, s := range p.scrapes("") {
		rest := strings.TrimPrefix(s.URL, "http://")
		slash := strings.IndexByte(rest, '/')
		_, port, err := net.SplitHostPort(rest[:slash])
		must(p.t, err)
		lines = append(lines, strings.Join([]string{s.Labels["pod"], s.Labels["container"], s.Type, port,
			rest[slash:], s.Labels["service_name"]}, " "))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// Pods with each family of annotations are scraped without any scrape_configs: each type once, on
// its port and path and under the labels of the container that owns the port; and none of those
// that do not ask for it, ask wrongly, or do not run. What arrives carries the labels.
func TestAnnotatedPods(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, env := newCluster(t)
	var ips []string
	put := func(name string, annotations map[string]string, pod kube.Pod) {
		pod.Name, pod.Annotations = name, annotations
		cluster.Put(pod)
		ips = append(ips, pod.IP)
	}
	one := func(ip string) kube.Pod {
		return kube.Pod{IP: ip, Labels: map[string]string{"app": "shop"}, Containers: []kube.Container{
			container("main", 8080, 9090), container("proxy", 15000)}}
	}
	declared := one(goPrograms(t, 8080))
	put("declared", with(grafana("cpu.scrape", "true", "cpu.port", "8080", "memory.scrape", "true",
		"memory.port", "8080", "service_name", "cart", "service_repository", "https://git.example/cart",
		"service_git_ref", "v7", "service_root_path", "cmd/cart")), declared)
	put("undeclared", grafana("goroutine.scrape", "true", "goroutine.port", "6060"), one(goPrograms(t, 6060)))
	put("named", grafana("mutex.scrape", "true", "mutex.port_name", "proxy-0"), one(goPrograms(t, 15000)))
	put("each-its-own", grafana("cpu.scrape", "true", "cpu.port", "15000",
		"memory.scrape", "true", "memory.port", "6061", "memory.path", "/debug/pprof/heap"), one(goPrograms(t, 15000, 6061)))
	put("pyroscope", map[string]string{"pyroscope.io/scrape": "true", "pyroscope.io/port": "9090",
		"pyroscope.io/application-name": "old-style", "pyroscope.io/spy-name": "gospy",
		"pyroscope.io/profile-cpu-enabled": "true", "pyroscope.io/profile-mem-enabled": "true",
		"pyroscope.io/profile-mutex-enabled": "false", "pyroscope.io/profile-block-enabled": "false",
		"pyroscope.io/profile-goroutines-enabled": "false"}, one(goPrograms(t, 9090)))
	put("profefe", map[string]string{"profefe.com/enable": "true", "profefe.com/service": "fefe"}, one(goPrograms(t, 6060)))
	sidecar := one(goPrograms(t, 7070))
	helper := container("helper", 7070)
	helper.RestartPolicy = "Always"
	sidecar.InitContainers = []kube.Container{container("setup", 7071), helper}
	put("sidecar", grafana("goroutine.scrape", "true", "goroutine.port", "7070"), sidecar)

	// None of these.
	asks := func() map[string]string { return grafana("memory.scrape", "true", "memory.port", "8080") }
	put("silent", nil, one(loop.Host()))
	put("yes", grafana("memory.scrape", "yes", "memory.port", "8080"), one(loop.Host()))
	put("typo", grafana("memory.scrap", "true", "memory.port", "8080"), one(loop.Host()))
	put("no-port", grafana("memory.scrape", "true"), one(loop.Host()))
	put("no-such-name", grafana("memory.scrape", "true", "memory.port_name", "nope"), one(loop.Host()))
	for _, phase := range []string{"Pending", "Succeeded", "Failed"} {
		pod := one(loop.Host())
		pod.Phase = phase
		put(strings.ToLower(phase), asks(), pod)
	}

	config := writeConfig(t, "global: {scrape_interval: 2s}\nwrite: [{url: \""+server.URL()+"\"}]\n")
	p := runWithin(t, env, "--config", config)
	cpu := "/debug/pprof/profile?seconds=1"
	want := strings.Join([]string{
		"declared main memory 8080 /debug/pprof/allocs cart",
		"declared main process_cpu 8080 " + cpu + " cart",
		"each-its-own main memory 6061 /debug/pprof/heap default/main",
		"each-its-own proxy process_cpu 15000 " + cpu + " default/proxy",
		"named proxy mutex 15000 /debug/pprof/mutex default/proxy",
		"profefe main block 6060 /debug/pprof/block fefe",
		"profefe main goroutine 6060 /debug/pprof/goroutine fefe",
		"profefe main memory 6060 /debug/pprof/allocs fefe",
		"profefe main mutex 6060 /debug/pprof/mutex fefe",
		"profefe main process_cpu 6060 " + cpu + " fefe",
		"pyroscope main memory 9090 /debug/pprof/allocs old-style",
		"pyroscope main process_cpu 9090 " + cpu + " old-style",
		"sidecar helper goroutine 7070 /debug/pprof/goroutine default/helper",
		"undeclared main goroutine 6060 /debug/pprof/goroutine default/main",
	}, "\n")
	becomes(t, "the targets", want, p.scraped)
	p.wait("a profile of each", func() string {
		have := map[string]bool{}
		for _, r := range server.Profiles() {
			have[r.Labels["pod"]+" "+r.Labels["container"]+" "+r.Labels["__name__"]+" "+r.Labels["service_name"]] = true
		}
		for _, line := range strings.Split(want, "\n") {
			f := strings.Fields(line)
			if key := f[0] + " " + f[1] + " " + f[2] + " " + f[5]; !have[key] {
				return "none of " + key
			}
		}
		return ""
	})
	for _, r := range server.Profiles() {
		l := r.Labels
		equal(t, "the version, which is the tag of each image", l["version"], "1")
		expect(t, l["pod"] != "declared" || l["service_repository"] == "https://git.example/cart" &&
			l["service_git_ref"] == "v7" && l["service_root_path"] == "cmd/cart" && l["app"] == "shop" && l["namespace"] == "default",
			"labels: %v", l)
	}
	for _, s := range p.scrapes("") {
		expect(t, s.Failures == 0, "%s failed: %s", s.URL, s.LastError)
	}
	// One target for each owner of a port, and no scrape that had to be set aside as a second one.
	equal(t, "targets", p.metrics().sum("profpull_relabel_targets_total", "outcome", "kept"), 8)
	p.stop()
	noneRefused(t, server)
}

// A C++ server with brpc or gperftools is scraped by annotations alone: each of its four profiles arrives,
// with the names of its symbol service, and the sampled ones are asked for with seconds.
func TestAnnotatedBrpc(t *testing.T) {
	t.Parallel()
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	cluster, env := newCluster(t)
	native := &nativeServer{maps: func() string { return oldMaps }, names: map[uint64]string{
		0x55551000: "shop::Cart::add(int)", 0x55551100: "shop::Cart::add(int)", 0x70000100: "memcpy"}}
	pod := kube.Annotated("search", serveNative(t, native), "cpu", "memory", "growth", "contention")
	pod.Annotations["profiles.grafana.com/cpu.path"] = "/pprof/profile"
	pod.Annotations["profiles.grafana.com/memory.path"] = "/pprof/heap"
	cluster.Put(pod)
	config := writeConfig(t, "global: {scrape_interval: 2s}\nsymbols: {wait: 1m}\nwrite: [{url: \""+server.URL()+"\"}]\n")
	p := runWithin(t, env, "--config", config)
	for _, name := range []string{"process_cpu", "memory", "growth", "contention"} {
		r := waitProfiles(t, server, 1, named(name, "shop::Cart::add"))[0]
		equal(t, name+" of the pod", r.Labels["pod"], "search")
	}
	var paths []string
	for _, s := range p.scrapes("") {
		expect(t, s.Failures == 0, "%s failed: %s", s.URL, s.LastError)
		paths = append(paths, s.URL[strings.LastIndex(s.URL, "/pprof/"):])
	}
	sort.Strings(paths)
	equal(t, "paths", strings.Join(paths, " "), "/pprof/contention?seconds=1 /pprof/growth /pprof/heap /pprof/profile?seconds=1")
	p.stop()
	noneRefused(t, server)
}

// `run --write.url URL` is enough in a cluster. The API server keeps finished pods to itself.
func TestNoConfiguration(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, env := newCluster(t)
	cluster.Put(kube.Annotated("a", newTarget(t, target.Options{}).Addr(), "goroutine"))
	p := runWithin(t, env, "--write.url", server.URL())
	p.waitPods("a")
	for _, q := range cluster.Stats().Queries {
		has(t, "the request", q, "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed")
	}
}

// A DaemonSet's program asks for the pods of its node alone, and one that may see only its own
// namespace asks for that.
func TestNodeLocalAndNamespaced(t *testing.T) {
	t.Parallel()
	bin(t)
	for name, env := range map[string][]string{
		"node": {"PROFPULL_POD_FIELDS=spec.nodeName=node-7,status.phase!=Succeeded"}, "example": nil,
		"namespace": {"PROFPULL_OWN_NAMESPACE=true"},
	} {
		name, env := name, env
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, base := newCluster(t)
			for _, pod := range []kube.Pod{{Name: "here", Node: "node-7", Namespace: "profpull"}, {Name: "there", Node: "node-8"}} {
				address := newTarget(t, target.Options{}).Addr()
				annotated := kube.Annotated(pod.Name, address, "goroutine")
				annotated.Node, annotated.Namespace = pod.Node, pod.Namespace
				cluster.Put(annotated)
			}
			args := []string{"--write.url", "http://127.0.0.1:1"}
			if name == "example" {
				text := readFile(t, "../../examples/node-local.yaml")
				args = append(args, "--config", writeConfig(t, string(text)))
				env = []string{"NODE_NAME=node-7"}
			}
			p := runWithin(t, append(base, env...), args...)
			p.waitPods("here")
			for _, q := range cluster.Stats().Queries {
				expect(t, name == "namespace" || strings.Contains(q, "fieldSelector=spec.nodeName%3Dnode-7"),
					"asked without the node: %s", q)
			}
			p.stop()
		})
	}
}

// A pod that claims an address of the machine that profpull runs on is not contacted, and the log
// names it.
func TestSpecialAddressIsRefused(t *testing.T) {
	t.Parallel()
	cluster, env := newCluster(t)
	tg := newTarget(t, target.Options{})
	cluster.Put(kube.Annotated("odd", tg.Addr(), "goroutine"))
	p := runWithin(t, append(env, "PROFPULL_ALLOW_SPECIAL_ADDRESS=false"), "--write.url", "http://127.0.0.1:1")
	p.wait("the refusal", func() string {
		text := p.stderr.String()
		return unless(strings.Contains(text, "is a loopback address") && strings.Contains(text, "pod/default/odd"),
			"%s", text)
	})
	atLeast(t, "label sets counted as refused",
		p.metrics().sum("profpull_relabel_targets_total", "outcome", "refused"), 1)
	p.stop()
	equal(t, "requests", len(tg.Requests()), 0)
}

// explain runs discover --explain in a cluster.
func explain(t *testing.T, code int, env []string, args ...string) result {
	t.Helper()
	cmd := command(t, append([]string{"discover", "--explain"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	r := callCommand(t, cmd, "")
	require(t, r.code == code, "%v: exit code %d, expected %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
	return r
}

// discover --explain --pod says why, and what to do.
func TestExplain(t *testing.T) {
	t.Parallel()
	cluster, env := newCluster(t)
	pod := func(name string, annotations map[string]string) kube.Pod {
		return kube.Pod{Namespace: "shop", Name: name, IP: "10.1.2.3", Annotations: annotations,
			Containers: []kube.Container{container("main", 8080), container("side", 9090)}}
	}
	asks := grafana("cpu.scrape", "true", "cpu.port", "6060")
	pending, done, away := pod("pending", asks), pod("done", asks), pod("away", asks)
	pending.Phase, done.Phase, away.IP = "Pending", "Succeeded", ""
	for _, p := range []kube.Pod{pending, done, away,
		pod("good", grafana("cpu.scrape", "true", "cpu.port", "9090", "service_name", "cart")),
		pod("silent", nil),
		pod("typo", grafana("cpu.scrap", "true", "cpu.port", "6060")),
		pod("capital", grafana("cpu.scrape", "True", "cpu.port", "6060")),
		pod("domain", map[string]string{"pyroscope.grafana.com/cpu.scrape": "true"}),
		pod("portless", grafana("memory.scrape", "true")),
		pod("misnamed", grafana("memory.scrape", "true", "memory.port_name", "http")),
		pod("half", grafana("cpu.scrape", "true", "cpu.port", "http", "memory.scrape", "true", "memory.port", "8080")),
		pod("hushed", map[string]string{"example.com/param_token": "s3cret"}),
		pod("boxed", grafana("cpu.scrape", "true", "cpu.port", "6060", "cpu.container", "side")),
		pod("unboxed", grafana("cpu.scrape", "true", "cpu.port_name", "main-0", "cpu.container", "nope")),
		pod("brpc", grafana("growth.scrape", "true", "growth.port", "8080", "contention.scrap", "true")),
		pod("extra", grafana("cpu.scrape", "true", "cpu.port", "6060", "memroy.scrape", "true")),
	} {
		cluster.Put(p)
	}
	rows := []struct {
		pod   string
		wants []string
	}{
		{"shop/good", []string{"is scraped by job \"annotated-pods\": process_cpu at http://10.1.2.3:9090/debug/pprof/profile?seconds=14", "container side, service_name \"cart\""}},
		{"shop/pending", []string{"is not scraped", "rule 1 (built-in configuration:", "its phase is Pending"}},
		{"shop/done", []string{"exists, and no job watches it", "status.phase!=Succeeded", "is \"Succeeded\""}},
		{"shop/away", []string{"Pod shop/away is not scraped: it exists and has no IP address yet"}},
		{"shop/nobody", []string{"No pod that is watched has the name shop/nobody", "There is none: `kubectl get pods -n shop`"}},
		{"shop/silent", []string{"no annotation of the pod asks for it", "Add profiles.grafana.com/cpu.scrape: \"true\""}},
		{"shop/typo", []string{"The annotation profiles.grafana.com/cpu.scrap has no meaning here; rename it to profiles.grafana.com/cpu.scrape"}},
		{"shop/capital", []string{"The annotation profiles.grafana.com/cpu.scrape has the value \"True\"; only \"true\" counts."}},
		{"shop/domain", []string{"rename it to profiles.grafana.com/cpu.scrape"}},
		{"shop/portless", []string{"The profile type memory is asked for and not scraped", "no annotation names its port", "8080 (\"main-0\", container main), 9090 (\"side-0\", container side)", "add profiles.grafana.com/memory.port"}},
		{"shop/misnamed", []string{"its port is to be the one named \"http\", and no container has declared a port under this name"}},
		{"shop/half", []string{"memory at http://10.1.2.3:8080/debug/pprof/allocs", "process_cpu", "\"http\""}},
		{"shop/extra", []string{"is scraped", "The annotation profiles.grafana.com/memroy.scrape has no meaning here; rename it to profiles.grafana.com/memory.scrape"}},
		{"shop/brpc", []string{"growth at http://10.1.2.3:8080/pprof/growth", "The annotation profiles.grafana.com/contention.scrap has no meaning here; rename it to profiles.grafana.com/contention.scrape"}},
		{"shop/boxed", []string{"process_cpu at http://10.1.2.3:6060/", "container side"}},
		{"shop/unboxed", []string{"The profile type process_cpu is asked for and not scraped: the pod has no container \"nope\" that the rules keep."}},
		{"goo", []string{"Pod shop/good is scraped"}},
		{"shop/*o", []string{"Pod shop/typo is not scraped"}},
	}
	for _, row := range rows {
		r := explain(t, exitDone, env, "--pod", row.pod)
		for _, want := range row.wants {
			expect(t, strings.Contains(r.stdout, want), "%s: %q is missing:\n%s", row.pod, want, r.stdout)
		}
		expect(t, row.pod != "shop/typo" || !strings.Contains(r.stdout, "looks like"),
			"a misspelt annotation is reported twice:\n%s", r.stdout)
		expect(t, r.stderr == "" && strings.HasSuffix(r.stdout, "\n"),
			"%s: stderr %q, stdout %q", row.pod, r.stderr, r.stdout)
	}
	t.Run("summary", func(t *testing.T) {
		r := explain(t, exitDone, env)
		has(t, "stderr", r.stderr,
			"14 pods seen: 5 scraped (5 profile types in all), 9 not, because",
			"5  the annotations do not ask for it: rule 3", "1  the phase is Pending: rule 1")
	})
	t.Run("namespace", func(t *testing.T) {
		config := writeConfig(t, `
scrape_configs:
  - job_name: few
    kubernetes_sd_configs: [{role: pod, namespaces: {names: [a, b]}}]
write: [{url: "http://127.0.0.1:1"}]
`)
		r := explain(t, exitDone, env, "--pod", "shop/good", "--config", config)
		has(t, "stdout", r.stdout, "It watches only the namespaces a, b: add shop to namespaces.names")
	})
	t.Run("secret", func(t *testing.T) {
		config := writeConfig(t, `
scrape_configs:
  - job_name: own
    kubernetes_sd_configs: [{role: pod}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_annotation_example_com_param_token, __meta_kubernetes_pod_name], regex: "x;y", action: keep}
write: [{url: "http://127.0.0.1:1"}]
`)
		r := explain(t, exitDone, env, "--pod", "shop/hushed", "--config", config)
		has(t, "stdout", r.stdout, `(here "<secret>"), __meta_kubernetes_pod_name (here "hushed")`)
		lacks(t, "stdout", r.stdout, "s3cret")
	})
	t.Run("limit", func(t *testing.T) {
		config := writeConfig(t, `
scrape_configs:
  - job_name: limited
    pod_scrape_limit: 5
    kubernetes_sd_configs: [{role: pod}]
write: [{url: "http://127.0.0.1:1"}]
`)
		r := explain(t, exitDone, env, "--pod", "shop/good", "--config", config)
		has(t, "stdout", r.stdout, "1 of its 2 ports was refused: with its 5 scrapes at 10.1.2.3:9090 the pod would have 10, more than the pod_scrape_limit of 5.")
	})
	// Each recommended annotation is one that the rules read.
	t.Run("rules", func(t *testing.T) {
		keep := func(label, more string) string {
			return writeConfig(t, `
scrape_configs:
  - job_name: own
    kubernetes_sd_configs: [{role: pod}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_annotation_`+label+`], regex: "true", action: keep}
`+more+`
write: [{url: "http://127.0.0.1:1"}]
`)
		}
		port := `      - {action: labelmap, regex: __meta_kubernetes_pod_annotation_pyroscope_io_port, replacement: __profile_port__}`
		named := `      - {target_label: __profile_port_name__, replacement: debug}`
		rows := []struct{ config, pod, want, never string }{
			{keep("pyroscope_io_scrape", ""), "shop/silent", `Add pyroscope.io/scrape: "true" to the annotations`, "profiles.grafana.com"},
			{keep("pyroscope_io_scrape", port), "shop/silent", `Add pyroscope.io/scrape: "true" and pyroscope.io/port: "PORT"`, "profiles.grafana.com"},
			{keep("profiles_grafana_com_memory_scrape", ""), "shop/silent", `Add profiles.grafana.com/memory.scrape: "true" to`, "cpu.scrape"},
			{keep("example_com_profile", ""), "shop/silent", `Add example_com_profile: "true" to`, "grafana"},
			{keep("pyroscope_io_scrape", ""), "shop/good", "No rule of the job reads the annotation profiles.grafana.com/cpu.scrape.", "rename"},
			{keep("pyroscope_io_scrape", ""), "shop/typo", `Add pyroscope.io/scrape: "true"`, "rename it to profiles"},
			{keep("profiles_grafana_com_cpu_scrape", named), "shop/good", "set the label __profile_memory_port__ by a rule", "add profiles"},
		}
		for _, row := range rows {
			r := explain(t, exitDone, env, "--pod", row.pod, "--config", row.config)
			has(t, row.pod, r.stdout, row.want)
			lacks(t, row.pod, r.stdout, row.never)
		}
	})
	t.Run("shard", func(t *testing.T) {
		config := writeConfig(t, `
sharding: {mode: static, replicas: 2, index: 1}
write: [{url: "http://127.0.0.1:1"}]
`)
		r := explain(t, exitDone, env, "--pod", "shop/good", "--config", config)
		has(t, "stdout", r.stdout, " With sharding it is scraped by ")
	})
	t.Run("node", func(t *testing.T) {
		r := explain(t, exitDone, append(env, "PROFPULL_POD_FIELDS=spec.nodeName=other"), "--pod", "shop/good")
		has(t, "stdout", r.stdout, "whose spec.nodeName is \"node-1\"")
	})
	t.Run("permission", func(t *testing.T) {
		fault := loop.Fault{Status: 403, Body: `{"kind":"Status","reason":"Forbidden","message":"pods is forbidden"}`,
			Header: http.Header{"Content-Type": {"application/json"}}}
		cluster.ListFaults.Set(&fault)
		cluster.WatchFaults.Set(&fault)
		r := explain(t, exitPeer, env, "--pod", "shop/good")
		has(t, "stdout", r.stdout, "profpull is not allowed to list pods in the whole cluster", "ClusterRole")
		r = explain(t, exitPeer, append(env, "PROFPULL_OWN_NAMESPACE=true"), "--pod", "profpull/x")
		has(t, "stdout", r.stdout, "profpull is not allowed to list pods in the namespace profpull")
	})
	expectCall(t, exitUsage, "", "--pod goes with --explain", "discover", "--pod", "a/b")
}

// A pod is one thing to the rules of ports and to discover --explain, also if labels of its node or its
// namespace are attached: annotations that name a port that no container declares make one scrape of it.
func TestAttachedMetadata(t *testing.T) {
	t.Parallel()
	builtin := expectCall(t, exitDone, "*", "", "check", "--print-default").stdout
	for _, attach := range []string{"", "        attach_metadata: {namespace: true}\n",
		"        attach_metadata: {node: true, namespace: true}\n"} {
		cluster, env := newCluster(t, "PYROSCOPE_URL=http://127.0.0.1:1")
		putObject(t, cluster, "nodes", `{"kind":"Node","metadata":{"name":"node-1"}}`)
		putObject(t, cluster, "namespaces", `{"kind":"Namespace","metadata":{"name":"shop"}}`)
		cluster.Put(kube.Pod{Name: "web", Namespace: "shop", IP: "127.9.9.9", Containers: []kube.Container{container("main", 8080, 9090)},
			Annotations: grafana("memory.scrape", "true", "memory.port", "6061")})
		config := writeConfig(t, strings.Replace(builtin, "      - role: pod\n", "      - role: pod\n"+attach, 1))
		p := runWithin(t, env, "--config", config)
		p.wait("the scrape", func() string {
			got := p.scrapes("")
			return unless(len(got) == 1 && strings.Contains(got[0].URL, "127.9.9.9:6061"), "%q: %v", attach, got)
		})
		p.stop()
		r := explain(t, exitDone, env, "--pod", "shop/web", "--config", config)
		expect(t, strings.Contains(r.stdout, "127.9.9.9:6061"), "%q: %s", attach, r.stdout)
	}
}

// ---- manifests ----------------------------------------------------------------------------------

var (
	manifestArgs = regexp.MustCompile(`(?m)^ +args: \[(.*)\]$`)
	manifestEnv  = regexp.MustCompile(`(?m)^ +- name: (\w+)\n +value: (.+)$`)
	manifestURL  = regexp.MustCompile(`(?m)^ +- url=(\S+)$`)
	patchedEnv   = regexp.MustCompile(`\{name: (\w+), value: "(.*)"\}`)
)

func readManifest(t *testing.T, name string) string {
	t.Helper()
	text := readFile(t, filepath.Join("../../manifests", name))
	return string(text)
}

// The arguments and the environment of each variant start the program, which then asks the API
// server for nothing that its role does not allow.
func TestManifests(t *testing.T) {
	t.Parallel()
	bin(t)
	for _, v := range []struct{ name, workload, kustomization, role, path string }{
		{"deployment", "base/deployment.yaml", "kustomization.yaml", "cluster/clusterrole.yaml", "/api/v1/pods"},
		{"namespaced", "base/deployment.yaml", "namespaced/kustomization.yaml", "namespaced/role.yaml", "/api/v1/namespaces/profpull/pods"},
		{"daemonset", "daemonset/daemonset.yaml", "daemonset/kustomization.yaml", "cluster/clusterrole.yaml", "/api/v1/pods"},
	} {
		v := v
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			server := newPyroscope(t, pyroscope.Options{})
			kustomization := readManifest(t, v.kustomization)
			url := manifestURL.FindStringSubmatch(kustomization)
			require(t, url != nil && strings.HasPrefix(url[1], "http://"), "no URL: %q", url)
			vars := map[string]string{"PYROSCOPE_URL": server.URL(), "NODE_NAME": "node-1"}
			text := readManifest(t, v.workload)
			for _, m := range append(manifestEnv.FindAllStringSubmatch(text, -1), patchedEnv.FindAllStringSubmatch(kustomization, -1)...) {
				vars[m[1]] = m[2]
			}
			// The kubelet replaces $(NAME) by a variable that was defined before.
			expand := func(s string) string {
				for name, value := range vars {
					s = strings.ReplaceAll(s, "$("+name+")", value)
				}
				return s
			}
			var args []string
			for _, a := range strings.Split(manifestArgs.FindStringSubmatch(text)[1], ",") {
				args = append(args, expand(strings.Trim(strings.TrimSpace(a), `"`)))
			}
			cluster, env := newCluster(t)
			for name, value := range vars {
				env = append(env, name+"="+expand(value))
			}
			here := kube.Annotated("here", newTarget(t, target.Options{}).Addr(), "goroutine")
			here.Namespace = "profpull"
			cluster.Put(here)
			require(t, args[0] == "run", "args: %q", args)
			p := runWithin(t, env, args[1:]...)
			p.waitPods("here")
			until(t, "a watch", func() bool { return cluster.Stats().OpenWatches != 0 })
			p.stop()
			for _, path := range cluster.Stats().Paths {
				expect(t, path == v.path, "asked for %s, which %s does not allow", path, v.role)
			}
			atLeast(t, "requests", len(cluster.Stats().Paths), 1)
		})
	}
}

// The file of the variant with several replicas is complete.
func TestShardedManifest(t *testing.T) {
	t.Parallel()
	cmd := command(t, "check", "--config", "../../manifests/sharded/profpull.yaml")
	cmd.Env = append(cmd.Env, "PYROSCOPE_URL=http://pyroscope:4040")
	r := ends(t, callCommand(t, cmd, ""), exitDone, "*", "*")
	has(t, "check", r.stdout+r.stderr, "annotated-pods")
}

// TestKustomize runs if kubectl is installed: each variant builds, has one workload, and no unused name.
func TestKustomize(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl, which has kustomize in it")
	}
	for dir, kind := range map[string]string{".": "Deployment", "namespaced": "Deployment", "daemonset": "DaemonSet", "sharded": "StatefulSet", "complete": "Deployment"} {
		out, err := exec.Command(kubectl, "kustomize", filepath.Join("../../manifests", dir)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", dir, err, out)
			continue
		}
		n := 0
		for _, line := range strings.Split(string(out), "\n") {
			if line == "kind: Deployment" || line == "kind: DaemonSet" || line == "kind: StatefulSet" {
				n++
			}
		}
		expect(t, n == 1 && strings.Contains(string(out), "\nkind: "+kind+"\n"), "%s: %d workloads\n%s", dir, n, out)
		// The ConfigMap's name has a hash, and the container refers to that one.
		expect(t, strings.Count(string(out), "name: profpull-") >= 2,
			"%s: the URL does not reach the container\n%s", dir, out)
	}
}

// Odd values of annotations are taken or refused as docs/annotations.md says, and a refused type leaves the others alone.
func TestOddAnnotations(t *testing.T) {
	t.Parallel()
	cluster, env := newCluster(t)
	for i, c := range []struct{ key, value, want string }{
		{"scheme", "HTTPS", "process_cpu at https://10.1.2.3:6060/debug/pprof/profile"},
		{"scheme", "", "process_cpu at http://10.1.2.3:6060/debug/pprof/profile"},
		{"scheme", "ftp", `expected "http" or "https", got "ftp"`},
		{"path", "x/y", "http://10.1.2.3:6060/x/y?"},
		{"path", "//x", "http://10.1.2.3:6060/x?"},
		{"path", "/a/../b", "http://10.1.2.3:6060/b?"},
		{"path", "//evil.example/x", "http://10.1.2.3:6060/evil.example/x?"},
		{"path", "", "http://10.1.2.3:6060/debug/pprof/profile?"},
		{"path", "x y", "invalid path"},
		{"port", "06060", "http://10.1.2.3:6060/debug/pprof/profile?"},
		{"port", " 6060", "expected a port from 1 to 65535"},
		{"port", "70000", "expected a port from 1 to 65535"},
		{"port", "http", "expected a port from 1 to 65535"},
	} {
		annotations := grafana("cpu.scrape", "true", "cpu.port", "6060", "memory.scrape", "true", "memory.port", "6060")
		annotations["profiles.grafana.com/cpu."+c.key] = c.value
		name := fmt.Sprintf("odd-%d", i)
		cluster.Put(kube.Pod{Namespace: "shop", Name: name, IP: "10.1.2.3", Annotations: annotations, Containers: []kube.Container{container("main", 6060)}})
		text := explain(t, exitDone, env, "--pod", "shop/"+name).stdout
		has(t, "the text", text, c.want, "memory at http://10.1.2.3:6060/debug/pprof/allocs")
	}
}
