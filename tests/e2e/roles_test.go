package e2e

import (
	"fmt"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

func putObject(t *testing.T, cluster *kube.Server, resource, text string) {
	t.Helper()
	if err := cluster.PutObject(resource, text); err != nil {
		t.Fatalf("%s: %v", resource, err)
	}
}

// A slice becomes targets with the labels of its service, its pods and their nodes, in one job that
// also has the pods of the same cluster. A change of what is joined changes the labels.
func TestSlicesAreJoined(t *testing.T) {
	t.Parallel()
	bin(t)
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{TLS: true, Token: "token-of-the-test"})
	only := newTarget(t, target.Options{})
	pod := kube.Annotated("web-1", only.Addr(), "memory")
	cluster.Put(pod)
	port := only.Addr()[strings.LastIndexByte(only.Addr(), ':')+1:]
	node := func(zone string) {
		putObject(t, cluster, "nodes", `{"kind":"Node","metadata":{"name":"node-1","labels":{"zone":"`+zone+`"}}}`)
	}
	node("a")
	service := func(team string) {
		putObject(t, cluster, "services", `{"kind":"Service","metadata":{"name":"web","namespace":"default",
			"labels":{"team":"`+team+`"}},"spec":{"type":"ClusterIP","ports":[{"port":80}]}}`)
	}
	service("red")
	putObject(t, cluster, "namespaces", `{"kind":"Namespace","metadata":{"name":"default","labels":{"env":"test"}}}`)
	putObject(t, cluster, "endpointslices", `{"kind":"EndpointSlice","metadata":{"name":"web-x","namespace":"default",
		"labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4",
		"endpoints":[{"addresses":["`+pod.IP+`"],"nodeName":"node-1","targetRef":{"kind":"Pod","name":"web-1"}}],
		"ports":[{"name":"http","port":`+port+`}]}`)
	p := run(t, `
scrape_configs:
  - job_name: slices
    scrape_interval: 1s
`+memoryOnly+`
    kubernetes_sd_configs:
      - {role: endpointslice, kubeconfig_file: "`+kubeconfig+`", attach_metadata: {node: true, namespace: true}}
    relabel_configs:
      - {source_labels: [__meta_kubernetes_service_label_team], target_label: team}
      - {source_labels: [__meta_kubernetes_node_label_zone], target_label: zone}
      - {source_labels: [__meta_kubernetes_namespace_label_env], target_label: env}
      - {source_labels: [__meta_kubernetes_pod_label_app], target_label: app}
      - {source_labels: [__meta_kubernetes_pod_container_name], target_label: container}
  - job_name: pods
    scrape_interval: 1d
    kubernetes_sd_configs:
      - {role: pod, kubeconfig_file: "`+kubeconfig+`"}
    relabel_configs:
      - {source_labels: [__address__], action: drop}
write:
  - {name: main, url: "`+server.URL()+`"}
`)
	waitLabels := func(want string) {
		t.Helper()
		p.wait(want, func() string {
			for _, s := range p.scrapes("") {
				l := s.Labels
				got := fmt.Sprint(l["team"], l["zone"], " ", l["env"], " ", l["app"], " ", l["container"])
				if l["team"] != "" && got == want {
					return ""
				}
			}
			return fmt.Sprint("there are: ", p.scrapes(""))
		})
	}
	waitLabels("reda test web-1 main")
	waitProfiles(t, server, 1, func(r *pyroscope.Received) bool { return r.Labels["team"] == "red" })
	service("blue")
	waitLabels("bluea test web-1 main")
	node("b")
	waitLabels("blueb test web-1 main")
	if st := cluster.Stats(); st.Lists != 5 {
		t.Errorf("%d lists; pods, nodes, namespaces, services and slices are five", st.Lists)
	}
	cluster.Delete("endpointslices/default/web-x")
	p.wait("no slice", func() string {
		for _, s := range p.scrapes("") {
			if s.Labels["team"] != "" {
				return "it is there"
			}
		}
		return ""
	})
	p.stop()
}
