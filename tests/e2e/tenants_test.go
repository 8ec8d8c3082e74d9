package e2e

import (
	"fmt"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// tenantsConfig has two jobs with the same targets, each for a tenant of its own.
func tenantsConfig(server *pyroscope.Server, second string, targets ...*target.Target) string {
	list := staticTargets("shop/cart", targets...)
	return fmt.Sprintf(`
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: one
    forward_to: [a]
    profiles: {process_cpu: {seconds: 1s}}
    static_configs:
%[1]s  - job_name: two
    forward_to: [b]
    profile_relabel_configs: [{target_label: team, replacement: b}]
    profiles: {process_cpu: {seconds: 1s}%[3]s}
    static_configs:
%[1]swrite:
  - {name: a, url: %[2]q, tenant_id: team-a}
  - {name: b, url: %[2]q, tenant_id: team-b}
`, list, server.URL(), second)
}

// Two jobs that scrape the same target for two tenants: it is asked once, and each tenant gets each
// profile, with the labels and by the rules of its job.
func TestTenantsShareScrapes(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{Multitenant: true})
	tg := newTarget(t, target.Options{Functions: 50})
	p := run(t, tenantsConfig(server, "", tg))
	for _, tenant := range []string{"team-a", "team-b"} {
		waitProfiles(t, server, 12, func(r *pyroscope.Received) bool { return r.Tenant == tenant })
	}
	followers := 0
	for _, s := range p.scrapes("?job=two") {
		expect(t, s.Follows == "one" && s.Successes != 0,
			"%s of job two follows %q, %d times", s.Type, s.Follows, s.Successes)
		followers++
	}
	m := p.metrics()
	n := m.sum("profpull_scrapes", "state", "follows")
	expect(t, followers != 0 && int(n) == followers, "%v follow, %d are shown", n, followers)
	p.stop()
	noneRefused(t, server)
	counts := map[string]map[string]int{"team-a": {}, "team-b": {}}
	cpu := map[string]map[string]bool{"team-a": {}, "team-b": {}}
	for _, r := range server.Profiles() {
		job, team := "one", ""
		if r.Tenant == "team-b" {
			job, team = "two", "b"
		}
		require(t, r.Labels["job"] == job && r.Labels["team"] == team, "tenant %s got %v", r.Tenant, r.Labels)
		counts[r.Tenant][r.Name()]++
		if r.Name() == "process_cpu" {
			cpu[r.Tenant][r.SHA256] = true
		}
	}
	for name, n := range counts["team-a"] {
		expect(t, counts["team-b"][name] == n,
			"%s: %d for one tenant, %d for the other", name, n, counts["team-b"][name])
	}
	for sum := range cpu["team-a"] {
		expect(t, cpu["team-b"][sum], "a CPU profile did not reach both tenants")
	}
	asked := len(tg.RequestsFor("/debug/pprof/profile"))
	if n := counts["team-a"]["process_cpu"]; tg.Overlaps() != 0 || asked > n+1 {
		t.Errorf("%d CPU profiles were asked for, %d arrived; %d overlapped", asked, n, tg.Overlaps())
	}
}

// TestTenantsWithOtherSettings checks that each job has its own scrapes if the settings differ, and that
// sampling scrapes take turns.
func TestTenantsWithOtherSettings(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{Multitenant: true})
	tg := newTarget(t, target.Options{Functions: 50})
	p := run(t, strings.Replace(tenantsConfig(server, ", memory: {delta: off}", tg),
		"  - job_name: two\n", "  - job_name: two\n    scrape_timeout: 9s\n", 1))
	for _, tenant := range []string{"team-a", "team-b"} {
		waitProfiles(t, server, 3, func(r *pyroscope.Received) bool {
			return r.Tenant == tenant && r.Name() == "process_cpu"
		})
	}
	for _, s := range p.scrapes("") {
		expect(t, s.Follows == "", "%s of job %s follows %s", s.Type, s.Job, s.Follows)
	}
	p.stop()
	noneRefused(t, server)
	expect(t, tg.Overlaps() == 0, "%d CPU profiles overlapped", tg.Overlaps())
}

// discover says whose scrape a job shares.
func TestDiscoverNamesTheLeader(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{Multitenant: true})
	tg := newTarget(t, target.Options{})
	config := writeConfig(t, tenantsConfig(server, ", goroutine: {interval: 5s}", tg))
	r := call(t, "", "discover", "--config", config)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require(t, r.code == exitDone && len(lines) == 2, "exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	expect(t, !strings.Contains(lines[0], "follows"), "the first job follows: %s", lines[0])
	for _, part := range strings.Split(lines[1], `{"type"`)[1:] {
		expect(t, strings.Contains(part, `"follows":"one"`) != strings.HasPrefix(part, `:"goroutine"`),
			"whom does it follow? %s", part)
	}
}
