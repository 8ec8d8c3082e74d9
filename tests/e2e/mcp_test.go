package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// mcpAnswer is a response of the server for assistants.
type mcpAnswer struct {
	ID     any
	Error  *struct{ Code int }
	Result struct {
		ProtocolVersion string
		ResultType      string
		IsError         bool
		Tools           []struct{ Name string }
		Content         []struct{ Text string }
	}
}

func (a *mcpAnswer) text() string {
	if len(a.Result.Content) != 1 {
		return ""
	}
	return a.Result.Content[0].Text
}

const mcpMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// An assistant asks over HTTP and over standard input and output, in both generations of the protocol,
// and gets the functions of a real program under load.
func TestAssistants(t *testing.T) {
	t.Parallel()
	bin(t)
	address := startLoadgen(t)
	p := run(t, fmt.Sprintf(`
global: {scrape_interval: 2s}
write: [{url: "store://%s"}]
query: {basic_auth: {username: me, password: secret}}
scrape_configs:
  - job_name: load
    static_configs: [{targets: [%q], labels: {service_name: load}}]
`, t.TempDir(), address))
	ask := func(body string, headers ...string) (int, mcpAnswer) {
		req, err := http.NewRequest("POST", p.admin+"/mcp", strings.NewReader(body))
		must(t, err)
		req.SetBasicAuth("me", "secret")
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		var a mcpAnswer
		if len(text) > 0 && text[0] == '{' {
			decode(t, text, &a)
		}
		return resp.StatusCode, a
	}
	call := func(tool, args string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{%s}}}`, tool, args)
	}
	p.wait("the functions", func() string {
		_, a := ask(call("top_functions", `"service":"load"`))
		if !strings.Contains(a.text(), "sha256") || a.Result.IsError {
			return a.text()
		}
		return ""
	})
	if status, a := ask(call("labels", ""), "MCP-Protocol-Version", "2025-06-18"); status != 200 || !strings.Contains(a.text(), "service_name: 1 (load)") {
		t.Errorf("%d %+v", status, a)
	}
	modern := strings.Replace(call("targets", ""), `"arguments"`, mcpMeta+`,"arguments"`, 1)
	status, a := ask(modern, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "targets")
	expect(t, status == 200 && a.Result.ResultType == "complete" && strings.Contains(a.text(), "5 scrapes"), "%d %+v", status, a)
	status, _ = ask(call("labels", ""), "Origin", "http://evil.example")
	equal(t, "another site", status, 403)
	status, _ = ask(call("labels", ""), "Authorization", "Basic bWU6d3Jvbmc=")
	equal(t, "a wrong password", status, 401)

	password := writeConfig(t, "secret")
	lines := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		call("list_services", ""),
		strings.Replace(modern, `"id":1`, `"id":4`, 1),
		`no message`,
	}, "\n")
	r := callWith(t, lines+"\n", "mcp", "--url", p.admin, "--username", "me", "--password-file", password)
	var got []mcpAnswer
	for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		var a mcpAnswer
		decode(t, []byte(line), &a)
		got = append(got, a)
	}
	if r.code != exitDone || len(got) != 5 || got[0].Result.ProtocolVersion != "2025-06-18" || len(got[1].Result.Tools) < 6 ||
		!strings.Contains(got[2].text(), "load: ") || got[3].Result.ResultType != "complete" || got[4].Error == nil || got[4].Error.Code != -32700 {
		t.Errorf("%d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	p.stop()

	r = callWith(t, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n", "mcp", "--url", "http://127.0.0.1:1")
	ends(t, r, exitDone, `"id":7,"error":{"code":-32603`, "*")
}

// callWith is call, whose name is taken within the test.
func callWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return call(t, stdin, args...)
}
