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
		s.noteRefused("404 %s %s", r.Method, r.URL.Path)
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
			s.noteRefused("connection closed: body is not gzip")
			panic(http.ErrAbortHandler)
		}
	}
	if reason := s.deepflowStore(r, body); reason != "" {
		s.noteRefused("200 lost: %s", reason)
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

// deepflowJFR takes a recording as the body, gzip or not, or as a part that is not gzip.
func (s *Server) deepflowJFR(r *http.Request, body []byte, app string, labels map[string]string) string {
	raw := body
	var err error
	if strings.Contains(r.Header.Get("Content-Type"), "multipart/form-data") {
		raw, err = readJFR(r.Header.Get("Content-Type"), body)
	} else if pprof.IsGzip(body) {
		raw, err = gunzip(body)
	}
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

// deepflowMissing is what the server would not store of a profile: without a configuration of its
// sample types all that it takes for cumulative, and those that it does not know.
func deepflowMissing(p *pprof.Profile, config map[string]SampleTypeConfig) string {
	if config != nil {
		for _, t := range p.SampleTypes {
			if c, ok := config[t.Type]; ok && c.Cumulative {
				return "cumulative without a previous profile: " + t.Type
			}
		}
		return ""
	}
	for _, t := range p.SampleTypes {
		switch t.Type {
		case "alloc_objects", "alloc_space", "contentions", "delay":
			return "cumulative by default, without a previous profile: " + t.Type
		}
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
