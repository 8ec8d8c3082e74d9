package main

import (
	"fmt"
	"log"
	"sort"
	"strings"
)

func median(values []float64) float64 {
	s := append([]float64(nil), values...)
	sort.Float64s(s)
	n := len(s)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

func bounds(values []float64) (low, high float64) {
	for i, v := range values {
		if i == 0 || v < low {
			low = v
		}
		if i == 0 || v > high {
			high = v
		}
	}
	return low, high
}

// line is the one of the least squares.
type line struct{ base, slope float64 }

func fitLine(x, y []float64) line {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return line{(sy - slope*sx) / n, slope}
}

// A figure of the curve: a number in a row of cmd/bench.
var figures = []struct {
	title, unit, row string
	number           int
	fitted           bool
}{
	{"scrapes done", "% of those due", "scrapes", 2, false},
	{"CPU", "% of a core", "CPU of profpull", 3, true},
	{"CPU for 1,000 profiles", "s", "CPU for #,# profiles", 0, false},
	{"resident memory", "MiB", "resident memory, peak", 0, true},
	{"lateness p50", "ms", "lateness p# / p# / max", 0, false},
	{"lateness p99", "ms", "lateness p# / p# / max", 1, false},
}

// value of a figure in a run; false if it is not there.
func (r run) value(name string, n int) (float64, bool) {
	for _, row := range r.rows {
		if strings.HasSuffix(row.key, "\n  "+name) && n < len(row.numbers) {
			return row.numbers[n], true
		}
	}
	return 0, false
}

// targets is what cmd/bench says in the line before its figures.
func (r run) targets() float64 {
	for _, row := range r.rows {
		var n float64
		if strings.Contains(row.text, " targets x ") {
			fmt.Sscan(row.text, &n)
			return n
		}
	}
	log.Fatal("expected a line such as \"1000 targets x 5 types\"")
	return 0
}

// printCurve prints the medians of each number of targets, and how a figure grows with it.
func printCurve(runs []run) {
	byTargets := map[float64][]run{}
	var all []float64
	for _, r := range runs {
		n := r.targets()
		if byTargets[n] == nil {
			all = append(all, n)
		}
		byTargets[n] = append(byTargets[n], r)
	}
	sort.Float64s(all)
	fmt.Printf("%-42s", "targets")
	for _, n := range all {
		fmt.Printf(" %9.0f", n)
	}
	fmt.Println()
	for _, f := range figures {
		var x, y []float64
		fmt.Printf("%-42s", f.title+", "+f.unit)
		for _, n := range all {
			var values []float64
			for _, r := range byTargets[n] {
				if v, ok := r.value(f.row, f.number); ok {
					values = append(values, v)
				}
			}
			x, y = append(x, n), append(y, median(values))
			fmt.Printf(" %9.3g", median(values))
		}
		if f.fitted && len(all) > 1 {
			l := fitLine(x, y)
			fmt.Printf("   %.3g + %.3g for 1,000 targets", l.base, 1000*l.slope)
		}
		fmt.Println()
	}
}
