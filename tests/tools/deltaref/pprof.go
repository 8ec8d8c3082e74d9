package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// The parts of pprof that decide what a sample means.
type valueType struct{ Type, Unit string }

type sample struct {
	Locations []uint64
	Values    []int64
	Labels    []label
}

type label struct {
	Key, Str string
	Num      int64
	Unit     string
}

type mapping struct {
	ID, Start, Limit, Offset uint64
	File, BuildID            string
}

type line struct {
	Function uint64
	Line     int64
}

type location struct {
	ID, Mapping, Address uint64
	Lines                []line
}

type function struct {
	ID           uint64
	Name, System string
	File         string
}

type profile struct {
	Types     []valueType
	Samples   []sample
	Mappings  map[uint64]*mapping
	Locations map[uint64]*location
	Functions map[uint64]*function
	Strings   []string
	Time      int64
	Duration  int64
	used      map[uint64]bool // strings that something names
}

// ---- reading ----------------------------------------------------------------------------------

type field struct {
	num  int
	wire int
	val  uint64
	body []byte
}

func varint(b []byte) (uint64, []byte, error) {
	var v uint64
	for i := 0; i < len(b) && i < 10; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], nil
		}
	}
	return 0, nil, errors.New("bad varint")
}

func fields(b []byte, each func(field) error) error {
	for len(b) > 0 {
		tag, rest, err := varint(b)
		if err != nil {
			return err
		}
		f := field{num: int(tag >> 3), wire: int(tag & 7)}
		switch f.wire {
		case 0:
			if f.val, rest, err = varint(rest); err != nil {
				return err
			}
		case 1, 5:
			n := 8
			if f.wire == 5 {
				n = 4
			}
			if len(rest) < n {
				return errors.New("cut field")
			}
			rest = rest[n:]
		case 2:
			var n uint64
			if n, rest, err = varint(rest); err != nil {
				return err
			}
			if n > uint64(len(rest)) {
				return errors.New("cut field")
			}
			f.body, rest = rest[:n], rest[n:]
		default:
			return fmt.Errorf("wire type %d", f.wire)
		}
		if err := each(f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

func numbers(f field) ([]uint64, error) {
	if f.wire == 0 {
		return []uint64{f.val}, nil
	}
	var out []uint64
	for b := f.body; len(b) > 0; {
		v, rest, err := varint(b)
		if err != nil {
			return nil, err
		}
		out, b = append(out, v), rest
	}
	return out, nil
}

func gunzip(b []byte) ([]byte, error) {
	if len(b) < 2 || b[0] != 0x1f || b[1] != 0x8b {
		return b, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func parse(b []byte) (*profile, error) {
	b, err := gunzip(b)
	if err != nil {
		return nil, err
	}
	p := &profile{
		Mappings: map[uint64]*mapping{}, Locations: map[uint64]*location{},
		Functions: map[uint64]*function{}, used: map[uint64]bool{0: true},
	}
	if err := fields(b, func(f field) error {
		if f.num == 6 {
			p.Strings = append(p.Strings, string(f.body))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(p.Strings) == 0 || p.Strings[0] != "" {
		return nil, errors.New("first string")
	}
	if err := fields(b, p.top); err != nil {
		return nil, err
	}
	return p, p.check()
}

func (p *profile) str(i uint64) string {
	if i >= uint64(len(p.Strings)) {
		panic(fmt.Sprintf("string %d of %d", i, len(p.Strings)))
	}
	p.used[i] = true
	return p.Strings[i]
}

func (p *profile) top(f field) error {
	switch f.num {
	case 1, 11:
		var t valueType
		err := fields(f.body, func(g field) error {
			switch g.num {
			case 1:
				t.Type = p.str(g.val)
			case 2:
				t.Unit = p.str(g.val)
			}
			return nil
		})
		if f.num == 1 {
			p.Types = append(p.Types, t)
		}
		return err
	case 2:
		return p.addSample(f.body)
	case 3:
		m := &mapping{}
		err := fields(f.body, func(g field) error {
			switch g.num {
			case 1:
				m.ID = g.val
			case 2:
				m.Start = g.val
			case 3:
				m.Limit = g.val
			case 4:
				m.Offset = g.val
			case 5:
				m.File = p.str(g.val)
			case 6:
				m.BuildID = p.str(g.val)
			}
			return nil
		})
		if p.Mappings[m.ID] != nil {
			return errors.New("mapping twice")
		}
		p.Mappings[m.ID] = m
		return err
	case 4:
		return p.addLocation(f.body)
	case 5:
		fn := &function{}
		err := fields(f.body, func(g field) error {
			switch g.num {
			case 1:
				fn.ID = g.val
			case 2:
				fn.Name = p.str(g.val)
			case 3:
				fn.System = p.str(g.val)
			case 4:
				fn.File = p.str(g.val)
			}
			return nil
		})
		if p.Functions[fn.ID] != nil {
			return errors.New("function twice")
		}
		p.Functions[fn.ID] = fn
		return err
	case 7, 8, 14, 15:
		p.str(f.val)
	case 9:
		p.Time = int64(f.val)
	case 10:
		p.Duration = int64(f.val)
	case 13:
		all, err := numbers(f)
		for _, i := range all {
			p.str(i)
		}
		return err
	}
	return nil
}

func (p *profile) addLocation(b []byte) error {
	l := &location{}
	err := fields(b, func(g field) error {
		switch g.num {
		case 1:
			l.ID = g.val
		case 2:
			l.Mapping = g.val
		case 3:
			l.Address = g.val
		case 4:
			var n line
			if err := fields(g.body, func(h field) error {
				switch h.num {
				case 1:
					n.Function = h.val
				case 2:
					n.Line = int64(h.val)
				}
				return nil
			}); err != nil {
				return err
			}
			l.Lines = append(l.Lines, n)
		}
		return nil
	})
	if p.Locations[l.ID] != nil {
		return errors.New("location twice")
	}
	p.Locations[l.ID] = l
	return err
}

func (p *profile) addSample(b []byte) error {
	var s sample
	err := fields(b, func(g field) error {
		switch g.num {
		case 1:
			ids, err := numbers(g)
			s.Locations = append(s.Locations, ids...)
			return err
		case 2:
			vals, err := numbers(g)
			for _, v := range vals {
				s.Values = append(s.Values, int64(v))
			}
			return err
		case 3:
			var l label
			err := fields(g.body, func(h field) error {
				switch h.num {
				case 1:
					l.Key = p.str(h.val)
				case 2:
					l.Str = p.str(h.val)
				case 3:
					l.Num = int64(h.val)
				case 4:
					l.Unit = p.str(h.val)
				}
				return nil
			})
			s.Labels = append(s.Labels, l)
			return err
		}
		return nil
	})
	p.Samples = append(p.Samples, s)
	return err
}

// check is what Google's reader asks of a profile.
func (p *profile) check() error {
	for _, s := range p.Samples {
		if len(s.Values) != len(p.Types) {
			return errors.New("values do not fit the types")
		}
		for _, id := range s.Locations {
			if p.Locations[id] == nil {
				return fmt.Errorf("location %d is not there", id)
			}
		}
	}
	for _, l := range p.Locations {
		if l.ID == 0 || l.Mapping != 0 && p.Mappings[l.Mapping] == nil {
			return fmt.Errorf("location %d", l.ID)
		}
		for _, n := range l.Lines {
			if p.Functions[n.Function] == nil {
				return fmt.Errorf("function %d is not there", n.Function)
			}
		}
	}
	return nil
}

// ---- what a sample is -------------------------------------------------------------------------

func (p *profile) locationKey(id uint64) string {
	l := p.Locations[id]
	file := ""
	if m := p.Mappings[l.Mapping]; m != nil {
		if file = m.BuildID; file == "" {
			file = m.File
		}
	}
	if l.Address != 0 {
		return fmt.Sprintf("%q+%x", file, l.Address)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", file)
	for _, n := range l.Lines {
		f := p.Functions[n.Function]
		fmt.Fprintf(&b, " %q %q:%d", f.Name, f.File, n.Line)
	}
	return b.String()
}

func (p *profile) sampleKey(s sample) string {
	var b strings.Builder
	for _, id := range s.Locations {
		b.WriteString(p.locationKey(id))
		b.WriteByte('\n')
	}
	var labels []string
	for _, l := range s.Labels {
		labels = append(labels, fmt.Sprintf("%q=%q,%d,%q", l.Key, l.Str, l.Num, l.Unit))
	}
	sort.Strings(labels)
	return b.String() + strings.Join(labels, ";")
}

// sums adds up the samples of each stack.
func (p *profile) sums() map[string][]int64 {
	out := map[string][]int64{}
	for _, s := range p.Samples {
		key := p.sampleKey(s)
		row := out[key]
		if row == nil {
			row = make([]int64, len(s.Values))
			out[key] = row
		}
		for i, v := range s.Values {
			row[i] += v
		}
	}
	return out
}
