package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/target"
)

const grafanaType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

// askQuerier posts a message and returns the answer with its status.
func askQuerier(t *testing.T, p *program, method, contentType string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.Post(p.admin+"/querier.v1.QuerierService/"+method, contentType, bytes.NewReader(body))
	require(t, err == nil, "%s: %s", method, err)
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	require(t, err == nil, "%s: %s", method, err)
	return r.StatusCode, answer
}

// askJSON posts a message in JSON, which must be answered, and reads the answer.
func askJSON(t *testing.T, p *program, method string, request map[string]any, ret any) {
	t.Helper()
	body, err := json.Marshal(request)
	must(t, err)
	status, answer := askQuerier(t, p, method, "application/json", body)
	require(t, status == http.StatusOK, "%s %s: %d %s", method, body, status, answer)
	decode(t, answer, ret)
}

type names struct {
	Names []string `json:"names"`
}

func (n names) has(name string) bool {
	for _, one := range n.Names {
		if one == name {
			return true
		}
	}
	return false
}

type flamegraph struct {
	Names  []string `json:"names"`
	Levels []struct {
		Values []string `json:"values"`
	} `json:"levels"`
	Total string `json:"total"`
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return n
}

type bar struct{ start, end, self int64 }

// bars places the nodes as Grafana does: each has to lie within one of the level above, and what a node
// has itself and below it is its total.
func bars(t *testing.T, g flamegraph) int {
	t.Helper()
	var above []bar
	count := 0
	for depth, level := range g.Levels {
		var here []bar
		at := int64(0)
		below := map[int]int64{}
		for i := 0; i+3 < len(level.Values); i += 4 {
			start := at + number(t, level.Values[i])
			b := bar{start, start + number(t, level.Values[i+1]), number(t, level.Values[i+2])}
			at = b.end
			name := number(t, level.Values[i+3])
			require(t, name >= 0 && name < int64(len(g.Names)), "level %d: name %d of %d", depth, name, len(g.Names))
			parent := -1
			for k, candidate := range above {
				if candidate.start <= b.start && b.end <= candidate.end {
					parent = k
				}
			}
			require(t, depth == 0 || parent >= 0 && b.end != b.start,
				"level %d: %v lies within none of %v", depth, b, above)
			below[parent] += b.end - b.start
			here = append(here, b)
			count++
		}
		for k, parent := range above {
			require(t, parent.self+below[k] == parent.end-parent.start,
				"level %d: %v has %d below it", depth-1, parent, below[k])
		}
		above = here
	}
	return count
}

// TestGrafanaDataSource sends the requests of Grafana's Pyroscope data source and the Profiles Drilldown
// app, in their order, to a store that profpull itself has filled.
func TestGrafanaDataSource(t *testing.T) {
	t.Parallel()
	// Quiet: every scrape gets the same bytes with the same time, of which the store keeps one.
	tg := newTarget(t, target.Options{Functions: 50, Quiet: true})
	dir := t.TempDir()
	p := run(t, `
global: {scrape_interval: 3s, scrape_timeout: 2s}
`+scraping(job("cart", "profiles: {process_cpu: {}, memory: {delta: off}, goroutine: {}}", tg), "name: local, url: store://"+dir))

	// Save and test: the types of 1970, as protobuf.
	status, answer := askQuerier(t, p, "ProfileTypes", "application/proto", []byte("\x08\xe8\x07\x10\xa0\x1f"))
	require(t, status == http.StatusOK && len(answer) == 0, "save and test: %d %q", status, answer)

	began := time.Now().Add(-time.Hour).UnixMilli()
	hour := func(more map[string]any) map[string]any {
		more["start"], more["end"] = began, time.Now().Add(time.Hour).UnixMilli()
		return more
	}
	selector := `{service_name="cart",}`
	var series struct {
		Series []struct {
			Points []struct {
				Value     float64 `json:"value"`
				Exemplars []struct {
					Timestamp string `json:"timestamp"`
				} `json:"exemplars"`
			} `json:"points"`
		} `json:"series"`
	}
	p.wait("a CPU profile", func() string {
		askJSON(t, p, "SelectSeries", hour(map[string]any{"profileTypeID": grafanaType, "labelSelector": selector, "step": 1,
			"exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}), &series)
		return unless(len(series.Series) != 0, "no series")
	})
	// Profiles count at the time inside them: up to that of the first one, nothing changes any more.
	end := number(t, series.Series[0].Points[0].Exemplars[0].Timestamp)
	within := func(more map[string]any) map[string]any {
		more["start"], more["end"] = began, end
		return more
	}
	var types struct {
		ProfileTypes []struct{ ID string } `json:"profileTypes"`
	}
	askJSON(t, p, "ProfileTypes", within(map[string]any{}), &types)
	require(t, len(types.ProfileTypes) >= 2, "%v", types)

	// Explore: labels, then the graph and the timeline.
	var labels, values names
	askJSON(t, p, "LabelNames", within(map[string]any{"matchers": []string{`{__profile_type__="` + grafanaType + `", service_name="cart",}`}}), &labels)
	require(t, labels.has("service_name") && labels.has("__profile_type__"), "%v", labels)
	askJSON(t, p, "LabelValues", within(map[string]any{"name": "service_name", "matchers": []string{"{}"}}), &values)
	require(t, values.has("cart"), "%v", values)
	var stacks struct {
		Flamegraph flamegraph `json:"flamegraph"`
	}
	stackQuery := within(map[string]any{"profile_typeID": grafanaType, "label_selector": selector, "max_nodes": 16384})
	askJSON(t, p, "SelectMergeStacktraces", stackQuery, &stacks)
	n := bars(t, stacks.Flamegraph)
	require(t, n >= 2, "%d nodes", n)
	total := number(t, stacks.Flamegraph.Total)
	// The steps reach beyond the end of the range: what is after the last one is not counted.
	askJSON(t, p, "SelectSeries", map[string]any{"profileTypeID": grafanaType, "labelSelector": selector, "start": began,
		"end": end + 60000, "step": 15, "groupBy": []string{"service_name"}}, &series)
	require(t, len(series.Series) == 1 && len(series.Series[0].Points) != 0, "%v", series)
	sum := 0.0
	for _, point := range series.Series[0].Points {
		sum += point.Value
	}
	require(t, sum >= float64(total), "the timeline has %v, the graph %d", sum, total)

	// Drilldown: its first page, a download, a difference, its settings.
	var sets struct {
		LabelsSet []struct {
			Labels []struct{ Name, Value string } `json:"labels"`
		} `json:"labelsSet"`
	}
	askJSON(t, p, "Series", within(map[string]any{"matchers": []string{}, "labelNames": []string{"service_name", "__profile_type__"}}), &sets)
	require(t, len(sets.LabelsSet) >= 2 && len(sets.LabelsSet[0].Labels) == 2, "%v", sets)
	var stats struct {
		DataIngested bool `json:"dataIngested"`
	}
	askJSON(t, p, "GetProfileStats", map[string]any{}, &stats)
	require(t, stats.DataIngested, "GetProfileStats says that there is nothing")
	// SelectMergeProfileRequest: the type, a selector, start and end.
	message := append([]byte{0x0a, byte(len(grafanaType))}, grafanaType...)
	message = append(append(message, 0x12, byte(len(selector))), selector...)
	for i, value := range []int64{began, end} {
		message = append(message, byte(0x18+8*i))
		for value >= 0x80 {
			message = append(message, byte(value)|0x80)
			value >>= 7
		}
		message = append(message, byte(value))
	}
	status, answer = askQuerier(t, p, "SelectMergeProfile", "application/proto", message)
	require(t, status == http.StatusOK, "SelectMergeProfile: %d %s", status, answer)
	pprofTop(t, answer)
	side := map[string]any{"profileTypeID": grafanaType, "labelSelector": selector, "start": began, "end": end}
	var diff struct {
		Flamegraph struct {
			LeftTicks, RightTicks string
		} `json:"flamegraph"`
	}
	askJSON(t, p, "Diff", map[string]any{"left": side, "right": side}, &diff)
	require(t, diff.Flamegraph.LeftTicks == stacks.Flamegraph.Total && diff.Flamegraph.RightTicks == diff.Flamegraph.LeftTicks,
		"%v %v", diff, total)
	query := url.QueryEscape(grafanaType + selector)
	var rendered struct {
		Flamebearer struct {
			NumTicks int64 `json:"numTicks"`
		} `json:"flamebearer"`
	}
	page := fmt.Sprintf("/pyroscope/render?query=%s&from=%d&until=%d", query, began, end)
	if status, text := p.get(page); status != http.StatusOK || json.Unmarshal([]byte(text), &rendered) != nil ||
		rendered.Flamebearer.NumTicks != total {
		t.Fatalf("render: %d %s", status, text)
	}
	r, err := http.Post(p.admin+"/settings.v1.SettingsService/Set", "application/json",
		bytes.NewReader([]byte(`{"setting":{"name":"pluginSettings","value":"{}"}}`)))
	require(t, err == nil && r.StatusCode == http.StatusOK, "%v %v", r, err)
	r.Body.Close()
	if kept, err := os.ReadFile(dir + "/settings.json"); err != nil || !strings.Contains(string(kept), "pluginSettings") {
		t.Fatalf("settings.json: %q %v", kept, err)
	}
	r, err = http.Post(p.admin+"/settings.v1.RecordingRulesService/ListRecordingRules", "application/json", bytes.NewReader([]byte("{}")))
	require(t, err == nil && r.StatusCode == http.StatusOK, "%v %v", r, err)
	r.Body.Close()
	// Features that are not there are hidden by a 404.
	r, err = http.Post(p.admin+"/debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload", "application/json", bytes.NewReader([]byte("{}")))
	require(t, err == nil && r.StatusCode == http.StatusNotFound, "%v %v", r, err)
	r.Body.Close()
	status, text := p.get("/ready")
	require(t, status == http.StatusOK && text == "ready", "/ready: %d %q", status, text)
}
