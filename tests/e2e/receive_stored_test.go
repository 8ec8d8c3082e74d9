package e2e

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// acknowledged collects the numbers of the profiles that were answered with 200.
type acknowledged struct {
	mu   sync.Mutex
	next int
	ids  map[string]bool
}

// push sends profiles with numbers of their own, one after the other, until the server is gone.
func (a *acknowledged) push(base string, raw []byte, stop <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		a.mu.Lock()
		id := fmt.Sprint(a.next)
		a.next++
		a.mu.Unlock()
		resp, err := client.Post(base+"/ingest?name=kept{n="+id+"}", "", bytes.NewReader(raw))
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			a.mu.Lock()
			a.ids[id] = true
			a.mu.Unlock()
		}
	}
}

func (a *acknowledged) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

// With acknowledge: stored, nothing that was answered with 200 is lost by kill -9, at any moment: four
// kills, and two hundred with E2E_LONG. One destination is down and has a spool, the other is a store.
func TestAcknowledgedProfilesSurviveKills(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	s.Down()
	dir := t.TempDir()
	listen := loop.Host() + ":4040"
	config := fmt.Sprintf(`
scrape_configs: []
receive: {listen: %q, acknowledge: stored}
write:
- {name: main, url: %q, queue: {spool_directory: "%[3]s/spool", fsync: always, spool_max_bytes: 4GiB}, retry: {max_backoff: 1s}}
- {name: kept, url: "store://%[3]s/store"}
`, listen, s.URL(), dir)
	raw := fakepprof.Gzip(fakepprof.Make("goroutine", fakepprof.Options{}))
	all := &acknowledged{ids: map[string]bool{}}
	rounds := 4
	if os.Getenv("E2E_LONG") != "" {
		rounds = 200
	}
	for i := 0; i < rounds; i++ {
		p := run(t, config)
		stop := make(chan struct{})
		var senders sync.WaitGroup
		for k := 0; k < 8; k++ {
			senders.Add(1)
			go func() {
				defer senders.Done()
				all.push("http://"+listen, raw, stop)
			}()
		}
		before := all.count()
		p.wait("a profile to be acknowledged", func() string {
			return unless(all.count() != before, "none")
		})
		time.Sleep(time.Duration(rand.Intn(100)) * time.Millisecond) // the kill comes at any moment
		_ = p.cmd.Process.Kill()
		<-p.done
		close(stop)
		senders.Wait()
	}
	must(t, s.Up())
	p := run(t, config)
	p.waitMetrics("the queues to be empty", func(m metrics) string {
		for _, name := range []string{"main", "kept"} {
			if l := m.ledger(name); l.queued+l.inFlight > 0 || m.sum("profpull_write_spool_reading") > 0 {
				return fmt.Sprintf("%s: %+v", name, l)
			}
		}
		return ""
	})
	arrived := map[string]bool{}
	for _, r := range s.Profiles() {
		arrived[r.Labels["n"]] = true
	}
	var stored struct{ Names []string }
	askJSON(t, p, "LabelValues", map[string]any{"name": "n", "start": time.Now().Add(-time.Hour).UnixMilli(),
		"end": time.Now().Add(time.Hour).UnixMilli()}, &stored)
	kept := map[string]bool{}
	for _, name := range stored.Names {
		kept[name] = true
	}
	for id := range all.ids {
		expect(t, arrived[id] && kept[id],
			"profile %s was acknowledged: at the server %v, in the store %v", id, arrived[id], kept[id])
	}
	t.Logf("%d kills, %d pushed, %d acknowledged, %d arrived, %d stored", rounds, all.next, len(all.ids), len(arrived), len(kept))
}

// A profile that a destination cannot write in time is answered with 503, in the words of each API; one
// that it has no room for at once.
func TestAcknowledgementThatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{})
	s.Down()
	p, base := relay(t, ", acknowledge: stored, timeout: 1s", fmt.Sprintf(
		"{name: main, url: %q, queue: {max_bytes: 4MiB, spool_directory: %q, spool_max_bytes: 1MiB, fsync: always}}", s.URL(), t.TempDir()))
	small := fakepprof.Make("goroutine", fakepprof.Options{})
	status, text := post(t, base+"/ingest?name=small", "", small)
	expect(t, status == 200, "%d %s", status, text)
	// Larger than the spool may be: it stays in memory. Then too large for what is left there.
	large := append(fakepprof.Make("goroutine", fakepprof.Options{}), unknownField(3<<20)...)
	for _, c := range []struct{ path, contentType, want string }{
		{"/ingest?name=large", "", `"unavailable","message":"not every destination has stored this in time`},
		{"/ingest?name=larger", "", `the queues of all destinations are full`},
	} {
		status, text := post(t, base+c.path, c.contentType, large)
		expect(t, status == 503 && bytes.Contains([]byte(text), []byte(c.want)),
			"%s: %d %s, expected %s", c.path, status, text, c.want)
	}
	m := p.metrics()
	for result, want := range map[string]float64{"stored": 1, "late": 1, "not_stored": 0} {
		equal(t, "waits that ended as "+result, m.sum("profpull_receive_waits_total", "result", result), want)
	}
	must(t, s.Up()) // so that the program has nothing to wait for at its end
	expectCall(t, exitInput, "", "cannot say when a profile is on disk", "check", "--config",
		writeConfig(t, "receive: {listen: '127.0.0.1:0', acknowledge: stored}\nwrite: [{url: 'http://x'}]\n"))
}

// unknownField is a field of a protobuf message that no reader knows, of n bytes.
func unknownField(n int) []byte {
	return fakepprof.AppendBytes(nil, 1000, make([]byte, n))
}
