package kube

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// PutSecret adds or replaces a Secret, which can only be read by its name.
func (s *Server) PutSecret(namespace, name string, values map[string]string) {
	data := object{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	s.putSingle("Secret", "secrets", namespace, name, data)
}

// PutConfigMap adds or replaces a ConfigMap, which can only be read by its name.
func (s *Server) PutConfigMap(namespace, name string, values map[string]string) {
	data := object{}
	for key, value := range values {
		data[key] = value
	}
	s.putSingle("ConfigMap", "configmaps", namespace, name, data)
}

func (s *Server) putSingle(kind, resource, namespace, name string, data object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.single["/api/v1/namespaces/"+namespace+"/"+resource+"/"+name] = object{"kind": kind, "apiVersion": "v1",
		"metadata": object{"name": name, "namespace": namespace}, "data": data}
}

// serveSingle answers for a Secret or a ConfigMap; Forbid("secrets", NAMESPACE, STATUS) refuses those of a namespace.
func (s *Server) serveSingle(w http.ResponseWriter, r *http.Request) bool {
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
	if len(part) != 3 || (part[1] != "secrets" && part[1] != "configmaps") {
		return false
	}
	namespace, resource, name := part[0], part[1], part[2]
	s.mu.Lock()
	s.stats.Paths = append(s.stats.Paths, r.URL.Path)
	forbidden := s.forbidden[resource+"/"+namespace]
	found, ok := s.single[r.URL.Path]
	s.mu.Unlock()
	switch {
	case forbidden != 0:
		s.refuse(w, r, forbidden, "Forbidden", resource+" \""+name+"\" is forbidden: User \"profpull\" cannot get resource \""+
			resource+"\" in API group \"\" in the namespace \""+namespace+"\"")
	case !ok:
		s.refuse(w, r, http.StatusNotFound, "NotFound", resource+" \""+name+"\" not found")
	default:
		writeJSON(w, found)
	}
	return true
}

func writeJSON(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}
