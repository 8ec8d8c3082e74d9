package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"sort"
	"strings"

	google "github.com/google/pprof/profile"
)

// This file makes deltas with google/pprof: its own merge of the newer profile with the older one, the
// counters of which are negated and the gauges of which are zero.

func negated(before []byte) (*google.Profile, error) {
	p, err := google.ParseData(before)
	if err != nil {
		return nil, err
	}
	for _, s := range p.Sample {
		for i, t := range p.SampleType {
			if isCounter(valueType{t.Type, t.Unit}) {
				s.Value[i] = -s.Value[i]
			} else {
				s.Value[i] = 0
			}
		}
	}
	return p, nil
}

func googleDelta(before *google.Profile, after []byte) (*google.Profile, error) {
	p, err := google.ParseData(after)
	if err != nil {
		return nil, err
	}
	return google.Merge([]*google.Profile{p, before})
}

// googleKey is a stack as google/pprof shows it, with names instead of ids.
func googleKey(s *google.Sample) string {
	var b strings.Builder
	for _, l := range s.Location {
		file, start := "", uint64(0)
		if m := l.Mapping; m != nil {
			start = m.Start
			if file = m.BuildID; file == "" {
				file = m.File
			}
		}
		fmt.Fprintf(&b, "%q+%x", file, l.Address-start)
		for _, n := range l.Line {
			fmt.Fprintf(&b, " %q %q %q:%d", n.Function.Name, n.Function.SystemName, n.Function.Filename, n.Line)
		}
		b.WriteByte('\n')
	}
	var labels []string
	for k, v := range s.Label {
		labels = append(labels, fmt.Sprintf("%q=%q", k, v))
	}
	for k, v := range s.NumLabel {
		labels = append(labels, fmt.Sprintf("%q=%d%q", k, v, s.NumUnit[k]))
	}
	sort.Strings(labels)
	return b.String() + strings.Join(labels, ";")
}

// googleSums is what a profile says of each stack. A stack is there once or more.
func googleSums(p *google.Profile) map[string][]int64 {
	out := map[string][]int64{}
	for _, s := range p.Sample {
		key := googleKey(s)
		row := out[key]
		if row == nil {
			row = make([]int64, len(s.Value))
			out[key] = row
		}
		for i, v := range s.Value {
			row[i] += v
		}
	}
	return out
}

// compareGoogle: our delta has the stacks and the values of google/pprof's merge, all of them.
func (c *checker) compareGoogle(beforeBytes, afterBytes, outBytes []byte) error {
	before, err := negated(beforeBytes)
	if err != nil {
		return fmt.Errorf("google/pprof, before: %v", err)
	}
	merged, err := googleDelta(before, afterBytes)
	if err != nil {
		return fmt.Errorf("google/pprof: %v", err)
	}
	want := googleSums(merged)
	got := map[string][]int64{}
	if len(outBytes) > 0 {
		out, err := google.ParseData(outBytes)
		if err != nil {
			return fmt.Errorf("google/pprof reads our delta: %v", err)
		}
		got = googleSums(out)
	}
	for key, row := range want {
		c.google++
		if fmt.Sprint(row) != fmt.Sprint(got[key]) {
			return fmt.Errorf("%v, google/pprof has %v, of %q", got[key], row, key)
		}
		for _, v := range row {
			if v < 0 {
				return fmt.Errorf("google/pprof has %v of %q", row, key)
			}
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d stacks, google/pprof has %d", len(got), len(want))
	}
	return nil
}

// runBench: what a delta costs with compress/gzip and google/pprof. The older profile is at hand,
// as a program that scrapes would have it; compression is the fastest.
func runBench(beforePath, afterPath string, n int) {
	beforeBytes, err := os.ReadFile(beforePath)
	check(err)
	afterBytes, err := os.ReadFile(afterPath)
	check(err)
	before, err := negated(beforeBytes)
	check(err)
	size := 0
	start := cpu()
	for i := 0; i < n; i++ {
		delta, err := googleDelta(before, afterBytes)
		check(err)
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		check(delta.WriteUncompressed(z))
		check(z.Close())
		size = out.Len()
	}
	fmt.Printf("cpu_ms mean=%.3f out=%d\n", (cpu()-start).Seconds()*1e3/float64(n), size)
}
