package pyroscope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"profpull.test/e2e/fakes/pprof"
)

// maxMultipart is what the real server keeps of a form in memory.
const maxMultipart = 32 << 20

// form holds the parts of a body that the server looks at.
type form struct {
	profile, previous []byte
	config            map[string]SampleTypeConfig
	unnamed           []string // parts without a filename, which nobody ever reads
}

func (s *Server) ingest(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.Note("405 %s /ingest", r.Method)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if s.opts.Cheap {
		s.count(r.Body)
		return
	}
	status, code, err := s.ingestRequest(r)
	if err != nil {
		s.Note("%d %s", status, err)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		writeJSONError(w, status, code, err.Error(), "\n")
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) ingestRequest(r *http.Request) (status int, code string, err error) {
	tenant, message := s.tenant(r)
	if message == "no org id" {
		return 401, "unauthenticated", errors.New(message)
	}
	if message != "" {
		return 422, "unknown", errors.New(message)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 400, "invalid_argument", err
	}
	app, labels, err := ParseName(query.Get("name"), true)
	if err != nil {
		return 400, "invalid_argument", fmt.Errorf("name: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return 408, "unknown", err
	}
	if len(body) > MaxBody {
		return 413, "invalid_argument", errors.New("request body too large: http: request body too large")
	}
	s.mu.Lock()
	s.stats.Bytes += int64(len(body))
	s.mu.Unlock()

	if query.Get("format") == "jfr" {
		raw, err := readJFR(r.Header.Get("Content-Type"), body)
		if err != nil {
			return 422, "unknown", fmt.Errorf("parsing IngestInput-jfr failed %w", err)
		}
		labels["service_name"] = app
		s.accept(Received{At: time.Now(), API: "ingest", Tenant: tenant, Query: query, Header: r.Header, Raw: raw, Labels: labels})
		return 200, "", nil
	}
	f, err := readIngest(query.Get("format"), r.Header.Get("Content-Type"), body)
	if err != nil {
		return 422, "unknown", fmt.Errorf("parsing IngestInput-pprof failed %w", err)
	}
	if len(f.profile) == 0 {
		// The real server says 200 and stores nothing; remember it so that a test can see it.
		s.Note("200 nothing stored: no profile (parts without filename: %q)", f.unnamed)
		return 200, "", nil
	}
	rec := Received{At: time.Now(), API: "ingest", Tenant: tenant, Query: query, Header: r.Header, Raw: f.profile, Config: f.config}
	if err := s.ingestProfile(&rec, app, labels); err != nil {
		return 422, "unknown", err
	}
	if !rec.Profile.NonZero {
		s.Note("200 nothing stored: only zero samples")
		return 200, "", nil
	}
	s.accept(rec)
	return 200, "", nil
}

// readJFR takes a recording as the body, without gzip, or as the part "jfr".
func readJFR(contentType string, body []byte) ([]byte, error) {
	if !strings.Contains(contentType, "multipart/form-data") {
		if !bytes.HasPrefix(body, []byte("FLR\x00")) {
			return nil, errors.New("unable to parse chunk header: the magic is missing")
		}
		return body, nil
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	parsed, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxMultipart)
	if err != nil {
		return nil, err
	}
	defer parsed.RemoveAll()
	raw, err := part(parsed, "jfr")
	if err == nil && len(raw) == 0 {
		err = errors.New("jfr field not found in multipart form")
	}
	return raw, err
}

// readIngest follows the order in which the server decides what a body is.
func readIngest(format, contentType string, body []byte) (form, error) {
	switch format {
	case "pprof":
		return form{profile: body}, nil // whatever the Content-Type says
	case "":
	default:
		return form{}, fmt.Errorf("format %q is not part of this fake", format)
	}
	if !strings.Contains(contentType, "multipart/form-data") {
		return form{}, fmt.Errorf("neither format=pprof nor multipart: the server would read folded text")
	}
	return readMultipart(contentType, body)
}

func readMultipart(contentType string, body []byte) (f form, err error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return f, errors.New("failed to parse pprof /ingest multipart form malformed multipart content type header")
	}
	if len(params["boundary"]) > 70 {
		return f, errors.New("boundary is longer than 70 characters")
	}
	parsed, err := multipart.NewReader(strings.NewReader(string(body)), params["boundary"]).ReadForm(maxMultipart)
	if err != nil {
		return f, fmt.Errorf("failed to parse pprof /ingest multipart form %w", err)
	}
	defer parsed.RemoveAll()
	for name := range parsed.Value {
		f.unnamed = append(f.unnamed, name)
	}
	if f.profile, err = part(parsed, "profile"); err != nil {
		return f, err
	}
	if f.previous, err = part(parsed, "prev_profile"); err != nil {
		return f, err
	}
	if len(f.previous) > 0 {
		return f, errors.New("unsupported client version. Please update github.com/grafana/pyroscope-go to the latest version")
	}
	config, err := part(parsed, "sample_type_config")
	if err != nil || len(config) == 0 {
		return f, err
	}
	return f, json.Unmarshal(config, &f.config)
}

func part(f *multipart.Form, name string) ([]byte, error) {
	if len(f.File[name]) == 0 {
		return nil, nil
	}
	file, err := f.File[name][0].Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

func (s *Server) ingestProfile(rec *Received, app string, labels map[string]string) error {
	plain, err := pprof.Inflate(rec.Raw, MaxProfileSize)
	if errors.Is(err, pprof.ErrTooLarge) {
		return fmt.Errorf("parsing IngestInput-pprof failed invalid_argument: decompressed size exceeds "+
			"maximum allowed size of %d bytes", MaxProfileSize)
	}
	if err == nil {
		rec.Profile, err = pprof.Parse(plain)
	}
	if err != nil {
		return fmt.Errorf("parsing IngestInput-pprof failed invalid_argument: %w", err)
	}
	rec.Labels = map[string]string{"service_name": app}
	for k, v := range labels {
		if !strings.HasPrefix(k, "__") || k == "__session_id__" {
			rec.Labels[k] = v
		}
	}
	spy := rec.Query.Get("spyName")
	if spy == "" {
		spy = "unknown"
	}
	rec.Labels["pyroscope_spy"] = spy
	rec.Labels["__delta__"] = "false"
	rec.Labels["__name__"] = ingestName(rec.Profile.SampleTypes, rec.Config)
	return s.ingestLimits(rec)
}

func (s *Server) ingestLimits(rec *Received) error {
	var pairs []pair
	for k, v := range rec.Labels {
		pairs = append(pairs, pair{k, v})
	}
	fail := func(err error) error {
		return fmt.Errorf("pushing IngestInput-pprof failed invalid_argument: push series with index 0 and id  failed: %w", err)
	}
	if err := s.validateLabels(pairs); err != nil {
		return fail(err)
	}
	if err := s.validateSamples(pairs, rec.Profile.SampleLabels); err != nil {
		return fail(err)
	}
	t := time.Unix(0, rec.Profile.TimeNanos)
	if t.UTC().Year() == 1970 {
		t = Attime(rec.Query.Get("from"), time.Now())
	}
	if err := s.checkTime(t, describe(pairs)); err != nil {
		return fail(err)
	}
	if rec.Profile.Samples > MaxSamples {
		return fail(fmt.Errorf("the profile exceeds the samples count limit (actual: %d, limit: %d)", rec.Profile.Samples, MaxSamples))
	}
	return nil
}

// defaultNames is the server's own mapping, used when no part sample_type_config came.
var defaultNames = map[string]string{
	"samples": "cpu", "goroutine": "goroutines", "contentions": "mutex_count", "delay": "mutex_duration",
}

// ingestName is the rule that makes `__name__` of the sample types.
func ingestName(types []pprof.ValueType, config map[string]SampleTypeConfig) string {
	last := ""
	for _, t := range types {
		if t.Type == "wall" {
			return "wall"
		}
	}
	for _, t := range types {
		name := t.Type
		if config != nil {
			if c, ok := config[t.Type]; ok && c.DisplayName != "" {
				name = c.DisplayName
			}
		} else if d, ok := defaultNames[t.Type]; ok {
			name = d
		}
		has := func(part string) bool { return strings.Contains(name, part) }
		switch {
		case has("cpu"):
			return "process_cpu"
		case has("alloc_"), has("inuse_"), name == "space", name == "objects":
			return "memory"
		case has("mutex_"):
			return "mutex"
		case has("block_"):
			return "block"
		case has("goroutines"):
			return "goroutines"
		}
		last = name
	}
	return last
}

// Attime reads `from` and `until`: by their number of digits; anything else is now (offsets such as
// now-1h are not part of this fake).
func Attime(text string, now time.Time) time.Time {
	text = strings.NewReplacer("_", "", ",", "", " ", "").Replace(strings.TrimSpace(text))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.ContainsAny(text, "+-") {
		return now
	}
	switch len(text) {
	case 8:
		if day, err := time.Parse("20060102", text); err == nil && day.Year() > 1900 {
			return day
		}
	case 13:
		return time.UnixMilli(n)
	case 16:
		return time.UnixMicro(n)
	case 19:
		return time.Unix(0, n)
	}
	return time.Unix(n, 0)
}
