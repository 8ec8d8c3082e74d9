package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// cannotRun says which commands of the documentation are not run, and why. The first row that fits counts. What
// they pass to the program is parsed all the same.
var cannotRun = []struct{ pattern, reason string }{
	{`/var/lib/profpull|/etc/profpull`, "needs the service of the Debian package"},
	{`^(sudo )?\./scripts/deps\.sh|^sudo |apt-get`, "installs packages"},
	{`^(\w+=\S+ )*(make|scripts/)`, "builds, tests or measures for minutes"},
	{`^cd tests/e2e && go run`, "runs until Ctrl-C"},
	{`^(kubectl (annotate|apply|rollout|exec|port-forward|get)|helm )`, "changes or needs a cluster with Helm or profpull in it"},
	{`profpull (run|status .*--watch|query .*--watch)|profpull open`, "runs until Ctrl-C (other tests do)"},
	{`^(go build|go tool pprof)`, "needs a program of one's own, or a browser"},
	{`^(npm|jcmd|java|cc|g\+\+|sleep|MALLOC_CONF=|TCMALLOC_SAMPLE_PARAMETER=)|app\.jfr`, "belongs to a program of one's own (tests of the recipes build them)"},
	{`s3://BUCKET|^profpull store verify kept|--store hour`, "needs a bucket (other tests have fakes of them)"},
	{`^(PYROSCOPE_\w+=\S+ )|^ebpf-profiler|^dotnet`, "belongs to a program or an agent of other makers"},
	{`^skopeo`, "pushes to a registry"},
	{`--protocol (profefe|deepflow|ingest)|deepflow-agent`, "needs another server (other tests have fakes of them)"},
	{`--base-before 24h|query=process_cpu|from=2026-|app_service|profileTypeID`, "needs profiles of that time"},
	{`import .* \*\.pb\.gz|127\.0\.0\.1:6060/debug`, "needs a program at this port"},
	{`profpull query .* -i$`, "needs a terminal (other tests have one)"},
	{`jq -r`, "needs jq"},
	{`--fail-above`, "exits with its verdict, which needs two instances on each side (other tests have them)"},
	{`^profpull pgo|json\.Unmarshal`, "needs profiles of a certain program"},
	{`^cat rules.yaml|^echo \$\?`, "shows what the page shows"},
}

// docCommand is one command of a block of shell.
type docCommand struct {
	place string
	text  string
}

var (
	docBlock = regexp.MustCompile("(?ms)^ *```(console|sh)\n(.*?)^ *```")
	docTail  = regexp.MustCompile(`\s+#\s.*$`)
)

// docCommands extracts the commands of a page.
func docCommands(t *testing.T, file string) (all []docCommand) {
	t.Helper()
	text := readText(t, file)
	for _, m := range docBlock.FindAllStringSubmatchIndex(text, -1) {
		kind, body := text[m[2]:m[3]], strings.ReplaceAll(text[m[4]:m[5]], "\\\n", " ")
		place := fmt.Sprintf("%s:%d", strings.TrimPrefix(file, "../../"), 1+strings.Count(text[:m[0]], "\n"))
		open := ""
		for _, line := range strings.Split(body, "\n") {
			line = strings.TrimSpace(line)
			if open == "" && kind == "console" {
				if !strings.HasPrefix(line, "$ ") {
					continue
				}
				line = line[2:]
			}
			if open == "" {
				line = docTail.ReplaceAllString(line, "")
			}
			open = strings.TrimSpace(open + "\n" + line)
			if strings.HasPrefix(open, "#") {
				open = ""
			}
			if open == "" || strings.Count(open, "'")%2 == 1 || strings.HasSuffix(open, "|") {
				continue // it goes on
			}
			all = append(all, docCommand{place, strings.Join(strings.Fields(open), " ")})
			open = ""
		}
	}
	return all
}

// docRig has everything that the commands name: files, programs, servers.
type docRig struct {
	l       *laptop
	dir     string
	replace *strings.Replacer
	agent   string
}

func newDocRig(t *testing.T) *docRig {
	t.Helper()
	l := newLaptop(t)
	first, second, third, server := newTarget(t, target.Options{}), newTarget(t, target.Options{}), newTarget(t, target.Options{}), newPyroscope(t, pyroscope.Options{})
	l.cluster.Put(l.pod("cart-1", grafana("memory.scrape", "true", "memory.port", "6060", "cpu.scrape", "true", "cpu.port", "6060"), 6060))
	l.cluster.Route("shop/cart-1:6060", third.Addr())
	l.cluster.PutWorkload("/apis/apps/v1/namespaces/shop/deployments/cart", map[string]any{"selector": map[string]any{"matchLabels": map[string]string{"app": "cart"}}})
	jobs := fmt.Sprintf(`
scrape_configs:
  - job_name: carts
    scrape_interval: 2s
    static_configs:
      - {targets: [%q], labels: {service_name: cart, version: "1.5"}}
      - {targets: [%q], labels: {service_name: cart, version: "1.4"}}
`, first.Addr(), second.Addr())
	p := run(t, jobs+"write: [{name: kept, url: \"store://"+t.TempDir()+"\"}]\n")
	agent := l.pod("profpull-0", nil)
	agent.Namespace, agent.Labels = "profiling", map[string]string{"app.kubernetes.io/name": "profpull"}
	agent.Containers = []kube.Container{{Name: "profpull", Image: "profpull:1", Ports: []kube.Port{{Name: "admin", Number: 4041}}}}
	l.cluster.Put(agent)
	l.cluster.Route("profiling/profpull-0:4041", strings.TrimPrefix(p.admin, "http://"))
	// The contexts that the documentation names.
	contexts := readText(t, filepath.Join(l.dir, "contexts"))
	must(t, os.WriteFile(filepath.Join(l.dir, "contexts"), []byte(strings.Replace(contexts, `"name":"late"`, `"name":"prod"`, 1)), 0o600))
	clusters := readText(t, filepath.Join(l.dir, "clusters"))
	must(t, os.WriteFile(filepath.Join(l.dir, "clusters"), []byte(strings.Replace(clusters, "expired-hunter3", laptopToken, 1)), 0o600))

	d := &docRig{l: l, dir: t.TempDir(), agent: p.admin}
	cpu := pprof.Gzip(pprof.Make("cpu", pprof.Options{}))
	must(t, os.Mkdir(filepath.Join(d.dir, "profiles"), 0o700))
	alloy := fmt.Sprintf("pyroscope.write \"w\" {\n  endpoint { url = %q }\n}\npyroscope.scrape \"s\" {\n  targets = [{__address__ = %q, service_name = \"cart\"}]\n  forward_to = [pyroscope.write.w.receiver]\n}\n", server.URL(), first.Addr())
	for name, text := range map[string]string{
		"profpull.yaml":        jobs + "write: [{name: main, url: \"" + server.URL() + "\"}]\n",
		"config.alloy":         alloy,
		"alloy-values.yaml":    "controller: {type: statefulset}\n",
		"rules.yaml":           "- {source_labels: [tier], regex: fe, action: keep}\n",
		"cart.pb.gz":           string(cpu),
		"before.pb.gz":         string(cpu),
		"after.pb.gz":          string(cpu),
		"cpu.pb.gz":            string(cpu),
		"profiles/shop.pb.gz":  string(cpu),
		"profiles/shop2.pb.gz": string(cpu),
	} {
		must(t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
	}
	program, err := filepath.Abs(bin(t))
	must(t, err)
	_ = os.Mkdir(filepath.Join(l.dir, "bin"), 0o700)
	for _, name := range []string{"profpull", "kubectl-profpull"} {
		must(t, os.Symlink(program, filepath.Join(l.dir, "bin", name)))
	}
	d.replace = strings.NewReplacer("10.1.2.3:6060", third.Addr(), "10.1.2.4:6060", second.Addr(), "http://pyroscope:4040", server.URL(),
		"http://localhost:4041", p.admin, "http://127.0.0.1:4041", p.admin, "http://profpull:4041", p.admin, "-c FILE", "-c profpull.yaml",
		"-n profpull ", "-n profpull ")
	p.wait("profiles of all types", func() string {
		n := len(p.scrapes("?health=up"))
		return unless(n >= 10, "%d scrapes are up", n)
	})
	return d
}

// shell makes the command that a shell runs.
func (d *docRig) shell(text string) string {
	if strings.HasPrefix(text, "profpull query") { // the program answers as a Pyroscope does
		text = strings.ReplaceAll(text, "http://pyroscope:4040", d.agent)
	}
	text = d.replace.Replace(text)
	return text
}

func (d *docRig) run(t *testing.T, text string) (string, error) {
	t.Helper()
	cmd := exec.Command("timeout", "60", "sh", "-c", text)
	cmd.Dir = d.dir
	path := filepath.Join(d.l.dir, "bin")
	if dir := os.Getenv("PROFPULL_PROGRAMS"); dir != "" {
		path += ":" + filepath.Join(dir, "kubernetes-client/usr/bin")
	}
	cmd.Env = append(command(t, "version").Env, d.l.env...)
	cmd.Env = append(cmd.Env, "EDITOR=true", "PROFPULL_URL="+d.agent, "PATH="+path+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var programWords = regexp.MustCompile(`(?:^|\| |-- |&& )(?:kubectl )?(?:build/)?profpull ((?:[^|&>']|'[^']*')*)`)

// Each command of README and docs either runs, or is listed here with the reason why not; and the options of all
// commands of the program exist.
func TestDocsConsole(t *testing.T) {
	t.Parallel()
	bin(t)
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	pages = append(pages, "../../README.md")
	sort.Strings(pages)
	d := newDocRig(t)
	used := make([]int, len(cannotRun))
	ran, listed := 0, []string{}
	begin := time.Now()
	for _, page := range pages {
		for _, c := range docCommands(t, page) {
			for _, m := range programWords.FindAllStringSubmatch(c.text, -1) {
				if out, err := d.run(t, "profpull "+m[1]+" --help"); err != nil {
					t.Errorf("%s: %s: %v\n%s", c.place, c.text, err, out)
				}
			}
			reason := ""
			for i, row := range cannotRun {
				if regexp.MustCompile(row.pattern).MatchString(c.text) {
					used[i]++
					reason = row.reason
					break
				}
			}
			if strings.HasPrefix(c.text, "kubectl profpull") && os.Getenv("PROFPULL_PROGRAMS") == "" {
				reason = "needs kubectl (scripts/test-programs.sh)"
			}
			if reason != "" {
				listed = append(listed, fmt.Sprintf("%s: %s: %s", c.place, reason, c.text))
				continue
			}
			ran++
			if out, err := d.run(t, d.shell(c.text)); err != nil {
				t.Errorf("%s: %s: %v\n%s", c.place, c.text, err, out)
			}
		}
	}
	for i, n := range used {
		expect(t, n != 0, "nothing fits %q any more", cannotRun[i].pattern)
	}
	t.Logf("%d commands run in %v, %d do not:\n%s", ran, time.Since(begin).Round(time.Millisecond), len(listed), strings.Join(listed, "\n"))
	expect(t, ran >= 40, "only %d commands were run", ran)
}
