package otlp

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"profpull.test/e2e/fakes/pprof"
)

// message is a decoded message: the fields by number.
type message map[int][]pprof.Field

// The fields that each message may have, with their wire types; of version 1.11.0.
var fields = map[string]map[int]int{
	"request": {1: 2, 2: 2}, "resources": {1: 2, 2: 2, 3: 2}, "resource": {1: 2, 2: 0}, "scopes": {1: 2, 2: 2, 3: 2},
	"scope": {1: 2, 2: 2, 3: 2, 4: 0}, "profile": {1: 2, 2: 2, 3: 1, 4: 0, 5: 2, 6: 0, 7: 2, 8: 0, 9: 2, 10: 2, 11: 2},
	"sample": {1: 0, 2: 2, 3: 0, 4: 2, 5: 2}, "dictionary": {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2},
	"mapping": {1: 0, 2: 0, 3: 0, 4: 0, 5: 2}, "stack": {1: 2}, "location": {1: 0, 2: 0, 3: 2, 4: 2}, "line": {1: 0, 2: 0, 3: 0},
	"function": {1: 0, 2: 0, 3: 0, 4: 0}, "link": {1: 2, 2: 2}, "value type": {1: 0, 2: 0},
	"attribute": {1: 0, 2: 2, 3: 0}, "pair": {1: 2, 2: 2}, "value": {1: 2, 2: 0, 3: 0, 4: 1, 5: 2, 6: 2, 7: 2},
	"array": {1: 2},
}

// fault is an error that ends parse().
type fault struct{ error }

func fail(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

func decode(kind string, b []byte) message {
	m := message{}
	for len(b) > 0 {
		// The reader does not keep what is fixed.
		before := b
		f, rest, err := pprof.Next(b)
		if err != nil {
			fail("%s: %v", kind, err)
		}
		if f.Type == 1 {
			f.Value = binary.LittleEndian.Uint64(before[len(before)-len(rest)-8:])
		}
		if want, ok := fields[kind][f.Number]; !ok || want != f.Type {
			fail("%s: field %d of wire type %d", kind, f.Number, f.Type)
		}
		m[f.Number] = append(m[f.Number], f)
		b = rest
	}
	return m
}

func (m message) number(n int) uint64 {
	if all := m[n]; len(all) > 0 {
		return all[len(all)-1].Value
	}
	return 0
}

func (m message) bytes(n int) []byte {
	if all := m[n]; len(all) > 0 {
		return all[len(all)-1].Bytes
	}
	return nil
}

func (m message) ints(n int) (out []uint64) {
	for _, f := range m[n] {
		var err error
		if out, err = pprof.Ints(out, f); err != nil {
			fail("field %d: %v", n, err)
		}
	}
	return out
}

// dictionary has the number of entries of each table, and the texts.
type dictionary struct {
	n     map[int]uint64
	texts []string
}

const (
	mappings, locations, functions, links, texts, attributes, stacks = 1, 2, 3, 4, 5, 6, 7
)

var tables = map[int]string{mappings: "mapping", locations: "location", functions: "function", links: "link",
	attributes: "attribute", stacks: "stack"}

// refs are fields with indices, by message.
var refs = map[string]map[int]int{
	"mapping": {4: texts, 5: attributes}, "location": {1: mappings, 4: attributes}, "line": {1: functions},
	"function": {1: texts, 2: texts, 3: texts}, "attribute": {1: texts, 3: texts}, "stack": {1: locations},
	"sample": {1: stacks, 2: attributes, 3: links}, "value type": {1: texts, 2: texts}, "profile": {11: attributes},
}

// check decodes a message and looks at its indices.
func (d *dictionary) check(kind string, b []byte) message {
	m := decode(kind, b)
	for field, table := range refs[kind] {
		for _, i := range m.ints(field) {
			if i >= d.n[table] {
				fail("%s: index %d of table %d, which has %d", kind, i, table, d.n[table])
			}
		}
	}
	return m
}

func readDictionary(b []byte) *dictionary {
	m := decode("dictionary", b)
	d := &dictionary{n: map[int]uint64{}}
	for table := mappings; table <= stacks; table++ {
		d.n[table] = uint64(len(m[table]))
		if len(m[table]) == 0 || len(m[table][0].Bytes) != 0 {
			fail("entry 0 of table %d is not the empty one", table)
		}
	}
	for _, f := range m[texts] {
		if !utf8.Valid(f.Bytes) {
			fail("string field contains invalid UTF-8")
		}
		d.texts = append(d.texts, string(f.Bytes))
	}
	for table, kind := range tables {
		for _, f := range m[table] {
			d.checkEntry(kind, f.Bytes)
		}
	}
	return d
}

func (d *dictionary) checkEntry(kind string, b []byte) {
	m := d.check(kind, b)
	if kind == "location" {
		for _, line := range m[3] {
			d.check("line", line.Bytes)
		}
	}
	if kind == "attribute" && len(b) > 0 {
		decode("value", m.bytes(2))
	}
}

func parse(body []byte) (all []Profile, err error) {
	defer func() {
		if r := recover(); r != nil {
			all, err = nil, r.(fault)
		}
	}()
	request := decode("request", body)
	d := readDictionary(request.bytes(2))
	for _, f := range request[1] {
		all = append(all, d.resource(f.Bytes))
	}
	return all, nil
}

// pairs are attributes with texts; a key must not repeat.
func pairs(all []pprof.Field) map[string]string {
	out := map[string]string{}
	for _, f := range all {
		pair := decode("pair", f.Bytes)
		value := decode("value", pair.bytes(2))
		key := string(pair.bytes(1))
		if _, ok := out[key]; ok || key == "" || !utf8.ValidString(key) || !utf8.Valid(value.bytes(1)) {
			fail("attribute %q is there twice, or no text", key)
		}
		out[key] = string(value.bytes(1))
	}
	return out
}

func (d *dictionary) resource(b []byte) Profile {
	m := decode("resources", b)
	p := Profile{Sums: map[string]int64{}, Attributes: pairs(decode("resource", m.bytes(1))[1])}
	if p.Attributes["service.name"] == "" {
		fail("a resource without service.name")
	}
	for _, f := range m[2] {
		d.scope(f.Bytes, &p)
	}
	return p
}

func (d *dictionary) scope(b []byte, p *Profile) {
	m := decode("scopes", b)
	p.Name = pairs(decode("scope", m.bytes(1))[3])["pprof.profile.name"]
	for _, f := range m[2] {
		d.profile(f.Bytes, p)
	}
}

func (d *dictionary) profile(b []byte, p *Profile) {
	m := d.check("profile", b)
	name := d.texts[d.check("value type", m.bytes(1)).number(1)]
	if id := m.bytes(7); len(id) != 16 || string(id) == string(make([]byte, 16)) || m.number(3) == 0 {
		fail("%s: id %x, time %d", name, id, m.number(3))
	}
	p.Times = append(p.Times, m.number(3))
	if original := m.bytes(10); original != nil {
		p.Original = original
	}
	p.Sums[name] += 0
	for _, f := range m[2] {
		values := d.check("sample", f.Bytes).ints(4)
		if len(values) != 1 {
			fail("%s: a sample with %d values", name, len(values))
		}
		p.Sums[name] += int64(values[0])
	}
}
