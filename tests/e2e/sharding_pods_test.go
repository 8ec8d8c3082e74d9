package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
)

// podLists is the number of lists of pods that were requested, streamed or in pages, and did not fail.
func podLists(cluster *kube.Server) int {
	n := 0
	stats := cluster.Stats()
	for i, query := range stats.Queries {
		isList := strings.Contains(query, "sendInitialEvents=true") || !strings.Contains(query, "watch=1")
		if stats.Paths[i] == "/api/v1/pods" && isList && !strings.Contains(query, "continue=") {
			n++
		}
	}
	return n
}

// A replica alone with the endpoints of a Service: what becomes its own costs one list of pods for all
// jobs, what it loses none, what the API server does not list yet comes when it does, and a job whose
// targets may be aimed elsewhere knows all of them at any time.
func TestGainCostsOneList(t *testing.T) {
	t.Parallel()
	const n = 60
	targets := newFarm(t, n)
	f := newFleet(t, targets, "1d", "1s", "1s")
	config := f.config
	f.config = func(name string) string {
		return strings.Replace(config(name), "write:", `  - job_name: foreign
    scrape_interval: 1d
    allow_foreign_address: true
    profiles:
      process_cpu: {enabled: false}
      memory: {enabled: false}
      mutex: {enabled: false}
      block: {enabled: false}
    kubernetes_sd_configs: [{role: pod, kubeconfig_file: "`+f.kubeconfigOf(name)+`"}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_scrape], regex: "true", action: keep}
write:`, 1)
	}
	f.endpoints("p-0", "p-1")
	f.start("p-0")
	p := f.replicas["p-0"]
	// The share of both jobs is the same.
	has := func(what string, ok func(mine int) bool) int {
		mine := 0
		p.waitMetrics(what, func(m metrics) string {
			mine = len(f.owned("p-0"))
			self, other := m.sum("profpull_sharding_targets", "owner", "self"), m.sum("profpull_sharding_targets", "owner", "other")
			return unless(ok(mine) && self == float64(2*mine) && other == float64(2*(n-mine)) && m.sum("profpull_sharding_awaited_pods") == 0,
				"%d targets; known: %v own, %v of others", mine, self, other)
		})
		return mine
	}
	lists := func(want int, when string) {
		t.Helper()
		equal(t, when+": lists of pods", podLists(f.cluster), want)
	}
	all := func(mine int) bool { return mine == n }
	half := func(mine int) bool { return mine > n/5 && mine < 4*n/5 }
	share := has("its share", half)
	first := podLists(f.cluster)
	relabelled := func() float64 { return p.metrics().sum("profpull_relabel_targets_total", "job", "pods") }
	sorted := relabelled()
	expect(t, sorted == float64(share), "%v label sets went through the rules, expected those of %d pods", sorted, share)

	f.endpoints("p-0")
	has("everything", all)
	lists(first+1, "after a gain")
	f.endpoints("p-0", "p-1")
	got := has("its share again", half)
	expect(t, got == share, "a share of %d, at first %d", got, share)
	lists(first+1, "after a loss")
	f.cluster.Put(kube.Annotated("pod-0", targets.addrs[0], "cpu", "memory")) // the change of one pod is sent to one replica
	time.Sleep(300 * time.Millisecond)
	has("its share still", half)

	f.cluster.ListFaults.Set(&loop.Fault{Status: 500})
	f.endpoints("p-0")
	p.wait("a word about pods that are not listed", func() string {
		if awaited := p.metrics().sum("profpull_sharding_awaited_pods"); awaited != float64(n-share) {
			return fmt.Sprintf("%v pods are awaited", awaited)
		}
		return unless(strings.Contains(p.stderr.String(), "have not been listed yet"), "nothing is said")
	})
	gained := p.moved("gained")
	f.cluster.ListFaults.Set(nil)
	has("everything, late", all)
	late := p.moved("gained") - gained
	expect(t, late == float64(n-share), "%v targets were gained late, expected %d", late, n-share)
	p.says("the pods of this replica have been listed")
	equal(t, "lists because of gains", p.metrics().sum("profpull_discovery_relists_total", "reason", "gained"), 2)
}
