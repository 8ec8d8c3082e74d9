// The Helm chart, rendered by Helm's own engine in many variants: each object decodes strictly as the
// type of Kubernetes that it says to be, all references between them agree, and the configuration is
// one that the program takes.
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

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const namespace = "profiling"

// elsewhere is a ConfigMap that is not of the release.
const elsewhere = "mine"

// render returns the objects of the chart in the order of their files.
func render(values string) (objects []string, notes string, err error) {
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
	accounts map[string]bool
	configs  map[string]*core.ConfigMap
	claims   map[string]bool
	services map[string]*core.Service
	roles    map[string]bool // "Role/name"
	bindings []binding
	kind     string
	template *core.PodTemplateSpec
	selector map[string]string
	volumes  map[string]bool // of claims that a StatefulSet makes
	others   []string
}

type binding struct {
	role     rbac.RoleRef
	subjects []rbac.Subject
}

// decode reads an object strictly into its type: a field that Kubernetes does not know is an error.
func (r *release) decode(object string) error {
	var meta unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(object), &meta.Object); err != nil {
		return err
	}
	cluster := strings.HasPrefix(meta.GetKind(), "Cluster")
	if !cluster && meta.GetNamespace() != namespace {
		return fmt.Errorf("%s %s is in the namespace %q", meta.GetKind(), meta.GetName(), meta.GetNamespace())
	}
	strict := func(into interface{}) error { return yaml.UnmarshalStrict([]byte(object), into) }
	switch meta.GetAPIVersion() + " " + meta.GetKind() {
	case "v1 ServiceAccount":
		r.accounts[meta.GetName()] = true
		return strict(&core.ServiceAccount{})
	case "v1 ConfigMap":
		c := &core.ConfigMap{}
		r.configs[meta.GetName()] = c
		return strict(c)
	case "v1 PersistentVolumeClaim":
		r.claims[meta.GetName()] = true
		return strict(&core.PersistentVolumeClaim{})
	case "v1 Service":
		s := &core.Service{}
		r.services[meta.GetName()] = s
		return strict(s)
	case "rbac.authorization.k8s.io/v1 Role":
		r.roles["Role/"+meta.GetName()] = true
		return strict(&rbac.Role{})
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		r.roles["ClusterRole/"+meta.GetName()] = true
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
		if r.services[s.Spec.ServiceName] == nil {
			r.others = append(r.others, "needs the Service "+s.Spec.ServiceName)
		}
		return err
	case "policy/v1 PodDisruptionBudget":
		return strict(&policy.PodDisruptionBudget{})
	case "networking.k8s.io/v1 NetworkPolicy":
		return strict(&network.NetworkPolicy{})
	case "monitoring.coreos.com/v1 PodMonitor":
		return nil // a type of the operator
	}
	return fmt.Errorf("unexpected %s %s", meta.GetAPIVersion(), meta.GetKind())
}

func (r *release) check(t *testing.T) {
	t.Helper()
	if r.template == nil {
		t.Fatal("no workload")
	}
	pod := r.template.Spec
	for name, value := range r.selector {
		if r.template.Labels[name] != value {
			t.Errorf("the selector wants %s=%s, pods have %q", name, value, r.template.Labels[name])
		}
	}
	for _, s := range r.services {
		for name, value := range s.Spec.Selector {
			if r.template.Labels[name] != value {
				t.Errorf("the Service selects %s=%s, pods have %q", name, value, r.template.Labels[name])
			}
		}
	}
	if len(r.accounts) > 0 && !r.accounts[pod.ServiceAccountName] {
		t.Errorf("pods use the account %q", pod.ServiceAccountName)
	}
	for _, b := range r.bindings {
		if !r.roles[b.role.Kind+"/"+b.role.Name] {
			t.Errorf("a binding names the %s %s", b.role.Kind, b.role.Name)
		}
		for _, s := range b.subjects {
			if s.Namespace != namespace || s.Name != pod.ServiceAccountName {
				t.Errorf("a binding names the account %s/%s", s.Namespace, s.Name)
			}
		}
	}
	volumes := map[string]bool{}
	for name := range r.volumes {
		volumes[name] = true
	}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.PersistentVolumeClaim != nil && !r.claims[v.PersistentVolumeClaim.ClaimName] {
			t.Errorf("no claim %s", v.PersistentVolumeClaim.ClaimName)
		}
		if v.ConfigMap != nil && v.ConfigMap.Name != elsewhere && r.configs[v.ConfigMap.Name] == nil {
			t.Errorf("no ConfigMap %s", v.ConfigMap.Name)
		}
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
	for _, o := range r.others {
		if r.services[strings.TrimPrefix(o, "needs the Service ")] == nil {
			t.Error(o)
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
	for _, c := range r.configs {
		for key, text := range c.Data {
			if !strings.Contains(strings.Join(r.template.Spec.Containers[0].Args, " "), "--config=/etc/profpull/"+key) {
				t.Errorf("the arguments do not name %s", key)
			}
			file := filepath.Join(t.TempDir(), key)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program, "check", "--config", file).CombinedOutput(); err != nil {
				t.Errorf("check: %v\n%s\n%s", err, out, text)
			}
		}
	}
}

func newRelease(t *testing.T, values string) *release {
	t.Helper()
	objects, notes, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{accounts: map[string]bool{}, configs: map[string]*core.ConfigMap{}, claims: map[string]bool{},
		services: map[string]*core.Service{}, roles: map[string]bool{}, volumes: map[string]bool{}}
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
		"replicas with a spool":   "{kind: StatefulSet, spool: {enabled: true, storageClass: fast}}",
		"spool":                   "spool: {enabled: true}",
		"namespace":               "rbac: {scope: namespace}",
		"namespace, replicas":     "{kind: StatefulSet, rbac: {scope: namespace}}",
		"secret":                  "pyroscope: {secret: {name: credentials, passwordKey: token}}",
		"no rights, no account":   "{rbac: {create: false}, serviceAccount: {create: false, name: default}}",
		"everything":              everything,
		"everything, replicas":    everything + "kind: StatefulSet\nspool: {enabled: true}\n",
		"everything, daemon":      everything + "kind: DaemonSet\n",
		"own configuration":       "config: {inline: \"scrape_configs: [{job_name: a, static_configs: [{targets: ['h:1']}]}]\\nwrite: [{url: 'http://p'}]\\n\"}",
		"Alloy's configuration":   "config: {format: alloy, inline: \"pyroscope.scrape \\\"a\\\" {\\n  targets = [{__address__ = \\\"h:1\\\", service_name = \\\"s\\\"}]\\n  forward_to = [pyroscope.write.w.receiver]\\n}\\npyroscope.write \\\"w\\\" {\\n  endpoint { url = \\\"http://p\\\" }\\n}\\n\"}",
		"configuration elsewhere": "config: {existing: {name: " + elsewhere + ", key: config.alloy}}",
	} {
		values := values
		t.Run(name, func(t *testing.T) {
			r := newRelease(t, values)
			r.check(t)
			if !strings.Contains(name, "everything") { // which has ConfigMaps that are none
				r.checkConfig(t)
			}
		})
	}
}

// Values that cannot be are refused, with their name.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"kind: Job", "kind"},
		{"repliccas: 3", "repliccas"},
		{"replicas: 0", "replicas"},
		{"pyroscope: {url: pyroscope}", "url"},
		{"rbac: {scope: world}", "scope"},
		{"{kind: DaemonSet, spool: {enabled: true}}", "spool.enabled"},
	} {
		_, _, err := render(c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.values, err)
		}
	}
}

// What an option changes is in the objects.
func TestEffects(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"kind: StatefulSet", "--sharding.service=pp-profpull"},
		{"kind: StatefulSet\nreplicas: 7", "replicas: 7"},
		{"kind: DaemonSet", "spec.nodeName=$(NODE_NAME)"},
		{"rbac: {scope: namespace}", "PROFPULL_OWN_NAMESPACE"},
		{"pyroscope: {secret: {name: s}}", "password_file: /etc/profpull-secret/password"},
		{"pyroscope: {tenantId: t7}", "tenant_id: \"t7\""},
		{"spool: {enabled: true}", "queue: {spool_directory: /var/lib/profpull}"},
		{"image: {repository: r/p, tag: v2}", "\"r/p:v2\""},
		{"podMonitor: {enabled: true}", "honorLabels: true"},
	} {
		objects, _, err := render(c.values)
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for _, o := range objects {
			all.WriteString(o)
		}
		if !strings.Contains(all.String(), c.want) {
			t.Errorf("%s: no %q", c.values, c.want)
		}
	}
}
