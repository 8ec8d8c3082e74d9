package pyroscope

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"profpull.test/e2e/fakes/pprof"
)

// status of a Connect code.
var connectStatus = map[string]int{
	"invalid_argument": 400, "unauthenticated": 401, "resource_exhausted": 429,
	"unimplemented": 501, "unknown": 500, "unavailable": 503,
}

type connectError struct{ code, message string }

func (e *connectError) Error() string { return e.code + ": " + e.message }

func badArgument(format string, args ...any) *connectError {
	return &connectError{"invalid_argument", fmt.Sprintf(format, args...)}
}

type series struct {
	labels  []pair
	samples []rawSample
}

type rawSample struct {
	profile []byte
	id      string
}

func (s *Server) push(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.Note("405 %s Push", r.Method)
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isJSON := mediaType == "application/json"
	if err != nil || mediaType != "application/proto" && !isJSON {
		s.Note("415 Content-Type %q", r.Header.Get("Content-Type"))
		w.Header().Set("Accept-Post", "application/grpc, application/grpc+proto, application/json, application/proto")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	if s.opts.Cheap {
		s.count(r.Body)
	} else if cerr := s.pushBody(r, isJSON); cerr != nil {
		s.Note("%s", cerr.Error())
		writeJSONError(w, connectStatus[cerr.code], cerr.code, cerr.message, "")
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Accept-Encoding", "gzip")
	writeEmptyMessage(w, r, isJSON)
}

func (s *Server) count(body io.Reader) {
	var n int64
	if s.opts.Take == nil {
		n, _ = io.Copy(io.Discard, body)
	} else {
		text, _ := io.ReadAll(body)
		n = int64(len(text))
		s.takeUnchecked(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Bytes += n
	s.stats.Accepted++
}

func (s *Server) takeUnchecked(body []byte) {
	all, _ := decodePush(body)
	for _, one := range all {
		r := Received{At: time.Now(), API: "push", Labels: map[string]string{}}
		for _, l := range one.labels {
			r.Labels[l.name] = l.value
		}
		for _, smp := range one.samples {
			r.Raw = smp.profile
			s.opts.Take(r)
		}
	}
}

// writeEmptyMessage answers with nothing, or with a gzip stream of nothing where gzip is in play.
func writeEmptyMessage(w http.ResponseWriter, r *http.Request, isJSON bool) {
	if isJSON {
		_, _ = w.Write([]byte("{}"))
		return
	}
	offered := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if !offered && r.Header.Get("Content-Encoding") != "gzip" {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(pprof.Gzip(nil))
}

func (s *Server) pushBody(r *http.Request, isJSON bool) *connectError {
	if err := checkConnectHeaders(r.Header); err != nil {
		return err
	}
	tenant, message := s.tenant(r)
	if message != "" {
		return &connectError{"unauthenticated", message}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return &connectError{"unknown", err.Error()}
	}
	s.mu.Lock()
	s.stats.Bytes += int64(len(body))
	s.mu.Unlock()
	if len(body) > MaxBody {
		return &connectError{"resource_exhausted",
			fmt.Sprintf("message size %d is larger than configured max %d", len(body), MaxBody)}
	}
	if r.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 {
		if body, err = gunzip(body); err != nil {
			return badArgument("decompress: %v", err)
		}
	}
	decode := decodePush
	if isJSON {
		decode = decodePushJSON
	}
	all, err := decode(body)
	if err != nil {
		return badArgument("unmarshal message: %v", err)
	}
	return s.pushSeries(all, tenant, r.Header)
}

func gunzip(b []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(zr, MaxBody))
}

func checkConnectHeaders(h http.Header) *connectError {
	if v := h.Get("Connect-Protocol-Version"); v != "" && v != "1" {
		return badArgument("connect-protocol-version must be \"1\": got %q", v)
	}
	if v := h.Get("Connect-Timeout-Ms"); v != "" {
		if len(v) > 10 || strings.Trim(v, "0123456789") != "" {
			return badArgument("parse timeout: %q", v)
		}
	}
	switch enc := h.Get("Content-Encoding"); enc {
	case "", "identity", "gzip":
		return nil
	default:
		return &connectError{"unimplemented", fmt.Sprintf("unknown compression %q: supported encodings are gzip", enc)}
	}
}

// pushSeries stores every good series and returns the first error.
func (s *Server) pushSeries(all []series, tenant string, h http.Header) (first *connectError) {
	samples := 0
	for _, one := range all {
		samples += len(one.samples)
	}
	if samples == 0 {
		return badArgument("no profiles received")
	}
	for _, one := range all {
		for _, smp := range one.samples {
			rec, err := s.pushProfile(one.labels, smp)
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
			rec.API, rec.Tenant, rec.Header, rec.At = "push", tenant, h, time.Now()
			s.accept(*rec)
		}
	}
	return first
}

func (s *Server) pushProfile(labels []pair, smp rawSample) (*Received, *connectError) {
	if err := s.validateLabels(labels); err != nil {
		return nil, badArgument("%v", err)
	}
	plain, err := pprof.Inflate(smp.profile, MaxProfileSize)
	if errors.Is(err, pprof.ErrTooLarge) {
		return nil, badArgument("uncompressed profile payload size exceeds limit of 4.2 MB")
	}
	if err != nil {
		return nil, &connectError{"unknown", err.Error()}
	}
	p, err := pprof.Parse(plain)
	if errors.Is(err, pprof.ErrInvalid) {
		return nil, badArgument("%v", err)
	}
	if err != nil {
		return nil, &connectError{"unknown", err.Error()}
	}
	if p.Samples > MaxSamples {
		return nil, badArgument("the profile with labels '%s' exceeds the samples count limit "+
			"(max_profile_stacktrace_samples, actual: %d, limit: %d)", describe(labels), p.Samples, MaxSamples)
	}
	if p.TimeNanos != 0 {
		if err := s.checkTime(time.Unix(0, p.TimeNanos), describe(labels)); err != nil {
			return nil, badArgument("%v", err)
		}
	}
	if err := s.validateSamples(labels, p.SampleLabels); err != nil {
		return nil, badArgument("%v", err)
	}
	rec := &Received{Labels: map[string]string{}, ID: smp.id, Raw: append([]byte(nil), smp.profile...), Profile: p}
	for _, l := range labels {
		rec.Labels[l.name] = l.value
	}
	return rec, nil
}

// decodePush reads push.v1.PushRequest. Unknown fields are skipped, known ones must have the right
// wire type, strings must be UTF-8.
func decodePush(b []byte) (all []series, err error) {
	err = message(b, map[int]func([]byte) error{1: func(b []byte) error {
		var one series
		err := message(b, map[int]func([]byte) error{
			1: func(b []byte) error {
				var p pair
				err := message(b, map[int]func([]byte) error{1: text(&p.name), 2: text(&p.value)})
				one.labels = append(one.labels, p)
				return err
			},
			2: func(b []byte) error {
				var smp rawSample
				err := message(b, map[int]func([]byte) error{
					1: func(b []byte) error { smp.profile = b; return nil },
					2: text(&smp.id),
				})
				one.samples = append(one.samples, smp)
				return err
			},
			3: func([]byte) error { return nil },
		})
		all = append(all, one)
		return err
	}})
	return all, err
}

func message(b []byte, fields map[int]func([]byte) error) error {
	return pprof.Each(b, func(f pprof.Field) error {
		read, ok := fields[f.Number]
		if !ok {
			return nil
		}
		if f.Type != 2 {
			return fmt.Errorf("proto: field %d has wire type %d", f.Number, f.Type)
		}
		return read(f.Bytes)
	})
}

func text(into *string) func([]byte) error {
	return func(b []byte) error {
		if !utf8.Valid(b) {
			return errors.New("proto: field contains invalid UTF-8")
		}
		*into = string(b)
		return nil
	}
}

func decodePushJSON(b []byte) (all []series, err error) {
	var req struct {
		Series []struct {
			Labels  []struct{ Name, Value string }
			Samples []struct {
				RawProfile string `json:"rawProfile"`
				ID         string
			}
		}
	}
	if err = json.Unmarshal(b, &req); err != nil {
		return nil, err
	}
	for _, in := range req.Series {
		var one series
		for _, l := range in.Labels {
			one.labels = append(one.labels, pair{l.Name, l.Value})
		}
		for _, smp := range in.Samples {
			raw, err := base64.StdEncoding.DecodeString(smp.RawProfile)
			if err != nil {
				return nil, err
			}
			one.samples = append(one.samples, rawSample{raw, smp.ID})
		}
		all = append(all, one)
	}
	return all, nil
}
