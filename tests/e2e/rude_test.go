package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// rude opens connections to an HTTP server and does what good clients do not.
func rude(t *testing.T, address string) {
	t.Helper()
	send := func(text string, read bool) {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		_, _ = conn.Write([]byte(text))
		if read {
			_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			buf := make([]byte, 4096)
			_, _ = conn.Read(buf)
			conn.Close()
			return
		}
		t.Cleanup(func() { conn.Close() })
	}
	send("", false)
	send("GET /metr", false) // slow
	send("\x16\x03\x01\x02\x00\x01\x00", true)
	send("GET /metrics HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("X-Long: "+strings.Repeat("y", 1000)+"\r\n", 100)+"\r\n", true)
	send("GET /"+strings.Repeat("a", 100000)+" HTTP/1.1\r\n\r\n", true)
	send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\nabc", true)
	send("POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc", true)
	send("BREW /metrics HTTP/9.9\r\n\r\n", true)
	// Asks for much and goes away at once.
	for i := 0; i < 10; i++ {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		_, _ = fmt.Fprintf(conn, "GET /api/v1/targets HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		conn.Close()
	}
}
