package pprof

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// Kinds of profiles that Make knows, with the sample types that Go gives them.
var Kinds = map[string][]ValueType{
	"cpu":        {{"samples", "count"}, {"cpu", "nanoseconds"}},
	"heap":       {{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}},
	"goroutine":  {{"goroutine", "count"}},
	"contention": {{"contentions", "count"}, {"delay", "nanoseconds"}},
	"fgprof":     {{"samples", "count"}, {"time", "nanoseconds"}},
	"threads":    {{"threadcreate", "count"}},
	// The names that Node's profilers use.
	"node wall": {{"sample", "count"}, {"wall", "nanoseconds"}},
	"node heap": {{"objects", "count"}, {"space", "bytes"}},
}

var periods = map[string]ValueType{
	"cpu":        {"cpu", "nanoseconds"},
	"heap":       {"space", "bytes"},
	"goroutine":  {"goroutine", "count"},
	"contention": {"contentions", "count"},
	"fgprof":     {"wallclock", "nanoseconds"},
	"threads":    {"threadcreate", "count"},
	"node wall":  {"wall", "nanoseconds"},
	"node heap":  {"space", "bytes"},
}

// Options of Make. The zero value is a small profile of now.
type Options struct {
	Functions int       // different functions, each with one sample; 0 = 3
	Time      time.Time // zero = now
	Duration  time.Duration
	// Round is how often the counters have grown: each function's in one round of three. 0: a profile
	// that does not grow.
	Round int
}

// counters are the sample types that grow.
var counters = map[string]bool{"alloc_objects": true, "alloc_space": true, "contentions": true, "delay": true}

// Make returns an uncompressed profile of one of the Kinds.
func Make(kind string, o Options) []byte {
	types, ok := Kinds[kind]
	if !ok {
		panic("pprof.Make: no such kind: " + kind)
	}
	if o.Functions == 0 {
		o.Functions = 3
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	m := maker{index: map[string]uint64{}, round: o.Round, types: types}
	m.str("")
	for _, t := range types {
		m.out = AppendBytes(m.out, 1, m.valueType(t))
	}
	for i := 1; i <= o.Functions; i++ {
		m.function(kind, uint64(i))
	}
	m.out = AppendBytes(m.out, 3, AppendInt(AppendInt(nil, 1, 1), 7, 1))
	m.out = AppendInt(m.out, 9, uint64(o.Time.UnixNano()))
	m.out = AppendInt(m.out, 10, uint64(o.Duration))
	m.out = AppendBytes(m.out, 11, m.valueType(periods[kind]))
	m.out = AppendInt(m.out, 12, 1)
	for _, s := range m.strings {
		m.out = AppendBytes(m.out, 6, []byte(s))
	}
	return m.out
}

type maker struct {
	out     []byte
	strings []string
	index   map[string]uint64
	round   int
	types   []ValueType
}

func (m *maker) str(s string) uint64 {
	i, ok := m.index[s]
	if !ok {
		i = uint64(len(m.strings))
		m.index[s] = i
		m.strings = append(m.strings, s)
	}
	return i
}

func (m *maker) valueType(t ValueType) []byte {
	return AppendInt(AppendInt(nil, 1, m.str(t.Type)), 2, m.str(t.Unit))
}

// function adds one function with a location of its own and a sample in it. The values look random,
// so that the compressed size grows with the number of functions as it does in life.
func (m *maker) function(kind string, id uint64) {
	name := m.str(fmt.Sprintf("example.com/shop/%s.(*Cart).step%d", kind, id))
	file := m.str(fmt.Sprintf("/src/shop/%s/cart%d.go", kind, id%17))
	fn := AppendInt(AppendInt(AppendInt(AppendInt(nil, 1, id), 2, name), 3, name), 4, file)
	m.out = AppendBytes(m.out, 5, fn)

	seed := crc32.ChecksumIEEE([]byte(fmt.Sprint(kind, id)))
	line := AppendInt(AppendInt(nil, 1, id), 2, uint64(seed%5000+1))
	loc := AppendInt(AppendInt(AppendInt(nil, 1, id), 2, 1), 3, 0x400000+uint64(seed))
	m.out = AppendBytes(m.out, 4, AppendBytes(loc, 4, line))

	stack := binary.AppendUvarint(nil, id)
	for caller := id / 2; caller > 0; caller /= 2 {
		stack = binary.AppendUvarint(stack, caller)
	}
	var vals []byte
	for i, t := range m.types {
		vals = binary.AppendUvarint(vals, m.value(t, uint64(seed>>uint(i))%1000000+1, id))
	}
	m.out = AppendBytes(m.out, 2, AppendBytes(AppendBytes(nil, 1, stack), 2, vals))
}

// value is v, grown by as much as it was in each of its rounds if it is a counter; a gauge moves.
func (m *maker) value(t ValueType, v, id uint64) uint64 {
	if m.round == 0 {
		return v
	}
	if counters[t.Type] {
		return v * (1 + (uint64(m.round)+id%3)/3)
	}
	return v + uint64(m.round)*(id%7)
}

// Gzip compresses.
func Gzip(b []byte) []byte {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	_, _ = zw.Write(b)
	_ = zw.Close()
	return out.Bytes()
}

// Stamp returns the same gzip stream with a comment in its header: other bytes, the same content,
// without compressing again. gz must come from Gzip.
func Stamp(gz []byte, comment string) []byte {
	const header, flagComment = 10, 16
	out := make([]byte, 0, len(gz)+len(comment)+1)
	out = append(out, gz[:header]...)
	out[3] |= flagComment
	out = append(out, comment...)
	out = append(out, 0)
	return append(out, gz[header:]...)
}
