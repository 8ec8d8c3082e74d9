package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	fakepprof "profpull.test/e2e/fakes/pprof"
)

// runCollector starts a profpull that receives profiles, keeps them, and answers questions, all at one
// address.
func runCollector(t *testing.T) (p *program, address string) {
	t.Helper()
	return runCollectorIn(t, t.TempDir())
}

// runCollectorIn is runCollector with a store in this directory.
func runCollectorIn(t *testing.T, directory string) (p *program, address string) {
	t.Helper()
	address = loop.Host() + ":4041"
	p = startUnder(t, nil, fmt.Sprintf("scrape_configs:\n  - job_name: none\n    static_configs: []\nreceive: {listen: %q}\nwrite: [{name: local, url: \"store://%s\"}]\n", address,
		directory), "--listen", address)
	p.admin = "http://" + address
	p.waitUp()
	return p, address
}

// tool runs go tool pprof -top on a URL.
func tool(t *testing.T, url string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, goTool(), "tool", "pprof", "-top", url)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func expectTool(t *testing.T, url, part string) {
	t.Helper()
	text, err := tool(t, url)
	expect(t, err == nil && strings.Contains(text, part), "go tool pprof %s: %v\n%s", url, err, text)
}

// postProfile imports a file as profefe's README does, and returns what it has become.
func postProfile(t *testing.T, url string, data []byte) listed {
	t.Helper()
	resp, err := http.Post(url, "application/x-www-form-urlencoded", bytes.NewReader(data))
	must(t, err)
	text := bodyOf(t, resp)
	require(t, resp.StatusCode == 200 && strings.HasPrefix(string(text), `{"code":200,`),
		"%s: %s: %s", url, resp.Status, text)
	var answer struct{ Body listed }
	decode(t, text, &answer)
	return answer.Body
}

// listed is an element of a list.
type listed struct {
	ID, Type, Service string
	Labels            []struct{ Key, Value string }
	CreatedAt         string `json:"created_at"`
}

func listProfiles(t *testing.T, p *program, path string) []listed {
	t.Helper()
	status, text := p.get(path)
	var answer struct {
		Code int
		Body []listed
	}
	err := json.Unmarshal([]byte(text), &answer)
	require(t, err == nil && answer.Code == status && status == 200, "%s: %d %s", path, status, text)
	return answer.Body
}

// profefe's README against profpull, with another address and other times: a profile is imported with
// curl, found, fetched by its ID and merged with others by go tool pprof.
func TestProfefeReadme(t *testing.T) {
	t.Parallel()
	p, address := runCollector(t)
	data := realProfiles(t)["process_cpu"]
	parsed, err := fakepprof.ParseGzip(data)
	must(t, err)
	at := time.Unix(0, parsed.TimeNanos).UTC()
	const form = "2006-01-02T15:04:05"
	from, to := at.Add(-time.Minute).Format(form), at.Add(time.Minute).Format(form)

	// $ curl -XPOST "http://localhost:10100/api/0/profiles?service=service1&type=cpu&labels=..." --data-binary @cpu.pb.gz
	postProfile(t, "http://"+address+"/api/0/profiles?service=service1&type=cpu&instance_id=i1&labels=version=1.0.0,pod=a", data)
	postProfile(t, "http://"+address+"/api/0/profiles?service=service1&type=cpu&instance_id=i2&labels=version=1.0.0,pod=b", data)
	other := "http://" + address + "/api/0/profiles?service=service1&type=cpu&instance_id=i1&labels=version=2.0.0,pod=a"
	first := postProfile(t, other, data)
	// The same profile once more is another one; of labels with one name the last one counts.
	second := postProfile(t, other+",pod=b,pod=a", data)
	query := "service=service1&type=cpu&from=" + from + "&to=" + to + "&labels=version=1.0.0"
	var found []listed
	p.wait("the profiles", func() string {
		if status, text := p.get("/api/0/profiles?" + query); status != 200 {
			return orNothing(text)
		}
		found = listProfiles(t, p, "/api/0/profiles?"+query)
		return unless(len(found) == 2, "%d profiles: %v", len(found), found)
	})
	for i, f := range found {
		expect(t, f.Type == "cpu" && f.Service == "service1" && f.CreatedAt == at.Truncate(time.Second).Format(time.RFC3339),
			"profile %d: %+v", i, f)
	}
	if status, text := p.get("/api/0/services"); status != 200 || text != "{\"code\":200,\"body\":[\"service1\"]}\n" {
		t.Errorf("services: %d %s", status, text)
	}
	// $ go tool pprof http://localhost:10100/api/0/profiles/bpc00mript33iv4net00
	expectTool(t, "http://"+address+"/api/0/profiles/"+found[0].ID, "flat%")
	expectTool(t, "http://"+address+"/api/0/profiles/"+found[0].ID+"+"+found[1].ID, "flat%")
	// $ go tool pprof http://localhost:10100/api/0/profiles/merge?service=service1&type=cpu&from=...&to=...&labels=version=1.0.0
	expectTool(t, "http://"+address+"/api/0/profiles/merge?"+query, "flat%")
	status, body := p.get("/api/0/profiles/merge?" + query)
	merged, err := fakepprof.ParseGzip([]byte(body))
	require(t, status == 200 && err == nil, "%d %v", status, err)
	for name, sum := range parsed.Sums() {
		got := merged.Sums()[name]
		expect(t, got == 2*sum, "%s: %d, expected twice %d", name, got, sum)
	}
	// The first one comes back byte for byte.
	if _, body := p.get("/api/0/profiles/" + found[0].ID); body != string(data) {
		t.Error("the profile is not the one that was imported")
	}
	// So do those that were answered to POST, by the ids of the answers.
	otherQuery := strings.Replace(query, "version=1.0.0", "version=2.0.0", 1)
	p.wait("the other profiles", func() string {
		if status, text := p.get("/api/0/profiles?" + otherQuery); status != 200 {
			return orNothing(text)
		}
		found := listProfiles(t, p, "/api/0/profiles?"+otherQuery)
		return unless(len(found) == 2, "%d profiles: %v", len(found), found)
	})
	for _, posted := range []listed{first, second} {
		expect(t, len(posted.ID) == 20 && posted.CreatedAt == found[0].CreatedAt && fmt.Sprint(posted.Labels) == "[{pod a} {version 2.0.0}]",
			"the answer: %+v", posted)
		if status, body := p.get("/api/0/profiles/" + posted.ID); status != 200 || body != string(data) {
			t.Errorf("%s: %d, not the profile that was imported", posted.ID, status)
		}
	}
	expect(t, first.ID != second.ID, "two profiles have the id %s", first.ID)
	expectTool(t, "http://"+address+"/api/0/profiles/"+first.ID+"+"+second.ID, "flat%")
	p.answers("/api/0/profiles/"+first.ID[:10]+strings.Repeat("0", 10), 404)
	text, err := tool(t, "http://"+address+"/api/0/profiles/merge?service=nobody&type=cpu&from="+from+"&to="+to)
	expect(t, err != nil && strings.Contains(text, "404 Not Found") && strings.Contains(text, "nothing found"),
		"go tool pprof: %v\n%s", err, text)
}

// The documented query of DeepFlow, in both shapes, and profpull's own commands against all APIs.
func TestClientsOfTheStore(t *testing.T) {
	t.Parallel()
	p, address := runCollector(t)
	data := realProfiles(t)["process_cpu"]
	heap := realProfiles(t)["memory"]
	postProfile(t, "http://"+address+"/api/0/profiles?service=cart&type=cpu&instance_id=i1&labels=namespace=shop", data)
	postProfile(t, "http://"+address+"/api/0/profiles?service=cart&type=heap&instance_id=i1", heap)
	p.wait("the profiles", func() string {
		r := call(t, "", "query", "types", "--url", p.admin, "--service", "cart")
		return unless(strings.Count(r.stdout, "\n") == 6, "%s", r.stdout+r.stderr)
	})
	parsed, err := fakepprof.ParseGzip(data)
	must(t, err)
	at := parsed.TimeNanos / int64(time.Second)
	for _, form := range []string{"", "?format=list"} {
		question := fmt.Sprintf(`{"app_service":"cart","profile_language_type":"Golang","profile_event_type":"cpu",`+
			`"tag_filter":"pod_ns = 'shop'","time_start":%d,"time_end":%d,"debug":false}`, at-60, at+60)
		resp, err := http.Post(p.admin+"/v1/profile/ProfileTracing"+form, "application/json", strings.NewReader(question))
		must(t, err)
		text := bodyOf(t, resp)
		total := fmt.Sprint(parsed.Sums()["samples"])
		want := regexp.MustCompile(`"values":\[\[0,-1,0,` + total + `\]`)
		if form != "" {
			want = regexp.MustCompile(`"result":\[\{"profile_location_str":"cart","node_id":"","parent_node_id":"-1",` +
				`"self_value":0,"total_value":` + total + `\}`)
		}
		expect(t, resp.StatusCode == 200 && want.Match(text), "%s: %s %.2000s", form, resp.Status, text)
	}
	window := []string{"--from", fmt.Sprint(at - 60), "--until", fmt.Sprint(at + 60), "--service", "cart", "--url", p.admin}
	ask := func(args ...string) []string { return append(args, window...) }
	expectCall(t, exitDone, "cart\n", "", "query", "services", "--url", p.admin, "--since", "1y")
	expectCall(t, exitDone, " functions, the first 3:\n", "", ask("query", "top", "-n", "3")...)
	expectCall(t, exitDone, " functions, the first 3:\n", "", ask("query", "top", "-n", "3", "--protocol", "deepflow")...)
	expectCall(t, exitDone, " functions, the first 3:\n", "", ask("query", "top", "-n", "3", "--protocol", "profefe")...)
	expectCall(t, exitDone, "cpu\nheap\n", "", ask("query", "types", "--protocol", "profefe")...)
	file := filepath.Join(t.TempDir(), "merged.pb.gz")
	for _, protocol := range []string{"pyroscope", "profefe"} {
		expectCall(t, exitDone, "merged.pb.gz: ", "", ask("query", "merge", "-o", file, "--protocol", protocol)...)
		raw := readFile(t, file)
		got, err := fakepprof.ParseGzip(raw)
		expect(t, err == nil && got.Sums()["cpu"] == parsed.Sums()["cpu"],
			"%s: %v %v, expected %v", protocol, err, got.Sums(), parsed.Sums())
	}
	selector := url.QueryEscape(`process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}`)
	expectTool(t, fmt.Sprintf("%s/pprof?query=%s&from=%d&until=%d", p.admin, selector, at-60, at+60), "flat%")
	buildWithPGO(t, p.admin, window, at)
}

var goVersion = regexp.MustCompile(`^go1\.(\d+)`)

// buildWithPGO gets a profile for the compiler, by command and by URL, and compiles a program with it.
func buildWithPGO(t *testing.T, admin string, window []string, at int64) {
	t.Helper()
	dir := t.TempDir()
	minor := 0
	if m := goVersion.FindStringSubmatch(runtime.Version()); m != nil {
		fmt.Sscan(m[1], &minor)
	}
	args := append([]string{"pgo", "-o", filepath.Join(dir, "default.pgo")}, window...)
	if minor < 20 {
		expectCall(t, exitInput, "", "no function of the profile says at which line it starts", args...)
		t.Logf("%s writes no lines that functions start at, and knows no -pgo", runtime.Version())
		return
	}
	expectCall(t, exitDone, "default.pgo: ", "", args...)
	resp, err := http.Get(fmt.Sprintf("%s/pgo/cart?from=%d&until=%d", admin, at-60, at+60))
	must(t, err)
	raw := bodyOf(t, resp)
	require(t, resp.StatusCode == 200, "%s: %s", resp.Status, raw)
	file := readFile(t, filepath.Join(dir, "default.pgo"))
	byURL, err1 := fakepprof.ParseGzip(raw)
	byCommand, err2 := fakepprof.ParseGzip(file)
	expect(t, err1 == nil && err2 == nil && fmt.Sprint(byURL.Sums()) == fmt.Sprint(byCommand.Sums()),
		"%v %v: by URL %v, by command %v", err1, err2, byURL, byCommand)
	if minor < 21 {
		return
	}
	writeFile(t, dir, "go.mod", []byte("module example.com/busy\n"))
	writeFile(t, dir, "main.go", []byte("package main\n\nfunc main() { println(\"done\") }\n"))
	cmd := exec.Command(goTool(), "build", "-pgo=default.pgo", "-o", "busy", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go build -pgo=default.pgo: %v\n%s", err, text)
	}
}
