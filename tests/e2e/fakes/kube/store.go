package kube

import (
	"encoding/json"
	"sort"
)

// stored is one version of a pod.
type stored struct {
	pod     Pod
	version uint64
	json    []byte
}

// change is one entry of the history that watches read.
type change struct {
	version  uint64
	old, new *stored // nil if it was not there, or is not any more
}

// store holds the pods and the history. The server's mutex guards it.
type store struct {
	version   uint64
	pods      map[string]*stored
	history   []change
	compacted uint64 // changes up to this version are forgotten
	changed   chan struct{}
}

func newStore() *store {
	return &store{version: 1000, compacted: 1000, pods: map[string]*stored{}, changed: make(chan struct{})}
}

// wake lets every waiting watch look again.
func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) put(p Pod) {
	p.complete()
	s.version++
	text, _ := json.Marshal(p.object(s.version))
	next := &stored{pod: p, version: s.version, json: text}
	s.history = append(s.history, change{s.version, s.pods[p.key()], next})
	s.pods[p.key()] = next
	s.wake()
}

func (s *store) remove(key string) bool {
	old := s.pods[key]
	if old == nil {
		return false
	}
	s.version++
	// The object of a deletion carries the version of the deletion.
	text, _ := json.Marshal(old.pod.object(s.version))
	gone := &stored{pod: old.pod, version: s.version, json: text}
	s.history = append(s.history, change{s.version, gone, nil})
	delete(s.pods, key)
	s.wake()
	return true
}

// compact forgets the history: watches from an older version get 410.
func (s *store) compact() {
	s.compacted = s.version
	s.history = nil
}

// list is sorted as the API server sorts: by namespace and name.
func (s *store) list(match matcher) []*stored {
	var all []*stored
	for _, one := range s.pods {
		if match(&one.pod) {
			all = append(all, one)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].pod.key() < all[j].pod.key() })
	return all
}

// since returns the events after a version for one watch: an object that begins to match is ADDED
// and one that ceases to match DELETED, whatever happened to it in truth.
func (s *store) since(version uint64, match matcher) (events []event) {
	for _, c := range s.history {
		if c.version <= version {
			continue
		}
		was := c.old != nil && match(&c.old.pod)
		is := c.new != nil && match(&c.new.pod)
		switch {
		case is && was:
			events = append(events, event{"MODIFIED", c.version, c.new.json})
		case is:
			events = append(events, event{"ADDED", c.version, c.new.json})
		case was && c.new == nil:
			events = append(events, event{"DELETED", c.version, c.old.json})
		case was:
			// The last state that matched, with the version of the change.
			text, _ := json.Marshal(c.old.pod.object(c.version))
			events = append(events, event{"DELETED", c.version, text})
		}
	}
	return events
}
