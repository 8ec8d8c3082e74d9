package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/target"
)

const cpuType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

// pagesProgram keeps the profiles of a busy program and of fakes, and waits until some are stored.
func pagesProgram(t *testing.T, targets string, services ...string) *program {
	t.Helper()
	p := run(t, `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: seen
    profiles: {process_cpu: {seconds: 1s}}
    static_configs:
`+targets+`
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	for _, service := range services {
		p.wait("profiles of "+service, func() string {
			status, body := p.get("/api/v1/top?service=" + url.QueryEscape(service) + "&type=" + cpuType)
			return unless(status == 200 && strings.Contains(body, `"self":`), "%s", body)
		})
	}
	return p
}

const readyPage = `document.documentElement.dataset.ready === "1"`

// A flame graph, a difference and the targets, as people see them: drawn, without an error of a
// script, with the functions of the busy program in them. The pictures are in
// $BUILD/screenshots.
func TestPages(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	address := startLoadgen(t)
	p := pagesProgram(t, `      - {targets: ["`+address+`"], labels: {service_name: busy}}
      - {targets: ["127.0.0.1:1"], labels: {service_name: gone}}
`, "busy")

	// A short profile of a program that is a little busy may have missed it.
	p.wait("samples of main.burnCPU", func() string {
		_, body := p.get("/api/v1/top?service=busy&limit=100000&type=" + cpuType)
		return unless(strings.Contains(body, "main.burnCPU"), "%s", body)
	})
	b.look(1400, 900, "light")
	// The canvas is drawn in the browser's next frame, which may come late on a busy machine.
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage+" && profpull.flame.drawn >= 5")
	rows := b.text(`document.querySelector("#table tbody").innerText`)
	expect(t, strings.Contains(rows, "main.burnCPU"), "the table has no main.burnCPU: %.500s", rows)
	// The drawing has colours.
	atLeast(t, "colours of the flame graph", b.eval(`(() => {
		const c = profpull.flame.canvas;
		const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		const seen = new Set();
		for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 0) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
		return seen.size;
	})()`).(float64), 5)
	b.shoot("flame-graph")

	// Search with share, callers and callees, and the view in the address.
	b.eval(`(() => { const s = document.getElementById("search"); s.value = "burnCPU"; s.dispatchEvent(new Event("input")); })()`)
	found := b.text(`document.getElementById("found").textContent`)
	expect(t, strings.Contains(found, "%") && !strings.HasPrefix(found, "0.0"), "search found %q", found)
	// Names may break after "/" and ".", and before "(", and the table's edge can be moved.
	equal(t, "the parts of the name",
		b.text(`[...[...document.querySelectorAll("#table td.name button")].find((x) => x.textContent === "main.burnCPU").childNodes].map((x) => x.textContent || "|").join("")`), "main.|burnCPU")
	equal(t, "the arrow key and the double click change the width by", b.text(`(() => {
		const d = document.getElementById("divider");
		const w = () => d.parentElement.getBoundingClientRect().width;
		const before = w();
		d.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
		const wider = w() - before;
		d.dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
		return String(Math.round(wider) + " " + Math.round(w() - before));
	})()`), "20 0")
	b.eval(`[...document.querySelectorAll("#table td.name button")].find((x) => x.textContent === "main.burnCPU").click()`)
	shown := b.eval(`!document.getElementById("sandwich").hidden && profpull.callees.graph.n > 1 && location.search.includes("fn=main.burnCPU")`)
	expect(t, shown == true, "no callers and callees: %s", b.text("location.search"))
	link := b.text("profpull.exactLink()")
	b.open(link, readyPage)
	name := b.text(`document.getElementById("sandwich-name").textContent`)
	expect(t, name == "main.burnCPU", "the link shows %q: %s", name, link)
	b.shoot("callers-and-callees")

	// Zoom, by the keyboard.
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage)
	b.eval(`(() => { const c = profpull.flame.canvas; for (const key of ["ArrowDown", "ArrowDown", "Enter"]) c.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); })()`)
	zoom := b.text("location.search")
	expect(t, strings.Contains(zoom, "zoom="), "the keys have not zoomed: %s", zoom)

	// Arrow keys move the range by half of its length, once the totals are there.
	b.open(p.admin+"/?service=busy&from=1700000000000&until=now&type="+cpuType, readyPage+` && profpull.timeline.data !== null`)
	moved := b.text(`(() => {
		let moved = "";
		profpull.timeline.onChoose = (from, until, isBase) => { moved = JSON.stringify([from, until, isBase]); };
		profpull.timeline.data.from = 1000; profpull.timeline.data.until = 3000;
		profpull.timeline.canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}));
		return moved;
	})()`)
	expect(t, moved == "[0,2000,false]", "the arrow key has moved the range to %s", moved)

	b.look(390, 844, "dark")
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage)
	atMost(t, "width of the page on a phone", b.eval("document.documentElement.scrollWidth").(float64), 390)
	b.shoot("flame-graph-phone-dark")

	b.look(1400, 900, "dark")
	b.open(p.admin+"/?service=busy&compare=1&from=now-2s&base_from=now-5m&base_until=now&type="+cpuType, readyPage)
	head := b.text(`document.querySelector("#table thead").innerText`)
	has(t, "the head", head, "Before", "Change")
	b.shoot("difference-dark")

	b.look(1400, 900, "light")
	wait(t, "the failure of a target", func() string {
		_, body := p.get("/targets?health=down")
		return unless(strings.Contains(body, "refused"), "%s", body)
	})
	b.open(p.admin+"/targets", `document.querySelectorAll("#targets tbody tr").length > 5`)
	first := b.text(`document.querySelector("#targets tbody tr").innerText`)
	has(t, "first", first, "gone", "down")
	// One target is one block with one menu, whose buttons make its scrapes due.
	equal(t, "blocks, addresses, menus and whether each has all types", b.text(`(() => {
		const blocks = [...document.querySelectorAll("#targets tbody.target")];
		const addresses = blocks.map((x) => x.querySelector("tr.head summary.mono").innerText);
		return [blocks.length, new Set(addresses).size, document.querySelectorAll("#targets .menu").length,
			blocks.every((x) => x.querySelectorAll(".menu button").length === x.rows.length)].join(" ");
	})()`), "2 2 2 true")
	b.shoot("targets")
	b.open(p.admin+"/destinations", `document.body.innerText.includes("accepted")`)
	b.shoot("destinations")
	b.open(p.admin+"/config", `document.getElementById("yaml").innerText.includes("scrape_configs:")`)
	b.sound()
}

// 100,000 nodes are drawn, and moved about without waiting.
func TestLargeFlameGraph(t *testing.T) {
	t.Parallel()
	functions := 100000
	if instrumented(t) {
		functions = 5000 // the program needs minutes for 100,000 nodes, and the browser does not wait so long
	}
	b := newBrowser(t)
	large := newTarget(t, target.Options{Functions: 1, Bodies: map[string][]byte{
		"/debug/pprof/profile": pprof.Gzip(pprof.Make("cpu", pprof.Options{Functions: functions}))}})
	p := pagesProgram(t, `      - {targets: ["`+large.Addr()+`"], labels: {service_name: large}}
`, "large")
	b.look(1400, 900, "light")
	b.open(p.admin+"/?service=large&from=now-5m&max_nodes=1000000&type="+cpuType, readyPage)
	atLeast(t, "nodes of the graph", b.eval("profpull.graph.n").(float64), float64(functions))
	// The time of a frame does not depend on the number of nodes, so neither does what is drawn.
	drawn := b.eval("profpull.flame.drawn").(float64)
	expect(t, drawn >= 1000 && drawn <= 60000, "%v nodes are drawn", drawn)
	ms := b.eval(`(() => { const f = profpull.flame; const t = performance.now(); for (let i = 0; i < 20; i++) f.draw(performance.now()); return (performance.now() - t) / 20; })()`)
	t.Logf("a frame with %v of %d nodes takes %.1f ms", drawn, functions, ms)
	b.shoot("large")
	b.sound()
}

// Names from outside are text, whatever they look like.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	const name, hostile = "example.com/shop/", "<b onclick=x>/sh/"
	profile := bytes.ReplaceAll(pprof.Make("cpu", pprof.Options{}), []byte(name), []byte(hostile))
	fake := newTarget(t, target.Options{Bodies: map[string][]byte{"/debug/pprof/profile": pprof.Gzip(profile)}})
	const service = `</script><img src=x onerror=alert(1)>`
	p := pagesProgram(t, `      - {targets: ["`+fake.Addr()+`"], labels: {service_name: "`+service+`"}}
`, service)
	b.open(p.admin+"/?from=now-5m&labels="+url.QueryEscape(`service_name!="<u>"`), readyPage)
	rows := b.text(`document.querySelector("#table tbody").innerText`)
	expect(t, strings.Contains(rows, hostile), "the table has no %s: %s", hostile, rows)
	for _, path := range []string{"/", "/targets"} {
		if path != "/" {
			b.open(p.admin+path, `document.querySelectorAll("#targets tbody tr").length > 0`)
		}
		n := b.eval(`document.querySelectorAll("img, u, [onclick], [onerror]").length`).(float64)
		expect(t, n == 0, "%s has %v elements that came from names", path, n)
	}
	b.sound()
}

// Without JavaScript the page has the form, the flame graph and the table; and the same data is
// there as JSON and as a profile.
func TestPagesWithoutScripts(t *testing.T) {
	t.Parallel()
	address := startLoadgen(t)
	p := pagesProgram(t, `      - {targets: ["`+address+`"], labels: {service_name: busy}}
`, "busy")
	p.wait("samples of main.burnCPU", func() string {
		_, body := p.get("/api/v1/top?service=busy&limit=100000&type=" + cpuType)
		return unless(strings.Contains(body, `"main.burnCPU"`), "%s", body)
	})
	_, page := p.get("/?service=busy")
	has(t, "the page", page, `<option selected>busy</option>`, `<svg class="flame"`, `<title>main.burnCPU: `, `<td class="name">main.<wbr>burnCPU</td>`)
	// A chosen type stays chosen if the range has none of it.
	const goroutine = "goroutine:goroutine:count:goroutine:count"
	for query, parts := range map[string][]string{
		"service=nobody&type=" + goroutine:                                          {`<option selected>nobody</option>`, `<option value="` + goroutine + `" selected>`, "No profiles in this range"},
		"service=busy&from=now-2h&until=now-1h&type=" + cpuType:                     {`<option selected>busy</option>`, `<option value="` + cpuType + `" selected>`, "No profiles in this range"},
		"service=nobody&from=now-2h":                                                {`<option selected>nobody</option>`, `value="now-2h"`, "No profiles in this range"},
		"service=busy&compare=1&base_from=now-3h&base_until=now-2h&type=" + cpuType: {`<option value="` + cpuType + `" selected>`, "No profiles in the range before"},
	} {
		_, page := p.get("/?" + query)
		for _, part := range parts {
			expect(t, strings.Contains(page, part), "the page for %s has no %s", query, part)
		}
	}
	resp, err := http.Get(p.admin + "/")
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	csp := resp.Header.Get("Content-Security-Policy")
	has(t, "the policy", csp, "default-src 'none'")
	lacks(t, "the policy", csp, "unsafe")
	for path, part := range map[string]string{
		"/api/v1/services":                          `"busy"`,
		"/api/v1/types?service=busy":                cpuType,
		"/api/v1/labels?service=busy":               `"service_name"`,
		"/api/v1/labels?service=busy&name=instance": address,
		"/api/v1/flamegraph?service=busy":           `"main.burnCPU"`,
		"/api/v1/flamegraph?service=busy&compare=1": `"diff":true`,
		"/api/v1/top?service=busy":                  `{"name":"`,
		"/api/v1/timeline?service=busy":             `"points":[[`,
		"/api/v1/destinations":                      `"accepted":`,
		"/api/v1/config":                            `scrape_configs:`,
		"/api/v1/targets":                           address,
	} {
		status, body := p.get(path)
		var v any
		if err := json.Unmarshal([]byte(body), &v); status != 200 || err != nil || !strings.Contains(body, part) {
			t.Errorf("%s: %d, %v, expected %s in %.300s", path, status, err, part, body)
		}
	}
	for path, part := range map[string]string{
		"/api/v1/top?from=yesterday":                                `"from\": expected a time`,
		"/api/v1/top?from=now&until=now-1h":                         `later than`,
		"/api/v1/flamegraph?max_nodes=0":                            `max_nodes`,
		"/api/v1/top?service=busy&labels=" + url.QueryEscape("{a="): `parse error`,
		"/api/v1/top?type=x":                                        `error`,
	} {
		p.answers(path, 400, part)
	}
	if status, body := p.get("/api/v1/top?service=nobody"); status != 200 && status != 404 {
		t.Errorf("an unknown service: %d %s", status, body)
	}
	_, raw := p.get("/api/v1/pprof?service=busy&type=" + cpuType)
	top := pprofTop(t, []byte(raw))
	expect(t, strings.Contains(top, "main.burnCPU"), "the profile has no main.burnCPU:\n%s", top)
}

// TestDroppedTargets reads the label sets that have not become targets, with the rule that dropped
// each, and its labels after each rule: as a page and as JSON, without secrets, and in the present state.
func TestDroppedTargets(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	list := filepath.Join(t.TempDir(), "targets.json")
	write := func(tier string) {
		text := `[{"targets": ["10.9.8.7:80"], "labels": {"tier": "` + tier + `", "__param_token": "geheim", "hostile": "<b>x"}}]`
		must(t, os.WriteFile(list+".new", []byte(text), 0o644))
		must(t, os.Rename(list+".new", list))
	}
	write("test")
	p := run(t, `
scrape_configs:
  - job_name: some
    file_sd_configs: [{files: ["`+list+`"], refresh_interval: 1s}]
    relabel_configs:
      - {source_labels: [tier], target_label: copy}
      - {target_label: __param_key, replacement: verborgen}
      - {action: drop, source_labels: [copy], regex: test|canary}
  - job_name: refused
    static_configs: [{targets: ["10.9.8.7:99999"]}]
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	type target struct {
		ID                            int
		Job, Source, Place, Does, Why string
		Labels                        map[string]string
		Rule                          int
	}
	var all struct{ Dropped []target }
	read := func() string {
		_, body := p.get("/api/v1/dropped")
		all.Dropped = nil
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			return err.Error() + ": " + body
		}
		return ""
	}
	p.wait("both are dropped", func() string {
		if problem := read(); problem != "" {
			return problem
		}
		return unless(len(all.Dropped) == 2, "%v", all)
	})
	first, second := all.Dropped[0], all.Dropped[1]
	expect(t, first.Job == "some" && first.Rule == 3 && strings.HasSuffix(first.Place, ":8") && strings.Contains(first.Does, `regex="test|canary"`) && first.Labels["tier"] == "test" && first.Why == "",
		"the first one is %+v", first)
	expect(t, second.Job == "refused" && second.Rule == 0 && strings.Contains(second.Why, "99999"),
		"the second one is %+v", second)
	var trace struct {
		Steps []struct {
			Rule          int
			Outcome, Does string
			Labels        map[string]string
		}
	}
	id := strconv.Itoa(first.ID)
	status, body := p.get("/api/v1/trace?id=" + id)
	err := json.Unmarshal([]byte(body), &trace)
	require(t, status == 200 && err == nil && len(trace.Steps) == 3, "the trace: %d, %v, %s", status, err, body)
	s := trace.Steps
	expect(t, s[0].Labels["copy"] == "test" && s[0].Outcome == "kept" && s[2].Outcome == "dropped" && s[2].Rule == 3,
		"the trace is %s", body)
	pages := map[string][]string{
		"/api/v1/dropped":        nil,
		"/api/v1/trace?id=" + id: nil,
		"/dropped":               {"10.9.8.7:80", "rule 3", "test|canary", "trace?id=" + id, "&lt;b&gt;x", "99999"},
		"/dropped?job=refused":   {"99999"},
		"/trace?id=" + id:        {"As discovered", "copy=test", "dropped"},
	}
	for path, parts := range pages {
		status, page := p.get(path)
		expect(t, status == 200 && !strings.Contains(page, "geheim") && !strings.Contains(page, "verborgen") && (parts == nil || !strings.Contains(page, "<b>x")),
			"%s: %d, or it has what it must not have: %s", path, status, page)
		for _, part := range parts {
			expect(t, strings.Contains(page, part), "%s has no %q: %s", path, part, page)
		}
	}
	for path, want := range map[string]int{"/trace?id=x": 400, "/api/v1/trace?id=": 400, "/api/v1/trace?id=99999": 404, "/trace?id=99999": 404} {
		p.answers(path, want, "dropped target")
	}
	b.look(1400, 900, "light")
	b.open(p.admin+"/dropped", `document.querySelectorAll("#dropped tbody tr").length === 2`)
	b.shoot("dropped")
	b.open(p.admin+"/trace?id="+id, `document.querySelectorAll("#trace tbody tr").length === 3`)
	b.shoot("trace")
	b.sound()
	write("live")
	p.wait("the first one is a target", func() string {
		if problem := read(); problem != "" {
			return problem
		}
		return unless(len(all.Dropped) == 1, "%v", all)
	})
	// Now it is a target, which has its rules too.
	of := "trace?job=some&source=" + url.QueryEscape(first.Source) + "&address=10.9.8.7%3A80"
	status, body = p.get("/api/v1/" + of)
	trace.Steps = nil
	err = json.Unmarshal([]byte(body), &trace)
	require(t, status == 200 && err == nil && len(trace.Steps) == 3,
		"the trace of a target: %d, %v, %s", status, err, body)
	s = trace.Steps
	expect(t, s[0].Labels["copy"] == "live" && s[2].Outcome == "kept" && s[2].Labels["tier"] == "live",
		"the trace of a target is %s", body)
	status, page := p.get("/" + of)
	expect(t, status == 200 && strings.Contains(page, "copy=live") && !strings.Contains(page+body, "geheim") && !strings.Contains(page+body, "verborgen"),
		"the page of a target: %d, or it has what it must not have: %s", status, page)
	p.wait("the page of targets to lead there", func() string {
		_, page := p.get("/targets")
		return unless(strings.Contains(page, "trace?job=some&amp;source="), "%s", page)
	})
	for path, want := range map[string]int{
		"trace?job=some&address=10.9.8.7:80":            400,
		"trace?source=x&address=10.9.8.7:80":            400,
		"trace?job=some&source=x&address=10.9.8.7:80":   404,
		strings.Replace(of, "job=some", "job=other", 1): 404,
	} {
		for _, below := range []string{"/", "/api/v1/"} {
			p.answers(below+path, want, "target")
		}
	}
	b.open(p.admin+"/"+of, `document.querySelectorAll("#trace tbody tr").length === 3`)
	b.shoot("trace-target")
	b.sound()
}

// A scrape is brought forward on request, by POST only.
func TestProfileNow(t *testing.T) {
	t.Parallel()
	fake := newTarget(t, target.Options{})
	var many []string
	for i := 1; i <= 110; i++ {
		many = append(many, fmt.Sprintf("127.1.1.%d:1", i))
	}
	p := run(t, `
scrape_configs:
  - job_name: many
    scrape_interval: 24h
    profiles: {process_cpu: {enabled: false}, memory: {enabled: true}}
    static_configs: [{targets: [`+strings.Join(many, ", ")+`]}]
  - job_name: slow
    scrape_interval: 24h
    profiles: {process_cpu: {enabled: false}, memory: {enabled: true}}
    static_configs: [{targets: ["`+fake.Addr()+`"], labels: {service_name: now}}]
write: [{name: local, url: "store://`+filepath.Join(t.TempDir(), "store")+`"}]
`)
	const path = "/debug/pprof/allocs"
	p.wait("the scrape", func() string {
		_, body := p.get("/targets")
		return unless(strings.Contains(body, `action="api/v1/scrape?job=slow&amp;address=`), "%s", body)
	})
	post := func(query, name, value string) (int, string, string) {
		req, err := http.NewRequest("POST", p.admin+"/api/v1/scrape?"+query, nil)
		must(t, err)
		if name != "" {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		body := bodyOf(t, resp)
		return resp.StatusCode, string(body), resp.Header.Get("Location")
	}
	for _, c := range []struct {
		query, name, value string
		status             int
	}{
		{"", "", "", 400},
		{"job=other", "", "", 404},
		{"job=slow&type=memory", "Sec-Fetch-Site", "cross-site", 403},
	} {
		if status, body, _ := post(c.query, c.name, c.value); status != c.status {
			t.Errorf("%+v: %d %s", c, status, body)
		}
	}
	p.answers("/api/v1/scrape?job=slow", 405)
	n := len(fake.RequestsFor(path))
	require(t, n == 0, "%d scrapes before any was asked for", n)
	if status, body, _ := post("job=slow&type=memory", "", ""); status != 200 || body != "{\"scheduled\":1}\n" {
		t.Errorf("%d %s", status, body)
	}
	p.wait("the scrape that was asked for", func() string {
		if n := len(fake.RequestsFor(path)); n != 1 {
			return strconv.Itoa(n)
		}
		_, body := p.get("/api/v1/targets")
		return unless(strings.Contains(body, `"successes":1`) && strings.Contains(body, `"health":"up"`),
			"%s", body)
	})
	if status, _, location := post("job=slow&type=memory", "Accept", "text/html,*/*"); status != 303 || location != "../../targets" {
		t.Errorf("a browser gets %d, %q", status, location)
	}
	p.wait("the second one", func() string {
		if n := len(fake.RequestsFor(path)); n != 2 {
			return strconv.Itoa(n)
		}
		return ""
	})
	if status, body, _ := post("job=many&type=memory", "", ""); status != 200 || body != "{\"scheduled\":100}\n" {
		t.Errorf("%d %s", status, body)
	}
	const asked = "profpull_scrapes_asked_for_total"
	m := p.metrics()
	expect(t, m.sum(asked, "result", "scheduled") == 102 && m.sum(asked, "result", "surplus") == 10,
		"%v scheduled, %v surplus", m.sum(asked, "result", "scheduled"), m.sum(asked, "result", "surplus"))
}
