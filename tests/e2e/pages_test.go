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
			if status != 200 || !strings.Contains(body, `"self":`) {
				return orNothing(body)
			}
			return ""
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
		if !strings.Contains(body, "main.burnCPU") {
			return orNothing(body)
		}
		return ""
	})
	b.look(1400, 900, "light")
	// The canvas is drawn in the browser's next frame, which may come late on a busy machine.
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage+" && profpull.flame.drawn >= 5")
	if rows := b.text(`document.querySelector("#table tbody").innerText`); !strings.Contains(rows, "main.burnCPU") {
		t.Errorf("the table has no main.burnCPU: %.500s", rows)
	}
	// The drawing has colours.
	if colours := b.eval(`(() => {
		const c = profpull.flame.canvas;
		const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		const seen = new Set();
		for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 0) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
		return seen.size;
	})()`).(float64); colours < 5 {
		t.Errorf("the flame graph has %v colours", colours)
	}
	b.shoot("flame-graph")

	// Search with share, callers and callees, and the view in the address.
	b.eval(`(() => { const s = document.getElementById("search"); s.value = "burnCPU"; s.dispatchEvent(new Event("input")); })()`)
	if found := b.text(`document.getElementById("found").textContent`); !strings.Contains(found, "%") || strings.HasPrefix(found, "0.0") {
		t.Errorf("search found %q", found)
	}
	// Names may break after "/" and ".", and before "(", and the table's edge can be moved.
	if parts := b.text(`[...[...document.querySelectorAll("#table td.name button")].find((x) => x.textContent === "main.burnCPU").childNodes].map((x) => x.textContent || "|").join("")`); parts != "main.|burnCPU" {
		t.Errorf("the name breaks as %q", parts)
	}
	if widths := b.text(`(() => {
		const d = document.getElementById("divider");
		const w = () => d.parentElement.getBoundingClientRect().width;
		const before = w();
		d.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
		const wider = w() - before;
		d.dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
		return String(Math.round(wider) + " " + Math.round(w() - before));
	})()`); widths != "20 0" {
		t.Errorf("the arrow key and the double click change the width by %s, expected 20 0", widths)
	}
	b.eval(`[...document.querySelectorAll("#table td.name button")].find((x) => x.textContent === "main.burnCPU").click()`)
	if shown := b.eval(`!document.getElementById("sandwich").hidden && profpull.callees.graph.n > 1 && location.search.includes("fn=main.burnCPU")`); shown != true {
		t.Errorf("no callers and callees: %s", b.text("location.search"))
	}
	link := b.text("profpull.exactLink()")
	b.open(link, readyPage)
	if name := b.text(`document.getElementById("sandwich-name").textContent`); name != "main.burnCPU" {
		t.Errorf("the link shows %q: %s", name, link)
	}
	b.shoot("callers-and-callees")

	// Zoom, by the keyboard.
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage)
	b.eval(`(() => { const c = profpull.flame.canvas; for (const key of ["ArrowDown", "ArrowDown", "Enter"]) c.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); })()`)
	if zoom := b.text("location.search"); !strings.Contains(zoom, "zoom=") {
		t.Errorf("the keys have not zoomed: %s", zoom)
	}

	// Arrow keys move the range by half of its length, once the totals are there.
	b.open(p.admin+"/?service=busy&from=1700000000000&until=now&type="+cpuType, readyPage+` && profpull.timeline.data !== null`)
	moved := b.text(`(() => {
		let moved = "";
		profpull.timeline.onChoose = (from, until, isBase) => { moved = JSON.stringify([from, until, isBase]); };
		profpull.timeline.data.from = 1000; profpull.timeline.data.until = 3000;
		profpull.timeline.canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}));
		return moved;
	})()`)
	if moved != "[0,2000,false]" {
		t.Errorf("the arrow key has moved the range to %s", moved)
	}

	b.look(390, 844, "dark")
	b.open(p.admin+"/?service=busy&from=now-5m&type="+cpuType, readyPage)
	if wide := b.eval("document.documentElement.scrollWidth").(float64); wide > 390 {
		t.Errorf("the page is %v wide on a phone", wide)
	}
	b.shoot("flame-graph-phone-dark")

	b.look(1400, 900, "dark")
	b.open(p.admin+"/?service=busy&compare=1&from=now-2s&base_from=now-5m&base_until=now&type="+cpuType, readyPage)
	if head := b.text(`document.querySelector("#table thead").innerText`); !strings.Contains(head, "Before") || !strings.Contains(head, "Change") {
		t.Errorf("the table of a difference has the columns %q", head)
	}
	b.shoot("difference-dark")

	b.look(1400, 900, "light")
	wait(t, "the failure of a target", func() string {
		_, body := p.get("/targets?health=down")
		if !strings.Contains(body, "refused") {
			return orNothing(body)
		}
		return ""
	})
	b.open(p.admin+"/targets", `document.querySelectorAll("#targets tbody tr").length > 5`)
	if first := b.text(`document.querySelector("#targets tbody tr").innerText`); !strings.Contains(first, "gone") || !strings.Contains(first, "down") {
		t.Errorf("failing targets are not first: %s", first)
	}
	// One target is one block with one menu, whose buttons make its scrapes due.
	if n := b.text(`(() => {
		const blocks = [...document.querySelectorAll("#targets tbody.target")];
		const addresses = blocks.map((x) => x.querySelector("tr.head summary.mono").innerText);
		return [blocks.length, new Set(addresses).size, document.querySelectorAll("#targets .menu").length,
			blocks.every((x) => x.querySelectorAll(".menu button").length === x.rows.length)].join(" ");
	})()`); n != "2 2 2 true" {
		t.Errorf("blocks, addresses, menus and whether each has all types: %s, expected 2 2 2 true", n)
	}
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
		functions = 20000 // the program needs some time for 100,000 nodes, and the browser does not wait so long
	}
	b := newBrowser(t)
	large := newTarget(t, target.Options{Functions: 1, Bodies: map[string][]byte{
		"/debug/pprof/profile": pprof.Gzip(pprof.Make("cpu", pprof.Options{Functions: functions}))}})
	p := pagesProgram(t, `      - {targets: ["`+large.Addr()+`"], labels: {service_name: large}}
`, "large")
	b.look(1400, 900, "light")
	b.open(p.admin+"/?service=large&from=now-5m&max_nodes=1000000&type="+cpuType, readyPage)
	if n := b.eval("profpull.graph.n").(float64); n < float64(functions) {
		t.Errorf("the graph has %v nodes", n)
	}
	// The time of a frame does not depend on the number of nodes, so neither does what is drawn.
	drawn := b.eval("profpull.flame.drawn").(float64)
	if drawn < 1000 || drawn > 60000 {
		t.Errorf("%v nodes are drawn", drawn)
	}
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
	if rows := b.text(`document.querySelector("#table tbody").innerText`); !strings.Contains(rows, hostile) {
		t.Errorf("the table has no %s: %s", hostile, rows)
	}
	for _, path := range []string{"/", "/targets"} {
		if path != "/" {
			b.open(p.admin+path, `document.querySelectorAll("#targets tbody tr").length > 0`)
		}
		if n := b.eval(`document.querySelectorAll("img, u, [onclick], [onerror]").length`).(float64); n != 0 {
			t.Errorf("%s has %v elements that came from names", path, n)
		}
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
		if !strings.Contains(body, `"main.burnCPU"`) {
			return orNothing(body)
		}
		return ""
	})
	_, page := p.get("/?service=busy")
	for _, part := range []string{`<option selected>busy</option>`, `<svg class="flame"`, `<title>main.burnCPU: `, `<td class="name">main.<wbr>burnCPU</td>`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s", part)
		}
	}
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
			if !strings.Contains(page, part) {
				t.Errorf("the page for %s has no %s", query, part)
			}
		}
	}
	resp, err := http.Get(p.admin + "/")
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
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
		if status, body := p.get(path); status != 400 || !strings.Contains(body, part) {
			t.Errorf("%s: %d %s, expected 400 with %s", path, status, body, part)
		}
	}
	if status, body := p.get("/api/v1/top?service=nobody"); status != 200 && status != 404 {
		t.Errorf("an unknown service: %d %s", status, body)
	}
	_, raw := p.get("/api/v1/pprof?service=busy&type=" + cpuType)
	if top := pprofTop(t, []byte(raw)); !strings.Contains(top, "main.burnCPU") {
		t.Errorf("the profile has no main.burnCPU:\n%s", top)
	}
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
		if len(all.Dropped) != 2 {
			return fmt.Sprint(all)
		}
		return ""
	})
	first, second := all.Dropped[0], all.Dropped[1]
	if first.Job != "some" || first.Rule != 3 || !strings.HasSuffix(first.Place, ":8") || !strings.Contains(first.Does, `regex="test|canary"`) || first.Labels["tier"] != "test" || first.Why != "" {
		t.Errorf("the first one is %+v", first)
	}
	if second.Job != "refused" || second.Rule != 0 || !strings.Contains(second.Why, "99999") {
		t.Errorf("the second one is %+v", second)
	}
	var trace struct {
		Steps []struct {
			Rule          int
			Outcome, Does string
			Labels        map[string]string
		}
	}
	id := strconv.Itoa(first.ID)
	status, body := p.get("/api/v1/trace?id=" + id)
	if err := json.Unmarshal([]byte(body), &trace); status != 200 || err != nil || len(trace.Steps) != 3 {
		t.Fatalf("the trace: %d, %v, %s", status, err, body)
	}
	if s := trace.Steps; s[0].Labels["copy"] != "test" || s[0].Outcome != "kept" || s[2].Outcome != "dropped" || s[2].Rule != 3 {
		t.Errorf("the trace is %s", body)
	}
	pages := map[string][]string{
		"/api/v1/dropped":        nil,
		"/api/v1/trace?id=" + id: nil,
		"/dropped":               {"10.9.8.7:80", "rule 3", "test|canary", "trace?id=" + id, "&lt;b&gt;x", "99999"},
		"/dropped?job=refused":   {"99999"},
		"/trace?id=" + id:        {"As discovered", "copy=test", "dropped"},
	}
	for path, parts := range pages {
		status, page := p.get(path)
		if status != 200 || strings.Contains(page, "geheim") || strings.Contains(page, "verborgen") || (parts != nil && strings.Contains(page, "<b>x")) {
			t.Errorf("%s: %d, or it has what it must not have: %s", path, status, page)
		}
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s has no %q: %s", path, part, page)
			}
		}
	}
	for path, want := range map[string]int{"/trace?id=x": 400, "/api/v1/trace?id=": 400, "/api/v1/trace?id=99999": 404, "/trace?id=99999": 404} {
		if status, body := p.get(path); status != want || !strings.Contains(body, "dropped target") {
			t.Errorf("%s: %d, expected %d: %s", path, status, want, body)
		}
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
		if len(all.Dropped) != 1 {
			return fmt.Sprint(all)
		}
		return ""
	})
	// Now it is a target, which has its rules too.
	of := "trace?job=some&source=" + url.QueryEscape(first.Source) + "&address=10.9.8.7%3A80"
	status, body = p.get("/api/v1/" + of)
	trace.Steps = nil
	if err := json.Unmarshal([]byte(body), &trace); status != 200 || err != nil || len(trace.Steps) != 3 {
		t.Fatalf("the trace of a target: %d, %v, %s", status, err, body)
	}
	if s := trace.Steps; s[0].Labels["copy"] != "live" || s[2].Outcome != "kept" || s[2].Labels["tier"] != "live" {
		t.Errorf("the trace of a target is %s", body)
	}
	status, page := p.get("/" + of)
	if status != 200 || !strings.Contains(page, "copy=live") || strings.Contains(page+body, "geheim") || strings.Contains(page+body, "verborgen") {
		t.Errorf("the page of a target: %d, or it has what it must not have: %s", status, page)
	}
	p.wait("the page of targets to lead there", func() string {
		if _, page := p.get("/targets"); !strings.Contains(page, "trace?job=some&amp;source=") {
			return page
		}
		return ""
	})
	for path, want := range map[string]int{
		"trace?job=some&address=10.9.8.7:80":            400,
		"trace?source=x&address=10.9.8.7:80":            400,
		"trace?job=some&source=x&address=10.9.8.7:80":   404,
		strings.Replace(of, "job=some", "job=other", 1): 404,
	} {
		for _, below := range []string{"/", "/api/v1/"} {
			if status, body := p.get(below + path); status != want || !strings.Contains(body, "target") {
				t.Errorf("%s%s: %d, expected %d: %s", below, path, status, want, body)
			}
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
		if !strings.Contains(body, `action="api/v1/scrape?job=slow&amp;address=`) {
			return orNothing(body)
		}
		return ""
	})
	post := func(query, name, value string) (int, string, string) {
		req, err := http.NewRequest("POST", p.admin+"/api/v1/scrape?"+query, nil)
		must(t, err)
		if name != "" {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
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
	if status, _ := p.get("/api/v1/scrape?job=slow"); status != 405 {
		t.Errorf("GET: %d", status)
	}
	if n := len(fake.RequestsFor(path)); n != 0 {
		t.Fatalf("%d scrapes before any was asked for", n)
	}
	if status, body, _ := post("job=slow&type=memory", "", ""); status != 200 || body != "{\"scheduled\":1}\n" {
		t.Errorf("%d %s", status, body)
	}
	p.wait("the scrape that was asked for", func() string {
		if n := len(fake.RequestsFor(path)); n != 1 {
			return strconv.Itoa(n)
		}
		_, body := p.get("/api/v1/targets")
		if !strings.Contains(body, `"successes":1`) || !strings.Contains(body, `"health":"up"`) {
			return orNothing(body)
		}
		return ""
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
	if m := p.metrics(); m.sum(asked, "result", "scheduled") != 102 || m.sum(asked, "result", "surplus") != 10 {
		t.Errorf("%v scheduled, %v surplus", m.sum(asked, "result", "scheduled"), m.sum(asked, "result", "surplus"))
	}
}
