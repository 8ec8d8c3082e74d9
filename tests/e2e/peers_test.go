package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/kube"
	"profpull.test/e2e/fakes/loop"
)

// peer is a writer with a store, an archive, and an address for queries.
type peer struct {
	name, dir, receive, query string
}

// peersOf makes n writers, which are not running yet.
func peersOf(dir string, n int) (all []peer) {
	for i := 0; i < n; i++ {
		host := loop.Host()
		all = append(all, peer{fmt.Sprintf("w%d", i), fmt.Sprintf("%s/%d", dir, i), host + ":4040", host + ":4041"})
	}
	return all
}

// asking is the section `query` of a process that asks these peers. more: further keys of the section.
func asking(listen, more string, peers []peer) string {
	var hosts []string
	for _, p := range peers {
		hosts = append(hosts, fmt.Sprintf("%q", p.query))
	}
	return fmt.Sprintf("query: {listen: %q, %s peers: {hosts: [%s], timeout: 5s}}\n", listen, more, strings.Join(hosts, ", "))
}

func (p peer) push() string { return "http://" + p.receive }
func (p peer) base() string { return "http://" + p.query }

// partialOf asks for the names of services. It returns them and the value of X-Profpull-Partial.
func partialOf(t *testing.T, base string, from, until time.Time) ([]string, string) {
	t.Helper()
	var n names
	partial := askOf(t, base, "LabelValues", map[string]any{"name": "service_name", "start": from.UnixMilli(), "end": until.UnixMilli()}, &n)
	return n.Names, partial
}

// Three writers, each of which names all three as its peers, and a reader answer as one store that received the same
// profiles: before, while and after the writers archive theirs.
func TestPeersAnswerAsOneStore(t *testing.T) {
	t.Parallel()
	_, b := startBucket(t)
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	until := start.Add(10 * time.Minute)
	peers := peersOf(dir, 3)
	config := func(p peer) string {
		return archiveConfig(b, p.name, p.dir, p.receive, "", "") + asking(p.query, "", peers)
	}
	var writers []*program
	for _, p := range peers {
		// Without an archive, so that every profile is on the disks until the writers start again.
		writers = append(writers, run(t, pushedStoreConfig(p.receive, "kept", p.dir, "stretch: 1m")+asking(p.query, "", peers)))
	}
	receive := loop.Host() + ":4040"
	all := run(t, pushedStoreConfig(receive, "all", dir+"/all", ""))
	pushHour(t, start, 4, 4, func(s int) []string { return []string{peers[s%3].push(), "http://" + receive} })
	want := answersOf(t, all.admin, start, until, "imported-1")
	require(t, strings.Count(want, "\n") >= 100, "too little to compare:\n%s", want)
	query := loop.Host() + ":4041"
	reader := run(t, readerConfig(b, "")+asking(query, "", peers))
	reader.wait("the objects to be listed", func() string {
		return unless(reader.metrics().sum("profpull_archive_up") == 1, "not yet")
	})
	sameAnswers(t, "the reader, before anything is archived", answersOf(t, "http://"+query, start, until, "imported-1"), want)
	if n := reader.metrics().sum("profpull_archive_files"); n != 0 {
		t.Fatalf("%v files are archived already", n)
	}
	for _, p := range peers {
		sameAnswers(t, "the writer "+p.name, answersOf(t, p.base(), start, until, "imported-1"), want)
	}
	for i, p := range writers {
		p.stop()
		writers[i] = run(t, config(peers[i]))
	}
	for archived := false; !archived; {
		archived = true
		for _, p := range writers {
			archived = archived && p.metrics().sum("profpull_archive_waiting_files") == 0 && p.metrics().sum("profpull_archive_files") >= 4
		}
		sameAnswers(t, "the reader, while files are archived", answersOf(t, "http://"+query, start, until), answersOf(t, all.admin, start, until))
	}
	// A writer loses its disk: the reader has listed no object yet.
	writers[0].stop()
	must(t, os.RemoveAll(peers[0].dir))
	writers[0] = run(t, config(peers[0]))
	writers[0].waitArchived(12)
	sameAnswers(t, "the reader, after a disk was lost", answersOf(t, "http://"+query, start, until, "imported-1"), want)
	m := reader.metrics()
	expect(t, m.sum("profpull_peers") == 3 && m.sum("profpull_peers_down") == 0 && m.sum("profpull_peer_requests_total", "result", "ok") != 0,
		"peers: %v known, %v down", m.sum("profpull_peers"), m.sum("profpull_peers_down"))
	// A writer that is gone makes the answer partial, and is named.
	writers[1].stop()
	if _, partial := partialOf(t, "http://"+query, start, until); !strings.HasPrefix(partial, "1; peer "+peers[1].base()+": ") {
		t.Errorf("partial: %q", partial)
	}
}

// Credentials of peers, and what people see without them.
func TestPeersAskForCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	until := start.Add(10 * time.Minute)
	peers := peersOf(dir, 1)
	run(t, fmt.Sprintf(`
scrape_configs: []
receive: {listen: %q, acknowledge: stored}
query: {listen: %q, basic_auth: {username: team, password: right}}
write: [{name: kept, url: "store://%s"}]
`, peers[0].receive, peers[0].query, peers[0].dir))
	pushHour(t, start, 1, 1, func(int) []string { return []string{peers[0].push()} })
	ask := func(name, keys string) *program {
		return run(t, fmt.Sprintf(`
scrape_configs: []
query: {peers: {hosts: [%q], %s}}
write: [{name: kept, url: "store://%s/%s"}]
`, peers[0].query, keys, dir, name))
	}
	names, partial := partialOf(t, ask("right", "basic_auth: {username: team, password: right}").admin, start, until)
	expect(t, partial == "" && strings.Join(names, ",") == "imported-0", "%v, partial: %q", names, partial)
	wrong := ask("wrong", "basic_auth: {username: team, password: secret-but-wrong}")
	names, partial = partialOf(t, wrong.admin, start, until)
	expect(t, len(names) == 0 && strings.Contains(partial, "it answered HTTP 401: ") && strings.Contains(partial, "set the credentials of its section `query` under query.peers"),
		"%v, partial: %q", names, partial)
	expect(t, !strings.Contains(partial+wrong.stderr.String(), "secret-but-wrong"), "the password is shown")
	// A question without credentials, and one that is none.
	resp, err := http.Post(peers[0].base()+"/profpull.v1/peer", "text/plain", strings.NewReader("hello"))
	must(t, err)
	resp.Body.Close()
	expect(t, resp.StatusCode == http.StatusUnauthorized, "without credentials: %s", resp.Status)
	status, text := post(t, wrong.admin+"/profpull.v1/peer", "text/plain", []byte("hello"))
	expect(t, status == http.StatusBadRequest && strings.Contains(text, "expected a question of version 1"),
		"no question: %d %s", status, text)
}

// With a name, every address is asked; the process finds itself among them.
func TestPeersOfAName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	until := start.Add(10 * time.Minute)
	receive := loop.Host() + ":4040"
	host := loop.Host()
	p := run(t, fmt.Sprintf(`
scrape_configs: []
receive: {listen: %q, acknowledge: stored}
query: {listen: "%s:4041", peers: {dns: "%s:4041"}}
write: [{name: kept, url: "store://%s/store"}]
`, receive, host, host, dir))
	pushHour(t, start, 1, 1, func(int) []string { return []string{"http://" + receive} })
	for i := 0; i < 2; i++ {
		names, partial := partialOf(t, "http://"+host+":4041", start, until)
		expect(t, partial == "" && strings.Join(names, ",") == "imported-0", "%v, partial: %q", names, partial)
	}
	m := p.metrics()
	expect(t, m.sum("profpull_peers") == 0 && m.sum("profpull_peer_requests_total") == 1,
		"the process asks itself: %v peers, %v requests", m.sum("profpull_peers"), m.sum("profpull_peer_requests_total"))
	q := run(t, fmt.Sprintf("scrape_configs: []\nquery: {peers: {dns: \"no-such-name.invalid:1\"}}\nwrite: [{name: kept, url: \"store://%s/other\"}]\n", dir))
	_, partial := partialOf(t, q.admin, start, until)
	has(t, "partial", partial, "query.peers.dns: no-such-name.invalid:1 cannot be resolved: ")
}

// The replicas that share the targets are peers, at the addresses that Kubernetes has for them; so they answer alike.
func TestPeersAmongReplicas(t *testing.T) {
	t.Parallel()
	cluster, kubeconfig := newKube(t, kube.Options{})
	dir := t.TempDir()
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Minute)
	until := start.Add(10 * time.Minute)
	var endpoints []string
	var hosts []string
	for i := 0; i < 2; i++ {
		host := loop.Host()
		hosts = append(hosts, host)
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":true},"targetRef":{"kind":"Pod","name":"p-%d","namespace":"monitoring"}}`, host, i))
	}
	putObject(t, cluster, "endpointslices", `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"profpull-a","namespace":"monitoring",`+
		`"labels":{"kubernetes.io/service-name":"profpull"}},"addressType":"IPv4","ports":[{"port":4041}],"endpoints":[`+strings.Join(endpoints, ",")+`]}`)
	for i, host := range hosts {
		run(t, fmt.Sprintf(`
sharding: {mode: kubernetes, service: profpull, namespace: monitoring, pod_name: p-%d, kubeconfig_file: %q}
scrape_configs: []
receive: {listen: "%s:4040", acknowledge: stored}
query: {listen: "%s:4041", peers: {sharding: true}}
write: [{name: kept, url: "store://%s/%d"}]
`, i, kubeconfig, host, host, dir, i))
	}
	pushHour(t, start, 2, 4, func(s int) []string { return []string{"http://" + hosts[s%2] + ":4040"} })
	want := ""
	for _, host := range hosts {
		got := answersOf(t, "http://"+host+":4041", start, until, "imported-1")
		expect(t, strings.Contains(got, "values of service_name: 4 lines") && (want == "" || got == want),
			"%s answers\n%s\nthe other\n%s", host, got, want)
		want = got
	}
}
