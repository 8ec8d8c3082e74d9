package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// nameOfPath is the `__name__` of what a fake target serves at a path.
var nameOfPath = map[string]string{
	"/debug/pprof/profile": "process_cpu", "/debug/pprof/allocs": "memory", "/debug/pprof/goroutine": "goroutine",
	"/debug/pprof/mutex": "mutex", "/debug/pprof/block": "block", "/debug/fgprof": "fgprof",
}

// checkArrived compares what arrived with what the targets have sent: every profile is one that was
// sent, byte for byte, of the right type, and none came twice.
func checkArrived(t *testing.T, got []pyroscope.Received, names map[string]string, targets ...*target.Target) {
	t.Helper()
	sent := map[string]string{}
	for _, tg := range targets {
		for sum, path := range tg.Sent() {
			sent[sum] = path
		}
	}
	seen := map[string]bool{}
	for _, r := range got {
		path, ok := sent[r.SHA256]
		switch {
		case !ok:
			t.Errorf("a profile %s of %s arrived that no target has sent", r.Name(), r.Labels["instance"])
		case names[path] != r.Name():
			t.Errorf("what was sent at %s arrived as %s", path, r.Name())
		case seen[r.SHA256]:
			t.Errorf("a profile %s of %s arrived twice", r.Name(), r.Labels["instance"])
		}
		seen[r.SHA256] = true
	}
}

// TestPushIsByteForByte checks that a Pyroscope server gets by Push what a target sends: the same
// bytes, once, compressed or not, with job, instance, service_name, and the tenant and headers of the
// endpoint.
func TestPushIsByteForByte(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{BasePath: "/profile", Multitenant: true,
		Username: "12345", Password: "token-of-the-test"})
	big := newTarget(t, target.Options{Functions: 3000})
	small := newTarget(t, target.Options{})
	plain := newTarget(t, target.Options{Functions: 200})
	plain.SetFault("", target.Plain)
	p := run(t, `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: bytes
    profiles: {memory: {delta: off}, mutex: {delta: off}, block: {delta: off}, process_cpu: {seconds: 1s}}
    static_configs:
`+staticTargets("shop/cart", big, small, plain)+`
write:
  - name: main
    url: "`+server.URL()+`/"
    tenant_id: team-a
    headers: {X-Test: "yes"}
    basic_auth: {username: "12345", password: token-of-the-test}
`)
	waitProfiles(t, server, 45, nil)
	p.stop()
	got := server.Profiles()
	checkArrived(t, got, nameOfPath, big, small, plain)
	noneRefused(t, server)
	uncompressed := 0
	ids := map[string]string{}
	for _, r := range got {
		// The ID depends on the bytes alone.
		other, twice := ids[r.ID]
		expect(t, len(r.ID) == 36 && (!twice || other == r.SHA256), "ID %q of %s, and of %s", r.ID, r.SHA256, other)
		ids[r.ID] = r.SHA256
		require(t, r.Labels["job"] == "bytes" && r.Labels["service_name"] == "shop/cart" && r.Tenant == "team-a" &&
			r.Header.Get("X-Test") == "yes" && strings.HasPrefix(r.Header.Get("User-Agent"), "profpull/"),
			"labels %v, header %v", r.Labels, r.Header)
		if r.Labels["instance"] == plain.Addr() {
			uncompressed++
			expect(t, !pprof.IsGzip(r.Raw), "what came plain was compressed on the way")
		}
	}
	expect(t, uncompressed != 0, "nothing of the plain target arrived")
	p.keepsSecret("token-of-the-test")
	for _, tg := range []*target.Target{big, small, plain} {
		expect(t, tg.Overlaps() == 0, "%d overlapping CPU profiles", tg.Overlaps())
		for _, r := range tg.RequestsFor("/debug/pprof/profile") {
			require(t, r.Query == "seconds=1", "CPU profile asked for with %q", r.Query)
		}
	}
}

// By /ingest the same bytes arrive at a strict Pyroscope and at a DeepFlow agent, which reads less:
// in multipart with filenames, with labels that the name's grammar can carry, and a block profile is
// a block profile and not one of a mutex.
func TestIngestIsUnderstood(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	deepflow := newPyroscope(t, pyroscope.Options{DeepFlow: true})
	tg := newTarget(t, target.Options{Functions: 100})
	p := run(t, `
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: ingest
    profiles: {memory: {delta: off}, mutex: {delta: off}, block: {delta: off}, process_cpu: {seconds: 1s}, fgprof: {enabled: true, seconds: 1s, interval: 4s}}
    static_configs:
      - targets: ["`+tg.Addr()+`"]
        labels: {service_name: shop.cart, "app.kubernetes.io/name": cart, odd: "a,b}c={d} e", zone: "Zürich & more"}
write:
  - {name: pyroscope, protocol: ingest, url: "`+server.URL()+`"}
  - {name: deepflow, protocol: ingest, url: "`+deepflow.URL()+`/api/v1/profile/ingest"}
`)
	names := map[string]string{}
	for path, name := range nameOfPath {
		names[path] = name
	}
	names["/debug/pprof/goroutine"] = "goroutines" // the server's own naming on this endpoint
	for _, s := range []*pyroscope.Server{server, deepflow} {
		for _, name := range names {
			waitProfiles(t, s, 1, func(r *pyroscope.Received) bool { return r.Name() == name })
		}
	}
	p.stop()
	for _, s := range []*pyroscope.Server{server, deepflow} {
		checkArrived(t, s.Profiles(), names, tg)
		noneRefused(t, s)
		for _, r := range s.Profiles() {
			require(t, r.Labels["service_name"] == "shop.cart" && r.Labels["instance"] == tg.Addr() &&
				r.Labels["zone"] == "Zürich & more" && r.Labels["app_kubernetes_io_name"] == "cart" &&
				strings.HasPrefix(r.Labels["odd"], "a"),
				"labels %v", r.Labels)
			from, until := r.Query.Get("from"), r.Query.Get("until")
			require(t, len(from) == 10 && len(until) == 10 && from <= until, "from %q until %q", from, until)
		}
	}
}

// The file endpoint stores each profile as a file with the bytes that were sent; Go's tool reads it.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by", "profpull")
	tg := newTarget(t, target.Options{Functions: 50})
	p := run(t, scraping(job("files", "scrape_interval: 2s, profiles: {memory: {delta: off}, mutex: {delta: off}, block: {delta: off}, process_cpu: {seconds: 1s}}", tg),
		"name: files, url: \"file://"+dir+"\""))
	stored := func() (files []string) {
		_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() && strings.HasSuffix(path, ".pb.gz") {
				files = append(files, path)
			}
			return nil
		})
		return files
	}
	p.wait("files", func() string {
		files := stored()
		return unless(len(files) >= 15, "%d files", len(files))
	})
	p.stop()
	l := tailLines(p.stderr.String(), 5)
	expect(t, strings.Contains(l, "dropped=0"), "no summary without drops at the end:\n%s", l)
	sent := tg.Sent()
	checked := map[string]bool{}
	for _, file := range stored() {
		raw := readFile(t, file)
		sum := sha256.Sum256(raw)
		path, ok := sent[hex.EncodeToString(sum[:])]
		if !ok {
			t.Errorf("%s is not what a target has sent", file)
			continue
		}
		expect(t, strings.Contains(file, nameOfPath[path]), "what was sent at %s is stored as %s", path, file)
		if !checked[path] {
			checked[path] = true
			top := pprofTop(t, raw)
			expect(t, strings.Contains(top, "step1"), "go tool pprof reads %s as\n%s", file, top)
		}
	}
	expect(t, len(checked) == 5, "files of %d types", len(checked))
	// A label value that looks like a way out of the directory must not be one.
	parent, err := filepath.Glob(filepath.Join(dir, "..", "*"))
	expect(t, err == nil && len(parent) == 1, "beside the directory: %v %v", parent, err)
}
