package e2e

import (
	"net"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/target"
)

// addressOfPods returns an address of this machine out of 192.0.2.0/24, or "": the API server refuses to reach pods on
// loopback. `unshare -n sh -c 'ip link set lo up; ip addr add 192.0.2.7/32 dev lo; ...'` gives a test one.
func addressOfPods() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && strings.HasPrefix(ip.String(), "192.0.2.") {
			return ip.String()
		}
	}
	return ""
}

// A person with a kubeconfig, or Debian's kubectl, asks a real API server: discover, explain and scrape read its answers and its
// refusals, which name the verb and the resource.
func realLaptop(t *testing.T, c *controlPlane) {
	host := addressOfPods()
	reached := host != ""
	if !reached {
		host = loop.Host()
	}
	tg, err := target.Start(target.Options{Addr: host + ":6060"})
	must(t, err)
	t.Cleanup(tg.Down)
	c.createPod("cart-1", tg.Addr(), true)
	c.createPod("quiet", loop.Host()+":8080", false)
	c.must("POST", podsPath, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"late","annotations":{"profiles.grafana.com/memory.scrape":"true",`+
		`"profiles.grafana.com/memory.port":"6060"}},"spec":{"containers":[{"name":"main","image":"shop:1"}]}}`)
	l := &laptop{t: t, dir: t.TempDir(), env: []string{"KUBECONFIG=" + c.kubeconfig(c.url())}}

	l.call(exitDone, []string{`"source":"pod/default/cart-1"`, "http://" + tg.Addr() + "/debug/pprof/allocs"}, "discover")
	l.call(exitDone, []string{`Pod default/cart-1 is scraped by job "annotated-pods"`}, "explain", "pod/default/cart-1")
	l.call(exitPeer, []string{"Pod default/quiet is not scraped", "Add profiles.grafana.com/"}, "explain", "pod/quiet")
	l.call(exitPeer, []string{"Pod default/late is not scraped: it exists and has no IP address yet, its phase is Pending"}, "explain", "pod/late")
	l.call(exitPeer, []string{"No pod that is watched has the name default/nobody"}, "explain", "pod/nobody")
	l.call(exitInput, []string{"there is no pod default/nobody"}, "scrape", "pod/nobody")
	l.call(exitInput, []string{"there is no deployment default/nothing"}, "scrape", "deploy/nothing")
	l.call(exitInput, []string{"pod default/late has no IP address yet: its phase is Pending"}, "scrape", "pod/late")
	if reached {
		l.call(exitDone, []string{"pod:       default/cart-1, through the API server", "format:    pprof"}, "scrape", "pod/cart-1", "--type", "memory")
		l.kubectl(exitDone, []string{"default/cart-1", "heap.(*Cart).step1"}, "scrape", "pod/cart-1", "--type", "memory", "--flame")
	} else {
		t.Log("no address out of 192.0.2.0/24: that the API server fetches from a pod is not tested")
		l.call(exitPeer, []string{"pod default/cart-1", "not allowed"}, "scrape", "pod/cart-1", "--type", "memory")
	}
	l.kubectl(exitDone, []string{"Pod default/cart-1 is scraped"}, "explain", "pod/default/cart-1")
	l.kubectl(exitInput, []string{"no pod of profpull runs in the cluster"}, "status")

	// The rights of somebody who may list pods, and nothing else.
	c.write("tokens.csv", adminToken+",admin,admin,system:masters\nhunter2,jane,jane\n")
	c.restart()
	c.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",`+
		`"metadata":{"name":"jane"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list","watch"]}]}`)
	c.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "", `{"apiVersion":"rbac.authorization.k8s.io/v1",`+
		`"kind":"RoleBinding","metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"jane"},`+
		`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"jane"}]}`)
	text := strings.Replace(readText(t, c.file("kubeconfig")), adminToken, "hunter2", 1)
	c.write("kubeconfig", text)
	l.call(exitPeer, []string{"may not get pods/proxy in namespace default", "`kubectl auth can-i get pods/proxy -n default`", "The API server says: pods", "cannot get resource"},
		"scrape", "pod/cart-1", "--type", "memory")
	l.call(exitPeer, []string{"may not get deployments.apps in namespace default"}, "scrape", "deploy/cart")
	l.call(exitDone, []string{"Pod default/cart-1 is scraped"}, "explain", "pod/default/cart-1")
	l.call(exitPeer, []string{"not allowed to list pods in the whole cluster"}, "discover")
	c.write("kubeconfig", strings.Replace(text, "hunter2", "hunter3", 1))
	l.call(exitPeer, []string{"401", "Renew the token"}, "discover")
	for _, name := range []string{"cart-1", "quiet", "late"} {
		c.deletePod(name)
	}
}
