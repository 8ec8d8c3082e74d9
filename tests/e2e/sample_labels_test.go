package e2e

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	fakepprof "profpull.test/e2e/fakes/pprof"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

// labelled is a profile of two samples; the first has the labels.
func labelled(labels map[string]string) []byte {
	var out, first []byte
	texts := []string{"", "samples", "count"}
	var names []string
	for name := range labels {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		texts = append(texts, name, labels[name])
		n := uint64(len(texts))
		first = fakepprof.AppendBytes(first, 3, fakepprof.AppendInt(fakepprof.AppendInt(nil, 1, n-2), 2, n-1))
	}
	out = fakepprof.AppendBytes(out, 1, fakepprof.AppendInt(fakepprof.AppendInt(nil, 1, 1), 2, 2))
	out = fakepprof.AppendBytes(out, 2, append(fakepprof.AppendBytes(nil, 2, []byte{7}), first...))
	out = fakepprof.AppendBytes(out, 2, fakepprof.AppendBytes(nil, 2, []byte{9}))
	for _, s := range texts {
		out = fakepprof.AppendBytes(out, 6, []byte(s))
	}
	return fakepprof.Gzip(fakepprof.AppendInt(out, 9, uint64(time.Now().UnixNano())))
}

// A profile whose samples have 40 names, or names and values that the server refuses, reaches it all
// the same, with what it can take; one without such labels arrives byte for byte; and nothing is
// repaired where that is off.
func TestSampleLabels(t *testing.T) {
	t.Parallel()
	s := startPyroscope(t, pyroscope.Options{OldLabels: true})
	many := map[string]string{}
	for i := 0; i < 40; i++ {
		many[fmt.Sprintf("n%02d", i)] = "v"
	}
	profiles := map[string][]byte{
		"many":  labelled(many),
		"odd":   labelled(map[string]string{"local root span id": "1", "span-id": "2", "long": strings.Repeat("x", 5000)}),
		"fine":  labelled(map[string]string{"endpoint": "/cart"}),
		"plain": realProfiles(t)["process_cpu"],
	}
	want := map[string]string{
		"many": "map[n00:v n01:v n02:v n03:v n04:v n05:v]",
		"odd":  "map[local_root_span_id:1 long:" + strings.Repeat("x", 2048) + " span_id:2]",
		"fine": "map[endpoint:/cart]",
	}
	for _, protocol := range []string{"push", "ingest"} {
		before := len(s.Profiles())
		for name, data := range profiles {
			file := writeFile(t, t.TempDir(), name+".pb.gz", data)
			expectCall(t, exitDone, "sent 1 profile", "", "import", "--url", s.URL(), "--protocol", protocol, "--name", name,
				"--type", "goroutine", file)
		}
		for _, p := range s.Profiles()[before:] {
			name := p.Labels["service_name"]
			got := p.Profile.SampleLabels
			expect(t, want[name] == "" || len(got) == 1 && fmt.Sprint(got[0]) == want[name],
				"%s, %s: labels %v, expected %s", protocol, name, got, want[name])
			same := bytes.Equal(p.Raw, profiles[name])
			expect(t, same == (name == "plain" || name == "fine"), "%s, %s: byte for byte %v", protocol, name, same)
			sums := p.Profile.Sums()
			expect(t, name == "plain" || sums["samples"] == 16, "%s, %s: sums %v", protocol, name, sums)
		}
	}
	noneRefused(t, s)
}

// Nothing is repaired where that is off, so the server refuses the profile; and what the operator says
// of labels holds for each endpoint on its own.
func TestSampleLabelsOfEndpoints(t *testing.T) {
	t.Parallel()
	asItIs, ruled := startPyroscope(t, pyroscope.Options{OldLabels: true}), startPyroscope(t, pyroscope.Options{OldLabels: true})
	data := labelled(map[string]string{"span-id": "2", "long": "x", "user": "u"})
	tg := newTarget(t, target.Options{Bodies: map[string][]byte{"/debug/pprof/goroutine": data}})
	p := run(t, scraping(job("labels", "scrape_interval: 1s, profiles: "+only("goroutine: {}"), tg),
		"name: as_it_is, url: "+asItIs.URL()+", sample_labels: {repair: false}",
		"name: ruled, url: "+ruled.URL()+", sample_labels: {drop: [long], rename: {span-id: span}, keep: [span-id, long]}"))
	p.wait("profiles at both", func() string {
		return unless(len(ruled.Profiles()) != 0 && len(asItIs.Refused()) != 0,
			"%d taken, %d refused", len(ruled.Profiles()), len(asItIs.Refused()))
	})
	p.stop()
	n := len(asItIs.Profiles())
	expect(t, n == 0 && strings.Contains(fmt.Sprint(asItIs.Refused()[0]), "invalid label name 'span-id'"),
		"as it is: %d taken, refused %v", n, asItIs.Refused()[0])
	equal(t, "ruled", fmt.Sprint(ruled.Profiles()[0].Profile.SampleLabels), "[map[span:2]]")
	noneRefused(t, ruled)
}

// Labels that appear in a series that had none cost one refusal, after which the same profile arrives
// repaired, and so do all that follow, also those that a restart finds on disk; other series go on.
func TestSampleLabelsThatComeLater(t *testing.T) {
	t.Parallel()
	s := newPyroscope(t, pyroscope.Options{OldLabels: true})
	path := "/debug/pprof/goroutine"
	clean, dirty := labelled(nil), labelled(map[string]string{"span-id": "2"})
	changing := newTarget(t, target.Options{Bodies: map[string][]byte{path: clean}})
	other := newTarget(t, target.Options{Bodies: map[string][]byte{path: clean}})
	// With one request at a time no second profile of the series is on its way when the first is refused.
	config := scraping(job("labels", "scrape_interval: 1s, profiles: "+only("goroutine: {}"), changing, other),
		to(s)+", concurrency: 1, retry: {min_backoff: 50ms, max_backoff: 200ms}, queue: {spool_directory: \""+t.TempDir()+"\"}")
	arrived := func(labels string) (n int) {
		for _, p := range s.Profiles() {
			if fmt.Sprint(p.Profile.SampleLabels) == labels && p.Profile.Sums()["samples"] == 16 {
				n++
			}
		}
		return n
	}
	needs := func(n int, labels string) func() string {
		return func() string {
			got := arrived(labels)
			return unless(got >= n, "%d of %d with %s", got, n, labels)
		}
	}
	p := run(t, config, "--drain-timeout", "300ms")
	for _, tg := range []*target.Target{changing, other} {
		p.wait("a profile of each target", func() string {
			for _, r := range s.Profiles() {
				if strings.Contains(tg.URL(), r.Labels["instance"]) {
					return ""
				}
			}
			return "none"
		})
	}
	changing.SetBody(path, dirty)
	p.wait("repaired profiles", needs(3, "[map[span_id:2]]"))
	m := p.metrics()
	if n := m.sum("profpull_write_requests_total", "result", "4xx"); len(s.Refused()) != 1 || n != 1 {
		t.Errorf("%.0f requests refused, at the server %v", n, s.Refused())
	}
	atLeast(t, "retries", m.sum("profpull_write_retries_total"), 1)
	atLeast(t, "repaired labels", m.sum("profpull_write_sample_label_changes_total", "change", "repaired"), 3)
	s.Down()
	p.waitQueued("main", 4)
	p.stop()
	before := endpointSummary(t, p, "main")
	must(t, s.Up())
	repaired := arrived("[map[span_id:2]]")
	p = run(t, config)
	p.wait("repaired profiles after the restart", needs(repaired+3, "[map[span_id:2]]"))
	p.stop()
	after := endpointSummary(t, p, "main")
	expect(t, before["dropped"] == 0 && after["dropped"] == 0 && after["replayed"] == before["queued"] &&
		after["sent"] == after["replayed"]+after["accepted"] && len(s.Refused()) == 1 &&
		s.Count() >= before["sent"]+after["sent"],
		"before %v, after %v, arrived %d, refused %v", before, after, s.Count(), s.Refused())
}
