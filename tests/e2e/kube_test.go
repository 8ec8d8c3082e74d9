package e2e

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// kubeConfig scrapes the memory profiles of annotated pods.
func kubeConfig(kubeconfig, sink, interval string) string {
	return `
scrape_configs:
  - job_name: pods
    scrape_interval: ` + interval + `
    profiles: {process_cpu: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, goroutine: {enabled: false}}
    kubernetes_sd_configs:
      - role: pod
        kubeconfig_file: "` + kubeconfig + `"
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_phase]
        regex: Pending|Succeeded|Failed
        action: drop
      - source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_memory_scrape]
        regex: "true"
        action: keep
      - source_labels: [__meta_kubernetes_pod_container_port_number]
        target_label: __meta_kubernetes_pod_annotation_profiles_grafana_com_memory_port
        action: keepequal
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {regex: __meta_kubernetes_pod_label_(.+), action: labelmap}
write:
  - {name: main, url: "` + sink + `"}
`
}

// pods lists the pods that the program has as targets.
func (p *program) pods() string {
	p.t.Helper()
	var names []string
	for _, s := range p.scrapes("") {
		names = append(names, s.Labels["pod"])
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func (p *program) waitPods(want string) time.Duration {
	p.t.Helper()
	return becomes(p.t, "the pods "+want, want, p.pods)
}

// Annotated pods become targets, with the labels of the pod, and stop being targets, as they come,
// change and go; pods without the annotation never are. How long that takes is printed.
func TestPodsComeAndGo(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{TLS: true, Token: "token-of-the-test"})
	first, second := newTarget(t, target.Options{}), newTarget(t, target.Options{})
	cluster.Put(kube.Annotated("first", first.Addr(), "memory"))
	bystander := kube.Annotated("bystander", first.Addr())
	cluster.Put(bystander)
	done := kube.Annotated("done", first.Addr(), "memory")
	done.Phase = "Succeeded"
	cluster.Put(done)
	// Two containers, and only one of them has the annotated port.
	double := kube.Annotated("second", second.Addr(), "memory")
	double.Containers = append(double.Containers, kube.Container{Name: "side", Image: "side:1",
		Ports: []kube.Port{{Name: "other", Number: 1}}}, kube.Container{Name: "portless", Image: "p:1"})
	p := run(t, kubeConfig(kubeconfig, server.URL(), "1s"))
	p.waitPods("first")
	waitProfiles(t, server, 1, func(r *pyroscope.Received) bool {
		return r.Labels["pod"] == "first" && r.Labels["namespace"] == "default" && r.Labels["app"] == "first" &&
			r.Labels["service_name"] == "default/main"
	})

	var added, removed, requested []time.Duration
	for i := 0; i < 5; i++ {
		asked, begin := len(second.Requests()), time.Now()
		cluster.Put(double)
		added = append(added, p.waitPods("first second"))
		requested = append(requested, p.wait("the first request", func() string {
			return unless(len(second.Requests()) != asked, "none")
		})+added[i])
		_ = begin
		if i%2 == 0 {
			cluster.Delete("default/second")
		} else {
			off := kube.Annotated("second", second.Addr())
			off.UID = double.UID
			cluster.Put(off)
		}
		removed = append(removed, p.waitPods("first"))
	}
	t.Logf("event to target: %v; to the first request (interval 1s): %v; removal: %v", added, requested, removed)

	// Targets that have gone get no more requests, while the others do.
	asked, arrived := len(second.Requests()), server.Count()
	waitProfiles(t, server, arrived+3, nil)
	n := len(second.Requests())
	expect(t, n <= asked+1, "%d requests to a pod that is gone", n-asked)
	st := cluster.Stats()
	expect(t, st.Lists == 1, "%d lists, expected one", st.Lists)
	p.stop()
	p.keepsSecret("token-of-the-test")
	noneRefused(t, server)
}

// watched is a program that watches a fake cluster, in which the pod "a" has a real target.
type watched struct {
	*program
	cluster *kube.Server
	target  *target.Target
}

func newWatched(t *testing.T, o kube.Options) *watched {
	t.Helper()
	bin(t)
	w := &watched{target: newTarget(t, target.Options{})}
	server := newPyroscope(t, pyroscope.Options{})
	var kubeconfig string
	w.cluster, kubeconfig = newKube(t, o)
	w.put("a")
	w.program = run(t, kubeConfig(kubeconfig, server.URL(), "1s"))
	w.waitPods("a")
	w.watching()
	return w
}

// put adds pods; those other than "a" have addresses where nobody answers.
func (w *watched) put(names ...string) {
	for _, name := range names {
		pod := kube.Annotated(name, w.target.Addr(), "memory")
		if name != "a" {
			pod.IP = loop.Host()
		}
		w.cluster.Put(pod)
	}
}

func (w *watched) watching() {
	w.t.Helper()
	becomes(w.t, "one open watch", 1, func() int { return w.cluster.Stats().OpenWatches })
}

// after does something and waits until count, a number that only grows, has grown.
func (w *watched) after(what string, count func(kube.Stats) int, do func()) {
	w.t.Helper()
	before := count(w.cluster.Stats())
	do()
	until(w.t, what, func() bool { return count(w.cluster.Stats()) != before })
}

func refused(s kube.Stats) int { return s.Refused }
func watches(s kube.Stats) int { return s.Watches }

func (w *watched) lists(want int) {
	w.t.Helper()
	equal(w.t, "lists", w.cluster.Stats().Lists, want)
}

// A watch that is cut within an object continues after the last whole one, without a new list.
func TestWatchCut(t *testing.T) {
	t.Parallel()
	w := newWatched(t, kube.Options{})
	w.cluster.CutNextEvent()
	w.put("b")
	w.waitPods("a b")
	w.watching()
	w.put("c")
	w.waitPods("a b c")
	w.lists(1)
}

// A watch that ends is opened again at the last bookmark, although all that lies before it has been
// forgotten by the server; there is no new list.
func TestWatchBookmark(t *testing.T) {
	t.Parallel()
	w := newWatched(t, kube.Options{})
	w.cluster.Advance(50)
	w.after("the bookmark", func(s kube.Stats) int { return s.Bookmarks }, w.cluster.Bookmark)
	w.cluster.Compact()
	w.after("a new watch", watches, w.cluster.EndWatches)
	w.put("b")
	w.waitPods("a b")
	w.lists(1)
}

// 429 with Retry-After on a watch: the same place again, after that time, and no new list.
func TestWatchTooMany(t *testing.T) {
	t.Parallel()
	w := newWatched(t, kube.Options{})
	w.put("b") // a watch that ends without an event would count as an error
	w.waitPods("a b")
	before := w.cluster.Stats().Watches
	w.cluster.WatchFaults.Set(&loop.Fault{Status: 429, Header: http.Header{"Retry-After": {"3"}}, Times: 1})
	begin := time.Now() // before the answer, which the test may see late
	w.after("429", refused, w.cluster.EndWatches)
	w.put("c")
	w.waitPods("a b c")
	atLeast(t, "the time until the watch was back, in spite of Retry-After: 3", time.Since(begin), 2900*time.Millisecond)
	equal(t, "attempts to watch", w.cluster.Stats().Watches-before, 2)
	w.lists(1)
}

// While the API server is away targets are scraped on; when it is back the watch goes on where it
// was, without a new list.
func TestWatchServerAway(t *testing.T) {
	t.Parallel()
	w := newWatched(t, kube.Options{})
	w.cluster.Down()
	before := w.scrape(w.target.Addr()).Successes
	reaches(t, "scrapes without an API server", before+3, func() int64 { return w.scrape(w.target.Addr()).Successes })
	w.put("b")
	must(t, w.cluster.Up())
	w.waitPods("a b")
	w.lists(1)
}

// TestWatchExpired checks that changes during a pause of a watch, which the server has forgotten (410,
// as a status or as an event), are found by exactly one new list: pods that went are gone, and targets
// that have not changed are left alone.
func TestWatchExpired(t *testing.T) {
	t.Parallel()
	for _, asStatus := range []bool{false, true} {
		asStatus := asStatus
		t.Run(fmt.Sprintf("410 as status %v", asStatus), func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, kube.Options{GoneAsStatus: asStatus})
			w.put("b")
			w.waitPods("a b")
			since := w.scrape(w.target.Addr())
			w.cluster.WatchFaults.Set(&loop.Fault{Status: 503})
			w.after("a watch that is refused", refused, w.cluster.AbortWatches)
			w.cluster.Delete("default/b")
			w.put("c")
			w.cluster.Compact()
			w.cluster.WatchFaults.Set(nil)
			w.waitPods("a c")
			w.lists(2)
			now := w.scrape(w.target.Addr())
			expect(t, now.Successes >= since.Successes && now.Failures == since.Failures,
				"the target that did not change started over: %+v, before %+v", now, since)
			w.stop()
		})
	}
}

// 410 as an ERROR event within a watch leads to one new list; an event of a kind that nobody knows
// and one that is no pod cost nothing.
func TestWatchEvents(t *testing.T) {
	t.Parallel()
	w := newWatched(t, kube.Options{})
	w.put("b")
	w.waitPods("a b")
	w.cluster.WatchEvent("SURPRISE", `{"kind":"Table","rows":[]}`)
	w.cluster.WatchEvent("ADDED", `{"kind":"Pod","metadata":null}`)
	w.put("c")
	w.waitPods("a b c")
	w.lists(1)
	w.after("a new list", func(s kube.Stats) int { return s.Lists }, func() {
		w.cluster.WatchError(http.StatusGone, "Expired", "too old resource version")
	})
	w.cluster.Delete("default/b")
	w.waitPods("a c")
	w.lists(2)
}

// A list gives every pod, as gzip; if it breaks off because it is too large, it is read in pages, and when a
// page has expired, again.
func TestManyPods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expired, listMax int
		json             bool
	}{{0, 0, false}, {0, 800 << 10, true}, {1, 500 << 10, false}} {
		expired := c.expired
		listMax, json := c.listMax, c.json
		t.Run(fmt.Sprintf("%d expired pages, at most %d KiB", expired, listMax>>10), func(t *testing.T) {
			t.Parallel()
			bin(t)
			cluster, kubeconfig := newKube(t, kube.Options{ExpirePages: expired, NoStreams: 422, ListMax: listMax, JSON: json})
			const n = 1200
			for i := 0; i < n; i++ {
				pod := kube.Annotated(fmt.Sprintf("pod-%d", i), fmt.Sprintf("10.0.%d.%d:6060", i/250, i%250+1), "memory")
				cluster.Put(pod)
			}
			p := run(t, kubeConfig(kubeconfig, "http://"+loop.Host()+":4040", "24h"))
			count := func(want int) func() string {
				return func() string {
					got := len(p.scrapes(""))
					return unless(got == want, "%v", got)
				}
			}
			took := p.wait("all pods", count(n))
			for i := 0; i < n/2; i++ {
				cluster.Delete(fmt.Sprintf("default/pod-%d", i))
			}
			gone := p.wait("half of the pods to go", count(n/2))
			t.Logf("%d pods: listed within %v, half removed within %v, RSS %d KiB", n, took, gone, p.rss()>>10)
			st := cluster.Stats()
			expect(t, listMax != 0 || st.Lists == 1 && st.Gzipped == 1, "%d lists, %d as gzip", st.Lists, st.Gzipped)
			expect(t, expired != 0 || listMax == 0 || st.Lists == 2 && st.Pages == 4,
				"%d lists in %d answers; the whole one, and three pages, are four", st.Lists, st.Pages)
			p.answers("/-/ready", 200)
			p.stop()
		})
	}
}

// Selectors and namespaces of the configuration go to the API server, for the list and the watch.
func TestSelectors(t *testing.T) {
	t.Parallel()
	cluster, kubeconfig := newKube(t, kube.Options{})
	config := strings.Replace(kubeConfig(kubeconfig, "http://"+loop.Host()+":4040", "24h"), "      - role: pod\n", `      - role: pod
        namespaces: {names: [shop, bank]}
        selectors: [{role: pod, label: "tier in (front, back),app!=hidden", field: "spec.nodeName=node-1"}]
`, 1)
	put := func(namespace, name, tier, node string) {
		pod := kube.Annotated(name, loop.Host()+":6060", "memory")
		pod.Namespace, pod.Labels["tier"], pod.Node = namespace, tier, node
		cluster.Put(pod)
	}
	put("shop", "cart", "front", "node-1")
	put("bank", "till", "back", "node-1")
	put("shop", "hidden", "front", "node-1")
	put("shop", "far", "front", "node-2")
	put("other", "cart", "front", "node-1")
	p := run(t, config)
	p.waitPods("cart till")
	put("shop", "late", "back", "node-1")
	put("shop", "cart", "none", "node-1") // leaves the selector
	p.waitPods("late till")
	for _, q := range cluster.Stats().Queries {
		has(t, "the request", q, "labelSelector=", "fieldSelector=")
	}
}

// A pod cannot send us elsewhere: neither its annotations nor a rule that copies one into the
// address change the host that is contacted.
func TestPodCannotAimElsewhere(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	victim, honest := newTarget(t, target.Options{}), newTarget(t, target.Options{})
	evil := kube.Annotated("evil", loop.Host()+":6060", "memory")
	evil.Annotations["address"] = victim.Addr()
	cluster.Put(evil)
	good := kube.Annotated("good", honest.Addr(), "memory")
	good.Annotations["address"] = honest.Addr()
	cluster.Put(good)
	config := strings.Replace(kubeConfig(kubeconfig, server.URL(), "500ms"), "write:\n", `      - {source_labels: [__meta_kubernetes_pod_annotation_address], regex: (.+), target_label: __address__}
write:
`, 1)
	p := run(t, config)
	waitProfiles(t, server, 3, nil)
	equal(t, "targets", p.pods(), "good")
	p.stop()
	equal(t, "requests to an address that only an annotation named", len(victim.Requests()), 0)
	p.says("evil")
}

// Until discovery has read its sources, /-/ready says so; scraping of what is known goes on.
func TestReady(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	cluster.ListFaults.Set(&loop.Fault{Status: 503})
	static := newTarget(t, target.Options{})
	config := strings.Replace(kubeConfig(kubeconfig, server.URL(), "500ms"), "write:\n", `  - job_name: static
    scrape_interval: 500ms
    profiles: `+snapshotsOnly+`
    static_configs:
`+staticTargets("static", static)+"write:\n", 1)
	p := run(t, config)
	waitProfiles(t, server, 4, nil)
	if status, text := p.get("/-/ready"); status != 503 ||
		!strings.HasPrefix(text, "discovery has not read every source yet: job \"") || !strings.Contains(text, "\": pods in the whole cluster not read yet") {
		t.Errorf("/-/ready before the first list: %d %q", status, text)
	}
	cluster.ListFaults.Set(nil)
	p.wait("ready", func() string {
		status, text := p.get("/-/ready")
		return unless(status == 200, "%s", text)
	})
}
