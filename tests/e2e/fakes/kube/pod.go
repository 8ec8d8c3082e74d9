package kube

import (
	"fmt"
	"strings"
	"time"
)

// Pod is what a test says of a pod; everything else of the object is filled in as a cluster would.
type Pod struct {
	Namespace, Name string // Namespace "" = "default"
	UID             string // "" = made of the name
	IP              string
	Node            string // "" = "node-1"
	Phase           string // "" = "Running"
	Labels          map[string]string
	Annotations     map[string]string
	Containers      []Container
	InitContainers  []Container
	NotReady        bool
	HostNetwork     bool
	Controller      string // name of the owning ReplicaSet
	// Waiting is the reason why the pod is not scheduled ("Unschedulable"), and a message.
	Waiting [2]string
	// For an object that is not a pod: its resource ("services") and the object itself.
	Resource string
	Raw      object
}

// Container of a pod.
type Container struct {
	Name, Image   string
	Ports         []Port
	RestartPolicy string // "Always" makes a sidecar of an init container
}

// Port of a container.
type Port struct {
	Name     string
	Number   int
	Protocol string // "" = TCP
}

func (p *Pod) key() string {
	if p.Resource != "" {
		return p.Resource + "/" + p.Namespace + "/" + p.Name
	}
	return p.Namespace + "/" + p.Name
}

func (p *Pod) complete() {
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	if p.Resource != "" {
		return
	}
	set(&p.Namespace, "default")
	set(&p.UID, "uid-"+p.Namespace+"-"+p.Name)
	set(&p.Node, "node-1")
	set(&p.Phase, "Running")
}

type object = map[string]any

// object is the pod as the API server writes it.
func (p *Pod) object(version uint64) object {
	if p.Resource != "" {
		meta := object{}
		for k, v := range p.Raw["metadata"].(object) {
			meta[k] = v
		}
		meta["resourceVersion"] = fmt.Sprint(version)
		all := object{}
		for k, v := range p.Raw {
			all[k] = v
		}
		all["metadata"] = meta
		return all
	}
	meta := object{
		"name": p.Name, "namespace": p.Namespace, "uid": p.UID,
		"resourceVersion":   fmt.Sprint(version),
		"creationTimestamp": "2026-01-01T00:00:00Z",
		// Present in every real object, and most of its bytes.
		"managedFields": []any{object{
			"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"time": "2026-01-01T00:00:00Z", "subresource": "status",
			"fieldsV1": object{"f:status": object{"f:conditions": object{
				`k:{"type":"Ready"}`: object{".": object{}, "f:status": object{}},
			}, "f:podIP": object{}}},
		}},
	}
	if p.Labels != nil {
		meta["labels"] = p.Labels
	}
	if p.Annotations != nil {
		meta["annotations"] = p.Annotations
	}
	if p.Controller != "" {
		meta["ownerReferences"] = []any{object{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": p.Controller, "controller": true,
			"uid": "uid-" + p.Controller, "blockOwnerDeletion": true,
		}}
	}
	spec := object{"nodeName": p.Node, "containers": containers(p.Containers)}
	if len(p.InitContainers) > 0 {
		spec["initContainers"] = containers(p.InitContainers)
	}
	if p.HostNetwork {
		spec["hostNetwork"] = true
	}
	return object{"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": p.status()}
}

func (p *Pod) status() object {
	ready := "True"
	if p.NotReady {
		ready = "False"
	}
	status := object{
		"phase": p.Phase, "hostIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z",
		"conditions": []any{
			object{"type": "Initialized", "status": "True"},
			object{"type": "Ready", "status": ready},
		},
		"containerStatuses": statuses(p.Containers),
	}
	if p.Waiting[0] != "" {
		status["conditions"] = []any{object{"type": "PodScheduled", "status": "False", "reason": p.Waiting[0], "message": p.Waiting[1]}}
		delete(status, "containerStatuses")
	}
	if p.IP != "" {
		status["podIP"] = p.IP
		status["podIPs"] = []any{object{"ip": p.IP}}
	}
	return status
}

func containers(all []Container) []any {
	out := []any{}
	for _, c := range all {
		one := object{"name": c.Name, "image": c.Image, "resources": object{},
			"env": []any{object{"name": "A", "value": `{"nested": "json \u00e9 \n"}`}}}
		if c.RestartPolicy != "" {
			one["restartPolicy"] = c.RestartPolicy
		}
		var ports []any
		for _, p := range c.Ports {
			port := object{"containerPort": p.Number, "protocol": "TCP"}
			if p.Protocol != "" {
				port["protocol"] = p.Protocol
			}
			if p.Name != "" {
				port["name"] = p.Name
			}
			ports = append(ports, port)
		}
		if ports != nil {
			one["ports"] = ports
		}
		out = append(out, one)
	}
	return out
}

func statuses(all []Container) []any {
	out := []any{}
	for _, c := range all {
		out = append(out, object{"name": c.Name, "ready": true, "restartCount": 0, "image": c.Image,
			"containerID": "containerd://" + c.Name, "state": object{"running": object{}}})
	}
	return out
}

// Annotated is a pod in the usual way: one container with one port, annotated for the types named
// ("cpu", "memory", ...) on the port of address.
func Annotated(name, address string, types ...string) Pod {
	ip, portText := address, "80"
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		ip, portText = address[:i], address[i+1:]
	}
	port := 0
	_, _ = fmt.Sscan(portText, &port)
	p := Pod{
		Name: name, IP: ip, Labels: map[string]string{"app": name},
		Annotations: map[string]string{},
		Containers:  []Container{{Name: "main", Image: "shop/" + name + ":1", Ports: []Port{{"http", port, ""}}}},
	}
	for _, t := range types {
		p.Annotations["profiles.grafana.com/"+t+".scrape"] = "true"
		p.Annotations["profiles.grafana.com/"+t+".port"] = portText
	}
	return p
}

func statusObject(code int, reason, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure",
		"message": message, "reason": reason, "code": code}
}

// defaultWatch is how long a watch without timeoutSeconds lives.
const defaultWatch = 10 * time.Minute
