package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/profefe"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// The same profiles go to every kind of destination at once, the protocol read from the URL where it
// can be. One more destination hangs all the time (ten minutes with E2E_LONG): the others get
// everything, as soon as ever, and every ledger balances.
func TestEveryKindOfDestination(t *testing.T) {
	t.Parallel()
	push := newPyroscope(t, pyroscope.Options{BasePath: "/profile"})
	ingest := newPyroscope(t, pyroscope.Options{})
	deepflow := newPyroscope(t, pyroscope.Options{DeepFlow: true})
	hung := newPyroscope(t, pyroscope.Options{})
	hung.Faults.Set(&loop.Fault{Hang: true})
	store, err := profefe.Start()
	must(t, err)
	t.Cleanup(store.Down)
	dir := t.TempDir()
	tg := newTarget(t, target.Options{Functions: 50})
	p := run(t, `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: all
    profiles: {memory: {delta: off}, mutex: {delta: off}, block: {delta: off}, process_cpu: {seconds: 1s, interval: 2s}, fgprof: {enabled: true, seconds: 1s, interval: 2s}}
    static_configs: [{targets: ["`+tg.Addr()+`"], labels: {service_name: shop/cart, odd: "a,b=c% +"}}]
write:
  - {name: push, url: "`+push.URL()+`", protocol: auto}
  - {name: ingest, url: "`+ingest.URL()+`/ingest"}
  - {name: deepflow, url: "`+deepflow.URL()+`/api/v1/profile"}
  - {name: profefe, url: "`+store.URL()+`/api/0/profiles"}
  - {name: files, url: "file://`+dir+`"}
  - {name: hung, url: "`+hung.URL()+`", remote_timeout: 1s, queue: {max_bytes: 1MiB}}
`)
	const rounds = 1
	if os.Getenv("E2E_LONG") != "" {
		time.Sleep(10 * time.Minute)
	}
	names := map[string]string{}
	for path, name := range nameOfPath {
		names[path] = name
	}
	names["/debug/pprof/goroutine"] = "goroutines"
	for _, s := range []*pyroscope.Server{push, ingest, deepflow} {
		for _, name := range []string{"memory", "mutex", "block", "process_cpu", "fgprof"} {
			waitProfiles(t, s, rounds, func(r *pyroscope.Received) bool { return r.Name() == name })
		}
	}
	kinds := map[string]int{}
	p.wait("profefe to have every type", func() string {
		kinds = map[string]int{}
		for _, one := range store.Profiles() {
			kinds[one.Type]++
			require(t, one.Service == "shop/cart" && one.Get("odd") == "a,b=c% +" && one.Get("instance") == tg.Addr(),
				"%s %v", one.Service, one.Labels)
			fg := one.Get("profile_type")
			require(t, (one.Type == "other") == (fg == "fgprof"), "type %s, label %q", one.Type, fg)
		}
		for _, name := range []string{"cpu", "heap", "goroutine", "mutex", "block", "other"} {
			if kinds[name] < rounds {
				return fmt.Sprint(kinds)
			}
		}
		return ""
	})
	m := p.metrics()
	for _, name := range []string{"push", "ingest", "deepflow", "profefe", "files", "hung"} {
		text := m.ledger(name).balance()
		expect(t, text == "", "%s", text)
		t.Logf("%-9s sent %.0f in flight %.0f mean %.1f ms", name, m.sum("profpull_write_sent_profiles_total", "endpoint", name),
			m.sum("profpull_write_in_flight_profiles", "endpoint", name),
			1000*m.sum("profpull_write_request_duration_seconds_sum", "endpoint", name)/
				m.sum("profpull_write_request_duration_seconds_count", "endpoint", name))
	}
	for _, name := range []string{"push", "ingest", "deepflow", "profefe", "files"} {
		atMost(t, name+": profiles wait for the hung one", m.sum("profpull_write_queued_profiles", "endpoint", name), 6)
	}
	expect(t, m.sum("profpull_write_breaker_state", "endpoint", "hung") != 0 && m.sum("profpull_write_breaker_state", "endpoint", "push") == 0,
		"the breaker is not open for the hung destination alone")
	hung.Faults.Set(nil) // or the end would wait for it
	p.stop()
	checkArrived(t, push.Profiles(), nameOfPath, tg)
	checkArrived(t, ingest.Profiles(), names, tg)
	checkArrived(t, deepflow.Profiles(), names, tg)
	for _, s := range []*pyroscope.Server{push, ingest, deepflow} {
		noneRefused(t, s)
	}
	refused := store.Refused()
	expect(t, len(refused) == 0, "profefe refused %q", refused)
	files, _ := filepath.Glob(filepath.Join(dir, "shop_cart", "*", "*.pb.gz"))
	expect(t, len(files) >= 6*rounds, "%d files", len(files))
}

// A token is fetched once, and every request carries it.
func TestOAuth2(t *testing.T) {
	t.Parallel()
	issued := make(chan string, 100)
	issuer := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		issued <- fmt.Sprint(user, " ", secret, " ", r.PostFormValue("grant_type"), " ", r.PostFormValue("scope"))
		fmt.Fprint(w, `{"access_token":"abc","token_type":"Bearer","expires_in":3600}`)
	})
	server, tg := newNeighbours(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	p := run(t, scraping(job("a", "scrape_interval: 1s, profiles: "+only("goroutine: {}"), tg),
		to(server)+", oauth2: {client_id: me, client_secret_file: \""+secret+"\", token_url: "+issuer.URL()+"/token, scopes: [profiles:write]}"))
	for _, r := range waitProfiles(t, server, 3, nil) {
		equal(t, "Authorization", r.Header.Get("Authorization"), "Bearer abc")
	}
	p.stop()
	expect(t, len(issued) == 1, "%d tokens were fetched", len(issued))
	equal(t, "asked with", <-issued, "me s3cret client_credentials profiles:write")
}
