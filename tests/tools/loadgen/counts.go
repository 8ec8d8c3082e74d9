package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// counts are the program's own totals: of its allocations, and of the waits for locks and channels.
type counts struct {
	Objects, Bytes, Mutex, Block int64
}

func countNow() counts {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return counts{int64(m.Mallocs), int64(m.TotalAlloc),
		contentions(runtime.MutexProfile), contentions(runtime.BlockProfile)}
}

func contentions(read func([]runtime.BlockProfileRecord) (int, bool)) int64 {
	for room := 64; ; room *= 2 {
		records := make([]runtime.BlockProfileRecord, room)
		n, ok := read(records)
		if !ok {
			continue
		}
		sum := int64(0)
		for _, r := range records[:n] {
			sum += r.Count
		}
		return sum
	}
}

// One request of a profile: when it came and went (Unix nanoseconds), the counts then, and the
// profile.
type served struct {
	Path          string
	Start, End    int64
	Before, After counts
	Body          []byte
}

// counting appends a line to a file for each profile that is asked for. It is written with one call,
// so that a kill loses no more than the request that was being served.
func counting(path string, next http.Handler) http.Handler {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	var lock sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := served{Path: strings.TrimPrefix(r.URL.Path, "/debug/pprof/"), Before: countNow()}
		s.Start = time.Now().UnixNano()
		// The answer goes out when the line is written: who has a profile finds its line.
		answer := &held{header: w.Header()}
		next.ServeHTTP(answer, r)
		s.End = time.Now().UnixNano()
		s.After = countNow()
		s.Body = answer.body
		line, err := json.Marshal(s)
		if err != nil {
			log.Fatal(err)
		}
		lock.Lock()
		_, err = f.Write(append(line, '\n'))
		lock.Unlock()
		if err != nil {
			log.Fatal(err)
		}
		if answer.status != 0 {
			w.WriteHeader(answer.status)
		}
		w.Write(answer.body)
	})
}

type held struct {
	header http.Header
	status int
	body   []byte
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) WriteHeader(status int)      { h.status = status }
func (h *held) Write(b []byte) (int, error) { h.body = append(h.body, b...); return len(b), nil }
