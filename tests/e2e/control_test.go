package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/target"
)

// reload and log-level change a running process; PROFPULL_URL and host:port name it.
func TestReloadAndLogLevel(t *testing.T) {
	t.Parallel()
	const text = "write: [{url: \"http://127.0.0.1:9\"}]\nscrape_configs: [{job_name: a, static_configs: []}]\n"
	p := startUnder(t, nil, text)
	p.waitUp()
	at := func(args ...string) result {
		cmd := command(t, args...)
		cmd.Env = append(os.Environ(), "PROFPULL_URL="+strings.TrimPrefix(p.admin, "http://"))
		return callCommand(t, cmd, "")
	}
	if r := at("reload"); r.code != exitDone || r.stdout == "" {
		t.Errorf("%+v", r)
	}
	replaceFile(t, p.config, text+"nonsense: 1\n")
	ends(t, at("reload"), exitPeer, "*", "nonsense")
	if r := at("log-level", "debug"); r.code != exitDone || r.stdout != "the level of the log is debug\n" {
		t.Errorf("%+v", r)
	}
	ends(t, at("log-level", "loud"), exitUsage, "*", "got loud")
	if r := at("status"); r.code != exitDone && r.code != exitPeer || !strings.Contains(r.stdout, "0.2.0") {
		t.Errorf("%+v", r)
	}
	expectCall(t, exitPeer, "", "connection refused", "reload", "--url", "127.0.0.1:9")
}

// PROFPULL_CONFIG stands in for --config; the flag, and other ways to say what to read, come first.
func TestConfigFromTheEnvironment(t *testing.T) {
	t.Parallel()
	good := writeConfig(t, "write: [{url: \"http://127.0.0.1:9\", protocol: pyroscope}]\nscrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:1\"]}]}]\n")
	at := func(config string, args ...string) result {
		cmd := command(t, args...)
		cmd.Env = append(os.Environ(), "PROFPULL_CONFIG="+config)
		return callCommand(t, cmd, "")
	}
	ends(t, at(good, "check"), exitDone, "endpoint main: push\n", "*")
	ends(t, at("/none.yaml", "check", good), exitDone, "*", "*")
	ends(t, at("/none.yaml", "check", "--config", good), exitDone, "*", "*")
	ends(t, at("/none.yaml", "check"), exitInput, "*", "/none.yaml")
	ends(t, at(good, "discover"), exitDone, "127.0.0.1:1", "*")
	// A URL of scrape needs no configuration; a job of one is found in it.
	tg := newTarget(t, target.Options{})
	ends(t, at("/none.yaml", "scrape", "http://"+tg.Addr()+"/debug/pprof/heap"), exitDone, "*", "*")
	ends(t, at(good, "scrape", "--job", "a", "--type", "memory", "http://"+tg.Addr()), exitDone, "*", "*")
	ends(t, at(good, "scrape", "--job", "b", "http://"+tg.Addr()), exitInput, "*", `has no job "b"`)
	ends(t, at("", "scrape", "--job", "a", "http://"+tg.Addr()), exitUsage, "*", "*")
	ends(t, at("", "verify"), exitUsage, "*", "PROFPULL_CONFIG")
}

// import sends to PROFPULL_URL, else to the endpoint of PROFPULL_CONFIG; flags come first.
func TestImportFromTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := writeConfig(t, "write: [{name: kept, url: \"file://"+dir+"/c\"}]\nscrape_configs: [{job_name: a, static_configs: [{targets: [\"127.0.0.1:1\"]}]}]\n")
	for _, c := range []struct {
		url, config string
		flags       []string
		want        string
		code        int
	}{
		{"file://" + dir + "/u", config, nil, "to file://" + dir + "/u (file)", exitDone},
		{"", config, nil, "to file://" + dir + "/c (file)", exitDone},
		{"file://" + dir + "/u", config, []string{"--endpoint", "kept"}, "to file://" + dir + "/c (file)", exitDone},
		{"file://" + dir + "/u", config, []string{"--url", "file://" + dir + "/f"}, "to file://" + dir + "/f (file)", exitDone},
		{"file://" + dir + "/u", "/none.yaml", []string{"--config", config}, "to file://" + dir + "/c (file)", exitDone},
		{"127.0.0.1:9", "", []string{"--dry-run"}, "to http://127.0.0.1:9 (push)", exitDone},
		{"", "", nil, "either --url or --config is needed", exitUsage},
	} {
		cmd := command(t, append(append([]string{"import", "--name", "cart", "--type", "cpu"}, c.flags...), cartProfile(t))...)
		cmd.Env = append(os.Environ(), "PROFPULL_URL="+c.url, "PROFPULL_CONFIG="+c.config)
		r := callCommand(t, cmd, "")
		expect(t, r.code == c.code && strings.Contains(r.stdout+r.stderr, c.want), "%+v: %+v", c, r)
	}
}

// bash completes what the script of profpull offers.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r, old := call(t, "", "completion", shell), call(t, "", "help", "--completion", shell); r.code != exitDone || r.stdout != old.stdout {
			t.Errorf("%s: exit code %d, or not the script of help --completion", shell, r.code)
		}
	}
	expectCall(t, exitUsage, "", "expected one of bash, zsh, fish", "completion", "tcsh")
	script := call(t, "", "completion", "bash").stdout
	for words, want := range map[string]string{
		"query pe":           "peek",
		"query top --type h": "heap",
		"spool v":            "verify",
		"log-level w":        "warn",
		"completion z":       "zsh",
		"query --inter":      "--interval --interactive",
		"scrape --type cp":   "cpu",
	} {
		list := strings.Fields("profpull " + words)
		ask := script + "\nCOMP_WORDS=(" + strings.Join(list, " ") + ")\nCOMP_CWORD=" + string(rune('0'+len(list)-1)) + "\n_profpull\necho \"${COMPREPLY[@]}\""
		text, err := exec.Command("bash", "-c", ask).CombinedOutput()
		expect(t, err == nil && strings.TrimSpace(string(text)) == want, "%s: %v %s, expected %s", words, err, text, want)
	}
}
