package kube

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
)

// proxyPath is the path of a pod's port at the API server.
var proxyPath = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/pods/((?:https:)?[^/:]+:[^/]+)/proxy(/.*)$`)

// Route lets the pod proxy reach a port ("shop/cart-1:6060") at an address.
func (s *Server) Route(port, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[port] = address
}

// PutWorkload adds an object that can be read by its path alone, such as a Deployment:
// PutWorkload("/apis/apps/v1/namespaces/shop/deployments/cart", spec).
func (s *Server) PutWorkload(path string, spec map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path[strings.LastIndexByte(path, '/')+1:]
	s.workloads[path] = object{"metadata": object{"name": name}, "spec": spec}
}

// serveProxy forwards requests to ports of pods; Forbid("pods/proxy", NAMESPACE, STATUS) refuses them.
func (s *Server) serveProxy(w http.ResponseWriter, r *http.Request) bool {
	part := proxyPath.FindStringSubmatch(r.URL.Path)
	if part == nil {
		return false
	}
	namespace, port, path := part[1], strings.TrimPrefix(part[2], "https:"), part[3]
	s.mu.Lock()
	s.stats.Paths = append(s.stats.Paths, r.URL.Path)
	s.stats.Queries = append(s.stats.Queries, r.URL.RawQuery)
	forbidden := s.forbidden["pods/proxy/"+namespace]
	address, ok := s.routes[namespace+"/"+port]
	s.mu.Unlock()
	switch {
	case forbidden != 0:
		s.refuse(w, r, forbidden, "Forbidden", "pods \""+port+"\" is forbidden: User \"jane\" cannot get resource \"pods/proxy\" in API group \"\" in the namespace \""+namespace+"\"")
	case !ok:
		s.refuse(w, r, http.StatusServiceUnavailable, "ServiceUnavailable", "error trying to reach service: dial tcp "+port+": connect: connection refused")
	default:
		proxy := httputil.ReverseProxy{Director: func(out *http.Request) {
			out.URL = &url.URL{Scheme: "http", Host: address, Path: path, RawQuery: r.URL.RawQuery}
			out.Host = address
			out.Header.Del("Authorization")
		}}
		proxy.ServeHTTP(w, r)
	}
	return true
}

// serveWorkload answers for what PutWorkload has added, for the version, and for reviews of one's own rights.
func (s *Server) serveWorkload(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/version" {
		s.codec(r).write(w, http.StatusOK, []byte(`{"major":"1","minor":"31","gitVersion":"v1.31.0"}`))
		return true
	}
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n := len(part)
	if n != 7 || part[0] != "apis" || part[3] != "namespaces" {
		return false
	}
	s.mu.Lock()
	forbidden := s.forbidden[part[n-2]+"/"+part[4]]
	found, ok := s.workloads[r.URL.Path]
	s.mu.Unlock()
	switch {
	case forbidden != 0:
		s.refuse(w, r, forbidden, "Forbidden", part[n-2]+" is forbidden")
	case !ok:
		s.refuse(w, r, http.StatusNotFound, "NotFound", part[n-2]+" \""+part[n-1]+"\" not found")
	default:
		writeJSON(w, found)
	}
	return true
}
