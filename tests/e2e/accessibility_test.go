package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// Answers with one line for each violation, and with "none" if there is none. A run without a rule that
// passed has checked nothing.
const axeRun = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.passes.length === 0 ? "no rule was checked" :
	r.violations.map((v) => v.id + " (" + v.impact + "), elements: " + v.nodes.length + ", the first: " +
		v.nodes[0].html.slice(0, 200) + " " + v.nodes[0].failureSummary.slice(0, 400)).join("\n") || "none")`

// accessible fails the test if axe-core finds a violation in the page as it is shown. PROFPULL_AXE names the
// file axe.min.js (make check-pages-axe); without it, nothing is checked.
func (b *browser) accessible(name string) {
	b.t.Helper()
	file := os.Getenv("PROFPULL_AXE")
	if file == "" {
		return
	}
	script, err := os.ReadFile(file)
	must(b.t, err)
	b.call("Runtime.evaluate", map[string]any{"expression": string(script)})
	if found := b.text(axeRun); found != "none" {
		b.t.Errorf("axe-core about %.60s, %s:\n%s", name, b.text(`innerWidth + " " + matchMedia("(prefers-color-scheme: dark)").matches`), found)
	}
}

func (b *browser) press(key string, code int, text string) {
	b.t.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
	b.call("Input.dispatchKeyEvent", event)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code})
}

// walk presses Tab until each link and control of the page has had the focus, and checks that each one shows
// it inside the window.
func (b *browser) walk(name string) {
	b.t.Helper()
	n := int(b.eval(`(() => {
		window.walked = new Set();
		window.toWalk = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")].filter((e) =>
			e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.type !== "hidden");
		return toWalk.length;
	})()`).(float64))
	expect(b.t, n >= 9, "%s has %d links and controls, expected those of the navigation at least", name, n)
	// A script may add or replace controls during the walk, so Tab is pressed as often as needed, with a limit.
	const missed = `toWalk.filter((e) => e.isConnected && !walked.has(e)).map((e) => e.outerHTML.slice(0, 100)).join("\n")`
	for i := 0; i < 2*n && b.eval(missed) != ""; i++ {
		b.press("Tab", 9, "")
		if hidden := b.text(`(() => {
			const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
			walked.add(e);
			const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
			const isInside = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
			return isShown && isInside ? "" : e.outerHTML.slice(0, 200) + " " + style.outline + " " + JSON.stringify(box);
		})()`); hidden != "" {
			b.t.Errorf("%s: the focus cannot be seen on %s", name, hidden)
		}
	}
	equal(b.t, name+": what Tab has not reached", b.text(missed), "")
}

// follow presses Tab until the link with this text in the table has the focus, then Enter, and waits for the page.
func (b *browser) follow(text, ready string) {
	b.t.Helper()
	const focused = `document.activeElement.closest("th") !== null && document.activeElement.textContent`
	for i := 0; b.eval(focused) != text; i++ {
		require(b.t, i != 100, "100 times Tab have not reached the link %s", text)
		b.press("Tab", 9, "")
	}
	b.press("Enter", 13, "\r")
	wait(b.t, "the page of the link "+text, func() string {
		if b.eval(`document.documentElement !== null && document.readyState === "complete" && `+ready) != true {
			return "not yet: " + ready
		}
		return ""
	})
}

// Each state of the page of changes, an overview of many services and the small pages: for axe-core, if it is there, and by
// the keyboard alone.
func TestAccessiblePages(t *testing.T) {
	t.Parallel()
	receive := loop.Host() + ":4040"
	p := run(t, `
receive: {listen: "`+receive+`", allow_unauthenticated: true}
scrape_configs:
  - job_name: seen
    static_configs: [{targets: ["127.0.0.1:1"], labels: {service_name: gone}}]
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	b := newBrowser(t)
	everywhere := func(path, ready string) {
		t.Helper()
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{1400, 400} {
				b.look(width, 1000, scheme)
				b.open(p.admin+path, ready)
			}
		}
	}
	everywhere("/changes", `document.querySelector("#empty") !== null`)
	everywhere("/targets", `document.querySelectorAll("#targets tbody tr").length > 0`)
	for _, path := range []string{"/destinations", "/config", "/links"} {
		everywhere(path, `document.querySelector("h1, li a") !== null`)
	}

	end := time.Now().Truncate(time.Minute)
	push := func(service, pod, version string, at time.Time, functions int) {
		t.Helper()
		labels := map[string]string{"__name__": "process_cpu", "service_name": service, "pod": pod}
		if version != "" {
			labels["version"] = version
		}
		pushAt(t, "http://"+receive, labels, pprof.Make("cpu", pprof.Options{Time: at, Duration: 10 * time.Second, Functions: functions}))
	}
	for i := 0; i < 10; i++ {
		at := end.Add(time.Duration(i-10) * time.Minute)
		version := fmt.Sprintf("v%d", 1+i/5)
		for _, pod := range []string{"a", "b"} {
			push("more", pod+version, version, at, 3+i/5*2)
			push("less", pod+version, version, at, 5-i/5*2)
			push("unversioned", pod, "", at, 3)
			push("steady", pod, "v1", at, 3)
		}
		push("alone", version, version, at, 3)
	}
	for i := 0; i < 300; i++ {
		push(fmt.Sprintf("service-%03d", i), "a", "v1", end, 3)
	}
	p.wait("the services", func() string {
		_, page := p.get("/changes")
		_, first := p.get("/")
		if strings.Count(page, "<th scope=\"row\"") != 3 || !strings.Contains(first, "1 to 100 of 306") {
			return page + first
		}
		return ""
	})
	const list = `document.querySelectorAll("table.overview tbody tr").length === `
	everywhere("/", list+"100")
	everywhere("/changes", list+"3")
	for service, state := range map[string]string{"more": "changed", "less": "changed", "alone": "no_verdict", "unversioned": "no_version",
		"steady": "one_version"} {
		everywhere("/changes?service="+service, `document.querySelector("#verdict")?.dataset.state === "`+state+`"`)
	}
	everywhere("/changes?service=nobody", `document.querySelector("main .panel:not(form)") !== null`)
	everywhere("/changes?from="+url.QueryEscape("no time"), `document.querySelector("#error") !== null`)

	b.mu.Lock()
	b.errs = nil // The browser reports the answer 400 of the last page.
	b.mu.Unlock()
	for _, width := range []int{1400, 400} {
		b.look(width, 1000, "light")
		b.open(p.admin+"/?find=e", list+"100")
		b.walk("the overview")
		b.open(p.admin+"/?find=less", list+"1")
		b.follow("less", `location.pathname === "/profiles" && location.search.includes("service=less") && `+readyPage)
		b.walk("the page of profiles")
		b.open(p.admin+"/changes", list+"3")
		b.walk("the list of changes")
		b.open(p.admin+"/changes", list+"3")
		b.follow("more", `location.pathname === "/changes" && location.search === "?service=more"`)
		b.walk("the changes of a service")
	}
	b.sound()
}
