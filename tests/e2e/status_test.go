package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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
	if err := json.Unmarshal([]byte(r.stdout), &document); err != nil || r.code != exitPeer || document.Version == "" ||
		len(document.Failures) != 1 || document.Failures[0].Count != 4 || document.Failures[0].Scrape.Job != "bad" {
		t.Errorf("--json: exit code %d, %v\n%s", r.code, err, r.stdout)
	}
	watching := command(t, "status", "--url", p.admin, "--watch", "--interval", "100ms")
	var out output
	watching.Stdout, watching.Stderr = &out, &out
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watching.Process.Kill(); _ = watching.Wait() })
	p.wait("three times", func() string {
		if text := out.String(); strings.Count(text, "Destinations\n") < 3 || strings.Contains(text, "\x1b") {
			return text
		}
		return ""
	})
	server.Down()
	p.wait("the destination", status(exitPeer, "main: down since "+time.Now().UTC().Format("2006-"), "connection refused",
		"-> nothing listens there", "the oldest waits for"))
	p.stop()
	expectCall(t, exitPeer, "", "connection refused", "status", "--url", p.admin)
	expectCall(t, exitUsage, "", "Did you mean --watch?", "status", "--wach")
	expectCall(t, exitInput, "", "url", "status", "--url", "ftp://x")
}
