package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/otlp"
	fakepprof "profpull.test/e2e/fakes/pprof"
)

func startOtlp(t *testing.T) *otlp.Server {
	t.Helper()
	s, err := otlp.Start()
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

// Every kind of profile of a real program arrives at a strict server with all of its values, whether
// compressed or not, and is found under the attributes of the table.
func TestOtlpReal(t *testing.T) {
	t.Parallel()
	s := startOtlp(t)
	dir := realFiles(t)
	r := call(t, "", "import", "--url", s.URL(), "--protocol", "otlp", "--name", "shop/cart", "--label", "pod=cart-7f",
		"--label", "team=blue", "--tenant", "a", dir)
	require(t, r.code == exitDone && r.stderr == "" && strings.Contains(r.stdout, "sent 6 profiles") && len(s.Refused()) == 0,
		"exit code %d\n%s%s%v", r.code, r.stdout, r.stderr, s.Refused())
	want := map[string]map[string]int64{}
	for kind, data := range realProfiles(t) {
		p, err := fakepprof.ParseGzip(data)
		must(t, err)
		want[kind] = p.Sums()
	}
	for _, p := range s.Profiles() {
		expect(t, fmt.Sprint(p.Sums) == fmt.Sprint(want[p.Name]),
			"%s: sums %v, expected %v", p.Name, p.Sums, want[p.Name])
		delete(want, p.Name)
		expect(t, p.Attributes["service.name"] == "shop/cart" && p.Attributes["k8s.pod.name"] == "cart-7f" && p.Attributes["team"] == "blue" &&
			p.Tenant == "a",
			"%s: attributes %v of %q", p.Name, p.Attributes, p.Tenant)
	}
	expect(t, len(want) == 0, "did not come: %v", want)
	expectLines(t, verifyLines(t, exitDone, "write: [{name: collector, protocol: otlp, url: \""+s.URL()+"\"}]\n"),
		map[string][]string{"collector": {"accepted"}})
}

// A running agent with all keys of the protocol: the profile goes along, labels have other names, and
// the spool keeps all of an outage.
func TestOtlpOutage(t *testing.T) {
	t.Parallel()
	s := startOtlp(t)
	s.Faults.Set(&loop.Fault{Status: 503})
	targets := someTargets(t, 5)
	config := strings.Replace(spoolConfig(s.URL(), t.TempDir(), "fsync: 1m", targets...), "write:\n  - {", `write:
  - {protocol: otlp, otlp: {compression: none, original_payload: true, resource_attributes: {instance: "", job: team.job}}, `, 1)
	p := run(t, config, "--drain-timeout", "300ms")
	p.waitQueued("main", 30)
	p.stop()
	before := endpointSummary(t, p, "main")
	s.Faults.Set(nil)
	p = run(t, config)
	p.emptied()
	p.stop()
	after := endpointSummary(t, p, "main")
	got := s.Profiles()
	expect(t, before["dropped"] == 0 && after["dropped"] == 0 && after["replayed"] == before["queued"] && len(got) == after["sent"],
		"before %v, after %v, arrived %d", before, after, len(got))
	expect(t, len(s.Refused()) == 0, "refused %v", s.Refused())
	for _, p := range got {
		original, err := fakepprof.ParseGzip(p.Original)
		require(t, err == nil && fmt.Sprint(original.Sums()) == fmt.Sprint(p.Sums),
			"%s: sums %v, of the original %v (%v)", p.Name, p.Sums, original, err)
		require(t, p.Attributes["service.instance.id"] == "" && p.Attributes["instance"] == "" && p.Attributes["team.job"] != "",
			"%s: attributes %v", p.Name, p.Attributes)
	}
}

// A profile that the server refuses is dropped alone, with the server's words; one that cannot be read
// is not sent; what the server leaves out of a request is counted.
func TestOtlpRefusals(t *testing.T) {
	t.Parallel()
	s := startOtlp(t)
	s.Refuse = func(p otlp.Profile) string {
		return unless(p.Attributes["service.name"] != "bad", "no such service")
	}
	s.LeaveOut = func(p otlp.Profile) bool { return p.Attributes["service.name"] == "poor" }
	cpu := realProfiles(t)["process_cpu"]
	for _, c := range []struct{ name, says string }{{"bad", "HTTP 400: no such service"}, {"poor", "not accepted: over the quota"}} {
		file := writeFile(t, t.TempDir(), "p.pb.gz", cpu)
		expectCall(t, exitPeer, "1 not accepted", c.says, "import", "--url", s.URL(), "--protocol", "otlp", "--name", c.name, file)
	}
	n := len(s.Profiles())
	expect(t, n == 0 && s.Requests() == 1, "%d profiles came in %d requests", n, s.Requests())
	dir := t.TempDir()
	writeFile(t, dir, "a.pb.gz", cpu)
	writeFile(t, dir, "b.jfr", bytes.Repeat([]byte{0}, 16))
	r := call(t, "", "import", "--url", s.URL(), "--protocol", "otlp", "--name", "good", dir)
	expect(t, len(s.Profiles()) == 1 && strings.Contains(r.stdout, "sent 1 profile"),
		"%d\n%s%s", r.code, r.stdout, r.stderr)
}
