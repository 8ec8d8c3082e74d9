package e2e

import (
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
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
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
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
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
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience()}
}

// replace writes a file beside the old one and renames it, as the kubelet does with secrets.
func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
		if _, _, err := ask(stranger, "/-/healthy", "", ""); err != nil {
			return err.Error()
		}
		return ""
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
		if err != nil {
			t.Fatal(c.path, err)
		}
		if resp.StatusCode != c.status || !strings.Contains(body, c.part) ||
			resp.Header.Get("WWW-Authenticate") != c.wwwAuthenticated {
			t.Errorf("%s %s:%s: got %s %v %q, expected %d %q", c.path, c.user, c.password, resp.Status, resp.Header, body, c.status, c.part)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if reused != 5 {
		t.Errorf("%d of 5 requests on a kept connection", reused)
	}

	// The password, the certificate and its key are replaced.
	replace(t, file("password"), []byte("other"))
	p.wait("the new password", func() string {
		resp, _, err := ask(known, "/metrics", "u", "other")
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMetrics(body)
		if err != nil {
			t.Fatal(err)
		}
		if m.sum("profpull_admin_file_failures_total") == 0 {
			return "no failure"
		}
		return newSerial(3)()
	})

	// One that speaks no TLS.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.admin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	conn.Close()
	if strings.Contains(string(answer), "HTTP/1.1 200") {
		t.Errorf("an answer without TLS: %q", answer)
	}
	p.wait("it to be counted", func() string {
		_, body, err := ask(known, "/metrics", "u", "other")
		if err != nil {
			t.Fatal(err)
		}
		if m, _ := parseMetrics(body); m.sum("profpull_admin_connections_ended_total", "reason", "tls") == 0 {
			return "not counted"
		}
		return ""
	})
	p.stop()
	if strings.Contains(p.stderr.String(), "hunter2") {
		t.Error("the password is in the log")
	}
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
		r := call(t, "", "run", "--config", config)
		want := strings.ReplaceAll(c.message, "DIR", dir)
		if r.code != 1 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "admin server on 127.0.0.1:0") {
			t.Errorf("%s: exit status %d, %q, expected 1 and %q", c.keys, r.code, r.stderr, want)
		}
	}
}
