package e2e

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/kube"
)

// everyRole discovers objects of every role, with all labels that there are.
func everyRole(kubeconfig string) string {
	text := "scrape_configs:\n"
	for _, role := range []string{"pod", "service", "endpoints", "endpointslice", "node", "ingress"} {
		attach := ""
		if role != "node" && role != "service" && role != "ingress" {
			attach = ", attach_metadata: {node: true, namespace: true}"
		}
		text += `  - job_name: ` + role + `
    kubernetes_sd_configs: [{role: ` + role + `, kubeconfig_file: "` + kubeconfig + `"` + attach + `}]
    relabel_configs: [{regex: __meta_kubernetes_(.+), action: labelmap}]
`
	}
	return text + `write: [{name: main, url: "http://127.0.0.1:1"}]` + "\n"
}

// fill puts the objects that Kubernetes' own code has written, and a pod that all of them refer to.
func fill(t *testing.T, cluster *kube.Server) {
	t.Helper()
	for resource, file := range map[string]string{"services": "service", "endpoints": "endpoints", "nodes": "node",
		"endpointslices": "endpointslice", "ingresses": "ingress", "namespaces": "namespace"} {
		text := readFile(t, "../unit/data/kubernetes/"+file+".json")
		putObject(t, cluster, resource, string(text))
	}
	pod := kube.Annotated("cart-1", "10.2.0.9:8080", "cpu")
	pod.Namespace, pod.Controller, pod.Labels = "shop", "cart", map[string]string{"tier": "bäck"}
	pod.InitContainers = []kube.Container{{Name: "sidecar", Image: "side:1", RestartPolicy: "Always",
		Ports: []kube.Port{{Number: 9090}}}}
	cluster.Put(pod)
}

// An API server that speaks protobuf, one that answers in JSON, and one that refuses who asks for
// anything else lead to the same targets with the same labels, in every role.
func TestKubernetesEncodings(t *testing.T) {
	t.Parallel()
	bin(t)
	var want string
	for _, o := range []kube.Options{{}, {JSON: true}, {JSON: true, NotAcceptable: true}, {NoStreams: 422},
		{NoStreams: 422, JSON: true, NotAcceptable: true}} {
		cluster, kubeconfig := newKube(t, o)
		fill(t, cluster)
		r := expectCall(t, exitDone, "*", "*", "discover", "--config", writeConfig(t, everyRole(kubeconfig)))
		jobs := map[string]int{}
		var lines []string
		for _, f := range discoverLines(t, r.stdout) {
			jobs[f.Job]++
			text, _ := json.Marshal(f.Labels) // which of two scrapes is the duplicate depends on the order
			lines = append(lines, f.Job+" "+string(text))
		}
		sort.Strings(lines)
		got := strings.Join(lines, "\n")
		if want == "" {
			want = got
		}
		expect(t, got == want, "%+v:\n%s\nexpected:\n%s", o, got, want)
		expect(t, fmt.Sprint(jobs) == "map[endpoints:3 endpointslice:9 ingress:3 node:1 pod:2 service:2]",
			"%+v: %v", o, jobs)
		asked := strings.Join(cluster.Stats().Accepts, "\n")
		has(t, fmt.Sprintf("%+v", o), asked, kube.MediaType+", application/json", kube.MediaType+";as=PartialObjectMetadata")
	}
	has(t, "the targets", want, `"node_label_tier":"bäck"`, `"namespace_annotation_a":"1"`, `"pod_container_restart_policy":"Always"`)
}
