package kube

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"

	"profpull.test/e2e/fakes/pprof"
)

// MediaType of objects in Kubernetes' protobuf.
const MediaType = "application/vnd.kubernetes.protobuf"

// sort of a field.
type sortOf int

const (
	text     sortOf = iota // string
	number                 // integer or boolean
	message                // object
	array                  // array of objects, or of strings if there are no fields
	pairs                  // map of strings
	around                 // message whose members are those of the object around it in JSON
	moment                 // metav1.Time: seconds, of which only the place matters
	quantity               // resource.Quantity, or another message with one string
	opaque                 // JSON as it is, as bytes
	either                 // intstr.IntOrString
	amounts                // map of quantities
)

type field struct {
	number int
	sort   sortOf
	fields fields
}

// fields of a message by their name in JSON: numbers as in the files generated.proto of k8s.io/api and
// k8s.io/apimachinery.
type fields map[string]field

var (
	managedFields = fields{"manager": {1, text, nil}, "operation": {2, text, nil}, "apiVersion": {3, text, nil},
		"time": {4, moment, nil}, "fieldsType": {6, text, nil}, "fieldsV1": {7, opaque, nil}, "subresource": {8, text, nil}}
	owner = fields{"kind": {1, text, nil}, "name": {3, text, nil}, "uid": {4, text, nil}, "apiVersion": {5, text, nil},
		"controller": {6, number, nil}, "blockOwnerDeletion": {7, number, nil}}
	objectMeta = fields{"name": {1, text, nil}, "generateName": {2, text, nil}, "namespace": {3, text, nil},
		"uid": {5, text, nil}, "resourceVersion": {6, text, nil}, "creationTimestamp": {8, moment, nil},
		"labels": {11, pairs, nil}, "annotations": {12, pairs, nil}, "ownerReferences": {13, array, owner},
		"managedFields": {17, array, managedFields}}
	condition = fields{"type": {1, text, nil}, "status": {2, text, nil}, "lastProbeTime": {3, moment, nil},
		"lastTransitionTime": {4, moment, nil}, "reason": {5, text, nil}, "message": {6, text, nil}}
	fieldRef  = fields{"apiVersion": {1, text, nil}, "fieldPath": {2, text, nil}}
	container = fields{"name": {1, text, nil}, "image": {2, text, nil}, "args": {4, array, nil},
		"ports": {6, array, fields{"name": {1, text, nil}, "containerPort": {3, number, nil}, "protocol": {4, text, nil}}},
		"env": {7, array, fields{"name": {1, text, nil}, "value": {2, text, nil},
			"valueFrom": {3, message, fields{"fieldRef": {1, message, fieldRef}}}}},
		"resources":     {8, message, fields{"limits": {1, amounts, nil}, "requests": {2, amounts, nil}}},
		"volumeMounts":  {9, array, fields{"name": {1, text, nil}, "readOnly": {2, number, nil}, "mountPath": {3, text, nil}}},
		"livenessProbe": {10, message, probe}, "readinessProbe": {11, message, probe},
		"terminationMessagePath": {13, text, nil}, "imagePullPolicy": {14, text, nil},
		"securityContext": {15, message, fields{"capabilities": {1, message, fields{"drop": {2, array, nil}}},
			"readOnlyRootFilesystem": {6, number, nil}, "allowPrivilegeEscalation": {7, number, nil}}},
		"terminationMessagePolicy": {20, text, nil}, "restartPolicy": {24, text, nil}}
	probe = fields{"httpGet": {1, around, fields{"httpGet": {2, message, fields{"path": {1, text, nil},
		"port": {2, either, nil}, "scheme": {4, text, nil}}}}}, "timeoutSeconds": {3, number, nil},
		"periodSeconds": {4, number, nil}, "successThreshold": {5, number, nil}, "failureThreshold": {6, number, nil}}
	state           = fields{"running": {2, message, fields{"startedAt": {1, moment, nil}}}}
	containerStatus = fields{"name": {1, text, nil}, "state": {2, message, state}, "lastState": {3, message, state},
		"ready": {4, number, nil}, "restartCount": {5, number, nil}, "image": {6, text, nil}, "imageID": {7, text, nil},
		"containerID": {8, text, nil}, "started": {9, number, nil}}
	pod = fields{"metadata": {1, message, objectMeta},
		"spec": {2, message, fields{"containers": {2, array, container}, "restartPolicy": {3, text, nil},
			"terminationGracePeriodSeconds": {4, number, nil}, "dnsPolicy": {6, text, nil},
			"serviceAccountName": {8, text, nil}, "serviceAccount": {9, text, nil}, "nodeName": {10, text, nil},
			"hostNetwork": {11, number, nil}, "schedulerName": {19, text, nil}, "initContainers": {20, array, container},
			"tolerations": {22, array, fields{"key": {1, text, nil}, "operator": {2, text, nil}, "effect": {4, text, nil},
				"tolerationSeconds": {5, number, nil}}},
			"priority": {25, number, nil}, "enableServiceLinks": {30, number, nil}, "preemptionPolicy": {31, text, nil},
			"volumes": {1, array, fields{"name": {1, text, nil}}}}},
		"status": {3, message, fields{"phase": {1, text, nil}, "conditions": {2, array, condition}, "hostIP": {5, text, nil},
			"podIP": {6, text, nil}, "startTime": {7, moment, nil}, "containerStatuses": {8, array, containerStatus},
			"qosClass": {9, text, nil}, "initContainerStatuses": {10, array, containerStatus},
			"podIPs": {12, array, fields{"ip": {1, text, nil}}}}}}
	service = fields{"metadata": {1, message, objectMeta},
		"spec": {2, message, fields{"ports": {1, array, fields{"name": {1, text, nil}, "protocol": {2, text, nil}, "port": {3, number, nil}}},
			"selector": {2, pairs, nil}, "clusterIP": {3, text, nil}, "type": {4, text, nil}, "loadBalancerIP": {8, text, nil},
			"externalName": {10, text, nil}, "ipFamilyPolicy": {17, text, nil}, "ipFamilies": {19, array, nil}}},
		"status": {3, message, fields{"loadBalancer": {1, message, fields{"ingress": {1, array, fields{"ip": {1, text, nil}, "hostname": {2, text, nil}}}}}}}}
	reference = fields{"kind": {1, text, nil}, "namespace": {2, text, nil}, "name": {3, text, nil}, "uid": {4, text, nil}}
	address   = fields{"ip": {1, text, nil}, "targetRef": {2, message, reference}, "hostname": {3, text, nil}, "nodeName": {4, text, nil}}
	endpoints = fields{"metadata": {1, message, objectMeta},
		"subsets": {2, array, fields{"addresses": {1, array, address}, "notReadyAddresses": {2, array, address},
			"ports": {3, array, fields{"name": {1, text, nil}, "port": {2, number, nil}, "protocol": {3, text, nil}}}}}}
	slice = fields{"metadata": {1, message, objectMeta}, "addressType": {4, text, nil},
		"endpoints": {2, array, fields{"addresses": {1, array, nil},
			"conditions": {2, message, fields{"ready": {1, number, nil}, "serving": {2, number, nil}, "terminating": {3, number, nil}}},
			"hostname":   {3, text, nil}, "targetRef": {4, message, reference}, "deprecatedTopology": {5, pairs, nil},
			"nodeName": {6, text, nil}, "zone": {7, text, nil}}},
		"ports": {3, array, fields{"name": {1, text, nil}, "protocol": {2, text, nil}, "port": {3, number, nil}, "appProtocol": {4, text, nil}}}}
	node = fields{"metadata": {1, message, objectMeta},
		"spec": {2, message, fields{"providerID": {3, text, nil}}},
		"status": {3, message, fields{"conditions": {4, array, condition},
			"addresses":       {5, array, fields{"type": {1, text, nil}, "address": {2, text, nil}}},
			"daemonEndpoints": {6, message, fields{"kubeletEndpoint": {1, message, fields{"Port": {1, number, nil}}}}}}}}
	ingress = fields{"metadata": {1, message, objectMeta},
		"spec": {2, message, fields{"tls": {2, array, fields{"hosts": {1, array, nil}, "secretName": {2, text, nil}}},
			"rules": {3, array, fields{"host": {1, text, nil}, "http": {2, around, fields{"http": {1, message,
				fields{"paths": {1, array, fields{"path": {1, text, nil}, "pathType": {3, text, nil}}}}}}}}},
			"ingressClassName": {4, text, nil}}}}
	status = fields{"metadata": {1, message, fields{}}, "status": {2, text, nil}, "message": {3, text, nil}, "reason": {4, text, nil},
		"details": {5, message, fields{"name": {1, text, nil}, "group": {2, text, nil}, "kind": {3, text, nil},
			"causes": {4, array, fields{"reason": {1, text, nil}, "message": {2, text, nil}}}, "retryAfterSeconds": {5, number, nil}}},
		"code": {6, number, nil}}
	listMeta = fields{"resourceVersion": {2, text, nil}, "continue": {3, text, nil}, "remainingItemCount": {4, number, nil}}
	onlyMeta = fields{"metadata": {1, message, objectMeta}}

	kinds = map[string]fields{"Pod": pod, "Service": service, "Endpoints": endpoints, "EndpointSlice": slice, "Node": node,
		"Ingress": ingress, "Namespace": onlyMeta, "PartialObjectMetadata": onlyMeta, "Status": status}
)

// encode writes the members of an object that the fields name, by their numbers.
func encode(f fields, o object) []byte {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	sort.Slice(names, func(i, k int) bool { return f[names[i]].number < f[names[k]].number })
	var out []byte
	for _, name := range names {
		if v, ok := o[name]; ok && v != nil {
			out = encodeField(out, f[name], v, o)
		}
	}
	return out
}

func encodeField(out []byte, f field, v any, o object) []byte {
	switch f.sort {
	case text:
		return pprof.AppendBytes(out, f.number, []byte(v.(string)))
	case number:
		return pprof.AppendInt(out, f.number, integer(v))
	case message:
		return pprof.AppendBytes(out, f.number, encode(f.fields, v.(object)))
	case around:
		return pprof.AppendBytes(out, f.number, encode(f.fields, o))
	case array:
		for _, one := range v.([]any) {
			if f.fields == nil {
				out = pprof.AppendBytes(out, f.number, []byte(one.(string)))
			} else {
				out = pprof.AppendBytes(out, f.number, encode(f.fields, one.(object)))
			}
		}
	case pairs, amounts:
		out = encodeMap(out, f, v.(object))
	case moment:
		return pprof.AppendBytes(out, f.number, pprof.AppendInt(pprof.AppendInt(nil, 1, 1714641105), 2, 0))
	case quantity, opaque:
		text, _ := json.Marshal(v)
		return pprof.AppendBytes(out, f.number, pprof.AppendBytes(nil, 1, text))
	case either:
		return pprof.AppendBytes(out, f.number, pprof.AppendBytes(pprof.AppendInt(pprof.AppendInt(nil, 1, 1), 2, 0), 3, []byte(fmt.Sprint(v))))
	}
	return out
}

func encodeMap(out []byte, f field, v object) []byte {
	keys := make([]string, 0, len(v))
	for key := range v {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		value := []byte(fmt.Sprint(v[key]))
		if f.sort == amounts {
			value = pprof.AppendBytes(nil, 1, value)
		}
		out = pprof.AppendBytes(out, f.number, pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(key)), 2, value))
	}
	return out
}

func integer(v any) uint64 {
	switch n := v.(type) {
	case bool:
		if n {
			return 1
		}
		return 0
	case float64:
		return uint64(int64(n))
	}
	panic(fmt.Sprintf("%v is no number", v))
}

// EnvelopeProtobuf is "k8s", a NUL and runtime.Unknown around a message.
func EnvelopeProtobuf(apiVersion, kind string, message []byte) []byte {
	meta := pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(apiVersion)), 2, []byte(kind))
	out := pprof.AppendBytes([]byte("k8s\x00"), 1, meta)
	return pprof.AppendBytes(pprof.AppendBytes(pprof.AppendBytes(out, 2, message), 3, nil), 4, nil)
}

func parse(text []byte) object {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		panic(err)
	}
	return o
}

func version(o object) string {
	v, _ := o["apiVersion"].(string)
	return v
}

// ItemProtobuf is one object in JSON as an item of a list in protobuf.
func ItemProtobuf(text []byte, kind string) []byte { return encode(kinds[kind], parse(text)) }

// ObjectProtobuf is one object, or a Status, on its own.
func ObjectProtobuf(text []byte) []byte {
	o := parse(text)
	kind, _ := o["kind"].(string)
	return EnvelopeProtobuf(version(o), kind, encode(kinds[kind], o))
}

// ListProtobuf is a list of the kind ("PodList") of items that are in protobuf already; metadata in JSON.
func ListProtobuf(kind string, metadata []byte, items [][]byte) []byte {
	message := pprof.AppendBytes(nil, 1, encode(listMeta, parse(metadata)))
	for _, item := range items {
		message = pprof.AppendBytes(message, 2, item)
	}
	return EnvelopeProtobuf("v1", kind, message)
}

// FrameProtobuf is an event of a watch with an object that is in protobuf already.
func FrameProtobuf(kind string, object []byte) []byte {
	e := pprof.AppendBytes(pprof.AppendBytes(nil, 1, []byte(kind)), 2, pprof.AppendBytes(nil, 1, object))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(e))), e...)
}

// answerProtobuf is what a list in JSON is in protobuf.
func answerProtobuf(body []byte) []byte {
	var l struct {
		Kind     string
		Metadata json.RawMessage
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(body, &l); err != nil {
		panic(err)
	}
	items := make([][]byte, 0, len(l.Items))
	for _, item := range l.Items {
		items = append(items, ItemProtobuf(item, strings.TrimSuffix(l.Kind, "List")))
	}
	return ListProtobuf(l.Kind, l.Metadata, items)
}

// codec is how a client wants its answers.
type codec struct {
	protobuf bool
	partial  bool // metadata alone
}

// codec of a request is its first choice, as far as this server goes along.
func (s *Server) codec(r *http.Request) codec {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return codec{protobuf: strings.HasPrefix(first, MediaType) && !s.opts.JSON,
		partial: strings.Contains(first, ";as=PartialObjectMetadata")}
}

func (c codec) contentType() string {
	if c.protobuf {
		return MediaType
	}
	return "application/json"
}

func (c codec) streamType() string {
	if c.protobuf {
		return MediaType + ";stream=watch"
	}
	return "application/json"
}

// reduce leaves of an object what the client has asked for.
func (c codec) reduce(text []byte) []byte {
	o := parse(text)
	if !c.partial || o["kind"] == "Status" {
		return text
	}
	text, _ = json.Marshal(object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]})
	return text
}

func (c codec) write(w http.ResponseWriter, code int, text []byte) {
	w.Header().Set("Content-Type", c.contentType())
	w.WriteHeader(code)
	if c.protobuf {
		text = ObjectProtobuf(text)
	}
	_, _ = w.Write(text)
}
