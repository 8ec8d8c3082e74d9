// Command sdks lets the SDKs of others send profiles to a profpull, and compares what they sent with what
// its store has: of each service the total of each sample type, and the names of functions.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"
	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	godeltaprof "github.com/grafana/pyroscope-go/godeltaprof"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sums are the profiles of a service: totals by sample type, and names of functions with samples.
type sums struct {
	totals    map[string]int64
	functions map[string]bool
}

func newSums() *sums { return &sums{map[string]int64{}, map[string]bool{}} }

func (s *sums) add(p *profile.Profile) {
	for _, sample := range p.Sample {
		zero := true
		for i, t := range p.SampleType {
			s.totals[t.Type] += sample.Value[i]
			zero = zero && sample.Value[i] == 0
		}
		for _, l := range sample.Location {
			for _, line := range l.Line {
				if zero || line.Function == nil {
					continue
				}
				// Go has functions without a name for addresses outside of its own code.
				name := line.Function.Name
				if name == "" {
					name = "[unknown]"
				}
				s.functions[name] = true
			}
		}
	}
}

// ---- what SDKs send -----------------------------------------------------------------------------

// recorder passes requests on to profpull, and keeps the profiles in those that were accepted.
type recorder struct {
	sync.Mutex
	receive  string
	services map[string]*sums
	problems []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := http.NewRequest(req.Method, r.receive+req.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	out.Header = req.Header
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
	r.Lock()
	defer r.Unlock()
	if resp.StatusCode/100 != 2 {
		r.problems = append(r.problems, fmt.Sprintf("%s %s: %d %s", req.Method, req.URL, resp.StatusCode, text))
		return
	}
	if err := r.keep(req, body); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("%s %s: %v", req.Method, req.URL, err))
	}
}

// keep adds the profile of a request to those of its service.
func (r *recorder) keep(req *http.Request, body []byte) error {
	service := req.URL.Query().Get("service_name")
	if name := req.URL.Query().Get("name"); name != "" {
		service, _, _ = strings.Cut(name, "{")
	}
	media, params, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if media == "multipart/form-data" {
		form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		body = nil
		for {
			part, err := form.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if part.FormName() == "profile" {
				if body, err = io.ReadAll(part); err != nil {
					return err
				}
			}
		}
	}
	if len(body) == 0 {
		return nil
	}
	p, err := profile.ParseData(body)
	if err != nil {
		return err
	}
	if r.services[service] == nil {
		r.services[service] = newSums()
	}
	r.services[service].add(p)
	return nil
}

// ---- what the store has -------------------------------------------------------------------------

func get(address string) ([]byte, error) {
	resp, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", address, resp.StatusCode, body)
	}
	return body, err
}

// stored reads the profiles of a service that have passed the rules, which add the label `via`.
func stored(query, service string) (*sums, error) {
	of := url.Values{"service": {service}, "from": {"now-1h"}, "until": {"now"}, "labels": {`{via="rules"}`}}
	body, err := get(query + "/api/v1/types?" + of.Encode())
	if err != nil {
		return nil, err
	}
	var list struct{ Types []struct{ ID string } }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	s := newSums()
	for _, t := range list.Types {
		of.Set("type", t.ID)
		if body, err = get(query + "/api/v1/pprof?" + of.Encode()); err != nil {
			return nil, err
		}
		p, err := profile.ParseData(body)
		if err != nil {
			return nil, err
		}
		s.add(p)
	}
	return s, nil
}

// compare returns how the store differs from what was sent; "" if it does not.
func compare(sent, got *sums) string {
	for name, want := range sent.totals {
		if got.totals[name] != want {
			return fmt.Sprintf("the total of %s is %d, expected %d", name, got.totals[name], want)
		}
	}
	for name := range sent.functions {
		if !got.functions[name] {
			return fmt.Sprintf("the function %s is missing", name)
		}
	}
	for name := range got.functions {
		if !sent.functions[name] {
			return fmt.Sprintf("the function %s was not sent", name)
		}
	}
	return ""
}

// ---- the SDKs -----------------------------------------------------------------------------------

var sink []byte

//go:noinline
func busy(until time.Time) (n int) {
	var lock sync.Mutex
	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for time.Now().Before(until) {
				lock.Lock()
				sink = make([]byte, 64<<10)
				lock.Unlock()
				for k := 0; k < 1<<16; k++ {
					n += k
				}
			}
		}()
	}
	wait.Wait()
	return n
}

// pyroscopeGo profiles this program with all types, and in spans of a tracer that otel-profiling-go wraps.
func pyroscopeGo(address string) error {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	p, err := pyroscope.Start(pyroscope.Config{ApplicationName: "sdk-go", ServerAddress: address, UploadRate: 3 * time.Second,
		ProfileTypes: []pyroscope.ProfileType{pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines, pyroscope.ProfileMutexCount,
			pyroscope.ProfileMutexDuration, pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration}})
	if err != nil {
		return err
	}
	tracer := otelpyroscope.NewTracerProvider(sdktrace.NewTracerProvider()).Tracer("sdks")
	_, span := tracer.Start(context.Background(), "work")
	busy(time.Now().Add(8 * time.Second))
	span.End()
	return p.Stop()
}

// deltaprof posts profiles of godeltaprof, as a program with a pusher of its own does.
func deltaprof(address string) error {
	heap := godeltaprof.NewHeapProfiler()
	for i := 0; i < 3; i++ {
		busy(time.Now().Add(time.Second))
		var body bytes.Buffer
		if err := heap.Profile(&body); err != nil {
			return err
		}
		resp, err := http.Post(address+"/v1/pprof?service_name=sdk-godeltaprof", "application/octet-stream", &body)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	return nil
}

// program runs a command with the address in PROFPULL_URL.
func program(name string, args ...string) func(string) error {
	return func(address string) error {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "PROFPULL_URL="+address)
		cmd.Stderr = os.Stderr
		return cmd.Run()
	}
}

func main() {
	receive := flag.String("receive", "", "URL of profpull's receive server")
	query := flag.String("query", "", "URL of its query server")
	node := flag.String("node", "", "directory with the modules of npm and the programs for Node.js")
	flag.Parse()
	runs := []struct {
		name, service string
		run           func(string) error
	}{
		{"pyroscope-go and otel-profiling-go", "sdk-go", pyroscopeGo},
		{"godeltaprof", "sdk-godeltaprof", deltaprof},
	}
	if *node != "" {
		for _, name := range []string{"pyroscope", "datadog", "pprof-it"} {
			runs = append(runs, struct {
				name, service string
				run           func(string) error
			}{"Node.js: " + name, "sdk-node-" + name, program("node", *node+"/"+name+".js")})
		}
	}
	failed := 0
	for _, r := range runs {
		rec := &recorder{receive: *receive, services: map[string]*sums{}}
		server := httptest.NewServer(rec)
		err := r.run(server.URL)
		server.Close()
		text := ""
		if err == nil && len(rec.problems) > 0 {
			err = fmt.Errorf("%s", strings.Join(rec.problems, "\n"))
		}
		sent := rec.services[r.service]
		if err == nil && sent == nil {
			err = fmt.Errorf("nothing was sent")
		}
		// The store commits within a second or so.
		for end := time.Now().Add(time.Minute); err == nil; time.Sleep(200 * time.Millisecond) {
			var got *sums
			if got, err = stored(*query, r.service); err != nil {
				break
			}
			if text = compare(sent, got); text == "" || time.Now().After(end) {
				break
			}
		}
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			failed++
			fmt.Printf("FAIL %s: %s\n", r.name, text)
			continue
		}
		fmt.Printf("ok   %s: %v, %d functions\n", r.name, sent.totals, len(sent.functions))
	}
	fmt.Printf("check-sdks: %d passed, %d failed\n", len(runs)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
