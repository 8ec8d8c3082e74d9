package pprof

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
)

// A CPU profile written out by hand from the format's definition.
const minimal = "0a04080110020a0408031004120a0a010112050580e1eb171a0408013801220a080110012204080110072a08080110051805" +
	"20063200320773616d706c65733205636f756e743203637075320b6e616e6f7365636f6e647332046d61696e32076d61696e2e676f" +
	"488080a8b1e39fe7cb175080c8afa0255a04080310046080ade204"

func TestParseMinimal(t *testing.T) {
	b, _ := hex.DecodeString(minimal)
	p, err := Parse(b)
	check.Must(t, err)
	check.Require(t, len(p.SampleTypes) == 2 && p.SampleTypes[1] == (ValueType{"cpu", "nanoseconds"}) && p.Samples == 1 &&
		p.NonZero && p.TimeNanos == 1700000000000000000 && p.DurationNanos == int64(10*time.Second) &&
		len(p.Functions) == 1 && p.Functions[0] == "main",
		"read as %+v", p)
}

func TestParseRefuses(t *testing.T) {
	good := Make("cpu", Options{})
	cases := []struct {
		name    string
		body    []byte
		invalid bool // decodes, but is wrong
	}{
		{"nothing", nil, true},
		{"truncated", good[:len(good)-3], false},
		{"wire type 7", []byte{0x07, 0x01}, false},
		{"field 0", []byte{0x00, 0x01}, false},
		{"varint of 11 bytes", append([]byte{0x48}, []byte(strings.Repeat("\xff", 11))...), false},
		{"html", []byte("<html><body>sign in</body></html>"), false},
		{"still gzip", Gzip(good), false},
		{"two profiles in one", append(append([]byte(nil), good...), good...), true},
		{"string index out of range", AppendInt(append([]byte(nil), good...), 14, 10000), true},
		{"unknown location", AppendBytes(append([]byte(nil), good...), 2,
			AppendInt(AppendBytes(nil, 2, []byte{1, 1}), 1, 999)), true},
		{"too few values", AppendBytes(append([]byte(nil), good...), 2, AppendInt(nil, 2, 1)), true},
	}
	for _, c := range cases {
		_, err := Parse(c.body)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
		} else if errors.Is(err, ErrInvalid) != c.invalid {
			t.Errorf("%s: wrong kind of error: %v", c.name, err)
		}
	}
}

func TestInflate(t *testing.T) {
	gz := Gzip(Make("heap", Options{Functions: 100}))
	_, err := Inflate(gz, 100)
	check.Expect(t, errors.Is(err, ErrTooLarge), "limit: %v", err)
	_, err = Inflate(gz[:len(gz)-4], 1<<20)
	check.Expect(t, err != nil, "a cut trailer was accepted")
	_, err = Inflate(nil, 1)
	check.Expect(t, err != nil && strings.Contains(err.Error(), "gzip reset: EOF"), "nothing: %v", err)
}

// TestMakeIsReadable checks that Go's own tool and our parser can read the profiles of Make, stamped
// or not.
func TestMakeIsReadable(t *testing.T) {
	for kind, types := range Kinds {
		gz := Stamp(Gzip(Make(kind, Options{Functions: 50, Duration: time.Second})), "stamp 1")
		p, err := ParseGzip(gz)
		check.Require(t, err == nil, "%s: %v", kind, err)
		check.Expect(t, len(p.SampleTypes) == len(types) && p.Samples == 50 && p.NonZero, "%s: read as %+v", kind, p)
		if testing.Short() {
			continue
		}
		file := filepath.Join(t.TempDir(), "p.pb.gz")
		check.Must(t, os.WriteFile(file, gz, 0o600))
		out, err := exec.Command("go", "tool", "pprof", "-raw", file).CombinedOutput()
		check.Expect(t, err == nil && strings.Contains(string(out), "step7"), "%s: go tool pprof: %v\n%s", kind, err, out)
	}
}
