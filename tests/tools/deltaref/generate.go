package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand"
)

// A world of stacks with counters, of which profiles are written: each time with other ids, in
// another order, packed or not.
type world struct {
	r      *rand.Rand
	types  []valueType
	frames []frame
	stacks []*stackOf
	files  []mapping
	times  int64
}

type frame struct {
	file    int // of files, -1: none
	address uint64
	lines   []struct {
		name, file string
		line       int64
	}
}

type stackOf struct {
	frames []int
	labels []label
	values []int64
}

var knownTypes = []valueType{
	{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"},
	{"inuse_space", "bytes"}, {"contentions", "count"}, {"delay", "nanoseconds"},
}

func isCounter(t valueType) bool {
	switch t {
	case knownTypes[0], knownTypes[1], knownTypes[4], knownTypes[5]:
		return true
	}
	return false
}

func newWorld(r *rand.Rand) *world {
	w := &world{r: r, times: 1700000000000000000}
	for _, i := range r.Perm(len(knownTypes))[:1+r.Intn(len(knownTypes))] {
		w.types = append(w.types, knownTypes[i])
	}
	counters := 0
	for _, t := range w.types {
		if isCounter(t) {
			counters++
		}
	}
	if counters == 0 {
		w.types = append(w.types, knownTypes[r.Intn(2)])
	}
	for i := 0; i < r.Intn(4); i++ {
		start := uint64(0x400000 * (i + 1))
		m := mapping{Start: start, Limit: start + 0x200000, File: fmt.Sprintf("/bin/f%d", i)}
		if r.Intn(2) == 0 {
			m.BuildID = fmt.Sprintf("build%d", i)
		}
		w.files = append(w.files, m)
	}
	n := 1 + r.Intn(30)
	for i := 0; i < n; i++ {
		w.frames = append(w.frames, w.newFrame(i))
	}
	w.addStacks(r.Intn(60))
	return w
}

func (w *world) newFrame(i int) frame {
	f := frame{file: -1}
	if len(w.files) > 0 && w.r.Intn(4) > 0 {
		f.file = w.r.Intn(len(w.files))
	}
	if f.file >= 0 && w.r.Intn(5) > 0 {
		f.address = w.files[f.file].Start + uint64(i*16+1)
	}
	for j := 0; j <= w.r.Intn(3); j++ {
		f.lines = append(f.lines, struct {
			name, file string
			line       int64
		}{fmt.Sprintf("fn%d_%d", i, j), fmt.Sprintf("src%d.go", w.r.Intn(5)), int64(w.r.Intn(1000))})
	}
	return f
}

func (w *world) addStacks(n int) {
	seen := map[string]bool{}
	key := func(s *stackOf) string { return fmt.Sprint(s.frames, s.labels) }
	for _, s := range w.stacks {
		seen[key(s)] = true
	}
	for i := 0; i < n; i++ {
		s := &stackOf{values: make([]int64, len(w.types))}
		for j := 0; j < w.r.Intn(12); j++ {
			s.frames = append(s.frames, w.r.Intn(len(w.frames)))
		}
		for j := 0; j < w.r.Intn(3); j++ {
			l := label{Key: fmt.Sprintf("k%d", j)}
			if w.r.Intn(2) == 0 {
				l.Str = fmt.Sprintf("v%d", w.r.Intn(4))
			} else {
				l.Num, l.Unit = int64(w.r.Intn(4)*1024), []string{"", "bytes"}[w.r.Intn(2)]
			}
			s.labels = append(s.labels, l)
		}
		if !seen[key(s)] {
			seen[key(s)] = true
			w.stacks = append(w.stacks, s)
		}
	}
}

// grow lets counters grow and gauges take any value.
func (w *world) grow() {
	w.times += int64(w.r.Intn(30e9)) + 1
	for _, s := range w.stacks {
		busy := w.r.Intn(2) == 0
		for i, t := range w.types {
			switch {
			case !isCounter(t):
				s.values[i] = int64(w.r.Intn(3)) * int64(w.r.Intn(1e9))
			case busy:
				s.values[i] += w.r.Int63n(int64(1) << uint(1+w.r.Intn(40)))
			}
		}
	}
}

// ---- writing ----------------------------------------------------------------------------------

type encoder struct{ bytes.Buffer }

func (e *encoder) varint(v uint64) {
	for v >= 0x80 {
		e.WriteByte(byte(v) | 0x80)
		v >>= 7
	}
	e.WriteByte(byte(v))
}

func (e *encoder) num(field int, v uint64) {
	if v != 0 {
		e.varint(uint64(field) << 3)
		e.varint(v)
	}
}

func (e *encoder) msg(field int, b []byte) {
	e.varint(uint64(field)<<3 | 2)
	e.varint(uint64(len(b)))
	e.Write(b)
}

func (e *encoder) nums(field int, all []uint64, packed bool) {
	if !packed {
		for _, v := range all {
			e.varint(uint64(field) << 3)
			e.varint(v)
		}
		return
	}
	var b encoder
	for _, v := range all {
		b.varint(v)
	}
	e.msg(field, b.Bytes())
}

type writing struct {
	w         *world
	strings   []string
	stringIDs map[string]uint64
	ids       func() uint64
	functions map[string]uint64
	locations map[int]uint64
	mappings  map[int]uint64
	parts     [][]byte
	// Write as Go's runtime does: more than two numbers are packed, and there are no other fields. If false,
	// any valid encoding is used.
	likeGo bool
}

func (x *writing) str(s string) uint64 {
	if id, ok := x.stringIDs[s]; ok {
		return id
	}
	x.strings = append(x.strings, s)
	x.stringIDs[s] = uint64(len(x.strings) - 1)
	return x.stringIDs[s]
}

// empty is an index of an empty string: 0 or, once in a while, another one.
func (x *writing) empty() uint64 {
	if x.likeGo || x.w.r.Intn(2) == 0 {
		return 0
	}
	x.strings = append(x.strings, "")
	return uint64(len(x.strings) - 1)
}

func (x *writing) part(field int, b []byte) {
	var e encoder
	e.msg(field, b)
	x.parts = append(x.parts, e.Bytes())
}

func (x *writing) mapping(i int) uint64 {
	if i < 0 {
		return 0
	}
	if x.mappings[i] == 0 {
		m := x.w.files[i]
		x.mappings[i] = x.ids()
		var e encoder
		e.num(1, x.mappings[i])
		e.num(2, m.Start)
		e.num(3, m.Limit)
		e.num(5, x.str(m.File))
		if m.BuildID == "" {
			e.num(6, x.empty())
		} else {
			e.num(6, x.str(m.BuildID))
		}
		x.part(3, e.Bytes())
	}
	return x.mappings[i]
}

func (x *writing) function(name, file string) uint64 {
	key := name + "\x00" + file
	if x.functions[key] == 0 {
		x.functions[key] = x.ids()
		var e encoder
		e.num(1, x.functions[key])
		e.num(2, x.str(name))
		e.num(3, x.str(name+"_sys"))
		e.num(4, x.str(file))
		x.part(5, e.Bytes())
	}
	return x.functions[key]
}

func (x *writing) location(i int) uint64 {
	if x.locations[i] == 0 {
		f := x.w.frames[i]
		x.locations[i] = x.ids()
		var e encoder
		e.num(1, x.locations[i])
		e.num(2, x.mapping(f.file))
		e.num(3, f.address)
		for _, l := range f.lines {
			var n encoder
			n.num(1, x.function(l.name, l.file))
			n.num(2, uint64(l.line))
			e.msg(4, n.Bytes())
		}
		if !x.likeGo {
			e.msg(99, []byte("unknown"))
		}
		x.part(4, e.Bytes())
	}
	return x.locations[i]
}

// packs says whether n numbers are written packed.
func (x *writing) packs(n int) bool {
	if x.likeGo {
		return n > 2
	}
	return x.w.r.Intn(2) == 0
}

func (x *writing) sample(s *stackOf, values []int64) {
	r := x.w.r
	var e encoder
	var ids []uint64
	for _, f := range s.frames {
		ids = append(ids, x.location(f))
	}
	vals := make([]uint64, len(values))
	for i, v := range values {
		vals[i] = uint64(v)
	}
	e.nums(1, ids, x.packs(len(ids)))
	e.nums(2, vals, x.packs(len(vals)))
	for _, i := range r.Perm(len(s.labels)) {
		l := s.labels[i]
		var b encoder
		b.num(1, x.str(l.Key))
		b.num(2, x.str(l.Str))
		b.num(3, uint64(l.Num))
		b.num(4, x.str(l.Unit))
		e.msg(3, b.Bytes())
	}
	x.part(2, e.Bytes())
}

// split makes one to three samples of one.
func split(r *rand.Rand, values []int64) [][]int64 {
	out := [][]int64{append([]int64(nil), values...)}
	for k := 0; k < r.Intn(3); k++ {
		part := make([]int64, len(values))
		for i := range part {
			part[i] = r.Int63n(out[0][i] + 1)
			out[0][i] -= part[i]
		}
		out = append(out, part)
	}
	return out
}

func (w *world) write() []byte {
	r := w.r
	next, step := uint64(0), uint64(1)
	if r.Intn(2) == 0 {
		step = uint64(1 + r.Intn(1000))
	}
	x := &writing{w: w, strings: []string{""}, stringIDs: map[string]uint64{"": 0},
		ids:       func() uint64 { next += step; return next },
		functions: map[string]uint64{}, locations: map[int]uint64{}, mappings: map[int]uint64{}}
	for _, i := range r.Perm(len(w.stacks)) {
		for _, values := range split(r, w.stacks[i].values) {
			x.sample(w.stacks[i], values)
		}
	}
	if r.Intn(2) == 0 {
		r.Shuffle(len(x.parts), func(i, j int) { x.parts[i], x.parts[j] = x.parts[j], x.parts[i] })
	}
	var e encoder
	for _, t := range w.types {
		var b encoder
		b.num(1, x.str(t.Type))
		b.num(2, x.str(t.Unit))
		e.msg(1, b.Bytes())
	}
	e.num(14, x.str(w.types[0].Type))
	e.nums(13, []uint64{x.str("a comment")}, r.Intn(2) == 0)
	for _, p := range x.parts {
		e.Write(p)
	}
	for _, s := range x.strings {
		e.msg(6, []byte(s))
	}
	e.num(9, uint64(w.times))
	return pack(r, e.Bytes())
}

// pack compresses: not at all, in one member, or in two.
func pack(r *rand.Rand, b []byte) []byte {
	var out bytes.Buffer
	cut := len(b)
	switch r.Intn(3) {
	case 0:
		return b
	case 1:
		cut = r.Intn(len(b))
	}
	for _, part := range [][]byte{b[:cut], b[cut:]} {
		z := gzip.NewWriter(&out)
		z.Write(part)
		z.Close()
	}
	return out.Bytes()
}
