package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

func writeNamed(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const partly = `pyroscope.scrape "a" {
  targets    = concat([{"__address__" = "127.0.0.1:1"}], discovery.docker.d.targets)
  forward_to = [pyroscope.write.w.receiver]
}
discovery.docker "d" { host = "unix:///x" }
loki.write "x" { }
pyroscope.write "w" { endpoint { url = "http://127.0.0.1:1" } }
`

// TestWhatIsLeftOutIsNamed checks that the parts of an Alloy file that are left out are named with their
// place by check, by run at the start, and in comments by convert. check --strict makes all of them
// errors, convert --strict those that concern profiles.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	t.Parallel()
	file := writeNamed(t, "config.alloy", partly)
	warning := file + ":5:1: warning: discovery.docker.d: is not supported"
	note := file + ":6:1: note: loki.write.x: "
	expectCall(t, exitDone, "good", warning, "check", "--config", file)
	expectCall(t, exitDone, "good", note, "check", "--config", file)
	expectCall(t, exitInput, "", warning, "check", "--strict", "--config", file)
	expectCall(t, exitInput, "", "has 1 warning and 1 note\n", "check", "--strict", "--config", file)
	expectCall(t, exitInput, "*", warning, "run", "--config", file, "--listen", "192.0.2.1:1")
	expectCall(t, exitDone, "# "+warning, "", "convert", file)
	expectCall(t, exitInput, "", warning, "convert", "--strict", file)
}

// The YAML of other programs becomes a configuration that check accepts.
func TestForeignYAMLIsConverted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"agent", "prometheus"} {
		r := expectCall(t, exitDone, "scrape_configs:", "", "convert", "../unit/data/migrate/"+name+".yaml")
		expectCall(t, exitDone, "good", "", "check", "--config", writeNamed(t, "converted.yaml", r.stdout))
	}
	expectCall(t, exitInput, "", "left out", "convert", "--strict", "../unit/data/migrate/parca.yaml")
	old := writeNamed(t, "old.yaml", "scrape-configs:\n  - job-name: a\n")
	expectCall(t, exitInput, "", old+":2:3: a file of Pyroscope before 1.0", "convert", old)
}

// convert --diff shows that a file and its YAML make the same of a list of discovered targets.
func TestConvertDiff(t *testing.T) {
	t.Parallel()
	targets := writeNamed(t, "targets.yaml", `
- targets: ["10.0.0.1:6060", "10.0.0.2:6060"]
  labels: {__meta_kubernetes_pod_annotation_profiles_grafana_com_cpu_scrape: "true", __meta_kubernetes_pod_phase: Running}
- targets: ["10.0.0.3:6060"]
`)
	expectCall(t, exitDone, "no difference: 2 scrapes", "", "convert", "--diff", targets, "../../examples/alloy.alloy")
	expectCall(t, exitInput, "", "/no/such/file: ", "convert", "--diff", "/no/such/file", "../../examples/alloy.alloy")
	expectCall(t, exitUsage, "", "--diff compares", "convert", "--diff", targets, "config.yaml")
}
