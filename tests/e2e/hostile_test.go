package e2e

import (
	"strings"
	"testing"

	"profpull.test/e2e/fakes/hostile"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// Targets that send without end what is no profile, as fast as they can: each scrape of them ends
// early, after a few megabytes, and the other targets are scraped as ever. HTTP/2, for which libcurl
// has no such limits, is not spoken with targets.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		kind   hostile.Kind
		keys   string // of its job
		reason string // in the error of each scrape
	}{
		{hostile.ChunkExtension, "", "bytes of framing as of content"},
		{hostile.TinyChunks, "", "expected at least 16 bytes at a time"},
		{hostile.EarlyHints, "", "header lines"},
		{hostile.HTTP2Hints, "scheme: https, tls_config: {insecure_skip_verify: true}, scrape_timeout: 1s,", "no response within"},
		{hostile.HTTP2EmptyData, "scheme: https, tls_config: {insecure_skip_verify: true}, scrape_timeout: 1s,", "no response within"},
	}
	server := newPyroscope(t, pyroscope.Options{})
	good := newTarget(t, target.Options{})
	jobs := ""
	peers := map[string]*hostile.Peer{}
	for _, k := range kinds {
		peer, err := hostile.Start(k.kind)
		must(t, err)
		t.Cleanup(peer.Down)
		peers[string(k.kind)] = peer
		jobs += jobAt(string(k.kind), k.keys+" profiles: "+oneSnapshot, peer.Addr())
	}
	jobs += job("good", "scrape_interval: 1s, profiles: {process_cpu: {enabled: false}}", good)
	p := run(t, "global: {scrape_interval: 2s, scrape_timeout: 10s}\n"+scraping(jobs, to(server)))
	failures := func(job string) float64 {
		return p.metrics().sum("profpull_scrapes_total", "job", job, "result", "failed")
	}
	for _, k := range kinds {
		reaches(t, "failed scrapes of "+string(k.kind), 3, func() float64 { return failures(string(k.kind)) })
		sent, n := peers[string(k.kind)].Sent(), failures(string(k.kind))
		t.Logf("%s: %.1f MB sent for %.0f scrapes", k.kind, float64(sent)/1e6, n)
		// The limit is the bytes that the client reads, and the buffers of the kernel.
		limit := (n + 2) * (32 << 20)
		expect(t, float64(sent) <= limit, "%s has sent %d bytes, expected at most %.0f", k.kind, sent, limit)
	}
	for _, s := range p.scrapes("") {
		for _, k := range kinds {
			expect(t, s.Job != string(k.kind) || strings.Contains(s.LastError, k.reason),
				"%s: %q, expected %q", k.kind, s.LastError, k.reason)
		}
	}
	waitProfiles(t, server, 20, nil)
	m := p.metrics()
	atMost(t, "failed scrapes of the good target",
		m.sum("profpull_scrapes_total", "job", "good", "result", "failed"), 0)
	p.answers("/-/healthy", 200)
}

// With HTTP/2 enabled, frames without content keep libcurl within one call: the connection is cut, its
// host is left alone, and the other targets are scraped.
func TestHTTP2Floods(t *testing.T) {
	t.Parallel()
	server := newPyroscope(t, pyroscope.Options{})
	good := newTarget(t, target.Options{})
	var bad []string
	for _, kind := range []hostile.Kind{hostile.HTTP2Hints, hostile.HTTP2EmptyData} {
		peer, err := hostile.Start(kind)
		must(t, err)
		t.Cleanup(peer.Down)
		bad = append(bad, peer.Addr())
	}
	p := run(t, "global: {scrape_interval: 1s, scrape_timeout: 10s}\n"+scraping(jobAt("bad", "scheme: https, enable_http2: true, tls_config: {insecure_skip_verify: true}, profiles: "+oneSnapshot, bad...)+
		job("good", "profiles: {process_cpu: {enabled: false}}", good), to(server)))
	// A libcurl that ends such calls itself (that of Debian 13 does) leaves nothing to cut.
	alone := 0
	p.wait("both to fail", func() string {
		n := 0
		alone = 0
		for _, s := range p.scrapes("") {
			if s.Job == "bad" && s.LastError != "" {
				n++
			}
			if s.Job == "bad" && strings.Contains(s.LastError, "no request for another ") {
				alone++
			}
		}
		return unless(n >= 2, "%d of 2", n)
	})
	m := p.metrics()
	atLeast(t, "calls cut, for each target that is left alone", int(m.sum("profpull_http_cut_calls_total", "client", "scrape")), alone)
	before := m.sum("profpull_scrapes_total", "job", "good", "result", "ok")
	reaches(t, "scrapes of the good target", 20,
		func() float64 {
			return p.metrics().sum("profpull_scrapes_total", "job", "good", "result", "ok") - before
		})
	p.answers("/-/healthy", 200)
}
