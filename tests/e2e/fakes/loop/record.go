package loop

import (
	"fmt"
	"sync"
)

// Record is what a fake has taken and what it has refused, for any goroutine. The zero value is empty.
type Record[P any] struct {
	mu      sync.Mutex
	taken   []P
	refused []string
}

// Take adds a profile.
func (r *Record[P]) Take(p P) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, p)
}

// Note adds why something was refused.
func (r *Record[P]) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, fmt.Sprintf(format, args...))
}

// Profiles returns what has been taken, in order of arrival.
func (r *Record[P]) Profiles() []P {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]P(nil), r.taken...)
}

// Count is the number of those.
func (r *Record[P]) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// Refused lists what was not taken, in the words of the answer.
func (r *Record[P]) Refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.refused...)
}
