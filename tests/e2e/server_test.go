package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	return key
}

// issue returns a certificate and its key in PEM, for servers and clients.
func (a *authority) issue(serial int64) (cert, key []byte) {
	a.t.Helper()
	k := a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "profpull.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames:    []string{"profpull.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	must(a.t, err)
	raw, err := x509.MarshalECPrivateKey(k)
	must(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// client verifies servers of the authority, and has a certificate if with is true.
func (a *authority) client(with bool) *http.Client {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool, ServerName: "profpull.test"}
	if with {
		cert, key := a.issue(100)
		pair, err := tls.X509KeyPair(cert, key)
		must(a.t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience()}
}

// replace writes a file beside the old one and renames it, as the kubelet does with secrets.
func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(name+".new", text, 0o600))
	must(t, os.Rename(name+".new", name))
}

// A server with TLS, client certificates and a password: who is let in, and what happens when the
// files change.
func TestServerAccess(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	cert, key := a.issue(2)
	replace(t, file("cert"), cert)
	replace(t, file("key"), key)
	replace(t, file("ca"), a.pem)
	replace(t, file("password"), []byte("hunter2\n"))
	p := startUnder(t, nil, `
server:
  tls: {cert_file: "`+file("cert")+`", key_file: "`+file("key")+`", client_ca_file: "`+file("ca")+`"}
  basic_auth: {username: u, password_file: "`+file("password")+`"}
scrape_configs: [{job_name: none, static_configs: [{targets: ["127.0.0.1:1"]}]}]
write: [{url: "http://127.0.0.1:1"}]
`)
	base := "https" + strings.TrimPrefix(p.admin, "http")
	stranger, known := a.client(false), a.client(true)
	var serial *big.Int
	ask := func(client *http.Client, path, user, password string) (*http.Response, string, error) {
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		must(t, err)
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		serial = resp.TLS.PeerCertificates[0].SerialNumber
		body, err := io.ReadAll(resp.Body)
		return resp, string(body), err
	}
	p.wait("the server", func() string {
		resp, body, err := ask(stranger, "/-/ready", "", "")
		if err != nil {
			return err.Error()
		}
		return unless(resp.StatusCode == 200, "not ready: %s", body)
	})
	for _, c := range []struct {
		client                 *http.Client
		path, user, password   string
		status                 int
		part, wwwAuthenticated string
	}{
		{stranger, "/-/healthy", "", "", 200, "ok", ""},
		{stranger, "/-/ready", "", "", 200, "ok", ""},
		{stranger, "/metrics", "u", "hunter2", 401, "expected a client certificate", ""},
		{known, "/metrics", "", "", 401, "expected the credentials", `Basic realm="profpull"`},
		{known, "/metrics", "u", "hunter", 401, "expected the credentials", `Basic realm="profpull"`},
		{known, "/metrics", "u", "hunter22", 401, "expected the credentials", `Basic realm="profpull"`},
		{known, "/metrics", "v", "hunter2", 401, "expected the credentials", `Basic realm="profpull"`},
		{known, "/metrics", "u", "hunter2", 200, "profpull_admin_requests_total", ""},
		{known, "/", "u", "hunter2", 200, "profpull", ""},
		{known, "/nothing", "", "", 404, "not found", ""},
	} {
		resp, body, err := ask(c.client, c.path, c.user, c.password)
		require(t, err == nil, "%v %v", c.path, err)
		expect(t, resp.StatusCode == c.status && strings.Contains(body, c.part) &&
			resp.Header.Get("WWW-Authenticate") == c.wwwAuthenticated,
			"%s %s:%s: got %s %v %q, expected %d %q", c.path, c.user, c.password, resp.Status, resp.Header, body, c.status, c.part)
	}

	// A connection serves several requests.
	reused := 0
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}}
	for i := 0; i < 5; i++ {
		r, _ := http.NewRequest(http.MethodGet, base+"/-/healthy", nil)
		resp, err := known.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		must(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	// On a busy machine, Go's client does not always find the one that it has used last.
	expect(t, reused >= 2, "%d of 5 requests on a kept connection", reused)

	// The password, the certificate and its key are replaced.
	replace(t, file("password"), []byte("other"))
	p.wait("the new password", func() string {
		resp, _, err := ask(known, "/metrics", "u", "other")
		must(t, err)
		if resp.StatusCode != 200 {
			return resp.Status
		}
		return ""
	})
	cert, key = a.issue(3)
	replace(t, file("cert"), cert)
	replace(t, file("key"), key)
	newSerial := func(want int64) func() string {
		return func() string {
			known.CloseIdleConnections()
			if _, _, err := ask(known, "/metrics", "u", "other"); err != nil {
				return err.Error()
			}
			if serial.Int64() != want {
				return fmt.Sprint("the certificate has number ", serial)
			}
			return ""
		}
	}
	p.wait("the new certificate", newSerial(3))
	cert, _ = a.issue(4) // without its key
	replace(t, file("cert"), cert)
	p.wait("the failure to be counted", func() string {
		known.CloseIdleConnections()
		_, body, err := ask(known, "/metrics", "u", "other")
		must(t, err)
		m, err := parseMetrics(body)
		must(t, err)
		if m.sum("profpull_admin_file_failures_total") == 0 {
			return "no failure"
		}
		return newSerial(3)()
	})

	// One that speaks no TLS.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.admin, "http://"))
	must(t, err)
	_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	conn.Close()
	expect(t, !strings.Contains(string(answer), "HTTP/1.1 200"), "an answer without TLS: %q", answer)
	p.wait("it to be counted", func() string {
		_, body, err := ask(known, "/metrics", "u", "other")
		must(t, err)
		m, _ := parseMetrics(body)
		return unless(m.sum("profpull_admin_connections_ended_total", "reason", "tls") != 0, "not counted")
	})
	p.stop()
	p.keepsSecret("hunter2")
}

// Files that cannot be used end the start, with their names.
func TestServerFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	cert, key := a.issue(2)
	_, other := a.issue(3)
	for name, text := range map[string][]byte{"cert": cert, "key": key, "other": other, "text": []byte("no PEM")} {
		replace(t, filepath.Join(dir, name), text)
	}
	for _, c := range []struct{ keys, message string }{
		{"tls: {cert_file: DIR/none, key_file: DIR/key}", "DIR/none: "},
		{"tls: {cert_file: DIR/text, key_file: DIR/key}", "DIR/text: "},
		{"tls: {cert_file: DIR/cert, key_file: DIR/other}", "DIR/other: key values mismatch"},
		{"tls: {cert_file: DIR/cert, key_file: DIR/key, client_ca_file: DIR/text}", "DIR/text: "},
		{"bearer_token_file: DIR/none", "DIR/none: "},
	} {
		config := writeConfig(t, strings.ReplaceAll(`
server: {listen: "127.0.0.1:0", `+c.keys+`}
scrape_configs: [{job_name: none}]
write: [{url: "http://127.0.0.1:1"}]
`, "DIR", dir))
		r := expectCall(t, 1, "*", strings.ReplaceAll(c.message, "DIR", dir), "run", "--config", config)
		has(t, c.keys, r.stderr, "admin server on 127.0.0.1:0")
	}
}

// startServers starts the program with a server for queries and one for receiving, each with a password.
func startServers(t *testing.T, query, receive string) (p *program, queries, receiver string) {
	t.Helper()
	queries, receiver = loop.Host()+":4042", loop.Host()+":4040"
	p = run(t, `
query: {listen: "`+queries+`", basic_auth: {username: q, password: one}, `+query+`}
receive: {listen: "`+receiver+`", bearer_token: two, `+receive+`}
scrape_configs: [{job_name: none, static_configs: [{targets: ["127.0.0.1:1"]}]}]
write: [{url: "http://127.0.0.1:1"}]
`)
	return p, queries, receiver
}

const labelNames = "/querier.v1.QuerierService/LabelNames"

// Each server has routes, credentials and metrics of its own.
func TestServersOfTheirOwn(t *testing.T) {
	t.Parallel()
	p, queries, receiver := startServers(t, "", "")
	admin := strings.TrimPrefix(p.admin, "http://")
	for _, c := range []struct {
		method, addr, path, user, password string
		status                             int
		part                               string
	}{
		{"GET", admin, "/metrics", "", "", 200, "profpull_"},
		{"POST", admin, labelNames, "q", "one", 404, "404 page not found"},
		{"GET", queries, "/metrics", "q", "one", 404, "404 page not found"},
		{"POST", queries, labelNames, "", "", 401, `"code":"unauthenticated"`},
		{"POST", queries, labelNames, "q", "two", 401, `"code":"unauthenticated"`},
		{"POST", queries, "//" + labelNames[1:], "q", "one", 400, `"code":"invalid_argument"`},
		{"POST", queries, "/pyroscope" + labelNames, "q", "one", 400, `"code":"invalid_argument"`},
		{"GET", receiver, "/metrics", "", "", 404, "404 page not found"},
		{"POST", receiver, labelNames, "q", "one", 404, "404 page not found"},
	} {
		r, err := http.NewRequest(c.method, "http://"+c.addr+c.path, strings.NewReader(`{}`))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		body := bodyOf(t, resp)
		expect(t, err == nil && resp.StatusCode == c.status && strings.Contains(string(body), c.part),
			"%s %s%s as %q: got %s %q (%v), expected %d %q", c.method, c.addr, c.path, c.user, resp.Status, body, err, c.status, c.part)
	}
	m := p.metrics()
	for _, want := range []struct {
		name string
		n    float64
	}{{"profpull_query_requests_total", 5}, {"profpull_receive_requests_total", 2}} {
		equal(t, want.name, m.sum(want.name), want.n)
	}
	equal(t, "requests without credentials",
		m.sum("profpull_query_requests_refused_total", "reason", "credentials"), 2)
	p.keepsSecret("cTpvbmU")
}

// Ten thousand connections that say little or nothing take no more places than there are, cost
// little memory, and keep nobody from being answered.
func TestTenThousandConnections(t *testing.T) {
	t.Parallel()
	const places, flood = 1000, 10000
	p, _, receiver := startServers(t, "", fmt.Sprintf("max_connections: %d, max_connections_per_address: %d", places, places/2))
	before := p.rss()
	conns := make([]net.Conn, 0, places*2)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	client := http.Client{Timeout: patience(), Transport: &http.Transport{DisableKeepAlives: true}}
	for i := 0; i < flood; i++ {
		// From 250 addresses, in four groups: nothing, a part of a head, of a body, of a wrong request.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 1, byte(1+i%250))}, Timeout: patience()}
		c, err := d.Dial("tcp", receiver)
		require(t, err == nil, "connection %d: %v", i, err)
		_, _ = io.WriteString(c, []string{
			"", "POST /ingest HTTP/1.1\r\nX: ", "POST /ingest?name=a HTTP/1.1\r\nAuthorization: Bearer two\r\nContent-Length: 100000\r\n\r\nabc",
			"\x16\x03\x01",
		}[i%4])
		if conns = append(conns, c); len(conns) == cap(conns) {
			// The server has ended the first half of them by now.
			for _, old := range conns[:places] {
				old.Close()
			}
			conns = append(conns[:0], conns[places:]...)
		}
		if i%1000 == 999 {
			resp, err := client.Get("http://" + receiver + "/nothing")
			require(t, err == nil, "after %d connections: %v", i+1, err)
			resp.Body.Close()
			expect(t, resp.StatusCode == 404, "after %d connections: %s", i+1, resp.Status)
			p.answers("/-/healthy", 200)
		}
	}
	m := p.metrics()
	atMost(t, "connections", m.sum("profpull_receive_connections"), places)
	atLeast(t, "connections that made room",
		m.sum("profpull_receive_connections_ended_total", "reason", "crowded"), flood-2*places)
	grown := p.rss() - before
	t.Logf("%d places cost %d KiB", places, grown>>10)
	expect(t, instrumented(t) || grown <= 64<<20, "the memory has grown by %d MiB", grown>>20)
}

// Bodies that are slow, large, or small until they are inflated.
func TestBodiesThatAttack(t *testing.T) {
	t.Parallel()
	p, queries, _ := startServers(t, "request_timeout: 1s, max_body_size: 1MiB", "")
	head := "POST " + labelNames + " HTTP/1.1\r\nHost: x\r\nAuthorization: Basic cTpvbmU=\r\nContent-Type: application/json\r\n"

	slow, err := net.Dial("tcp", queries)
	must(t, err)
	defer slow.Close()
	_, _ = io.WriteString(slow, head+"Content-Length: 100000\r\n\r\n")
	ended := make(chan string, 1)
	go func() {
		answer, _ := io.ReadAll(slow)
		ended <- string(answer)
	}()
	for answer := ""; answer == ""; {
		select {
		case answer = <-ended:
			expect(t, strings.HasPrefix(answer, "HTTP/1.1 408") && strings.Contains(answer, `"code":"deadline_exceeded"`),
				"a slow body: %q", answer)
		case <-time.After(100 * time.Millisecond):
			_, _ = io.WriteString(slow, " ")
		}
	}

	post := func(extra, body string) (int, string) {
		c, err := net.Dial("tcp", queries)
		must(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, head+"Connection: close\r\n"+extra+"\r\n"+body)
		answer, _ := io.ReadAll(c)
		var status int
		_, _ = fmt.Sscanf(string(answer), "HTTP/1.1 %d", &status)
		return status, string(answer)
	}
	status, answer := post("Content-Length: 2000000\r\nExpect: 100-continue\r\n", "")
	expect(t, status == 413 && !strings.Contains(answer, "100 Continue"), "a large body: %q", answer)
	status, answer = post("Transfer-Encoding: chunked\r\n", "ffffff\r\n")
	expect(t, status == 413, "a large chunk: %q", answer)

	before := p.rss()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for i := 0; i < 512; i++ {
		_, _ = w.Write(zeros)
	}
	w.Close()
	status, answer = post(fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n", bomb.Len()), bomb.String())
	expect(t, status/100 == 4, "512 MiB in %d bytes: %q", bomb.Len(), answer)
	grown := p.rss() - before
	expect(t, instrumented(t) || grown <= 64<<20, "the memory has grown by %d MiB", grown>>20)
}
