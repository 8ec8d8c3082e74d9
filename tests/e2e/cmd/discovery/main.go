// Command discovery measures what Kubernetes discovery costs: a fake API server with many pods, the
// program under test tied to one core, and this program on the others. scripts/bench-discovery.sh
// builds and calls it. It judges nothing: times differ from machine to machine.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/pprof"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	nPods       = flag.Int("pods", 10000, "pods")
	podSize     = flag.Int("size", 12*1024, "bytes of a pod in JSON")
	heartbeats  = flag.Duration("heartbeats", 20*time.Second, "how long to send 500 heartbeats a second")
	dir         = flag.String("dir", "", "directory for configuration and logs")
	pinned      = flag.Bool("pin", true, "tie the program to the first core")
	only        = flag.String("only", "", "kept, dropped, vanish, share or start: one part alone")
	replicas    = flag.Int("replicas", 3, "how many share the pods, in the part \"share\"")
	encoding    = flag.String("encoding", "", "json or protobuf alone")
	sink        string                    // URL
	posts       = make(chan time.Time, 1) // the first profile that has arrived since it was read
	wrapper     = flag.String("wrapper", "", "a command to run the program under, such as a profiler")
)

const (
	hour          = time.Hour
	heartbeatRate = 500
	memoryTargets = "profpull_targets"
)

func main() {
	measure.Begin("bench")
	port := startTargets()
	sink = fmt.Sprintf("http://127.0.0.1:%d", port)
	kept := makePods(*nPods, *podSize, true, port)
	encodings := []string{"json", "protobuf"}
	if *encoding != "" {
		encodings = []string{*encoding}
	}
	for _, one := range encodings {
		*encoding = one
		fmt.Printf("%s: %d pods of %.1f KiB\n", one, *nPods, float64(len(kept[0].encoded(one == "protobuf", 1, longAgo)))/1024)
		measureAll(kept, port)
	}
	printRatios()
}

func measureAll(kept []*pod, port int) {
	if *only == "" || *only == "dropped" {
		measureDropped(makePods(*nPods, *podSize, false, port))
	}
	if *only == "" || *only == "kept" {
		measureKept(kept)
	}
	if *only == "" || *only == "vanish" {
		measureVanish(kept)
	}
	if *only == "" || *only == "share" {
		measureShare(kept)
	}
	if *only == "" || *only == "start" {
		measureStart(kept)
	}
}

// figures are the seconds of CPU that were measured, by what and by encoding.
var (
	figures  = map[string]map[string]float64{}
	measured []string
)

func figure(what string, seconds float64) {
	if figures[what] == nil {
		figures[what] = map[string]float64{}
		measured = append(measured, what)
	}
	figures[what][*encoding] = seconds
}

// printRatios compares the encodings, if both were measured.
func printRatios() {
	for _, what := range measured {
		if f := figures[what]; len(f) == 2 {
			line("protobuf / JSON, CPU: "+what, "%.2f", f["protobuf"]/f["json"])
		}
	}
}

func line(name, format string, args ...any) {
	fmt.Printf("  %-44s %s\n", name, fmt.Sprintf(format, args...))
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

// settle waits for the program to have done what it does when a list is over.
func settle() { time.Sleep(3 * time.Second) }

// startTargets answers for all targets, whatever their address in 127.0.0.0/8, and for the server that
// profiles are pushed to. It returns the port.
func startTargets() int {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	measure.Check(err)
	body := pprof.Gzip(pprof.Make("heap", pprof.Options{Functions: 20}))
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case posts <- time.Now():
		default:
		}
		w.Header().Set("Content-Type", "application/proto")
	}
	go func() { measure.Check(http.Serve(listener, http.HandlerFunc(handler))) }()
	return listener.Addr().(*net.TCPAddr).Port
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	measure.Check(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// ---- listing ------------------------------------------------------------------------------------

// first is how the first list went.
type first struct {
	wall          time.Duration
	cpu           float64
	before, after float64 // resident: before the list, settled after it
	peak          float64
}

// readFirst starts the program and lets it read its first list, until known says that all is known.
func readFirst(a *api, interval time.Duration, known func(m metrics) bool) (*program, first) {
	a.hold()
	return readFirstOf(startProgram(a.url, sink, interval, ""), a, known)
}

func readFirstOf(p *program, a *api, known func(m metrics) bool) (*program, first) {
	var f first
	<-a.waiting
	time.Sleep(500 * time.Millisecond)
	p.metrics() // what the first request to the admin server takes is not discovery's
	f.before = p.status("VmRSS")
	cpu := p.cpu()
	begin := time.Now()
	a.release()
	p.wait("the first list", known)
	f.wall, f.cpu = time.Since(begin), p.cpu()-cpu
	settle()
	f.after, f.peak = p.status("VmRSS"), p.status("VmHWM")
	return p, f
}

func (f first) report(what string) {
	perPod := 1e6 * f.cpu / float64(*nPods)
	figure("list to "+what, f.cpu)
	line("list to "+what, "%.2f s, CPU %.2f s (%.0f µs a pod)", f.wall.Seconds(), f.cpu, perPod)
	line("  resident before, after, peak", "%.1f, %.1f, %.1f MiB: peak %+.1f MiB over settled", mib(f.before), mib(f.after),
		mib(f.peak), mib(f.peak-f.after))
	line("  settled memory a pod", "%.0f bytes", (f.after-f.before)/float64(*nPods))
}

// relist makes the program list again, and waits for done.
func relist(a *api, p *program, what string, done func(m metrics) bool) {
	before := p.status("VmRSS")
	p.resetPeak()
	cpu := p.cpu()
	begin := time.Now()
	a.expire()
	<-a.waiting
	p.wait("the list after it", done)
	wall := time.Since(begin)
	used := p.cpu() - cpu
	settle()
	figure(what, used)
	line(what, "%.2f s, CPU %.2f s", wall.Seconds(), used)
	line("  resident before, after, peak", "%.1f, %.1f, %.1f MiB: peak %+.1f MiB", mib(before), mib(p.status("VmRSS")),
		mib(p.status("VmHWM")), mib(p.status("VmHWM")-before))
}

// lists is how many lists have been read to their end.
func lists(m metrics) float64 {
	return m.sum("profpull_discovery_requests_total", `verb="list"`, `result="ok"`)
}

func measureDropped(pods []*pod) {
	fmt.Println("pods that the rules drop (no annotation)")
	a := startAPI()
	a.set(pods)
	p, f := readFirst(a, hour, func(m metrics) bool { return lists(m) > 0 })
	defer p.end()
	f.report("its end")
	relist(a, p, "listed again, nothing has changed", func(m metrics) bool { return lists(m) > 1 })
}

func measureKept(pods []*pod) {
	fmt.Println("pods with one scrape each")
	a := startAPI()
	a.set(pods)
	all := float64(len(pods))
	p, f := readFirst(a, 24*hour, func(m metrics) bool { return m.sum(memoryTargets) == all })
	defer p.end()
	f.report("all targets known")
	relist(a, p, "listed again, nothing has changed", func(m metrics) bool { return lists(m) > 1 })
	measureHeartbeats(a, p, pods)
}

// measureShare is about one of some replicas: only its part may cost memory.
func measureShare(pods []*pod) {
	fmt.Printf("pods with one scrape each, shared by %d replicas\n", *replicas)
	a := startAPI()
	a.set(pods)
	all := float64(len(pods))
	known := func(m metrics) bool { return m.sum("profpull_sharding_targets") == all }
	a.hold()
	sharding := fmt.Sprintf("sharding: {mode: static, replicas: %d, index: 0}\n", *replicas)
	p, f := readFirstOf(startProgram(a.url, sink, 24*hour, sharding), a, known)
	defer p.end()
	f.report("the share known")
	m := p.metrics()
	line("  targets of this replica, label sets made", "%.0f, %.0f", m.sum(memoryTargets), m.sum("profpull_relabel_targets_total"))
	relist(a, p, "listed again, nothing has changed", func(m metrics) bool { return lists(m) > 1 })
}

// measureStart is about a start with all pods there, until the first profile has arrived.
func measureStart(pods []*pod) {
	fmt.Println("pods with one scrape each, every 15 s")
	a := startAPI()
	a.set(pods)
	a.release()
	select {
	case <-posts: // of the parts before
	default:
	}
	begin := time.Now()
	p := startProgram(a.url, sink, 15*time.Second, "")
	defer p.end()
	line("start to the first profile", "%.3f s", (<-posts).Sub(begin).Seconds())
}

// ---- events -------------------------------------------------------------------------------------

func measureHeartbeats(a *api, p *program, pods []*pod) {
	before, cpu := p.metrics(), p.cpu()
	p.resetPeak()
	rss := p.status("VmRSS")
	begin := time.Now()
	n := int(heartbeats.Seconds() * heartbeatRate)
	for i := 0; i < n; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / heartbeatRate)))
		a.modified(pods[i%len(pods)], i)
	}
	const events = "profpull_discovery_events_total"
	unchanged := before.sum(events, "unchanged") + float64(n)
	after := p.wait("the heartbeats to be read", func(m metrics) bool { return m.sum(events, "unchanged") >= unchanged || m.sum(events, "modified") > 0 })
	elapsed := time.Since(begin).Seconds()
	used := p.cpu() - cpu
	figure("heartbeats", used/float64(n))
	line(fmt.Sprintf("%d heartbeats, %.0f a second", n, float64(n)/elapsed), "%.1f %% of a core, %.0f µs each", 100*used/elapsed, 1e6*used/float64(n))
	const relabelled = "profpull_relabel_targets_total"
	line("  label sets through the rules, of it kept", "%.0f, %.0f", after.sum(relabelled)-before.sum(relabelled),
		after.sum(relabelled, "kept")-before.sum(relabelled, "kept"))
	line("  peak of resident memory", "%+.1f MiB", mib(p.status("VmHWM")-rss))
}

// ---- many go at once ----------------------------------------------------------------------------

func measureVanish(pods []*pod) {
	left := pods[:len(pods)*3/10]
	fmt.Printf("%d of %d pods vanish in a new list, all scraped every 15 s\n", len(pods)-len(left), len(pods))
	a := startAPI()
	a.set(pods)
	all := float64(len(pods))
	p, _ := readFirst(a, 15*time.Second, func(m metrics) bool { return m.sum(memoryTargets) == all })
	defer p.end()
	time.Sleep(20 * time.Second)

	before, cpu := p.metrics(), p.cpu()
	quiet := time.Now()
	time.Sleep(15 * time.Second)
	between := p.metrics()
	line("scraping before: lateness p99, max", "%s, %s; CPU %.1f %%", ms(late(before, between, 0.99)), ms(late(before, between, 1)),
		100*(p.cpu()-cpu)/time.Since(quiet).Seconds())
	a.set(left)
	relist(a, p, "from the expired version until they are gone", func(m metrics) bool { return m.sum(memoryTargets) == float64(len(left)) })
	time.Sleep(12 * time.Second)
	after := p.metrics()
	line("scraping of the others: lateness p99, max", "%s, %s", ms(late(between, after, 0.99)), ms(late(between, after, 1)))
	line("  scrapes good, failed", "%.0f, %.0f", after.sum("profpull_scrapes_total", `result="ok"`)-between.sum("profpull_scrapes_total", `result="ok"`),
		after.sum("profpull_scrape_failures_total")-between.sum("profpull_scrape_failures_total"))
}

func ms(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "over all bounds"
	}
	return fmt.Sprintf("under %g ms", seconds*1e3)
}
