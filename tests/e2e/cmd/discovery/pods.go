package main

import (
	"bytes"
	"fmt"
	"strings"

	"profpull.test/e2e/fakes/kube"
)

// A pod as a Deployment's looks in a cluster of today: two containers, most of the bytes in
// managedFields, env, volumes and probes. @WORDS@ are filled in.
const podTemplate = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"@NAME@","generateName":"@APP@-7d9c5b6f4-","namespace":"@NAMESPACE@","uid":"@UID@","resourceVersion":"@VERSION@","creationTimestamp":"2024-05-02T09:11:45Z","labels":{"app.kubernetes.io/component":"backend","app.kubernetes.io/instance":"@APP@","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"@APP@","app.kubernetes.io/version":"2.14.3","helm.sh/chart":"service-1.8.0","pod-template-hash":"7d9c5b6f4","team":"payments"},"annotations":{"checksum/config":"4f0bd3c1f9ab0f39fe0e3ad5c0c1c3e3ab7a2a5a2c8d6f55ad5f8e4b3e6a7c10","cni.projectcalico.org/containerID":"@HEX@","cni.projectcalico.org/podIP":"@IP@/32","kubectl.kubernetes.io/restartedAt":"2024-05-02T09:11:44Z"@ANNOTATIONS@},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"@APP@-7d9c5b6f4","uid":"5f0c8bb0-22f4-4d77-9f1e-8d0a0e8f7c11","controller":true,"blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2024-05-02T09:11:45Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:kubectl.kubernetes.io/restartedAt":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/component":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/version":{},"f:helm.sh/chart":{},"f:pod-template-hash":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"5f0c8bb0-22f4-4d77-9f1e-8d0a0e8f7c11\"}":{}}},"f:spec":{"f:affinity":{".":{},"f:podAntiAffinity":{".":{},"f:preferredDuringSchedulingIgnoredDuringExecution":{}}},"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},@ENVFIELDS@"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":6060,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/config\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}},{"manager":"calico","operation":"Update","apiVersion":"v1","time":"2024-05-02T09:11:47Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:cni.projectcalico.org/containerID":{},"f:cni.projectcalico.org/podIP":{}}}},"subresource":"status"},{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"@TIME@","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"@IP@\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]},"spec":{"volumes":[{"name":"config","configMap":{"name":"@APP@","defaultMode":420}},{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"app","image":"registry.example.com/shop/@APP@:2.14.3","args":["serve","--config=/etc/config/service.yaml","--log.level=info"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"pprof","containerPort":@PORT@,"protocol":"TCP"}],"env":[@ENV@{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/config"},{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/live","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/ready","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}},{"name":"proxy","image":"registry.example.com/mesh/proxy:1.21.0","ports":[{"name":"admin","containerPort":15000,"protocol":"TCP"}],"resources":{},"volumeMounts":[{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"@APP@","serviceAccount":"@APP@","nodeName":"@NODE@","securityContext":{"runAsUser":65532,"runAsNonRoot":true,"fsGroup":65532},"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app.kubernetes.io/name":"@APP@"}},"topologyKey":"kubernetes.io/hostname"}}]}},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2024-05-02T09:11:45Z"},{"type":"Ready","status":"True","lastProbeTime":"@TIME@","lastTransitionTime":"2024-05-02T09:11:58Z"},{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2024-05-02T09:11:58Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2024-05-02T09:11:45Z"}],"hostIP":"10.1.0.7","hostIPs":[{"ip":"10.1.0.7"}],"podIP":"@IP@","podIPs":[{"ip":"@IP@"}],"startTime":"2024-05-02T09:11:45Z","containerStatuses":[{"name":"app","state":{"running":{"startedAt":"2024-05-02T09:11:50Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/shop/@APP@:2.14.3","imageID":"registry.example.com/shop/@APP@@sha256:@HEX@","containerID":"containerd://@HEX@","started":true},{"name":"proxy","state":{"running":{"startedAt":"2024-05-02T09:11:51Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/mesh/proxy:1.21.0","imageID":"registry.example.com/mesh/proxy@sha256:@HEX@","containerID":"containerd://b@HEX@","started":true}],"qosClass":"Burstable"}}`

// The annotations that the benchmark's rules require.
const wanted = `,"profiles.grafana.com/memory.port":"@PORT@","profiles.grafana.com/memory.scrape":"true"`

const envName = "SERVICE_SETTING_%02d"

// pod is everything that differs between two of them.
type pod struct {
	i       int
	kept    bool
	text    []byte // as in a list; @VERSION@ and @TIME@ stand for what a heartbeat changes
	binary  []byte // the same in protobuf, where only @VERSION@ is left
	version int
}

// makePods returns n pods of about size bytes each.
func makePods(n, size int, kept bool, port int) []*pod {
	template := sizedTemplate(size)
	pods := make([]*pod, n)
	for i := range pods {
		pods[i] = makePod(template, i, kept, port)
	}
	return pods
}

// sizedTemplate adds environment variables until a pod has the size.
func sizedTemplate(size int) string {
	var env, fields strings.Builder
	for i := 0; ; i++ {
		t := strings.NewReplacer("@ENV@", env.String(), "@ENVFIELDS@", fields.String()).Replace(podTemplate)
		if len(makePod(t, 0, true, 10000).text) >= size {
			return t
		}
		name := fmt.Sprintf(envName, i)
		fmt.Fprintf(&env, `{"name":"%s","value":"https://dependency-%d.shop.svc.cluster.local:8443/api"},`, name, i)
		fmt.Fprintf(&fields, `"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:value":{}},`, name)
	}
}

func makePod(template string, i int, kept bool, port int) *pod {
	annotations := ""
	if kept {
		annotations = strings.ReplaceAll(wanted, "@PORT@", fmt.Sprint(port))
	}
	app := fmt.Sprintf("service-%03d", i/20)
	r := strings.NewReplacer(
		"@NAME@", fmt.Sprintf("%s-7d9c5b6f4-x%04d", app, i), "@APP@", app, "@NAMESPACE@", fmt.Sprintf("team-%02d", i%50),
		"@UID@", fmt.Sprintf("0b1d6f7c-94c1-4a58-b3c5-%012x", i), "@HEX@", fmt.Sprintf("%064x", i+1), "@IP@", podIP(i),
		"@PORT@", fmt.Sprint(port), "@NODE@", fmt.Sprintf("node-%03d.example.internal", i%200), "@ANNOTATIONS@", annotations)
	text := []byte(r.Replace(template))
	return &pod{i: i, kept: kept, text: text, version: 1000 + i}
}

// podIP is an address that our one listener for all targets answers on.
func podIP(i int) string { return fmt.Sprintf("127.%d.%d.%d", 230+i/62500, i/250%250, i%250+1) }

// encoded is the pod in JSON or protobuf. Versions have as many digits as their placeholder has bytes,
// so that they can be replaced within a message.
func (p *pod) encoded(protobuf bool, version int, time string) []byte {
	text := p.text
	if protobuf {
		if p.binary == nil {
			p.binary = kube.ItemProtobuf(bytes.ReplaceAll(p.text, []byte("@TIME@"), []byte(longAgo)), "Pod")
		}
		text = p.binary
	}
	text = bytes.ReplaceAll(text, []byte("@VERSION@"), []byte(fmt.Sprintf("%09d", version)))
	return bytes.ReplaceAll(text, []byte("@TIME@"), []byte(time))
}
