package charts

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// valueSets are values as people give them, each rendered into a golden file. `loose` says that the set takes
// the pod out of the Pod Security Standard "restricted" on purpose; `openshift` that OpenShift's restricted-v2
// has to admit it.
var valueSets = []struct {
	name, values     string
	loose, openshift bool
}{
	{name: "name-override", values: "nameOverride: profiler"},
	{name: "fullname-override", values: "fullnameOverride: profiles\nnamespaceOverride: elsewhere"},
	{name: "registry", values: "image: {registry: registry.example/mirror/, repository: ops/profpull}"},
	{name: "global-registry", values: "global: {imageRegistry: registry.example, imagePullSecrets: [outer]}\nimage: {registry: ignored.example}\nimagePullSecrets: [{name: inner}, plain]"},
	{name: "digest", values: "image: {digest: \"" + digest + "\"}"},
	{name: "tag-and-digest", values: "image: {tag: v1, digest: \"" + digest + "\"}"},
	{name: "common-labels", values: "{commonLabels: {team: shop, env: prod}, podDisruptionBudget: {enabled: true}, kind: StatefulSet}"},
	{name: "openshift", values: "openshift: true", openshift: true},
	{name: "openshift-unset", values: "{kind: DaemonSet, podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}}", openshift: true},
	{name: "openshift-sharded", values: "{openshift: true, kind: StatefulSet, spool: {enabled: true}, rbac: {scope: namespace}}", openshift: true},
	{name: "other-user", values: "podSecurityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, supplementalGroups: [7]}"},
	{name: "no-contexts", values: "{podSecurityContext: null, securityContext: null}", loose: true},
	{name: "writable-root", values: "securityContext: {readOnlyRootFilesystem: false}"},
	{name: "environment", values: "{env: [{name: A, value: a}], extraEnv: [{name: B, value: b}], envFrom: [{secretRef: {name: credentials}}]}"},
	{name: "volumes", values: "{extraVolumes: [{name: certs, emptyDir: {}}], extraVolumeMounts: [{name: certs, mountPath: /certs}]}"},
	{name: "containers", values: `
initContainers: [{name: wait, image: "busybox:1", command: [sleep, "1"], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
extraContainers: [{name: proxy, image: "proxy:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`},
	{name: "probes", values: "{livenessProbe: null, readinessProbe: {periodSeconds: 30, timeoutSeconds: 5}, startupProbe: {httpGet: {path: /-/healthy, port: admin}, failureThreshold: 30}}"},
	{name: "update-deployment", values: "{updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}, minReadySeconds: 5, revisionHistoryLimit: 3}"},
	{name: "update-daemonset", values: "{kind: DaemonSet, updateStrategy: {type: OnDelete}}"},
	{name: "update-statefulset", values: "{kind: StatefulSet, updateStrategy: {rollingUpdate: {partition: 1}}}"},
	{name: "spread", values: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app.kubernetes.io/name: profpull}}}]"},
	{name: "network", values: "{hostAliases: [{ip: 10.0.0.1, hostnames: [pyroscope]}], dnsPolicy: ClusterFirst, dnsConfig: {options: [{name: ndots, value: \"1\"}]}, runtimeClassName: gvisor, lifecycle: {preStop: {exec: {command: [profpull, version]}}}, annotations: {a: b}}"},
	{name: "service", values: "service: {enabled: true, type: LoadBalancer, port: 80, nodePort: 30041, annotations: {a: b}, labels: {c: d}, spec: {loadBalancerClass: internal, externalTrafficPolicy: Local}}"},
	{name: "receive", values: "{extraPorts: [{name: push, containerPort: 4040, servicePort: 80}], service: {enabled: true}}"},
	{name: "ingress", values: "ingress: {enabled: true, className: nginx, annotations: {a: b}, hosts: [{host: a.example}, {host: b.example, paths: [{path: /x, pathType: Exact, port: admin}]}], tls: [{hosts: [a.example], secretName: credentials}]}"},
	{name: "http-route", values: "httpRoute: {enabled: true, parentRefs: [{name: public, namespace: gateways}], hostnames: [a.example], path: /profiles}"},
	{name: "service-monitor", values: "serviceMonitor: {enabled: true, labels: {release: prometheus}, relabelings: [{action: labeldrop, regex: pod}], metricRelabelings: [{action: drop, regex: go_.*, sourceLabels: [__name__]}]}"},
	{name: "pod-monitor", values: "podMonitor: {enabled: true, interval: 1m, relabelings: [{action: labeldrop, regex: pod}]}"},
	{name: "rules-and-dashboard", values: "{prometheusRule: {enabled: true, labels: {release: prometheus}, extraGroups: [{name: own, rules: [{record: a, expr: b}]}]}, dashboard: {enabled: true, annotations: {grafana_folder: profiles}}}"},
	{name: "network-policy", values: "networkPolicy: {enabled: true, from: [{namespaceSelector: {}}], ingress: [{ports: [{port: 4040}]}], egress: [{}]}"},
	{name: "budget", values: "{kind: StatefulSet, podDisruptionBudget: {enabled: true, minAvailable: 50%}}"},
	{name: "archive", values: "{kind: StatefulSet, archive: {enabled: true, url: 's3://bucket/profiles', endpoint: 'http://minio:9000', secret: credentials}, networkPolicy: {enabled: true}}"},
	{name: "autoscaling", values: "{kind: StatefulSet, autoscaling: {enabled: true, minReplicas: 3, targetMemoryUtilizationPercentage: 60, behavior: {scaleDown: {stabilizationWindowSeconds: 600}}}}"},
}

// restricted says what the Pod Security Standard "restricted" refuses.
func restricted(t *testing.T, template *core.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	must(t, err)
	all := policy.AggregateCheckResults(evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec))
	return all.ForbiddenDetail()
}

// openShift says what OpenShift's restricted-v2 refuses: users and groups of its choice, no capability but
// NET_BIND_SERVICE, nothing of the host, and volumes of these kinds only.
func openShift(spec *core.PodSpec) string {
	var why []string
	add := func(bad bool, what string) {
		if bad {
			why = append(why, what)
		}
	}
	pod := spec.SecurityContext
	if pod == nil {
		pod = &core.PodSecurityContext{}
	}
	add(pod.RunAsUser != nil || pod.RunAsGroup != nil, "a user of the pod")
	add(pod.FSGroup != nil || len(pod.SupplementalGroups) > 0, "a group of the pod")
	add(pod.SeccompProfile != nil && pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault, "a seccomp profile")
	add(spec.HostNetwork || spec.HostPID || spec.HostIPC, "the host's namespaces")
	for _, c := range append(append([]core.Container{}, spec.InitContainers...), spec.Containers...) {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || s.Capabilities == nil {
			why = append(why, c.Name+" without a security context")
			continue
		}
		add(*s.AllowPrivilegeEscalation, "privilege escalation")
		add(s.RunAsUser != nil, "a user of "+c.Name)
		add(len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0, "capabilities")
		for _, p := range c.Ports {
			add(p.HostPort != 0, "a port of the host")
		}
	}
	for _, v := range spec.Volumes {
		kinds := v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.PersistentVolumeClaim != nil || v.Projected != nil || v.CSI != nil || v.DownwardAPI != nil || v.Ephemeral != nil
		add(!kinds, "the volume "+v.Name)
	}
	return strings.Join(why, ", ")
}

// Each set of values renders to what its golden file says, decodes strictly, and keeps what it promises about security.
func TestValueSets(t *testing.T) {
	if len(valueSets) < 25 {
		t.Errorf("only %d sets", len(valueSets))
	}
	for _, set := range valueSets {
		set := set
		t.Run(set.name, func(t *testing.T) {
			namespace := "profiling"
			if strings.Contains(set.values, "namespaceOverride") {
				namespace = "elsewhere"
			}
			r := newRelease(t, set.values, namespace)
			r.check(t)
			r.checkConfig(t)
			if refused := restricted(t, r.template); (refused != "") != set.loose {
				t.Errorf("restricted refuses %q", refused)
			}
			if refused := openShift(&r.template.Spec); (refused != "") == set.openshift {
				t.Errorf("restricted-v2 refuses %q", refused)
			}
			golden(t, "values-"+set.name, renderAll(t, set.values))
		})
	}
}

func renderAll(t *testing.T, values string) string {
	t.Helper()
	objects, _, err := render(values, "profiling")
	must(t, err)
	for i := range objects {
		objects[i] = strings.TrimSpace(objects[i]) + "\n"
	}
	sort.Strings(objects)
	return "# " + strings.ReplaceAll(strings.TrimSpace(values), "\n", "\n# ") + "\n" + strings.Join(objects, "---\n")
}

// TestSecurityChecksCanFail shows that the checks of the Pod Security Standard and of OpenShift refuse
// the values that these refuse.
func TestSecurityChecksCanFail(t *testing.T) {
	for _, values := range []string{"securityContext: {privileged: true}", "podSecurityContext: {runAsNonRoot: false}", "securityContext: {capabilities: {drop: [KILL]}}",
		"extraContainers: [{name: a, image: b}]"} {
		if restricted(t, newRelease(t, values, "profiling").template) == "" {
			t.Errorf("%s: restricted admits it", values)
		}
	}
	for _, values := range []string{"", "openshift: true\nextraVolumes: [{name: a, hostPath: {path: /}}]", "openshift: true\nsecurityContext: {runAsUser: 7}"} {
		r := newRelease(t, values, "profiling")
		if openShift(&r.template.Spec) == "" {
			t.Errorf("%s: restricted-v2 admits it", values)
		}
	}
}

// An upgrade keeps names and what Kubernetes does not let change: upgrade.yaml is of version 0.2.0 before
// there were names to choose.
func TestUpgradeKeepsNames(t *testing.T) {
	var was map[string][]string
	text, err := os.ReadFile("upgrade.yaml")
	must(t, err)
	must(t, yaml.UnmarshalStrict(text, &was))
	if len(was) < 4 {
		t.Errorf("%d sets of values", len(was))
	}
	for values, names := range was {
		now := map[string]bool{}
		for _, n := range fixedParts(t, values) {
			now[n] = true
		}
		for _, n := range names {
			if !now[n] {
				t.Errorf("%q: no %s; there are\n%s", values, n, strings.Join(fixedParts(t, values), "\n"))
			}
		}
	}
}

// fixedParts are the names of the objects, and the parts of the workload that cannot change.
func fixedParts(t *testing.T, values string) []string {
	t.Helper()
	objects, _, err := render(values, "profiling")
	must(t, err)
	var names []string
	for _, object := range objects {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Spec     struct {
				ServiceName          string
				ClusterIP            string
				Selector             interface{}
				VolumeClaimTemplates interface{}
			}
			RoleRef interface{}
		}
		must(t, yaml.Unmarshal([]byte(object), &o))
		fixed, err := yaml.Marshal(map[string]interface{}{"service": o.Spec.ServiceName, "ip": o.Spec.ClusterIP, "selector": o.Spec.Selector, "claims": o.Spec.VolumeClaimTemplates, "role": o.RoleRef})
		must(t, err)
		names = append(names, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name+" "+strings.Join(strings.Fields(string(fixed)), " "))
	}
	sort.Strings(names)
	return names
}

// The copies in the chart are those of packaging/monitoring.
func TestFilesOfTheChart(t *testing.T) {
	for _, name := range []string{"rules.yaml", "dashboard.json"} {
		want, err := os.ReadFile(filepath.Join("../../packaging/monitoring", name))
		must(t, err)
		file := filepath.Join("../../charts/profpull/files", name)
		if os.Getenv("GOLDEN_UPDATE") != "" {
			must(t, os.WriteFile(file, want, 0o644))
		}
		got, err := os.ReadFile(file)
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("%s differs; GOLDEN_UPDATE=1 copies it", file)
		}
	}
}
