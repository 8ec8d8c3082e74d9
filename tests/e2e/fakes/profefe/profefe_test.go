package profefe

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/pprof"
)

// The fake says what the real collector says.
func TestAnswers(t *testing.T) {
	s, err := Start()
	check.Must(t, err)
	good := pprof.Make("cpu", pprof.Options{Functions: 3})
	const empty = "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x01a\x32\x01b"
	for _, c := range []struct {
		name, method, query, body string
		status                    int
		want                      string
	}{
		{"E35", "POST", "service=cart&type=cpu&labels=env%3Dprod%2Cpod%3Dc", string(good), 200,
			`{"code":200,"body":{"id":"bpc00000000000000000","type":"cpu","service":"cart","labels":[{"key":"env","value":"prod"},{"key":"pod","value":"c"}]`},
		{"no service", "POST", "type=cpu", string(good), 400, `{"code":400,"error":"bad request: missing \"service\""}`},
		{"unknown type", "POST", "service=a&type=allocs", string(good), 400, "unknown profile type"},
		{"no type", "POST", "service=a", string(good), 400, "unknown profile type"},
		{"E37", "POST", "service=a&type=cpu&labels=k%3Da%252Cb%253Dc%2525", string(good), 200, `{"key":"k","value":"a,b=c%"}`},
		{"E37 once", "POST", "service=a&type=cpu&labels=k%3Da%2Cb%3Dc%25", string(good), 400, "invalid URL escape"},
		{"no samples", "POST", "service=a&type=mutex", empty, 400, "profile is empty: no samples"},
		{"HTML", "POST", "service=a&type=mutex", "<html>", 400, "malformed profile"},
		{"another method", "PUT", "service=a&type=cpu", string(good), 200, ""},
		{"E40 zone", "GET", "service=cart&type=cpu&from=2026-11-21T01:00:00Z&to=2026-11-21T02:00:00", "", 400, "bad"},
		{"E40 none", "GET", "service=cart&type=cpu&from=2001-11-21T01:00:00&to=2001-11-21T02:00:00", "", 204, ""},
		{"E40", "GET", "service=cart&type=cpu&from=2001-01-01T00:00:00&to=2100-01-01T00:00:00", "", 200, `"id":"bpc00000000000000000"`},
		{"created_at", "POST", "service=a&type=cpu&created_at=2026-11-21T01:00:00Z", string(good), 400, "created_at"},
	} {
		r, _ := http.NewRequest(c.method, s.URL()+path+"?"+c.query, bytes.NewReader([]byte(c.body)))
		resp, err := http.DefaultClient.Do(r)
		check.Require(t, err == nil, "%v %v", c.name, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		text := strings.ReplaceAll(string(body), `\u003c`, "<")
		check.Expect(t, resp.StatusCode == c.status && strings.Contains(text, c.want) && (c.want != "" || text == ""),
			"%s: HTTP %d %s", c.name, resp.StatusCode, text)
	}
}
