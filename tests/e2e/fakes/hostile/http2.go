package hostile

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"time"
)

// Frames of RFC 9113.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameSettings = 0x4
	flagAck       = 0x1
	flagEnd       = 0x4 // END_HEADERS
)

func frame(kind, flags byte, stream uint32, payload string) []byte {
	out := make([]byte, 9, 9+len(payload))
	binary.BigEndian.PutUint32(out, uint32(len(payload))<<8|uint32(kind))
	out[4] = flags
	binary.BigEndian.PutUint32(out[5:], stream)
	return append(out, payload...)
}

// A status as HPACK has it: the name from the static table, the value as text.
func status(code string) string { return "\x08\x03" + code }

// The frames that are sent on stream 1, once and repeatedly.
var frames = map[Kind]struct{ once, again []byte }{
	HTTP2Hints:     {nil, frame(frameHeaders, flagEnd, 1, status("103"))},
	HTTP2EmptyData: {frame(frameHeaders, flagEnd, 1, status("200")), frame(frameData, 0, 1, "")},
}

// serveHTTP2 answers the first request of a connection; one that does not speak HTTP/2 gets nothing.
func (p *Peer) serveHTTP2(raw net.Conn) {
	conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2", "http/1.1"}})
	if conn.Handshake() != nil {
		return
	}
	in := bufio.NewReader(conn)
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		_, _ = io.Copy(io.Discard, in)
		return
	}
	if _, err := io.CopyN(io.Discard, in, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	_, _ = conn.Write(append(frame(frameSettings, 0, 0, ""), frame(frameSettings, flagAck, 0, "")...))
	for {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, in, size); err != nil {
			return
		}
		if head[3] == frameHeaders {
			go func() { _, _ = io.Copy(io.Discard, in) }() // or the client could not send
			script := frames[p.kind]
			p.send(conn, script.once, repeat(script.again, 64<<10))
			return
		}
	}
}

func repeat(b []byte, size int) []byte {
	var out []byte
	for len(out) < size {
		out = append(out, b...)
	}
	return out
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
