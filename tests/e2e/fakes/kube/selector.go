package kube

import (
	"fmt"
	"regexp"
	"strings"
)

// matcher decides about a pod.
type matcher func(p *Pod) bool

// parseSelectors reads both kinds of selectors and the namespace of a request.
func parseSelectors(resource, namespace, labels, fields string) (matcher, error) {
	all := []matcher{func(p *Pod) bool { return p.Resource == resource }}
	if namespace != "" {
		all = append(all, func(p *Pod) bool { return p.Namespace == namespace })
	}
	for _, term := range splitTerms(labels) {
		m, err := labelTerm(term)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for _, term := range splitTerms(fields) {
		m, err := fieldTerm(term)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return func(p *Pod) bool {
		for _, m := range all {
			if !m(p) {
				return false
			}
		}
		return true
	}, nil
}

// splitTerms splits at commas outside of parentheses.
func splitTerms(text string) []string {
	var terms []string
	depth, start := 0, 0
	for i, c := range text + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			if term := strings.TrimSpace(text[start:i]); term != "" {
				terms = append(terms, term)
			}
			start = i + 1
		}
	}
	return terms
}

var setTerm = regexp.MustCompile(`^(\S+) (in|notin) \(([^)]*)\)$`)

func labelTerm(term string) (matcher, error) {
	if m := setTerm.FindStringSubmatch(term); m != nil {
		values := map[string]bool{}
		for _, v := range strings.Split(m[3], ",") {
			values[strings.TrimSpace(v)] = true
		}
		return func(p *Pod) bool {
			v, ok := p.Labels[m[1]]
			return (ok && values[v]) == (m[2] == "in")
		}, nil
	}
	if key, value, equal, ok := splitOperator(term); ok {
		return func(p *Pod) bool { return (p.Labels[key] == value) == equal }, nil
	}
	if strings.ContainsAny(term, " ()=") {
		return nil, fmt.Errorf("unable to parse requirement: %q", term)
	}
	want := !strings.HasPrefix(term, "!")
	key := strings.TrimPrefix(term, "!")
	return func(p *Pod) bool { _, ok := p.Labels[key]; return ok == want }, nil
}

func splitOperator(term string) (key, value string, equal, ok bool) {
	for _, op := range []string{"!=", "==", "="} {
		if k, v, found := strings.Cut(term, op); found {
			return strings.TrimSpace(k), strings.TrimSpace(v), op != "!=", true
		}
	}
	return "", "", false, false
}

func fieldTerm(term string) (matcher, error) {
	key, value, equal, ok := splitOperator(term)
	if !ok {
		return nil, fmt.Errorf("invalid selector: '%s'; can't understand '%s'", term, term)
	}
	get, known := map[string]func(p *Pod) string{
		"metadata.name":      func(p *Pod) string { return p.Name },
		"metadata.namespace": func(p *Pod) string { return p.Namespace },
		"spec.nodeName":      func(p *Pod) string { return p.Node },
		"status.phase":       func(p *Pod) string { return p.Phase },
		"status.podIP":       func(p *Pod) string { return p.IP },
	}[key]
	if !known {
		return nil, fmt.Errorf("field label not supported: %s", key)
	}
	return func(p *Pod) bool { return (get(p) == value) == equal }, nil
}
