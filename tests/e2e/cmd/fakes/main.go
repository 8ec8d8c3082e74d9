// Command fakes runs the fakes of the tests as one program, for benchmarks and for trying things out
// by hand.
//
//	fakes -targets 1000 -sink 127.0.0.1:4040 -cheap   targets and a server that counts
//	fakes -targets 5 -kube /tmp/kubeconfig            the targets as annotated pods of a fake cluster
//
// It prints the addresses as JSON on one line, then serves until it gets SIGTERM or SIGINT, and then
// prints what it has counted. At SIGUSR1 it prints how many profiles have been accepted so far.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/signal"
	"sort"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/growth"
	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

func main() {
	n := flag.Int("targets", 5, "fake pprof targets")
	shared := flag.Bool("shared", false, "one listener for all targets, each at an address of its own")
	grow := flag.Bool("grow", false, "the counters of memory, mutex and block grow with each answer; sizes as real ones")
	sizes := flag.String("sizes", "real", "body sizes: real (p50 6 KB, p90 67 KB, gzip) or small")
	sink := flag.String("sink", "127.0.0.1:4040", "address of the fake Pyroscope; empty = none")
	cheap := flag.Bool("cheap", false, "the sink counts only: nothing is checked or kept")
	answering := flag.String("any", "", "address of a server that reads each body and says that it took it, in the format of the request, as receivers of OTLP and push do")
	kubeconfig := flag.String("kube", "", "run a fake Kubernetes with the targets as pods; write its kubeconfig here")
	flag.Parse()

	addresses, served := startTargets(*n, *shared, makeOptions(*grow, *sizes))
	out := map[string]any{"targets": addresses}
	server := startSink(*sink, *cheap, out)
	startAny(*answering)
	startKube(*kubeconfig, addresses, out)
	line, err := json.Marshal(out)
	measure.Check(err)
	fmt.Println(string(line))

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGUSR1)
	for ended := false; !ended; {
		select {
		case <-ask:
			fmt.Println(accepted(server))
		case <-stop:
			ended = true
		}
	}
	report(served(), server)
}

// makeOptions returns those of each target.
func makeOptions(grow bool, sizes string) func(i int) target.Options {
	if grow {
		return growth.NewBodies().Options
	}
	bodies := makeBodies(sizes)
	return func(i int) target.Options {
		return target.Options{Quiet: true, Bodies: bodies[i%len(bodies)]}
	}
}

// makeBodies returns 20 sets of bodies by path. The sizes of the compressed profiles follow a
// log-normal curve through the measured median and 90th percentile.
func makeBodies(sizes string) []map[string][]byte {
	const sets = 20
	var all []map[string][]byte
	byKind := map[string][][]byte{}
	for kind := range pprof.Kinds {
		for i := 0; i < sets; i++ {
			functions := 3
			if sizes == "real" {
				functions = functionsFor(quantile((float64(i) + 0.5) / sets))
			}
			byKind[kind] = append(byKind[kind], pprof.Gzip(pprof.Make(kind, pprof.Options{Functions: functions})))
		}
	}
	var paths []string
	for path := range target.Paths {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for i := 0; i < sets; i++ {
		set := map[string][]byte{}
		for j, path := range paths {
			set[path] = byKind[target.Paths[path]][(i+7*j)%sets]
		}
		all = append(all, set)
	}
	return all
}

// quantile of the size distribution in bytes.
func quantile(p float64) float64 {
	const median, p90 = 6000.0, 67000.0
	sigma := math.Log(p90/median) / 1.2816
	return median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
}

// functionsFor is the number of functions that makes a profile of about so many compressed bytes.
func functionsFor(bytes float64) int {
	n := int(bytes / 35)
	if n < 3 {
		n = 3
	}
	if n > 15000 {
		n = 15000
	}
	return n
}

// startTargets returns their addresses and what counts their answers.
func startTargets(n int, shared bool, options func(i int) target.Options) (addresses []string, served func() int64) {
	if shared {
		many, err := target.StartMany(n, options)
		measure.Check(err)
		return many.Addrs, many.Served
	}
	var all []*target.Target
	for i := 0; i < n; i++ {
		t, err := target.Start(options(i))
		measure.Check(err)
		all = append(all, t)
		addresses = append(addresses, t.Addr())
	}
	return addresses, func() (n int64) {
		for _, t := range all {
			n += t.Served()
		}
		return n
	}
}

func startSink(addr string, cheap bool, out map[string]any) *pyroscope.Server {
	if addr == "" {
		return nil
	}
	s, err := pyroscope.Start(pyroscope.Options{Addr: addr, Cheap: cheap})
	measure.Check(err)
	out["sink"] = s.URL()
	return s
}

func startAny(addr string) {
	if addr == "" {
		return
	}
	_, err := loop.Start(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	}), nil)
	measure.Check(err)
}

func startKube(kubeconfig string, targets []string, out map[string]any) {
	if kubeconfig == "" {
		return
	}
	s, err := kube.Start(kube.Options{})
	measure.Check(err)
	for i, t := range targets {
		s.Put(kube.Annotated(fmt.Sprintf("shop-%d", i), t, "cpu", "memory", "goroutine", "mutex", "block"))
	}
	measure.Check(s.WriteKubeconfig(kubeconfig))
	out["kubernetes"], out["kubeconfig"] = s.URL(), kubeconfig
}

func accepted(server *pyroscope.Server) int64 {
	if server == nil {
		return 0
	}
	return int64(server.Stats().Accepted)
}

func report(served int64, server *pyroscope.Server) {
	out := map[string]any{"served": served}
	if server != nil {
		st := server.Stats()
		out["accepted"], out["bytes"], out["requests"], out["status"] = st.Accepted, st.Bytes, st.Requests, st.ByStatus
		out["refused"] = len(server.Refused())
		out["last_refused"] = tail(server.Refused())
	}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		out["cpu_seconds"] = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	}
	line, err := json.Marshal(out)
	measure.Check(err)
	fmt.Println(string(line))
}

func tail(lines []string) []string {
	if len(lines) > 3 {
		return lines[len(lines)-3:]
	}
	return lines
}
