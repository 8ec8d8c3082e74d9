package loop

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Fault is what a server does instead of its work.
type Fault struct {
	// Hang takes the request and never answers (until the client goes away).
	Hang bool
	// Delay comes before the answer, faulty or not.
	Delay time.Duration
	// Status other than 0 answers with that status, Header and Body.
	Status int
	Header http.Header
	Body   string
	// Times limits the fault to so many requests; 0 means until it is changed.
	Times int
	// Match limits it to requests for which it is true; nil means all.
	Match func(r *http.Request) bool
}

// Faults holds the fault that applies now. The zero value holds none.
type Faults struct {
	mu      sync.Mutex
	current *Fault
	left    int
	calls   int
}

// Calls counts the requests that have come, faulty or not.
func (f *Faults) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Set replaces the fault; nil ends it.
func (f *Faults) Set(fault *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = fault
	f.left = 0
	if fault != nil {
		f.left = fault.Times
	}
}

func (f *Faults) take(r *http.Request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	fault := f.current
	if fault != nil && fault.Match != nil && !fault.Match(r) {
		return nil
	}
	if fault != nil && fault.Times > 0 {
		if f.left == 0 {
			return nil
		}
		f.left--
	}
	return fault
}

// Apply does what the fault says. It returns true if the request has been dealt with.
func (f *Faults) Apply(w http.ResponseWriter, r *http.Request) bool {
	fault := f.take(r)
	if fault == nil {
		return false
	}
	if fault.Hang {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if fault.Status == 0 {
		return false
	}
	// An answer that overtakes the body is a fault of its own; clients distinguish it from an answer.
	_, _ = io.Copy(io.Discard, r.Body)
	for name, values := range fault.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(fault.Status)
	_, _ = w.Write([]byte(fault.Body))
	return true
}
