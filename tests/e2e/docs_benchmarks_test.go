package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const scriptsDir = "../../scripts/"

// docs/benchmarks.md has each part of bench-all.sh, and the scripts know what belongs to the page and what does not.
func TestDocsBenchmarks(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(scriptsDir+"bench-docs.sh", "-check").CombinedOutput()
	expect(t, err == nil, "%v\n%s", err, out)

	page := readText(t, "../../docs/benchmarks.md")
	first := "<!-- bench-all: table -->\n"
	for name, text := range map[string]string{
		"a part that is missing":   strings.Replace(page, first, "", 1),
		"a part that is unknown":   strings.Replace(page, first, first+"<!-- bench-all: tables -->\n", 1),
		"a part that stands twice": page + first,
	} {
		out, err := exec.Command(scriptsDir+"bench-docs.sh", "-check", writeText(t, text)).CombinedOutput()
		expect(t, err != nil && strings.Contains(string(out), " table"), "%s: %v\n%s", name, err, out)
	}
}

// bench-docs.sh replaces the block of each part that was measured, and nothing else.
func TestDocsBenchmarksFromOutput(t *testing.T) {
	t.Parallel()
	output := writeText(t, "== table: all rows (10:00:00, load 0.1)\n\na row   1.5 \n\nanother | 2 & 3\n-- one\n\n== took 3 s\n\n== curve: x (10:00:03, load 1)\ny\n== took 1 s\n")
	page := writeText(t, "# Page\n\n<!-- bench-all: table -->\n```text\nold\n```\n\nText.\n\n```text\nkept\n```\n<!-- bench-all: curve -->\n\n"+
		"<!-- bench-all: flame -->\n```text\nold flame\n```\nEnd.\n")
	out, err := exec.Command(scriptsDir+"bench-docs.sh", output, page).CombinedOutput()
	expect(t, err == nil && string(out) == "bench-docs: no output of the part flame\n", "%v\n%s", err, out)
	want := "# Page\n\n<!-- bench-all: table -->\n```text\na row   1.5\n\nanother | 2 & 3\n-- one\n```\n\nText.\n\n```text\nkept\n```\n" +
		"<!-- bench-all: curve -->\n```text\ny\n```\n\n<!-- bench-all: flame -->\n```text\nold flame\n```\nEnd.\n"
	got := readText(t, page)
	expect(t, got == want, "got\n%s\nwant\n%s", got, want)

	// A benchmark that was interrupted before its first part.
	out, err = exec.Command(scriptsDir+"bench-docs.sh", writeText(t, ""), page).CombinedOutput()
	expect(t, err != nil, "an empty output is accepted: %s", out)
	got = readText(t, page)
	expect(t, got == want, "got\n%s\nwant\n%s", got, want)
}

// An unknown part is an error that lists the parts; a part alone is run alone, and BENCH_OUT has its output.
func TestBenchAllParts(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(scriptsDir+"bench-all.sh", "machine", "tables").CombinedOutput()
	expect(t, err != nil, "an unknown part is accepted")
	has(t, "bench-all.sh", string(out), `there is no part "tables"; there are: machine table `)

	file := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(scriptsDir+"bench-all.sh", "machine", "peer")
	cmd.Env = append(os.Environ(), "BUILD="+filepath.Dir(bin(t)), "BENCH_OUT="+file, "BENCH_SKIP=peer", "BENCH_PEER=")
	printed, err := cmd.Output()
	must(t, err)
	has(t, "bench-all.sh", string(printed), "== machine: the machine (", "\nprofpull ", "\n== took ")
	lacks(t, "bench-all.sh", string(printed), "== peer")
	expect(t, readText(t, file) == string(printed), "BENCH_OUT has\n%s", readText(t, file))
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
