package e2e

import (
	"fmt"
	"strings"

	"profpull.test/e2e/fakes/target"
)

// ---- configurations -----------------------------------------------------------------------------

// scraping is a configuration of jobs (see job) that writes to endpoints: the keys of each (see to).
func scraping(jobs string, endpoints ...string) string {
	text := "scrape_configs:\n" + jobs + "write:\n"
	for _, keys := range endpoints {
		text += "  - {" + keys + "}\n"
	}
	return text
}

// job is a job with these keys that scrapes targets; its name is their service_name, too.
func job(name, keys string, targets ...*target.Target) string {
	return jobAt(name, keys, addresses(targets)...)
}

// jobAt is job for targets that are no fakes.
func jobAt(name, keys string, targets ...string) string {
	return fmt.Sprintf("  - {job_name: %q, %s, static_configs: [{targets: %s, labels: {service_name: %q}}]}\n",
		name, keys, quoted(targets), name)
}

// to is the endpoint "main", which writes to a server.
func to(s interface{ URL() string }) string { return "name: main, url: " + s.URL() }

// writeTo is the end of a configuration with this endpoint alone.
func writeTo(s interface{ URL() string }) string { return "write: [{" + to(s) + "}]\n" }

// only is the value of the key profiles with these types and none of the others.
func only(on string) string {
	var keys []string
	for _, name := range []string{"memory", "block", "goroutine", "mutex", "process_cpu"} {
		if !strings.Contains(on, name+":") {
			keys = append(keys, name+": {enabled: false}")
		}
	}
	return "{" + strings.Join(append(keys, on), ", ") + "}"
}

// types is only as a line of a job that is written in lines.
func types(on string) string { return "    profiles: " + only(on) + "\n" }

// staticTargets writes a static_configs entry.
func staticTargets(service string, targets ...*target.Target) string {
	return fmt.Sprintf("      - {targets: %s, labels: {service_name: %q}}\n", quoted(addresses(targets)), service)
}

func addresses(targets []*target.Target) []string {
	all := make([]string, len(targets))
	for i, t := range targets {
		all[i] = t.Addr()
	}
	return all
}

// quoted is a list of YAML.
func quoted(texts []string) string {
	return `["` + strings.Join(texts, `", "`) + `"]`
}
