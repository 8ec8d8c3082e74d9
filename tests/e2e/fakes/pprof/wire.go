package pprof

import (
	"encoding/binary"
	"errors"
)

// Errors of the wire format.
var (
	ErrTruncated = errors.New("unexpected EOF")
	ErrWire      = errors.New("proto: cannot parse invalid wire-format data")
)

// Uvarint reads a varint of at most ten bytes.
func Uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n == 0 {
		return 0, nil, ErrTruncated
	} else if n < 0 {
		return 0, nil, ErrWire
	}
	return v, b[n:], nil
}

// Field is one field of a message. Bytes is set for wire type 2, Value for type 0.
type Field struct {
	Number int
	Type   int
	Value  uint64
	Bytes  []byte
}

// Next reads one field; the rest of the message follows it.
func Next(b []byte) (Field, []byte, error) {
	tag, b, err := Uvarint(b)
	if err != nil {
		return Field{}, nil, err
	}
	f := Field{Number: int(tag >> 3), Type: int(tag & 7)}
	if tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, ErrWire
	}
	switch f.Type {
	case 0:
		f.Value, b, err = Uvarint(b)
		return f, b, err
	case 1:
		return skip(f, b, 8)
	case 2:
		n, rest, err := Uvarint(b)
		if err != nil {
			return f, nil, err
		}
		if n > uint64(len(rest)) {
			return f, nil, ErrTruncated
		}
		f.Bytes = rest[:n]
		return f, rest[n:], nil
	case 5:
		return skip(f, b, 4)
	}
	return f, nil, ErrWire
}

func skip(f Field, b []byte, n int) (Field, []byte, error) {
	if len(b) < n {
		return f, nil, ErrTruncated
	}
	f.Bytes = b[:n]
	return f, b[n:], nil
}

// Each calls fn for every field of a message.
func Each(b []byte, fn func(Field) error) error {
	for len(b) > 0 {
		var f Field
		var err error
		f, b, err = Next(b)
		if err != nil {
			return err
		}
		if err = fn(f); err != nil {
			return err
		}
	}
	return nil
}

// Ints reads a repeated integer, packed or not, and appends it.
func Ints(into []uint64, f Field) ([]uint64, error) {
	if f.Type == 0 {
		return append(into, f.Value), nil
	}
	if f.Type != 2 {
		return nil, ErrWire
	}
	for b := f.Bytes; len(b) > 0; {
		v, rest, err := Uvarint(b)
		if err != nil {
			return nil, err
		}
		into, b = append(into, v), rest
	}
	return into, nil
}

// AppendInt writes a field of wire type 0.
func AppendInt(b []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(number)<<3), v)
}

// AppendBytes writes a field of wire type 2.
func AppendBytes(b []byte, number int, v []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(number)<<3|2), uint64(len(v)))
	return append(b, v...)
}
