package main

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
)

func line(name, format string, args ...any) {
	fmt.Printf("  %-34s %s\n", name, fmt.Sprintf(format, args...))
}

func (l load) report(before, after sample) {
	elapsed := after.at.Sub(before.at).Seconds()
	done := after.scrapes["ok"] - before.scrapes["ok"]
	other := 0.0
	for result, n := range after.scrapes {
		if result != "ok" && result != "skipped" {
			other += n - before.scrapes[result]
		}
	}
	due := float64(*nTargets*l.types) * elapsed / l.interval.Seconds()
	sent := after.sent - before.sent
	program, generator := after.program-before.program, after.generator-before.generator

	fmt.Printf("%d targets x %d types every %s, measured for %.0f s on %d cores\n", *nTargets, l.types, l.interval, elapsed, runtime.NumCPU())
	line("scrapes", "%.0f of %.0f due (%.1f %%), %.0f/s", done, due, 100*done/due, done/elapsed)
	line("failed, skipped", "%.0f, %.0f%s", other, after.scrapes["skipped"]-before.scrapes["skipped"], reasons(before, after))
	line("lateness p50 / p99 / max", "%s / %s / %s", late(before, after, 0.5), late(before, after, 0.99), late(before, after, 1))
	line("profiles sent, dropped, waiting", "%.0f, %.0f, %.0f", sent, after.dropped-before.dropped, after.queued)
	line("ledger", "%s", ledger(after))
	if *record != "" {
		line("recorded", "%.0f sums, %.0f without a result", after.recorded-before.recorded, after.unrecorded-before.unrecorded)
	}
	if after.bytes > 0 {
		line("bytes fetched", "%.1f MB/s, %.1f KB a profile", (after.bytes-before.bytes)/elapsed/1e6, (after.bytes-before.bytes)/(done+1e-9)/1e3)
	}
	line("CPU of profpull", "%.2f s (user %.2f, system %.2f): %.1f %% of a core", program, after.userCPU-before.userCPU,
		after.systemCPU-before.systemCPU, 100*program/elapsed)
	line("CPU for 1,000 profiles", "%.3f s%s", 1000*program/(sent+1e-9), lost(after.dropped-before.dropped, sent))
	line("CPU of the fakes", "%.2f s: %.1f %% of a core%s", generator, 100*generator/elapsed, saturated(generator/elapsed))
	line("CPU profpull : fakes", "%.2f", program/(generator+1e-9))
	line("resident memory, peak", "%.1f MiB, %.1f MiB (%.1f KiB a target)", mib(after.rss), mib(after.peak), 1024*mib(after.rss)/float64(*nTargets))
	line("growth of it while measured", "%+.1f MiB", mib(after.rss-before.rss))
	line("descriptors, threads, in flight", "%d, %d, %.0f", after.fds, after.threads, after.inFlight)
	line("/metrics", "%d samples, %.1f KB, %.1f ms", after.nSamples, float64(after.metricsSize)/1e3, 1e3*after.metricsTime.Seconds())
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func late(before, after sample, q float64) string {
	v, exact := quantile(before.late, after.late, q)
	switch {
	case q == 1 && exact:
		return fmt.Sprintf("under %.3g ms", 1e3*v)
	case exact:
		return fmt.Sprintf("%.2f ms", 1e3*v)
	}
	return fmt.Sprintf("over %.3g ms", 1e3*v)
}

func ledger(s sample) string {
	if s.accepted == s.sent+s.dropped+s.merged+s.queued {
		return "balances"
	}
	return fmt.Sprintf("DOES NOT BALANCE: accepted %.0f, sent %.0f, dropped %.0f, merged %.0f, waiting %.0f", s.accepted, s.sent, s.dropped, s.merged, s.queued)
}

// lost says when the figure above includes the cost of profiles that did not arrive.
func lost(dropped, sent float64) string {
	if dropped > sent/100 {
		return "  TOO MUCH WAS ASKED: this includes profiles that were dropped"
	}
	return ""
}

func saturated(share float64) string {
	if share > 0.85 {
		return "  SATURATED: the figures above say more about the fakes"
	}
	return ""
}

func reasons(before, after sample) string {
	var parts []string
	for reason, n := range after.failures {
		if n -= before.failures[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f", reason, n))
		}
	}
	sort.Strings(parts)
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
