package charts

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestGolden compares whole renderings, so that a change of a template shows its effect.
// GOLDEN_UPDATE=1 writes the files.
func TestGolden(t *testing.T) {
	rendered := map[string]string{}
	for name, values := range map[string]string{
		"default":   "",
		"daemonset": "kind: DaemonSet\nrbac: {scope: namespace}\n",
		"sharded":   everything + "kind: StatefulSet\nspool: {enabled: true}\n",
	} {
		objects, notes, err := render(values, "profiling")
		must(t, err)
		for i := range objects {
			objects[i] = strings.TrimSpace(objects[i]) + "\n"
		}
		sort.Strings(objects)
		rendered["chart-"+name] = strings.Join(objects, "---\n") + "---\n# NOTES.txt\n# " +
			strings.Join(strings.Split(strings.TrimSpace(notes), "\n"), "\n# ") + "\n"
	}
	for variant := range variants {
		objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(manifests, variant))
		must(t, err)
		text, err := objects.AsYaml()
		must(t, err)
		name := "kustomize"
		if variant != "" {
			name += "-" + variant
		}
		rendered[name] = string(text)
	}
	for name, text := range rendered {
		golden(t, name, text)
	}
}

// golden compares a text with its file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("golden", name+".yaml")
	if os.Getenv("GOLDEN_UPDATE") != "" {
		must(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	if text != string(want) {
		t.Errorf("%s differs; GOLDEN_UPDATE=1 writes what it is now:\n%s", file, firstDifference(string(want), text))
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return "-" + a[i] + "\n+" + b[i]
		}
	}
	return "one is longer"
}
