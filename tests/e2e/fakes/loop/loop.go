// Package loop serves HTTP for a fake: on loopback only, on an address of its own, and in a way that
// can go away and come back.
//
// Every server has an address of its own in 127.0.0.0/8, so that the port of a server that is down
// cannot be taken by anything else in the meantime.
package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var nextHost uint32

// Host returns an address in 127.0.0.0/8 that no other caller in this process gets. Two processes
// that run at the same time are unlikely to meet: the second octet comes from the process id.
func Host() string {
	n := atomic.AddUint32(&nextHost, 1)
	return fmt.Sprintf("127.%d.%d.%d", 16+os.Getpid()%200, n/250%250, n%250+1)
}

// Server is an HTTP server that can be taken down and brought up again on the same address.
type Server struct {
	handler http.Handler
	tls     *tls.Config
	h2c     bool

	mu   sync.Mutex
	addr string
	http *http.Server
	gate *gate
	done chan struct{}
}

// gate stops requests from being handled. The server of the standard library may close a connection
// as idle of which it has just read a request, and handle that request all the same.
type gate struct {
	closed  atomic.Bool
	handler http.Handler
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.closed.Load() {
		panic(http.ErrAbortHandler)
	}
	g.handler.ServeHTTP(w, r)
}

// Start listens and serves. An empty address asks for a host of its own and a free port.
func Start(addr string, handler http.Handler, tlsConfig *tls.Config) (*Server, error) {
	if addr == "" {
		addr = Host() + ":0"
	}
	return start(&Server{addr: addr, handler: handler, tls: tlsConfig})
}

func start(s *Server) (*Server, error) {
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr is host:port.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL is the base URL without a trailing slash.
func (s *Server) URL() string {
	if s.tls != nil && !s.h2c {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Up starts listening again after Down. Nothing happens if the server is up.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	ln, err := Listen(s.addr)
	if err != nil {
		return err
	}
	s.addr = ln.Addr().String()
	if s.h2c {
		ln = &plainListener{ln, s.tls}
	} else if s.tls != nil {
		ln = tls.NewListener(ln, s.tls)
	}
	s.gate = &gate{handler: s.handler}
	s.http = &http.Server{
		Handler:  s.gate,
		ErrorLog: log.New(io.Discard, "", 0), // broken connections are what some tests are about
	}
	s.done = make(chan struct{})
	go func(srv *http.Server, done chan struct{}) {
		defer close(done)
		_ = srv.Serve(ln)
	}(s.http, s.done)
	return nil
}

// Listen binds an address. It may be that of a listener that was closed just now, and that a process
// which is being started has inherited: it is free when that process runs its program.
func Listen(addr string) (net.Listener, error) {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		ln, err := net.Listen("tcp", addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(begin) > 10*time.Second {
			return ln, err
		}
	}
}

// Down closes the listener and cuts every connection; later connections are refused.
func (s *Server) Down() { s.down(func(srv *http.Server, _ *gate) error { return srv.Close() }) }

// DownBetweenRequests is Down, except that requests that are being handled are answered first, and
// that no other one is handled: a client knows of everything that was accepted.
func (s *Server) DownBetweenRequests() {
	s.down(func(srv *http.Server, g *gate) error {
		g.closed.Store(true)
		return srv.Shutdown(context.Background())
	})
}

func (s *Server) down(end func(*http.Server, *gate) error) {
	s.mu.Lock()
	srv, g, done := s.http, s.gate, s.done
	s.http = nil
	s.mu.Unlock()
	if srv != nil {
		_ = end(srv, g)
		<-done
	}
}
