package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"profpull.test/e2e/cmd/internal/measure"
)

// sample is the state of everything at one moment.
type sample struct {
	at                    time.Time
	program, generator    float64 // CPU seconds so far
	userCPU, systemCPU    float64 // of the program
	rss, peak             int64   // bytes
	fds, threads          int
	scrapes               map[string]float64 // by result
	skipped               float64
	inFlight              float64
	accepted, sent        float64
	merged                float64
	dropped, queued       float64
	bytes                 float64
	recorded, unrecorded  float64 // sums of recorded metrics
	late                  []bucket
	failures              map[string]float64
	wakeups               float64 // voluntary context switches of the program
	metricsTime           time.Duration
	metricsSize, nSamples int
}

type bucket struct{ le, count float64 }

// ticks a second, the same on every Linux that matters.
const clockTicks = 100

func takeSample(p, fakes *process) sample {
	s := sample{at: time.Now(), scrapes: map[string]float64{}, failures: map[string]float64{}}
	s.userCPU, s.systemCPU = cpu(p.cmd.Process.Pid)
	s.program = s.userCPU + s.systemCPU
	user, system := cpu(fakes.cmd.Process.Pid)
	s.generator = user + system
	s.readStatus(p.cmd.Process.Pid)
	s.readMetrics()
	return s
}

func cpu(pid int) (user, system float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	measure.Check(err)
	// The name may hold spaces; after its parenthesis come state and numbers.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	number := func(i int) float64 {
		v, err := strconv.ParseFloat(fields[i], 64)
		measure.Check(err)
		return v / clockTicks
	}
	return number(11), number(12)
}

func (s *sample) readStatus(pid int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	measure.Check(err)
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		switch key {
		case "VmRSS":
			s.rss = n << 10
		case "VmHWM":
			s.peak = n << 10
		case "Threads":
			s.threads = int(n)
		case "voluntary_ctxt_switches":
			s.wakeups = float64(n)
		}
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	measure.Check(err)
	s.fds = len(fds)
}

func (s *sample) readMetrics() {
	begin := time.Now()
	resp, err := http.Get("http://" + adminAddress + "/metrics")
	measure.Check(err)
	defer resp.Body.Close()
	buckets := map[float64]float64{}
	s.metricsSize, err = measure.Samples(resp.Body, func(sample string, value float64) {
		s.nSamples++
		name, labels, _ := strings.Cut(sample, "{")
		s.take(name, labels, value, buckets)
	})
	measure.Check(err)
	s.metricsTime = time.Since(begin)
	for le, count := range buckets {
		s.late = append(s.late, bucket{le, count})
	}
	sort.Slice(s.late, func(i, j int) bool { return s.late[i].le < s.late[j].le })
}

func (s *sample) take(name, labels string, value float64, buckets map[float64]float64) {
	switch name {
	case "profpull_scrapes_total":
		s.scrapes[label(labels, "result")] += value
	case "profpull_scrape_failures_total":
		s.failures[label(labels, "reason")] += value
	case "profpull_scrapes_in_flight":
		s.inFlight += value
	case "profpull_scrape_lateness_seconds_bucket":
		le, err := strconv.ParseFloat(label(labels, "le"), 64)
		measure.Check(err)
		buckets[le] += value
	case "profpull_write_accepted_profiles_total":
		s.accepted += value
	case "profpull_write_sent_profiles_total":
		s.sent += value
	case "profpull_write_dropped_profiles_total":
		s.dropped += value
	case "profpull_write_merged_profiles_total":
		s.merged += value
	case "profpull_record_values_total":
		if label(labels, "result") == "counted" {
			s.recorded += value
		} else {
			s.unrecorded += value
		}
	case "profpull_write_queued_profiles", "profpull_write_in_flight_profiles":
		s.queued += value
	}
	if name == "profpull_scrape_size_bytes_sum" || name == "profpull_scrape_bytes_total" {
		s.bytes += value
	}
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// quantile interpolates in what two samples of a histogram differ by, in seconds; exact says whether
// the value lies below the last finite bound.
func quantile(before, after []bucket, q float64) (value float64, exact bool) {
	old := map[float64]float64{}
	for _, b := range before {
		old[b.le] = b.count
	}
	if len(after) == 0 {
		return math.NaN(), false
	}
	total := after[len(after)-1].count - old[after[len(after)-1].le]
	want, low, below := q*total, 0.0, 0.0
	for _, b := range after {
		count := b.count - old[b.le]
		if count >= want && count > below {
			if math.IsInf(b.le, 1) {
				return low, false
			}
			return low + (b.le-low)*(want-below)/(count-below), true
		}
		low, below = b.le, count
	}
	return low, false
}
