// Command jfrcheck compares the profiles that jfr-tool makes of a recording with its events as the JDK's own
// reader prints them: every stack and every value of every event has to be in the right profile.
//
//	jfrcheck -tool build/tests/jfr-tool -jfr jfr FILE...
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

type frame struct {
	Method struct {
		Type struct{ Name string }
		Name string
	}
	LineNumber int64
}

type event struct {
	Type   string
	Values map[string]json.RawMessage
}

// kinds says which profile an event belongs to, and which field is its value.
var kinds = map[string]struct{ profile, field string }{
	"jdk.ExecutionSample":             {"process_cpu cpu", ""},
	"jdk.CPUTimeSample":               {"process_cpu cpu", "samplingPeriod"},
	"jdk.ObjectAllocationInNewTLAB":   {"memory alloc_in_new_tlab_objects alloc_in_new_tlab_bytes", "tlabSize"},
	"jdk.ObjectAllocationOutsideTLAB": {"memory alloc_outside_tlab_objects alloc_outside_tlab_bytes", "allocationSize"},
	"jdk.ObjectAllocationSample":      {"memory alloc_sample_objects alloc_sample_bytes", "weight"},
	"jdk.JavaMonitorEnter":            {"mutex contentions delay", "duration"},
	"jdk.ThreadPark":                  {"block contentions delay", "duration"},
}

// sum is what a stack has in a profile; n is the number of its events.
type sum struct {
	values []int64
	n      int
}

var (
	lambda   = regexp.MustCompile(`^(.+\$\$Lambda)(\$?\d*[./](0x)?[\da-f]+|\d+)$`)
	accessor = regexp.MustCompile(`^(jdk\.internal\.reflect\.GeneratedMethodAccessor)(\d+)$`)
	period   = regexp.MustCompile(`^PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$`)
)

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "jfrcheck: "+format+"\n", args...)
	os.Exit(1)
}

// number reads a number, or a duration such as PT0.012S as nanoseconds.
func number(raw json.RawMessage) int64 {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			fail("no number: %s", raw)
		}
		return n
	}
	m := period.FindStringSubmatch(text)
	if m == nil {
		fail("no duration: %s", text)
	}
	var seconds float64
	for i, factor := range []float64{3600, 60, 1} {
		if m[i+1] != "" {
			v, err := strconv.ParseFloat(m[i+1], 64)
			if err != nil {
				fail("no duration: %s", text)
			}
			seconds += v * factor
		}
	}
	return int64(math.Round(seconds * 1e9))
}

// dotted is a name as both sides can have it: the JDK's reader has dots where the recording has slashes.
func dotted(class string) string {
	class = strings.ReplaceAll(class, "/", ".")
	class = accessor.ReplaceAllString(class, "${1}_")
	return lambda.ReplaceAllString(class, "${1}_")
}

func stackOf(raw json.RawMessage) (string, bool) {
	var stack *struct{ Frames []frame }
	if err := json.Unmarshal(raw, &stack); err != nil {
		fail("stack: %v", err)
	}
	if stack == nil {
		return "", false
	}
	var parts []string
	for _, f := range stack.Frames {
		parts = append(parts, fmt.Sprintf("%s.%s:%d", dotted(f.Method.Type.Name), f.Method.Name, f.LineNumber))
	}
	return strings.Join(parts, ";"), true
}

func add(profiles map[string]map[string]*sum, profile, stack string, values ...int64) {
	if profiles[profile] == nil {
		profiles[profile] = map[string]*sum{}
	}
	s := profiles[profile][stack]
	if s == nil {
		s = &sum{values: make([]int64, len(values))}
		profiles[profile][stack] = s
	}
	s.n++
	for i, v := range values {
		s.values[i] += v
	}
}

// expected reads the events with the JDK. periodNS is that of jdk.ExecutionSample.
func expected(jfr, file string, periodNS int64) (map[string]map[string]*sum, int) {
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	out, err := exec.Command(jfr, "print", "--json", "--stack-depth", "100000", "--events", strings.Join(names, ","), file).Output()
	if err != nil {
		fail("jfr print: %v", err)
	}
	var all struct {
		Recording struct{ Events []event }
	}
	if err := json.Unmarshal(out, &all); err != nil {
		fail("jfr print: %v", err)
	}
	profiles := map[string]map[string]*sum{}
	n := 0
	for _, e := range all.Recording.Events {
		kind, known := kinds[e.Type]
		if !known {
			continue
		}
		stack, ok := stackOf(e.Values["stackTrace"])
		if !ok {
			continue
		}
		n++
		switch e.Type {
		case "jdk.ExecutionSample":
			if string(e.Values["state"]) == `"STATE_SLEEPING"` {
				continue
			}
			add(profiles, kind.profile, stack, periodNS)
		case "jdk.CPUTimeSample":
			if string(e.Values["failed"]) != "true" {
				add(profiles, kind.profile, stack, number(e.Values[kind.field]))
			}
		default:
			add(profiles, kind.profile, stack, 1, number(e.Values[kind.field]))
		}
	}
	return profiles, n
}

// got reads what jfr-tool prints.
func got(tool, file string) map[string]map[string]*sum {
	out, err := exec.Command(tool, "stacks", file).Output()
	if err != nil {
		fail("jfr-tool: %v", err)
	}
	profiles := map[string]map[string]*sum{}
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		parts := strings.Split(string(line), "\t")
		if len(parts) != 3 {
			fail("jfr-tool printed %q", line)
		}
		var frames []string
		for _, f := range strings.Split(parts[1], ";") {
			if f == "" {
				continue // a stack without frames
			}
			colon := strings.LastIndex(f, ":")
			dot := strings.LastIndex(f[:colon], ".")
			number, _ := strconv.ParseInt(f[colon+1:], 10, 64)
			frames = append(frames, fmt.Sprintf("%s%s:%d", dotted(f[:dot]), f[dot:colon], int32(uint32(number))))
		}
		var values []int64
		for _, v := range strings.Fields(parts[2]) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				fail("jfr-tool printed %q", line)
			}
			values = append(values, n)
		}
		add(profiles, parts[0], strings.Join(frames, ";"), values...)
	}
	return profiles
}

// compare counts the stacks that differ. Durations may differ by a nanosecond for each event, since the JDK
// rounds in floating point.
func compare(want, have map[string]map[string]*sum) int {
	bad := 0
	complain := func(format string, args ...any) {
		if bad++; bad <= 10 {
			fmt.Printf("FAIL "+format+"\n", args...)
		}
	}
	for profile, stacks := range want {
		for stack, w := range stacks {
			h := have[profile][stack]
			if h == nil {
				complain("%s: no stack %s", profile, stack)
				continue
			}
			for i := range w.values {
				slack := 0
				if strings.HasSuffix(profile, " delay") && i == 1 {
					slack = w.n
				}
				if d := w.values[i] - h.values[i]; d > int64(slack) || -d > int64(slack) {
					complain("%s: %v, expected %v of %s", profile, h.values, w.values, stack)
				}
			}
		}
	}
	for profile, stacks := range have {
		for stack := range stacks {
			if want[profile][stack] == nil {
				complain("%s: a stack that is not in the recording: %s", profile, stack)
			}
		}
	}
	return bad
}

func main() {
	tool := flag.String("tool", "", "jfr-tool")
	jfr := flag.String("jfr", "jfr", "the JDK's jfr")
	periodMS := flag.Int64("period", 10, "of jdk.ExecutionSample in the recording, in ms")
	flag.Parse()
	bad := 0
	for _, file := range flag.Args() {
		want, events := expected(*jfr, file, *periodMS*1e6)
		if events == 0 {
			fail("%s has no events to compare", file)
		}
		stacks := 0
		for _, p := range want {
			stacks += len(p)
		}
		bad += compare(want, got(*tool, file))
		fmt.Printf("%s: %d events, %d stacks in %d profiles\n", file, events, stacks, len(want))
	}
	if bad > 0 {
		fail("%d stacks differ", bad)
	}
}
