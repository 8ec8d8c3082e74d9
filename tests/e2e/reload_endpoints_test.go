package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// destinationsConfig scrapes one target for the endpoints of a list in YAML.
func destinationsConfig(address, write, more string) string {
	return fmt.Sprintf(`write: %s
%sscrape_configs:
  - job_name: x
    scrape_interval: 1s
    profiles:
      process_cpu: {enabled: false}
      memory: {enabled: false}
      mutex: {enabled: false}
      block: {enabled: false}
      goroutine: {enabled: true}
    static_configs: [{targets: [%q]}]
`, write, more, address)
}

// sentTo waits until an endpoint has sent so many profiles.
func (p *program) sentTo(endpoint string, n float64) {
	p.t.Helper()
	p.wait("profiles of "+endpoint, func() string {
		l := p.metrics().ledger(endpoint)
		problem := l.balance()
		expect(p.t, problem == "", "%s", problem)
		return unless(l.sent >= n, "%v of %v are sent", l.sent, n)
	})
}

// Endpoints change, come and go while the program runs, and what it cannot do leaves all as it was.
func TestReloadOfEndpoints(t *testing.T) {
	t.Parallel()
	first, second := newPyroscope(t, pyroscope.Options{}), newPyroscope(t, pyroscope.Options{})
	tg := newTarget(t, target.Options{})
	// The sandbox knows only the ports and directories of the start.
	p := run(t, destinationsConfig(tg.Addr(), fmt.Sprintf("[{name: main, url: %q}]", first.URL()), ""), "--sandbox=off")
	p.sentTo("main", 1)

	use := func(write, more string) {
		t.Helper()
		replaceFile(t, p.config, destinationsConfig(tg.Addr(), write, more))
		p.reloaded()
	}
	// Another URL and tenant: the same queue and ledger.
	sent := p.metrics().ledger("main").sent
	use(fmt.Sprintf("[{name: main, url: %q, tenant_id: blue}]", second.URL()), "")
	p.wait("a profile of the new tenant", func() string {
		for _, got := range second.Profiles() {
			if got.Tenant == "blue" {
				return ""
			}
		}
		return "none"
	})
	p.sentTo("main", sent+1)
	// A further endpoint, which profiles reach at once; then only that one, and a store.
	use(fmt.Sprintf("[{name: main, url: %q}, {name: more, url: %q}]", second.URL(), first.URL()), "")
	p.sentTo("more", 1)
	store := filepath.Join(t.TempDir(), "store")
	use(fmt.Sprintf("[{name: more, url: %q}, {name: local, url: %q}]", first.URL(), "store://"+store), "")
	p.sentTo("local", 1)
	becomes(t, "the end of main", 0, func() float64 { return p.metrics().ledger("main").limit })
	_, text := p.get("/api/v1/destinations")
	expect(t, strings.Contains(text, `"name":"local"`) && !strings.Contains(text, `"main"`), "the API shows: %s", text)
	// An error in one endpoint: none changes.
	replaceFile(t, p.config, destinationsConfig(tg.Addr(), fmt.Sprintf(
		"[{name: new, url: %q}, {name: bad, url: \"file:///proc/no/where\"}]", first.URL()), ""))
	status, text := p.reload()
	expect(t, status == http.StatusInternalServerError && strings.Contains(text, `endpoint "bad"`),
		"%d: %s", status, text)
	before := p.metrics().ledger("local").sent
	p.sentTo("local", before+1)
}

// The admin server asks for the credentials of the new configuration, and shows it.
func TestReloadOfServers(t *testing.T) {
	t.Parallel()
	server, tg := newNeighbours(t)
	write := fmt.Sprintf("[{name: main, url: %q}]", server.URL())
	p := run(t, destinationsConfig(tg.Addr(), write, ""), "--config.no-watch")
	replaceFile(t, p.config, destinationsConfig(tg.Addr(), write, "server: {authorization: {credentials: one}}\n"))
	p.reloaded()
	ask := func(token string) (int, string) {
		t.Helper()
		r, _ := http.NewRequest("GET", p.admin+"/api/v1/config", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		body := bodyOf(t, resp)
		return resp.StatusCode, string(body)
	}
	// Requests that were read before are answered by the former options.
	p.wait("the credentials", func() string {
		status, _ := ask("none")
		return unless(status == http.StatusUnauthorized, "%v", status)
	})
	status, body := ask("one")
	expect(t, status == http.StatusOK && strings.Contains(body, "authorization"), "%d: %s", status, body)
}
