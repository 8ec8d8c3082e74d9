package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// holdConnection keeps a connection to the admin server from another address of this machine for as
// long as the test runs, and makes another when it ends: it sends the request, and then a byte or
// reads one now and then.
func holdConnection(addr string, from int, request string, made *atomic.Int64, stop <-chan struct{}) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 0, byte(from))}, Timeout: time.Second}
	for {
		conn, err := d.Dial("tcp", addr)
		if err == nil {
			_ = conn.(*net.TCPConn).SetReadBuffer(4096)
			_, err = io.WriteString(conn, request)
			made.Add(1)
		}
		for one := make([]byte, 1); err == nil; {
			select {
			case <-stop:
				conn.Close()
				return
			case <-time.After(200 * time.Millisecond):
			}
			if strings.HasSuffix(request, "\r\n\r\n") {
				_, err = conn.Read(one)
			} else {
				_, err = conn.Write([]byte("x"))
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Clients that drip their request, or sip their answer, on more connections than the server has
// places: each health check is answered, and those who come back keep nobody out.
func TestSlowAdminClients(t *testing.T) {
	t.Parallel()
	var targets []string
	for i := 0; i < 1000; i++ {
		targets = append(targets, fmt.Sprintf("127.8.%d.%d:1", i/250, 1+i%250))
	}
	p := run(t, scraping(jobAt("many", "scrape_interval: 1h", targets...), "url: http://127.0.0.1:1"))
	addr := strings.TrimPrefix(p.admin, "http://")
	var made atomic.Int64
	stop := make(chan struct{})
	defer close(stop)
	for i := 0; i < 63; i++ {
		go holdConnection(addr, 1+i/8, "GET /metrics HTTP/1.1\r\nX-Slow: ", &made, stop)
	}
	for i := 0; i < 33; i++ {
		go holdConnection(addr, 101+i/8, "GET /api/v1/targets HTTP/1.1\r\nHost: x\r\n\r\n", &made, stop)
	}
	p.wait("the places to be taken", func() string {
		if n := made.Load(); n < 96 {
			return fmt.Sprint(n, " connections")
		}
		return ""
	})
	client := http.Client{Timeout: 20 * time.Second}
	for i := 0; i < 30; i++ {
		r, err := client.Get("http://" + addr + "/-/healthy")
		must(t, err)
		expect(t, r.StatusCode == http.StatusOK, "/-/healthy: %s", r.Status)
		r.Body.Close()
	}
	m := p.metrics()
	atMost(t, "connections", m.sum("profpull_admin_connections"), 64)
	atLeast(t, "connections that made room", m.sum("profpull_admin_connections_ended_total", "reason", "crowded"), 32)
}
