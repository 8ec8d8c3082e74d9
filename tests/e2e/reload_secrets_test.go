package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

// guarded is a target that wants a password and a certificate of an authority, which may change.
type guarded struct {
	*loop.Server
	t    *testing.T
	body []byte

	mu       sync.Mutex
	config   *tls.Config
	password string         // "" = any
	seen     map[string]int // answers by password
}

func newGuarded(t *testing.T, a *authority, password string) *guarded {
	t.Helper()
	g := &guarded{t: t, body: pprof.Gzip(pprof.Make("goroutine", pprof.Options{})), seen: map[string]int{}}
	g.use(a, password)
	var err error
	g.Server, err = loop.Start("", http.HandlerFunc(g.serve), &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.config, nil
		},
	})
	must(t, err)
	t.Cleanup(g.Down)
	return g
}

// use changes both; TLS is that of the next connection.
func (g *guarded) use(a *authority, password string) {
	g.t.Helper()
	cert, key := a.issue(2)
	pair, err := tls.X509KeyPair(cert, key)
	must(g.t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.password = password
	g.config = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Connection", "close")
	if g.password != "" && password != g.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	g.seen[password]++
	_, _ = w.Write(g.body)
}

func (g *guarded) answers(password string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[password]
}

// Secrets change: in the configuration, in files that it names as before, as a key and certificates.
// Each change is in force with the next scrapes, and none of them is ever shown.
func TestReloadOfSecrets(t *testing.T) {
	t.Parallel()
	first, second := newAuthority(t), newAuthority(t)
	tg := newGuarded(t, first, "")
	dir, out := t.TempDir(), t.TempDir()
	write := func(a *authority, password string) {
		cert, key := a.issue(3)
		for name, text := range map[string][]byte{"ca": a.pem, "cert": cert, "key": key, "password": []byte(password)} {
			replace(t, filepath.Join(dir, name), text)
		}
	}
	write(first, "sesame-3")
	config := func(password string) string {
		return fmt.Sprintf(`
write: [{name: main, url: "file://%s"}]
scrape_configs:
  - job_name: one
    scheme: https
    scrape_interval: 1s
    basic_auth: {username: u, %s}
    tls_config: {ca_file: %s/ca, cert_file: %s/cert, key_file: %s/key, server_name: profpull.test}
    profiles: {process_cpu: {enabled: false}, memory: {enabled: false}, mutex: {enabled: false}, block: {enabled: false}}
    static_configs: [{targets: [%q]}]
`, out, password, dir, dir, dir, tg.Addr())
	}
	p := run(t, config("password: sesame-1"), "--config.no-watch")
	arrives := func(password string) {
		t.Helper()
		n := tg.answers(password)
		p.wait("a scrape with "+password, func() string {
			for _, s := range p.scrapes("") {
				if tg.answers(password) == n {
					return orNothing(s.LastError)
				}
				return ""
			}
			return "no target"
		})
	}
	load := func(password, answer string) {
		t.Helper()
		replaceFile(t, p.config, config(password))
		p.reloaded(answer)
	}
	arrives("sesame-1")
	load("password: sesame-2", "was loaded")
	arrives("sesame-2")
	load("password_file: "+dir+"/password", "was loaded")
	arrives("sesame-3")
	s := p.scrapes("")[0]
	expect(t, s.Failures == 0, "%d failures, the last one: %s", s.Failures, s.LastError)
	// The configuration says the same, the files do not; the target takes the new ones only.
	write(second, "sesame-4")
	tg.use(second, "sesame-4")
	p.reloaded("is the same")
	arrives("sesame-4")
	status, shown := p.get("/api/v1/config")
	expect(t, status == http.StatusOK && !strings.Contains(shown, "sesame"), "/api/v1/config: %d %s", status, shown)
	p.keepsSecret("sesame", "PRIVATE KEY")
}

// The level of the log changes while the program runs, until the configuration says otherwise.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	const config = `
log: {level: info}
write: [{name: main, url: "http://127.0.0.1:1"}]
scrape_configs: [{job_name: one, static_configs: [{targets: []}]}]
`
	p := run(t, config, "--config.no-watch")
	post := func(path string, status int, part string) {
		t.Helper()
		resp, err := http.Post(p.admin+path, "", nil)
		must(t, err)
		text := bodyOf(t, resp)
		expect(t, resp.StatusCode == status && strings.Contains(string(text), part),
			"%s: %d %s", path, resp.StatusCode, text)
	}
	const line = `msg="the configuration is the same"`
	lines := func(n int) {
		t.Helper()
		becomes(t, "the log", n, func() int { return strings.Count(p.stderr.String(), line) })
	}
	post("/-/reload", 200, "is the same")
	lines(1)
	post("/-/log-level?level=error", 200, "the level of the log is error\n")
	post("/-/reload", 200, "is the same") // says nothing
	post("/-/log-level?level=everything", 400, "level: expected debug, info, warn or error\n")
	post("/-/log-level", 400, "level: expected debug, info, warn or error\n")
	p.answers("/-/log-level?level=info", http.StatusMethodNotAllowed)
	post("/-/log-level?level=info", 200, "is info")
	post("/-/reload", 200, "is the same")
	lines(2)
	post("/-/log-level?level=error", 200, "is error")
	replaceFile(t, p.config, strings.Replace(config, "one", "two", 1))
	post("/-/reload", 200, "was loaded")
	post("/-/reload", 200, "is the same")
	lines(3)
}
