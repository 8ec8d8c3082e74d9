package pyroscope

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

type pair struct{ name, value string }

// describe writes labels as the server does in its messages.
func describe(pairs []pair) string {
	sorted := append([]pair(nil), pairs...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].name < sorted[j].name })
	var parts []string
	for _, p := range sorted {
		parts = append(parts, fmt.Sprintf("%s=%q", p.name, p.value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var oldLabelName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// validateLabels applies the rules of the server to the labels of one series.
func (s *Server) validateLabels(pairs []pair) error {
	if len(pairs) == 0 {
		return fmt.Errorf("error at least one label pair is required per profile")
	}
	text := describe(pairs)
	if len(pairs) > MaxLabels {
		return fmt.Errorf("profile series '%s' has %d label names; limit %d", text, len(pairs), MaxLabels)
	}
	seen := map[string]bool{}
	for _, p := range pairs {
		if err := s.validateLabel(p, text); err != nil {
			return err
		}
		if seen[p.name] {
			return fmt.Errorf("profile with labels '%s' has duplicate label name: '%s'", text, p.name)
		}
		seen[p.name] = true
	}
	if !seen["__name__"] {
		return fmt.Errorf("invalid labels '%s' with error: invalid metric name", text)
	}
	return nil
}

// validateSamples applies them to each sample's labels, which become labels of the series; the series'
// own win.
func (s *Server) validateSamples(pairs []pair, samples []map[string]string) error {
	own := map[string]bool{}
	for _, p := range pairs {
		own[p.name] = true
	}
	for _, labels := range samples {
		all := append([]pair(nil), pairs...)
		for name, value := range labels {
			if !own[name] {
				all = append(all, pair{name, value})
			}
		}
		if err := s.validateLabels(all); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) validateLabel(p pair, text string) error {
	switch {
	case len(p.name) > MaxLabelName:
		return fmt.Errorf("profile with labels '%s' has label name too long: '%s'", text, p.name)
	case len(p.value) > MaxLabelValue:
		return fmt.Errorf("profile with labels '%s' has label value too long: '%s'", text, p.value)
	case p.name == "" || !utf8.ValidString(p.name) || s.opts.OldLabels && !oldLabelName.MatchString(p.name):
		return fmt.Errorf("invalid labels '%s' with error: invalid label name '%s'", text, p.name)
	case !utf8.ValidString(p.value):
		return fmt.Errorf("invalid labels '%s' with error: invalid label value '%s'", text, p.value)
	}
	return nil
}

// ParseName reads the grammar of the parameter `name`: app{key=value,...}. Without quoting or
// escaping; the text after an unclosed brace is lost, without an error. wide takes the charset
// of today's server (dots in keys, slashes in the app); DeepFlow's is narrower.
func ParseName(text string, wide bool) (app string, labels map[string]string, err error) {
	const (
		inApp = iota
		inKey
		inValue
		done
	)
	labels = map[string]string{}
	state := inApp
	var key, word strings.Builder
	for _, c := range text + "{" {
		switch state {
		case inApp:
			if c == '{' {
				app = strings.TrimSpace(word.String())
				if err = checkWord("service name", app, wide, true); err != nil {
					return "", nil, err
				}
				word.Reset()
				state = inKey
			} else {
				word.WriteRune(c)
			}
		case inKey:
			switch c {
			case '}':
				state = done
			case '=':
				state = inValue
			default:
				key.WriteRune(c)
			}
		case inValue:
			if c != ',' && c != '}' {
				word.WriteRune(c)
				continue
			}
			k := strings.TrimSpace(key.String())
			if k == "__name__" {
				app = strings.TrimSpace(word.String())
			} else if err = checkWord("label name", k, wide, false); err != nil {
				return "", nil, err
			} else {
				labels[k] = strings.TrimSpace(word.String())
			}
			key.Reset()
			word.Reset()
			state = inKey // also after "}": the real scanner goes on reading keys
		}
	}
	return app, labels, nil
}

func checkWord(what, word string, wide, app bool) error {
	if word == "" {
		if app {
			return fmt.Errorf("%s is required", what)
		}
		return fmt.Errorf("%s is required: ", what)
	}
	for _, c := range word {
		ok := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
		if app {
			ok = ok || c == '.' || c == '-' || c == '/' && wide
		} else {
			ok = ok || c == '.' && wide
		}
		if !ok {
			return fmt.Errorf("invalid %s: %s: character is not allowed: %q", what, word, c)
		}
	}
	return nil
}
