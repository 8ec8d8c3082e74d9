package parca

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/pprof"
)

func label(name, value string) []byte {
	return pprof.AppendBytes(nil, 1, pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(name)), 2, []byte(value)))
}

func labels(pairs ...string) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, label(pairs[i], pairs[i+1])...)
	}
	return b
}

// call is one series with one profile, in its frame.
func call(labels, profile []byte) []byte {
	series := pprof.AppendBytes(nil, 1, labels)
	series = pprof.AppendBytes(series, 2, pprof.AppendBytes(nil, 1, profile))
	return frame(pprof.AppendBytes(nil, 2, series))
}

func frame(message []byte) []byte {
	head := make([]byte, 5)
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return append(head, message...)
}

// tiny is a profile with one sample of these fields and one location.
func tiny(sample []byte, id uint64) (b []byte) {
	for _, s := range []string{"", "samples", "count", "k"} {
		b = pprof.AppendBytes(b, 6, []byte(s))
	}
	b = pprof.AppendBytes(b, 1, pprof.AppendInt(pprof.AppendInt(nil, 1, 1), 2, 2))
	b = pprof.AppendBytes(b, 2, sample)
	b = pprof.AppendBytes(b, 4, pprof.AppendInt(nil, 1, id))
	return pprof.AppendBytes(b, 11, nil)
}

// The fake refuses what the real one refuses, with the same code, and takes the rest.
func TestAnswers(t *testing.T) {
	s, err := Start(true)
	check.Must(t, err)
	t.Cleanup(s.Down)
	s.MessageMax, s.Token = 1<<20, "hunter2"
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	one, named := pprof.AppendInt(nil, 2, 7), labels("__name__", "cpu", "job", "a")
	at := func(id uint64) []byte { return pprof.AppendInt(pprof.AppendInt(nil, 1, id), 2, 7) }
	cpu := pprof.Make("cpu", pprof.Options{})
	good := call(named, cpu)
	for _, c := range []struct {
		name, header, value string // one that differs from what clients send
		body                []byte
		code, says          string
	}{
		{"plain", "", "", good, "0", ""},
		{"gzip", "", "", call(named, pprof.Gzip(cpu)), "0", ""},
		{"two series", "", "", frame(append(good[5:len(good):len(good)], good[5:]...)), "0", ""},
		{"no token", "Authorization", "", good, "16", ""},
		{"no trailers", "Te", "", good, "3", "te"},
		{"a timeout without a unit", "Grpc-Timeout", "10", good, "3", "grpc-timeout"},
		{"no gRPC", "Content-Type", "application/octet-stream", good, "", ""},
		{"no frame", "", "", []byte("abc"), "14", ""},
		{"a frame that is cut", "", "", good[:len(good)-1], "14", ""},
		{"more than the frame", "", "", append(good[:len(good):len(good)], 1), "14", ""},
		{"compressed", "", "", append([]byte{1}, good[1:]...), "14", "flag 1"},
		{"large", "", "", call(named, pprof.Make("cpu", pprof.Options{Functions: 20000})), "8", "larger than max"},
		{"no message", "", "", frame([]byte("abc")), "3", ""},
		{"no profile", "", "", frame(nil), "3", "no profile"},
		{"another field", "", "", frame(append(pprof.AppendBytes(nil, 9, nil), good[5:]...)), "3", "unexpected field 9"},
		{"no name", "", "", call(labels("job", "a"), cpu), "3", "missing __name__"},
		{"a name with a dot", "", "", call(append(labels("a.b", "c"), named...), cpu), "3", "invalid label name: a.b"},
		{"a name twice", "", "", call(append(labels("job", "b"), named...), cpu), "3", "duplicate label name: job"},
		{"HTML", "", "", call(named, []byte("<html>")), "3", ""},
		{"half a gzip", "", "", call(named, pprof.Gzip(cpu)[:40]), "3", "decompressing"},
		{"ids from 9 on", "", "", call(named, tiny(at(9), 9)), "3", "not sequential"},
		{"ids from 1 on", "", "", call(named, tiny(at(1), 1)), "0", ""},
		{"an unknown id", "", "", call(named, tiny(at(2), 1)), "3", "unknown"},
		{"too few values", "", "", call(named, tiny(nil, 1)), "3", "value length"},
		{"a label without a key", "", "", call(named, tiny(pprof.AppendBytes(one, 3, pprof.AppendInt(nil, 2, 3)), 1)), "3", "no key"},
		{"a label with a key", "", "", call(named, tiny(pprof.AppendBytes(one, 3, pprof.AppendInt(pprof.AppendInt(nil, 1, 3), 2, 3)), 1)), "0", ""},
		{"no period type", "", "", call(named, bytes.TrimSuffix(tiny(one, 1), []byte("\x5a\x00"))), "14", "panic"},
	} {
		before := s.Count()
		r, err := http.NewRequest(http.MethodPost, s.URL()+path, bytes.NewReader(c.body))
		check.Must(t, err)
		r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "Grpc-Timeout": {"10000m"},
			"Authorization": {"Bearer hunter2"}}
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		resp, err := client.Do(r)
		check.Require(t, err == nil, "%v %v", c.name, err)
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		code, says := resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")
		if code == "" {
			code, says = resp.Trailer.Get("Grpc-Status"), resp.Trailer.Get("Grpc-Message")
		}
		check.Expect(t, err == nil && code == c.code && strings.Contains(says, c.says) && (resp.StatusCode == 200) == (c.code != ""),
			"%s: HTTP %d, code %q: %s (%v)", c.name, resp.StatusCode, code, says, err)
		check.Equal(t, c.name+": taken", s.Count() > before, (c.code == "0"))
	}
	check.Expect(t, s.Crashes() == 1, "%d crashes", s.Crashes())
}
