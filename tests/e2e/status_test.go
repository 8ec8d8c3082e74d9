package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// `profpull status` shows a process in which all is well, and what is wrong when something is; its exit
// code says which. --json is the document itself, --watch shows it again and again.
func TestStatus(t *testing.T) {
	t.Parallel()
	server, good, bad := newPyroscope(t, pyroscope.Options{}), newTarget(t, target.Options{}), newTarget(t, target.Options{})
	job := func(name string, tg *target.Target) string {
		return "  - job_name: " + name + "\n    profiles: {process_cpu: {enabled: false}}\n    static_configs:\n" + staticTargets(name, tg)
	}
	p := run(t, fmt.Sprintf("global: {scrape_interval: 500ms}\nscrape_configs:\n%s%swrite:\n  - {name: main, url: %q}\n",
		job("good", good), job("bad", bad), server.URL()), "--drain-timeout", "1s")
	status := func(code int, parts ...string) func() string {
		return func() string {
			r := call(t, "", "status", "--url", p.admin)
			text := strings.Join(strings.Fields(r.stdout), " ")
			for _, part := range parts {
				if r.code != code || !strings.Contains(text, part) {
					return fmt.Sprintf("exit code %d, expected %d and %q:\n%s%s", r.code, code, part, r.stdout, r.stderr)
				}
			}
			return ""
		}
	}
	p.wait("all to be well", status(exitDone, "healthy ready", "good 4 0 0 0", "main: up", "Slowest scrapes"))
	for path := range target.Paths {
		bad.SetFault(path, target.HTML)
	}
	p.wait("the failures", status(exitPeer, "bad 0 4 0 0", "4 of job bad: not_pprof_html (down), such as", "static/0, ",
		"-> another page is served at this path", "main: up"))
	r := call(t, "", "status", "--url", p.admin, "--json")
	var document struct {
		Version  string
		Failures []struct {
			Count  int
			Scrape scrape
		}
	}
	err := json.Unmarshal([]byte(r.stdout), &document)
	expect(t, err == nil && r.code == exitPeer && document.Version != "" &&
		len(document.Failures) == 1 && document.Failures[0].Count == 4 && document.Failures[0].Scrape.Job == "bad",
		"--json: exit code %d, %v\n%s", r.code, err, r.stdout)
	watching := command(t, "status", "--url", p.admin, "--watch", "--interval", "100ms")
	var out output
	watching.Stdout, watching.Stderr = &out, &out
	must(t, watching.Start())
	t.Cleanup(func() { _ = watching.Process.Kill(); _ = watching.Wait() })
	p.wait("three times", func() string {
		text := out.String()
		return unless(strings.Count(text, "Destinations\n") >= 3 && !strings.Contains(text, "\x1b"), "%s", text)
	})
	server.Down()
	p.wait("the destination", status(exitPeer, "main: down since "+time.Now().UTC().Format("2006-"), "connection refused",
		"-> nothing listens there", "the oldest waits for"))
	p.stop()
	expectCall(t, exitPeer, "", "connection refused", "status", "--url", p.admin)
	expectCall(t, exitUsage, "", "Did you mean --watch?", "status", "--wach")
	expectCall(t, exitInput, "", "url", "status", "--url", "ftp://x")
}

// oneLine is the line of a text that has all parts, or "".
func oneLine(text string, parts ...string) string {
	for _, line := range strings.Split(text, "\n") {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return line
		}
	}
	return ""
}

// Ten set-ups that are wrong in the usual ways: one line names what is wrong and what to do about it,
// in the log, in `discover --explain` or in `check`. docs/operating.md quotes these lines.
func TestWrongSetupsAreExplained(t *testing.T) {
	t.Parallel()
	docs := strings.Join(strings.Fields(readText(t, "../../docs/operating.md")), " ")
	oneLineHas := func(t *testing.T, text string, parts ...string) {
		t.Helper()
		expect(t, oneLine(text, parts...) != "", "no line with all of %q:\n%s", parts, text)
		for _, part := range parts {
			expect(t, len(part) <= 30 || strings.Contains(docs, part), "docs/operating.md does not quote %q", part)
		}
	}
	t.Run("pods", func(t *testing.T) {
		t.Parallel()
		cluster, env := newCluster(t)
		pod := func(name, phase, key string) kube.Pod {
			return kube.Pod{Namespace: "shop", Name: name, IP: "10.1.2.3", Phase: phase,
				Annotations: grafana(key, "true", "cpu.port", "8080"), Containers: []kube.Container{container("main", 8080)}}
		}
		cluster.Put(pod("typo", "", "cpu.scrap"))
		cluster.Put(pod("pending", "Pending", "cpu.scrape"))
		oneLineHas(t, explain(t, exitDone, env, "--pod", "shop/typo").stdout,
			"shop/typo", "The annotation profiles.grafana.com/cpu.scrap has no meaning here; rename it to profiles.grafana.com/cpu.scrape")
		oneLineHas(t, explain(t, exitDone, env, "--pod", "shop/pending").stdout, "shop/pending",
			"its phase is Pending. It becomes a target when its containers run; `kubectl describe pod` says what it waits for.")
		cluster.Forbid("pods", "", 403)
		r := explain(t, exitPeer, env)
		oneLineHas(t, r.stderr, "level=error", "not allowed to list pods in the whole cluster: apply a ClusterRole with the verbs list and watch on pods, and bind it to the service account")
	})
	t.Run("process", func(t *testing.T) {
		t.Parallel()
		tg, tenants := newTarget(t, target.Options{}), newPyroscope(t, pyroscope.Options{Multitenant: true})
		tg.SetFault("/debug/pprof/block", target.NotFound)
		tg.SetFault("/debug/pprof/profile", target.CPUInUse)
		secure := httptest.NewUnstartedServer(http.NotFoundHandler())
		secure.Config.ErrorLog = log.New(io.Discard, "", 0)
		secure.StartTLS()
		t.Cleanup(secure.Close)
		p := run(t, fmt.Sprintf("global: {scrape_interval: 2s, scrape_timeout: 2s}\nscrape_configs:\n"+
			"  - job_name: shop\n    static_configs:\n%s"+
			"  - job_name: port\n    static_configs: [{targets: ['127.0.0.1:1'], labels: {service_name: checkout}}]\n"+
			"write:\n  - {name: down, url: 'http://127.0.0.1:1'}\n  - {name: tenants, url: %q}\n  - {name: secure, url: %q}\n",
			staticTargets("cart", tg), tenants.URL(), secure.URL), "--drain-timeout", "1s")
		for _, row := range [][]string{
			{"job=port", "source=static/0", "service=checkout", "reason=connect", "connection refused", "nothing answers there: check the port"},
			{"job=shop", "service=cart", "type=block", "reason=http_404", "the program does not serve this type at this path: set its path, or switch the type off in profiles"},
			{"job=shop", "type=process_cpu", "reason=cpu_in_use", "a process can run one CPU profile at a time: end the other profiler"},
			{"endpoint=down", "connection refused", "nothing listens there, or a firewall is in between: check host and port"},
			{"endpoint=tenants", "no org id", "the server wants credentials: set basic_auth, authorization or tenant_id"},
			{"endpoint=secure", "check that the server speaks TLS on this port, and tls_config: ca_file for a private authority"},
		} {
			p.wait(fmt.Sprint(row), func() string {
				if text := p.stderr.String(); oneLine(text, row...) == "" {
					return text
				}
				return ""
			})
			oneLineHas(t, p.stderr.String(), row...)
			line := oneLine(p.stderr.String(), row...)
			expect(t, strings.Count(line, " hint=") == 1, "expected one hint in: %s", line)
		}
		p.wait("the same in status", func() string {
			r := call(t, "", "status", "--url", p.admin)
			text := strings.Join(strings.Fields(r.stdout), " ")
			for _, part := range []string{"of job port: connect (down), such as static/0", "-> nothing answers there", "http_404 (",
				"-> the program does not serve this type", "cpu_in_use (down)", "-> a process can run one CPU profile",
				"-> nothing listens there", "-> the server wants credentials", "-> check that the server speaks TLS"} {
				if r.code != exitPeer || !strings.Contains(text, part) {
					return fmt.Sprintf("exit code %d, expected %q in:\n%s", r.code, part, r.stdout)
				}
			}
			return ""
		})
		for page, parts := range map[string][]string{
			"/targets":      {"→ nothing answers there", "→ the program does not serve this type", "→ a process can run one CPU profile"},
			"/destinations": {"connection refused", "→ nothing listens there", "→ the server wants credentials", "→ check that the server speaks TLS"},
		} {
			_, text := p.get(page)
			for _, part := range parts {
				expect(t, strings.Contains(text, part), "%s: expected %q in:\n%s", page, part, text)
			}
		}
		p.stop()
	})
	t.Run("typo", func(t *testing.T) {
		t.Parallel()
		file := writeConfig(t, "scrape_configs: [{job_name: a, scrape_intervall: 15s}]\nwrite: [{url: 'http://127.0.0.1:1'}]\n")
		oneLineHas(t, call(t, "", "check", "--config", file).stderr, "profpull.yaml:1:", "scrape_intervall", `unknown key; did you mean "scrape_interval"?`)
	})
}
