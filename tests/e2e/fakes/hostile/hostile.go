// Package hostile has peers that answer with bytes that never become a profile, as fast as the client
// reads them, or with none at all. They speak no HTTP of net/http's: it would not send this.
package hostile

import (
	"bufio"
	"fmt"
	"net"
	"sort"
	"strings"
	"sync"
	"time"

	"profpull.test/e2e/fakes/loop"
)

// Kind is what a peer does with a request.
type Kind string

// The kinds.
const (
	Silent         Kind = "silent"          // accepts and never answers
	ChunkExtension Kind = "chunk-extension" // one chunk whose extension has no end
	TinyChunks     Kind = "tiny-chunks"     // chunks of one byte
	EarlyHints     Kind = "early-hints"     // interim responses
	HTTP2Hints     Kind = "http2-hints"     // the same over HTTP/2 (TLS)
	HTTP2EmptyData Kind = "http2-empty"     // DATA frames without data
)

const head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// The bytes that are sent once, and those that are repeated until the client has gone.
var scripts = map[Kind]struct{ once, again string }{
	ChunkExtension: {head + "1;", strings.Repeat("x", 64<<10)},
	TinyChunks:     {head, strings.Repeat("1\r\nx\r\n", 8<<10)},
	EarlyHints:     {"", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 2<<10)},
}

// Peer is one listening address.
type Peer struct {
	kind     Kind
	listener net.Listener

	mu    sync.Mutex
	open  map[net.Conn]time.Time
	lives []time.Duration
	sent  int64 // bytes of all connections
}

// Start listens on an address of its own.
func Start(kind Kind) (*Peer, error) {
	_, plain := scripts[kind]
	_, http2 := frames[kind]
	if !plain && !http2 && kind != Silent {
		return nil, fmt.Errorf("no hostile peer is called %q", kind)
	}
	listener, err := net.Listen("tcp", loop.Host()+":0")
	if err != nil {
		return nil, err
	}
	p := &Peer{kind: kind, listener: listener, open: map[net.Conn]time.Time{}}
	go p.accept()
	return p, nil
}

// Addr is host:port.
func (p *Peer) Addr() string { return p.listener.Addr().String() }

// Down stops listening and cuts every connection.
func (p *Peer) Down() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

// Lives returns for how long the connections were open, those that still are included, the shortest
// first.
func (p *Peer) Lives() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append([]time.Duration(nil), p.lives...)
	for _, since := range p.open {
		all = append(all, time.Since(since))
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all
}

// Sent is the number of bytes that the kernel has taken for the client, as plain text.
func (p *Peer) Sent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

func (p *Peer) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open[conn] = time.Now()
		p.mu.Unlock()
		go p.serve(conn)
	}
}

func (p *Peer) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lives = append(p.lives, time.Since(p.open[conn]))
		delete(p.open, conn)
	}()
	if _, http2 := frames[p.kind]; http2 {
		p.serveHTTP2(conn)
		return
	}
	in := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" && p.kind != Silent {
			p.send(conn, []byte(scripts[p.kind].once), []byte(scripts[p.kind].again))
			return
		}
	}
}

// send writes once, and then again and again until the client has gone.
func (p *Peer) send(conn net.Conn, once, again []byte) {
	for next := once; ; next = again {
		n, err := conn.Write(next)
		p.mu.Lock()
		p.sent += int64(n)
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}
