package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// contentsAlloy writes to two servers, each with a password from a Secret of its own namespace.
const contentsAlloy = `
remote.kubernetes.secret "one" {
	namespace = "monitoring"
	name      = "login"
}
remote.kubernetes.configmap "one" {
	namespace = "monitoring"
	name      = "users"
}
remote.kubernetes.secret "two" {
	namespace      = "other"
	name           = "login"
	poll_frequency = "5m"
}
pyroscope.scrape "s" {
	targets         = [{"__address__" = "TARGET", "service_name" = "svc"}]
	forward_to      = [pyroscope.write.one.receiver, pyroscope.write.two.receiver]
	scrape_interval = "1s"
	scrape_timeout  = "1s"
	profiling_config {
		profile.process_cpu { enabled = false }
		profile.memory { enabled = false }
		profile.mutex { enabled = false }
		profile.block { enabled = false }
		profile.goroutine { enabled = true }
	}
}
pyroscope.write "one" {
	endpoint {
		url = "URL1"
		basic_auth {
			username = remote.kubernetes.configmap.one.data["user"]
			password = remote.kubernetes.secret.one.data.password
		}
	}
}
pyroscope.write "two" {
	endpoint {
		url = "URL2"
		basic_auth {
			username = "u"
			password = convert.nonsensitive(remote.kubernetes.secret.two.data["password"])
		}
	}
}
`

// Passwords come from Secrets, by an Alloy file and by the YAML that it becomes: a changed one is used
// soon after the server wants it; one that may not be read is named, and the others go on.
func TestPasswordsFromSecrets(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"alloy", "yaml"} {
		yaml := kind == "yaml"
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			passwordsFromSecrets(t, yaml)
		})
	}
}

func passwordsFromSecrets(t *testing.T, yaml bool) {
	one := newPyroscope(t, pyroscope.Options{Username: "user-1", Password: "sesame-1"})
	two := newPyroscope(t, pyroscope.Options{Username: "u", Password: "sesame-2"})
	tg := newTarget(t, target.Options{})
	cluster, env := newCluster(t)
	cluster.PutConfigMap("monitoring", "users", map[string]string{"user": "user-1"})
	cluster.PutSecret("monitoring", "login", map[string]string{"password": "sesame-1\n", "other": "x"})
	cluster.PutSecret("other", "login", map[string]string{"password": "sesame-2"})
	cluster.Forbid("secrets", "other", 403)
	file := alloyFile(t, t.TempDir(), "config.alloy",
		strings.NewReplacer("TARGET", tg.Addr(), "URL1", one.URL(), "URL2", two.URL()).Replace(contentsAlloy))
	if yaml {
		file = converted(t, env, file)
	}
	r := under(t, env, "check", "--config", file)
	expect(t, r.code == 0 && !strings.Contains(r.stderr, "warning"), "check: %d %s", r.code, r.stderr)
	p := runFile(t, env, file)
	waitProfiles(t, one, 1, nil)
	forbidden := `Secret other/login: the API server answered 403: secrets \"login\" is forbidden`
	p.wait("the forbidden Secret in the log", func() string { return missingIn(p.stderr.String(), forbidden) })
	_, ready := p.get("/-/ready")
	problem := missingIn(ready, "Secret other/login: the API server answered 403")
	expect(t, problem == "", "%s", problem)
	atLeast(t, "failed reads counted",
		p.metrics().sum("profpull_discovery_content_reads_total", "result", "failed"), 1)

	// Once it may be read, the Secret is used: profiles that waited are sent after a pause.
	cluster.Forbid("secrets", "other", 0)
	if !yaml {
		waitProfiles(t, two, 1, nil)
	}
	p.wait("the log that it can be read", func() string {
		return missingIn(p.stderr.String(), "an object of Kubernetes can be read again")
	})

	p.keepsSecret("sesame-1", "sesame-2")
}

func (p *program) keepsSecret(secrets ...string) {
	p.t.Helper()
	for _, secret := range secrets {
		expect(p.t, !strings.Contains(p.stderr.String(), secret), "%s is in the log", secret)
	}
}

// A credential that a server refuses is read again, long before the minute is over: here the password
// of a list of targets, which is asked for every second.
func TestSecretChanges(t *testing.T) {
	t.Parallel()
	var want, lists atomic.Value
	want.Store("sesame-1")
	lists.Store(0)
	list := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != want.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "[]")
		lists.Store(lists.Load().(int) + 1)
	})
	cluster, env := newCluster(t)
	cluster.PutSecret("ns", "login", map[string]string{"password": "sesame-1"})
	p := runFile(t, env, writeConfig(t, fmt.Sprintf(`
write: [{name: w, url: "http://127.0.0.1:1"}]
scrape_configs:
  - job_name: j
    http_sd_configs:
      - url: %s/list
        refresh_interval: 1s
        basic_auth: {username: u, password_file: "kubernetes:secret/ns/login/password"}
`, list.URL())))
	more := func() {
		t.Helper()
		lists.Store(0)
		p.wait("the list", func() string {
			return unless(lists.Load() != 0, "%s", p.stderr.String())
		})
	}
	more()
	want.Store("sesame-2")
	cluster.PutSecret("ns", "login", map[string]string{"password": "sesame-2"})
	more()
	p.keepsSecret("sesame-1", "sesame-2")
}

func missingIn(text, part string) string {
	if strings.Contains(text, part) {
		return ""
	}
	return fmt.Sprintf("no %q in\n%s", part, text)
}

// Outside of a pod there are no rights to read with.
func TestSecretsNeedAPod(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, `
write:
  - name: w
    url: http://127.0.0.1:1
    basic_auth: {username: u, password_file: "kubernetes:secret/monitoring/login/password"}
scrape_configs:
  - job_name: j
    static_configs: [{targets: ["127.0.0.1:1"]}]
`)
	r := call(t, "", "run", "--config", config)
	want := "kubernetes:secret/monitoring/login/password: not in a Kubernetes pod: KUBERNETES_SERVICE_HOST is not set"
	expect(t, r.code != 0 && strings.Contains(r.stderr, want), "%d %s", r.code, r.stderr)
}
