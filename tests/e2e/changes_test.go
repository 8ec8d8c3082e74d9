package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

type changesAnswer struct {
	State, Summary, Flamegraph string
	Base, New                  struct {
		Version             string
		Instances, Profiles int
	}
	Ratio     float64
	Functions []struct {
		Name    string
		Changed bool
		Self    struct {
			Changed                       bool
			Effect, EffectLow, EffectHigh float64
		}
	}
}

// buildRollout builds a version of tests/tools/rollout.
func buildRollout(t *testing.T, steps string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rollout")
	cmd := exec.Command(goTool(), "build", "-o", file, "-ldflags", "-X main.priceSteps="+steps, ".")
	cmd.Dir = "../tools/rollout"
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// deploy starts three instances of a build, and puts a pod for each into the cluster. It returns
// what takes the pods away again.
func deploy(t *testing.T, cluster *kube.Server, service, version, file string) func() {
	t.Helper()
	var pods, addresses []string
	for i := 0; i < 3; i++ {
		address := loop.Host() + ":6061"
		cmd := exec.Command(file, "-listen", address)
		// A preempted loop would count as a call of the runtime.
		cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
		startProgram(t, cmd)
		wait(t, address, func() string {
			resp, err := http.Get("http://" + address + "/debug/pprof/cmdline")
			if err != nil {
				return err.Error()
			}
			resp.Body.Close()
			return ""
		})
		pod := kube.Annotated(fmt.Sprintf("%s-%s-%d", service, version, i), address, "cpu")
		pod.Labels["app"] = service
		pod.Labels["app.kubernetes.io/version"] = version
		cluster.Put(pod)
		pods = append(pods, "default/"+pod.Name)
		addresses = append(addresses, address)
	}
	return func() {
		for _, pod := range pods {
			cluster.Delete(pod)
		}
		for _, address := range addresses {
			if resp, err := http.Get("http://" + address + "/quit"); err == nil {
				resp.Body.Close()
			}
		}
	}
}

func changesConfig(kubeconfig, dir string) string {
	return `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: pods
    profiles: {memory: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, goroutine: {enabled: false}}
    kubernetes_sd_configs:
      - {role: pod, kubeconfig_file: "` + kubeconfig + `"}
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {source_labels: [__meta_kubernetes_pod_label_app], target_label: service_name}
      - {regex: __meta_kubernetes_pod_label_(.+), action: labelmap}
write:
  - {name: local, url: "store://` + dir + `", store: {stretch: 1m, merge: 10s}}
`
}

// A Deployment is rolled from one build of a Go program to one with a slower function: the API, the
// command and the page name this function first, with a link to the flame graph that shows it. A
// second one is rolled to an equal build: nothing has changed.
func TestRolloutToASlowerBuild(t *testing.T) {
	t.Parallel()
	bin(t)
	fast, slow := buildRollout(t, "20000"), buildRollout(t, "80000")
	cluster, kubeconfig := newKube(t, kube.Options{})
	p := run(t, changesConfig(kubeconfig, t.TempDir()))
	ask := func(service string) (changesAnswer, string) {
		status, text := p.get("/api/v1/changes?service=" + service)
		var a changesAnswer
		if status != 200 || json.Unmarshal([]byte(text), &a) != nil {
			return a, fmt.Sprintf("%d: %s", status, text)
		}
		return a, a.State + ": " + a.Summary
	}
	// sampled waits until the CPU profiles of a service have so many samples in all.
	sampled := func(service, version string, samples int) {
		for n := 25; n <= samples; n += 25 {
			p.wait(fmt.Sprintf("%d samples of %s %s", n, service, version), func() string {
				var top struct{ Total float64 }
				_, text := p.get("/api/v1/top?from=now-1h&type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&service=" + service +
					"&labels=" + url.QueryEscape(`{app_kubernetes_io_version="`+version+`"}`))
				if err := json.Unmarshal([]byte(text), &top); err != nil || top.Total < float64(n)*1e7 {
					return text
				}
				return ""
			})
		}
	}
	const enough = 300
	before := deploy(t, cluster, "cart", "1.0", fast)
	beforeSame := deploy(t, cluster, "same", "1.0", fast)
	for _, service := range []string{"cart", "same"} {
		sampled(service, "1.0", enough)
		a, said := ask(service)
		expect(t, a.State == "one_version", "before the rollout: %s", said)
	}
	before()
	beforeSame()
	deploy(t, cluster, "cart", "1.1", slow)
	deploy(t, cluster, "same", "1.1", fast)

	sampled("cart", "1.1", enough)
	sampled("same", "1.1", enough)

	var found changesAnswer
	p.wait("the slower function", func() string {
		a, said := ask("cart")
		if a.State != "changed" || len(a.Functions) == 0 || a.Functions[0].Name != "main.price" {
			return said
		}
		found = a
		return ""
	})
	first := found.Functions[0]
	expect(t, first.Self.Changed && first.Self.EffectLow > 0 && found.Base.Version == "1.0" && found.New.Version == "1.1" && found.Ratio >= 1.1,
		"%+v", found)
	p.wait("the rollout without a change", func() string {
		a, said := ask("same")
		return unless(a.State == "unchanged", "%s", said)
	})

	r := call(t, "", "query", "changes", "--url", p.admin, "--service", "cart", "--fail-above", "5%")
	lines := strings.Split(r.stdout, "\n")
	named := ""
	for _, line := range lines {
		if strings.HasPrefix(line, "*") && named == "" {
			named = line
		}
	}
	expect(t, r.code == 4 && strings.HasSuffix(named, " self  main.price") && strings.Contains(r.stdout, p.admin+"/profiles?compare=1&service=cart"),
		"exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	p.wait("the command about the rollout without a change", func() string {
		r := call(t, "", "query", "changes", "--url", p.admin, "--service", "same", "--fail-above", "5%")
		return unless(r.code == 0 && strings.Contains(r.stdout, "No change: "), "exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	})
	r = expectCall(t, 0, "cart: 1.0 -> 1.1", "*", "query", "changes", "--url", p.admin)
	has(t, "changes", r.stdout, "same: 1.0 -> 1.1")

	status, page := p.get("/changes?service=cart")
	_, table, _ := strings.Cut(page, "<tbody>")
	expect(t, status == 200 && strings.HasPrefix(table, "\n<tr><th scope=\"row\" class=\"service\">main.price") && strings.Contains(page, `id="flame" href="profiles?compare=1&amp;service=cart`),
		"%d:\n%s", status, page)
	target, err := url.Parse(p.admin + found.Flamegraph)
	must(t, err)
	resp, err := http.Get(target.String())
	must(t, err)
	defer resp.Body.Close()
	flame, _ := io.ReadAll(resp.Body)
	expect(t, resp.StatusCode == 200 && strings.Contains(string(flame), "main.price") && strings.Contains(string(flame), `<svg class="flame"`),
		"%s: %s\n%s", target, resp.Status, flame)
}

// The page of changes in a browser: light and dark, wide and narrow, with long names and markup.
func TestChangesPage(t *testing.T) {
	t.Parallel()
	receive := loop.Host() + ":4040"
	p := run(t, `
receive: {listen: "`+receive+`", allow_unauthenticated: true}
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	const hostile = `<img src=x onerror=alert(1)>`
	long := strings.Repeat("N", 2000)
	end := time.Now().Truncate(time.Minute)
	for i := 0; i < 10; i++ {
		at := end.Add(time.Duration(i-10) * time.Minute)
		made := pprof.Make("cpu", pprof.Options{Time: at, Duration: 10 * time.Second})
		for _, service := range []string{"cart", hostile, long} {
			for _, pod := range []string{"a", "b"} {
				version := fmt.Sprintf("v%d", 1+i/5) + strings.Repeat("0", len(service)/20)
				pushAt(t, "http://"+receive, map[string]string{"__name__": "process_cpu", "service_name": service,
					"pod": pod + version, "version": version}, made)
			}
		}
	}
	p.wait("the services", func() string {
		_, page := p.get("/changes")
		return unless(strings.Count(page, "<th scope=\"row\"") == 3, "%s", page)
	})
	b := newBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1400, 400} {
			b.look(width, 1000, scheme)
			for path, ready := range map[string]string{
				"/changes":              `document.querySelectorAll("table.overview tbody tr").length === 3`,
				"/changes?service=cart": `document.querySelector("#verdict[data-state=unchanged]") !== null && document.querySelectorAll("svg.effect").length > 0`,
				"/changes?service=" + url.QueryEscape(hostile): `document.querySelector("#verdict") !== null`,
				"/changes?service=" + long:                     `document.querySelector("#verdict") !== null`,
			} {
				b.open(p.admin+path, ready)
				atMost(t, path+": the width of the page", b.eval("document.documentElement.scrollWidth").(float64), float64(width))
				equal(t, "elements that came from names", b.eval(`document.querySelectorAll("img").length`).(float64), 0)
				if path == "/changes?service=cart" {
					b.shoot(fmt.Sprintf("changes-%d-%s", width, scheme))
				}
			}
		}
	}
	b.sound()
}
