package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"profpull.test/e2e/fakes/loop"
	"profpull.test/e2e/fakes/pyroscope"
	"profpull.test/e2e/fakes/target"
)

const monitoring = "../../packaging/monitoring/"

func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(findProgram(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	expect(t, err == nil, "promtool %s: %v\n%s", strings.Join(args, " "), err, out)
}

// The rules are what Prometheus takes, and fire when they should.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", monitoring+"rules.yaml")
	promtool(t, "", "test", "rules", monitoring+"rules_test.yaml")
}

// Each alert has its tests and its line in the runbook.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	rules, tests, docs := readText(t, monitoring+"rules.yaml"), readText(t, monitoring+"rules_test.yaml"), readText(t, "../../docs/monitoring.md")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	require(t, len(alerts) >= 5, "only %d alerts", len(alerts))
	for _, a := range alerts {
		has(t, "tests", tests, "alertname: "+a[1]+"\n        exp_alerts:")
		expect(t, strings.Contains(docs, "### "+a[1]+"\n"), "docs/monitoring.md does not explain %s", a[1])
		has(t, "rules", rules, "docs/monitoring.md#"+strings.ToLower(a[1])+"\n")
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	return string(readFile(t, file))
}

// dashboardQueries are the expressions of all panels, with the variables replaced.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal([]byte(readText(t, monitoring+"dashboard.json")), &dashboard))
	variables := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m", "$__range", "5m")
	queries := map[string]string{}
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			queries[fmt.Sprintf("%s %d", panel.Title, i)] = variables.Replace(target.Expr)
		}
	}
	return queries
}

// startPrometheus starts one that scrapes the admin server and has the rules.
func startPrometheus(t *testing.T, admin string) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(monitoring + "rules.yaml")
	must(t, err)
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n"+
		"  - {job_name: profpull, honor_labels: true, static_configs: [{targets: [%q]}]}\n", rules, strings.TrimPrefix(admin, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	address := loop.Host() + ":9090"
	realProgram(t, findProgram(t, "prometheus"), address, "--web.listen-address="+address,
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"))
	return "http://" + address
}

// evaluate asks Prometheus for a query: how many series there are, or what is wrong with it.
func evaluate(server, query string) (int, error) {
	resp, err := http.Get(server + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("%s", answer.Error)
	}
	return len(answer.Data.Result), nil
}

// The metrics of a program that works are well formed, and every query of the dashboard and of the
// recording rules has an answer to them in a real Prometheus.
func TestDashboardShowsData(t *testing.T) {
	t.Parallel()
	s, tg := newPyroscope(t, pyroscope.Options{}), newTarget(t, target.Options{})
	p := run(t, fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: shop\n    profiles: {process_cpu: {enabled: false}}\n    static_configs:\n%swrite:\n  - {name: main, url: %q}\n",
		staticTargets("cart", tg), s.URL()))
	server := startPrometheus(t, p.admin)
	queries := dashboardQueries(t)
	require(t, len(queries) >= 20, "only %d queries", len(queries))
	for _, record := range regexp.MustCompile(`- record: (\S+)`).FindAllStringSubmatch(readText(t, monitoring+"rules.yaml"), -1) {
		queries[record[1]] = record[1]
	}
	tg.SetFault("/debug/pprof/mutex", target.HTML) // failures have a panel, too
	for title, query := range queries {
		p.wait(title, func() string {
			n, err := evaluate(server, query)
			switch {
			case err != nil:
				return err.Error()
			case n == 0:
				return "no data: " + query
			}
			return ""
		})
	}
	_, page := p.get("/metrics")
	promtool(t, page, "check", "metrics")
}

var (
	metricLiteral = regexp.MustCompile(`"((?:profpull|process)_[a-z0-9_]*[a-z0-9])"`)
	serverLiteral = regexp.MustCompile(`"profpull_" who "(_[a-z0-9_]+)"`)
	metricMention = regexp.MustCompile("[`(, ]((?:profpull|process)_[a-z0-9_]*[a-z0-9])\\b(?:[^_.]|$)")
	metricOfRule  = regexp.MustCompile(`\b((?:profpull|process)_[a-z0-9_]*[a-z0-9])\b`)
)

// metricsOfCode are the names in the tables of the program.
func metricsOfCode(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"../../[a-z]*/*.c", "../../[a-z]*/*/*.c"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if strings.HasPrefix(file, "../../tests/") || strings.HasPrefix(file, "../../build/") {
				continue
			}
			text := readText(t, file)
			for _, m := range metricLiteral.FindAllStringSubmatch(text, -1) {
				names[m[1]] = true
			}
			for _, m := range serverLiteral.FindAllStringSubmatch(text, -1) {
				names["profpull_admin"+m[1]] = true
			}
		}
	}
	require(t, len(names) >= 100, "only %d metrics in the code", len(names))
	return names
}

// Every metric of the program is in the docs, and every metric that docs, dashboard and rules name is
// one of the program.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	code, docs := metricsOfCode(t), map[string]string{}
	files, _ := filepath.Glob("../../docs/*.md")
	for _, file := range files {
		for _, m := range metricMention.FindAllStringSubmatch(readText(t, file), -1) {
			docs[m[1]] = file
		}
	}
	for name := range code {
		expect(t, docs[name] != "", "no page of docs names %s", name)
	}
	for _, file := range []string{"dashboard.json", "rules.yaml", "rules_test.yaml"} {
		for _, m := range metricOfRule.FindAllStringSubmatch(readText(t, monitoring+file), -1) {
			docs[m[1]] = file
		}
	}
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	recorded := map[string]bool{"profpull_scrapes_failed": true, "profpull_profiles_lost": true} // parts of rules' names
	for name, file := range docs {
		expect(t, code[name] || code[histogram.ReplaceAllString(name, "")] || recorded[name],
			"%s names %s, which is no metric of the program", file, name)
	}
}
