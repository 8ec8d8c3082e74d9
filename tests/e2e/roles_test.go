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
	err := cluster.PutObject(resource, text)
	require(t, err == nil, "%s: %v", resource, err)
}

// TestForbiddenNamespace forbids one of two namespaces: the other one has its targets and the program is
// ready, in every role that reads namespaces. /-/ready says what is missing. When it is allowed, it joins.
func TestForbiddenNamespace(t *testing.T) {
	t.Parallel()
	bin(t)
	for _, c := range []struct{ name, role, attach, missing string }{
		{"pod", "pod", "", "pods"},
		{"joined pod", "pod", ", attach_metadata: {node: true, namespace: true}", "pods"},
		{"endpoints", "endpoints", "", "services"},
		{"slice", "endpointslice", ", attach_metadata: {node: true, namespace: true}", "endpointslices"},
		{"service", "service", "", "services"},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster, kubeconfig := newKube(t, kube.Options{})
			putObject(t, cluster, "nodes", `{"kind":"Node","metadata":{"name":"node-1"}}`)
			for i, namespace := range []string{"shop", "billing"} {
				ip := fmt.Sprint("127.9.0.", i+1)
				pod := kube.Annotated("web-1", ip+":9", "memory")
				pod.Namespace = namespace
				cluster.Put(pod)
				meta := `"metadata":{"name":"web","namespace":"` + namespace + `","labels":{"kubernetes.io/service-name":"web"}}`
				putObject(t, cluster, "namespaces", `{"kind":"Namespace","metadata":{"name":"`+namespace+`"}}`)
				putObject(t, cluster, "services", `{"kind":"Service",`+meta+`,"spec":{"ports":[{"port":9}]}}`)
				putObject(t, cluster, "endpoints", `{"kind":"Endpoints",`+meta+`,"subsets":[{"addresses":[{"ip":"`+ip+`"}],"ports":[{"port":9}]}]}`)
				putObject(t, cluster, "endpointslices", `{"kind":"EndpointSlice",`+meta+`,"addressType":"IPv4",
					"endpoints":[{"addresses":["`+ip+`"]}],"ports":[{"port":9}]}`)
			}
			cluster.Forbid(c.missing, "billing", 403)
			p := run(t, `
scrape_configs:
  - job_name: all
    scrape_interval: 1d
`+memoryOnly+`
    kubernetes_sd_configs:
      - {role: `+c.role+`, kubeconfig_file: "`+kubeconfig+`", namespaces: {names: [billing, shop]}`+c.attach+`}
    relabel_configs:
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
write:
  - {name: main, url: "http://127.0.0.1:1"}
`)
			has := func(want string) func() string {
				return func() string {
					seen := map[string]bool{}
					for _, s := range p.scrapes("") {
						seen[s.Labels["namespace"]] = true
					}
					got := fmt.Sprint(seen["billing"], seen["shop"])
					return unless(got == want, "%s", got)
				}
			}
			p.wait("the namespace that is allowed", has("false true"))
			p.wait("ready", func() string {
				status, text := p.get("/-/ready")
				if status != 200 || !strings.Contains(text, "not allowed to list "+c.missing+" in namespace billing (a Role needs the verbs list and watch on "+c.missing) {
					return fmt.Sprint(status, text)
				}
				return ""
			})
			equal(t, "unread lists", p.metrics().sum("profpull_discovery_unread_lists", "reason", "refused"), 1)
			expectCall(t, exitPeer, `"namespace":"shop"`,
				"not everything could be read: job \"all\": not allowed to list "+c.missing+" in namespace billing",
				"discover", "--config", p.config)
			cluster.Forbid(c.missing, "billing", 0)
			p.wait("both namespaces", has("true true"))
			p.wait("nothing missing", func() string {
				if status, text := p.get("/-/ready"); status != 200 || text != "ok\n" {
					return fmt.Sprint(status, text)
				}
				return ""
			})
			p.stop()
		})
	}
}

// A slice becomes targets with the labels of its service, its pods and their nodes, in one job that
// also has the pods of the same cluster. A change of what is joined changes the labels.
func TestSlicesAreJoined(t *testing.T) {
	t.Parallel()
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
`+writeTo(server))
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
	st := cluster.Stats()
	expect(t, st.Lists == 5, "%d lists; pods, nodes, namespaces, services and slices are five", st.Lists)
	cluster.Delete("endpointslices/default/web-x")
	p.wait("no slice", func() string {
		for _, s := range p.scrapes("") {
			if s.Labels["team"] != "" {
				return "it is there"
			}
		}
		return ""
	})
}
