package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fact runs a command and returns the last line, or all, of what it prints as JSON.
func fact(t *testing.T, code int, args ...string) map[string]any {
	t.Helper()
	r := call(t, "", args...)
	var got map[string]any
	text := strings.TrimSpace(r.stdout)
	if !strings.HasPrefix(text, "{\n") { // lines of JSON
		text = text[strings.LastIndex(text, "\n")+1:]
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || r.code != code {
		t.Fatalf("%q: %v, exit code %d, expected %d\n%s%s", args, err, r.code, code, r.stdout, r.stderr)
	}
	return got
}

// Every command that prints facts prints them as JSON, too.
func TestFactsAsJSON(t *testing.T) {
	t.Parallel()
	v := fact(t, exitDone, "version", "--json")
	libraries := v["libraries"].(map[string]any)
	expect(t, regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(fmt.Sprint(libraries["isa-l"])), "version: %v", v)
	expect(t, v["version"] == "0.2.0" && libraries["libcurl"] != "", "version: %v", v)
	dir := t.TempDir()
	good := writeConfig(t, "write: [{name: kept, url: \"file://"+dir+"/out\"}]\nscrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:1\"]}]}]\n")
	c := fact(t, exitDone, "check", "--json", good)
	if c["good"] != true || len(c["errors"].([]any)) != 0 || c["jobs"].([]any)[0].(map[string]any)["name"] != "a" ||
		c["endpoints"].([]any)[0].(map[string]any)["protocol"] != "file" {
		t.Errorf("check: %v", c)
	}
	bad := writeConfig(t, "write: [{url: \"http://x\"}]\nscrape_configs: [{job_name: a, nonsense: 1}]\n")
	c = fact(t, exitInput, "check", "--json", bad)
	first := c["errors"].([]any)[0].(map[string]any)
	expect(t, c["good"] == false && first["line"] == 2.0 && first["path"] == "scrape_configs[0].nonsense", "check: %v", c)
	warned := writeConfig(t, "write: [{url: \"http://x\"}]\nscrape_configs: [{job_name: a}]\n")
	c = fact(t, exitDone, "check", "--json", warned)
	equal(t, "warnings", len(c["warnings"].([]any)), 1)
	fact(t, exitInput, "check", "--json", "--strict", warned)
	noted := filepath.Join(dir, "noted.alloy")
	must(t, os.WriteFile(noted, []byte("logging { }\nloki.write \"l\" { }\npyroscope.scrape \"s\" {\n  targets = [{__address__ = \"127.0.0.1:1\"}]\n"+
		"  forward_to = [pyroscope.write.w.receiver]\n}\npyroscope.write \"w\" {\n  endpoint { url = \"http://127.0.0.1:9\" }\n}\n"), 0o600))
	c = fact(t, exitDone, "check", "--json", noted)
	if notes := c["notes"].([]any); len(notes) == 0 || notes[0].(map[string]any)["line"] != 1.0 && notes[0].(map[string]any)["line"] != 2.0 {
		t.Errorf("check: %v", c)
	}
	c = fact(t, exitInput, "check", "--json", "--strict", noted)
	equal(t, "good", c["good"].(bool), false)
	v = fact(t, exitDone, "verify", "--json", "--config", good)
	expect(t, v["works"] == true && v["name"] == "kept" && v["protocol"] == "file", "verify: %v", v)
	i := fact(t, exitDone, "import", "--json", "--url", "file://"+dir+"/in", "--name", "cart", "--type", "cpu", cartProfile(t))
	expect(t, i["sent"] == 1.0 && i["protocol"] == "file" && i["dry_run"] == false, "import: %v", i)
	if list, err := filepath.Glob(dir + "/in/*/*"); err != nil || len(list) == 0 {
		list, _ = filepath.Glob(dir + "/in/*")
		expect(t, len(list) != 0, "nothing was imported: %v", err)
	}
	spooling := writeConfig(t, "write: [{name: down, url: \"http://127.0.0.1:9\", queue: {spool_directory: \""+dir+"/spool\"}}]\nscrape_configs: [{job_name: a, static_configs: []}]\n")
	ends(t, call(t, "", "run", "--config", spooling, "--listen", "127.0.0.1:0", "--for", "10ms"), exitDone, "*", "*")
	s := fact(t, exitDone, "spool", "verify", "--json", dir+"/spool")
	expect(t, s["spool"] == "down" && s["waiting"] == 0.0 && s["damaged"] == 0.0, "spool: %v", s)
}
