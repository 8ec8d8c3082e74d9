package kube

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
	"profpull.test/e2e/fakes/loop"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	check.Must(t, err)
	t.Cleanup(s.Down)
	return s
}

type podList struct {
	Metadata struct {
		ResourceVersion, Continue string
	}
	Items []struct {
		Metadata struct{ Name, Namespace string }
	}
}

func list(t *testing.T, s *Server, query string) (int, podList) {
	t.Helper()
	resp, err := http.Get(s.URL() + query)
	check.Must(t, err)
	defer resp.Body.Close()
	var l podList
	check.Must(t, json.NewDecoder(resp.Body).Decode(&l))
	return resp.StatusCode, l
}

func names(l podList) string {
	var n []string
	for _, i := range l.Items {
		n = append(n, i.Metadata.Name)
	}
	return strings.Join(n, " ")
}

func TestListPagesAndSelectors(t *testing.T) {
	s := start(t, Options{})
	for _, n := range []string{"c", "a", "b"} {
		p := Annotated(n, "127.0.0.9:80", "cpu")
		p.Node = "node-" + n
		s.Put(p)
	}
	s.Put(Pod{Namespace: "other", Name: "z", Phase: "Succeeded"})
	_, first := list(t, s, "/api/v1/pods?limit=3")
	_, second := list(t, s, "/api/v1/pods?limit=3&continue="+first.Metadata.Continue)
	check.Expect(t, names(first) == "a b c" && names(second) == "z" && second.Metadata.Continue == "" &&
		first.Metadata.ResourceVersion == second.Metadata.ResourceVersion,
		"pages %q and %q", names(first), names(second))
	for query, want := range map[string]string{
		"/api/v1/namespaces/other/pods":                                                     "z",
		"/api/v1/pods?fieldSelector=" + url.QueryEscape("spec.nodeName=node-b"):             "b",
		"/api/v1/pods?fieldSelector=" + url.QueryEscape("status.phase!=Succeeded"):          "a b c",
		"/api/v1/pods?labelSelector=app":                                                    "a b c",
		"/api/v1/pods?labelSelector=" + url.QueryEscape("!app"):                             "z",
		"/api/v1/pods?labelSelector=" + url.QueryEscape("app in (a, c),app!=c"):             "a",
		"/api/v1/pods?resourceVersion=0&limit=1":                                            "a b c z",
		"/api/v1/pods?resourceVersion=0&limit=1&labelSelector=" + url.QueryEscape("app==c"): "c",
	} {
		_, got := list(t, s, query)
		check.Expect(t, names(got) == want, "%s: %q, expected %q", query, names(got), want)
	}
	status, _ := list(t, s, "/api/v1/pods?fieldSelector=spec.host%3Dx")
	check.Expect(t, status == 400, "unknown field: %d", status)
	status, _ = list(t, s, "/api/v1/pods?resourceVersion=999999")
	check.Expect(t, status == 504, "version of the future: %d", status)
	_, first = list(t, s, "/api/v1/pods?limit=1")
	s.Compact()
	status, _ = list(t, s, "/api/v1/pods?limit=1&continue="+first.Metadata.Continue)
	check.Expect(t, status == 410, "old page: %d", status)
}

type watchLine struct {
	Type   string
	Object struct {
		Code     int
		Metadata struct{ Name, ResourceVersion string }
	}
}

type stream struct {
	t    *testing.T
	body io.ReadCloser
	r    *bufio.Reader
}

func watch(t *testing.T, s *Server, query string) *stream {
	t.Helper()
	resp, err := http.Get(s.URL() + "/api/v1/pods?watch=1&allowWatchBookmarks=true&" + query)
	check.Must(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return &stream{t, resp.Body, bufio.NewReader(resp.Body)}
}

func (st *stream) next() string {
	line, err := st.r.ReadString('\n')
	if err != nil {
		return fmt.Sprintf("%v after %d bytes", err, len(line))
	}
	var l watchLine
	check.Must(st.t, json.Unmarshal([]byte(line), &l))
	if l.Type == "ERROR" {
		return fmt.Sprint("ERROR ", l.Object.Code)
	}
	return l.Type + " " + l.Object.Metadata.Name
}

func TestWatch(t *testing.T) {
	s := start(t, Options{})
	s.Put(Pod{Name: "a", Labels: map[string]string{"x": "1"}})
	_, l := list(t, s, "/api/v1/pods")
	st := watch(t, s, "labelSelector=x&resourceVersion="+l.Metadata.ResourceVersion)
	s.Put(Pod{Name: "b", Labels: map[string]string{"x": "1"}})
	check.Equal(t, "the next event", st.next(), "ADDED b")
	s.Put(Pod{Name: "b", Labels: map[string]string{"x": "2"}})
	check.Equal(t, "the next event", st.next(), "MODIFIED b")
	s.Put(Pod{Name: "b"}) // leaves the selector
	check.Equal(t, "the next event", st.next(), "DELETED b")
	s.Put(Pod{Name: "c"}) // never in it
	s.Delete("default/a")
	check.Equal(t, "the next event", st.next(), "DELETED a")
	s.Advance(5)
	s.Bookmark()
	check.Equal(t, "the next event", st.next(), "BOOKMARK ")
	s.EndWatches()
	check.Equal(t, "the next event", st.next(), "EOF after 0 bytes")
}

func TestStreamedList(t *testing.T) {
	s := start(t, Options{})
	s.Put(Pod{Name: "a"})
	s.Put(Pod{Name: "b"})
	s.Compact()
	s.Advance(5)
	const stream = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="
	st := watch(t, s, stream+"0")
	check.Equal(t, "the next event", st.next(), "ADDED a")
	check.Equal(t, "the next event", st.next(), "ADDED b")
	check.Equal(t, "the next event", st.next(), "BOOKMARK ")
	s.Put(Pod{Name: "c"})
	check.Equal(t, "the next event", st.next(), "ADDED c")
	// From a version that is forgotten, too: it is a list.
	check.Equal(t, "the next event", watch(t, s, stream+"1001").next(), "ADDED a")
	status, _ := list(t, s, "/api/v1/pods?watch=1&allowWatchBookmarks=true&"+stream+"9999")
	check.Expect(t, status == 504, "version of the future: %d", status)
	status, _ = list(t, s, "/api/v1/pods?watch=1&sendInitialEvents=true")
	check.Expect(t, status == 422, "without the rest: %d", status)
	if st := s.Stats(); st.Lists != 3 || st.Streams != 2 {
		t.Errorf("%d lists, %d streamed", st.Lists, st.Streams)
	}
	s.StallStreams(true)
	st = watch(t, s, stream)
	for _, name := range []string{"a", "b", "c"} {
		check.Equal(t, "the next event", st.next(), "ADDED "+name)
	}
	s.Put(Pod{Name: "d"})
	check.Equal(t, "the next event", st.next(), "ADDED d")
}

func TestWatchFaults(t *testing.T) {
	s := start(t, Options{})
	s.Put(Pod{Name: "a"})
	from := func() string {
		_, l := list(t, s, "/api/v1/pods")
		return "resourceVersion=" + l.Metadata.ResourceVersion
	}
	version := from()
	st := watch(t, s, version)
	s.CutNextEvent()
	s.Put(Pod{Name: "b"})
	got := st.next()
	check.Expect(t, strings.HasPrefix(got, "unexpected EOF after ") && !strings.HasSuffix(got, " 0 bytes"),
		"cut: %s", got)
	check.Equal(t, "the next event", watch(t, s, version).next(), "ADDED b")

	st = watch(t, s, version)
	check.Equal(t, "the next event", st.next(), "ADDED b")
	s.WatchError(500, "InternalError", "etcdserver: no leader")
	check.Equal(t, "the next event", st.next(), "ERROR 500")
	s.Compact()
	check.Equal(t, "the next event", watch(t, s, version).next(), "ERROR 410")

	s.WatchFaults.Set(&loop.Fault{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Times: 1})
	resp, err := http.Get(s.URL() + "/api/v1/pods?watch=1&" + from())
	check.Expect(t, err == nil && resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "7",
		"429: %v %v", resp, err)
	resp.Body.Close()
	// Without a version: what is there comes as ADDED first.
	check.Equal(t, "the next event", watch(t, s, "resourceVersion=0").next(), "ADDED a")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.AbortWatches()
	if err := s.WaitWatches(ctx, 0); err != nil {
		t.Error(err)
	}
}

func TestTokenTLSAndKubeconfig(t *testing.T) {
	s := start(t, Options{TLS: true, Token: "secret-1"})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	check.Must(t, s.WriteKubeconfig(file))
	text, _ := os.ReadFile(file)
	check.Expect(t, strings.Contains(string(text), s.URL()) && strings.Contains(string(text), "secret-1"),
		"kubeconfig: %s", text)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca.pem)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	for token, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer secret-1": 200} {
		req, _ := http.NewRequest("GET", s.URL()+"/api/v1/pods", nil)
		req.Header.Set("Authorization", token)
		resp, err := client.Do(req)
		check.Must(t, err)
		resp.Body.Close()
		check.Expect(t, resp.StatusCode == want, "token %q: %d", token, resp.StatusCode)
	}
}
