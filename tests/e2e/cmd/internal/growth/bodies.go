// Package growth has targets whose counters grow, destinations that add up what arrives of them, and
// the program between the two: what the programs of scripts/faults that compare sums have in common.
// What goes wrong with the fakes ends the process.
package growth

import (
	"fmt"
	"math"
	"sort"
	"sync"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/target"
)

const sets = 20

var growing = map[string]string{
	"/debug/pprof/allocs": "memory", "/debug/pprof/mutex": "mutex", "/debug/pprof/block": "block",
}

// Bodies makes each body once: targets of a set answer alike.
type Bodies struct {
	plain     []map[string][]byte
	functions []map[string]int

	mu   sync.Mutex
	made map[string]*body
}

type body struct {
	once sync.Once
	gz   []byte
}

// NewBodies makes those that do not grow.
func NewBodies() *Bodies {
	b := &Bodies{made: map[string]*body{}}
	var paths []string
	for path := range target.Paths {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for i := 0; i < sets; i++ {
		plain, functions := map[string][]byte{}, map[string]int{}
		for j, path := range paths {
			functions[path] = functionsFor(quantile((float64((i+7*j)%sets) + 0.5) / sets))
			plain[path] = pprof.Gzip(pprof.Make(target.Paths[path], pprof.Options{Functions: functions[path]}))
		}
		b.plain, b.functions = append(b.plain, plain), append(b.functions, functions)
	}
	return b
}

// Targets starts n targets with these bodies.
func (b *Bodies) Targets(n int) []*target.Target {
	var targets []*target.Target
	for i := 0; i < n; i++ {
		t, err := target.Start(b.Options(i))
		measure.Check(err)
		targets = append(targets, t)
	}
	return targets
}

// Options are those of target number i.
func (b *Bodies) Options(i int) target.Options {
	set := i % sets
	return target.Options{Quiet: true, Bodies: b.plain[set],
		Body: func(path string, n int) []byte { return b.get(set, path, n) }}
}

func (b *Bodies) get(set int, path string, n int) []byte {
	if growing[path] == "" {
		return nil
	}
	key := fmt.Sprint(set, path, n)
	b.mu.Lock()
	one := b.made[key]
	if one == nil {
		one = &body{}
		b.made[key] = one
	}
	b.mu.Unlock()
	one.once.Do(func() {
		o := pprof.Options{Functions: b.functions[set][path], Round: n}
		one.gz = pprof.Gzip(pprof.Make(target.Paths[path], o))
	})
	return one.gz
}

// The compressed sizes follow a log-normal curve, as in cmd/fakes.
func quantile(p float64) float64 {
	const median, p90 = 6000.0, 67000.0
	sigma := math.Log(p90/median) / 1.2816
	return median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
}

func functionsFor(bytes float64) int {
	return int(math.Min(math.Max(bytes/35, 3), 15000))
}

var counters = map[string]bool{"alloc_objects": true, "alloc_space": true, "contentions": true, "delay": true}

// Grown ends the growth, and returns by how much each counter has grown since the first answer.
func (b *Bodies) Grown(targets []*target.Target) map[string]int64 {
	known := map[string]map[string]int64{}
	sums := func(set int, path string, n int) map[string]int64 {
		key := fmt.Sprint(set, path, n)
		if known[key] == nil {
			s, err := pprof.QuickSums(b.get(set, path, n))
			measure.Check(err)
			known[key] = s
		}
		return known[key]
	}
	out := map[string]int64{}
	for i, t := range targets {
		for path, n := range t.Freeze() {
			first := sums(i%sets, path, 1)
			for counter, v := range sums(i%sets, path, n) {
				if counters[counter] && v > first[counter] {
					out[t.Addr()+" "+growing[path]+" "+counter] = v - first[counter]
				}
			}
		}
	}
	return out
}
