package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync"

	"profpull.test/e2e/cmd/internal/measure"
	"profpull.test/e2e/fakes/kube"
)

const longAgo = "2024-05-02T09:11:58Z"

// api is a Kubernetes API server for pods that costs little: it sends bytes that were made before.
type api struct {
	url      string
	protobuf bool // what it sends

	mu      sync.Mutex
	list    []byte
	gate    chan struct{} // a list waits for it to be closed
	waiting chan struct{} // gets one for each list that has arrived
	events  chan []byte   // to the watch; nil ends it
	bytes   int
}

func startAPI() *api {
	a := &api{protobuf: *encoding == "protobuf", waiting: make(chan struct{}, 100), events: make(chan []byte)}
	a.hold()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	measure.Check(err)
	a.url = "http://" + listener.Addr().String()
	go func() { measure.Check(http.Serve(listener, a)) }()
	return a
}

// set is what lists say from now on.
func (a *api) set(pods []*pod) {
	const metadata = `{"resourceVersion":"1000000"}`
	items := make([][]byte, len(pods))
	for i, p := range pods {
		items[i] = p.encoded(a.protobuf, p.version, longAgo)
	}
	list := kube.ListProtobuf("PodList", []byte(metadata), items)
	if !a.protobuf {
		list = append([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":`+metadata+`,"items":[`), bytes.Join(items, []byte(","))...)
		list = append(list, "]}\n"...)
	}
	a.mu.Lock()
	a.list = list
	a.mu.Unlock()
}

// hold keeps lists waiting until release.
func (a *api) hold() {
	a.mu.Lock()
	a.gate = make(chan struct{})
	a.mu.Unlock()
}

func (a *api) release() {
	a.mu.Lock()
	close(a.gate)
	a.mu.Unlock()
}

// expire ends the watch as a server does that has forgotten the version: a new list follows.
func (a *api) expire() {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"too old resource version: 1000 (2000)","reason":"Expired","code":410}`
	if a.protobuf {
		a.events <- kube.FrameProtobuf("ERROR", kube.ObjectProtobuf([]byte(status)))
	} else {
		a.events <- []byte(`{"type":"ERROR","object":` + status + "}\n")
	}
	a.events <- nil
}

func (a *api) modified(p *pod, n int) {
	time := fmt.Sprintf("2024-05-03T%02d:%02d:%02dZ", n/3600%24, n/60%60, n%60)
	object := p.encoded(a.protobuf, 1000000+n, time)
	if a.protobuf {
		a.events <- kube.FrameProtobuf("MODIFIED", kube.EnvelopeProtobuf("v1", "Pod", object))
	} else {
		a.events <- []byte(`{"type":"MODIFIED","object":` + string(object) + "}\n")
	}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType(r))
	switch {
	case r.URL.Path != "/api/v1/pods":
		http.NotFound(w, r)
	case r.FormValue("sendInitialEvents") != "":
		// A server without streaming lists answers 422.
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"sendInitialEvents: `+
			`Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",`+
			`"reason":"Invalid","code":422}`)
	case r.FormValue("watch") != "":
		a.serveWatch(w, r)
	default:
		a.serveList(w)
	}
}

func (a *api) contentType(r *http.Request) string {
	switch {
	case !a.protobuf || r.FormValue("sendInitialEvents") != "":
		return "application/json"
	case r.FormValue("watch") != "":
		return kube.MediaType + ";stream=watch"
	}
	return kube.MediaType
}

func (a *api) serveList(w http.ResponseWriter) {
	a.mu.Lock()
	gate := a.gate
	a.mu.Unlock()
	a.waiting <- struct{}{}
	<-gate
	a.mu.Lock()
	list := a.list
	a.mu.Unlock()
	_, _ = w.Write(list)
}

func (a *api) serveWatch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-a.events:
			if event == nil {
				return
			}
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}
