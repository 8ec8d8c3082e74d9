package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand"
	"os"
)

// makeHeaps writes two heap profiles like those of a Go service with so many samples, the second one
// a while after the first: some stacks have allocated, a few are new, one in eight is in use. About
// 65 bytes a sample before compression and 20 after it, as in life.
func makeHeaps(samples int, before, after string) {
	r := rand.New(rand.NewSource(7))
	w := &world{r: r, times: 1700000000000000000, types: knownTypes[:4],
		files: []mapping{{Start: 0x400000, Limit: 0x4000000, File: "/app/server"}}}
	functions := samples/4 + 20
	for i := 0; i < functions; i++ {
		f := frame{address: 0x400000 + uint64(i)*97 + 1}
		for j := 0; j <= r.Intn(2); j++ {
			f.lines = append(f.lines, struct {
				name, file string
				line       int64
			}{fmt.Sprintf("example.com/shop/pkg%d.(*Type%d).method%d", i%40, i%300, i),
				fmt.Sprintf("/src/shop/pkg%d/file%d.go", i%40, i%200), int64(r.Intn(2000))})
		}
		w.frames = append(w.frames, f)
	}
	add := func() {
		s := &stackOf{values: make([]int64, 4)}
		at := int(float64(functions) * r.Float64() * r.Float64())
		for j := 0; j < 5+r.Intn(10); j++ {
			s.frames = append(s.frames, at)
			at = at * 2 / 3
		}
		s.labels = []label{{Key: "bytes", Num: int64(16 << uint(r.Intn(8)))}}
		w.stacks = append(w.stacks, s)
	}
	allocate := func(one int) {
		for _, s := range w.stacks {
			if r.Intn(one) == 0 {
				n := int64(1 + r.Intn(1<<uint(1+r.Intn(8))))
				s.values[0] += n
				s.values[1] += n * s.labels[0].Num
			}
			s.values[2], s.values[3] = 0, 0
			if r.Intn(8) == 0 {
				s.values[2] = int64(1 + r.Intn(50))
				s.values[3] = s.values[2] * s.labels[0].Num
			}
		}
		w.times += 15e9
	}
	for i := 0; i < samples; i++ {
		add()
	}
	allocate(1)
	check(os.WriteFile(before, w.plainHeap(), 0o600))
	for i := 0; i < samples/200; i++ {
		add()
	}
	allocate(6)
	check(os.WriteFile(after, w.plainHeap(), 0o600))
}

// plainHeap writes the world in the order and the encoding of Go's runtime, compressed as it does.
func (w *world) plainHeap() []byte {
	next := uint64(0)
	x := &writing{w: w, likeGo: true, strings: []string{""}, stringIDs: map[string]uint64{"": 0},
		ids:       func() uint64 { next++; return next },
		functions: map[string]uint64{}, locations: map[int]uint64{}, mappings: map[int]uint64{}}
	locations, functions := uint64(0), uint64(0)
	var e encoder
	for _, t := range w.types {
		var b encoder
		b.num(1, x.str(t.Type))
		b.num(2, x.str(t.Unit))
		e.msg(1, b.Bytes())
	}
	for _, s := range w.stacks {
		for _, f := range s.frames {
			if x.locations[f] == 0 {
				// Go numbers locations and functions apart.
				next = functions
				for _, l := range w.frames[f].lines {
					x.function(l.name, l.file)
				}
				functions, next = next, locations
				if x.mappings[0] == 0 {
					next = 0
					x.mapping(0)
					next = locations
				}
				x.location(f)
				locations = next
			}
		}
		x.sample(s, s.values)
	}
	for _, p := range x.parts {
		e.Write(p)
	}
	for _, s := range x.strings {
		e.msg(6, []byte(s))
	}
	e.num(9, uint64(w.times))
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	z.Write(e.Bytes())
	z.Close()
	return out.Bytes()
}
