package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// ---- a real kube-apiserver and etcd -------------------------------------------------------------

const adminToken = "token-of-the-administrator"

// controlPlane is a real API server with its etcd, from the directory that KUBEBUILDER_ASSETS names.
type controlPlane struct {
	t          *testing.T
	assets     string
	dir        string
	host, etcd string
	server     *exec.Cmd
	client     *http.Client
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	bin(t)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS names no directory with kube-apiserver and etcd")
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			t.Skipf("KUBEBUILDER_ASSETS: %v", err)
		}
	}
	c := &controlPlane{t: t, assets: assets, dir: t.TempDir(), host: loop.Host(), etcd: loop.Host()}
	c.startEtcd()
	c.writeFiles()
	c.startServer()
	return c
}

// child starts a program that is ended with the test.
func (c *controlPlane) child(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	var out output
	cmd := exec.Command(filepath.Join(c.assets, name), args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, c.dir
	must(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", name, tailLines(out.String(), 15))
		}
	})
	return cmd
}

func (c *controlPlane) startEtcd() {
	client, peer := "http://"+c.etcd+":2379", "http://"+c.etcd+":2380"
	c.child("etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--listen-client-urls="+client,
		"--advertise-client-urls="+client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer, "--unsafe-no-fsync")
}

func (c *controlPlane) file(name string) string { return filepath.Join(c.dir, name) }

func (c *controlPlane) write(name, text string) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.file(name), []byte(text), 0o600))
}

func (c *controlPlane) writeFiles() {
	c.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(c.t, err)
	c.write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	c.write("tokens.csv", adminToken+",admin,admin,system:masters\n")
}

// startServer starts kube-apiserver, again after it was killed, and waits until it is ready.
func (c *controlPlane) startServer() {
	c.t.Helper()
	c.server = c.child("kube-apiserver", "--etcd-servers=http://"+c.etcd+":2379", "--bind-address="+c.host,
		"--advertise-address="+c.host, "--secure-port=6443", "--cert-dir="+c.file("certs"),
		"--authorization-mode=RBAC", "--token-auth-file="+c.file("tokens.csv"),
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
		"--service-account-key-file="+c.file("sa.key"), "--service-account-signing-key-file="+c.file("sa.key"))
	wait(c.t, "the real API server", func() string {
		ca, err := os.ReadFile(c.file("certs/apiserver.crt"))
		if err != nil {
			return err.Error()
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		c.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
		status, text := c.ask("GET", "/readyz", "", "")
		if status != 200 {
			return fmt.Sprint(status, text)
		}
		status, text = c.ask("GET", "/api/v1/namespaces/default", "", "")
		if status != 200 {
			return fmt.Sprint(status, text)
		}
		return ""
	})
}

// restart ends the API server as a crash does, and starts it again.
func (c *controlPlane) restart() {
	c.t.Helper()
	_ = c.server.Process.Kill()
	_, _ = c.server.Process.Wait()
	c.startServer()
}

func (c *controlPlane) url() string { return "https://" + c.host + ":6443" }

// ask makes a request as the administrator; kind is that of a patch, or "".
func (c *controlPlane) ask(method, path, kind, body string) (int, string) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.url()+path, strings.NewReader(body))
	must(c.t, err)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func (c *controlPlane) must(method, path, kind, body string) string {
	c.t.Helper()
	status, text := c.ask(method, path, kind, body)
	require(c.t, status >= 200 && status <= 299, "%s %s: %d %s", method, path, status, text)
	return text
}

const (
	podsPath   = "/api/v1/namespaces/default/pods"
	mergePatch = "application/merge-patch+json"
)

// createPod makes a pod that runs at an address, as a scheduler and a kubelet would.
func (c *controlPlane) createPod(name, address string, annotated bool) {
	c.t.Helper()
	ip, port, _ := strings.Cut(address, ":")
	number, _ := strconv.Atoi(port)
	annotations := map[string]string{}
	if annotated {
		annotations["profiles.grafana.com/memory.scrape"] = "true"
		annotations["profiles.grafana.com/memory.port"] = port
	}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": map[string]string{"app": name}, "annotations": annotations},
		"spec": map[string]any{"nodeName": "node-1", "containers": []any{map[string]any{"name": "main", "image": "shop:1",
			"ports": []any{map[string]any{"name": "http", "containerPort": number}}}}},
	})
	c.must("POST", podsPath, "", string(text))
	c.patch(name, "/status", `{"status":{"phase":"Running","podIP":"`+ip+`","podIPs":[{"ip":"`+ip+
		`"}],"conditions":[{"type":"Ready","status":"True"}]}}`)
}

func (c *controlPlane) patch(name, sub, text string) {
	c.t.Helper()
	c.must("PATCH", podsPath+"/"+name+sub, mergePatch, text)
}

func (c *controlPlane) deletePod(name string) {
	c.t.Helper()
	c.must("DELETE", podsPath+"/"+name+"?gracePeriodSeconds=0", "", "")
}

// compact makes etcd forget its history.
func (c *controlPlane) compact() {
	c.t.Helper()
	call := func(path, body string) string {
		resp, err := http.Post("http://"+c.etcd+":2379"+path, "application/json", bytes.NewReader([]byte(body)))
		must(c.t, err)
		text := bodyOf(c.t, resp)
		require(c.t, resp.StatusCode == 200, "%s: %s %s", path, resp.Status, text)
		return string(text)
	}
	var answer struct{ Header struct{ Revision string } }
	must(c.t, json.Unmarshal([]byte(call("/v3/kv/range", `{"key":"Lw=="}`)), &answer))
	call("/v3/kv/compaction", `{"revision":"`+answer.Header.Revision+`","physical":true}`)
}

// kubeconfig leads to the server as the administrator, by way of an address that is not in its
// certificate.
func (c *controlPlane) kubeconfig(url string) string {
	c.write("kubeconfig", `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"k","cluster":{"server":"`+url+`","certificate-authority":"certs/apiserver.crt",
"tls-server-name":"kubernetes.default.svc"}}],
"users":[{"name":"u","user":{"token":"`+adminToken+`"}}],
"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}]}`)
	return c.file("kubeconfig")
}

// line is a connection between the program and the server that can be cut.
type line struct {
	t        *testing.T
	addr, to string
	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l := &line{t: t, addr: loop.Host() + ":6443", to: to}
	l.mend()
	t.Cleanup(l.cut)
	return l
}

func (l *line) mend() {
	l.t.Helper()
	listener, err := loop.Listen(l.addr)
	must(l.t, err)
	l.mu.Lock()
	l.listener = listener
	l.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
}

func (l *line) carry(conn net.Conn) {
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		conn.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn, server)
	l.mu.Unlock()
	go func() { _, _ = io.Copy(server, conn); server.Close() }()
	_, _ = io.Copy(conn, server)
	conn.Close()
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// ---- tests --------------------------------------------------------------------------------------

// Against a real API server: pods that are created, annotated, changed and deleted become targets
// and stop being targets; what happened while a watch was away and etcd has forgotten it is found by
// one new list; tokens that are rotated come into use; a missing permission is named.
func TestRealAPIServer(t *testing.T) {
	t.Parallel()
	c := newControlPlane(t)
	t.Run("pods", func(t *testing.T) { realPods(t, c) })
	t.Run("expired", func(t *testing.T) { realExpired(t, c) })
	t.Run("laptop", func(t *testing.T) { realLaptop(t, c) })
	t.Run("service account", func(t *testing.T) { realServiceAccount(t, c) })
}

func realPods(t *testing.T, c *controlPlane) {
	server := newPyroscope(t, pyroscope.Options{})
	first, second := newTarget(t, target.Options{}), newTarget(t, target.Options{})
	c.createPod("first", first.Addr(), true)
	c.createPod("second", second.Addr(), false)
	p := run(t, kubeConfig(c.kubeconfig(c.url()), server.URL(), "1s"))
	p.waitPods("first")
	waitProfiles(t, server, 1, func(r *pyroscope.Received) bool {
		return r.Labels["pod"] == "first" && r.Labels["namespace"] == "default" && r.Labels["app"] == "first"
	})
	port := second.Addr()[strings.LastIndexByte(second.Addr(), ':')+1:]
	c.patch("second", "", `{"metadata":{"annotations":{"profiles.grafana.com/memory.scrape":"true",`+
		`"profiles.grafana.com/memory.port":"`+port+`"}}}`)
	annotated := p.waitPods("first second")
	c.patch("second", "/status", `{"status":{"phase":"Succeeded"}}`)
	finished := p.waitPods("first")
	c.createPod("third", second.Addr(), true)
	created := p.waitPods("first third")
	c.deletePod("third")
	deleted := p.waitPods("first")
	m := p.metrics()
	const requests = "profpull_discovery_requests_total"
	t.Logf("annotated %v, finished %v, created %v, deleted %v; streamed lists refused: %v; pages: %v", annotated,
		finished, created, deleted, m.sum(requests, "result", "unsupported"), m.sum(requests, "verb", "list"))
	equal(t, "new lists", m.sum("profpull_discovery_relists_total"), 0)
	p.stop()
	c.deletePod("first")
	c.deletePod("second")
	noneRefused(t, server)
}

// The line is cut while pods come and go, etcd is compacted and the server restarted: the version of
// the watch is then older than anything that anybody remembers.
func realExpired(t *testing.T, c *controlPlane) {
	server := newPyroscope(t, pyroscope.Options{})
	stays, goes := newTarget(t, target.Options{}), newTarget(t, target.Options{})
	c.createPod("stays", stays.Addr(), true)
	c.createPod("goes", goes.Addr(), true)
	wire := newLine(t, c.host+":6443")
	p := run(t, kubeConfig(c.kubeconfig("https://"+wire.addr), server.URL(), "1s"))
	p.waitPods("goes stays")
	before := *p.scrape(stays.Addr())
	wire.cut()
	c.deletePod("goes")
	c.createPod("comes", goes.Addr(), true)
	c.compact()
	c.restart()
	equal(t, "targets while the server is away", p.pods(), "goes stays")
	wire.mend()
	p.waitPods("comes stays")
	m := p.metrics()
	equal(t, "new lists", m.sum("profpull_discovery_relists_total"), 1)
	equal(t, "new lists because the version had expired",
		m.sum("profpull_discovery_relists_total", "reason", "expired"), 1)
	now := p.scrape(stays.Addr())
	expect(t, now.Successes >= before.Successes && now.Failures == before.Failures,
		"the target that did not change started over: %+v, before %+v", now, before)
	p.stop()
	c.deletePod("stays")
	c.deletePod("comes")
}

// requestToken makes a token of the service account that is good while the secret is there.
func (c *controlPlane) requestToken(secret string) string {
	c.t.Helper()
	made := c.must("POST", "/api/v1/namespaces/default/secrets", "", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"`+secret+`"}}`)
	var s struct{ Metadata struct{ UID string } }
	_ = json.Unmarshal([]byte(made), &s)
	text := c.must("POST", "/api/v1/namespaces/default/serviceaccounts/profpull/token", "",
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600,"boundObjectRef":`+
			`{"apiVersion":"v1","kind":"Secret","name":"`+secret+`","uid":"`+s.Metadata.UID+`"}}}`)
	var answer struct{ Status struct{ Token string } }
	_ = json.Unmarshal([]byte(text), &answer)
	require(c.t, answer.Status.Token != "", "no token in %s", text)
	return answer.Status.Token
}

// In a pod, as it were: the service account's files, least privilege, and a token that is rotated.
func realServiceAccount(t *testing.T, c *controlPlane) {
	server, tg := newNeighbours(t)
	c.createPod("a", tg.Addr(), true)
	c.must("POST", "/api/v1/namespaces/default/serviceaccounts", "", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"profpull"}}`)
	old := c.requestToken("first-token")
	mount := t.TempDir()
	put := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(mount, name+".new"), []byte(text), 0o600))
		must(t, os.Rename(filepath.Join(mount, name+".new"), filepath.Join(mount, name)))
	}
	ca, _ := os.ReadFile(c.file("certs/apiserver.crt"))
	put("token", old)
	put("ca.crt", string(ca))
	put("namespace", "default")
	config := strings.Replace(kubeConfig("X", server.URL(), "1s"), `        kubeconfig_file: "X"`,
		"        namespaces: {own_namespace: true}", 1)
	p := startUnder(t, []string{"/usr/bin/env", "KUBERNETES_SERVICE_HOST=" + c.host, "KUBERNETES_SERVICE_PORT=6443",
		"PROFPULL_SERVICEACCOUNT_DIR=" + mount}, config)
	p.waitUp()
	p.says("not allowed to list pods in the namespace: apply a Role")
	c.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "",
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"profpull"},"rules":`+
			`[{"apiGroups":[""],"resources":["pods"],"verbs":["list","watch"]}]}`)
	c.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "",
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"profpull"},"roleRef":`+
			`{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"profpull"},"subjects":[{"kind":"ServiceAccount",`+
			`"name":"profpull","namespace":"default"}]}`)
	p.waitPods("a")

	// The old token is worth nothing once the object that it is bound to is gone.
	put("token", c.requestToken("second-token"))
	c.must("DELETE", "/api/v1/namespaces/default/secrets/first-token", "", "")
	c.restart()
	c.createPod("b", loop.Host()+":6060", true)
	p.waitPods("a b")
	atMost(t, "requests refused because of the old token",
		p.metrics().sum("profpull_discovery_requests_total", "result", "unauthorized"), 1)
	p.stop()
	p.keepsSecret(old)
	c.deletePod("a")
	c.deletePod("b")
}
