package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// event is one line of a watch.
type event struct {
	kind    string
	version uint64
	object  []byte
}

// bytes are the event as it is sent, in protobuf or JSON.
func (e event) bytes(c codec) []byte {
	if c.protobuf {
		return FrameProtobuf(e.kind, ObjectProtobuf(c.reduce(e.object)))
	}
	return append([]byte(fmt.Sprintf(`{"type":%q,"object":%s}`, e.kind, c.reduce(e.object))), '\n')
}

// signal is something that a test wants every open watch to do.
type signal struct {
	bookmark bool
	event    *event
	end      bool // ends the stream afterwards
	abort    bool // cuts the connection afterwards
}

func (s *Server) signal(sig signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = append(s.signals, sig)
	s.store.wake()
}

// Bookmark sends a bookmark with the current version to every watch that allows them.
func (s *Server) Bookmark() { s.signal(signal{bookmark: true}) }

// EndWatches ends every open watch as a server does when their time is over.
func (s *Server) EndWatches() { s.signal(signal{end: true}) }

// AbortWatches cuts the connection of every open watch.
func (s *Server) AbortWatches() { s.signal(signal{abort: true}) }

// WatchError sends an ERROR event and ends every open watch.
func (s *Server) WatchError(code int, reason, message string) {
	text, _ := json.Marshal(statusObject(code, reason, message))
	s.signal(signal{event: &event{"ERROR", 0, text}, end: true})
}

// WatchEvent sends an event of the test's choice to every open watch; the object is JSON.
func (s *Server) WatchEvent(kind, object string) {
	s.signal(signal{event: &event{kind, 0, []byte(object)}})
}

// CutNextEvent lets the next event be sent by half, before its connection is cut.
func (s *Server) CutNextEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutNext = true
}

// BlackHole makes open watches silent (true) without closing anything.
func (s *Server) BlackHole(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blackHole = on
	s.store.wake()
}

// watcher is one open watch.
type watcher struct {
	s         *Server
	w         http.ResponseWriter
	r         *http.Request
	match     matcher
	codec     codec
	version   uint64
	bookmarks bool
	end       bool // the end of a streamed list is to be sent
	signals   int  // how many of the server's have been done
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, match matcher) {
	q := r.URL.Query()
	s.mu.Lock()
	s.stats.Watches++
	s.stats.WatchFrom = append(s.stats.WatchFrom, q.Get("resourceVersion"))
	s.mu.Unlock()
	if s.WatchFaults.Apply(w, r) {
		s.mu.Lock()
		s.stats.Refused++
		s.mu.Unlock()
		return
	}
	stream := q.Get("sendInitialEvents") == "true"
	if stream && !s.mayStream(w, r) {
		return
	}
	from, err := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	if q.Get("resourceVersion") != "" && err != nil {
		s.refuse(w, r, http.StatusBadRequest, "BadRequest", "invalid resourceVersion")
		return
	}
	s.mu.Lock()
	current, compacted := s.store.version, s.store.compacted
	wt := &watcher{s: s, w: w, r: r, match: match, codec: s.codec(r), version: from,
		bookmarks: q.Get("allowWatchBookmarks") == "true" || q.Get("allowWatchBookmarks") == "1",
		signals:   len(s.signals)}
	var first []event
	if stream {
		s.stats.Lists++
		s.stats.ListFrom = append(s.stats.ListFrom, q.Get("resourceVersion"))
	}
	if from == 0 || stream {
		for _, one := range s.store.list(match) {
			first = append(first, event{"ADDED", one.version, one.json})
		}
		wt.version = current
	}
	s.mu.Unlock()
	if from > current {
		s.tooLarge(w, r, from, current)
		return
	}
	if stream {
		from = current
		wt.end = true
	}
	if from != 0 && from < compacted && s.opts.GoneAsStatus {
		s.refuse(w, r, http.StatusGone, "Expired", goneMessage)
		return
	}
	w.Header().Set("Content-Type", wt.codec.streamType())
	w.WriteHeader(http.StatusOK)
	if from != 0 && from < compacted {
		text, _ := json.Marshal(statusObject(http.StatusGone, "Expired", goneMessage))
		_, _ = w.Write(event{"ERROR", 0, text}.bytes(wt.codec))
		return
	}
	wt.run(first, watchTime(q.Get("timeoutSeconds")))
}

func watchTime(text string) time.Duration {
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds <= 0 {
		return defaultWatch
	}
	return time.Duration(seconds) * time.Second
}

func (wt *watcher) run(first []event, limit time.Duration) {
	wt.s.count(+1)
	defer wt.s.count(-1)
	version := wt.version
	wt.send(first)
	wt.version = version
	wt.sendEnd()
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		wt.w.(http.Flusher).Flush()
		events, signals, version, changed := wt.next()
		wt.send(events)
		for _, sig := range signals {
			if wt.obey(sig, version) {
				return
			}
		}
		if len(events)+len(signals) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-over.C:
			return
		case <-wt.r.Context().Done():
			return
		}
	}
}

// mayStream answers a request for a streamed list that is refused.
func (s *Server) mayStream(w http.ResponseWriter, r *http.Request) bool {
	if s.ListFaults.Apply(w, r) {
		s.mu.Lock()
		s.stats.Refused++
		s.mu.Unlock()
		return false
	}
	q := r.URL.Query()
	switch {
	case s.opts.NoStreams != 0:
		s.refuse(w, r, s.opts.NoStreams, "Invalid",
			"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	case q.Get("resourceVersionMatch") != "NotOlderThan" || q.Get("allowWatchBookmarks") != "true":
		s.refuse(w, r, http.StatusUnprocessableEntity, "Invalid",
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan and allowing bookmarks")
	default:
		return true
	}
	return false
}

// StallStreams lets lists that are streamed from now on never come to their end.
func (s *Server) StallStreams(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = on
}

// sendEnd says that a streamed list is complete.
func (wt *watcher) sendEnd() {
	wt.s.mu.Lock()
	stall := wt.s.stall
	if wt.end && !stall {
		wt.s.stats.Streams++
	}
	wt.s.mu.Unlock()
	if !wt.end || stall {
		return
	}
	text, _ := json.Marshal(object{"kind": kindAt(wt.r.URL.Path), "apiVersion": "v1",
		"metadata": object{"resourceVersion": fmt.Sprint(wt.version), "creationTimestamp": nil,
			"annotations": object{"k8s.io/initial-events-end": "true"}}})
	_, _ = wt.w.Write(event{"BOOKMARK", wt.version, text}.bytes(wt.codec))
}

func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.OpenWatches += n
}

// next returns the events to send, the version that they lead to, and a channel that announces more.
func (wt *watcher) next() ([]event, []signal, uint64, chan struct{}) {
	s := wt.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blackHole {
		return nil, nil, 0, s.store.changed
	}
	signals := s.signals[wt.signals:]
	wt.signals = len(s.signals)
	return s.store.since(wt.version, wt.match), signals, s.store.version, s.store.changed
}

func (wt *watcher) send(events []event) {
	for _, e := range events {
		line := e.bytes(wt.codec)
		if wt.takeCut() {
			_, _ = wt.w.Write(line[:len(line)/2])
			wt.w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = wt.w.Write(line)
		wt.version = e.version
	}
}

func (wt *watcher) takeCut() bool {
	wt.s.mu.Lock()
	defer wt.s.mu.Unlock()
	cut := wt.s.cutNext
	wt.s.cutNext = false
	return cut
}

// obey does what a test wants; true ends the watch.
func (wt *watcher) obey(sig signal, version uint64) bool {
	if sig.bookmark && wt.bookmarks {
		wt.bookmark(version)
	}
	if sig.event != nil {
		_, _ = wt.w.Write(sig.event.bytes(wt.codec))
	}
	if sig.abort {
		wt.w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return sig.end
}

func (wt *watcher) bookmark(version uint64) {
	wt.s.mu.Lock()
	wt.s.stats.Bookmarks++
	wt.s.mu.Unlock()
	text, _ := json.Marshal(object{"kind": kindAt(wt.r.URL.Path), "apiVersion": "v1",
		"metadata": object{"resourceVersion": fmt.Sprint(version), "creationTimestamp": nil},
		"spec":     object{"containers": nil}, "status": object{}})
	_, _ = wt.w.Write(event{"BOOKMARK", version, text}.bytes(wt.codec))
	wt.version = version
}
