// Command mcpclient checks the server for assistants with the client of the official Go SDK for the
// Model Context Protocol: `make mcp-check` runs it. It needs modules from the module proxy, so it is no
// part of `make check`.
//
//	mcpclient -profpull build/profpull -url http://127.0.0.1:4041
//
// It connects over standard input and output and over HTTP, lists the tools, calls each, and calls one
// with a wrong argument.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var calls = []struct {
	tool  string
	args  map[string]any
	wrong bool
}{
	{"list_services", map[string]any{"limit": 5}, false},
	{"top_functions", map[string]any{"limit": 5}, false},
	{"call_tree", map[string]any{"depth": 5}, false},
	{"labels", nil, false},
	{"targets", nil, false},
	{"compare", map[string]any{"from": "10s", "before_from": "1h", "before_until": "now", "limit": 3}, false},
	{"top_functions", map[string]any{"service": "there is none"}, true},
	{"top_functions", map[string]any{"limit": 100000}, true},
}

func text(r *mcp.CallToolResult) string {
	if len(r.Content) == 1 {
		if t, ok := r.Content[0].(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return ""
}

func check(ctx context.Context, name string, transport mcp.Transport) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "profpull-check", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return fmt.Errorf("%s: connect: %w", name, err)
	}
	defer session.Close()
	init := session.InitializeResult()
	if init == nil || init.ServerInfo == nil || init.ServerInfo.Name != "profpull" || init.Instructions == "" {
		return fmt.Errorf("%s: %+v", name, init)
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: tools/list: %w", name, err)
	}
	if len(tools.Tools) < 6 {
		return fmt.Errorf("%s: %d tools", name, len(tools.Tools))
	}
	for _, c := range calls {
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, c.tool, err)
		}
		if r.IsError != c.wrong || text(r) == "" || len(text(r)) > 8192 {
			return fmt.Errorf("%s: %s: error %v: %s", name, c.tool, r.IsError, text(r))
		}
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "nothing"}); err == nil {
		return fmt.Errorf("%s: an unknown tool is no error", name)
	}
	fmt.Printf("%s: revision %s, %d tools, %d calls\n", name, init.ProtocolVersion, len(tools.Tools), len(calls))
	return nil
}

func main() {
	program := flag.String("profpull", "build/profpull", "the program")
	url := flag.String("url", "http://127.0.0.1:4041", "a running profpull with a store")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, transport := range map[string]mcp.Transport{
		"stdio": &mcp.CommandTransport{Command: exec.Command(*program, "mcp", "--url", *url)},
		"http":  &mcp.StreamableClientTransport{Endpoint: *url + "/mcp"},
	} {
		if err := check(ctx, name, transport); err != nil {
			log.Fatal(err)
		}
	}
}
