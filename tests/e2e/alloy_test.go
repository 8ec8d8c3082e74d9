package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// ownAddress is an address of this machine that is not one of a loopback device: jobs of Alloy files
// scrape no pods there, and no key of Alloy allows it.
func ownAddress(t *testing.T) string {
	t.Helper()
	bin(t)
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has only loopback addresses")
	return ""
}

// podTarget is a target at an address that a pod may have.
func podTarget(t *testing.T, host string) (tg *target.Target, port int) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	must(t, err)
	addr := l.Addr().String()
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	return newTarget(t, target.Options{Addr: addr}), port
}

// alloyFile writes a file of a configuration; name may have a directory.
func alloyFile(t *testing.T, directory, name, text string) string {
	t.Helper()
	file := filepath.Join(directory, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// under is a command with these variables of the environment.
func under(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	return callCommand(t, cmd, "")
}

// converted is the file that `profpull convert` makes of a configuration. `check` accepts it, and it
// is the same configuration.
func converted(t *testing.T, env []string, path string) string {
	t.Helper()
	yaml := under(t, env, "convert", path)
	require(t, yaml.code == 0, "convert: %d\n%s", yaml.code, yaml.stderr)
	file := alloyFile(t, t.TempDir(), "converted.yaml", yaml.stdout)
	direct := under(t, env, "check", "--dump", path)
	again := under(t, env, "check", "--dump", file)
	require(t, direct.code == 0 && again.code == 0,
		"check --dump: %d %d\n%s%s\n%s", direct.code, again.code, direct.stderr, again.stderr, yaml.stdout)
	require(t, direct.stdout == again.stdout,
		"the configurations differ\n--- %s\n%s\n--- converted\n%s", path, direct.stdout, again.stdout)
	return file
}

// runFile starts the program with a file as it is.
func runFile(t *testing.T, env []string, path string) *program {
	t.Helper()
	p := startFile(t, append([]string{"/usr/bin/env"}, env...), path)
	p.waitUp()
	return p
}

func describeLabels(labels map[string]string, without ...string) string {
	var all []string
	for name, value := range labels {
		all = append(all, fmt.Sprintf("%s=%q", name, value))
	}
	for i := 0; i < len(all); i++ {
		for _, name := range without {
			if strings.HasPrefix(all[i], name+"=") {
				all = append(all[:i], all[i+1:]...)
				i--
				break
			}
		}
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// targetLines is what the program scrapes: job, type, URL and labels, one a line.
func (p *program) targetLines() string {
	p.t.Helper()
	var lines []string
	for _, s := range p.scrapes("") {
		lines = append(lines, s.Job+" "+s.Type+" "+s.URL+" "+describeLabels(s.Labels))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// series are the label sets that have arrived, one a line, in order.
func series(s *pyroscope.Server) []string {
	seen := map[string]bool{}
	for _, r := range s.Profiles() {
		seen[describeLabels(r.Labels, "__session_id__")] = true
	}
	var all []string
	for one := range seen {
		all = append(all, one)
	}
	sort.Strings(all)
	return all
}

// waitSeries waits until exactly these series have arrived, whatever their order.
func waitSeries(t *testing.T, s *pyroscope.Server, want ...string) {
	t.Helper()
	sort.Strings(want)
	wait(t, "the series", func() string {
		got := series(s)
		return unless(strings.Join(got, "\n") == strings.Join(want, "\n"),
			"got\n%s\nexpected\n%s\nrefused: %q", strings.Join(got, "\n"), strings.Join(want, "\n"), s.Refused())
	})
}

// sameTargets runs the converted file and expects the targets of the program that has the file itself.
func (p *program) sameTargets(env []string, file string) {
	p.t.Helper()
	want := p.targetLines()
	q := runFile(p.t, env, file)
	q.wait("the same targets", func() string {
		if got := q.targetLines(); got != want {
			return "converted:\n" + got + "\ndirect:\n" + want
		}
		return ""
	})
}

func data(t *testing.T, name string) string {
	t.Helper()
	text := readFile(t, "../unit/data/alloy/"+name)
	return string(text)
}

// withCluster has the fake cluster in every discovery.kubernetes of a text.
func withCluster(text, kubeconfig string) string {
	return regexp.MustCompile(`(discovery\.kubernetes "\w+" \{)\s*role = "pod"`).ReplaceAllString(text,
		"$1\nrole = \"pod\"\nkubeconfig_file = \""+kubeconfig+"\"\n")
}

// The configuration that the vendor documents, with only the addresses of the neighbours replaced.
func TestAlloyOfTheVendor(t *testing.T) {
	t.Parallel()
	host := ownAddress(t)
	server := newPyroscope(t, pyroscope.Options{BasePath: "/profile"})
	cluster, kubeconfig := newKube(t, kube.Options{})
	_, port := podTarget(t, host)
	cluster.Put(kube.Pod{Name: "cart", IP: host, Labels: map[string]string{"app": "cart", "tier": "back"},
		Annotations: map[string]string{"pyroscope.io/scrape": "true", "pyroscope.io/application-name": "shop/cart",
			"pyroscope.io/port": fmt.Sprint(port), "pyroscope.io/scheme": "http"},
		Containers: []kube.Container{{Name: "main", Ports: []kube.Port{{Name: "http", Number: 1}}}}})
	cluster.Put(kube.Pod{Name: "done", IP: host, Phase: "Succeeded",
		Annotations: map[string]string{"pyroscope.io/scrape": "true", "pyroscope.io/port": fmt.Sprint(port)}})
	cluster.Put(kube.Pod{Name: "other", IP: host, Annotations: map[string]string{"pyroscope.io/port": fmt.Sprint(port)}})
	text := strings.Replace(withCluster(data(t, "W1.alloy"), kubeconfig), "https://kf.example/profile", server.URL(), 1)
	file := alloyFile(t, t.TempDir(), "config.alloy", text)
	p := runFile(t, nil, file)
	labels := fmt.Sprintf(`app="cart" instance="%s:%d" kubernetes_namespace="default" service_name="shop/cart" tier="back"`, host, port)
	p.wait("the targets", func() string {
		got := p.targetLines()
		return unless(strings.Count(got, "\n") == 1 && strings.Count(got, fmt.Sprintf("http://%s:%d/debug/pprof/", host, port)) == 2,
			"%s", got)
	})
	p.sameTargets(nil, converted(t, nil, file))
	waitSeries(t, server, `__name__="goroutine" `+labels, `__name__="process_cpu" `+labels)
	p.stop()
	noneRefused(t, server)
}

// chart is the text of a configuration as the chart of Pyroscope installs it: for each type one way
// by the number and one by the name of the port that annotations choose.
func chart(kubeconfig, url string, types []string) string {
	const meta = "__meta_kubernetes_pod_"
	var b strings.Builder
	fmt.Fprintf(&b, `logging {
  level  = "info"
  format = "logfmt"
}

// Every pod of the cluster.
discovery.kubernetes "pods" {
  role            = "pod"
  kubeconfig_file = %q
}

discovery.relabel "kubernetes_pods" {
  targets = concat(discovery.kubernetes.pods.targets)

  rule {
    action        = "drop"
    source_labels = ["%[2]sphase"]
    regex         = "Pending|Succeeded|Failed|Completed"
  }

  rule {
    action = "labelmap"
    regex  = "%[2]slabel_(.+)"
  }

  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    target_label  = "namespace"
  }

  rule {
    source_labels = ["%[2]sname"]
    target_label  = "pod"
  }

  rule {
    source_labels = [
      "%[2]slabel_app_kubernetes_io_name",
      "%[2]scontainer_name",
    ]
    regex        = "^(?:;*)?([^;]+).*$"
    replacement  = "$1"
    target_label = "service_name"
  }
}
`, kubeconfig, meta)
	for _, one := range types {
		a := meta + "annotation_profiles_grafana_com_" + one
		fmt.Fprintf(&b, `
discovery.relabel "kubernetes_pods_%[1]s_default_name" {
  targets = concat(discovery.relabel.kubernetes_pods.output)

  rule {
    source_labels = ["%[2]s_scrape"]
    action        = "keep"
    regex         = "true"
  }

  rule {
    source_labels = ["%[2]s_port_name"]
    action        = "keep"
    regex         = ""
  }

  rule {
    source_labels = ["%[3]scontainer_port_number"]
    target_label  = "%[2]s_port"
    action        = "keepequal"
  }

  rule {
    source_labels = ["%[2]s_scheme"]
    action        = "replace"
    regex         = "(https?)"
    target_label  = "__scheme__"
    replacement   = "$1"
  }

  rule {
    source_labels = ["%[2]s_path"]
    action        = "replace"
    regex         = "(.+)"
    target_label  = "__profile_path__"
    replacement   = "$1"
  }
}

discovery.relabel "kubernetes_pods_%[1]s_custom_name" {
  targets = concat(discovery.relabel.kubernetes_pods.output)

  rule {
    source_labels = ["%[2]s_scrape"]
    action        = "keep"
    regex         = "true"
  }

  rule {
    source_labels = ["%[2]s_port_name"]
    action        = "drop"
    regex         = ""
  }

  rule {
    source_labels = ["%[3]scontainer_port_name"]
    target_label  = "%[2]s_port_name"
    action        = "keepequal"
  }
}

pyroscope.scrape "pyroscope_scrape_%[1]s" {
  clustering {
    enabled = true
  }

  targets    = concat(discovery.relabel.kubernetes_pods_%[1]s_default_name.output, discovery.relabel.kubernetes_pods_%[1]s_custom_name.output)
  forward_to = [pyroscope.write.pyroscope_write.receiver]

  scrape_interval          = "2s"
  delta_profiling_duration = "1s"

  profiling_config {
`, one, a, meta)
		for _, other := range types {
			kind := other
			if other == "cpu" {
				kind = "process_cpu"
			}
			fmt.Fprintf(&b, "    profile.%s {\n      enabled = %v\n    }\n\n", kind, other == one)
		}
		b.WriteString("  }\n}\n")
	}
	fmt.Fprintf(&b, `
pyroscope.write "pyroscope_write" {
  endpoint {
    url = %q
  }
}
`, url)
	return b.String()
}

// The configuration of a chart: 12 ways, of which each pod takes those that its annotations name.
func TestAlloyOfTheChart(t *testing.T) {
	t.Parallel()
	types := []string{"memory", "block", "goroutine", "mutex", "cpu", "fgprof"}
	host := ownAddress(t)
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	_, numbered := podTarget(t, host)
	_, named := podTarget(t, host)
	annotate := func(key, value string) map[string]string {
		all := map[string]string{}
		for _, one := range types {
			all["profiles.grafana.com/"+one+".scrape"] = "true"
			all["profiles.grafana.com/"+one+"."+key] = value
		}
		return all
	}
	containers := func(port int) []kube.Container {
		return []kube.Container{{Name: "main", Ports: []kube.Port{{Name: "other", Number: 1}, {Name: "profiles", Number: port}}}}
	}
	cluster.Put(kube.Pod{Name: "numbered", IP: host, Annotations: annotate("port", fmt.Sprint(numbered)),
		Labels: map[string]string{"app.kubernetes.io/name": "shop"}, Containers: containers(numbered)})
	cluster.Put(kube.Pod{Name: "named", IP: host, Annotations: annotate("port_name", "profiles"), Containers: containers(named)})
	cluster.Put(kube.Pod{Name: "silent", IP: host, Containers: containers(numbered)})
	file := alloyFile(t, t.TempDir(), "config.alloy", chart(kubeconfig, server.URL(), types))
	p := runFile(t, nil, file)
	want := map[string]int{}
	p.wait("the targets", func() string {
		for _, one := range types {
			want[one] = 0
		}
		for _, s := range p.scrapes("") {
			want[strings.TrimPrefix(s.Job[:strings.Index(s.Job, "/")], "pyroscope_scrape_")]++
		}
		for _, one := range types {
			if want[one] != 2 {
				return fmt.Sprint(want)
			}
		}
		return ""
	})
	p.sameTargets(nil, converted(t, nil, file))
	var all []string
	// The fakes of blocks and mutexes have nothing new to say.
	for _, name := range []string{`__delta__="false" __name__="memory"`, `__name__="goroutine"`, `__name__="process_cpu"`, `__name__="fgprof"`} {
		all = append(all,
			fmt.Sprintf(`%s app_kubernetes_io_name="shop" instance="%s:%d" namespace="default" pod="numbered" service_name="shop"`, name, host, numbered),
			fmt.Sprintf(`%s instance="%s:%d" namespace="default" pod="named" service_name="main"`, name, host, named))
	}
	waitSeries(t, server, all...)
	p.stop()
	noneRefused(t, server)
	equal(t, "lists of pods for 12 ways, of them one of the converted file", cluster.Stats().Lists, 2)
}

// Modules in a directory of files: arguments, a variable of the environment in a selector.
func TestAlloyDirectoryOfModules(t *testing.T) {
	t.Parallel()
	host := ownAddress(t)
	server := newPyroscope(t, pyroscope.Options{})
	cluster, kubeconfig := newKube(t, kube.Options{})
	_, port := podTarget(t, host)
	for _, node := range []string{"node-1", "node-2"} {
		cluster.Put(kube.Pod{Name: "on-" + node, Node: node, IP: host,
			Containers: []kube.Container{{Name: "main", Ports: []kube.Port{{Name: "http", Number: port}}}}})
	}
	dir := t.TempDir()
	token := alloyFile(t, dir, "token", "secret\n")
	text := withCluster(data(t, "W3.alloy"), kubeconfig)
	text = strings.NewReplacer("/var/run/token", token, "http://p:4040", server.URL()).Replace(text)
	cut := strings.Index(text, "profiling \"feature\"")
	alloyFile(t, dir, "config/modules.alloy", text[:cut])
	alloyFile(t, dir, "config/main.alloy", text[cut:])
	alloyFile(t, dir, "config/README.md", "not a configuration")
	env := []string{"HOSTNAME=node-1"}
	p := runFile(t, env, filepath.Join(dir, "config"))
	p.wait("the targets of one node", func() string {
		got := p.targetLines()
		return unless(strings.Contains(got, "feature/cpu ") && strings.Contains(got, "source=\"pprof\""), "%s", got)
	})
	p.sameTargets(env, converted(t, env, filepath.Join(dir, "config")))
	waitProfiles(t, server, 3, func(r *pyroscope.Received) bool {
		return r.Labels["cluster"] == "lab" && r.Labels["source"] == "pprof" && r.Labels["job"] == ""
	})
	p.stop()
	noneRefused(t, server)
}

// A profile goes to two destinations, to one of them through rules that the other does not have.
func TestAlloyRulesOfOneWay(t *testing.T) {
	t.Parallel()
	whole, reduced := newPyroscope(t, pyroscope.Options{}), newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	file := alloyFile(t, t.TempDir(), "config.alloy", `
pyroscope.scrape "s" {
  targets = [{"__address__" = "`+tg.Addr()+`", "service_name" = "cart", "pod" = "cart-1"}]
  forward_to = [pyroscope.write.whole.receiver, pyroscope.relabel.r.receiver]
  scrape_interval = "1s"
  profiling_config {
    profile.process_cpu { enabled = false }
    profile.block { enabled = false }
    profile.mutex { enabled = false }
    profile.memory { enabled = false }
  }
}
pyroscope.relabel "r" {
  forward_to = [pyroscope.write.reduced.receiver]
  rule {
    action = "labeldrop"
    regex  = "pod|instance"
  }
}
pyroscope.write "whole" { endpoint { url = "`+whole.URL()+`" } }
pyroscope.write "reduced" { endpoint { url = "`+reduced.URL()+`" } }
`)
	for _, path := range []string{file, converted(t, nil, file)} {
		p := runFile(t, nil, path)
		waitProfiles(t, whole, 2, nil)
		waitProfiles(t, reduced, 2, nil)
		p.stop()
		waitSeries(t, whole, `__name__="goroutine" instance="`+tg.Addr()+`" pod="cart-1" service_name="cart"`)
		waitSeries(t, reduced, `__name__="goroutine" service_name="cart"`)
		noneRefused(t, whole)
		noneRefused(t, reduced)
	}
}

// Each of many mistakes is an error with its place: those of the language, and those that only the
// tables of the configuration know (an action, a regex, a role, a scheme, a range).
func TestAlloyManyMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := alloyFile(t, dir, "config.alloy", `discovery.kubernetes "k" {
  role = "pid"
  namespace { }
}
discovery.relable "a" { }
discovery.relabel "b" {
  targets = discovery.kubernetes.nosuch.targets
  rule {
    action  = null
    replace = "x"
  }
  rule {
    action = "kep"
    regex  = "a(b"
  }
}
pyroscope.scrape "s" {
  targets         = concat(discovery.kubernetes.k.targets, [{"service_name" = "x"}])
  forward_to      = [pyroscope.write.w.receiver]
  scrape_interval = "1d"
  scheme          = "ftp"
  profiling_config {
    profile.cpu { }
  }
}
pyroscope.write "w" {
  endpoint {
    url            = sting.format("x")
    remote_timeout = "0s"
    basic_auth {
      password = [5]
    }
  }
}
pyroscope.relabel "r" {
  forward_to = [pyroscope.write.w.receiver]
  rule {
    regex        = "("
    target_label = "x"
  }
}
`)
	r := call(t, "", "check", file)
	places := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(file)+`:(\d+:\d+): `).FindAllStringSubmatch(r.stderr, -1)
	var got []string
	for _, m := range places {
		got = append(got, m[1])
	}
	t.Logf("%s", r.stderr)
	want := "2:10 3:3 5:1 7:13 9:15 10:5 13:14 18:61 20:21 21:21 23:5 28:22 29:22 31:18 38:20"
	expect(t, strings.Join(got, " ") == want && r.code == 1, "%d: errors at %q", r.code, strings.Join(got, " "))
}

// TestAlloyReceives pushes as an SDK does to pyroscope.receive_http: the profile passes pyroscope.relabel
// and arrives. The file has no scrape.
func TestAlloyReceives(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	host := loop.Host()
	p := runFile(t, nil, alloyFile(t, t.TempDir(), "config.alloy", `
pyroscope.receive_http "sdk" {
	http {
		listen_address = "`+host+`"
		listen_port    = 4040
	}
	forward_to = [pyroscope.relabel.team.receiver]
}
pyroscope.relabel "team" {
	forward_to = [pyroscope.write.w.receiver]
	rule {
		target_label = "team"
		replacement  = "x"
	}
}
pyroscope.write "w" {
	endpoint { url = "`+server.URL()+`" }
}
`))
	now := time.Now().Unix()
	r, err := http.Post(fmt.Sprintf("http://%s:4040/ingest?name=app&format=folded&from=%d&until=%d", host, now-10, now),
		"text/plain", strings.NewReader("main;work 5\n"))
	must(t, err)
	r.Body.Close()
	require(t, r.StatusCode == 200, "%s\n%s", r.Status, p.stderr.String())
	got := waitProfiles(t, server, 1, nil)[0].Labels
	expect(t, got["service_name"] == "app" && got["team"] == "x", "labels %v", got)
}

// The kind of a configuration shows in its name or in how it begins, on standard input too.
func TestAlloyOnStandardInput(t *testing.T) {
	t.Parallel()
	text := "// a comment\n/* another */ pyroscope.write \"w\" {\n  endpoint { url = \"http://127.0.0.1:1\" }\n}\n" +
		"pyroscope.scrape \"s\" {\n  targets = [{\"__address__\" = \"127.0.0.1:1\"}]\n" +
		"  forward_to = [pyroscope.write.w.receiver]\n}\n"
	good := "<stdin>: the configuration is good\n"
	file := alloyFile(t, t.TempDir(), "config", text)
	yaml := ends(t, call(t, text, "convert", "-"), 0, "job_name: \"s\"", "*")
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		out   string
	}{
		{text, []string{"check", "--config", "-"}, 0, good},
		{text, []string{"check", "-"}, 0, good},
		{yaml.stdout, []string{"check", "-"}, 0, good},
		{"", []string{"check", file}, 0, "the configuration is good\n"},
		{text, []string{"discover", "--config", "-"}, 0, `"job":"s"`},
		{text + "x = 1\n", []string{"check", "-"}, 1, "<stdin>:9:1: x: unknown attribute"},
		{text + "x = 1\n", []string{"run", "--config", "-"}, 1, "<stdin>:9:1: "},
		{"nosuch: 1\n", []string{"check", "-"}, 1, "<stdin>:1:1: "},
		{text, []string{"convert", "--diff", file, "-"}, 2, "standard input"},
	} {
		r := call(t, c.stdin, c.args...)
		expect(t, r.code == c.code && strings.Contains(r.stdout+r.stderr, c.out),
			"%q: %d, expected %d and %q\n%s%s", c.args, r.code, c.code, c.out, r.stdout, r.stderr)
	}
}

// A mistake on the line of a secret does not show it.
func TestAlloyKeepsSecretsOutOfErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, line := range []string{
		`password "hunter-2"`, `password "hunter_2" x`, `password = "hunter-2" "hunter3"`, `password = "hunter2" + 5`,
		`password = ["hunter2"]`, "password = `hunter2", `password = "hunter2`, `password = "hunter2\q"`, `password = "hunter2\x00"`,
		`password = "hunter2".x`, `password = -"hunter2"`, `password = string.format("%d", "hunter2")`,
		`password = encoding.from_json("hunter2")`, `password = encoding.from_base64("hunter2!")`, `password 'hunter2'`,
		`password: "hunter2"`, `password = "x"` + "\n" + `password_file = "/hunter2"`, `password = "a\xffhunter2"`,
	} {
		file := alloyFile(t, dir, fmt.Sprint(i, ".alloy"), "pyroscope.scrape \"s\" {\n targets = [{\"__address__\" = \"h:1\"}]\n"+
			" forward_to = [pyroscope.write.w.receiver]\n}\npyroscope.write \"w\" {\n endpoint {\n url = \"http://h\"\n basic_auth {\n"+
			"  username = \"u\"\n  "+line+"\n  }\n }\n}\n")
		r := call(t, "", "check", file)
		expect(t, !strings.Contains(r.stderr+r.stdout, "hunter") && (r.code == 1 || strings.Contains(line, "format")),
			"%s: %d, %s", line, r.code, r.stderr+r.stdout)
	}
}

// Files that are made to cost: each is refused with a message at a place, soon and in little memory.
func TestAlloyHostileFiles(t *testing.T) {
	t.Parallel()
	bin(t)
	dir := t.TempDir()
	self := filepath.Join(dir, "self.alloy")
	const sink = "pyroscope.write \"w\" {\nendpoint {\nurl = \"http://h\"\n}\n}\n"
	const scrape = "pyroscope.scrape \"s\" {\nforward_to = [pyroscope.write.w.receiver]\ntargets = [{\"__address__\" = \"h:1\"}]\n}\n"
	many := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := 0; i < n; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	tests := []struct{ name, text, message string }{
		{"large", "// " + strings.Repeat("x", 10<<20), "larger than 4194304 bytes"},
		{"arrays", "a = " + strings.Repeat("[", 10000) + strings.Repeat("]", 10000), ":1:69: brackets or operators nested more than 64 deep"},
		{"objects", "a = " + strings.Repeat("{a=", 10000) + strings.Repeat("}", 10000), "nested more than 64 deep"},
		{"parentheses", "a = " + strings.Repeat("(", 10000) + "1" + strings.Repeat(")", 10000), "nested more than 64 deep"},
		{"blocks", strings.Repeat("a { ", 10000) + strings.Repeat("}", 10000), "blocks nested more than 64 deep"},
		{"cycle", "discovery.relabel \"a\" {\ntargets = discovery.relabel.b.output\n}\n" +
			"discovery.relabel \"b\" {\ntargets = discovery.relabel.a.output\n}\n", ":5:11: discovery.relabel.b.targets: discovery.relabel.a refers to itself"},
		{"self", "import.file \"a\" {\nfilename = \"" + self + "\"\n}\nimport.file \"b\" {\nfilename = \"" + self + "\"\n}\n",
			"imports itself: " + self},
		{"module", "declare \"a\" {\na \"x\" { }\n}\na \"y\" { }\n", "a module that contains itself"},
		{"modules", many(16, func(i int) string {
			return fmt.Sprintf("declare \"d%d\" {\n%s}\n", i, many(10*i/(i|1), func(k int) string { return fmt.Sprintf("d%d \"x%d\" { }\n", i-1, k) }))
		}) + "d15 \"a\" { }\n", "more than 20000 components"},
		{"foreach", strings.Repeat("foreach \"f\" {\ncollection = [1,2,3,4,5,6,7,8]\nvar = \"v\"\ntemplate {\n", 12) + strings.Repeat("}\n}\n", 12), "more than 20000 modules"},
		{"doubling", "declare \"d\" {\nargument \"v\" { }\nexport \"o\" {\nvalue = argument.v.value + argument.v.value\n}\n}\n" + many(300, func(i int) string {
			if i == 0 {
				return "d \"i0\" {\nv = \"aaaa\"\n}\n"
			}
			return fmt.Sprintf("d \"i%d\" {\nv = d.i%d.o\n}\n", i, i-1)
		}), "a string of more than 1 MiB"},
		{"labels", scrape + "pyroscope.write \"w\" {\nexternal_labels = {" + many(45000, func(i int) string { return fmt.Sprintf("l%d = \"x\",", i) }) +
			"}\nendpoint {\nurl = \"http://h\"\n}\n}\n", ""},
		{"headers", scrape + "pyroscope.write \"w\" {\nendpoint {\nurl = \"http://h\"\nheaders = {" +
			many(45000, func(i int) string { return fmt.Sprintf("l%d = \"x\",", i) }) + "}\n}\n}\n", ""},
		{"arguments", scrape + sink + "declare \"d\" {\n" + many(15000, func(i int) string { return fmt.Sprintf("argument \"a%d\" { }\n", i) }) +
			"}\nd \"x\" {\n" + many(15000, func(i int) string { return fmt.Sprintf("a%d = 1\n", i) }) + "}\n", ""},
		{"declares", scrape + sink + many(18000, func(i int) string { return fmt.Sprintf("declare \"d%d\" { }\nd%d \"x\" { }\n", i, i) }), ""},
	}
	for _, tt := range tests {
		cmd := command(t, "check", alloyFile(t, dir, tt.name+".alloy", tt.text))
		if !instrumented(t) {
			limitMemory(cmd, 256<<10)
		}
		r := callCommand(t, cmd, "")
		t.Logf("%-12s %8d bytes: exit code %d, %v", tt.name, len(tt.text), r.code, cmd.ProcessState.UserTime())
		expect(t, (r.code == 1) == (tt.message != "") && strings.Contains(r.stderr, tt.message) && len(r.stderr) <= 100000,
			"%s: %d, %.500s", tt.name, r.code, r.stderr)
	}
}

// limitMemory lets the program have so many KiB of address space. (The maximum that the kernel reports of
// a child has that of its parent in it.)
func limitMemory(cmd *exec.Cmd, kib int) {
	cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, kib), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
