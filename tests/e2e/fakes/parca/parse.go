package parca

import (
	"fmt"

	"profpull.test/e2e/fakes/pprof"
)

const maxInflated = 64 << 20

type parsed struct {
	Profile
	hasPeriodType bool
}

// each reads the fields of a message that all hold bytes, with these numbers and no others.
func each(message []byte, what string, fields map[int]func([]byte) error) error {
	return pprof.Each(message, func(f pprof.Field) error {
		take := fields[f.Number]
		if take == nil || f.Type != 2 {
			return fmt.Errorf("%s: unexpected field %d", what, f.Number)
		}
		return take(f.Bytes)
	})
}

// parse reads a WriteRawRequest.
func parse(message []byte) ([]parsed, error) {
	var all []parsed
	err := each(message, "request", map[int]func([]byte) error{2: func(b []byte) error {
		one, err := parseSeries(b)
		all = append(all, one...)
		return err
	}})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no profile")
	}
	return all, err
}

func parseSeries(b []byte) ([]parsed, error) {
	labels, raw := map[string]string{}, [][]byte{}
	err := each(b, "series", map[int]func([]byte) error{
		1: func(b []byte) error {
			return each(b, "labels", map[int]func([]byte) error{1: func(b []byte) error { return parseLabel(b, labels) }})
		},
		2: func(b []byte) error {
			return each(b, "sample", map[int]func([]byte) error{1: func(b []byte) error {
				raw = append(raw, b)
				return nil
			}})
		},
	})
	if err == nil && labels["__name__"] == "" {
		err = fmt.Errorf("missing __name__ label")
	}
	var all []parsed
	for _, b := range raw {
		if err != nil {
			break
		}
		var p parsed
		p, err = parseProfile(b)
		p.Labels, p.Raw = labels, b
		all = append(all, p)
	}
	return all, err
}

func parseLabel(b []byte, labels map[string]string) error {
	var name, value string
	err := each(b, "label", map[int]func([]byte) error{
		1: func(b []byte) error { name = string(b); return nil },
		2: func(b []byte) error { value = string(b); return nil },
	})
	if err != nil {
		return err
	}
	if !labelName.MatchString(name) {
		return fmt.Errorf("invalid label name: %s", name)
	}
	if _, twice := labels[name]; twice {
		return fmt.Errorf("duplicate label name: %s", name)
	}
	labels[name] = value
	return nil
}

// parseProfile checks what the real server checks besides the graph itself.
func parseProfile(b []byte) (p parsed, err error) {
	plain, err := pprof.Inflate(b, maxInflated)
	if err != nil {
		return p, fmt.Errorf("decompressing profile: %v", err)
	}
	last := map[int]uint64{}
	err = pprof.Each(plain, func(f pprof.Field) error {
		p.hasPeriodType = p.hasPeriodType || f.Number == 11
		if f.Number == 2 {
			return checkLabels(f.Bytes)
		}
		if f.Number < 3 || f.Number > 5 {
			return nil
		}
		last[f.Number]++
		id := uint64(0)
		if err := pprof.Each(f.Bytes, func(f pprof.Field) error {
			if f.Number == 1 {
				id = f.Value
			}
			return nil
		}); err != nil {
			return err
		}
		if id != last[f.Number] {
			return fmt.Errorf("invalid profile: id of field %d is not sequential", f.Number)
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	p.Profile.Profile, err = pprof.Parse(plain)
	return p, err
}

// checkLabels looks at the labels of a sample: each needs a key.
func checkLabels(sample []byte) error {
	return pprof.Each(sample, func(f pprof.Field) error {
		if f.Number != 3 {
			return nil
		}
		hasKey := false
		err := pprof.Each(f.Bytes, func(f pprof.Field) error {
			hasKey = hasKey || (f.Number == 1 && f.Value != 0)
			return nil
		})
		if err == nil && !hasKey {
			err = fmt.Errorf("invalid profile: a label of a sample has no key")
		}
		return err
	})
}
