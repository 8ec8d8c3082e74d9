package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	google "github.com/google/pprof/profile"
)

// Profiles in the formats that pprof had before it was a protobuf, as google/pprof reads them and as
// our conversion writes them: both must print the same, down to ids, addresses and mappings.

func (c *checker) legacy(n int, seed int64) {
	for i := 0; i < n; i++ {
		g := &oldMaker{r: rand.New(rand.NewSource(seed + int64(i)))}
		body := g.cpu()
		if i%3 == 2 {
			body = g.heap()
		}
		growth := bytes.Contains(body, []byte("@ growthz"))
		if g.r.Intn(4) == 0 {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			w.Write(body)
			check(w.Close())
			body = z.Bytes()
		}
		c.legacyFile(fmt.Sprintf("seed %d", seed+int64(i)), body, growth)
	}
}

func (c *checker) legacyFile(name string, body []byte, growth bool) {
	c.pairs++
	in, out := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "out")
	check(os.WriteFile(in, body, 0o600))
	said, err := exec.Command(c.tool, in, out).CombinedOutput()
	if err == nil {
		err = c.compareLegacy(body, out, growth)
	} else {
		err = fmt.Errorf("%v: %s", err, said)
	}
	if err != nil {
		c.failed++
		kept := filepath.Join(c.dir, fmt.Sprintf("failed-%d", c.failed))
		check(os.WriteFile(kept, body, 0o600))
		fmt.Printf("%s: %v\n  kept as %s\n", name, err, kept)
	}
}

func (c *checker) compareLegacy(body []byte, out string, growth bool) error {
	want, err := google.ParseData(body)
	if err != nil && strings.Contains(err.Error(), "concatenated profiles") {
		return nil // its letters are fields of a protobuf by chance: google/pprof looks no further
	}
	if err != nil {
		return fmt.Errorf("google/pprof: %v", err)
	}
	converted, err := os.ReadFile(out)
	check(err)
	got, err := google.ParseData(converted)
	if err != nil {
		return fmt.Errorf("google/pprof reads our conversion: %v", err)
	}
	for _, t := range want.SampleType {
		// Values in use have this name, whether or not there are others.
		if (t.Type == "objects" || t.Type == "space") && !growth {
			t.Type = "inuse_" + t.Type
		}
	}
	for _, s := range want.Sample {
		// The average size of a stack's blocks changes from scrape to scrape: no part of what it is.
		s.NumLabel = nil
	}
	c.samples += len(got.Sample)
	c.google += len(want.Sample)
	if got.String() != want.String() {
		return fmt.Errorf("converted to\n%s\ngoogle/pprof has\n%s", got, want)
	}
	return nil
}

type oldMaker struct {
	r *rand.Rand
}

// Programs as they are mapped: linked to a fixed address, or anywhere; in one piece or several;
// with and without a name, moved to huge pages, removed while they run.
func (g *oldMaker) maps() (string, []uint64) {
	var b strings.Builder
	var inside []uint64
	line := func(start, size, offset uint64, perm, file string) {
		fmt.Fprintf(&b, "%08x-%08x %s %08x fd:01 %d%s\n", start, start+size, perm, offset,
			g.r.Intn(99999), strings.TrimRight(strings.Repeat(" ", 1+g.r.Intn(20))+file, " "))
		if strings.Contains(perm, "x") {
			for i := 0; i < 8; i++ {
				inside = append(inside, start+uint64(g.r.Int63n(int64(size))))
			}
			inside = append(inside, start, start+1, start+size, start+size-1, start-1, start-0x800)
		}
	}
	switch g.r.Intn(5) {
	case 0:
		line(0x400000, 0x5000, 0, "r-xp", "/usr/bin/server")
		line(0x605000, 0x1000, 0x5000, "rw-p", "/usr/bin/server")
	case 1:
		line(0x401000, 0x5000, 0x1000, "r-xp", "/usr/bin/server (deleted)")
	case 2:
		line(0x55550000, 0x1000, 0, "r--p", "/app/server")
		line(0x55551000, 0x4000, 0x1000, "r-xp", "/app/server")
		line(0x55555000, 0x4000, 0x5000, "r-xp", "/app/server")
	case 3:
		line(0x400000, 0x200000, 0, "r-xp", "/anon_hugepage (deleted)")
		line(0x600000, 0x5000, 0x200000, "r-xp", "/usr/bin/server")
	case 4:
		line(0x7fff1000, 0x2000, 0, "r-xp", "[vdso]")
		line(0x10000000, 0x3000, 0, "rwxp", "")
		line(0x10003000, 0x3000, uint64(g.r.Intn(2))*0x3000, "r-xp", "/app/server")
	}
	for i, name := range []string{"libc.so.6", "libm-2.31.so", "libz.so_1", "plugin"} {
		if g.r.Intn(2) == 0 {
			start := uint64(0x70000000 + i*0x100000)
			line(start, 0x10000, uint64(g.r.Intn(3))*0x4000, "r-xp", "/lib/"+name)
			line(start+0x10000, 0x1000, 0, "rw-p", "")
		}
	}
	if g.r.Intn(3) == 0 {
		b.WriteString("not a mapping\n\n  \n")
	}
	if g.r.Intn(10) == 0 {
		return "", inside
	}
	return b.String(), inside
}

// Addresses in mappings, around them, and anywhere.
func (g *oldMaker) address(inside []uint64) uint64 {
	switch g.r.Intn(40) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return uint64(g.r.Uint32())
	}
	return inside[g.r.Intn(len(inside))]
}

func (g *oldMaker) cpu() []byte {
	maps, inside := g.maps()
	orders := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}
	order, wide := orders[g.r.Intn(2)], g.r.Intn(2) == 0
	var out []byte
	put := func(words ...uint64) {
		for _, w := range words {
			var b [8]byte
			if wide {
				order.PutUint64(b[:], w)
				out = append(out, b[:]...)
			} else {
				order.PutUint32(b[:4], uint32(w))
				out = append(out, b[:4]...)
			}
		}
	}
	put(0, 3, 0, uint64(1+g.r.Intn(20000)), 0)
	handler := g.r.Intn(3) // so many frames of the signal's handler
	duplicates := g.r.Intn(2) == 0
	for i := g.r.Intn(100); i > 0; i-- {
		var stack []uint64
		for d := g.r.Intn(8); d > 0; d-- {
			stack = append(stack, g.address(inside))
		}
		if len(stack) > 0 && duplicates && g.r.Intn(2) == 0 {
			stack = append([]uint64{stack[0]}, stack...)
		}
		if len(stack) > 0 && g.r.Intn(60) != 0 {
			frames := []uint64{0x70000100, 0x70000200}[:handler]
			stack = append(append([]uint64{stack[0]}, frames...), stack[1:]...)
		}
		put(uint64(g.r.Intn(1000)), uint64(len(stack)))
		put(stack...)
	}
	put(0, 1, 0)
	return append(out, maps...)
}

func (g *oldMaker) heap() []byte {
	maps, inside := g.maps()
	method := []string{"heapprofile", "heap_v2/524288", "heap_v2/1", "heapz_v2/1000", "growthz"}[g.r.Intn(5)]
	var b strings.Builder
	allocated := g.r.Intn(2) == 0 && method != "growthz"
	total := [4]int{1, 2, g.r.Intn(2), 2 * g.r.Intn(2)}
	if !allocated {
		total[2], total[3] = total[0]*g.r.Intn(2), total[1]*g.r.Intn(2)
	}
	fmt.Fprintf(&b, "heap profile: %6d: %8d [%6d: %8d] @ %s\n", total[0], total[1], total[2], total[3], method)
	for i := g.r.Intn(60); i > 0; i-- {
		n := g.r.Intn(50)
		size := n * (1 + g.r.Intn(1<<g.r.Intn(24)))
		more := n + g.r.Intn(50)
		fmt.Fprintf(&b, "%6d: %8d [%6d: %8d] @", n, size, more, more*(1+g.r.Intn(5000)))
		for d := g.r.Intn(8); d > 0; d-- {
			fmt.Fprintf(&b, " 0x%08x", g.address(inside))
		}
		b.WriteString("\n")
	}
	if maps != "" {
		b.WriteString("\nMAPPED_LIBRARIES:\n" + maps)
	}
	return []byte(b.String())
}
