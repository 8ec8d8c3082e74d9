package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// manyServices makes targets, each of them a service, and a tenant, of its own: s0, s1, ... jobs scrapes them.
func manyServices(t *testing.T, n int) (targets []*target.Target, jobs string) {
	jobs = "scrape_configs:\n  - job_name: many\n    scrape_interval: 500ms\n    profiles: " + oneSnapshot + "\n    static_configs:\n"
	for i := 0; i < n; i++ {
		tg := newTarget(t, target.Options{})
		targets = append(targets, tg)
		jobs += fmt.Sprintf("      - {targets: [%q], labels: {service_name: s%d, __tenant_id__: s%d}}\n", tg.Addr(), i, i)
	}
	return targets, jobs
}

// waitServices waits until the server has so many profiles of each service for which good is true.
func waitServices(t *testing.T, s *pyroscope.Server, services, each int, good func(i int) bool) {
	t.Helper()
	wait(t, "profiles of every good service", func() string {
		n := map[string]int{}
		for _, r := range s.Profiles() {
			n[r.Labels["service_name"]]++
		}
		for i := 0; i < services; i++ {
			if name := fmt.Sprintf("s%d", i); good(i) && n[name] < each {
				return fmt.Sprintf("%s has %d", name, n[name])
			}
		}
		return ""
	})
}

// A tenant that is over its limit rests for as long as the server says, and everybody else goes on.
func TestOneTenantIsLimited(t *testing.T) {
	t.Parallel()
	const n = 40
	targets, jobs := manyServices(t, n)
	server := newPyroscope(t, pyroscope.Options{Multitenant: true})
	isBad := func(r *http.Request) bool { return r.Header.Get("X-Scope-OrgID") == "s0" }
	server.Faults.Set(&loop.Fault{Status: 429, Header: http.Header{"Retry-After": {"60"}}, Match: isBad})
	p := run(t, jobs+"write: [{"+to(server)+", concurrency: 1}]\n")
	waitServices(t, server, n, 8, func(i int) bool { return i != 0 })
	m := p.metrics()
	up, resting := m.sum("profpull_write_up"), m.sum("profpull_write_resting_tenants")
	expect(t, up == 1 && resting == 1, "up %v, %v tenants rest", up, resting)
	equal(t, "tenants", m.sum("profpull_write_tenants"), n)
	text := m.ledger("main").balance()
	expect(t, text == "", "%s", text)
	p.stop()
	s := finalLedger(t, p, "main")
	equal(t, "requests of the tenant that was asked to wait", server.Stats().ByStatus[429], 1)
	lost := len(targets[0].Sent())
	expect(t, s["dropped"] <= lost && s["sent"] == server.Count(),
		"%v, %d have arrived; the limited tenant had %d", s, server.Count(), lost)
	log := p.stderr.String()
	expect(t, strings.Count(log, "endpoint fails") == 1 && strings.Contains(log, "tenant=s0"),
		"the log does not say once that the tenant is refused")
	checkArrived(t, server.Profiles(), nameOfPath, targets...)
}

// Profiles that a server stumbles over hold up nobody else.
func TestRefusedProfilesHoldUpNobody(t *testing.T) {
	t.Parallel()
	const n = 40
	targets, jobs := manyServices(t, n)
	bad := func(i int) bool { return i%5 == 0 }
	isBad := func(r *http.Request) bool {
		app, _, _ := strings.Cut(r.URL.Query().Get("name"), "{")
		var i int
		_, err := fmt.Sscanf(app, "s%d", &i)
		return err == nil && bad(i)
	}
	config, servers := "", map[int]*pyroscope.Server{}
	for _, status := range []int{422, 500} {
		s := newPyroscope(t, pyroscope.Options{})
		s.Faults.Set(&loop.Fault{Status: status, Match: isBad})
		servers[status] = s
		config += fmt.Sprintf("  - {name: s%d, protocol: ingest, url: %q}\n", status, s.URL())
	}
	p := run(t, jobs+"write:\n"+config, "--drain-timeout", "1s")
	for _, s := range servers {
		waitServices(t, s, n, 8, func(i int) bool { return !bad(i) })
	}
	m := p.metrics()
	for status, s := range servers {
		name := fmt.Sprintf("s%d", status)
		equal(t, name+": up", m.sum("profpull_write_up", "endpoint", name), 1)
		text := m.ledger(name).balance()
		expect(t, text == "", "%s", text)
		checkArrived(t, s.Profiles(), map[string]string{"/debug/pprof/goroutine": "goroutines"}, targets...)
	}
	expect(t, m.sum("profpull_write_doubtful_profiles") != 0, "nothing waits alone")
	p.says("profile refused, retrying")
}

// A server that says in its words that it is out of order is one: nothing counts against profiles.
func TestOutageInWords(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, target.Options{})
	faults := map[string]loop.Fault{
		"form": {Status: 422, Body: `{"code":"unknown","message":"pushing IngestInput-pprof failed unknown: rpc error: code = Unavailable desc = closing"}`},
		"push": {Status: 500, Body: `{"code":"unknown","message":"rpc error: code = Unavailable desc = error reading from server: EOF"}`},
	}
	config, servers := "", map[string]*pyroscope.Server{}
	for name, fault := range faults {
		fault := fault
		fault.Times = 60
		s := newPyroscope(t, pyroscope.Options{})
		s.Faults.Set(&fault)
		servers[name] = s
		protocol := map[string]string{"form": "ingest", "push": "push"}[name]
		config += fmt.Sprintf("  - {name: %s, protocol: %s, url: %q, retry: {min_backoff: 5ms, max_backoff: 10ms}}\n", name, protocol, s.URL())
	}
	p := run(t, scraping(job("words", "scrape_interval: 200ms, profiles: "+oneSnapshot, tg))+config)
	for _, s := range servers {
		waitProfiles(t, s, 3, nil)
	}
	p.stop()
	for name, s := range servers {
		l := finalLedger(t, p, name)
		expect(t, l["dropped"] == 0 && l["sent"] == s.Count(), "%s: %v, and %d have arrived", name, l, s.Count())
		equal(t, name+": refusals", s.Stats().ByStatus[faults[name].Status], 60)
	}
}

// While a server refuses everything, SIGTERM makes no difference: it is asked as politely as before,
// and nothing is given up. What a spool keeps is sent by the next process.
func TestTerminationIsPolite(t *testing.T) {
	t.Parallel()
	bin(t)
	for _, c := range []struct {
		name  string
		fault loop.Fault
	}{
		{"limit", loop.Fault{Status: 429}},
		{"doubt", loop.Fault{Status: 500}},
		{"no reason", loop.Fault{Status: 422}},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			server := newPyroscope(t, pyroscope.Options{})
			server.Faults.Set(&loop.Fault{Status: 503})
			targets := someTargets(t, 4)
			config := strings.Replace(spoolConfig(server.URL(), t.TempDir(), "fsync: 100ms", targets...),
				"retry: {min_backoff: 50ms, max_backoff: 200ms}", "protocol: push", 1) +
				fmt.Sprintf("  - {name: memory, url: %q}\n", server.URL())
			p := run(t, config, "--drain-timeout", "8s")
			p.waitQueued("memory", 40)
			before := len(server.Asked())
			server.Faults.Set(&c.fault)
			p.stop()
			asked := len(server.Asked()) - before
			kept, lost := endpointSummary(t, p, "main"), endpointSummary(t, p, "memory")
			t.Logf("%d requests in the drain; with a spool %v, without %v", asked, kept, lost)
			expect(t, kept["dropped"] == 0 && kept["queued"] == kept["accepted"]-kept["sent"], "with a spool: %v", kept)
			expect(t, asked <= 2*(8+2*8), "%d requests in a drain of 8 s", asked)
			expect(t, !strings.Contains(p.stderr.String(), "profile given up"), "profiles were given up")
			server.Faults.Set(nil)
			p = run(t, config)
			p.emptied()
			p.stop()
			again := endpointSummary(t, p, "main")
			expect(t, again["replayed"] == kept["queued"] && again["dropped"] == 0, "before %v, after %v", kept, again)
		})
	}
}
