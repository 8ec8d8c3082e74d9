package pyroscope

import (
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
