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
	later   time.Duration   // by which the clock of the bucket has gone on
	old     time.Time       // of the profile that is too old after the next step of this clock
	large   map[string]bool // the large profiles
	first   time.Time       // of the earliest of them
	eachOf  int64           // the value of each of them
}

func (k *killed) window(more map[string]any) map[string]any {
	request := map[string]any{"start": k.start.Add(-time.Minute).UnixMilli(), "end": k.start.Add(time.Hour).UnixMilli()}
	for name, v := range more {
		request[name] = v
	}
	return request
}

// patientQueries lets a slow machine finish the flame graphs of large profiles.
const patientQueries = "query: {timeout: 10m}\n"

// archiveKept is archive.max_age: more than the clock of the bucket goes on by in all rounds together.
const archiveKept = 3650 * 24 * time.Hour

func (k *killed) run() *program {
	name := fmt.Sprintf("w0, max_age: %.0fh", archiveKept.Hours())
	config := archiveConfig(k.b, name, k.dir, k.receive, "merge: 1m, ", "  retention: {max_age: 1h}\n")
	return run(k.t, strings.Replace(config, "acknowledge: stored", "acknowledge: stored, max_age: 0s", 1)+patientQueries)
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
	_, sum, p := flameOf(k.t, base, k.window(map[string]any{"profileTypeID": goroutines, "labelSelector": `{service_name="kept"}`}))
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

// checkLarge asks for the large profiles, which are days older than the others: day by day, as their stacks are many.
func (k *killed) checkLarge(what, base string) {
	k.t.Helper()
	found := map[string]bool{}
	for day := k.first; len(k.large) > 0 && day.Before(k.start.Add(-24*time.Hour)); day = day.Add(24 * time.Hour) {
		window := map[string]any{"start": day.UnixMilli(), "end": day.Add(time.Hour).UnixMilli(), "name": "n"}
		var values names
		askOf(k.t, base, "LabelValues", window, &values)
		for _, id := range values.Names {
			found[id] = true
		}
		window["profileTypeID"], window["labelSelector"] = goroutines, `{service_name="large"}`
		_, sum, partial := flameOf(k.t, base, window)
		require(k.t, partial == "" && sum == k.eachOf*int64(len(values.Names)),
			"%s: %d large profiles of a day with a sum of %d, expected %d for each; partial: %q", what, len(values.Names), sum, k.eachOf, partial)
	}
	for id := range k.large {
		require(k.t, found[id], "%s: large profile %s of %d is lost", what, id, len(k.large))
	}
}

func (k *killed) listed(p *program) {
	p.wait("the list of objects", func() string {
		if p.metrics().sum("profpull_archive_up") != 1 {
			return tailLines(p.stderr.String(), 3)
		}
		return ""
	})
}

// kill ends a writer by kill -9, and looks for the secret in its log.
func (k *killed) kill(p *program) {
	k.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.done
	for _, line := range strings.Split(p.stderr.String(), "\n") {
		require(k.t, !strings.Contains(line, s3.Secret), "the log shows the secret: %s", line)
	}
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
	k.kill(p)
	k.t.Logf("round %d: %s, killed after %d requests; %d profiles are acknowledged", i, fault.name, requests.Load(), len(k.acked))
}

// ---- kills at chosen requests --------------------------------------------------------------------

const largeFunctions = 40000

// store pushes a profile that must be stored.
func (k *killed) store(service, id string, o pprof.Options) {
	k.t.Helper()
	body := pushOf(pprof.Make("goroutine", o), "goroutine", service, "n", id)
	status, text := post(k.t, "http://"+k.receive+"/push.v1.PusherService/Push", "application/proto", body)
	require(k.t, status == http.StatusOK, "push: %d %s", status, text)
}

// pushLarge pushes profiles whose file takes several parts to upload, on a day of their own.
func (k *killed) pushLarge() {
	k.first = k.first.Add(-24 * time.Hour)
	for i := 0; i < 8; i++ {
		id := fmt.Sprintf("%s-%d", k.first.Format("20060102"), i)
		k.store("large", id, pprof.Options{Time: k.first.Add(time.Duration(i) * time.Second), Functions: largeFunctions})
		k.large[id] = true
	}
}

// pushOld pushes a profile that is archived, and too old when the clock of the bucket has gone on by one step.
func (k *killed) pushOld() {
	k.old = time.Now().Add(k.later + bucketStep/2 - archiveKept).Truncate(time.Minute)
	k.store("old", fmt.Sprint(k.old.Unix()), pprof.Options{Time: k.old})
}

func (k *killed) pushTwo() {
	for _, minute := range []int{3, 4} {
		k.push(minute)
	}
}

// bucketStep is by how much the clock of the bucket goes on: after the first step, the day of the profiles is over and
// can be merged.
const bucketStep = 31 * time.Hour

// archiveAims are the requests at which a writer is killed. push stores what leads to the request, if something is needed.
var archiveAims = []struct {
	name string
	push func(k *killed)
	set  func(s *s3.Server)
	hits func(k *killed, r *http.Request) bool
}{
	{"the database of a day", (*killed).pushTwo, nil, func(k *killed, r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/w0/data/") && strings.Contains(r.URL.Path, "Z-1d_")
	}},
	{"the index of a day", (*killed).pushTwo, nil, func(k *killed, r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/w0/index/") && strings.Contains(r.URL.Path, "Z-1d_")
	}},
	{"the removal of an object that a day has replaced", (*killed).pushTwo, nil, func(k *killed, r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, k.start.UTC().Format("/20060102T"))
	}},
	{"a part of a large file", (*killed).pushLarge, nil, func(_ *killed, r *http.Request) bool {
		return r.Method == http.MethodPut && r.URL.Query().Get("partNumber") == "2"
	}},
	{"the abort of an upload that has lost a part", nil, func(s *s3.Server) { s.LosePart = true }, func(_ *killed, r *http.Request) bool {
		return r.Method == http.MethodDelete && r.URL.Query().Get("uploadId") != ""
	}},
	{"the end of a large file", nil, nil, func(_ *killed, r *http.Request) bool {
		return r.Method == http.MethodPost && r.URL.Query().Get("uploadId") != ""
	}},
	{"the removal of an object that is too old", (*killed).pushOld, nil, func(k *killed, r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, k.old.UTC().Format("/20060102T1504"))
	}},
}

// waits says what a writer still has to do that does not depend on the clock of the bucket; "": nothing.
func (k *killed) waits(p *program) string {
	if n := p.metrics().sum("profpull_archive_waiting_files"); n > 0 {
		return fmt.Sprint(n, " files wait")
	}
	r := call(k.t, "", "store", "list", k.dir, "--json")
	return unless(r.code == exitDone && !strings.Contains(r.stdout, `"state":"open"`), "%s%s", r.stdout, r.stderr)
}

// aimed kills the writer at a request of one kind. From one start of the writer to the next, the clock of the bucket goes on,
// so that objects are old enough for what is to be done with them; but only if all files are archived, and no request
// was sent for some seconds.
func (k *killed) aimed(s *s3.Server, i int) {
	aim := archiveAims[i]
	mend(s)
	p := k.run()
	k.listed(p)
	k.check("before "+aim.name, p.admin)
	if aim.push != nil {
		aim.push(k)
	}
	// A file is complete when its writer has closed it.
	p.stop()
	hit := make(chan struct{})
	var once sync.Once
	var last atomic.Int64
	s.Set(func(s *s3.Server) {
		if aim.set != nil {
			aim.set(s)
		}
		s.Arrived = func(r *http.Request) {
			last.Store(time.Now().UnixNano())
			if aim.hits(k, r) {
				once.Do(func() { close(hit) })
			}
		}
	})
	for try := 1; try <= 10; try++ {
		p = k.run()
		// On a slow machine the next try waits longer, and a sanitizer is slower still.
		quiet := time.Duration(try) * 2 * time.Second
		if instrumented(k.t) {
			quiet *= 5
		}
		if k.reached(p, hit, &last, quiet) {
			k.kill(p)
			k.t.Logf("killed at %s, in try %d", aim.name, try)
			return
		}
		p.stop()
		k.step(s)
	}
	k.t.Fatalf("the writer has not come to %s; the bucket has %v; its log:\n%s", aim.name, s.Keys(""), tailLines(p.stderr.String(), 20))
}

// reached waits for the request, or until the writer has nothing to do and has sent no request for some time.
func (k *killed) reached(p *program, hit <-chan struct{}, last *atomic.Int64, quiet time.Duration) bool {
	k.t.Helper()
	for begin := time.Now(); ; {
		select {
		case <-hit:
			return true
		case <-time.After(100 * time.Millisecond):
		}
		idle := time.Since(begin) > quiet && time.Since(time.Unix(0, last.Load())) > quiet
		if idle && p.metrics().sum("profpull_archive_up") == 1 && k.waits(p) == "" {
			return false
		}
		require(k.t, time.Since(begin) <= patience(), "the writer comes to no rest: %s", k.waits(p))
	}
}

// step lets the clock of the bucket go on.
func (k *killed) step(s *s3.Server) {
	k.later += bucketStep
	s.Set(func(s *s3.Server) { s.Later = k.later })
}

// startOfKilled is a time three hours ago, or four, so that the minutes after it are all of one day.
func startOfKilled() time.Time {
	start := time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Minute)
	if start.Day() != start.Add(30*time.Minute).Day() {
		start = start.Add(-time.Hour)
	}
	return start
}

// askAlways asks a reader all the time, until end is called: whatever it reads are whole profiles.
func (k *killed) askAlways(reader *program) (end func() int) {
	stop, done := make(chan struct{}), make(chan struct{})
	asked := 0
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			sum, found, _ := k.total(reader.admin)
			expect(k.t, sum%k.each == 0, "the reader has read a part of a profile: %d profiles with a sum of %d, expected %d for each", len(found), sum, k.each)
			asked++
		}
	}()
	var once sync.Once
	end = func() int {
		once.Do(func() { close(stop) })
		<-done
		return asked
	}
	k.t.Cleanup(func() { end() })
	return end
}

// No profile is lost, doubled or read in part by kill -9 at any moment of merging, uploading and removing, while the bucket
// fails in all ways, nor by kill -9 at each of the requests of archiveAims: 20 kills, or as many as ARCHIVE_KILLS says
// (make check-archive-kills: 200).
func TestArchiveSurvivesKills(t *testing.T) {
	t.Parallel()
	cycle := len(bucketFaults) + len(archiveAims)
	rounds := cycle
	if text := os.Getenv("ARCHIVE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		rounds = n
	}
	s, b := startBucket(t)
	sumOf := func(o pprof.Options) int64 {
		sums, err := pprof.Parse(pprof.Make("goroutine", o))
		must(t, err)
		return sums.Sums()["goroutine"]
	}
	start := startOfKilled()
	k := &killed{t: t, b: b, dir: t.TempDir() + "/store", receive: loop.Host() + ":4040", acked: map[string]bool{}, start: start,
		each: sumOf(pprof.Options{}), large: map[string]bool{}, first: start.Add(-24 * time.Hour), eachOf: sumOf(pprof.Options{Functions: largeFunctions})}
	end := k.askAlways(run(t, readerConfig(b, "")))
	for i := 0; i < rounds; i++ {
		if at := i % cycle; at < len(bucketFaults) {
			k.round(s, i-i/cycle*len(archiveAims))
		} else {
			k.aimed(s, at-len(bucketFaults))
		}
	}
	asked := end()
	mend(s)
	k.step(s) // parts of uploads and databases without an index are old enough to be removed
	p := k.run()
	k.listed(p)
	p.wait("everything to be archived", func() string { return k.waits(p) })
	p.waitMetrics("left-overs to be removed", func(m metrics) string {
		data, indexes := len(s.Keys("/w0/data/")), len(s.Keys("/w0/index/"))
		return unless(data == indexes && data > 0 && s.Uploads() == 0, "%d databases, %d indexes, %d uploads", data, indexes, s.Uploads())
	})
	k.check("at the end", p.admin)
	k.checkLarge("at the end", p.admin)
	p.stop()
	must(t, os.RemoveAll(k.dir))
	empty := run(t, readerConfig(b, "")+patientQueries)
	k.listed(empty)
	k.check("an empty reader", empty.admin)
	k.checkLarge("an empty reader", empty.admin)
	ends(t, storeCommand(t, s, "verify", b.url), exitDone, " fine\n", "*")
	t.Logf("%d kills, %d profiles and %d large ones acknowledged, the reader asked %d times", rounds, len(k.acked), len(k.large), asked)
}
