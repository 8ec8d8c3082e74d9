package e2e

import (
	"fmt"
	"testing"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// sampledConfig samples annotated pods for half of the time, so that a restart of a scrape would
// mostly be seen as a request that was given up.
func sampledConfig(kubeconfig, sink string) string {
	return `
scrape_configs:
  - job_name: pods
    scrape_interval: 2s
    profiles:
      process_cpu: {seconds: 1s}
      memory: {enabled: false}
      mutex: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: false}
    kubernetes_sd_configs:
      - role: pod
        kubeconfig_file: "` + kubeconfig + `"
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_scrape]
        regex: "true"
        action: keep
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {regex: __meta_kubernetes_pod_label_(.+), action: labelmap}
write:
  - {name: main, url: "` + sink + `"}
`
}

// crowd is a program that samples many pods.
type crowd struct {
	*program
	cluster *kube.Server
	server  *pyroscope.Server
	pods    []kube.Pod
	targets []*target.Target
}

func newCrowd(t *testing.T, n int) *crowd {
	t.Helper()
	bin(t)
	c := &crowd{server: newPyroscope(t, pyroscope.Options{})}
	cluster, kubeconfig := newKube(t, kube.Options{})
	c.cluster = cluster
	for i := 0; i < n; i++ {
		c.targets = append(c.targets, newTarget(t, target.Options{}))
		c.pods = append(c.pods, kube.Annotated(fmt.Sprintf("pod-%03d", i), c.targets[i].Addr(), "cpu"))
		cluster.Put(c.pods[i])
	}
	c.program = run(t, sampledConfig(kubeconfig, c.server.URL()))
	c.waitTargets(n)
	c.waitAsked(0, n, make([]int, n))
	return c
}

func (c *crowd) waitTargets(n int) {
	c.t.Helper()
	c.wait(fmt.Sprint(n, " targets"), func() string {
		if got := c.metrics().sum("profpull_targets"); got != float64(n) {
			return fmt.Sprint("there are ", got)
		}
		return ""
	})
}

// asked is how many requests each target has seen.
func (c *crowd) asked() []int {
	all := make([]int, len(c.targets))
	for i, target := range c.targets {
		all[i] = len(target.Requests())
	}
	return all
}

// waitAsked waits until each target of [from, to) has answered one more request than it had seen.
func (c *crowd) waitAsked(from, to int, before []int) {
	c.t.Helper()
	c.wait("another scrape of each", func() string {
		for i := from; i < to; i++ {
			done := 0
			for _, r := range c.targets[i].Requests() {
				if r.Status != 0 && !r.End.IsZero() {
					done++
				}
			}
			if done < before[i]+1 {
				return fmt.Sprintf("%s has answered %d, had seen %d", c.pods[i].Name, done, before[i])
			}
		}
		return ""
	})
}

// undisturbed checks that no scrape of the targets of [from, to) was given up, doubled or refused.
func (c *crowd) undisturbed(from, to int) {
	c.t.Helper()
	for i := from; i < to; i++ {
		for _, r := range c.targets[i].Requests() {
			expect(c.t, !r.Canceled, "%s: a scrape was given up", c.pods[i].Name)
		}
		equal(c.t, c.pods[i].Name+": overlaps", c.targets[i].Overlaps(), 0)
	}
	equal(c.t, "failed scrapes", c.metrics().sum("profpull_scrape_failures_total"), 0)
}

// Seven tenths of the pods are missing in a new list: they are not scraped any more, and no scrape of
// the others is given up, fails or comes twice.
func TestMostPodsVanishAtOnce(t *testing.T) {
	t.Parallel()
	const all, left = 100, 30
	c := newCrowd(t, all)
	c.cluster.Down()
	for _, pod := range c.pods[left:] {
		c.cluster.Delete("default/" + pod.Name)
	}
	c.cluster.Compact() // the watch cannot go on: it is a list that says what is gone
	must(t, c.cluster.Up())
	c.waitTargets(left)
	gone := c.asked()
	c.waitAsked(0, left, gone)
	c.undisturbed(0, left)
	for i, n := range c.asked() {
		// One request may have been under way to the target when the targets were counted.
		expect(t, i < left || n <= gone[i]+1, "%s is gone and was asked %d times more", c.pods[i].Name, n-gone[i])
	}
	m := c.metrics()
	expect(t, m.sum("profpull_discovery_groups", "kind", "kubernetes") == left && m.sum("profpull_scrapes") == left,
		"%v groups and %v scrapes are left, expected %d", m.sum("profpull_discovery_groups", "kind", "kubernetes"), m.sum("profpull_scrapes"), left)
	c.stop()
	noneRefused(t, c.server)
}

// A thousand updates of pods that change nothing that a rule reads (new versions, conditions, an
// annotation) cause no work after discovery: nothing is relabelled and no scrape disturbed. A change
// of one label is reported for that pod alone, and its scrape goes on.
func TestIrrelevantUpdates(t *testing.T) {
	t.Parallel()
	const n, rounds = 50, 20
	c := newCrowd(t, n)
	const relabelled, events = "profpull_relabel_targets_total", "profpull_discovery_events_total"
	before, asked := c.metrics(), c.asked()
	for round := 0; round < rounds; round++ {
		for i := range c.pods {
			pod := c.pods[i]
			pod.NotReady = round%2 == 0
			pod.Annotations = map[string]string{"heartbeat": fmt.Sprint(round)}
			for k, v := range c.pods[i].Annotations {
				pod.Annotations[k] = v
			}
			c.cluster.Put(pod)
		}
	}
	becomes(t, "the updates to be read", n*rounds,
		func() float64 {
			return c.metrics().sum(events, "event", "unchanged") - before.sum(events, "event", "unchanged")
		})
	equal(t, "label sets that went through the rules again", c.metrics().sum(relabelled)-before.sum(relabelled), 0)
	c.waitAsked(0, n, asked)
	c.undisturbed(0, n)

	changed := c.pods[7]
	changed.Labels = map[string]string{"app": "renamed"}
	c.cluster.Put(changed)
	becomes(t, "the new label", "renamed", func() string { return c.scrape(c.targets[7].Addr()).Labels["app"] })
	equal(t, "label sets that went through the rules for one changed pod",
		c.metrics().sum(relabelled)-before.sum(relabelled), 1)
	c.waitAsked(0, n, c.asked())
	c.undisturbed(0, n)
	c.stop()
	noneRefused(t, c.server)
}
