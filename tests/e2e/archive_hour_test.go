package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/target"
)

// replicaConfig is one of three replicas that share the targets. Each keeps a store with an archive, and sends what it keeps to
// one store as well.
func replicaConfig(b bucketOf, i int, dir, receive, all, jobs string) string {
	return fmt.Sprintf(`
global: {scrape_interval: 5s, scrape_timeout: 5s}
sharding: {mode: static, replicas: 3, index: %d}
scrape_configs: %s
receive: {listen: %q}
write:
- name: kept
  url: "store://%s"
  retention: {max_age: 10m}
  store: {stretch: 1m, merge: 1m, archive: {url: %q, name: replica-%d, s3: %s}}
- {name: all, url: "http://%s"}
`, i, jobs, receive, dir, b.url, i, b.keys(), all)
}

// reloadWith gives a process another configuration.
func (p *program) reloadWith(config string) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.config, []byte(config), 0o644))
	resp, err := http.Post(p.admin+"/-/reload", "", nil)
	must(p.t, err)
	resp.Body.Close()
	require(p.t, resp.StatusCode == http.StatusOK, "reload: %s", resp.Status)
}

// long waits for what takes minutes: stretches end five minutes before their files are uploaded.
func long(t *testing.T, what string, limit time.Duration, check func() string) {
	t.Helper()
	begin := time.Now()
	for missing := check(); missing != ""; missing = check() {
		require(t, time.Since(begin) <= limit, "waited %v for %s: %s", limit, what, missing)
		time.Sleep(time.Second)
	}
}

// Three sharded replicas scrape 60 targets while an hour of profiles with fixed times is pushed to them, in stretches of a
// minute. All is archived, the disks are wiped, and readers that start empty answer as one store does that received the
// same profiles. It takes some ten minutes, so it runs with ARCHIVE_HOUR only (make check-archive-hour); ARCHIVE_S3 is
// the URL of a real server with the bucket and the keys of the fake.
func TestArchiveOfAnHour(t *testing.T) {
	if os.Getenv("ARCHIVE_HOUR") == "" {
		t.Skip("needs ten minutes: make check-archive-hour")
	}
	_, b := startBucket(t)
	if server := os.Getenv("ARCHIVE_S3"); server != "" {
		b.server = server
		b.url = fmt.Sprintf("s3://profiles/hour-%d", time.Now().UnixNano())
	}
	dir, all := t.TempDir(), loop.Host()+":4040"
	start := time.Now().Add(-3 * time.Hour).Truncate(time.Hour)
	one := run(t, pushedStoreConfig(all, "one", dir+"/one", ""))
	jobs := "\n- job_name: sixty\n  profiles: {process_cpu: {enabled: false}, memory: {delta: off}, block: {enabled: false}, mutex: {enabled: false}}\n  static_configs:"
	for i := 0; i < 60; i++ {
		tg := newTarget(t, target.Options{Functions: 4 + i%5})
		jobs += fmt.Sprintf("\n  - {targets: [%q], labels: {service_name: scraped-%d}}", tg.Addr(), i%6)
	}
	var replicas []*program
	var receive []string
	for i := 0; i < 3; i++ {
		receive = append(receive, loop.Host()+":4040")
		replicas = append(replicas, run(t, replicaConfig(b, i, fmt.Sprintf("%s/%d", dir, i), receive[i], all, jobs)))
	}
	begun := time.Now()
	imported := pushHour(t, start, 60, 6, func(s int) []string { return []string{"http://" + receive[s%3]} })
	time.Sleep(time.Until(begun.Add(100 * time.Second)))
	for i, p := range replicas {
		p.reloadWith(replicaConfig(b, i, fmt.Sprintf("%s/%d", dir, i), receive[i], all, " []"))
	}
	sent := 0.0
	for _, p := range replicas {
		p.wait("the queues to be empty", func() string {
			for _, name := range []string{"kept", "all"} {
				l := p.metrics().ledger(name)
				require(t, l.dropped == 0, "%v were dropped", l.dropped)
				if l.queued != 0 || l.balance() != "" {
					return fmt.Sprint(l.queued, " wait; ", l.balance())
				}
			}
			return ""
		})
		sent += p.metrics().ledger("all").sent
	}
	until := time.Now().Add(time.Minute)
	names := []string{"imported-1", "imported-4", "scraped-0", "scraped-5"}
	want := answersOf(t, one.admin, start, until, names...)
	require(t, strings.Count(want, "\n") >= 1000 && sent >= float64(imported)+500,
		"too little to compare: %v profiles, %d lines", sent, strings.Count(want, "\n"))
	// While the writers still have the newest stretches, a reader asks them for these.
	var hosts []string
	for _, p := range replicas {
		hosts = append(hosts, fmt.Sprintf("%q", strings.TrimPrefix(p.admin, "http://")))
	}
	early := run(t, fmt.Sprintf("query: {peers: {hosts: [%s]}}\n", strings.Join(hosts, ", "))+readerConfig(b, ""))
	early.wait("the list of objects", func() string {
		return unless(early.metrics().sum("profpull_archive_up") == 1, "not listed")
	})
	sameAnswers(t, "the reader with peers", answersOf(t, early.admin, start, until, names...), want)
	t.Logf("a reader with peers: equal with %v files of the archive, %v requests to peers", early.metrics().sum("profpull_archive_files"), early.metrics().sum("profpull_peer_requests_total"))
	long(t, "everything to be archived", 15*time.Minute, func() string {
		for i, p := range replicas {
			if n := p.metrics().sum("profpull_archive_waiting_files"); n > 0 {
				return fmt.Sprintf("replica %d: %v files wait", i, n)
			}
			// Files that are archived have a mark, or were removed.
			files, _ := filepath.Glob(fmt.Sprintf("%s/%d/*.db", dir, i))
			for _, f := range files {
				if _, err := os.Stat(f + "-archive"); err != nil {
					return f + " is not archived"
				}
			}
		}
		return ""
	})
	for i, p := range replicas {
		p.stop()
		must(t, os.RemoveAll(fmt.Sprintf("%s/%d", dir, i)))
	}
	for i := 0; i < 2; i++ {
		reader := run(t, readerConfig(b, fmt.Sprintf(", cache: {directory: %q, max_bytes: 256MiB}", fmt.Sprintf("%s/cache-%d", dir, i))))
		reader.wait("the list of objects", func() string {
			return unless(reader.metrics().sum("profpull_archive_up") == 1, "not listed")
		})
		got := answersOf(t, reader.admin, start, until, names...)
		sameAnswers(t, fmt.Sprintf("reader %d", i), got, want)
		t.Logf("reader %d: %v files of the archive, %d lines of answers are equal; %v profiles, %d of them with fixed times",
			i, reader.metrics().sum("profpull_archive_files"), strings.Count(got, "\n")+1, sent, imported)
	}
}
