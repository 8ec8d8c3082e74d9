// Command jfrref reads recordings of Java with the parser that Pyroscope runs, a number of times, and
// prints the sums of the profiles that it makes of the last one, and what that took.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/grafana/jfr-parser/pprof"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "jfrref:", err)
	os.Exit(1)
}

// summary is a line for each profile: its name, and the sum of each of its sample types.
func summary(p *pprof.Profiles) string {
	var lines []string
	for _, one := range p.Profiles {
		var b strings.Builder
		fmt.Fprintf(&b, "profile %s", one.Metric)
		for i, t := range one.Profile.SampleType {
			var sum int64
			for _, s := range one.Profile.Sample {
				sum += s.Value[i]
			}
			fmt.Fprintf(&b, " %s=%d", one.Profile.StringTable[t.Type], sum)
		}
		lines = append(lines, b.String())
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func main() {
	times := flag.Int("times", 1, "how often each file is read")
	flag.Parse()
	var last *pprof.Profiles
	for _, name := range flag.Args() {
		body, err := os.ReadFile(name)
		if err != nil {
			fail(err)
		}
		for i := 0; i < *times; i++ {
			if last, err = pprof.ParseJFR(body, &pprof.ParseInput{SampleRate: 100}, nil); err != nil {
				fail(err)
			}
			for _, p := range last.Profiles {
				if _, err := p.Profile.MarshalVT(); err != nil {
					fail(err)
				}
			}
		}
	}
	if last != nil {
		fmt.Println(summary(last))
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	fmt.Printf("cpu_ms %.1f\nmax_rss_kb %d\n", float64(cpu.Microseconds())/1000/float64(max(*times, 1)), u.Maxrss)
}
