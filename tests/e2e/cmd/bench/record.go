package main

import (
	"fmt"
	"log"
	"strings"
)

// recordTypes are what the five rules count. The types do not depend on deltas, so that the rules count
// all CPU profiles, heaps and goroutines with -delta off as well.
var recordTypes = []struct{ metric, profileType, function string }{
	{"cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", ""},
	{"function_cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "example.com/shop/cpu.(*Cart).step1"},
	{"heap", "memory:inuse_space:bytes:space:bytes", ""},
	{"heap_objects", "memory:inuse_objects:count:space:bytes", ""},
	{"goroutines", "goroutine:goroutine:count:goroutine:count", ""},
}

// recordSection returns the section of the configuration for a value of -record. The rules that nothing
// matches differ from the others in the service alone: their type exists.
func recordSection(mode string) string {
	services := map[string]string{"": "", "miss": "another", "match": "bench"}
	service, known := services[mode]
	if !known {
		log.Fatalf("-record %s: miss or match", mode)
	}
	if service == "" {
		return ""
	}
	var s strings.Builder
	s.WriteString("record:\n  rules:\n")
	for _, t := range recordTypes {
		fmt.Fprintf(&s, "    - {metric_name: profiles_recorded_%s, group_by: [service_name, namespace], matchers: ['{__profile_type__=\"%s\", service_name=\"%s\"}']",
			t.metric, t.profileType, service)
		if t.function != "" {
			fmt.Fprintf(&s, ", function: \"%s\"", t.function)
		}
		s.WriteString("}\n")
	}
	return s.String()
}
