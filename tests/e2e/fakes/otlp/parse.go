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

func decode(kind string, b []byte) (message, error) {
	m := message{}
	for len(b) > 0 {
		// The reader does not keep what is fixed.
		before := b
		f, rest, err := pprof.Next(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %v", kind, err)
		}
		if f.Type == 1 {
			f.Value = binary.LittleEndian.Uint64(before[len(before)-len(rest)-8:])
		}
		if want, ok := fields[kind][f.Number]; !ok || want != f.Type {
			return nil, fmt.Errorf("%s: field %d of wire type %d", kind, f.Number, f.Type)
		}
		m[f.Number] = append(m[f.Number], f)
		b = rest
	}
	return m, nil
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

func (m message) ints(n int) (out []uint64, err error) {
	for _, f := range m[n] {
		if out, err = pprof.Ints(out, f); err != nil {
			return nil, err
		}
	}
	return out, nil
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
func (d *dictionary) check(kind string, b []byte) (message, error) {
	m, err := decode(kind, b)
	if err != nil {
		return nil, err
	}
	for field, table := range refs[kind] {
		indices, err := m.ints(field)
		if err != nil {
			return nil, err
		}
		for _, i := range indices {
			if i >= d.n[table] {
				return nil, fmt.Errorf("%s: index %d of table %d, which has %d", kind, i, table, d.n[table])
			}
		}
	}
	return m, nil
}

func readDictionary(b []byte) (*dictionary, error) {
	m, err := decode("dictionary", b)
	if err != nil {
		return nil, err
	}
	d := &dictionary{n: map[int]uint64{}}
	for table := mappings; table <= stacks; table++ {
		d.n[table] = uint64(len(m[table]))
		if len(m[table]) == 0 || len(m[table][0].Bytes) != 0 {
			return nil, fmt.Errorf("entry 0 of table %d is not the empty one", table)
		}
	}
	for _, f := range m[texts] {
		if !utf8.Valid(f.Bytes) {
			return nil, fmt.Errorf("string field contains invalid UTF-8")
		}
		d.texts = append(d.texts, string(f.Bytes))
	}
	for table, kind := range tables {
		for _, f := range m[table] {
			if err := d.checkEntry(kind, f.Bytes); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (d *dictionary) checkEntry(kind string, b []byte) error {
	m, err := d.check(kind, b)
	if err != nil {
		return err
	}
	if kind == "location" {
		for _, line := range m[3] {
			if _, err := d.check("line", line.Bytes); err != nil {
				return err
			}
		}
	}
	if kind == "attribute" && len(b) > 0 {
		_, err = decode("value", m.bytes(2))
	}
	return err
}

func parse(body []byte) ([]Profile, error) {
	request, err := decode("request", body)
	if err != nil {
		return nil, err
	}
	d, err := readDictionary(request.bytes(2))
	if err != nil {
		return nil, err
	}
	var all []Profile
	for _, f := range request[1] {
		p, err := d.resource(f.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pairs are attributes with texts; a key must not repeat.
func pairs(all []pprof.Field) (map[string]string, error) {
	out := map[string]string{}
	for _, f := range all {
		pair, err := decode("pair", f.Bytes)
		if err != nil {
			return nil, err
		}
		value, err := decode("value", pair.bytes(2))
		if err != nil {
			return nil, err
		}
		key := string(pair.bytes(1))
		if _, ok := out[key]; ok || key == "" || !utf8.ValidString(key) || !utf8.Valid(value.bytes(1)) {
			return nil, fmt.Errorf("attribute %q is there twice, or no text", key)
		}
		out[key] = string(value.bytes(1))
	}
	return out, nil
}

func (d *dictionary) resource(b []byte) (p Profile, err error) {
	p.Sums = map[string]int64{}
	m, err := decode("resources", b)
	if err != nil {
		return p, err
	}
	resource, err := decode("resource", m.bytes(1))
	if err != nil {
		return p, err
	}
	if p.Attributes, err = pairs(resource[1]); err != nil {
		return p, err
	}
	if p.Attributes["service.name"] == "" {
		return p, fmt.Errorf("a resource without service.name")
	}
	for _, f := range m[2] {
		if err := d.scope(f.Bytes, &p); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (d *dictionary) scope(b []byte, p *Profile) error {
	m, err := decode("scopes", b)
	if err != nil {
		return err
	}
	scope, err := decode("scope", m.bytes(1))
	if err != nil {
		return err
	}
	attributes, err := pairs(scope[3])
	if err != nil {
		return err
	}
	p.Name = attributes["pprof.profile.name"]
	for _, f := range m[2] {
		if err := d.profile(f.Bytes, p); err != nil {
			return err
		}
	}
	return nil
}

func (d *dictionary) profile(b []byte, p *Profile) error {
	m, err := d.check("profile", b)
	if err != nil {
		return err
	}
	kind, err := d.check("value type", m.bytes(1))
	if err != nil {
		return err
	}
	name := d.texts[kind.number(1)]
	if id := m.bytes(7); len(id) != 16 || string(id) == string(make([]byte, 16)) || m.number(3) == 0 {
		return fmt.Errorf("%s: id %x, time %d", name, id, m.number(3))
	}
	p.Times = append(p.Times, m.number(3))
	if original := m.bytes(10); original != nil {
		p.Original = original
	}
	p.Sums[name] += 0
	for _, f := range m[2] {
		sample, err := d.check("sample", f.Bytes)
		if err != nil {
			return err
		}
		values, err := sample.ints(4)
		if err != nil || len(values) != 1 {
			return fmt.Errorf("%s: a sample with %d values", name, len(values))
		}
		p.Sums[name] += int64(values[0])
	}
	return nil
}
