// Package parca is a fake of Parca's profile store, as strict as the real one: gRPC over HTTP/2 alone,
// valid and different label names, a `__name__`, profiles whose ids count up from 1. A profile without
// a period type, which ends the process of the real one, counts as a crash.
package parca

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pprof"
)

const path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

// Codes of gRPC.
const (
	ok                = 0
	invalidArgument   = 3
	resourceExhausted = 8
	unimplemented     = 12
	unavailable       = 14
	unauthenticated   = 16
)

var (
	labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	timeout   = regexp.MustCompile(`^[0-9]{1,8}[HMSmun]$`)
)

// Profile is what the server stored.
type Profile struct {
	Labels map[string]string
	*pprof.Profile
	Raw []byte // as it came
}

// Answer is a status of gRPC in place of the server's own.
type Answer struct {
	Code    int
	Message string // as it goes onto the wire: percent-encoded
	// Cut ends the answer after its head, without a status.
	Cut bool
}

// Server is a running fake.
type Server struct {
	*loop.Server
	loop.Record[Profile]
	Faults loop.Faults
	// Authority is the PEM text of the authority of a server with TLS.
	Authority string
	// Token is what clients have to show; empty: nothing.
	Token string
	// Early is what to answer, in trailers, before a request has come; its stream is reset then.
	Early *Answer
	// MessageMax is the limit of a message; 0: 64 MiB.
	MessageMax int
	// Refuse says what to answer to a profile; nil takes it.
	Refuse func(p Profile) *Answer

	mu      sync.Mutex
	crashes int
	asked   []time.Time
}

// Start runs a server on an address of its own, over HTTP/2 with or without TLS.
func Start(withTLS bool) (*Server, error) {
	s := &Server{}
	var err error
	s.Server, s.Authority, err = loop.StartHTTP2(http.HandlerFunc(s.serve), withTLS)
	return s, err
}

// Crashes counts requests that would have ended the real process.
func (s *Server) Crashes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashes
}

// Asked returns when requests came.
func (s *Server) Asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.asked...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	odd := len(s.asked)%2 == 1
	s.mu.Unlock()
	if s.Early != nil {
		finish(w, *s.Early, false)
		return
	}
	// If an answer ends a call before the request was sent, libcurl may lose the head: proxies read first.
	first, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(first), r.Body))
	if s.Faults.Apply(w, r) {
		return
	}
	if r.ProtoMajor != 2 || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/grpc" {
		s.Note("415")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	a := s.answer(r)
	if a.Code != ok {
		s.Note("%d %s", a.Code, a.Message)
	}
	// The real server refuses a message for its size in trailers.
	finish(w, a, odd && a.Code != resourceExhausted)
}

// finish sends an answer. Errors come in the head if nothing else does, or as trailers after it:
// servers do both.
func finish(w http.ResponseWriter, a Answer, inHead bool) {
	w.Header().Set("Content-Type", "application/grpc")
	if a.Code != ok && inHead && !a.Cut {
		w.Header().Set("Grpc-Status", strconv.Itoa(a.Code))
		w.Header().Set("Grpc-Message", a.Message)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if a.Cut {
		panic(http.ErrAbortHandler)
	}
	if a.Code == ok {
		_, _ = w.Write(make([]byte, 5)) // the empty message in its frame
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(a.Code))
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", a.Message)
}

func refuse(code int, format string, args ...any) Answer {
	return Answer{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (s *Server) answer(r *http.Request) Answer {
	if r.URL.Path != path {
		return refuse(unimplemented, "unknown service %s", r.URL.Path)
	}
	if r.Header.Get("Te") != "trailers" || (r.Header.Get("Grpc-Timeout") != "" && !timeout.MatchString(r.Header.Get("Grpc-Timeout"))) {
		return refuse(invalidArgument, "te %q, grpc-timeout %q", r.Header.Get("Te"), r.Header.Get("Grpc-Timeout"))
	}
	if s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token {
		return refuse(unauthenticated, "no token")
	}
	message, a := s.read(r.Body)
	if a.Code != ok {
		return a
	}
	all, err := parse(message)
	if err != nil {
		return refuse(invalidArgument, "%v", err)
	}
	for _, p := range all {
		if !p.hasPeriodType {
			s.mu.Lock()
			s.crashes++
			s.mu.Unlock()
			return refuse(unavailable, "panic: nil pointer")
		}
		if s.Refuse != nil {
			if a := s.Refuse(p.Profile); a != nil {
				return *a
			}
		}
	}
	for _, p := range all {
		s.Take(p.Profile)
	}
	return Answer{}
}

// read takes the frame off a message.
func (s *Server) read(body io.Reader) ([]byte, Answer) {
	var head [5]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, refuse(unavailable, "%v", err)
	}
	max, n := s.MessageMax, int(binary.BigEndian.Uint32(head[1:]))
	if max == 0 {
		max = 64 << 20
	}
	if n > max {
		return nil, refuse(resourceExhausted, "grpc: received message larger than max (%d vs. %d)", n, max)
	}
	message, err := io.ReadAll(io.LimitReader(body, int64(n)+1))
	if err != nil || len(message) != n || head[0] != 0 {
		return nil, refuse(unavailable, "flag %d, %d bytes, expected %d: %v", head[0], len(message), n, err)
	}
	return message, Answer{}
}
