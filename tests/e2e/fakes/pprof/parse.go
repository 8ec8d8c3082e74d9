// Package pprof reads and makes pprof profiles by hand: just enough to check strictly what arrives
// at a fake server, and to give fake targets something valid to serve.
package pprof

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ValueType is a sample type.
type ValueType struct{ Type, Unit string }

// Profile is what the checks and the tests need to know of a profile.
type Profile struct {
	SampleTypes   []ValueType
	PeriodType    ValueType
	Samples       int
	NonZero       bool // at least one value is not zero
	Negative      bool // at least one is negative
	sums          []int64
	TimeNanos     int64
	DurationNanos int64
	Functions     []string
	// SampleLabels are the labels of each sample that has any, as far as they are texts.
	SampleLabels []map[string]string
	Size         int // uncompressed
}

// Sums adds up the values of each sample type.
func (p *Profile) Sums() map[string]int64 {
	out := map[string]int64{}
	for i, t := range p.SampleTypes {
		out[t.Type] += p.sums[i]
	}
	return out
}

// HasSampleType says whether one of the sample types is called name.
func (p *Profile) HasSampleType(name string) bool {
	for _, t := range p.SampleTypes {
		if t.Type == name {
			return true
		}
	}
	return false
}

// ErrTooLarge is returned by Inflate for what is larger than the limit.
var ErrTooLarge = errors.New("uncompressed profile payload size exceeds the limit")

// IsGzip looks at the magic.
func IsGzip(b []byte) bool { return len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b }

// Inflate takes one gzip layer off, with its checksum; plain bytes are returned as they are.
func Inflate(b []byte, max int) ([]byte, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("gzip reset: %w", io.EOF)
	}
	if !IsGzip(b) {
		if len(b) > max {
			return nil, ErrTooLarge
		}
		return b, nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("gzip reset: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(zr, int64(max)+1))
	if err != nil {
		return nil, fmt.Errorf("gzip read: %w", err)
	}
	if len(out) > max {
		return nil, ErrTooLarge
	}
	return out, nil
}

// ErrInvalid marks what decodes but is not a proper profile.
var ErrInvalid = errors.New("invalid profile")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

type sample struct {
	locations, values []uint64
	labels            [][]byte
}

type raw struct {
	types              [][2]uint64
	period             [2]uint64
	samples            []sample
	mappings           map[uint64]bool
	locations          map[uint64][2][]uint64 // mapping ids, function ids
	functions          map[uint64]uint64      // id -> name
	strings            []string
	times              int
	time, duration     uint64
	maxString          uint64
	duplicateLocations bool
}

// Parse decodes an uncompressed profile and checks it as Pyroscope does: indexes in range, ids not
// zero and known, as many values as sample types, UTF-8, one time only.
func Parse(b []byte) (*Profile, error) {
	if IsGzip(b) {
		return nil, fmt.Errorf("%w (still gzip: compressed twice?)", ErrWire)
	}
	r := raw{
		mappings:  map[uint64]bool{},
		locations: map[uint64][2][]uint64{},
		functions: map[uint64]uint64{},
	}
	if err := Each(b, r.field); err != nil {
		return nil, err
	}
	p, err := r.check()
	if err != nil {
		return nil, err
	}
	p.Size = len(b)
	return p, nil
}

// ParseGzip is Inflate and Parse.
func ParseGzip(b []byte) (*Profile, error) {
	plain, err := Inflate(b, 64<<20)
	if err != nil {
		return nil, err
	}
	return Parse(plain)
}

// QuickSums is Sums of a compressed profile, without any of the checks.
func QuickSums(gz []byte) (map[string]int64, error) {
	plain, err := Inflate(gz, 64<<20)
	if err != nil {
		return nil, err
	}
	var r raw
	var sums []int64
	var values []uint64
	err = Each(plain, func(f Field) error {
		switch f.Number {
		case 1, 6:
			return r.field(f)
		case 2:
			values = values[:0]
			if err := Each(f.Bytes, func(v Field) (err error) {
				if v.Number == 2 {
					values, err = Ints(values, v)
				}
				return err
			}); err != nil {
				return err
			}
			for len(sums) < len(values) {
				sums = append(sums, 0)
			}
			for i, v := range values {
				sums[i] += int64(v)
			}
		}
		return nil
	})
	out := map[string]int64{}
	for i, t := range r.types {
		if i < len(sums) && t[0] < uint64(len(r.strings)) {
			out[r.strings[t[0]]] += sums[i]
		}
	}
	return out, err
}

func (r *raw) field(f Field) error {
	want := 2
	if f.Number >= 7 && f.Number <= 10 || f.Number == 12 || f.Number == 14 || f.Number == 15 {
		want = 0
	}
	if f.Number <= 15 && f.Number != 13 && f.Type != want {
		return ErrWire
	}
	switch f.Number {
	case 1:
		t, err := r.valueType(f.Bytes)
		r.types = append(r.types, t)
		return err
	case 2:
		return r.sample(f.Bytes)
	case 3:
		return r.mapping(f.Bytes)
	case 4:
		return r.location(f.Bytes)
	case 5:
		return r.function(f.Bytes)
	case 6:
		r.strings = append(r.strings, string(f.Bytes))
	case 9:
		r.times++
		r.time = f.Value
	case 10:
		r.duration = f.Value
	case 11:
		var err error
		r.period, err = r.valueType(f.Bytes)
		return err
	case 7, 8, 14:
		r.useStrings(f.Value)
	}
	return nil
}

func (r *raw) useStrings(all ...uint64) {
	for _, i := range all {
		if i > r.maxString {
			r.maxString = i
		}
	}
}

// numbers are the values of the fields 1 to 7 of a message of integers; 0 for those that it does not have.
func numbers(b []byte) (v [8]uint64, err error) {
	err = Each(b, func(f Field) error {
		if f.Number >= len(v) {
			return nil
		}
		if f.Type != 0 {
			return ErrWire
		}
		v[f.Number] = f.Value
		return nil
	})
	return v, err
}

func (r *raw) valueType(b []byte) ([2]uint64, error) {
	v, err := numbers(b)
	r.useStrings(v[1], v[2])
	return [2]uint64{v[1], v[2]}, err
}

func (r *raw) sample(b []byte) error {
	var s sample
	err := Each(b, func(f Field) (err error) {
		switch f.Number {
		case 1:
			s.locations, err = Ints(s.locations, f)
		case 2:
			s.values, err = Ints(s.values, f)
		case 3:
			s.labels = append(s.labels, f.Bytes)
		}
		return err
	})
	r.samples = append(r.samples, s)
	return err
}

func (r *raw) mapping(b []byte) error {
	v, err := numbers(b)
	r.useStrings(v[5], v[6])
	r.mappings[v[1]] = true
	return err
}

func (r *raw) location(b []byte) error {
	var id uint64
	var refs [2][]uint64
	err := Each(b, func(f Field) error {
		switch f.Number {
		case 1:
			id = f.Value
		case 2:
			refs[0] = append(refs[0], f.Value)
		case 4:
			return Each(f.Bytes, func(l Field) error {
				if l.Number == 1 {
					refs[1] = append(refs[1], l.Value)
				}
				return nil
			})
		}
		return nil
	})
	if _, ok := r.locations[id]; ok {
		r.duplicateLocations = true
	}
	r.locations[id] = refs
	return err
}

func (r *raw) function(b []byte) error {
	v, err := numbers(b)
	r.useStrings(v[2], v[3], v[4])
	r.functions[v[1]] = v[2]
	return err
}

func (r *raw) check() (*Profile, error) {
	switch {
	case len(r.types) == 0:
		return nil, invalid("empty profile")
	case len(r.strings) == 0 || r.strings[0] != "":
		return nil, invalid("string table must start with an empty string")
	case r.times > 1:
		return nil, invalid("concatenated profiles detected")
	case r.duplicateLocations:
		return nil, invalid("duplicate location id")
	case r.maxString >= uint64(len(r.strings)):
		return nil, invalid("string index %d out of range", r.maxString)
	}
	for _, s := range r.strings {
		if !utf8.ValidString(s) {
			return nil, invalid("string is not UTF-8: %q", s)
		}
	}
	p := &Profile{
		Samples:       len(r.samples),
		TimeNanos:     int64(r.time),
		DurationNanos: int64(r.duration),
		PeriodType:    ValueType{r.strings[r.period[0]], r.strings[r.period[1]]},
	}
	for _, t := range r.types {
		vt := ValueType{r.strings[t[0]], r.strings[t[1]]}
		if strings.Contains(vt.Type, "-") {
			return nil, invalid("sample type %q contains -", vt.Type)
		}
		p.SampleTypes = append(p.SampleTypes, vt)
	}
	if err := r.checkGraph(p); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *raw) sampleLabels(p *Profile, s sample) error {
	labels := map[string]string{}
	for _, b := range s.labels {
		v, err := numbers(b)
		if err != nil {
			return err
		}
		if v[1] >= uint64(len(r.strings)) || v[2] >= uint64(len(r.strings)) {
			return invalid("string index of a label out of range")
		}
		if v[2] == 0 {
			continue
		}
		if _, ok := labels[r.strings[v[1]]]; ok {
			return invalid("a sample has the label %q twice", r.strings[v[1]])
		}
		labels[r.strings[v[1]]] = r.strings[v[2]]
	}
	if len(labels) > 0 {
		p.SampleLabels = append(p.SampleLabels, labels)
	}
	return nil
}

func (r *raw) checkGraph(p *Profile) error {
	p.sums = make([]int64, len(r.types))
	for _, s := range r.samples {
		if len(s.values) != len(r.types) {
			return invalid("sample value length mismatch: %d values, %d types", len(s.values), len(r.types))
		}
		for i, v := range s.values {
			p.NonZero = p.NonZero || v != 0
			p.Negative = p.Negative || int64(v) < 0
			p.sums[i] += int64(v)
		}
		if err := r.sampleLabels(p, s); err != nil {
			return err
		}
		for _, id := range s.locations {
			if _, ok := r.locations[id]; !ok || id == 0 {
				return invalid("location id %d is unknown", id)
			}
		}
	}
	for id, refs := range r.locations {
		for _, m := range refs[0] {
			if m != 0 && !r.mappings[m] {
				return invalid("mapping id %d of location %d is unknown", m, id)
			}
		}
		for _, fn := range refs[1] {
			if _, ok := r.functions[fn]; !ok || fn == 0 {
				return invalid("function id %d of location %d is unknown", fn, id)
			}
		}
	}
	for _, name := range r.functions {
		p.Functions = append(p.Functions, r.strings[name])
	}
	return nil
}
