package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// A connection of HTTP/2 outlives a scrape that times out. If it is dead, the scrapes after that must
// not wait on it as well.
func TestScrapesLeaveADeadConnection(t *testing.T) {
	t.Parallel()
	body := pprof.Gzip(pprof.Make(target.Paths["/debug/pprof/heap"], pprof.Options{Functions: 20}))
	var mu sync.Mutex
	first, requests, hung, later := "", 0, 0, 0
	served := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if first == "" {
			first = r.RemoteAddr
		}
		dead := false
		if r.RemoteAddr == first {
			requests++
			dead = requests > 2
		}
		expect(t, r.ProtoMajor == 2, "%s", r.Proto)
		if dead {
			hung++
		} else if r.RemoteAddr != first {
			later++
		}
		mu.Unlock()
		if dead {
			<-r.Context().Done()
			return
		}
		_, _ = w.Write(body)
	}))
	served.EnableHTTP2 = true
	served.StartTLS()
	t.Cleanup(served.Close)
	server := newPyroscope(t, pyroscope.Options{})
	p := run(t, scraping(jobAt("dead", "scrape_interval: 500ms, scrape_timeout: 500ms, scheme: https, enable_http2: true, "+
		"tls_config: {insecure_skip_verify: true}, profiles: "+oneSnapshot, served.Listener.Addr().String()), to(server)))
	p.wait("scrapes on another connection", func() string {
		mu.Lock()
		defer mu.Unlock()
		return unless(later >= 3,
			"%d on the first connection, %d of them without a response, %d on others", requests, hung, later)
	})
	p.stop()
	expect(t, hung <= 2, "%d scrapes have waited on the dead connection", hung)
}
