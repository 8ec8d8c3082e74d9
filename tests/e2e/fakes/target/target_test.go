package target

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/pprof"
)

func start(t *testing.T, o Options) *Target {
	t.Helper()
	tg, err := Start(o)
	check.Must(t, err)
	t.Cleanup(tg.Down)
	return tg
}

func get(tg *Target, path string) (int, string, error) {
	resp, err := http.Get(tg.URL() + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// Every answer parses, differs from every other, and its hash is on record.
func TestProfiles(t *testing.T) {
	tg := start(t, Options{})
	seen := map[string]bool{}
	for path := range Paths {
		for i := 0; i < 2; i++ {
			status, body, err := get(tg, path+"?seconds=0")
			check.Require(t, err == nil && status == 200, "%s: %d %v", path, status, err)
			if _, err := pprof.ParseGzip([]byte(body)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			sum := sha256.Sum256([]byte(body))
			id := hex.EncodeToString(sum[:])
			check.Expect(t, !seen[id] && tg.Sent()[id] == path, "%s: hash seen before or not on record", path)
			seen[id] = true
		}
	}
	if status, _, _ := get(tg, "/other"); status != 404 {
		t.Errorf("unknown path: %d", status)
	}
}

// Two CPU profiles at once: the second is refused in Go's words; with fgprof both run, and count.
func TestSampling(t *testing.T) {
	tg := start(t, Options{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		status, _, err := get(tg, "/debug/pprof/profile?seconds=1")
		check.Expect(t, status == 200, "first: %d %v", status, err)
	}()
	for len(tg.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	status, body, _ := get(tg, "/debug/pprof/profile?seconds=1")
	check.Expect(t, status == 500 && strings.Contains(body, "cpu profiling already in use"),
		"second: %d %s", status, body)
	check.Expect(t, tg.Overlaps() == 1, "%d overlaps", tg.Overlaps())
	status, _, _ = get(tg, "/debug/fgprof?seconds=0")
	check.Expect(t, status == 200 && tg.Overlaps() == 2, "fgprof: %d, %d overlaps", status, tg.Overlaps())
	wg.Wait()
	took := tg.Requests()[0].End.Sub(tg.Requests()[0].Start)
	check.Expect(t, took >= time.Second, "seconds=1 took %v", took)
	status, body, _ = get(tg, "/debug/pprof/profile?seconds=61")
	check.Expect(t, status == 400 && strings.Contains(body, "WriteTimeout"), "too long: %d %s", status, body)
}

func TestFaults(t *testing.T) {
	tg := start(t, Options{RedirectTo: "http://127.0.0.1:1/"})
	http.DefaultClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cases := []struct {
		fault   Fault
		status  int
		content string
	}{
		{CPUInUse, 500, "already in use"}, {HTML, 200, "<!DOCTYPE html>"}, {JSON, 200, `{"error"`},
		{Empty, 200, ""}, {Redirect, 302, ""}, {NotFound, 404, ""}, {Garbage, 200, "garbage"},
	}
	for _, c := range cases {
		tg.SetFault("", c.fault)
		status, body, err := get(tg, "/debug/pprof/heap")
		check.Expect(t, err == nil && status == c.status && strings.Contains(body, c.content),
			"fault %d: %d %q %v", c.fault, status, body, err)
	}
	for _, f := range []Fault{BadGzip, TwiceGzip} {
		tg.SetFault("", f)
		if _, body, _ := get(tg, "/debug/pprof/heap"); body == "" {
			t.Errorf("fault %d: no body", f)
		} else if _, err := pprof.ParseGzip([]byte(body)); err == nil {
			t.Errorf("fault %d: a good profile", f)
		}
	}
	tg.SetFault("", CutBody)
	if _, _, err := get(tg, "/debug/pprof/heap"); err == nil {
		t.Error("a cut body was read in full")
	}
	tg.SetFault("", TooLarge)
	if _, body, err := get(tg, "/debug/pprof/heap"); err != nil || len(body) != TooLargeBytes {
		t.Errorf("too large: %d bytes, %v", len(body), err)
	}
	tg.SetFault("", Plain)
	if _, body, _ := get(tg, "/debug/pprof/heap"); pprof.IsGzip([]byte(body)) {
		t.Error("plain is gzip")
	}
}
