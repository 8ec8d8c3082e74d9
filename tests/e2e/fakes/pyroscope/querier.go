package pyroscope

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"profpull.test/e2e/fakes/pprof"
)

// query is SelectMergeStacktracesRequest in the JSON form of protobuf: 64-bit numbers may be numbers
// or strings, names in either spelling.
type query struct {
	typeID, selector string
	start, end       int64
}

func (q *query) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	for name, value := range raw {
		var err error
		switch name {
		case "profileTypeID", "profile_typeID":
			err = json.Unmarshal(value, &q.typeID)
		case "labelSelector", "label_selector":
			err = json.Unmarshal(value, &q.selector)
		case "start":
			q.start, err = strconv.ParseInt(strings.Trim(string(value), `"`), 10, 64)
		case "end":
			q.end, err = strconv.ParseInt(strings.Trim(string(value), `"`), 10, 64)
		}
		if err != nil {
			return fmt.Errorf("proto: (line 1:1): invalid value for field %s", name)
		}
	}
	return nil
}

// selectMergeStacktraces answers with the names of the functions of all profiles that fit.
func (s *Server) selectMergeStacktraces(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	tenant, message := s.tenant(r)
	if message != "" {
		writeJSONError(w, 401, "unauthenticated", message, "")
		return
	}
	names, err := s.runQuery(r.Body, tenant)
	if err != nil {
		s.Note("querier: %v", err)
		writeJSONError(w, 400, "invalid_argument", err.Error(), "")
		return
	}
	s.mu.Lock()
	s.queries++
	hidden := s.queries <= s.opts.HiddenFor || s.opts.Blind
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if hidden || len(names) == 0 {
		// A field without content is left out.
		_, _ = io.WriteString(w, `{"flamegraph":{"names":["total"],"levels":[{"values":["0","0","0","0"]}]}}`)
		return
	}
	body, _ := json.Marshal(map[string]any{"flamegraph": map[string]any{
		"names": append([]string{"total"}, names...), "levels": []any{}, "total": "1", "maxSelf": "1"}})
	_, _ = w.Write(body)
}

// profileStats says whether there is anything to read; a field that is false is left out.
func (s *Server) profileStats(w http.ResponseWriter, r *http.Request) {
	tenant, message := s.tenant(r)
	if message != "" {
		writeJSONError(w, 401, "unauthenticated", message, "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for _, p := range s.Profiles() {
		if p.Tenant == tenant && !s.opts.Fresh && !s.opts.Blind {
			_, _ = io.WriteString(w, `{"dataIngested":true}`)
			return
		}
	}
	_, _ = io.WriteString(w, `{}`)
}

func (s *Server) runQuery(body io.Reader, tenant string) ([]string, error) {
	var q query
	if err := json.NewDecoder(body).Decode(&q); err != nil {
		return nil, fmt.Errorf("unmarshal message: %w", err)
	}
	id := strings.Split(q.typeID, ":")
	if len(id) != 5 && len(id) != 6 {
		return nil, fmt.Errorf("profile-type selection must be of the form <name>:<sample-type>:<sample-unit>:"+
			"<period-type>:<period-unit>(:delta), got(%d): \"%s\"", len(id), q.typeID)
	}
	if q.start == 0 || q.end == 0 || q.start > q.end {
		return nil, errors.New("missing time range in the query")
	}
	want, err := parseSelector(q.selector)
	if err != nil {
		return nil, err
	}
	if want["service_name"] == "" && s.opts.Fresh {
		return nil, nil
	}
	var names []string
	for _, p := range s.Profiles() {
		at := p.At.UnixMilli()
		if p.Profile != nil && p.Profile.TimeNanos != 0 {
			at = p.Profile.TimeNanos / int64(time.Millisecond)
		}
		if p.Tenant == tenant && p.Profile != nil && p.Name() == id[0] && at >= q.start && at <= q.end &&
			fits(p.Profile.SampleTypes, id[1], id[2]) && p.Profile.PeriodType.Type == id[3] &&
			p.Profile.PeriodType.Unit == id[4] && carries(p.Labels, want) {
			names = append(names, p.Profile.Functions...)
		}
	}
	return names, nil
}

func fits(types []pprof.ValueType, name, unit string) bool {
	for _, t := range types {
		if t.Type == name && t.Unit == unit {
			return true
		}
	}
	return false
}

func carries(labels, want map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

var matcher = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*)=("(?:[^"\\]|\\.)*")$`)

// parseSelector knows matchers with "=" only.
func parseSelector(text string) (map[string]string, error) {
	bad := fmt.Errorf("failed to parse label selectors: 1:1: parse error: unexpected %q", text)
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return nil, bad
	}
	want := map[string]string{}
	for _, one := range strings.Split(text[1:len(text)-1], ",") {
		m := matcher.FindStringSubmatch(strings.TrimSpace(one))
		if m == nil {
			return nil, bad
		}
		value, err := strconv.Unquote(m[2])
		if err != nil {
			return nil, bad
		}
		want[m[1]] = value
	}
	return want, nil
}
