package main

import "testing"

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
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := runs[0].rows[4].withMedians(runs, 0); got != runs[0].rows[4].text {
		t.Errorf("a row without numbers: %q", got)
	}
}

func TestFigures(t *testing.T) {
	r := parse(text)
	if n := r.targets(); n != 1000 {
		t.Errorf("targets: %v", n)
	}
	if v, ok := r.value("CPU of profpull", 3); !ok || v != 20 {
		t.Errorf("CPU: %v, %v", v, ok)
	}
	if v, ok := r.value("lateness p# / p# / max", 1); !ok || v != 4 {
		t.Errorf("lateness: %v, %v", v, ok)
	}
}

func TestLine(t *testing.T) {
	l := fitLine([]float64{1, 2, 4}, []float64{5, 7, 11})
	if l.base != 3 || l.slope != 2 {
		t.Errorf("got %v", l)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median: %v", m)
	}
}
