package main

import (
	"fmt"
	"math/rand"

	"github.com/google/pprof/profile"
)

func pick(r *rand.Rand, words ...string) string { return words[r.Intn(len(words))] }

// randomProfile uses everything that a profile can hold; some of it often, some of it never.
func randomProfile(r *rand.Rand) *profile.Profile {
	p := &profile.Profile{
		TimeNanos:     []int64{0, 1795230123456789012}[r.Intn(2)],
		DurationNanos: []int64{0, 10e9}[r.Intn(2)],
		Period:        []int64{0, 1, 10000000}[r.Intn(3)],
		DropFrames:    pick(r, "", "runtime\\..*"),
		KeepFrames:    pick(r, "", "main\\..*"),
	}
	if r.Intn(3) > 0 {
		p.PeriodType = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	} else {
		p.PeriodType = &profile.ValueType{}
	}
	for i := 0; i < r.Intn(3); i++ {
		p.Comments = append(p.Comments, fmt.Sprintf("comment ü %d", i))
	}
	for i := 0; i < 1+r.Intn(4); i++ {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: fmt.Sprintf("type%d", i), Unit: pick(r, "count", "bytes", "")})
	}
	for i := 0; i < r.Intn(4); i++ {
		start := uint64(0x400000 * (i + 1))
		p.Mapping = append(p.Mapping, &profile.Mapping{
			ID: uint64(i + 1), Start: start, Limit: start + 0x10000, Offset: uint64(r.Intn(3) * 4096),
			File: pick(r, "/bin/app", "/lib/libc.so", ""), BuildID: pick(r, "abc123", "", "def456"),
			HasFunctions: r.Intn(2) == 0, HasFilenames: r.Intn(2) == 0, HasLineNumbers: r.Intn(2) == 0, HasInlineFrames: r.Intn(2) == 0,
		})
	}
	for i := 0; i < 1+r.Intn(20); i++ {
		p.Function = append(p.Function, &profile.Function{
			ID: uint64(i + 1), Name: pick(r, "main.main", "runtime.mallocgc", "größe", fmt.Sprintf("f%d", i)),
			SystemName: pick(r, "_Zmain", ""), Filename: pick(r, "main.go", "x.c", ""), StartLine: int64(r.Intn(100)),
		})
	}
	for i := 0; i < 1+r.Intn(40); i++ {
		p.Location = append(p.Location, randomLocation(r, p, uint64(i+1)))
	}
	for i := 0; i < r.Intn(60); i++ {
		p.Sample = append(p.Sample, randomSample(r, p))
	}
	return p
}

func randomLocation(r *rand.Rand, p *profile.Profile, id uint64) *profile.Location {
	l := &profile.Location{ID: id, Address: uint64(r.Intn(4)) * 0x401010, IsFolded: r.Intn(5) == 0}
	if len(p.Mapping) > 0 && r.Intn(4) > 0 {
		l.Mapping = p.Mapping[r.Intn(len(p.Mapping))]
	}
	for i := 0; i < r.Intn(4); i++ {
		l.Line = append(l.Line, profile.Line{Function: p.Function[r.Intn(len(p.Function))], Line: int64(r.Intn(1000)) - 1, Column: int64(r.Intn(3))})
	}
	return l
}

func randomSample(r *rand.Rand, p *profile.Profile) *profile.Sample {
	s := &profile.Sample{}
	for range p.SampleType {
		s.Value = append(s.Value, []int64{0, 1, -1, 1 << 62, -1 << 63, int64(r.Intn(100000))}[r.Intn(6)])
	}
	for i := 0; i < r.Intn(40); i++ {
		s.Location = append(s.Location, p.Location[r.Intn(len(p.Location))])
	}
	for i := 0; i < r.Intn(3); i++ {
		if s.Label == nil {
			s.Label = map[string][]string{}
		}
		key := pick(r, "thread", "endpoint", "a b")
		s.Label[key] = append(s.Label[key], pick(r, "worker-1", "/api", "ü"))
	}
	if r.Intn(3) == 0 {
		s.NumLabel = map[string][]int64{"bytes": {int64(r.Intn(5)) - 2 | 1}}
		if r.Intn(2) == 0 {
			s.NumUnit = map[string][]string{"bytes": {"kilobytes"}}
		}
	}
	return s
}
