package e2e

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The hash of "geheim", with the least cost.
const geheim = "$2y$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ."

// A web configuration file as Prometheus has it: users, headers, TLS, and what happens when it changes.
func TestWebConfigFile(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	dir := t.TempDir()
	cert, key := a.issue(2)
	replace(t, filepath.Join(dir, "server.crt"), cert)
	replace(t, filepath.Join(dir, "server.key"), key)
	replace(t, filepath.Join(dir, "ca.crt"), a.pem)
	web := filepath.Join(dir, "web.yml")
	const server = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
	set := func(more string) { replace(t, web, []byte(server+more)) }
	set("http_server_config: {headers: {X-Frame-Options: deny}}\nbasic_auth_users:\n  alice: " + geheim + "\n")
	p := startUnder(t, nil, `
server: {web_config_file: "`+web+`"}
scrape_configs: [{job_name: none, static_configs: [{targets: ["127.0.0.1:1"]}]}]
write: [{url: "http://127.0.0.1:1"}]
`)
	base := "https" + strings.TrimPrefix(p.admin, "http")
	stranger, known := a.client(false), a.client(true)
	ask := func(client *http.Client, path, user, password string) (int, http.Header, string) {
		client.CloseIdleConnections() // TLS is that of the next connection
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		must(t, err)
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, nil, err.Error()
		}
		body := bodyOf(t, resp)
		return resp.StatusCode, resp.Header, string(body)
	}
	p.wait("the server", func() string {
		status, _, text := ask(stranger, "/-/healthy", "", "")
		return unless(status == 200, "%s", text)
	})
	for _, c := range []struct {
		path, user, password string
		status               int
	}{
		{"/metrics", "", "", 401},
		{"/metrics", "alice", "geheim2", 401},
		{"/metrics", "bob", "geheim", 401},
		{"/metrics", "alice", "geheim", 200},
		{"/metrics", "alice", "geheim", 200}, // known by now
		{"/metrics", "alice", "", 401},
		{"/-/healthy", "", "", 200},
	} {
		status, header, text := ask(stranger, c.path, c.user, c.password)
		expect(t, status == c.status && header.Get("X-Frame-Options") == "deny" &&
			(status == 401) == (header.Get("WWW-Authenticate") == `Basic realm="profpull"`),
			"%s %s:%s: %d %v %s", c.path, c.user, c.password, status, header, text)
	}

	// until waits until the file that was written last is in use: at most a second.
	until := func(what string, client *http.Client, user string, status int) {
		t.Helper()
		p.wait(what, func() string {
			if got, _, text := ask(client, "/metrics", user, "geheim"); got != status {
				return http.StatusText(got) + text
			}
			return ""
		})
	}
	set("basic_auth_users:\n  bob: " + geheim + "\n")
	until("bob", stranger, "bob", 200)
	until("no alice", stranger, "alice", 401)
	set("basic_auth_users:\n  bob: unsinn\n")
	p.wait("the failure", func() string {
		_, _, text := ask(stranger, "/metrics", "bob", "geheim")
		if !strings.Contains(text, "profpull_admin_file_failures_total 1") {
			return p.stderr.String()
		}
		return ""
	})
	p.says("web.yml:5:8: basic_auth_users.bob: expected a bcrypt hash")
	lacks(t, "the log", p.stderr.String(), "unsinn")

	// Certificates of clients.
	const ca = "  client_ca_file: ca.crt\n"
	set(ca + "  client_auth_type: RequireAndVerifyClientCert\n")
	until("strangers kept out", stranger, "", 401)
	until("known ones let in", known, "", 200)
	set(ca + "  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [other.test]\n")
	until("those of other names kept out", known, "", 401)
	set(ca + "  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [other.test, profpull.test]\n")
	until("those of the name let in", known, "", 200)
	set(ca + "  client_auth_type: VerifyClientCertIfGiven\n")
	until("strangers let in", stranger, "", 200)
	set("  client_auth_type: RequireAnyClientCert\n")
	until("strangers kept out again", stranger, "", 401)
	other := newAuthority(t).client(true)
	other.Transport.(*http.Transport).TLSClientConfig.RootCAs = known.Transport.(*http.Transport).TLSClientConfig.RootCAs
	until("any certificate", other, "", 200)

	// Versions and suites.
	set("  min_version: TLS13\n")
	old := a.client(false)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	until("no TLS 1.2", old, "", 0)
	set("  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305]\n  curve_preferences: [CurveP256]\n")
	until("TLS 1.2", old, "", 200)
	var state *tls.ConnectionState
	old.CloseIdleConnections()
	resp, err := old.Get(base + "/-/healthy")
	must(t, err)
	state = resp.TLS
	resp.Body.Close()
	expect(t, state.Version == tls.VersionTLS12 && state.CipherSuite == tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		"version %x, suite %x", state.Version, state.CipherSuite)
}

// Mistakes in the file, and beside it, keep the program from starting.
func TestWebConfigMistakes(t *testing.T) {
	t.Parallel()
	web := filepath.Join(t.TempDir(), "web.yml")
	for _, c := range []struct{ web, server, want string }{
		{"basic_auth_user: {}\n", "", `web.yml:1:1: basic_auth_user: unknown key; did you mean "basic_auth_users"?`},
		{"tls_server_config: {cert_file: none, key_file: none}\n", "", "/none: "},
		{"{}\n", `, bearer_token: t`, `server.web_config_file: the file has TLS and users: expected no "tls", "basic_auth"`},
	} {
		must(t, os.WriteFile(web, []byte(c.web), 0o600))
		file := writeConfig(t, `
server: {listen: "127.0.0.1:0", web_config_file: "`+web+`"`+c.server+`}
scrape_configs: [{job_name: none, static_configs: [{targets: ["127.0.0.1:1"]}]}]
write: [{url: "http://127.0.0.1:1"}]
`)
		expectCall(t, 1, "*", c.want, "run", "--config", file)
	}
}
