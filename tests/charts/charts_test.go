// The Helm chart and the kustomizations, rendered by the engines of Helm and kustomize: each object
// decodes strictly as the type of Kubernetes that it says to be, all references between them agree, and
// the configuration is one that the program takes.
//
// A module of its own, because Helm needs a newer Go than the other tests.
package charts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// elsewhere is a ConfigMap that is not of the release.
const elsewhere = "mine"

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// render returns the objects of the chart in the order of their files.
func render(values, namespace string) (objects []string, notes string, err error) {
	c, err := loader.Load("../../charts/profpull")
	if err != nil {
		return nil, "", err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, "", err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "pp", Namespace: namespace, IsInstall: true}, nil)
	if err != nil {
		return nil, "", err // the schema
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = text
			continue
		}
		for _, object := range strings.Split("\n"+text, "\n---") {
			var content map[string]interface{}
			if err := yaml.Unmarshal([]byte(object), &content); err != nil {
				return nil, "", fmt.Errorf("%s: %v\n%s", name, err, object)
			}
			if len(content) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, notes, nil
}

// release is what the objects say, by kind.
type release struct {
	namespace string
	external  map[string]bool // Secrets that the user makes
	accounts  map[string]bool
	configs   map[string]*core.ConfigMap
	claims    map[string]bool
	services  map[string]*core.Service
	roles     map[string]bool // "Role/name"
	ofCluster map[string]bool // what belongs to no namespace: "ClusterRole/name"
	bindings  []binding
	kind      string
	template  *core.PodTemplateSpec
	selector  map[string]string
	reader    *apps.Deployment    // the second workload, of variants with an archive
	volumes   map[string]bool     // of claims that a StatefulSet makes
	service   string              // that a StatefulSet names
	selectors map[string]selector // of what else chooses pods: "PodMonitor", or of each "NetworkPolicy/name"
}

// selector is the part of an object that says which pods it is for.
type selector struct {
	Spec struct {
		Selector    meta.LabelSelector `json:"selector"`
		PodSelector meta.LabelSelector `json:"podSelector"`
	} `json:"spec"`
}

type binding struct {
	role     rbac.RoleRef
	subjects []rbac.Subject
}

// decode reads an object strictly into its type: a field that Kubernetes does not know is an error.
func (r *release) decode(object string) error {
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
		return err
	}
	cluster := strings.HasPrefix(u.GetKind(), "Cluster") || u.GetKind() == "Namespace"
	if !cluster && u.GetNamespace() != r.namespace {
		return fmt.Errorf("%s %s is in the namespace %q", u.GetKind(), u.GetName(), u.GetNamespace())
	}
	if cluster {
		r.ofCluster[u.GetKind()+"/"+u.GetName()] = true
	}
	strict := func(into interface{}) error { return yaml.UnmarshalStrict([]byte(object), into) }
	choice := func(into interface{}) error {
		var s selector
		if err := yaml.Unmarshal([]byte(object), &s); err != nil {
			return err
		}
		name := u.GetKind()
		if r.selectors[name].Spec.PodSelector.MatchLabels != nil {
			name += "/" + u.GetName()
		}
		r.selectors[name] = s
		return strict(into)
	}
	switch u.GetAPIVersion() + " " + u.GetKind() {
	case "v1 Namespace":
		if u.GetName() != r.namespace {
			return fmt.Errorf("makes the namespace %s", u.GetName())
		}
		return strict(&core.Namespace{})
	case "v1 ServiceAccount":
		r.accounts[u.GetName()] = true
		return strict(&core.ServiceAccount{})
	case "v1 ConfigMap":
		c := &core.ConfigMap{}
		r.configs[u.GetName()] = c
		return strict(c)
	case "v1 PersistentVolumeClaim":
		r.claims[u.GetName()] = true
		return strict(&core.PersistentVolumeClaim{})
	case "v1 Service":
		s := &core.Service{}
		r.services[u.GetName()] = s
		return strict(s)
	case "rbac.authorization.k8s.io/v1 Role":
		r.roles["Role/"+u.GetName()] = true
		return strict(&rbac.Role{})
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		r.roles["ClusterRole/"+u.GetName()] = true
		return strict(&rbac.ClusterRole{})
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		b := &rbac.RoleBinding{}
		err := strict(b)
		r.bindings = append(r.bindings, binding{b.RoleRef, b.Subjects})
		return err
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		b := &rbac.ClusterRoleBinding{}
		err := strict(b)
		r.bindings = append(r.bindings, binding{b.RoleRef, b.Subjects})
		return err
	case "apps/v1 Deployment":
		d := &apps.Deployment{}
		err := strict(d)
		if strings.HasSuffix(u.GetName(), "-reader") {
			r.reader = d
			return err
		}
		r.kind, r.template, r.selector = "Deployment", &d.Spec.Template, d.Spec.Selector.MatchLabels
		return err
	case "apps/v1 DaemonSet":
		d := &apps.DaemonSet{}
		err := strict(d)
		r.kind, r.template, r.selector = "DaemonSet", &d.Spec.Template, d.Spec.Selector.MatchLabels
		return err
	case "apps/v1 StatefulSet":
		s := &apps.StatefulSet{}
		err := strict(s)
		r.kind, r.template, r.selector = "StatefulSet", &s.Spec.Template, s.Spec.Selector.MatchLabels
		for _, claim := range s.Spec.VolumeClaimTemplates {
			r.volumes[claim.Name] = true
		}
		r.service = s.Spec.ServiceName
		return err
	case "policy/v1 PodDisruptionBudget":
		return choice(&policy.PodDisruptionBudget{})
	case "networking.k8s.io/v1 NetworkPolicy":
		return choice(&network.NetworkPolicy{})
	case "networking.k8s.io/v1 Ingress":
		return strict(&network.Ingress{})
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return strict(&autoscaling.HorizontalPodAutoscaler{})
	case "gateway.networking.k8s.io/v1 HTTPRoute":
		return strict(&gateway.HTTPRoute{})
	case "monitoring.coreos.com/v1 PodMonitor":
		return choice(&monitoring.PodMonitor{})
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return strict(&monitoring.ServiceMonitor{})
	case "monitoring.coreos.com/v1 PrometheusRule":
		return strict(&monitoring.PrometheusRule{})
	}
	return fmt.Errorf("unexpected %s %s", u.GetAPIVersion(), u.GetKind())
}

// chosen compares a selector with the labels of the pods, or of the readers.
func (r *release) chosen(t *testing.T, what string, labels map[string]string) {
	t.Helper()
	if r.reader != nil && meta.FormatLabelSelector(&meta.LabelSelector{MatchLabels: labels}) == meta.FormatLabelSelector(r.reader.Spec.Selector) {
		return
	}
	for name, value := range labels {
		if r.template.Labels[name] != value {
			t.Errorf("%s selects %s=%s, pods have %q", what, name, value, r.template.Labels[name])
		}
	}
}

func (r *release) check(t *testing.T) {
	t.Helper()
	if r.template == nil {
		t.Fatal("no workload")
	}
	pod := r.template.Spec
	r.chosen(t, r.kind, r.selector)
	for _, s := range r.services {
		r.chosen(t, "the Service", s.Spec.Selector)
	}
	for kind, s := range r.selectors {
		labels := s.Spec.Selector.MatchLabels
		if strings.HasPrefix(kind, "NetworkPolicy") {
			labels = s.Spec.PodSelector.MatchLabels
		}
		if len(labels) == 0 {
			t.Errorf("%s selects all pods", kind)
		}
		r.chosen(t, kind, labels)
	}
	if r.kind == "StatefulSet" && r.services[r.service] == nil {
		t.Errorf("no Service %s", r.service)
	}
	if len(r.accounts) > 0 && !r.accounts[pod.ServiceAccountName] {
		t.Errorf("pods use the account %q", pod.ServiceAccountName)
	}
	for _, b := range r.bindings {
		if !r.roles[b.role.Kind+"/"+b.role.Name] {
			t.Errorf("a binding names the %s %s", b.role.Kind, b.role.Name)
		}
		for _, s := range b.subjects {
			if s.Namespace != r.namespace || s.Name != pod.ServiceAccountName {
				t.Errorf("a binding names the account %s/%s", s.Namespace, s.Name)
			}
		}
	}
	r.checkVolumes(t)
	r.checkEnvironment(t)
	r.checkGracePeriod(t)
	if r.reader != nil {
		second := *r
		second.reader, second.template, second.selector = nil, &r.reader.Spec.Template, r.reader.Spec.Selector.MatchLabels
		second.chosen(t, "the Deployment of the readers", second.selector)
		if second.template.Spec.ServiceAccountName != pod.ServiceAccountName {
			t.Errorf("readers use the account %q", second.template.Spec.ServiceAccountName)
		}
		second.checkVolumes(t)
		second.checkEnvironment(t)
		second.checkGracePeriod(t)
	}
}

// checkGracePeriod compares the time until the kubelet kills a pod with the time that its queues have to drain.
func (r *release) checkGracePeriod(t *testing.T) {
	t.Helper()
	const margin = 10 * time.Second
	grace := r.template.Spec.TerminationGracePeriodSeconds
	for _, arg := range r.template.Spec.Containers[0].Args {
		if value := strings.TrimPrefix(arg, "--drain-timeout="); value != arg {
			drain, err := time.ParseDuration(value)
			if err != nil {
				t.Error(err)
			}
			if grace == nil || time.Duration(*grace)*time.Second < drain+margin {
				t.Errorf("%s: the grace period is %v", arg, grace)
			}
			return
		}
	}
	t.Error("no --drain-timeout")
}

func (r *release) checkVolumes(t *testing.T) {
	t.Helper()
	volumes := map[string]bool{}
	for name := range r.volumes {
		volumes[name] = true
	}
	for _, v := range r.template.Spec.Volumes {
		volumes[v.Name] = true
		if v.PersistentVolumeClaim != nil && !r.claims[v.PersistentVolumeClaim.ClaimName] {
			t.Errorf("no claim %s", v.PersistentVolumeClaim.ClaimName)
		}
		if v.ConfigMap != nil && v.ConfigMap.Name != elsewhere && r.configs[v.ConfigMap.Name] == nil {
			t.Errorf("no ConfigMap %s", v.ConfigMap.Name)
		}
		if v.Secret != nil && !r.external[v.Secret.SecretName] {
			t.Errorf("no Secret %s", v.Secret.SecretName)
		}
	}
	for _, m := range r.template.Spec.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
}

func (r *release) checkEnvironment(t *testing.T) {
	t.Helper()
	for _, e := range r.template.Spec.Containers[0].Env {
		if e.ValueFrom == nil {
			continue
		}
		if e.ValueFrom.ConfigMapKeyRef != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("%s has two sources", e.Name)
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			if c := r.configs[ref.Name]; c == nil || c.Data[ref.Key] == "" {
				t.Errorf("%s: no key %s in a ConfigMap %s", e.Name, ref.Key, ref.Name)
			}
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil && !r.external[ref.Name] {
			t.Errorf("%s: no Secret %s", e.Name, ref.Name)
		}
	}
}

// checkConfig lets the program read the configuration that its arguments name.
func (r *release) checkConfig(t *testing.T) {
	t.Helper()
	program := os.Getenv("PROFPULL_BIN")
	if program == "" {
		t.Fatal("PROFPULL_BIN names no program (scripts/charts.sh)")
	}
	args := strings.Join(r.template.Spec.Containers[0].Args, " ")
	if r.reader != nil {
		args += " " + strings.Join(r.reader.Spec.Template.Spec.Containers[0].Args, " ")
	}
	for _, c := range r.configs {
		for key, text := range c.Data {
			if key == "url" || key == "bucket" || key == "region" || key == "profpull.json" { // of environment variables; a dashboard
				continue
			}
			if !strings.Contains(args, "--config=/etc/profpull/"+key) {
				t.Errorf("the arguments do not name %s: %s", key, args)
			}
			file := filepath.Join(t.TempDir(), key)
			must(t, os.WriteFile(file, []byte(text), 0o600))
			cmd := exec.Command(program, "check", "--config", file)
			cmd.Env = append(os.Environ(), "PYROSCOPE_URL=http://pyroscope:4040", "BUCKET_URL=s3://bucket/profiles", "BUCKET_REGION=us-east-1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("check: %v\n%s\n%s", err, out, text)
			}
		}
	}
}

func emptyRelease(namespace string) *release {
	return &release{namespace: namespace, accounts: map[string]bool{}, configs: map[string]*core.ConfigMap{},
		claims: map[string]bool{}, services: map[string]*core.Service{}, roles: map[string]bool{}, ofCluster: map[string]bool{},
		volumes: map[string]bool{}, selectors: map[string]selector{},
		external: map[string]bool{"credentials": true, "profpull-credentials": true}}
}

func newRelease(t *testing.T, values, namespace string) *release {
	t.Helper()
	objects, notes, err := render(values, namespace)
	must(t, err)
	r := emptyRelease(namespace)
	for _, object := range objects {
		if err := r.decode(object); err != nil {
			t.Errorf("%v\n%s", err, object)
		}
	}
	if !strings.Contains(notes, "kubectl port-forward -n "+namespace) {
		t.Errorf("notes: %s", notes)
	}
	return r
}

const everything = `
resources: {limits: {memory: 1Gi}}
extraArgs: ["--listen=0.0.0.0:4041"]
env: [{name: A, value: b}]
extraVolumes: [{name: extra, emptyDir: {}}]
extraVolumeMounts: [{name: extra, mountPath: /extra}]
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {disk: ssd}
tolerations: [{operator: Exists}]
topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
priorityClassName: high
podDisruptionBudget: {enabled: true}
networkPolicy: {enabled: true}
podMonitor: {enabled: true, labels: {team: x}}
image: {pullSecrets: [{name: registry}]}
serviceAccount: {name: own, annotations: {a: b}}
rbac: {rules: [{apiGroups: [""], resources: [nodes], verbs: [list, watch]}]}
pyroscope: {tenantId: shop, secret: {name: credentials}}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: "{{ .Release.Namespace }}"}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: extra-text, namespace: {{ .Release.Namespace }}}
`

func TestVariants(t *testing.T) {
	for name, values := range map[string]string{
		"default":                 "",
		"daemon":                  "kind: DaemonSet",
		"replicas":                "kind: StatefulSet",
		"archive":                 "{kind: StatefulSet, archive: {enabled: true, url: 's3://bucket/profiles', secret: credentials}, networkPolicy: {enabled: true}}",
		"archive in Google":       "{archive: {enabled: true, url: 'gs://bucket/profiles', credentials: metadata}}",
		"replicas with a spool":   "{kind: StatefulSet, spool: {enabled: true, storageClass: fast}}",
		"spool":                   "spool: {enabled: true}",
		"a long drain":            "drainTimeout: 5m",
		"a drain of hours":        "{kind: StatefulSet, drainTimeout: 7200s}",
		"a short drain":           "drainTimeout: 1ms",
		"namespace":               "rbac: {scope: namespace}",
		"namespace, replicas":     "{kind: StatefulSet, rbac: {scope: namespace}}",
		"secret":                  "pyroscope: {secret: {name: credentials, passwordKey: token}}",
		"token":                   "pyroscope: {secret: {name: credentials, tokenKey: token}}",
		"URL from a Secret":       "pyroscope: {secret: {name: credentials, urlKey: url}}",
		"no rights, no account":   "{rbac: {create: false}, serviceAccount: {create: false, name: default}}",
		"everything":              everything,
		"everything, replicas":    everything + "kind: StatefulSet\nspool: {enabled: true}\n",
		"everything, daemon":      everything + "kind: DaemonSet\n",
		"own configuration":       "config: {inline: \"scrape_configs: [{job_name: a, static_configs: [{targets: ['h:1']}]}]\\nwrite: [{url: 'http://p'}]\\n\"}",
		"Alloy's configuration":   "config: {format: alloy, inline: \"pyroscope.scrape \\\"a\\\" {\\n  targets = [{__address__ = \\\"h:1\\\", service_name = \\\"s\\\"}]\\n  forward_to = [pyroscope.write.w.receiver]\\n}\\npyroscope.write \\\"w\\\" {\\n  endpoint { url = \\\"http://p\\\" }\\n}\\n\"}",
		"configuration elsewhere": "config: {existing: {name: " + elsewhere + ", key: config.alloy}}",
	} {
		values := values
		for _, namespace := range []string{"profiling", "other"} {
			t.Run(name+"/"+namespace, func(t *testing.T) {
				r := newRelease(t, values, namespace)
				r.check(t)
				if !strings.Contains(name, "everything") { // which has ConfigMaps that are none
					r.checkConfig(t)
				}
			})
		}
	}
}

// Values that cannot be are refused, with their name.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"kind: Job", "kind"},
		{"repliccas: 3", "repliccas"},
		{"pyroscope: {secret: {key: a}}", "key"},
		{"replicas: 0", "replicas"},
		{"pyroscope: {url: pyroscope}", "url"},
		{"rbac: {scope: world}", "scope"},
		{"{kind: DaemonSet, spool: {enabled: true}}", "spool.enabled"},
	} {
		_, _, err := render(c.values, "profiling")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.values, err)
		}
	}
}

// TestEffects checks the objects that each option of the chart changes.
func TestEffects(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"kind: StatefulSet", "--sharding.service=pp-profpull"},
		{"kind: StatefulSet\nreplicas: 7", "replicas: 7"},
		{"", "terminationGracePeriodSeconds: 30\n"},
		{"drainTimeout: 90s", "terminationGracePeriodSeconds: 100\n"},
		{"drainTimeout: 2m", "terminationGracePeriodSeconds: 130\n"},
		{"drainTimeout: 1500ms", "terminationGracePeriodSeconds: 12\n"},
		{"kind: DaemonSet", "spec.nodeName=$(NODE_NAME)"},
		{"rbac: {scope: namespace}", "PROFPULL_OWN_NAMESPACE"},
		{"pyroscope: {secret: {name: s}}", "password_file: /etc/profpull-secret/password"},
		{"pyroscope: {secret: {name: s, tokenKey: t}}", "bearer_token_file: /etc/profpull-secret/t"},
		{"pyroscope: {secret: {name: s, urlKey: u}}", "secretKeyRef: {name: s, key: u}"},
		{"pyroscope: {secret: {name: s, urlKey: u}}", "url: ${PYROSCOPE_URL}"},
		{"topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", "topologyKey: zone"},
		{"pyroscope: {tenantId: t7}", "tenant_id: \"t7\""},
		{"spool: {enabled: true}", "queue: {spool_directory: /var/lib/profpull}"},
		{"image: {repository: r/p, tag: v2}", "\"r/p:v2\""},
		{"podMonitor: {enabled: true}", "honorLabels: true"},
	} {
		objects, _, err := render(c.values, "profiling")
		must(t, err)
		var all bytes.Buffer
		for _, o := range objects {
			all.WriteString(o)
		}
		if !strings.Contains(all.String(), c.want) {
			t.Errorf("%s: no %q", c.values, c.want)
		}
	}
}

func (r *release) hasArg(want string) bool {
	for _, a := range r.template.Spec.Containers[0].Args {
		if a == want {
			return true
		}
	}
	return false
}

func (r *release) mounts(path string) bool {
	for _, m := range r.template.Spec.Containers[0].VolumeMounts {
		if m.MountPath == path {
			return true
		}
	}
	return false
}

// env returns the source of a variable; empty if there is none.
func (r *release) env(name string) core.EnvVarSource {
	for _, e := range r.template.Spec.Containers[0].Env {
		if e.Name == name && e.ValueFrom != nil {
			return *e.ValueFrom
		}
	}
	return core.EnvVarSource{}
}

func (r *release) chooses(kind string) bool {
	_, ok := r.selectors[kind]
	return ok
}
