package charts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// convertValues runs the program, which makes values of our chart out of those of another one.
func convertValues(t *testing.T, file string) (values, report string) {
	t.Helper()
	program := os.Getenv("PROFPULL_BIN")
	if program == "" {
		t.Fatal("PROFPULL_BIN names no program (scripts/charts.sh)")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, "convert", "--helm-values", file)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "URL=http://pyroscope:4040")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// Values of three public charts that bring profiles become values of ours, which render.
func TestHelmValues(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports []string
	}{
		{"alloy", []string{
			"alloy.yaml:7:14: unchanged: alloy.configMap.content: config.inline runs it",
			"mapped: controller.type: kind: StatefulSet, whose replicas share the targets",
			"ignored: alloy.securityContext: profpull needs no rights of the host",
			"ignored: configReloader: profpull reads a changed configuration by itself",
			"ignored: controller.somethingNew: no counterpart is known",
			"mapped: serviceMonitor.additionalLabels: serviceMonitor.labels",
			"ignored: serviceMonitor.tlsConfig",
		}},
		{"pyroscope", []string{"mapped: alloy: the values of Alloy's chart within another chart", "mapped: alloy.configMap.name: config.existing"}},
		{"k8s-monitoring", []string{"mapped: destinations: pyroscope.url", "unchanged: profiling.pprof", "ignored: ebpf", "ignored: java", "name it in pyroscope.secret.name"}},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			values, report := convertValues(t, "helm-values/"+c.name+".yaml")
			for _, want := range c.reports {
				if !strings.Contains(report, want) {
					t.Errorf("no %q in\n%s", want, report)
				}
			}
			r := newRelease(t, values, "profiling")
			r.check(t)
			if refused := restricted(t, r.template); refused != "" {
				t.Errorf("restricted refuses %q", refused)
			}
			golden(t, "helm-"+c.name, "# Report:\n# "+strings.ReplaceAll(strings.TrimSpace(report), "\n", "\n# ")+"\n"+values)
		})
	}
}

// workload is what all kinds of workloads have in common.
type workload struct {
	Spec struct{ Template core.PodTemplateSpec }
}

// The values files in the directory PROFPULL_HELM_VALUES, from checkouts of public charts, become values that render.
func TestHelmValuesOfOthers(t *testing.T) {
	dir := os.Getenv("PROFPULL_HELM_VALUES")
	if dir == "" {
		t.Skip("PROFPULL_HELM_VALUES names no directory with files of values")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("no *.yaml in %s", dir)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			values, report := convertValues(t, file)
			objects, _, err := render(values, "profiling")
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, report, values)
			}
			workloads := 0
			for _, object := range objects {
				var u unstructured.Unstructured
				must(t, yaml.Unmarshal([]byte(object), &u.Object))
				if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
					t.Errorf("no object of Kubernetes:\n%s", object)
				}
				var w workload
				switch u.GetKind() {
				case "Deployment", "DaemonSet", "StatefulSet":
					workloads++
					must(t, yaml.Unmarshal([]byte(object), &w))
					if c := w.Spec.Template.Spec.Containers; len(c) == 0 || c[0].Name != "profpull" {
						t.Errorf("containers of the %s: %+v", u.GetKind(), c)
					}
				}
			}
			if workloads != 1 {
				t.Errorf("%d workloads\n%s", workloads, report)
			}
		})
	}
}
