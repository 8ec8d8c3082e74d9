package growth

import (
	"fmt"
	"sync"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
)

// Sink is a destination that adds up the counters of what arrives.
type Sink struct {
	Server *pyroscope.Server
	name   string

	mu    sync.Mutex
	sums  map[string]int64
	times []time.Time
}

// NewSink starts one.
func NewSink(name string) *Sink {
	s := &Sink{name: name, sums: map[string]int64{}}
	var err error
	s.Server, err = pyroscope.Start(pyroscope.Options{Cheap: true, Take: s.take})
	measure.Check(err)
	return s
}

func (s *Sink) take(r pyroscope.Received) {
	var sums map[string]int64
	counts := r.Name() == "memory" || r.Name() == "mutex" || r.Name() == "block"
	if counts {
		var err error
		sums, err = pprof.QuickSums(r.Raw)
		measure.Check(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, r.At)
	for counter, v := range sums {
		if counters[counter] {
			s.sums[r.Labels["instance"]+" "+r.Name()+" "+counter] += v
		}
	}
}

// Short counts the sums that are smaller than they should be.
func (s *Sink) Short(want map[string]int64) int {
	short, _, _ := s.compare(want)
	return short
}

// compare counts the sums that are not exact, and the share of the growth that has arrived.
func (s *Sink) compare(want map[string]int64) (short, more int, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, got float64
	for key, n := range want {
		all += float64(n)
		got += float64(s.sums[key])
		if s.sums[key] < n {
			short++
		} else if s.sums[key] > n {
			more++
		}
	}
	return short, more, got / all
}

// Report prints what has arrived.
func (s *Sink) Report(want map[string]int64) {
	short, more, share := s.compare(want)
	fmt.Printf("  %-8s %.4f %% of the growth has arrived; of %d sums %d are short, %d too great\n",
		s.name+":", 100*share, len(want), short, more)
}

// FirstAfter is the time of the first profile after another time, zero if there was none.
func (s *Sink) FirstAfter(then time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.times {
		if at.After(then) {
			return at
		}
	}
	return time.Time{}
}
