package main

import (
	"testing"

	"profpull.test/e2e/fakes/check"
)

const text = `a machine with 2 cores
1000 targets x 5 types every 15s
  lateness p50 / p99 / max           2.00 ms / 4.00 ms / under 10 ms
  CPU of profpull                    6.00 s (user 4.00, system 2.00): 20.0 % of a core
  ledger                             balances
`

func TestMedians(t *testing.T) {
	runs := []run{parse(text), parse(text), parse(text)}
	runs[1].rows[2].numbers[1] = 5
	runs[2].rows[2].numbers[1] = 9
	got := runs[0].rows[2].withMedians(runs, 0)
	want := "  lateness p50 / p99 / max           2.00 ms / 5.00 [4.00..9.00] ms / under 10 ms"
	check.Expect(t, got == want, "got  %q\nwant %q", got, want)
	check.Equal(t, "a row without numbers", runs[0].rows[4].withMedians(runs, 0), runs[0].rows[4].text)
}

func TestFigures(t *testing.T) {
	r := parse(text)
	check.Equal(t, "targets", r.targets(), 1000)
	v, ok := r.value("CPU of profpull", 3)
	check.Expect(t, ok && v == 20, "CPU: %v, %v", v, ok)
	v, ok = r.value("lateness p# / p# / max", 1)
	check.Expect(t, ok && v == 4, "lateness: %v, %v", v, ok)
}

func TestLine(t *testing.T) {
	l := fitLine([]float64{1, 2, 4}, []float64{5, 7, 11})
	check.Expect(t, l.base == 3 && l.slope == 2, "got %v", l)
	check.Equal(t, "median", median([]float64{4, 1, 3, 2}), 2.5)
}
