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
	if r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, "sent 6 profiles") || len(s.Refused()) != 0 {
		t.Fatalf("exit code %d\n%s%s%v", r.code, r.stdout, r.stderr, s.Refused())
	}
	names := map[string]string{"process_cpu": "cpu", "memory": "heap", "goroutine": "goroutine", "mutex": "mutex",
		"block": "block", "threadcreate": "threadcreate"}
	want := map[string][]byte{}
	for kind, data := range realProfiles(t) {
		if names[kind] == "" {
			t.Fatalf("no name for %s", kind)
		}
		want[names[kind]] = data
	}
	for _, p := range s.Profiles() {
		if data, ok := want[p.Type]; !ok || !bytes.Equal(data, p.Raw) {
			t.Errorf("%s: unknown, or other bytes than the file's", p.Type)
		}
		delete(want, p.Type)
		if p.Service != "shop/cart" || p.Get("odd") != odd || p.Get("pod") != "cart-7f" || p.Get("service_name") != "" {
			t.Errorf("%s: service %q, labels %q", p.Type, p.Service, p.Labels)
		}
		parsed, err := fakepprof.ParseGzip(p.Raw)
		if err != nil || p.CreatedAt.UnixNano() != parsed.TimeNanos {
			t.Errorf("%s: made at %v, by its own words at %d (%v)", p.Type, p.CreatedAt, parsed.TimeNanos, err)
		}
	}
	if len(want) != 0 {
		t.Errorf("did not come: %d of 6", len(want))
	}
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
		r := call(t, "", append(args, dir)...)
		if r.code != exitDone || !strings.Contains(r.stdout, "sent 6 profiles") {
			t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		for _, p := range s.Profiles()[before:] {
			if p.Instance != c.want {
				t.Errorf("%s: instance_id %q, expected %q", p.Type, p.Instance, c.want)
			}
		}
	}
	if n := len(s.Profiles()); n != 12 || len(s.Refused()) != 0 {
		t.Errorf("%d profiles came, expected 12; refused %q", n, s.Refused())
	}
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
	if !strings.Contains(r.stdout, "1 not accepted") {
		t.Error(r.stdout)
	}
	if len(s.Profiles()) != 6 || len(s.Refused()) != 0 {
		t.Errorf("%d profiles came, refused %q", len(s.Profiles()), s.Refused())
	}
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
		if p.Service != "profpull-verify" || p.Type != "cpu" || len(p.Get("verify_id")) != 16 || p.Get("cluster") != "prod" {
			t.Errorf("came: %s %s %v", p.Service, p.Type, p.Labels)
		}
	}
	if n := len(s.Profiles()); n != 2 {
		t.Errorf("%d profiles came, expected 2: %q", n, s.Refused())
	}
}

// A process in which nothing contends has empty lock profiles all the time: they are counted, not
// sent, and not worth a line of the log.
func TestEmptyProfilesForProfefe(t *testing.T) {
	t.Parallel()
	bin(t)
	s := startProfefe(t)
	tg := newTarget(t, target.Options{})
	tg.SetBody("/debug/pprof/mutex", fakepprof.Gzip(withoutSamples()))
	files := t.TempDir()
	p := run(t, `
global: {scrape_interval: 200ms}
scrape_configs:
  - job_name: quiet
    profiles: {process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {delta: off}}
    static_configs:
`+staticTargets("quiet", tg)+`
write:
  - {name: store, url: "`+s.URL()+`/api/0/profiles"}
  - {name: files, url: "file://`+files+`"}
`)
	p.wait("empty profiles and others", func() string {
		m := p.metrics()
		n := m.sum("profpull_write_dropped_profiles_total", "endpoint", "store", "reason", "empty")
		if text := m.ledger("store").balance(); text != "" || n != m.ledger("store").dropped {
			t.Fatalf("%s %.0f %+v", text, n, m.ledger("store"))
		}
		if n < 3 || len(s.Profiles()) < 3 {
			return fmt.Sprintf("%.0f empty, %d stored", n, len(s.Profiles()))
		}
		return ""
	})
	if l := finalLedger(t, p, "store"); l["sent"] != len(s.Profiles()) || len(s.Refused()) != 0 {
		t.Errorf("%v, %d stored, refused %q", l, len(s.Profiles()), s.Refused())
	}
	if l := finalLedger(t, p, "files"); l["dropped"] != 0 {
		t.Errorf("files: %v", l)
	}
	if kept, _ := filepath.Glob(filepath.Join(files, "quiet", "mutex", "*")); len(kept) == 0 {
		entries, _ := os.ReadDir(files)
		t.Errorf("a file endpoint has no empty profiles: %v", entries)
	}
	if strings.Contains(p.stderr.String(), "given up") {
		t.Error("empty profiles are in the log")
	}
}
