// Prints what Go's regexp says about many patterns, each anchored as relabel rules have it:
// ^(?s:pattern)$. The unit test test_regex_golden replays it against regex/regex.h.
//
//	go run tests/tools/regexgen/*.go > tests/unit/data/regex.jsonl
//
// One JSON object a line:
//
//	{"p": pattern, "e": why it is refused}
//	{"p": pattern, "x": true, "s": [[subject, [0, 3, -1, -1, ...]], [subject, null], ...]}
//
// The numbers are the byte offsets of group 0, 1 and so on, -1 for a group that took no part; null
// is no match. "x" marks patterns that have groups and repeat something that can match nothing.
// "u" marks patterns that only pass because the parentheses of the anchors complete them.
// The output is the same on every run.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

type golden struct {
	Pattern  string  `json:"p"`
	Error    string  `json:"e,omitempty"`
	Unbound  bool    `json:"u,omitempty"`
	Empty    bool    `json:"x,omitempty"`
	Subjects [][]any `json:"s,omitempty"`
}

var (
	out  = bufio.NewWriter(os.Stdout)
	enc  = json.NewEncoder(out)
	seen = map[string]bool{}
	rnd  = rand.New(rand.NewSource(1))
)

func code(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return err.Error()
}

func nullable(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return nullable(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || nullable(re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			if !nullable(s) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			if nullable(s) {
				return true
			}
		}
		return false
	}
	return true
}

// repeatsEmpty reports whether a repetition can go round without reading anything.
func repeatsEmpty(re *syntax.Regexp) bool {
	loop := re.Op == syntax.OpStar || re.Op == syntax.OpPlus ||
		re.Op == syntax.OpRepeat && (re.Max == -1 || re.Max > 1)
	if loop && nullable(re.Sub[0]) {
		return true
	}
	for _, s := range re.Sub {
		if repeatsEmpty(s) {
			return true
		}
	}
	return false
}

// member gives a rune of a class. It keeps to scripts without additions in recent versions of
// Unicode, as PCRE2 may have older tables than Go.
func member(ranges []rune) rune {
	for tries := 0; tries < 50; tries++ {
		i := 2 * rnd.Intn(len(ranges)/2)
		lo, hi := ranges[i], ranges[i+1]
		r := lo + rune(rnd.Intn(min(int(hi-lo)+1, 30)))
		if r < 0xc00 || r >= 0x4e00 && r <= 0x9fa5 {
			return r
		}
	}
	return 'a'
}

// sample makes a text that the pattern matches, as far as that is simple.
func sample(re *syntax.Regexp, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			b.WriteRune(r)
		}
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(member(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune([]rune("ab;1é\n日")[rnd.Intn(7)])
	case syntax.OpCapture:
		sample(re.Sub[0], b)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		lo, hi := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			lo, hi = 0, 3
		case syntax.OpPlus:
			lo, hi = 1, 3
		case syntax.OpQuest:
			lo, hi = 0, 1
		}
		if hi < 0 {
			hi = lo + 2
		}
		hi = min(hi, lo+3)
		for n := lo + rnd.Intn(hi-lo+1); n > 0 && b.Len() < 60; n-- {
			sample(re.Sub[0], b)
		}
	case syntax.OpConcat:
		for _, s := range re.Sub {
			sample(s, b)
		}
	case syntax.OpAlternate:
		sample(re.Sub[rnd.Intn(len(re.Sub))], b)
	}
}

func mutate(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return "a"
	}
	i := rnd.Intn(len(r))
	switch rnd.Intn(3) {
	case 0:
		return string(r[:i]) + string(r[i+1:])
	case 1:
		return string(r[:i]) + string([]rune("ab;A\nk ")[rnd.Intn(7)]) + string(r[i:])
	}
	r[i] = []rune("abB;_1")[rnd.Intn(6)]
	return string(r)
}

// emit writes the line of one pattern; random adds that many subjects made from it.
func emit(pattern string, random int, subjects ...string) {
	if seen[pattern] || !utf8.ValidString(pattern) {
		return
	}
	seen[pattern] = true
	g := golden{Pattern: pattern}
	tree, bare := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	re, err := regexp.Compile("^(?s:" + pattern + ")$")
	switch {
	case bare != nil && err == nil:
		g.Error, g.Unbound = code(bare), true
	case bare != nil:
		g.Error = code(bare)
	case err != nil:
		g.Error = code(err)
	default:
		g.Empty = tree.MaxCap() > 0 && repeatsEmpty(tree)
		for i := 0; i < random; i++ {
			var b strings.Builder
			sample(tree, &b)
			s := b.String()
			if i%3 == 2 {
				s = mutate(s)
			}
			subjects = append(subjects, strings.ToValidUTF8(s, "?"))
		}
		once := map[string]bool{}
		for _, s := range subjects {
			if !once[s] {
				once[s] = true
				g.Subjects = append(g.Subjects, []any{s, re.FindStringSubmatchIndex(s)})
			}
		}
	}
	if err := enc.Encode(g); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pick(list ...string) string {
	return list[rnd.Intn(len(list))]
}

// atom, piece and expr make random patterns that are mostly valid.
func atom(depth int) string {
	if depth > 0 && rnd.Intn(3) == 0 {
		open := pick("(", "(", "(", "(?:", "(?:", "(?i:", "(?U:", "(?P<n>", "(?<m>", "(?s-i:", "(?-s:", "(?m:")
		return open + expr(depth-1) + ")"
	}
	return pick("a", "b", "a", "b", "ab", "k", "K", "s", "é", "日", ";", ":", "_", "1",
		".", ".", `\d`, `\w`, `\s`, `\D`, `\W`, `\S`, `\.`, `\-`, `\n`, `\v`, `\x41`, `\x{e9}`, `\101`,
		"[ab]", "[^a]", "[^;]", "[a-z]", "[[:alpha:]]", "[^[:space:]]", `[\d-z]`, `[\s\S]`, `[^\W_]`,
		`\pL`, `\PN`, `\p{Greek}`, `[\pN_]`, `[^\PL]`, `\Qa.b\E`, "^", "$", `\b`, `\B`, `\A`, `\z`, "")
}

func piece(depth int) string {
	s := atom(depth)
	switch rnd.Intn(4) {
	case 0:
		s += pick("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}", "{0}", "{,2}", "{")
	}
	return s
}

func expr(depth int) string {
	var b strings.Builder
	for n := 1 + rnd.Intn(3); n > 0; n-- {
		b.WriteString(piece(depth))
	}
	if rnd.Intn(4) == 0 {
		b.WriteString("|" + expr(depth-1+0*depth))
	}
	return b.String()
}

// noise makes a pattern that is mostly invalid.
func noise() string {
	var b strings.Builder
	for n := 1 + rnd.Intn(8); n > 0; n-- {
		b.WriteString(pick("(", ")", "[", "]", "{", "}", "|", "*", "+", "?", `\`, "^", "$", ".", "-", ",",
			"0", "1", "2", "1001", "9", "a", "z", "é", "(?", "(?i", "(?P<", "(?<", ">", ":", "[:", ":]", "i", "s", "-",
			"(?:", `\Q`, `\E`, `\p`, `\P`, "{L}", "{Greek}", "{Lu", "^", `\x`, "{41}", `\d`, `\b`, `\C`, `\z`, "{2,3}", "{3,2}"))
	}
	return b.String()
}

func main() {
	enc.SetEscapeHTML(false)
	emitByHand()
	for i := 0; i < 1800; i++ {
		emit(expr(3), 3)
	}
	for i := 0; i < 1500; i++ {
		emit(noise(), 2)
	}
	emitSurrogateBoundaries()
	emitSurrogatePrefixes()
	emitBacktracking()
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
