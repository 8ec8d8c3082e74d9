package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// pushUntil pushes profiles of a client until one arrives with these labels, as describeLabels has them.
func pushUntil(t *testing.T, s *pyroscope.Server, base, client, want string) {
	t.Helper()
	wait(t, client, func() string {
		before := len(s.Profiles())
		if status, text := post(t, base+"/ingest?name=a{client="+client+"}", "", cpuProfile()); status != 200 {
			return fmt.Sprintf("%d %s", status, text)
		}
		wait(t, "the profile", func() string {
			return unless(len(s.Profiles()) != before, "has not arrived")
		})
		all := s.Profiles()
		got := describeLabels(all[len(all)-1].Labels)
		return unless(got == want, "%s", got)
	})
}

func own(client, more string) string {
	return fmt.Sprintf(`__delta__="false" __name__="process_cpu" client="%s"%s pyroscope_spy="unknown" service_name="a"`, client, more)
}

// A received profile gets the labels of the target that matches: of a list that changes, after the rules of
// enrich and before those of receive, also with other settings after a reload. Nothing is scraped.
func TestReceivedProfilesAreEnriched(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	listen := loop.Host() + ":4040"
	list := filepath.Join(t.TempDir(), "targets.json")
	write := func(team string) {
		text := fmt.Sprintf(`[{"targets": ["10.0.0.1:1"], "labels": {"__meta_ip": "10.0.0.1", "team": %q, "zone": "z"}}]`, team)
		must(t, os.WriteFile(list+".new", []byte(text), 0o644))
		must(t, os.Rename(list+".new", list))
	}
	config := func(more string) string {
		return fmt.Sprintf(`
receive:
  listen: %q
  enrich:
    target_match_label: ip
    profiles_match_label: client
    file_sd_configs: [{files: [%q], refresh_interval: 1s}]
    relabel_configs: [{source_labels: [__meta_ip], target_label: ip}]%s
  profile_relabel_configs: [{source_labels: [team], regex: (.+), target_label: owner}]
scrape_configs: []
write: [{url: %q}]
`, listen, list, more, s.URL())
	}
	write("red")
	p := run(t, config(""))
	base := "http://" + listen
	pushUntil(t, s, base, "10.0.0.1", `__delta__="false" __name__="process_cpu" client="10.0.0.1" ip="10.0.0.1" owner="red" `+
		`pyroscope_spy="unknown" service_name="a" team="red" zone="z"`)
	pushUntil(t, s, base, "10.0.0.2", own("10.0.0.2", ""))
	write("blue")
	pushUntil(t, s, base, "10.0.0.1", `__delta__="false" __name__="process_cpu" client="10.0.0.1" ip="10.0.0.1" owner="blue" `+
		`pyroscope_spy="unknown" service_name="a" team="blue" zone="z"`)
	equal(t, "targets", p.targetLines(), "")
	m := p.metrics()
	expect(t, m.sum("profpull_receive_enriched_total", "result", "unmatched") != 0 && m.sum("profpull_receive_enrich_targets") == 1,
		"the metrics do not count targets and profiles")
	must(t, os.WriteFile(p.config, []byte(config("\n    labels_to_copy: [zone]")), 0o644))
	pushUntil(t, s, base, "10.0.0.1", `__delta__="false" __name__="process_cpu" client="10.0.0.1" `+
		`pyroscope_spy="unknown" service_name="a" zone="z"`)
}

// A file of Alloy with pyroscope.enrich runs as it is, and as the YAML that it is converted to.
func TestAlloyEnrich(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	cluster.Put(kube.Pod{Name: "cart", IP: "10.1.2.3", Labels: map[string]string{"app": "cart"},
		Containers: []kube.Container{{Name: "main", Ports: []kube.Port{{Name: "http", Number: 1}}}}})
	host := loop.Host()
	text := fmt.Sprintf(`
discovery.kubernetes "pods" {
  role = "pod"
  kubeconfig_file = %q
}
pyroscope.receive_http "in" {
  http {
    listen_address = %q
    listen_port = 4040
  }
  forward_to = [pyroscope.enrich.pods.receiver]
}
pyroscope.enrich "pods" {
  targets = discovery.kubernetes.pods.targets
  target_match_label = "__meta_kubernetes_pod_ip"
  profiles_match_label = "client"
  labels_to_copy = ["__meta_kubernetes_pod_name"]
  forward_to = [pyroscope.relabel.name.receiver]
}
pyroscope.relabel "name" {
  forward_to = [pyroscope.write.out.receiver]
  rule {
    source_labels = ["__meta_kubernetes_pod_name"]
    regex = "(.+)"
    target_label = "pod"
  }
}
pyroscope.write "out" {
  endpoint {
    url = %q
  }
}
`, kubeconfig, host, s.URL())
	file := alloyFile(t, t.TempDir(), "config.alloy", text)
	for _, one := range []string{file, converted(t, nil, file)} {
		p := runFile(t, nil, one)
		pushUntil(t, s, "http://"+host+":4040", "10.1.2.3", `__delta__="false" __name__="process_cpu" client="10.1.2.3" pod="cart" `+
			`pyroscope_spy="unknown" service_name="a"`)
		pushUntil(t, s, "http://"+host+":4040", "10.1.2.4", own("10.1.2.4", ""))
		p.stop()
	}
}

// An eBPF profiler knows the container and the node of its samples, not their names: discovery does.
func TestOtlpIsEnriched(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	cluster.Put(kube.Pod{Name: "cart", UID: "u-1", IP: "10.1.2.3", Labels: map[string]string{"team": "red"},
		Containers: []kube.Container{{Name: "main", Ports: []kube.Port{{Name: "http", Number: 1}}}}})
	listen := loop.Host() + ":4318"
	run(t, fmt.Sprintf(`
receive:
  listen: %q
  enrich:
    kubernetes_sd_configs: [{role: pod, kubeconfig_file: %q}]
    relabel_configs:
    - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
    - {source_labels: [__meta_kubernetes_pod_label_team], target_label: team}
    - {action: labeldrop, regex: __meta_.*}
scrape_configs: []
write: [{url: %q}]
`, listen, kubeconfig, s.URL()))
	request := func(attributes string) string {
		return fmt.Sprintf(`{"resourceProfiles": [{"resource": {"attributes": [%s]}, "scopeProfiles": [{"profiles": [
			{"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": [{"values": ["1"]}]}]}]}], "dictionary": {"stringTable": ["", "cpu", "nanoseconds"]}}`, attributes)
	}
	attribute := func(key, value string) string {
		return fmt.Sprintf(`{"key": %q, "value": {"stringValue": %q}}`, key, value)
	}
	for _, c := range []struct{ attributes, labels string }{
		{attribute("container.id", "main"), "container.id:main pod:cart service_name:unknown_service team:red"},
		{attribute("k8s.pod.uid", "u-1"), "k8s.pod.uid:u-1 pod:cart service_name:unknown_service team:red"},
		// The pods of a node are not what runs on the host.
		{attribute("host.name", "node-1"), "host.name:node-1 service_name:unknown_service"},
	} {
		c := c
		wait(t, "the labels "+c.labels, func() string {
			n := len(s.Profiles())
			if status, text := post(t, "http://"+listen+"/v1development/profiles", "application/json",
				[]byte(request(c.attributes))); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
			got := ""
			wait(t, "the profile", func() string {
				all := s.Profiles()
				if len(all) == n {
					return "nothing came"
				}
				got = fmt.Sprint(all[len(all)-1].Labels)
				return ""
			})
			want := "map[__delta__:false __name__:process_cpu " + c.labels + "]"
			return unless(got == want, "%s", got)
		})
	}
}
