package otlp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/pprof"
)

// export is a request with one profile of one sample, in pieces that a case can replace.
type export struct {
	resource, scope []byte
	id              string
	sample          []byte
	names           []string // of the dictionary, after the empty one
	location, stack []byte
	more            []byte // of the profile
}

func pair(key, value string) []byte {
	return pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(key)), 2, pprof.AppendBytes(nil, 1, []byte(value)))
}

func good() export {
	return export{
		resource: pprof.AppendBytes(nil, 1, pair("service.name", "cart")),
		id:       "0123456789abcdef",
		sample:   pprof.AppendBytes(pprof.AppendInt(nil, 1, 1), 4, []byte{7}),
		names:    []string{"samples", "count"},
		location: pprof.AppendBytes(pprof.AppendInt(nil, 1, 0), 3, pprof.AppendInt(nil, 1, 0)),
		stack:    pprof.AppendBytes(nil, 1, []byte{1}),
	}
}

func (e export) bytes() []byte {
	profile := pprof.AppendBytes(nil, 1, pprof.AppendInt(pprof.AppendInt(nil, 1, 1), 2, 2))
	profile = pprof.AppendBytes(profile, 2, e.sample)
	profile = append(profile, "\x19\x01\x02\x03\x04\x05\x06\x07\x08"...) // the time, fixed64
	profile = append(pprof.AppendBytes(profile, 7, []byte(e.id)), e.more...)
	scopes := pprof.AppendBytes(pprof.AppendBytes(nil, 1, e.scope), 2, profile)
	resources := pprof.AppendBytes(pprof.AppendBytes(nil, 1, e.resource), 2, scopes)
	var d []byte
	for table := mappings; table <= stacks; table++ {
		d = pprof.AppendBytes(d, table, nil)
	}
	for _, name := range e.names {
		d = pprof.AppendBytes(d, texts, []byte(name))
	}
	d = pprof.AppendBytes(pprof.AppendBytes(d, locations, e.location), stacks, e.stack)
	return pprof.AppendBytes(pprof.AppendBytes(nil, 1, resources), 2, d)
}

func squeeze(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// The fake refuses what a receiver may refuse, and takes the rest.
func TestAnswers(t *testing.T) {
	s, err := Start()
	check.Must(t, err)
	t.Cleanup(s.Down)
	with := func(change func(e *export)) []byte {
		e := good()
		change(&e)
		return e.bytes()
	}
	plain := good().bytes()
	for _, c := range []struct {
		name, header, value string // one that differs from what clients send
		body                []byte
		status              int
		says                string
	}{
		{"plain", "", "", plain, 200, ""},
		{"a parameter of the type", "Content-Type", "application/x-protobuf; charset=utf-8", plain, 200, ""},
		{"gzip", "Content-Encoding", "gzip", squeeze(plain), 200, ""},
		{"no gzip", "Content-Encoding", "gzip", plain, 400, ""},
		{"half a gzip", "Content-Encoding", "gzip", squeeze(plain)[:30], 400, ""},
		{"zeros without end", "Content-Encoding", "gzip", squeeze(make([]byte, maxBody+1)), 413, "more than"},
		{"zstd", "Content-Encoding", "zstd", plain, 415, "encoding"},
		{"JSON", "Content-Type", "application/json", []byte("{}"), 415, "content type"},
		{"Connect", "Content-Type", "application/proto", plain, 415, "content type"},
		{"no message", "", "", []byte("<html>"), 400, ""},
		{"an unknown field", "", "", append(plain[:len(plain):len(plain)], 0x4a, 0), 400, "field 9"},
		{"no dictionary", "", "", plain[:len(plain)-60], 400, ""},
		{"no service", "", "", with(func(e *export) { e.resource = nil }), 400, "service.name"},
		{"an attribute twice", "", "", with(func(e *export) { e.resource = append(e.resource, e.resource...) }), 400, "twice"},
		{"an attribute of bytes", "", "", with(func(e *export) {
			e.resource = append(e.resource, pprof.AppendBytes(nil, 1, pair("k", "\xff"))...)
		}), 400, "no text"},
		{"an id of 15 bytes", "", "", with(func(e *export) { e.id = e.id[1:] }), 400, "id"},
		{"an id of zeros", "", "", with(func(e *export) { e.id = string(make([]byte, 16)) }), 400, "id"},
		{"two values", "", "", with(func(e *export) { e.sample = pprof.AppendBytes(nil, 4, []byte{7, 8}) }), 400, "2 values"},
		{"no value", "", "", with(func(e *export) { e.sample = pprof.AppendInt(nil, 1, 1) }), 400, "0 values"},
		{"the numbers of 1.9", "", "", with(func(e *export) { e.sample = pprof.AppendBytes(pprof.AppendInt(nil, 1, 1), 2, []byte{7}) }), 400, ""},
		{"an unknown stack", "", "", with(func(e *export) { e.sample = pprof.AppendBytes(pprof.AppendInt(nil, 1, 2), 4, []byte{7}) }), 400, "index 2"},
		{"an unknown location", "", "", with(func(e *export) { e.stack = pprof.AppendBytes(nil, 1, []byte{2}) }), 400, "index 2"},
		{"an unknown mapping", "", "", with(func(e *export) { e.location = pprof.AppendInt(nil, 1, 1) }), 400, "index 1"},
		{"an unknown function", "", "", with(func(e *export) { e.location = pprof.AppendBytes(nil, 3, pprof.AppendInt(nil, 1, 1)) }), 400, "index 1"},
		{"an unknown name", "", "", with(func(e *export) { e.names = e.names[1:] }), 400, "index 2"},
		{"a name that is no text", "", "", with(func(e *export) { e.names = []string{"samples", "\xff"} }), 400, "UTF-8"},
		{"an unknown attribute", "", "", with(func(e *export) { e.more = pprof.AppendBytes(nil, 11, []byte{1}) }), 400, "index 1"},
	} {
		before := len(s.Profiles())
		r, err := http.NewRequest(http.MethodPost, s.URL()+path, bytes.NewReader(c.body))
		check.Must(t, err)
		r.Header.Set("Content-Type", "application/x-protobuf")
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		resp, err := http.DefaultClient.Do(r)
		check.Require(t, err == nil, "%v %v", c.name, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		check.Expect(t, resp.StatusCode == c.status && strings.Contains(string(body), c.says),
			"%s: HTTP %d %q", c.name, resp.StatusCode, body)
		check.Equal(t, c.name+": taken", len(s.Profiles()) > before, (c.status == 200))
	}
	p := s.Profiles()[0]
	check.Expect(t, p.Sums["samples"] == 7 && p.Attributes["service.name"] == "cart", "read as %+v", p)
	for method, url := range map[string]string{http.MethodPost: s.URL() + "/v1/profiles", http.MethodPut: s.URL() + path} {
		r, _ := http.NewRequest(method, url, bytes.NewReader(plain))
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode/100 != 4 {
			t.Errorf("%s %s: %v %v", method, url, resp, err)
			continue
		}
		resp.Body.Close()
	}
}
