// Package kube is a fake Kubernetes API server that knows pods, and takes objects of other resources
// as they are: list with paging, watch with resource versions and bookmarks, selectors, bearer tokens, TLS, and the faults of a real one.
package kube

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"profpull.test/e2e/fakes/loop"
)

// Options of a server.
type Options struct {
	Addr  string // "" = an address of its own
	TLS   bool   // with a CA made for this server
	Token string // "" = anyone may ask
	// ExpirePages answers so many requests for a further page of a list with 410.
	ExpirePages int
	// NoStreams refuses lists that are streamed (sendInitialEvents) with this status: 400, 403 or 422.
	NoStreams int
	// ListMax breaks answers to list requests off that have more bytes than this, in the middle. 0: none.
	ListMax int
	// JSON is all that the server speaks; with NotAcceptable it refuses who asks for protobuf as well.
	JSON, NotAcceptable bool
	// GoneAsStatus answers a watch from a forgotten version with HTTP 410 instead of an ERROR event.
	GoneAsStatus bool
}

// Stats counts what was asked.
type Stats struct {
	Lists        int // whole lists begun (first pages and streams)
	Streams      int // of these, the streamed ones that came to their end
	Pages        int
	Watches      int // watches opened
	OpenWatches  int
	Refused      int // 4xx and 5xx, faults included
	Unauthorized int
	Bookmarks    int
	Gzipped      int      // answers to list requests
	Accepts      []string // the header of each request
	WatchFrom    []string // resourceVersion of each watch
	ListFrom     []string // resourceVersion of each list
	Queries      []string // all raw queries
	Paths        []string // and the paths that they were for
}

// Server is a running fake.
type Server struct {
	*loop.Server
	ListFaults  loop.Faults
	WatchFaults loop.Faults
	opts        Options
	ca          *authority

	mu        sync.Mutex
	store     *store
	token     string
	stats     Stats
	pages     map[string]*snapshot
	nextPage  int
	cutNext   bool
	forbidden map[string]int // "services/shop": the status of every answer
	blackHole bool
	stall     bool // streamed lists do not come to their end
	// Each watch takes what is put here since it began.
	signals []signal
	// Secrets and ConfigMaps: the paths that they are served at alone, and what is in them.
	single map[string]object
	// The addresses that the pod proxy forwards to, by "namespace/pod:port", and objects by their path.
	routes    map[string]string
	workloads map[string]object
}

// snapshot is the rest of a paged list.
type snapshot struct {
	version uint64
	rest    []*stored
}

// Start runs a server without pods.
func Start(opts Options) (*Server, error) {
	s := &Server{opts: opts, store: newStore(), token: opts.Token, pages: map[string]*snapshot{},
		forbidden: map[string]int{}, single: map[string]object{}, routes: map[string]string{}, workloads: map[string]object{}}
	var config *tls.Config
	if opts.TLS {
		var err error
		if s.ca, err = newAuthority(); err != nil {
			return nil, err
		}
		if opts.Addr == "" {
			opts.Addr = loop.Host() + ":0"
		}
		if config, err = s.ca.serverConfig(opts.Addr); err != nil {
			return nil, err
		}
	}
	var err error
	s.Server, err = loop.Start(opts.Addr, http.HandlerFunc(s.serve), config)
	return s, err
}

// Put adds a pod or replaces the one of the same name.
func (s *Server) Put(p Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.put(p)
}

// PutObject adds or replaces an object of another resource ("services"), written in JSON.
func (s *Server) PutObject(resource, text string) error {
	var raw object
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return err
	}
	meta, _ := raw["metadata"].(object)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	labels := map[string]string{}
	if given, ok := meta["labels"].(object); ok {
		for k, v := range given {
			labels[k], _ = v.(string)
		}
	}
	s.Put(Pod{Resource: resource, Raw: raw, Name: name, Namespace: namespace, Labels: labels})
	return nil
}

// Delete removes a pod ("namespace/name") or another object ("services/namespace/name").
func (s *Server) Delete(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.remove(key)
}

// Advance raises the resource version by n, as changes to other objects do.
func (s *Server) Advance(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.version += uint64(n)
}

// Compact forgets all history: watches from an older version get 410, and so is every open
// paged list.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.compact()
	s.pages = map[string]*snapshot{}
}

// Forbid answers every request for a resource in a namespace with a status (403, 404); 0 ends that.
func (s *Server) Forbid(resource, namespace string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[resource+"/"+namespace] = status
}

// SetToken changes the token that is accepted from now on.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Stats returns a copy of the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.stats
	c.WatchFrom = append([]string(nil), c.WatchFrom...)
	c.ListFrom = append([]string(nil), c.ListFrom...)
	c.Queries = append([]string(nil), c.Queries...)
	c.Paths = append([]string(nil), c.Paths...)
	c.Accepts = append([]string(nil), c.Accepts...)
	return c
}

// WriteKubeconfig writes a file that leads to this server, with token and CA inline.
func (s *Server) WriteKubeconfig(path string) error {
	s.mu.Lock()
	token := s.token
	s.mu.Unlock()
	cluster := object{"server": s.URL()}
	if s.ca != nil {
		cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(s.ca.pem)
	}
	user := object{}
	if token != "" {
		user["token"] = token
	}
	text, err := json.MarshalIndent(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{object{"name": "fake", "cluster": cluster}},
		"users":    []any{object{"name": "tester", "user": user}},
		"contexts": []any{object{"name": "test", "context": object{"cluster": "fake", "user": "tester"}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		s.refuse(w, r, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	if s.serveSingle(w, r) || s.serveProxy(w, r) || s.serveWorkload(w, r) {
		return
	}
	resource, namespace, ok := resourcePath(r.URL.Path)
	if !ok {
		s.refuse(w, r, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	if r.Method != http.MethodGet {
		s.refuse(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "only GET is part of this fake")
		return
	}
	q := r.URL.Query()
	match, err := parseSelectors(resource, namespace, q.Get("labelSelector"), q.Get("fieldSelector"))
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	s.mu.Lock()
	s.stats.Queries = append(s.stats.Queries, r.URL.RawQuery)
	s.stats.Paths = append(s.stats.Paths, r.URL.Path)
	s.stats.Accepts = append(s.stats.Accepts, r.Header.Get("Accept"))
	plural := plural(resource)
	forbidden := s.forbidden[plural+"/"+namespace]
	s.mu.Unlock()
	if forbidden != 0 {
		s.refuse(w, r, forbidden, "Forbidden", plural+" is forbidden: User \"profpull\" cannot list resource in the namespace \""+namespace+"\"")
		return
	}
	if s.opts.NotAcceptable && strings.Contains(r.Header.Get("Accept"), MediaType) {
		s.refuse(w, r, http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: application/json")
		return
	}
	if watch := q.Get("watch"); watch == "1" || watch == "true" {
		s.watch(w, r, match)
		return
	}
	s.list(w, r, match)
}

func (s *Server) authorized(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || r.Header.Get("Authorization") == "Bearer "+s.token {
		return true
	}
	s.stats.Unauthorized++
	return false
}

// resources that are served besides pods, and where.
var resources = map[string]string{
	"pods": "/api/v1", "nodes": "/api/v1", "namespaces": "/api/v1", "services": "/api/v1",
	"endpoints": "/api/v1", "endpointslices": "/apis/discovery.k8s.io/v1",
	"ingresses": "/apis/networking.k8s.io/v1",
}

func plural(resource string) string {
	if resource == "" {
		return "pods"
	}
	return resource
}

// kindAt is the kind of the objects of the resource at a path.
func kindAt(path string) string {
	resource, _, _ := resourcePath(path)
	kinds := map[string]string{"nodes": "Node", "namespaces": "Namespace", "services": "Service",
		"endpoints": "Endpoints", "endpointslices": "EndpointSlice", "ingresses": "Ingress"}
	if kind, ok := kinds[resource]; ok {
		return kind
	}
	return "Pod"
}

// resourcePath takes a path apart; pods are "".
func resourcePath(path string) (resource, namespace string, ok bool) {
	resource = path[strings.LastIndexByte(path, '/')+1:]
	api, ok := resources[resource]
	if !ok {
		return "", "", false
	}
	rest := strings.TrimSuffix(strings.TrimPrefix(path, api+"/"), resource)
	if rest != "" {
		namespace = strings.TrimSuffix(strings.TrimPrefix(rest, "namespaces/"), "/")
		if rest != "namespaces/"+namespace+"/" || namespace == "" || strings.Contains(namespace, "/") {
			return "", "", false
		}
	}
	if resource == "pods" {
		resource = ""
	}
	return resource, namespace, true
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, reason, message string) {
	s.mu.Lock()
	s.stats.Refused++
	s.mu.Unlock()
	text, _ := json.Marshal(statusObject(code, reason, message))
	s.codec(r).write(w, code, text)
}

// tooLarge answers for a version that this server has not reached yet.
func (s *Server) tooLarge(w http.ResponseWriter, r *http.Request, version, current uint64) {
	status := statusObject(http.StatusGatewayTimeout, "Timeout",
		fmt.Sprintf("Too large resource version: %d, current: %d", version, current))
	status["details"] = object{"causes": []any{object{"reason": "ResourceVersionTooLarge",
		"message": "Too large resource version"}}, "retryAfterSeconds": 1}
	s.mu.Lock()
	s.stats.Refused++
	s.mu.Unlock()
	text, _ := json.Marshal(status)
	s.codec(r).write(w, http.StatusGatewayTimeout, text)
}

const goneMessage = "The resourceVersion for the provided watch is too old."

func (s *Server) list(w http.ResponseWriter, r *http.Request, match matcher) {
	if s.ListFaults.Apply(w, r) {
		s.mu.Lock()
		s.stats.Refused++
		s.mu.Unlock()
		return
	}
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	version := q.Get("resourceVersion")
	wanted, err := strconv.ParseUint(version, 10, 64)
	if version != "" && err != nil {
		s.refuse(w, r, http.StatusBadRequest, "BadRequest", "invalid resourceVersion: "+version)
		return
	}

	s.mu.Lock()
	s.stats.Pages++
	current := s.store.version
	page := &snapshot{version: current}
	if token := q.Get("continue"); token != "" {
		found := s.pages[token]
		if s.opts.ExpirePages > 0 {
			s.opts.ExpirePages--
			found = nil
		}
		if found == nil {
			s.mu.Unlock()
			s.refuse(w, r, http.StatusGone, "Expired", "The provided continue parameter is too old")
			return
		}
		*page = *found
	} else {
		s.stats.Lists++
		s.stats.ListFrom = append(s.stats.ListFrom, version)
		page.rest = s.store.list(match)
		if version != "" && q.Get("resourceVersionMatch") != "NotOlderThan" {
			limit = 0 // served from the watch cache, which does not page
		}
	}
	if wanted > current {
		s.mu.Unlock()
		s.tooLarge(w, r, wanted, current)
		return
	}
	codec := s.codec(r)
	body := s.takePage(page, limit, kindAt(r.URL.Path), codec)
	s.mu.Unlock()
	w.Header().Set("Content-Type", codec.contentType())
	if s.opts.ListMax > 0 && len(body) > s.opts.ListMax {
		_, _ = w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	if len(body) < gzipMin || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return
	}
	s.mu.Lock()
	s.stats.Gzipped++
	s.mu.Unlock()
	w.Header().Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(w)
	_, _ = zip.Write(body)
	_ = zip.Close()
}

// gzipMin is the size from which on Kubernetes compresses an answer.
const gzipMin = 128 << 10

// takePage writes up to limit items and remembers the rest under a new token.
func (s *Server) takePage(page *snapshot, limit int, kind string, codec codec) []byte {
	items := page.rest
	meta := object{"resourceVersion": fmt.Sprint(page.version)}
	if limit > 0 && len(items) > limit {
		s.nextPage++
		token := fmt.Sprintf("page-%d", s.nextPage)
		s.pages[token] = &snapshot{version: page.version, rest: items[limit:]}
		meta["continue"] = token
		meta["remainingItemCount"] = len(items) - limit
		items = items[:limit]
	}
	raw := make([]json.RawMessage, 0, len(items))
	for _, one := range items {
		raw = append(raw, codec.reduce(one.json))
	}
	if codec.partial {
		kind = "PartialObjectMetadata"
	}
	body, _ := json.Marshal(object{"kind": kind + "List", "apiVersion": "v1", "metadata": meta, "items": raw})
	if codec.protobuf {
		return answerProtobuf(body)
	}
	return append(body, '\n')
}

// WaitWatches waits until n watches are open.
func (s *Server) WaitWatches(ctx context.Context, n int) error {
	for s.Stats().OpenWatches != n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d watches are open, expected %d", s.Stats().OpenWatches, n)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
