package e2e

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/s3"
)

// bucketFaults are the ways in which a bucket fails, each until the next round.
var bucketFaults = []struct {
	name string
	set  func(s *s3.Server)
}{
	{"none", func(s *s3.Server) {}},
	{"slow down", func(s *s3.Server) { s.Busy = 0.5 }},
	{"no answer", func(s *s3.Server) {
		s.Faults.Set(&loop.Fault{Hang: true, Match: func(*http.Request) bool { return rand.Intn(4) == 0 }})
	}},
	{"cut bodies", func(s *s3.Server) { s.Cut = 0.5 }},
	{"lost answers", func(s *s3.Server) { s.Lose = 0.3 }},
	{"lost parts", func(s *s3.Server) { s.LosePart = true }},
	{"not found", func(s *s3.Server) { s.Vanish = 0.5 }},
	{"slow", func(s *s3.Server) { s.Delay = 200 * time.Millisecond }},
	{"lists late", func(s *s3.Server) { s.ListLate = 3 * time.Second }},
	{"full", func(s *s3.Server) { s.Quota = 1 }},
	{"wrong key", func(s *s3.Server) { s.Secret = "other" }},
	{"clock", func(s *s3.Server) { s.Ahead = 20 * time.Minute }},
	{"without ranges", func(s *s3.Server) { s.WithoutRanges = true }},
}

func mend(s *s3.Server) {
	s.Faults.Set(nil)
	s.Set(func(s *s3.Server) {
		s.Busy, s.Cut, s.Lose, s.Vanish, s.Delay, s.ListLate, s.Quota, s.Ahead = 0, 0, 0, 0, 0, 0, 0, 0
		s.Secret, s.LosePart, s.WithoutRanges, s.Arrived = s3.Secret, false, false, nil
	})
}

// killed is a writer that is killed, and the profiles that it has acknowledged.
type killed struct {
	t       *testing.T
	b       bucketOf
	dir     string
	receive string
	start   time.Time
	each    int64 // the value of each profile
	next    int
	acked   map[string]bool
}

func (k *killed) window(more map[string]any) map[string]any {
	request := map[string]any{"start": k.start.Add(-time.Minute).UnixMilli(), "end": k.start.Add(time.Hour).UnixMilli()}
	for name, v := range more {
		request[name] = v
	}
	return request
}

func (k *killed) run() *program {
	return run(k.t, archiveConfig(k.b, "w0", k.dir, k.receive, "merge: 1m, ", "  retention: {max_age: 1h}\n"))
}

// push sends a profile of a minute that is over. Only what was answered with success counts.
func (k *killed) push(minute int) {
	k.next++
	id := fmt.Sprint(k.next)
	raw := pprof.Make("goroutine", pprof.Options{Time: k.start.Add(time.Duration(minute)*time.Minute + time.Duration(k.next%50)*time.Second)})
	resp, err := http.Post("http://"+k.receive+"/push.v1.PusherService/Push", "application/proto", bytes.NewReader(pushOf(raw, "goroutine", "kept", "n", id)))
	if err != nil {
		return
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		k.acked[id] = true
	}
}

const goroutines = "goroutine:goroutine:count:goroutine:count"

// total is the sum of all profiles that a server finds, and how many there are.
func (k *killed) total(base string) (sum int64, found map[string]bool, partial string) {
	k.t.Helper()
	var values names
	partial = askOf(k.t, base, "LabelValues", k.window(map[string]any{"name": "n"}), &values)
	found = map[string]bool{}
	for _, id := range values.Names {
		found[id] = true
	}
	_, sum, p := flameOf(k.t, base, k.window(map[string]any{"profileTypeID": goroutines, "labelSelector": "{}"}))
	return sum, found, partial + p
}

// check asks for everything, which must be there once, whether it is on the disk or in the bucket.
func (k *killed) check(what, base string) {
	k.t.Helper()
	sum, found, partial := k.total(base)
	require(k.t, partial == "", "%s: not complete: %s", what, partial)
	for id := range k.acked {
		require(k.t, found[id], "%s: profile %s of %d is lost", what, id, len(k.acked))
	}
	require(k.t, sum == k.each*int64(len(found)),
		"%s: %d profiles with a sum of %d, expected %d for each", what, len(found), sum, k.each)
}

func (k *killed) listed(p *program) {
	p.wait("the list of objects", func() string {
		if p.metrics().sum("profpull_archive_up") != 1 {
			return tailLines(p.stderr.String(), 3)
		}
		return ""
	})
}

// round starts the writer, checks it, makes the bucket fail, pushes, and kills the writer: after a number of requests to
// the bucket, or after a time, in which it merges, uploads and removes files.
func (k *killed) round(s *s3.Server, i int) {
	mend(s)
	fault := bucketFaults[i%len(bucketFaults)]
	var requests atomic.Int64
	after := int64(1 + rand.Intn(30))
	enough := make(chan struct{})
	var once sync.Once
	begin := func() {
		s.Set(fault.set)
		s.Set(func(s *s3.Server) {
			s.Arrived = func(*http.Request) {
				if requests.Add(1) == after {
					once.Do(func() { close(enough) })
				}
			}
		})
	}
	// In every second round the bucket fails from the start on, and there is nothing to be checked.
	checked := i%2 == 0
	if !checked {
		begin()
	}
	p := k.run()
	if checked {
		k.listed(p)
		if len(k.acked) > 0 {
			k.check(fmt.Sprintf("round %d", i), p.admin)
		}
		begin()
	}
	for n := 0; n < 5; n++ {
		k.push(rand.Intn(20))
	}
	limit := time.Duration(5000+rand.Intn(4000)) * time.Millisecond
	if i%4 == 3 {
		limit = time.Duration(rand.Intn(1000)) * time.Millisecond
	}
	select {
	case <-enough:
	case <-time.After(limit):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	k.t.Logf("round %d: %s, killed after %d requests; %d profiles are acknowledged", i, fault.name, requests.Load(), len(k.acked))
	for _, line := range strings.Split(p.stderr.String(), "\n") {
		require(k.t, !strings.Contains(line, s3.Secret), "the log shows the secret: %s", line)
	}
}

// No profile is lost, doubled or read in part by kill -9 at any moment of merging, uploading and removing, while the bucket
// fails in all ways: 13 kills, or as many as ARCHIVE_KILLS says (make check-archive-kills: 200).
func TestArchiveSurvivesKills(t *testing.T) {
	t.Parallel()
	rounds := len(bucketFaults)
	if text := os.Getenv("ARCHIVE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		rounds = n
	}
	s, b := startBucket(t)
	sums, err := pprof.Parse(pprof.Make("goroutine", pprof.Options{}))
	must(t, err)
	k := &killed{t: t, b: b, dir: t.TempDir() + "/store", receive: loop.Host() + ":4040", acked: map[string]bool{},
		start: time.Now().Add(-3 * time.Hour).Truncate(time.Minute), each: sums.Sums()["goroutine"]}
	// A reader asks all the time: whatever it reads are whole profiles.
	reader := run(t, readerConfig(b, ""))
	stop, done := make(chan struct{}), make(chan int)
	var broken atomic.Value
	go func() {
		asked := 0
		for {
			select {
			case <-stop:
				done <- asked
				return
			case <-time.After(200 * time.Millisecond):
			}
			sum, found, _ := k.total(reader.admin)
			if sum%k.each != 0 {
				broken.Store(fmt.Sprintf("%d profiles with a sum of %d, expected %d for each", len(found), sum, k.each))
			}
			asked++
		}
	}()
	for i := 0; i < rounds; i++ {
		k.round(s, i)
	}
	close(stop)
	asked := <-done
	if text := broken.Load(); text != nil {
		t.Errorf("the reader has read a part of a profile: %v", text)
	}
	mend(s)
	p := k.run()
	k.listed(p)
	p.waitMetrics("everything to be archived", func(m metrics) string {
		if m.sum("profpull_archive_waiting_files") > 0 || m.sum("profpull_archive_uploads_total")+m.sum("profpull_archive_files") == 0 {
			return "files wait"
		}
		r := storeCommand(t, s, "list", k.dir, "--json")
		if r.code != exitDone || strings.Contains(r.stdout, `"state":"open"`) {
			return r.stdout
		}
		return ""
	})
	k.check("at the end", p.admin)
	p.stop()
	must(t, os.RemoveAll(k.dir))
	empty := run(t, readerConfig(b, ""))
	k.listed(empty)
	k.check("an empty reader", empty.admin)
	ends(t, storeCommand(t, s, "verify", b.url), exitDone, " fine\n", "*")
	t.Logf("%d kills, %d profiles acknowledged, the reader asked %d times", rounds, len(k.acked), asked)
}
