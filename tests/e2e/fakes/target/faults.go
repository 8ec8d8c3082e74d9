package target

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"profpull.test/e2e/fakes/pprof"
)

const loginPage = `<!DOCTYPE html>
<html><head><title>Sign in</title></head><body><form action="/login"></form></body></html>
`

// misbehave does what the fault says; returns the status that was sent, 0 for none.
func (t *Target) misbehave(w http.ResponseWriter, r *http.Request, f Fault, gz []byte) int {
	octets := func() { w.Header().Set("Content-Type", "application/octet-stream") }
	switch f {
	case CPUInUse:
		return fail(w, http.StatusInternalServerError, cpuInUse)
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case Drip:
		octets()
		drip(w, r, gz)
	case CutBody:
		octets()
		w.Header().Set("Content-Length", fmt.Sprint(len(gz)))
		_, _ = w.Write(gz[:len(gz)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(loginPage))
	case JSON:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"error": "profiling is disabled in this environment"}`))
	case Empty:
		octets()
	case Garbage:
		octets()
		_, _ = w.Write([]byte("\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff garbage"))
	case TooLarge:
		octets()
		tooLarge(w)
	case Redirect:
		http.Redirect(w, r, t.opts.RedirectTo, http.StatusFound)
		return http.StatusFound
	case NotFound:
		http.NotFound(w, r)
		return http.StatusNotFound
	case BadGzip:
		octets()
		_, _ = w.Write(damaged(gz))
	case TwiceGzip:
		octets()
		_, _ = w.Write(pprof.Gzip(gz))
	case LongHeader:
		octets()
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		_, _ = w.Write(gz)
	}
	return http.StatusOK
}

func drip(w http.ResponseWriter, r *http.Request, gz []byte) {
	for i := range gz {
		if _, err := w.Write(gz[i : i+1]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
			return
		}
	}
}

func tooLarge(w http.ResponseWriter) {
	chunk := make([]byte, 64<<10)
	chunk[0], chunk[1], chunk[2] = 0x1f, 0x8b, 8
	for sent := 0; sent < TooLargeBytes; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		chunk[0] = 0
	}
}

func damaged(gz []byte) []byte {
	bad := append([]byte(nil), gz...)
	for i := len(bad) / 2; i < len(bad)/2+8 && i < len(bad); i++ {
		bad[i] ^= 0xff
	}
	return bad
}
