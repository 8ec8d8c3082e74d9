// Flamebench measures how long `profpull flame` takes to draw profiles of 1 MB, compressed and not: from the start of the
// process to its end, and its CPU time. The profiles are made: stacks of 10 to 60 frames in a fixed graph of calls.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"time"
)

const functions = 3000

func varint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func number(b []byte, field int, v uint64) []byte { return varint(varint(b, uint64(field)<<3), v) }

func text(b []byte, field int, data []byte) []byte {
	return append(varint(varint(b, uint64(field)<<3|2), uint64(len(data))), data...)
}

// Each function has this many locations: places where it calls others.
const places = 3

// head is the part of the profile that does not depend on its samples: what Go writes of locations and functions.
func head() (b []byte) {
	b = text(b, 1, number(number(nil, 1, 1), 2, 2)) // sample type: samples, count
	b = text(b, 1, number(number(nil, 1, 3), 2, 4)) // and cpu, nanoseconds
	b = text(b, 3, number(number(number(nil, 1, 1), 2, 0x400000), 3, 0x1400000))
	for i := uint64(0); i < functions*places; i++ {
		line := number(number(nil, 1, i/places+1), 2, 10+i%900)
		b = text(b, 4, text(number(number(number(nil, 1, i+1), 2, 1), 3, 0x400000+i*97), 4, line))
	}
	for i := uint64(1); i <= functions; i++ {
		b = text(b, 5, number(number(number(number(number(nil, 1, i), 2, 5+i), 3, 5+i), 4, 6+functions+i%200), 5, i%800))
	}
	for _, s := range []string{"", "samples", "count", "cpu", "nanoseconds", "app"} {
		b = text(b, 6, []byte(s))
	}
	for i := 1; i <= functions; i++ {
		b = text(b, 6, []byte(fmt.Sprintf("shop.example/team%d/service%d.(*Handler%d).Process%d", i%7, i%41, i%200, i)))
	}
	for i := 0; i < 200; i++ {
		b = text(b, 6, []byte(fmt.Sprintf("/src/shop.example/team%d/service%d/handler%d.go", i%7, i%41, i)))
	}
	return b
}

// sample is one stack: a walk through a graph in which a function calls the same one five times of six, and three others
// otherwise.
func sample(r *rand.Rand) []byte {
	depth := 10 + r.Intn(50)
	stack := make([]uint64, depth)
	at := uint64(r.Intn(3))
	for i := range stack {
		step := uint64(0)
		if r.Intn(6) == 0 {
			step = uint64(1 + r.Intn(3))
		}
		stack[depth-1-i] = at*places + step%places + 1
		at = (at*7 + step + 3) % functions
	}
	var ids []byte
	for _, id := range stack {
		ids = varint(ids, id)
	}
	n := uint64(1 + r.Intn(40))
	return text(text(nil, 1, ids), 2, varint(varint(nil, n), n*10_000_000))
}

func pack(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

// grow adds samples until the profile has this size, as measured.
func grow(size int, measure func([]byte) int) []byte {
	r := rand.New(rand.NewSource(1))
	b := head()
	for measured := 0; measured < size; measured = measure(b) {
		missing := size - measured
		for before := len(b); len(b)-before < missing/2+1000; {
			b = text(b, 2, sample(r))
		}
	}
	return b
}

func median(list []time.Duration) time.Duration {
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list[len(list)/2]
}

func main() {
	program := flag.String("profpull", "", "the program")
	runs := flag.Int("runs", 21, "runs of each")
	limit := flag.Duration("limit", 0, "fail if the median CPU time of a run exceeds it; 0: never")
	flag.Parse()
	dir, err := os.MkdirTemp("", "flamebench")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	plain := grow(1_000_000, func(b []byte) int { return len(b) })
	packed := pack(grow(1_000_000, func(b []byte) int { return len(pack(b)) }))
	failed := false
	fmt.Printf("%-24s %10s %10s %10s\n", "profile", "bytes", "time", "CPU")
	for _, c := range []struct {
		name string
		data []byte
	}{{"1 MB, not compressed", plain}, {"1 MB, gzip", packed}} {
		file := filepath.Join(dir, "profile")
		if err := os.WriteFile(file, c.data, 0o666); err != nil {
			panic(err)
		}
		var times, cpu []time.Duration
		for i := 0; i < *runs; i++ {
			cmd := exec.Command(*program, "flame", "--color", "true", "--width", "160", file)
			cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
			start := time.Now()
			if err := cmd.Run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			times = append(times, time.Since(start))
			cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		fmt.Printf("%-24s %10d %8.1fms %8.1fms\n", c.name, len(c.data), median(times).Seconds()*1000, median(cpu).Seconds()*1000)
		failed = failed || *limit > 0 && median(cpu) > *limit
	}
	if failed {
		os.Exit(1)
	}
}
