package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// ---- many targets that know who asks ------------------------------------------------------------

// visit is one scrape of a target. Replicas give their name as the user of basic_auth, which changes
// nothing of a scrape's identity and phase.
type visit struct {
	replica    string
	start, end time.Time // end is zero while it runs
	whole      bool      // it was answered to the end
}

// farm is one HTTP server on many addresses, each a target.
type farm struct {
	addrs []string
	http  *http.Server
	body  []byte

	mu       sync.Mutex
	visits   map[string][]*visit // by address
	active   map[string]int
	overlaps []string
}

func newFarm(t *testing.T, n int) *farm {
	t.Helper()
	f := &farm{
		body:   pprof.Gzip(pprof.Make("cpu", pprof.Options{Functions: 3})),
		visits: map[string][]*visit{}, active: map[string]int{},
	}
	f.http = &http.Server{Handler: f}
	for i := 0; i < n; i++ {
		ln, err := net.Listen("tcp", loop.Host()+":0")
		must(t, err)
		f.addrs = append(f.addrs, ln.Addr().String())
		go func() { _ = f.http.Serve(ln) }()
	}
	t.Cleanup(func() { _ = f.http.Close() })
	return f
}

func (f *farm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addr := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	replica, _, _ := r.BasicAuth()
	v := &visit{replica: replica, start: time.Now()}
	f.mu.Lock()
	if f.active[addr] > 0 {
		last := f.visits[addr][len(f.visits[addr])-1]
		f.overlaps = append(f.overlaps, fmt.Sprintf("%s: %s, while %s asks", addr, v.replica, last.replica))
	}
	f.active[addr]++
	f.visits[addr] = append(f.visits[addr], v)
	f.mu.Unlock()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("seconds"))
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		_, err := w.Write(f.body)
		f.end(addr, v, err == nil)
	case <-r.Context().Done():
		f.end(addr, v, false)
	}
}

func (f *farm) end(addr string, v *visit, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active[addr]--
	v.end, v.whole = time.Now(), whole
}

// visited counts the scrapes of all targets.
func (f *farm) visited() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, all := range f.visits {
		n += len(all)
	}
	return n
}

// checkOverlaps fails if one target was ever asked by two at the same time.
func (f *farm) checkOverlaps(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.overlaps) > 0 {
		t.Errorf("%d scrapes overlapped, the first: %s", len(f.overlaps), f.overlaps[0])
	}
}

// ---- replicas and their Service -----------------------------------------------------------------

// late is a way to a server on which every answer takes longer by a time.
func late(t *testing.T, to string, by time.Duration) string {
	t.Helper()
	ln, err := net.Listen("tcp", loop.Host()+":0")
	must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	type piece struct {
		data []byte
		due  time.Time
	}
	serve := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		pieces := make(chan piece, 4096)
		go func() {
			defer close(pieces)
			for {
				buf := make([]byte, 64<<10)
				n, err := server.Read(buf)
				pieces <- piece{buf[:n], time.Now().Add(by)}
				if err != nil {
					return
				}
			}
		}()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := client.Write(p.data); err != nil {
				_ = server.Close()
			}
		}
	}
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(client)
		}
	}()
	return ln.Addr().String()
}

// fleet is a set of replicas and what stands for the controller of their EndpointSlices.
type fleet struct {
	t          *testing.T
	cluster    *kube.Server
	kubeconfig string
	late       string // address at which the API server answers late, and the replica that asks there
	lateFor    string
	config     func(name string) string
	replicas   map[string]*program
}

// kubeconfigOf is where a replica finds the API server.
func (f *fleet) kubeconfigOf(name string) string {
	f.t.Helper()
	if name != f.lateFor {
		return f.kubeconfig
	}
	text := readFile(f.t, f.kubeconfig)
	file := filepath.Join(f.t.TempDir(), "late")
	text = []byte(strings.ReplaceAll(string(text), f.cluster.Addr(), f.late))
	must(f.t, os.WriteFile(file, text, 0o600))
	return file
}

func (f *fleet) start(name string) {
	f.t.Helper()
	f.replicas[name] = run(f.t, f.config(name))
}

// ready waits until the replicas say that they are.
func (f *fleet) ready(names ...string) {
	f.t.Helper()
	for _, name := range names {
		p := f.replicas[name]
		p.wait(name+" to be ready", func() string {
			status, text := p.get("/-/ready")
			return unless(status == 200, "%s", text)
		})
	}
}

// endpoints writes the slice of the Service; a name with "!" in front is not ready.
func (f *fleet) endpoints(names ...string) {
	f.t.Helper()
	list := []any{}
	for _, name := range names {
		ready := !strings.HasPrefix(name, "!")
		name = strings.TrimPrefix(name, "!")
		list = append(list, map[string]any{"addresses": []string{"10.255.0.1"},
			"conditions": map[string]any{"ready": ready, "serving": ready, "terminating": false},
			"targetRef":  map[string]any{"kind": "Pod", "name": name, "namespace": "monitoring"}})
	}
	text, err := json.Marshal(map[string]any{"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
		"metadata": map[string]any{"name": "profpull-abcde", "namespace": "monitoring",
			"labels": map[string]string{"kubernetes.io/service-name": "profpull"}},
		"addressType": "IPv4", "endpoints": list, "ports": []any{map[string]any{"port": 4041}}})
	must(f.t, err)
	putObject(f.t, f.cluster, "endpointslices", string(text))
}

// owned is what a replica has as targets, by address.
func (f *fleet) owned(name string) map[string]bool {
	f.t.Helper()
	all := map[string]bool{}
	for _, s := range f.replicas[name].scrapes("") {
		all[s.Labels["instance"]] = true
	}
	return all
}

// shares waits until the replicas have all n targets among them, each once and each some, and returns
// who has what.
func (f *fleet) shares(n int, names ...string) map[string]map[string]bool {
	f.t.Helper()
	var all map[string]map[string]bool
	wait(f.t, fmt.Sprintf("%d targets at %v", n, names), func() string {
		all = map[string]map[string]bool{}
		sum, seen := 0, map[string]bool{}
		for _, name := range names {
			all[name] = f.owned(name)
			sum += len(all[name])
			if len(all[name]) == 0 {
				return name + " has none" // it has not heard yet, or waits
			}
			for addr := range all[name] {
				seen[addr] = true
			}
		}
		return unless(sum == n && len(seen) == n, "%d at all, %d different ones", sum, len(seen))
	})
	return all
}

// contains is "" if all of part is in whole.
func contains(whole, part map[string]bool) string {
	missing := []string{}
	for addr := range part {
		if !whole[addr] {
			missing = append(missing, addr)
		}
	}
	sort.Strings(missing)
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%d are missing: %s ...", len(missing), missing[0])
}

func (p *program) moved(direction string) float64 {
	p.t.Helper()
	return p.metrics().sum("profpull_sharding_moved_targets_total", "direction", direction)
}

// newFleet makes a cluster with the targets of a farm as pods.
func newFleet(t *testing.T, f *farm, interval, seconds, handover string) *fleet {
	t.Helper()
	fl := &fleet{t: t, replicas: map[string]*program{}}
	fl.cluster, fl.kubeconfig = newKube(t, kube.Options{})
	for i, addr := range f.addrs {
		fl.cluster.Put(kube.Annotated(fmt.Sprintf("pod-%d", i), addr, "cpu"))
	}
	// Takes every profile and keeps none.
	sink := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/proto")
	})
	fl.config = func(name string) string {
		kubeconfig := fl.kubeconfigOf(name)
		return `
sharding:
  {mode: kubernetes, service: profpull, namespace: monitoring, pod_name: ` + name + `, handover: ` + handover + `,
   kubeconfig_file: "` + kubeconfig + `"}
scrape_configs:
  - job_name: pods
    scrape_interval: ` + interval + `
    basic_auth: {username: ` + name + `, password: x}
    profiles:
      process_cpu: {seconds: ` + seconds + `}
      memory: {enabled: false}
      mutex: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
    kubernetes_sd_configs: [{role: pod, kubeconfig_file: "` + kubeconfig + `"}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_scrape], regex: "true", action: keep}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
` + writeTo(sink)
	}
	fl.endpoints()
	return fl
}

// Three replicas share 300 targets: nothing before they are members, each target once, only those of
// a replica that is killed move and they come back with it; one that is alive but not ready any more
// lets go before the others begin. No target is ever asked by two at the same time, although p-1 hears
// of everything later than the others.
func TestReplicasShareTargets(t *testing.T) {
	t.Parallel()
	const n = 300
	targets := newFarm(t, n)
	handover := "1500ms" // far longer than anybody needs to hear of a change
	if instrumented(t) {
		handover = "10s"
	}
	f := newFleet(t, targets, "2s", "1s", handover)
	f.late, f.lateFor = late(t, f.cluster.Addr(), 400*time.Millisecond), "p-1"
	all := []string{"p-0", "p-1", "p-2"}
	for _, name := range all {
		f.start(name)
	}
	f.ready(all...)
	equal(t, "scrapes by replicas that are no members", targets.visited(), 0)
	f.endpoints(all...)
	before := f.shares(n, all...)
	for _, name := range all {
		if got := len(before[name]); got < n/3-n/10 || got > n/3+n/10 {
			t.Errorf("%s has %d of %d targets", name, got, n)
		}
	}
	wait(t, "scrapes of every target", func() string {
		targets.mu.Lock()
		defer targets.mu.Unlock()
		got := len(targets.visits)
		return unless(got >= n, "%v", got)
	})

	killed := f.replicas["p-2"]
	_ = killed.cmd.Process.Kill()
	<-killed.done
	f.endpoints("p-0", "p-1")
	after := f.shares(n, "p-0", "p-1")
	gained := 0.0
	for _, name := range []string{"p-0", "p-1"} {
		missing := contains(after[name], before[name])
		expect(t, missing == "", "%s lost some of its own when p-2 died: %s", name, missing)
		p := f.replicas[name]
		gained += p.moved("gained")
		lost := p.moved("lost")
		expect(t, lost == 0, "%s lost %v targets", name, lost)
		m := p.metrics()
		expect(t, m.sum("profpull_sharding_members") == 2 &&
			m.sum("profpull_sharding_targets", "owner", "self") == float64(len(after[name])) &&
			m.sum("profpull_sharding_targets", "owner", "other") == float64(n-len(after[name])),
			"%s: unexpected metrics", name)
	}
	// Each its own in the beginning, and now those of p-2.
	equal(t, "targets gained by p-0 and p-1", gained, n)

	f.start("p-2")
	f.ready("p-2")
	f.endpoints(all...)
	again := f.shares(n, all...)
	for _, name := range all {
		missing := contains(again[name], before[name])
		expect(t, missing == "", "%s has not got back what it had: %s", name, missing)
	}

	f.endpoints("p-0", "!p-1", "p-2")
	f.shares(n, "p-0", "p-2")
	equal(t, "targets of p-1, which is not ready", len(f.owned("p-1")), 0)
	f.replicas["p-1"].answers("/-/ready", 200)
	// Without an API server all goes on as it was, and so it does when the Service has nobody left.
	f.endpoints()
	wait(t, "a word about the endpoints that are gone", func() string {
		return unless(strings.Contains(f.replicas["p-0"].stderr.String(), "keeping the last members"),
			"nothing is said")
	})
	f.cluster.Down()
	seen := targets.visited()
	reaches(t, "scrapes without an API server", seen+n, func() int { return targets.visited() })
	f.shares(n, "p-0", "p-2")
	for _, p := range f.replicas {
		p.stop()
	}
	targets.checkOverlaps(t)
}

// A configuration that is loaded while replicas share the targets changes nothing of who has which:
// also those of the others are known by the new rules when they are taken over.
func TestReloadWhileSharing(t *testing.T) {
	t.Parallel()
	const n = 40
	targets := newFarm(t, n)
	handover := "1500ms"
	if instrumented(t) {
		handover = "10s"
	}
	f := newFleet(t, targets, "2s", "1s", handover)
	both := []string{"p-0", "p-1"}
	for _, name := range both {
		f.start(name)
	}
	f.ready(both...)
	f.endpoints(both...)
	before := f.shares(n, both...)
	load := func(name, old, with string, want int) string {
		t.Helper()
		p := f.replicas[name]
		replaceFile(t, p.config, allowLoopback(strings.Replace(f.config(name), old, with, 1)))
		status, text := p.reload()
		require(t, status == want, "%s: %d %s", name, status, text)
		return text
	}
	// versions waits until all that a replica has is made by the new rules.
	versions := func(name string, least int, version string) {
		t.Helper()
		p := f.replicas[name]
		p.wait("the new rules at "+name, func() string {
			scrapes := p.scrapes("")
			for _, s := range scrapes {
				if s.Labels["version"] != version {
					return fmt.Sprintf("%s has %q", s.URL, s.Labels["version"])
				}
			}
			return unless(len(scrapes) >= least, "%d of %d", len(scrapes), least)
		})
	}
	for _, name := range both {
		load(name, "target_label: pod}", "target_label: pod}\n      - {target_label: version, replacement: two}", http.StatusOK)
	}
	after := map[string]map[string]bool{}
	for _, name := range both {
		versions(name, len(before[name]), "two")
		after[name] = f.owned(name)
		more, less := contains(before[name], after[name]), contains(after[name], before[name])
		expect(t, more+less == "", "%s has other targets than before: %s%s", name, more, less)
	}
	seen := targets.visited()
	reaches(t, "scrapes after the change", seen+2*n, func() int { return targets.visited() })
	for _, name := range both {
		for _, s := range f.replicas[name].scrapes("") {
			expect(t, s.Failures == 0, "%s: %d failures, the last one: %s", s.URL, s.Failures, s.LastError)
		}
	}
	text := load("p-0", "service: profpull", "service: other", http.StatusInternalServerError)
	expect(t, strings.Contains(text, "sharding: cannot change"), "another Service: %s", text)

	f.replicas["p-1"].stop()
	f.endpoints("p-0")
	f.shares(n, "p-0")
	versions("p-0", n, "two")
	f.replicas["p-0"].stop()
	targets.checkOverlaps(t)
}

// Who shares the targets is not known: nothing is scraped, not even what the configuration lists, and
// the replica is not ready; then it is. A replica that has been cut off from the API server for longer
// than isolation_timeout scrapes nothing until it is back.
func TestSharingWaitsForMembers(t *testing.T) {
	t.Parallel()
	targets := newFarm(t, 3)
	f := newFleet(t, targets, "2s", "1s", "1s")
	config := f.config
	f.config = func(name string) string {
		return strings.Replace(strings.Replace(config(name), "handover: 1s", "handover: 1s, isolation_timeout: 2s", 1),
			"    kubernetes_sd_configs:",
			"    static_configs: [{targets: [\""+strings.Join(targets.addrs, `", "`)+"\"]}]\n    kubernetes_sd_configs:", 1)
	}
	f.cluster.ListFaults.Set(&loop.Fault{Status: 403})
	f.start("p-0")
	p := f.replicas["p-0"]
	p.says("endpointslices in the namespace")
	status, _ := p.get("/-/ready")
	expect(t, status == 503 && len(p.scrapes("")) == 0,
		"/-/ready: %d, %d targets before the members are known", status, len(p.scrapes("")))
	f.cluster.ListFaults.Set(nil)
	f.ready("p-0")
	f.endpoints("p-0")
	f.shares(3, "p-0")

	f.cluster.Down()
	becomes(t, "the replica to give up", 0, func() int { return len(p.scrapes("")) })
	p.says("cut off from the API server")
	must(t, f.cluster.Up())
	f.shares(3, "p-0")
	p.stop()
	targets.checkOverlaps(t)
}

// discovered runs `profpull discover` and returns the owner of each target that it prints.
func discovered(t *testing.T, config string, args ...string) (map[string]string, result) {
	t.Helper()
	r := call(t, "", append([]string{"discover", "--config", writeConfig(t, config)}, args...)...)
	owners := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		var found struct {
			Labels       map[string]string
			Owner, Shard string
		}
		if line == "" {
			continue
		}
		err := json.Unmarshal([]byte(line), &found)
		require(t, err == nil, "%v: %s", err, line)
		owners[found.Labels["instance"]] = found.Owner
		expect(t, len(args) == 0 || strings.Contains(found.Shard, found.Owner), "nobody says who scrapes it: %s", line)
	}
	return owners, r
}

// `discover` shows what the replica would scrape, with --explain the rest as well, and all of it to
// one that is no replica.
func TestDiscoverShare(t *testing.T) {
	t.Parallel()
	var addrs []string
	for i := 1; i <= 60; i++ {
		addrs = append(addrs, fmt.Sprintf(`"10.0.0.%d:6060"`, i))
	}
	owner := map[string]string{}
	for i := 0; i < 3; i++ {
		mine, r := discovered(t, fmt.Sprintf(`
sharding: {mode: static, replicas: 3, index: profpull-%d}
scrape_configs: [{job_name: a, static_configs: [{targets: [%s]}]}]
write: [{url: "http://127.0.0.1:1"}]
`, i, strings.Join(addrs, ", ")))
		require(t, r.code == 0, "exit code %d: %s", r.code, r.stderr)
		for addr, who := range mine {
			expect(t, owner[addr] == "" && who == fmt.Sprintf("replica-%d", i),
				"%s belongs to %q and to %q", addr, owner[addr], who)
			owner[addr] = who
		}
	}
	expect(t, len(owner) == len(addrs), "%d of %d targets have an owner", len(owner), len(addrs))

	f := newFleet(t, &farm{addrs: []string{"127.9.0.1:1", "127.9.0.2:1", "127.9.0.3:1", "127.9.0.4:1",
		"127.9.0.5:1", "127.9.0.6:1"}}, "1d", "1s", "1s")
	f.endpoints("p-0", "p-1")
	sum := 0
	for _, name := range []string{"p-0", "p-1"} {
		mine, _ := discovered(t, f.config(name))
		sum += len(mine)
		every, _ := discovered(t, f.config(name), "--explain")
		expect(t, len(every) == 6, "--explain shows %d of 6 targets", len(every))
		for addr, who := range mine {
			expect(t, who == name && every[addr] == name,
				"%s is shown as a target of %s, but belongs to %s", addr, name, who)
		}
	}
	outside, r := discovered(t, f.config("p-9"))
	expect(t, sum == 6 && len(outside) == 6 && strings.Contains(r.stderr, "p-9, which is not a member"),
		"%d and %d of 6 targets: %s", sum, len(outside), r.stderr)
}

// ---- the long form ------------------------------------------------------------------------------

// gaps are the longest times of one target: from the start of a whole scrape to the start of the next,
// and without any scrape that runs (one that is cut off runs until then).
func (f *farm) gaps(from, until time.Time) (whole, idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	longest := func(a *time.Duration, d time.Duration) {
		if d > *a {
			*a = d
		}
	}
	for _, addr := range f.addrs {
		start, end := from, from
		for _, v := range f.visits[addr] {
			longest(&idle, v.start.Sub(end))
			end = v.end
			if v.whole {
				longest(&whole, v.start.Sub(start))
				start = v.start
			}
		}
		longest(&whole, until.Sub(start))
		if !end.IsZero() {
			longest(&idle, until.Sub(end))
		}
	}
	return whole, idle
}

// Three replicas share 3,000 targets for five minutes, sampling nearly all the time; one is killed and
// comes back, one is ended with SIGTERM and comes back.
func TestReplicasShareManyTargets(t *testing.T) {
	if os.Getenv("E2E_LONG") != "1" {
		t.Skip("takes five minutes: E2E_LONG=1")
	}
	const n = 3000
	targets := newFarm(t, n)
	f := newFleet(t, targets, "15s", "10s", "5s")
	all := []string{"p-0", "p-1", "p-2"}
	for _, name := range all {
		f.start(name)
	}
	f.ready(all...)
	f.endpoints(all...)
	before := f.shares(n, all...)
	for _, name := range all {
		got := len(before[name])
		t.Logf("%s: %d of %d targets (%+.1f %%), RSS %d KiB", name, got, n, float64(got*300)/n-100,
			f.replicas[name].rss()>>10)
		expect(t, got >= 900 && got <= 1100, "%s has %d of %d targets: not within 10 %% of even", name, got, n)
	}
	begin := time.Now()
	at := func(s int) { time.Sleep(time.Until(begin.Add(time.Duration(s) * time.Second))) }
	others := []string{"p-0", "p-1"}

	at(45)
	_ = f.replicas["p-2"].cmd.Process.Kill()
	<-f.replicas["p-2"].done
	at(47) // the kubelet and the controller take their time
	f.endpoints(others...)
	after := f.shares(n, others...)
	t.Logf("taken over %v after the kill", time.Since(begin)-45*time.Second)
	for _, name := range others {
		missing := contains(after[name], before[name])
		expect(t, missing == "", "%s lost some of its own: %s", name, missing)
		t.Logf("%s: %d targets, gained %d, lost %v", name, len(after[name]), len(after[name])-len(before[name]),
			f.replicas[name].moved("lost"))
	}
	at(110)
	f.start("p-2")
	f.ready("p-2")
	f.endpoints(all...)
	f.shares(n, all...)

	at(180)
	f.replicas["p-0"].stop()
	f.endpoints("p-1", "p-2")
	f.shares(n, "p-1", "p-2")
	at(230)
	f.start("p-0")
	f.ready("p-0")
	f.endpoints(all...)
	f.shares(n, all...)

	at(300)
	whole, idle := targets.gaps(begin, time.Now())
	for _, name := range all {
		f.replicas[name].stop()
	}
	t.Logf("%d scrapes in five minutes; longest time of a target without a running scrape %v, from the start of "+
		"one whole scrape to the next %v; overlaps %d", targets.visited(), idle, whole, len(targets.overlaps))
	expect(t, idle <= 30*time.Second, "a target was missing for %v", idle)
	targets.checkOverlaps(t)
}
