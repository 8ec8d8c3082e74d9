// Command refusals runs the program with one destination that refuses some tenants or profiles, and
// prints what that costs the others; or with one that is away for a while, and prints when the first
// profile arrives after it is back. scripts/faults/refusals.sh builds and calls it. It judges nothing.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

var (
	programPath = flag.String("program", "build/profpull", "the program under test")
	dir         = flag.String("dir", ".", "directory for configuration and logs")
	nTargets    = flag.Int("targets", 40, "targets, each of them a tenant of its own")
	interval    = flag.Duration("interval", 2*time.Second, "scrape interval")
	span        = flag.Duration("time", time.Minute, "how long the server refuses, or is away")
)

// One kind of refusal: every n-th target meets it.
type refusal struct {
	name     string
	protocol string
	every    int
	fault    loop.Fault
}

var refusals = []refusal{
	{"one tenant of 40: 429, Retry-After: 60", "push", 40, loop.Fault{Status: 429, Header: http.Header{"Retry-After": {"60"}}}},
	{"a fifth: 422 without a reason", "ingest", 5, loop.Fault{Status: 422}},
	{"a fifth: 500", "ingest", 5, loop.Fault{Status: 500}},
	{"a fifth: 500, code = Unavailable", "ingest", 5, loop.Fault{Status: 500, Body: "rpc error: code = Unavailable desc = closing"}},
}

func main() {
	measure.Begin("refusals")
	for _, r := range refusals {
		refuse(r)
	}
	away()
}

// ---- runs ---------------------------------------------------------------------------------------

// A run of the program with its targets and its destination.
type run struct {
	targets []*target.Target
	server  *pyroscope.Server
	end     func()
}

func start(protocol string, options pyroscope.Options) *run {
	r := &run{}
	var lists []string
	for i := 0; i < *nTargets; i++ {
		tg, err := target.Start(target.Options{})
		measure.Check(err)
		r.targets = append(r.targets, tg)
		lists = append(lists, fmt.Sprintf("{targets: [%q], labels: {service_name: s%d, __tenant_id__: s%d}}", tg.Addr(), i, i))
	}
	var err error
	r.server, err = pyroscope.Start(options)
	measure.Check(err)
	config := filepath.Join(*dir, "refusals.yaml")
	measure.Check(os.WriteFile(config, []byte(fmt.Sprintf(`global: {scrape_interval: %s}
scrape_configs:
  - job_name: all
    profiles: {memory: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}, process_cpu: {enabled: false}}
    static_configs: [%s]
write:
  - {name: main, protocol: %s, url: %q}
`, *interval, strings.Join(lists, ", "), protocol, r.server.URL())), 0o600))
	cmd, err := measure.Command(false, 0, filepath.Join(*dir, "profpull.log"), *programPath, "run", "--config", config,
		"--listen", "", "--drain-timeout", "1s")
	measure.Check(err)
	measure.Check(cmd.Start())
	r.end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		for _, tg := range r.targets {
			tg.Down()
		}
		r.server.Down()
	}
	return r
}

// index is the number of the target of a request.
func index(r *http.Request) (i int) {
	name := r.Header.Get("X-Scope-OrgID")
	if _, err := fmt.Sscanf(name, "s%d", &i); err != nil {
		return -1
	}
	return i
}

func refuse(what refusal) {
	r := start(what.protocol, pyroscope.Options{Multitenant: true})
	defer r.end()
	fault := what.fault
	fault.Match = func(req *http.Request) bool { return index(req)%what.every == 0 }
	r.server.Faults.Set(&fault)
	time.Sleep(*span)
	// The last ones may be on their way still.
	good := map[string]int{}
	for i, tg := range r.targets {
		if i%what.every != 0 {
			good[fmt.Sprintf("s%d", i)] = len(tg.Sent())
		}
	}
	time.Sleep(*interval / 2)
	expected, arrived := 0, 0
	for _, p := range r.server.Profiles() {
		if n := good[p.Tenant]; n > 0 {
			good[p.Tenant]--
			arrived++
			expected++
		}
	}
	for _, n := range good {
		expected += n
	}
	stats := r.server.Stats()
	fmt.Printf("%-40s %5d of %5d profiles of the others arrived in time; %d requests refused\n", what.name, arrived, expected,
		stats.ByStatus[what.fault.Status])
}

func away() {
	r := start("push", pyroscope.Options{})
	defer r.end()
	time.Sleep(*interval)
	r.server.Down()
	time.Sleep(*span)
	before := r.server.Count()
	back := time.Now()
	measure.Check(r.server.Up())
	for r.server.Count() == before && time.Since(back) < 6*time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("away for %v: the first profile arrived after %.1f s\n", *span, time.Since(back).Seconds())
}
