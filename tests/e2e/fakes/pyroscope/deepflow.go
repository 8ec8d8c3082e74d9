package pyroscope

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"profpull.test/e2e/fakes/pprof"
)

// deepflow is the HTTP endpoint of DeepFlow's agent: one path, one method, 200 for everything else.
// The agent reads the query without percent decoding; the server behind it, which is played here as
// well, decodes `name` only and understands multipart pprof alone.
func (s *Server) deepflow(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/profile/ingest" {
		s.Note("404 %s %s", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("Not Found"))
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gunzip(body); err != nil {
			s.Note("connection closed: body is not gzip")
			panic(http.ErrAbortHandler)
		}
	}
	if reason := s.deepflowStore(r, body); reason != "" {
		s.Note("200 lost: %s", reason)
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) deepflowStore(r *http.Request, body []byte) string {
	query := deepflowQuery(r.URL.RawQuery)
	if _, err := strconv.ParseUint(query["from"], 10, 32); err != nil {
		return "from is not seconds that fit 32 bits: " + query["from"]
	}
	name, err := url.QueryUnescape(query["name"])
	if err != nil {
		return "name: " + err.Error()
	}
	app, labels, err := ParseName(name, false)
	if err != nil {
		return "name: " + err.Error()
	}
	if len(query["from"]) != 10 {
		return "from is not of ten digits, which old agents read as another time: " + query["from"]
	}
	if query["format"] == "jfr" {
		return s.deepflowJFR(r, body, app, labels)
	}
	if !strings.Contains(r.Header.Get("Content-Type"), "multipart/form-data") {
		return "pprof that is not multipart"
	}
	f, err := readMultipart(r.Header.Get("Content-Type"), body)
	if err != nil {
		return err.Error()
	}
	p, err := pprof.ParseGzip(f.profile)
	if err != nil {
		return "profile: " + err.Error()
	}
	if missing := deepflowMissing(p, f.config); missing != "" {
		return missing
	}
	if !deepflowSpies[query["spyName"]] {
		return "spyName names no language: " + query["spyName"]
	}
	labels["service_name"] = app
	labels["__name__"] = ingestName(p.SampleTypes, f.config)
	s.accept(Received{
		At: time.Now(), API: "deepflow", Labels: labels, Raw: f.profile, Profile: p, Header: r.Header,
		Query: r.URL.Query(), Config: f.config,
	})
	return ""
}

// deepflowJFR takes a recording as a body in gzip, as DeepFlow documents it.
func (s *Server) deepflowJFR(r *http.Request, body []byte, app string, labels map[string]string) string {
	raw, err := gunzip(body)
	if err != nil {
		return "jfr: " + err.Error()
	}
	if !bytes.HasPrefix(raw, []byte("FLR\x00")) {
		return "jfr: the magic is missing"
	}
	labels["service_name"] = app
	s.accept(Received{
		At: time.Now(), API: "deepflow", Labels: labels, Raw: raw, Header: r.Header, Query: r.URL.Query(),
	})
	return ""
}

// deepflowDefault is the mapping of sample types that a profile without its own is read with.
var deepflowDefault = map[string]SampleTypeConfig{
	"samples":       {DisplayName: "cpu", Units: "samples", Sampled: true},
	"inuse_objects": {Units: "objects", Aggregation: "average"},
	"alloc_objects": {Units: "objects", Cumulative: true},
	"inuse_space":   {Units: "bytes", Aggregation: "average"},
	"alloc_space":   {Units: "bytes", Cumulative: true},
	"goroutine":     {DisplayName: "goroutines", Units: "goroutines", Aggregation: "average"},
	"contentions":   {DisplayName: "mutex_count", Units: "lock_samples", Cumulative: true},
	"delay":         {DisplayName: "mutex_duration", Units: "lock_nanoseconds", Cumulative: true},
}

// deepflowMissing is what the server would not store of a profile: sample types that are not in the
// mapping, and those that it takes for cumulative. Two under one name are mixed up. CPU time says the
// same as the samples.
func deepflowMissing(p *pprof.Profile, config map[string]SampleTypeConfig) string {
	if config == nil {
		config = deepflowDefault
	}
	events := map[string]string{}
	for _, t := range p.SampleTypes {
		c, ok := config[t.Type]
		if !ok && t.Type == "cpu" && config["samples"].DisplayName == "cpu" {
			continue
		}
		if !ok {
			return "not in the mapping: " + t.Type
		}
		if c.Cumulative {
			return "cumulative, without a previous profile: " + t.Type
		}
		event := c.DisplayName
		if event == "" {
			event = t.Type
		}
		if other, twice := events[event]; twice {
			return "two under the name " + event + ": " + other + ", " + t.Type
		}
		events[event] = t.Type
	}
	if len(events) == 0 || p.Samples == 0 {
		return "nothing in it"
	}
	return ""
}

// deepflowSpies have a language; rows without one cannot be queried.
var deepflowSpies = map[string]bool{
	"gospy": true, "javaspy": true, "pyspy": true, "rbspy": true, "phpspy": true, "dotnetspy": true,
	"nodespy": true, "eBPF": true,
}

func deepflowQuery(raw string) map[string]string {
	q := map[string]string{}
	for _, one := range strings.Split(raw, "&") {
		if i := strings.IndexByte(one, '='); i >= 0 {
			q[one[:i]] = one[i+1:]
		}
	}
	return q
}
