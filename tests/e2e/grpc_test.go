package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
)

// A message in the frame of gRPC.
func frame(flags byte, message []byte) []byte {
	head := make([]byte, 5, 5+len(message))
	head[0] = flags
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return append(head, message...)
}

// grpcAnswer is how a call ended.
type grpcAnswer struct {
	status, text string
	message      []byte
}

// grpcCall makes a call of gRPC, with JSON as the codec of its messages, so that the tests need no
// generated code.
func grpcCall(t *testing.T, client *http.Client, base, method, message string, header ...string) grpcAnswer {
	t.Helper()
	req, err := http.NewRequest("POST", base+method, bytes.NewReader(frame(0, []byte(message))))
	must(t, err)
	req.Header.Set("Content-Type", "application/grpc+json")
	req.Header.Set("TE", "trailers")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	require(t, resp.StatusCode == 200 && resp.ProtoMajor == 2 && resp.Header.Get("Content-Type") == "application/grpc+json",
		"%s: %s %s %v: %s", method, resp.Proto, resp.Status, resp.Header, body)
	if len(body) == 0 { // only a head
		return grpcAnswer{status: resp.Header.Get("Grpc-Status"), text: resp.Header.Get("Grpc-Message")}
	}
	require(t, int(binary.BigEndian.Uint32(body[1:])) == len(body)-5, "%s: a frame of %d bytes", method, len(body)-5)
	a := grpcAnswer{status: resp.Trailer.Get("Grpc-Status"), text: resp.Trailer.Get("Grpc-Message"), message: body[5:]}
	if body[0] == 1 {
		in, err := gzip.NewReader(bytes.NewReader(a.message))
		must(t, err)
		a.message, err = io.ReadAll(in)
		must(t, err)
	}
	return a
}

// Profiles pushed over gRPC are found over gRPC: with TLS, passwords and the limits of the servers.
func TestGRPC(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	cert, key := a.issue(2)
	must(t, os.WriteFile(file("cert"), cert, 0o600))
	must(t, os.WriteFile(file("key"), key, 0o600))
	host := loop.Host()
	section := func(port string) string {
		return fmt.Sprintf("{listen: %q, tls: {cert_file: %q, key_file: %q}, basic_auth: {username: u, password: p}, max_body_size: 64KiB",
			host+port, file("cert"), file("key"))
	}
	p := run(t, fmt.Sprintf("query: %s}\nreceive: %s, acknowledge: stored}\nscrape_configs: []\nwrite: [{name: kept, url: %q}]\n",
		section(":4043"), section(":4044"), "store://"+dir+"/store"))
	client := a.client(false)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	query, receive := "https://"+host+":4043", "https://"+host+":4044"
	word := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p"))
	push := fmt.Sprintf(`{"series":[{"labels":[{"name":"__name__","value":"process_cpu"},{"name":"service_name","value":"cart"}],"samples":[{"rawProfile":%q}]}]}`,
		base64.StdEncoding.EncodeToString(gzipped(cpuProfile())))
	now := time.Now().UnixMilli()
	ask := fmt.Sprintf(`{"name":"service_name","start":%d,"end":%d}`, now-30*24*3600*1000, now+60000)

	for _, c := range []struct {
		name, base, method, message string
		header                      []string
		status, text, part          string
	}{
		{"push", receive, "/push.v1.PusherService/Push", push, []string{"Authorization", word}, "0", "", "{}"},
		{"query", query, "/querier.v1.QuerierService/LabelValues", ask, []string{"Authorization", word}, "0", "", `{"names":["cart"]}`},
		{"an error", query, "/querier.v1.QuerierService/LabelValues", "{}", []string{"Authorization", word}, "3", "name is required", ""},
		{"a push of nothing", receive, "/push.v1.PusherService/Push", "{}", []string{"Authorization", word}, "3", "no profiles received", ""},
		{"no such method", query, "/querier.v1.QuerierService/None", "{}", []string{"Authorization", word}, "12", "there is no method /querier.v1.QuerierService/None", ""},
		{"no password", query, "/querier.v1.QuerierService/LabelValues", "{}", nil, "16", "expected the credentials of this server", ""},
		{"a message too large", receive, "/push.v1.PusherService/Push", strings.Repeat(" ", 70000), []string{"Authorization", word}, "8", "the request body is too large", ""},
		{"no time", query, "/querier.v1.QuerierService/LabelValues", ask, []string{"Authorization", word, "Grpc-Timeout", "0S"}, "4", "context deadline exceeded", ""},
		{"health of the query server", query, "/grpc.health.v1.Health/Check", "{}", nil, "0", "", `{"status":"SERVING"}`},
		{"health of the receive server", receive, "/grpc.health.v1.Health/Check", `{"service":"push.v1.PusherService"}`, nil, "0", "", `{"status":"SERVING"}`},
		{"health of a service elsewhere", receive, "/grpc.health.v1.Health/Check", `{"service":"querier.v1.QuerierService"}`, nil, "5", "there is no service querier.v1.QuerierService", ""},
	} {
		got := grpcCall(t, client, c.base, c.method, c.message, c.header...)
		expect(t, got.status == c.status && got.text == c.text && string(got.message) == c.part,
			"%s: got status %s %q %s, expected %s %q %s", c.name, got.status, got.text, got.message, c.status, c.text, c.part)
	}
	// A large answer is compressed for clients that take it.
	for _, accept := range []string{"", "gzip"} {
		got := grpcCall(t, client, query, "/querier.v1.QuerierService/SelectMergeStacktraces",
			fmt.Sprintf(`{"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":%d,"end":%d}`, now-30*24*3600*1000, now+60000),
			"Authorization", word, "Grpc-Accept-Encoding", accept)
		expect(t, got.status == "0" && strings.Contains(string(got.message), `"total"`),
			"the flame graph, %q: status %s %s, %s", accept, got.status, got.text, got.message)
	}
	m := p.metrics()
	equal(t, "pushes counted", m.sum("profpull_connect_calls_total", "method", "push.v1.PusherService/Push", "code", "ok"), 1)
	atLeast(t, "streams of the receive server", m.sum("profpull_receive_http2_streams_total", "result", "done"), 4)
}

// Connect, gRPC and gRPC-web on a plain address with curl: over h2c, HTTP/2 by prior knowledge, and
// over HTTP/1.1, where the status of gRPC follows the last chunk. HTTP/1.0 has no chunks.
func TestGRPCWithoutTLS(t *testing.T) {
	t.Parallel()
	listen := loop.Host() + ":4043"
	run(t, fmt.Sprintf("query: {listen: %q}\nscrape_configs: []\nwrite: [{name: kept, url: %q}]\n", listen, "store://"+t.TempDir()))
	for _, c := range []struct {
		name, version, contentType string
		body                       []byte
		want                       []string
	}{
		{"Connect over h2c", "--http2-prior-knowledge", "application/json", []byte("{}"), []string{"HTTP/2 200", `{"QuerierAPI":"1"}`}},
		{"Connect over HTTP/1.1", "--http1.1", "application/json", []byte("{}"), []string{"HTTP/1.1 200 OK", `{"QuerierAPI":"1"}`}},
		{"gRPC over h2c", "--http2-prior-knowledge", "application/grpc+json", frame(0, []byte("{}")), []string{"HTTP/2 200", "\x00\x00\x00\x00\x12" + `{"QuerierAPI":"1"}`, "grpc-status: 0"}},
		{"gRPC over HTTP/1.1", "--http1.1", "application/grpc+json", frame(0, []byte("{}")), []string{"HTTP/1.1 200 OK", "Trailer: grpc-status\r\n", "\x00\x00\x00\x00\x12" + `{"QuerierAPI":"1"}`, "grpc-status: 0"}},
		{"gRPC over HTTP/1.0", "--http1.0", "application/grpc+json", frame(0, []byte("{}")), []string{"HTTP/1.1 415"}},
		{"gRPC-web over h2c", "--http2-prior-knowledge", "application/grpc-web+json", frame(0, []byte("{}")), []string{"HTTP/2 200", `{"QuerierAPI":"1"}` + "\x80\x00\x00\x00\x10grpc-status: 0\r\n"}},
		{"gRPC-web over HTTP/1.1", "--http1.1", "application/grpc-web+json", frame(0, []byte("{}")), []string{"HTTP/1.1 200 OK", `{"QuerierAPI":"1"}` + "\x80\x00\x00\x00\x10grpc-status: 0\r\n"}},
	} {
		out, log := curl(t, c.version, c.contentType, "http://"+listen+"/version.v1.Version/Version", c.body)
		for _, want := range c.want {
			expect(t, strings.Contains(out, want) || strings.Contains(log, want),
				"%s: got %q %s, expected %q in it", c.name, out, log, want)
		}
	}
}

// curl sends a body. The response is its head and its body; trailers stand after it or in the log.
func curl(t *testing.T, version, contentType, url string, body []byte, header ...string) (response, log string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	file := writeFile(t, t.TempDir(), "body", body)
	args := []string{"-sS", "-i", "-v", version, "--max-time", "60", "--data-binary", "@" + file, "-H", "Content-Type: " + contentType}
	for _, h := range header {
		args = append(args, "-H", h)
	}
	cmd := exec.Command("curl", append(args, url)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && strings.Contains(stderr.String(), "does not support") {
		t.Skipf("curl: %s", stderr.String())
	} else if err != nil {
		t.Fatalf("curl %s %s: %v %s", version, url, err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// otlpMessages are the messages in which import sends the real profiles as OTLP.
func otlpMessages(t *testing.T) [][]byte {
	t.Helper()
	var mu sync.Mutex
	var all [][]byte
	s, err := loop.Start("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var in io.Reader
			if in, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(in)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}), nil)
	must(t, err)
	defer s.Down()
	r := call(t, "", "import", "--url", s.URL(), "--protocol", "otlp", "--name", "shop.cart", "--label", "pod=cart-7f",
		"--label", "team=blue", realFiles(t))
	mu.Lock()
	defer mu.Unlock()
	require(t, r.code == exitDone && len(all) != 0, "exit code %d, %d requests\n%s%s", r.code, len(all), r.stdout, r.stderr)
	return all
}

// Profiles that are exported over gRPC, as the eBPF profiler and the Collector do, arrive with their
// names, all values and the labels that became attributes.
func TestOtlpOverGRPC(t *testing.T) {
	t.Parallel()
	messages := otlpMessages(t)
	const method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
	for _, c := range []struct {
		name, version, contentType, status string
		packed                             bool
	}{
		{"h2c", "--http2-prior-knowledge", "application/grpc", "HTTP/2 200", false},
		{"h2c, gzip", "--http2-prior-knowledge", "application/grpc+proto", "HTTP/2 200", true},
		{"HTTP/1.1", "--http1.1", "application/grpc", "HTTP/1.1 200 OK", false},
	} {
		c := c
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startPyroscope(t, pyroscope.Options{})
			p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
			for _, message := range messages {
				body, header := frame(0, message), []string{"TE: trailers"}
				if c.packed {
					body, header = frame(1, gzipped(message)), append(header, "grpc-encoding: gzip")
				}
				out, log := curl(t, c.version, c.contentType, base+method, body, header...)
				if !strings.HasPrefix(out, c.status) || !strings.Contains(out, "\r\n\r\n\x00\x00\x00\x00\x00") ||
					!strings.Contains(out+log, "grpc-status: 0") {
					t.Fatalf("got %q %s", out, log)
				}
			}
			expectRealProfiles(t, p, s)
			// Bytes that are no message are refused, and do not end the service.
			if out, log := curl(t, c.version, c.contentType, base+method, frame(0, []byte("\xff"))); !strings.Contains(out, "grpc-status: 3\r\n") {
				t.Errorf("no message: got %q %s", out, log)
			}
		})
	}
}

// Content that comes before its request is let in: the check of a password takes a while, and the
// window of a client is full meanwhile. Neither it nor that of requests that are not let in is lost
// for the requests after them on the same connection.
func TestHTTP2BodiesOfStrangers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	cert, key := a.issue(2)
	replace(t, filepath.Join(dir, "server.crt"), cert)
	replace(t, filepath.Join(dir, "server.key"), key)
	web := filepath.Join(dir, "web.yml")
	set := func(more string) {
		replace(t, web, []byte("tls_server_config: {cert_file: server.crt, key_file: server.key}\nbasic_auth_users:\n  alice: "+geheim+"\n"+more))
	}
	set("")
	listen := loop.Host() + ":4043"
	run(t, fmt.Sprintf("receive: {listen: %q, web_config_file: %q}\nscrape_configs: []\nwrite: [{name: kept, url: %q}]\n", listen, web, "store://"+dir+"/store"))
	client := a.client(false)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	post := func(password string) (int, string) {
		req, err := http.NewRequest("POST", "https://"+listen+"/v1/pprof", bytes.NewReader(make([]byte, 600000)))
		must(t, err)
		req.SetBasicAuth("alice", password)
		resp, err := client.Do(req)
		must(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		must(t, err)
		return resp.StatusCode, resp.Proto
	}
	for i := 0; i < 8; i++ { // 250 KB of each fit into the window of a stream, four times into that of the connection
		if status, proto := post(fmt.Sprint("wrong", i)); status != 401 || proto != "HTTP/2.0" {
			t.Fatalf("a wrong password: status %d over %s", status, proto)
		}
	}
	if status, proto := post("geheim"); status/100 != 4 || status == 401 || proto != "HTTP/2.0" {
		t.Fatalf("a body that is no profile, with the right password: status %d over %s", status, proto)
	}
	// The file turns HTTP/2 off for the next connection.
	set("http_server_config: {http2: false}\n")
	wait(t, "HTTP/1.1", func() string {
		client.CloseIdleConnections()
		_, proto := post("geheim")
		return unless(proto == "HTTP/1.1", "%s", proto)
	})
}
