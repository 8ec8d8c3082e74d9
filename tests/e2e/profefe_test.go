package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/profefe"
	"profpull.test/e2e/fakes/target"
)

func startProfefe(t *testing.T) *profefe.Server {
	t.Helper()
	s, err := profefe.Start()
	must(t, err)
	t.Cleanup(s.Down)
	return s
}

// withoutSamples is a profile of a process in which nothing has happened yet.
func withoutSamples() []byte {
	var out []byte
	out = fakepprof.AppendBytes(out, 1, fakepprof.AppendInt(fakepprof.AppendInt(nil, 1, 1), 2, 2))
	out = fakepprof.AppendBytes(out, 1, fakepprof.AppendInt(fakepprof.AppendInt(nil, 1, 3), 2, 4))
	for _, s := range []string{"", "contentions", "count", "delay", "nanoseconds"} {
		out = fakepprof.AppendBytes(out, 6, []byte(s))
	}
	return fakepprof.AppendInt(out, 9, uint64(time.Now().UnixNano()))
}

// Every kind of profile arrives at profefe byte for byte, under profefe's own names, with labels that
// are decoded twice there and the time of the profile.
func TestImportToProfefe(t *testing.T) {
	t.Parallel()
	s := startProfefe(t)
	const odd = "a,b=c% +&d"
	r := call(t, "", "import", "--url", s.URL(), "--protocol", "profefe", "--name", "shop/cart", "--label", "odd="+odd,
		"--label", "pod=cart-7f", realFiles(t))
	require(t, r.code == exitDone && r.stderr == "" && strings.Contains(r.stdout, "sent 6 profiles") && len(s.Refused()) == 0,
		"exit code %d\n%s%s%v", r.code, r.stdout, r.stderr, s.Refused())
	names := map[string]string{"process_cpu": "cpu", "memory": "heap", "goroutine": "goroutine", "mutex": "mutex",
		"block": "block", "threadcreate": "threadcreate"}
	want := map[string][]byte{}
	for kind, data := range realProfiles(t) {
		require(t, names[kind] != "", "no name for %s", kind)
		want[names[kind]] = data
	}
	for _, p := range s.Profiles() {
		data, ok := want[p.Type]
		expect(t, ok && bytes.Equal(data, p.Raw), "%s: unknown, or other bytes than the file's", p.Type)
		delete(want, p.Type)
		expect(t, p.Service == "shop/cart" && p.Get("odd") == odd && p.Get("pod") == "cart-7f" && p.Get("service_name") == "",
			"%s: service %q, labels %q", p.Type, p.Service, p.Labels)
		parsed, err := fakepprof.ParseGzip(p.Raw)
		expect(t, err == nil && p.CreatedAt.UnixNano() == parsed.TimeNanos,
			"%s: made at %v, by its own words at %d (%v)", p.Type, p.CreatedAt, parsed.TimeNanos, err)
	}
	expect(t, len(want) == 0, "did not come: %d of 6", len(want))
}

// The collector of 2019 demands an instance_id and answers without an id: every profile arrives, once,
// and verify recognises the profile that it gets back.
func TestImportToProfefeOf2019(t *testing.T) {
	t.Parallel()
	s := startProfefe(t)
	s.Of2019 = true
	dir := realFiles(t)
	for _, c := range []struct {
		labels []string
		want   string
	}{{nil, "shop/cart"}, {[]string{"--label", "instance=10.1.2.3:6060"}, "10.1.2.3:6060"}} {
		before := len(s.Profiles())
		args := append([]string{"import", "--url", s.URL(), "--protocol", "profefe", "--name", "shop/cart"}, c.labels...)
		expectCall(t, exitDone, "sent 6 profiles", "*", append(args, dir)...)
		for _, p := range s.Profiles()[before:] {
			expect(t, p.Instance == c.want, "%s: instance_id %q, expected %q", p.Type, p.Instance, c.want)
		}
	}
	n := len(s.Profiles())
	expect(t, n == 12 && len(s.Refused()) == 0, "%d profiles came, expected 12; refused %q", n, s.Refused())
	expectLines(t, verifyLines(t, exitDone, "write: [{name: store, url: \""+s.URL()+"/api/0/profiles\"}]\n"),
		map[string][]string{"store": {"ok", "accepted, and found after"}})
}

// A profile without samples is not sent, since profefe refuses it; the reason is said in words, and
// the others arrive.
func TestImportEmptyToProfefe(t *testing.T) {
	t.Parallel()
	s := startProfefe(t)
	dir := realFiles(t)
	writeFile(t, dir, "quiet.mutex.pb.gz", fakepprof.Gzip(withoutSamples()))
	r := expectCall(t, exitPeer, "sent 6 profiles",
		"quiet.mutex.pb.gz: not accepted: it has no samples, and the server takes no profile without any",
		"import", "--url", s.URL(), "--protocol", "profefe", "--name", "app", "--type", "mutex", dir)
	has(t, "stdout", r.stdout, "1 not accepted")
	expect(t, len(s.Profiles()) == 6 && len(s.Refused()) == 0,
		"%d profiles came, refused %q", len(s.Profiles()), s.Refused())
}

// TestVerifyProfefe checks that a stored profile is found in profefe's list, and that a refusal is
// reported in profefe's words.
func TestVerifyProfefe(t *testing.T) {
	t.Parallel()
	s, broken := startProfefe(t), startProfefe(t)
	broken.Down()
	config := fmt.Sprintf(`
global: {external_labels: {cluster: prod}}
write:
  - {name: store, url: "%s/api/0/profiles"}
  - {name: named, protocol: profefe, url: %q}
  - {name: wrong, protocol: profefe, url: "%s/elsewhere"}
  - {name: down, protocol: profefe, url: %q}
`, s.URL(), s.URL(), s.URL(), broken.URL())
	expectLines(t, verifyLines(t, exitPeer, config, "--timeout", "2s"), map[string][]string{
		"store": {"ok", "accepted, and found after"},
		"named": {"ok", "accepted, and found after"},
		"wrong": {"FAILED", "HTTP 404"},
		"down":  {"FAILED", "connection refused"},
	})
	for _, p := range s.Profiles() {
		expect(t, p.Service == "profpull-verify" && p.Type == "cpu" && len(p.Get("verify_id")) == 16 && p.Get("cluster") == "prod",
			"came: %s %s %v", p.Service, p.Type, p.Labels)
	}
	n := len(s.Profiles())
	expect(t, n == 2, "%d profiles came, expected 2: %q", n, s.Refused())
}

// A process in which nothing contends has empty lock profiles all the time: they are counted, not
// sent, and not worth a line of the log.
func TestEmptyProfilesForProfefe(t *testing.T) {
	t.Parallel()
	s := startProfefe(t)
	tg := newTarget(t, target.Options{})
	tg.SetBody("/debug/pprof/mutex", fakepprof.Gzip(withoutSamples()))
	files := t.TempDir()
	p := run(t, scraping(job("quiet", "scrape_interval: 200ms, profiles: "+only("mutex: {delta: off}, goroutine: {}"), tg),
		"name: store, url: "+s.URL()+"/api/0/profiles", "name: files, url: \"file://"+files+"\""))
	p.waitMetrics("empty profiles and others", func(m metrics) string {
		n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "store", "reason", "empty")
		text := m.ledger("store").balance()
		require(t, text == "" && n == m.ledger("store").dropped, "%s %.0f %+v", text, n, m.ledger("store"))
		return unless(n >= 3 && len(s.Profiles()) >= 3, "%.0f empty, %d stored", n, len(s.Profiles()))
	})
	l := finalLedger(t, p, "store")
	expect(t, l["sent"] == len(s.Profiles()) && len(s.Refused()) == 0,
		"%v, %d stored, refused %q", l, len(s.Profiles()), s.Refused())
	l = finalLedger(t, p, "files")
	expect(t, l["dropped"] == 0, "files: %v", l)
	if kept, _ := filepath.Glob(filepath.Join(files, "quiet", "mutex", "*")); len(kept) == 0 {
		entries, _ := os.ReadDir(files)
		t.Errorf("a file endpoint has no empty profiles: %v", entries)
	}
	expect(t, !strings.Contains(p.stderr.String(), "given up"), "empty profiles are in the log")
}
