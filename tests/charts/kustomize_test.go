package charts

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = "../../manifests"

// build renders a kustomization as `kubectl apply -k` does.
func build(t *testing.T, dir, inNamespace string) *release {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	must(t, err)
	r := emptyRelease(inNamespace)
	for _, object := range objects.Resources() {
		text, err := object.AsYAML()
		must(t, err)
		if err := r.decode(string(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	return r
}

// overlay writes a kustomization over the manifests, and returns its directory.
func overlay(t *testing.T, text string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	if out, err := filepath.Abs(manifests); err != nil {
		t.Fatal(err)
	} else if err := copyTree(out, filepath.Join(root, "manifests")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "overlay")
	must(t, os.Mkdir(dir, 0o700))
	text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + text
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return dir
}

func copyTree(from, to string) error {
	return filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if info.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

// The variants, with the kind of their workload.
var variants = map[string]string{
	"":           "Deployment",
	"namespaced": "Deployment",
	"daemonset":  "DaemonSet",
	"sharded":    "StatefulSet",
	"complete":   "Deployment",
	"archived":   "StatefulSet",
}

// TestKustomizations builds each variant as it is, in another namespace of an overlay, and with the
// namespace changed in the file itself.
func TestKustomizations(t *testing.T) {
	for variant, kind := range variants {
		variant, kind := variant, kind
		check := func(t *testing.T, r *release) {
			r.check(t)
			r.checkConfig(t)
			if r.kind != kind {
				t.Errorf("the workload is a %s", r.kind)
			}
			if len(r.bindings) == 0 {
				t.Error("nothing is bound to the account")
			}
		}
		t.Run("profpull/"+variant, func(t *testing.T) {
			check(t, build(t, filepath.Join(manifests, variant), "profpull"))
		})
		t.Run("overlay/"+variant, func(t *testing.T) {
			dir := overlay(t, "namespace: other\nresources: [../manifests/"+variant+"]\n")
			check(t, build(t, dir, "other"))
		})
		t.Run("changed/"+variant, func(t *testing.T) {
			dir := filepath.Join(overlay(t, ""), "../manifests", variant)
			file := filepath.Join(dir, "kustomization.yaml")
			text, err := os.ReadFile(file)
			must(t, err)
			changed := strings.Replace(string(text), "\nnamespace: profpull\n", "\nnamespace: other\n", 1)
			if changed == string(text) {
				t.Fatal("no namespace in it")
			}
			must(t, os.WriteFile(file, []byte(changed), 0o600))
			check(t, build(t, dir, "other"))
		})
	}
}

// A second installation in another namespace, with the overlay of docs/kubernetes.md: what belongs to no
// namespace has a name of its own.
func TestTwoInstallations(t *testing.T) {
	docs, err := os.ReadFile("../../docs/kubernetes.md")
	must(t, err)
	const begin = "patches: # a second installation\n"
	_, text, found := strings.Cut(string(docs), begin)
	text, _, end := strings.Cut(text, "```")
	if !found || !end {
		t.Fatal("docs/kubernetes.md shows no second installation")
	}
	for variant := range variants {
		t.Run("manifests/"+variant, func(t *testing.T) {
			first := build(t, filepath.Join(manifests, variant), "profpull")
			second := build(t, overlay(t, "namespace: profiling\nresources: [../manifests/"+variant+"]\n"+begin+text), "profiling")
			second.check(t)
			second.checkConfig(t)
			disjoint(t, first, second)
		})
	}
	t.Run("chart", func(t *testing.T) {
		disjoint(t, newRelease(t, "kind: Deployment\n", "one"), newRelease(t, "kind: Deployment\n", "two"))
	})
}

// disjoint fails if both would apply an object of the same name that belongs to no namespace.
func disjoint(t *testing.T, a, b *release) {
	t.Helper()
	for name := range a.ofCluster {
		if b.ofCluster[name] {
			t.Errorf("both have the %s", name)
		}
	}
}

// Each component over each variant that it is for.
func TestComponents(t *testing.T) {
	dirs, err := filepath.Glob(manifests + "/components/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v: %v", dirs, err)
	}
	not := map[string]string{ // the variants that a component is not for
		"config": "sharded", "alloy": "sharded", "spool": "daemonset sharded",
		"spool-sharded": ". namespaced daemonset",
	}
	// The files that a user adds for the component.
	files := map[string][2]string{
		"config": {"profpull.yaml", "write: [{name: main, url: '${PYROSCOPE_URL}'}]\n"},
		"alloy": {"config.alloy", `pyroscope.scrape "a" {
  targets    = [{__address__ = "h:1", service_name = "s"}]
  forward_to = [pyroscope.write.main.receiver]
}
pyroscope.write "main" {
  endpoint { url = sys.env("PYROSCOPE_URL") }
}
`},
	}
	effects := map[string]func(r *release) bool{
		"config":                func(r *release) bool { return r.hasArg("--config=/etc/profpull/profpull.yaml") },
		"alloy":                 func(r *release) bool { return r.hasArg("--config=/etc/profpull/config.alloy") },
		"credentials":           func(r *release) bool { return r.mounts("/etc/profpull-secret") },
		"url-from-secret":       func(r *release) bool { return r.env("PYROSCOPE_URL").SecretKeyRef != nil },
		"spool":                 func(r *release) bool { return r.mounts("/var/lib/profpull") && len(r.claims) == 1 },
		"spool-sharded":         func(r *release) bool { return r.mounts("/var/lib/profpull") && r.volumes["spool"] },
		"pod-disruption-budget": func(r *release) bool { return r.chooses("PodDisruptionBudget") },
		"network-policy":        func(r *release) bool { return r.chooses("NetworkPolicy") },
		"pod-monitor":           func(r *release) bool { return r.chooses("PodMonitor") },
	}
	sort.Strings(dirs)
	for _, dir := range dirs {
		component := filepath.Base(dir)
		effect := effects[component]
		if effect == nil {
			t.Errorf("no test of %s", component)
			continue
		}
		for _, variant := range []string{".", "namespaced", "daemonset", "sharded"} {
			if strings.Contains(" "+not[component]+" ", " "+variant+" ") {
				continue
			}
			t.Run(component+"/"+variant, func(t *testing.T) {
				text := "namespace: other\nresources: [../manifests/" + variant + "]\ncomponents: [../manifests/components/" + component + "]\n"
				file := files[component]
				if file[0] != "" {
					text += "configMapGenerator: [{name: profpull-config, files: [" + file[0] + "]}]\n"
				}
				dir := overlay(t, text)
				if file[0] != "" {
					must(t, os.WriteFile(filepath.Join(dir, file[0]), []byte(file[1]), 0o600))
				}
				r := build(t, dir, "other")
				r.check(t)
				r.checkConfig(t)
				if !effect(r) {
					t.Errorf("%s changes nothing: %+v", component, r.template.Spec)
				}
			})
		}
	}
}

// The variant with an archive: two readers with a Service for Grafana, stores on volumes that go with the pod, and
// policies that let readers reach DNS, writers and the bucket only.
func TestArchived(t *testing.T) {
	r := build(t, filepath.Join(manifests, "archived"), "profpull")
	if r.reader == nil || *r.reader.Spec.Replicas != 2 {
		t.Fatalf("the readers are %+v", r.reader)
	}
	for _, template := range []*core.PodTemplateSpec{r.template, &r.reader.Spec.Template} {
		if why := restricted(t, template); why != "" {
			t.Errorf("the standard \"restricted\" refuses a pod: %s", why)
		}
	}
	query := r.services["profpull-query"]
	if query == nil || len(query.Spec.Ports) != 1 || query.Spec.Ports[0].Port != 4040 || query.Spec.Selector["app.kubernetes.io/name"] != "profpull-reader" {
		t.Errorf("the Service for Grafana is %+v", query)
	}
	stores := 0
	for _, v := range r.template.Spec.Volumes {
		if v.EmptyDir != nil {
			stores++
		}
	}
	if stores != 1 || len(r.volumes) != 0 || len(r.claims) != 0 {
		t.Errorf("%d volumes of the pod, %d claims", stores, len(r.volumes)+len(r.claims))
	}
	text, err := os.ReadFile(filepath.Join(manifests, "archived", "policy.yaml"))
	must(t, err)
	for _, want := range []string{"policyTypes: [Ingress, Egress]", "{port: 53, protocol: UDP}", "{port: 443, protocol: TCP}", "169.254.169.254/32", "169.254.170.23/32"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("policy.yaml lacks %s", want)
		}
	}
}
