package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/pyroscope"
)

// h2frame is a frame of HTTP/2.
func h2frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[5:], stream)
	return append(head, payload...)
}

const (
	h2Data, h2Headers, h2Priority, h2Reset, h2Settings, h2Ping, h2Window, h2Continuation = 0, 1, 2, 3, 4, 6, 8, 9
	h2EndStream, h2EndHeaders                                                            = 1, 4
)

// Floods of HTTP/2 against the receiving server, ten connections each: the server ends every connection, says
// why, and neither needs much memory nor keeps others from pushing.
func TestFloodsOfHTTP2(t *testing.T) {
	t.Parallel()
	const connections, most = 10, 16 << 20
	// POST http://x/ingest, whose body is awaited.
	head := append([]byte{0x83, 0x86, 0x41, 1, 'x', 0x44, 14}, "/ingest?name=a"...)
	open := h2frame(h2Headers, h2EndHeaders, 1, head)
	// A header of 4,000 bytes that enters the table, which is then named 15,000 times.
	large := append(append([]byte{0x40, 1, 'a', 0x7f, 0xa1, 0x1e}, bytes.Repeat([]byte{'b'}, 4000)...), bytes.Repeat([]byte{0xbe}, 12000)...)
	attacks := []struct {
		what  string
		first []byte
		again func(i int) []byte
	}{
		{"rapid resets", nil, func(i int) []byte {
			stream := uint32(2*i + 1)
			return append(h2frame(h2Headers, h2EndHeaders|h2EndStream, stream, head), h2frame(h2Reset, 0, stream, []byte{0, 0, 0, 8})...)
		}},
		{"PING", nil, func(int) []byte { return h2frame(h2Ping, 0, 0, make([]byte, 8)) }},
		{"SETTINGS", nil, func(int) []byte { return h2frame(h2Settings, 0, 0, nil) }},
		{"PRIORITY", nil, func(int) []byte { return h2frame(h2Priority, 0, 3, []byte{0, 0, 0, 0, 1}) }},
		{"empty DATA", open, func(int) []byte { return h2frame(h2Data, 0, 1, nil) }},
		{"empty DATA for an answered stream", h2frame(h2Headers, h2EndHeaders|h2EndStream, 1, head), func(int) []byte { return h2frame(h2Data, 0, 1, nil) }},
		{"large frames of an unknown type", nil, func(int) []byte { return h2frame(0x77, 0, 0, make([]byte, 16384)) }},
		{"WINDOW_UPDATE", open, func(int) []byte { return h2frame(h2Window, 0, 1, []byte{0, 0, 0, 1}) }},
		{"CONTINUATION", h2frame(h2Headers, 0, 1, head), func(int) []byte {
			return h2frame(h2Continuation, 0, 1, []byte{0x00, 1, 'a', 1, 'b'})
		}},
		{"a head that unpacks to 48 MB", nil, func(i int) []byte {
			return h2frame(h2Headers, h2EndHeaders|h2EndStream, uint32(2*i+1), large)
		}},
	}
	s := startPyroscope(t, pyroscope.Options{})
	p, base := relay(t, "", fmt.Sprintf("{name: main, url: %q}", s.URL()))
	before := p.rss()
	good := startGoodPushes(base)
	var wait sync.WaitGroup
	for k, a := range attacks {
		for c := 0; c < connections; c++ {
			wait.Add(1)
			go func(k int, what string, first []byte, again func(int) []byte) {
				defer wait.Done()
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 3, byte(1+k))}, Timeout: patience()}
				conn, err := d.Dial("tcp", strings.TrimPrefix(base, "http://"))
				if err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience()))
				// The answers are read, so that the server never has to wait for this side.
				end := make(chan struct{})
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					close(end)
				}()
				sent, err := conn.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), append(h2frame(h2Settings, 0, 0, nil), first...)...))
				for i := 0; err == nil && sent < most; i++ {
					var n int
					n, err = conn.Write(again(i))
					sent += n
				}
				<-end // or the deadline
			}(k, a.what, a.first, a.again)
		}
	}
	wait.Wait()
	const ended = "profpull_receive_connections_ended_total"
	p.waitMetrics("the ends of the connections", func(m metrics) string {
		resets, flood, protocol := m.sum(ended, "reason", "resets"), m.sum(ended, "reason", "flood"), m.sum(ended, "reason", "protocol")
		// A machine that is slow may come to the end of a request's time before that of a flood.
		slow := m.sum(ended, "reason", "slow_request")
		n := resets + flood + protocol + slow
		return unless(int(n) == connections*len(attacks) && resets >= connections && flood+slow >= 7*connections && slow <= 3*connections,
			"%v for resets, %v for floods, %v for the protocol, %v for slow requests", resets, flood, protocol, slow)
	})
	grown := p.rss() - before
	good.stop(t, p, s)
	t.Logf("the memory grew by %d KiB, %d good pushes", grown>>10, good.sent)
	expect(t, instrumented(t) || grown <= 64<<20, "the memory has grown by %d MiB", grown>>20)
}
