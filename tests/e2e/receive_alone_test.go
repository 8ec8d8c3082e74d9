package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// firstExample returns the first block of YAML in a page of the documentation.
func firstExample(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```\n")
	require(t, found && closed, "%s has no block of YAML", page)
	return example
}

// replaced is text with old, which it must contain, replaced.
func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	require(t, strings.Contains(text, old), "the text lacks %q:\n%s", old, text)
	return strings.Replace(text, old, by, 1)
}

// readiness is what /-/ready says as long as it fails.
func (p *program) readiness() string {
	if status, text := p.get("/-/ready"); status != 200 {
		return orNothing(text)
	}
	return ""
}

// The first example of docs/receiving.md has no scrape_configs: outside of a cluster it starts, becomes
// ready, and forwards profiles.
func TestReceivingWithoutACluster(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	listen := loop.Host() + ":4040"
	config := replaced(t, firstExample(t, "receiving.md"), "127.0.0.1:4040", listen)
	config = replaced(t, config, "https://pyroscope.example.com", s.URL())
	file := writeConfig(t, config)
	expectCall(t, exitDone, "no job: scrape_configs is missing", "", "check", "--strict", "--config", file)
	p := run(t, config)
	p.says("nothing is scraped")
	p.wait("readiness", p.readiness)
	status, text := post(t, "http://"+listen+"/ingest?name=alone", "", cpuProfile())
	require(t, status == 200, "%d %s", status, text)
	equal(t, "the service", waitProfiles(t, s, 1, nil)[0].Labels["service_name"], "alone")
}

// A store that an earlier process has filled can be queried by one that neither scrapes nor receives.
func TestQueryingWithoutACluster(t *testing.T) {
	t.Parallel()
	write := fmt.Sprintf("{name: kept, url: \"store://%s\"}", t.TempDir())
	filler, base := relay(t, "", write)
	status, text := post(t, base+"/ingest?name=kept", "", cpuProfile())
	require(t, status == 200, "%d %s", status, text)
	filler.stop() // the profile is in the store when this returns
	for _, jobs := range []string{"", "scrape_configs: []\n"} {
		config := jobs + "write: [" + write + "]\n"
		expectCall(t, exitDone, "is good", "", "check", "--strict", "--config", writeConfig(t, config))
		p := run(t, config)
		p.wait("readiness", p.readiness)
		expect(t, privateLabels(t, p, "kept") != "not stored", "%q: the profile is not found", jobs)
		p.stop()
	}
}
