// Command deltaref checks the delta engine against google/pprof's own merge, and against a plain
// model of it that also knows restarts, times, and what must be left out: profiles are decoded into
// maps from the text of a stack to its values, and subtracted.
//
//	deltaref -tool build/tests/delta-tool -pairs 1000            random pairs
//	deltaref -tool build/tests/delta-tool -loadgen build/loadgen pairs of a Go program under load
//	deltaref -tool build/tests/legacy-tool -legacy 1000          conversions of old formats
//	deltaref -tool build/tests/merge-tool -merge 1000            merges of random profiles
//	deltaref -tool build/tests/merge-tool -merge 1 PROFILE...    the merge of these files
//	deltaref -tool build/tests/merge-tool -merge 500 PROFILE...  random sets of these files
//	deltaref -tool build/tests/merge-tool -merge 500 -loadgen build/loadgen
//	                                                             of a Go program's profiles
//	deltaref -bench BEFORE AFTER                                 what google/pprof needs for it
//	deltaref -make 1150 BEFORE AFTER                             writes two heap profiles
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	tool := flag.String("tool", "", "delta-tool")
	pairs := flag.Int("pairs", 1000, "random pairs")
	seed := flag.Int64("seed", 1, "of the random pairs")
	loadgen := flag.String("loadgen", "", "program to take pairs from")
	merge := flag.Int("merge", 0, "random merges, of generated profiles, of files, or of those of -loadgen")
	columns := flag.Bool("columns", true, "random profiles have columns: the reference must compare those of all lines")
	legacy := flag.Int("legacy", 0, "random profiles in old formats")
	bench := flag.Bool("bench", false, "measure google/pprof with the files BEFORE AFTER")
	times := flag.Int("n", 20, "rounds of -bench")
	samples := flag.Int("make", 0, "samples of the heap profiles to write")
	flag.Parse()
	log.SetFlags(0)
	if *samples > 0 {
		makeHeaps(*samples, flag.Arg(0), flag.Arg(1))
		return
	}
	if *bench {
		runBench(flag.Arg(0), flag.Arg(1), *times)
		return
	}
	dir, err := os.MkdirTemp("", "deltaref")
	check(err)
	c := &checker{tool: *tool, dir: dir, columns: *columns}
	if *legacy > 0 {
		c.legacy(*legacy, *seed)
	} else if *merge > 0 && flag.NArg() > 0 {
		c.mergeFiles(flag.Args(), *merge, *seed)
	} else if *merge > 0 && *loadgen != "" {
		c.mergeReal(*loadgen, *merge, *seed)
	} else if *merge > 0 {
		c.merges(*merge, *seed)
	} else if *loadgen != "" {
		c.real(*loadgen)
	} else {
		c.random(*pairs, *seed)
	}
	if c.failed == 0 {
		os.RemoveAll(dir)
	}
	fmt.Printf("%d pairs, %d samples compared, %d of them with google/pprof's, %d restarts, %d failed\n",
		c.pairs, c.samples, c.google, c.restarts, c.failed)
	if c.failed > 0 || c.pairs == 0 || c.google == 0 {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type checker struct {
	tool, dir                        string
	pairs, samples, restarts, failed int
	google                           int
	columns                          bool
}

// run gives a pair to the tool. The word is how it went.
func (c *checker) run(before, after []byte) (string, []byte, error) {
	names := []string{"before", "after", "out"}
	for i := range names {
		names[i] = filepath.Join(c.dir, names[i])
	}
	check(os.WriteFile(names[0], before, 0o600))
	check(os.WriteFile(names[1], after, 0o600))
	said, err := exec.Command(c.tool, names...).CombinedOutput()
	if err != nil {
		return "", nil, fmt.Errorf("%v: %s", err, said)
	}
	out, err := os.ReadFile(names[2])
	check(err)
	return strings.Fields(string(said))[0], out, nil
}

func (c *checker) pair(name string, before, after []byte, restarted bool) {
	c.pairs++
	word, out, err := c.run(before, after)
	want := "delta"
	if restarted {
		c.restarts++
		want = "rebased"
	}
	if err == nil && word != want {
		err = fmt.Errorf("%s, want %s", word, want)
	}
	if err == nil {
		err = c.compare(before, after, out, restarted)
	}
	if err == nil && !restarted {
		err = c.compareGoogle(before, after, out)
	}
	if err != nil {
		c.failed++
		fmt.Printf("%s: %v\n", name, err)
		for i, b := range [][]byte{before, after} {
			path := filepath.Join(c.dir, fmt.Sprintf("failed-%d-%d.pb", c.failed, i))
			check(os.WriteFile(path, b, 0o600))
			fmt.Println("  kept as", path)
		}
	}
}

// expect subtracts: the sums of after, counters less those of before; all zero is left out.
func expect(before, after *profile, restarted bool) map[string][]int64 {
	old := before.sums()
	want := map[string][]int64{}
	for key, row := range after.sums() {
		zero := true
		for i, t := range after.Types {
			if isCounter(t) && restarted {
				row[i] = 0
			} else if isCounter(t) && old[key] != nil {
				row[i] -= old[key][i]
			}
			zero = zero && row[i] == 0
		}
		if !zero {
			want[key] = row
		}
	}
	return want
}

func (c *checker) compare(beforeBytes, afterBytes, outBytes []byte, restarted bool) error {
	before, err := parse(beforeBytes)
	check(err)
	after, err := parse(afterBytes)
	check(err)
	want := expect(before, after, restarted)
	if len(outBytes) == 0 {
		if len(want) != 0 {
			return fmt.Errorf("nothing, want %d samples", len(want))
		}
		return nil
	}
	out, err := parse(outBytes)
	if err != nil {
		return fmt.Errorf("output: %v", err)
	}
	got := out.sums()
	if len(got) != len(out.Samples) || len(got) != len(want) {
		return fmt.Errorf("%d samples, %d stacks, want %d", len(out.Samples), len(got), len(want))
	}
	for key, row := range got {
		c.samples++
		if fmt.Sprint(row) != fmt.Sprint(want[key]) {
			return fmt.Errorf("%v, want %v, of %q", row, want[key], key)
		}
	}
	duration := after.Duration
	if !restarted && before.Time > 0 && after.Time > before.Time {
		duration = after.Time - before.Time
	}
	if out.Time != after.Time || out.Duration != duration {
		return fmt.Errorf("time %d for %d, want %d for %d", out.Time, out.Duration, after.Time, duration)
	}
	return out.checkLean(after)
}

// checkLean: nothing is there that no sample needs, and what is there is what it was.
func (p *profile) checkLean(after *profile) error {
	locations, functions, mappings := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for _, s := range p.Samples {
		for _, id := range s.Locations {
			locations[id] = true
		}
	}
	for id := range locations {
		l := p.Locations[id]
		if fmt.Sprint(*l) != fmt.Sprint(*after.Locations[id]) {
			return fmt.Errorf("location %d has changed", id)
		}
		mappings[l.Mapping] = true
		for _, n := range l.Lines {
			functions[n.Function] = true
			if *p.Functions[n.Function] != *after.Functions[n.Function] {
				return fmt.Errorf("function %d has changed", n.Function)
			}
		}
	}
	delete(mappings, 0)
	if len(locations) != len(p.Locations) || len(functions) != len(p.Functions) ||
		len(mappings) != len(p.Mappings) {
		return fmt.Errorf("%d locations of %d, %d functions of %d, %d mappings of %d are used",
			len(locations), len(p.Locations), len(functions), len(p.Functions), len(mappings),
			len(p.Mappings))
	}
	for i, s := range p.Strings {
		if s != "" && !p.used[uint64(i)] {
			return fmt.Errorf("string %d %q is not used", i, s)
		}
	}
	return nil
}

func (c *checker) random(n int, seed int64) {
	for i := 0; i < n; i++ {
		r := rand.New(rand.NewSource(seed + int64(i)))
		w := newWorld(r)
		w.grow()
		before := w.write()
		restarted := false
		if r.Intn(8) == 0 {
			restarted = w.restart()
		}
		w.addStacks(r.Intn(10))
		if !restarted {
			w.grow()
		}
		c.pair(fmt.Sprintf("seed %d", seed+int64(i)), before, w.write(), restarted)
	}
}

// restart lets the counters fall. False if there is nothing that could.
func (w *world) restart() bool {
	fell := false
	for _, s := range w.stacks {
		for i, t := range w.types {
			if isCounter(t) && s.values[i] > 0 {
				s.values[i] = w.r.Int63n(s.values[i])
				fell = true
			}
		}
	}
	return fell
}

// real takes pairs from a Go program under load.
func (c *checker) real(program string) {
	last := map[string][]byte{}
	scrape(program, deltaPaths, func(path string, round int, body []byte) {
		if before := last[path]; before != nil {
			c.pair(fmt.Sprintf("%s %d", path, round), before, body, false)
		}
		last[path] = body
	})
}

// mergeReal merges all profiles of a kind that a Go program under load gives, and n random sets of
// them.
func (c *checker) mergeReal(program string, n int, seed int64) {
	all := map[string][][]byte{}
	paths := append([]string{"goroutine", "threadcreate", "profile?seconds=1"}, deltaPaths...)
	scrape(program, paths, func(path string, round int, body []byte) {
		all[path] = append(all[path], body)
	})
	for path, profiles := range all {
		c.mergeCase(path, profiles, hasCounters(path))
	}
	c.mergeSets(all, n, seed)
}

// deltaPaths are those of profiles with counters.
var deltaPaths = []string{"heap", "allocs?gc=1", "mutex", "block"}

func hasCounters(path string) bool {
	for _, p := range deltaPaths {
		if p == path {
			return true
		}
	}
	return false
}

// scrape runs a program and calls on for each of its profiles.
func scrape(program string, paths []string, on func(path string, round int, body []byte)) {
	const address = "127.0.0.1:16917"
	cmd := exec.Command(program, "-listen", address, "-busy", "0.3")
	check(cmd.Start())
	defer cmd.Process.Kill()
	for round := 0; round < 8; round++ {
		time.Sleep(500 * time.Millisecond)
		for _, path := range paths {
			body, err := get("http://" + address + "/debug/pprof/" + path)
			if err != nil {
				log.Printf("%s: %v", path, err)
				continue
			}
			on(path, round, body)
		}
	}
}

func get(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

func cpu() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
