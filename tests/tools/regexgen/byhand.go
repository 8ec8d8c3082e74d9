package main

import (
	"fmt"
	"regexp/syntax"
	"sort"
	"strings"
	"unicode"
)

// Regexes that PCRE2 accepts and Go does not, and other texts that must be refused.
var refused = []string{
	`(?=a)`, `(?!a)`, `(?<=a)`, `(?<!a)`, `\1`, `(a)\1`, `\g1`, `\k<n>`, `(?P=n)`, `(?P>n)`, `a++`, `a*+`, `a?+`,
	`(?>a)`, `(?R)`, `(?1)`, `(?(1)a|b)`, `(?#x)`, `(?|a)`, `(?'n'a)`, `(?x)a`, `(?J)a`, `(?n)a`, `(?^)a`, `(?xx)a`,
	`(*ACCEPT)`, `(*FAIL)`, `(*UTF)`, `(*LIMIT_MATCH=1)`, `(?C1)`, `\Z`, `\G`, `\K`, `\R`, `\X`, `\N`, `\h`, `\H`, `\e`,
	`\cA`, `\o{101}`, `\8`, `\9`, `\18`, `\x4`, `\x`, `\x{`, `\x{}`, `\x{110000}`, `\x{zz}`, `\C`, `\E`, `a\E`, `[\Qa\E]`,
	`\é`, `[\é]`, `[\b]`, `[[:<:]]`, `[[:foo:]]`, `\p{L&}`, `\p{Foo}`, `\p{}`, `\p`, `\pX`, `\p{Greek`, `a{1001}`,
	`a{1,1001}`, `a{1001,}`, `a{2,1}`, `(a{1000}){2}`, `((a{100}){10}){2}`, `(?:a{2}){501}`, `(`, `)`, `a)`, `(a`, `(?i`,
	`(?:a`, `[`, `[a`, `[]`, `[^]`, `[^`, `[a-`, `[z-a]`, `[\d-`, `[a-\d]`, `*`, `+`, `?`, `{2}`, `a|*`, `(*)`, `(?:*)`, `^**`,
	`a**`, `a*?*`, `a{2}{3}`, `a+*`, `\`, `a\`, `(?P<n`, `(?P<>a)`, `(?P<n-x>a)`, `(?P<é>a)`, `(?<n`, `(?<>a)`, `(?P`, `(?P<`,
	`(?-)`, `(?i-)`, `(?--i)`, `(?-:a)`, `(?q)`, `a)|(b`, `\Qa`, `\Q`, `\Qa\`, `(?i)(?`, "\\\n\\",
}

// Same text, other meaning: what PCRE2 would read differently, and what is refused elsewhere.
var accepted = [][]string{
	{`a$`, "a", "a\n"}, {`(?m)a$`, "a", "a\n", "a\nb"}, {`(?m)a$.*`, "a\nb", "ab"}, {`(?m)(.*)^b`, "a\nb", "ab", "b"},
	{`(?m)a\n^`, "a\n"}, {`(?m)a\n$`, "a\n", "a\n\n"}, {`a\n^`, "a\n"}, {`a\z`, "a", "a\n"}, {`\Aa`, "a"}, {`a\A`, "a"},
	{`\s`, "\v", " ", "\t", "\n", "\f", "\r", "\u0085", "\u00a0"}, {`\S`, "\v", " ", "a", "\u00a0"}, {`[\s]`, "\v", " "},
	{`[^\s]`, "\v", " ", "\u2028"}, {`[[:space:]]`, "\v", " ", "\u00a0"}, {`\v`, "\v", "\n", "\r", "\u2028", "\f"}, {`[\v]`, "\v", "\n"},
	{`a{,2}`, "a", "aa", "a{,2}"}, {`a{`, "a{"}, {`a{1`, "a{1"}, {`a{1,`, "a{1,"}, {`a{ 1}`, "a{ 1}", "a"}, {`a{01}`, "a{01}", "a"}, {`{`, "{"}, {`}`, "}"}, {`]`, "]"},
	{`{,1}`, "{,1}"}, {`[\d-z]`, "5", "-", "z", "y"}, {`[\w-a]`, "-", "_", "a", "b"}, {`[[.a.]]`, "[]", ".]", "a]", "a"},
	{`[[=a=]]`, "=]", "a]", "a"}, {`[:alpha:]`, ":", "a", "b"}, {`[[:alpha:]`, "a", "["}, {`[[:^alpha:]]`, "a", "1"}, {`[[:word:]]`, "_", "é"},
	{`[[:ascii:]]`, "\x7f", "\u0080", "\x00"}, {`[[:punct:]]`, "!", "~", "a"}, {`[[:cntrl:]]`, "\x00", "\x7f", " "}, {`[[:graph:]]`, "!", " "},
	{`[[:print:]]`, " ", "\x7f"}, {`[[:blank:]]`, "\t", "\v"}, {`[[:xdigit:]]`, "f", "g"}, {`[[:alnum:]]`, "Z", "_"}, {`[[:digit:]]`, "٣", "3"},
	{`[[:lower:]]`, "k", "K"}, {`(?i)[[:lower:]]`, "k", "K", "\u212a", "1"}, {`(?i)[[:^lower:]]`, "k", "K", "\u212a", "1"}, {`[[:upper:]]`, "K", "k"},
	{`\x{d800}`, "a", "\ufffd", "b"}, {`[\x{d800}]`, "a", "\ufffd"}, {`[\x{d800}-\x{dfff}]*`, "", "a"}, {`[^\x{d800}]`, "a", "\ufffd"},
	{`[\x{d000}-\x{e000}]`, "\ud000", "\ue000", "a"}, {`[^\x00-\x{10FFFF}]`, "a", ""}, {`[^\x00-\x{10FFFF}]*`, "a", ""}, {`[\x00-\x{10FFFF}]`, "a", "\U0010ffff"},
	{`\x{10FFFF}`, "\U0010ffff"}, {`\x{0041}`, "A"}, {`\x41`, "A"}, {`\0`, "\x00"}, {`\07`, "\a"}, {`\08`, "\x008"}, {`\101`, "A"}, {`\1011`, "A1"}, {`\12`, "\n"}, {`\777`, "\u01ff"},
	{`\a\f\n\r\t\v`, "\a\f\n\r\t\v"}, {`\_\-\ \!\@`, "_- !@"}, {`\/`, "/"}, {`\"`, `"`}, {`\<\>`, "<>"},
	{`\Qa.b\E+`, "a.b", "a.bb", "axb"}, {`\Q\E`, ""}, {`\Qa\\E`, `a\`}, {`\Qa)(\Eb`, "a)(b"}, {`(?i)\Qk\E`, "K", "\u212a"}, {`\Q日\E*`, "日日"},
	{`(?i)k`, "k", "K", "\u212a"}, {`(?i)\x{212a}`, "k", "K"}, {`(?i)s`, "s", "S", "\u017f"}, {`(?i)ſ`, "s", "S"}, {`(?i)ß`, "ß", "ẞ", "ss"}, {`(?i)σ`, "Σ", "ς", "σ"},
	{`(?i)ǆ`, "Ǆ", "ǅ", "ǆ"}, {`(?i)é`, "É", "é", "e"}, {`(?i)İ`, "i", "İ", "I"}, {`(?i)ı`, "I", "ı", "i"}, {`(?i)Ω`, "ω", "Ω", "Ω"}, {`(?i)Å`, "å", "Å", "Å"},
	{`(?i)[k]`, "K", "\u212a"}, {`(?i)[^k]`, "K", "\u212a", "j"}, {`(?i)[a-z]`, "K", "\u212a", "\u017f", "1"}, {`(?i)[^a-z]`, "K", "\u212a", "1"}, {`(?i)\w`, "\u212a", "\u017f", "é"},
	{`(?i)\W`, "\u212a", "\u017f", "é"}, {`(?i)[\W]`, "\u212a", "k"}, {`(?i)[^\W]`, "\u212a", "k"}, {`(?i)[α-ω]`, "Σ", "ς", "Ω", "a"}, {`(?i)[\x00-\x{10ffff}]`, "a", "日"},
	{`(?i)[Ā-ſ]`, "s", "S", "ā"}, {`(?i)\p{Lu}`, "a", "A", "1", "ǅ"}, {`(?i)\P{Lu}`, "a", "A", "1", "日"}, {`(?i)[^\p{Lu}]`, "a", "A", "1"}, {`(?i)[^\P{Lu}]`, "a", "A", "1"},
	{`(?i)[1\P{Lu}]`, "a", "1", "2", "é"}, {`(?i)[^a\P{Lu}]`, "a", "A", "b", "1"}, {`(?i)\p{Ll}`, "a", "A", "1"}, {`(?i)\p{Lt}`, "ǆ", "Ǆ", "a"}, {`(?i)\p{Greek}`, "µ", "α", "a"}, {`(?i)\P{Greek}`, "µ", "α", "a"},
	{`(?i)\p{L}`, "ͅ", "a"}, {`(?i)\p{Mn}`, "ι", "ͅ", "a"}, {`(?i)\P{Mn}`, "ι", "ͅ", "a"}, {`(?i)\p{Any}`, "a"}, {`(?i)\p{ASCII}`, "k", "\u212a", "é"}, {`(?i)\P{ASCII}`, "k", "\u212a", "é"},
	{`\pN`, "1", "٣", "a"}, {`\PN`, "1", "a"}, {`\p{N}`, "½"}, {`\p{^N}`, "1", "a"}, {`\P{^N}`, "1", "a"}, {`[^\pN]`, "1", "a"}, {`[\pN\pL]`, "1", "a", "-"}, {`[^\PN]`, "1", "a"}, {`[\PN1]`, "1", "2", "a"},
	{`\p{Greek}`, "α", "a", "\u0342", "\u1dc0"}, {`\p{greek}`, "α"}, {`\p{Han}`, "日", "a", "、"}, {`\p{Common}`, "1", "、", "a"}, {`\p{Inherited}`, "\u0301", "a"}, {`\p{Any}`, "a", "\n"}, {`\P{Any}`, "a"}, {`\p{ASCII}`, "a", "é"},
	{`\p{Assigned}`, "a", "\u0378"}, {`\P{Assigned}`, "a", "\u0378"}, {`\p{Cn}`, "a", "\u0378"}, {`\p{C}`, "a", "\u0378", "\x00"}, {`\p{LC}`, "a", "A", "ǅ", "日"}, {`\p{Letter}`, "a", "1"}, {`\p{Uppercase_Letter}`, "A", "a"}, {`\p{uppercase letter}`, "A", "a"},
	{`[a\pN-z]`, "-", "z", "5", "b"}, {`\p{Zs}`, " ", "\u00a0", "\t"}, {`\p{Sc}`, "€", "$", "a"}, {`\p{Cs}`, "a"}, {`\p{Co}`, "\ue000"}, {`\p{Latin}`, "a", "é", "α", "ª"},
	{`[]a]`, "]", "a", "b"}, {`[^]a]`, "]", "b"}, {`[a-]`, "-", "a"}, {`[-a]`, "-"}, {`[a-c-e]`, "-", "d", "e"}, {`[--0]`, "-", ".", "0"}, {`[+--]`, "+", ",", "-"}, {`[a^]`, "^"}, {`[\]]`, "]"}, {`[\-a]`, "-"}, {`[[]`, "["}, {`[[a]`, "[", "a"}, {`[$]`, "$"}, {`[.]`, ".", "a"}, {`[(]`, "("}, {`[\[:x]`, "[", ":"},
	{`[&&a]`, "&", "a"}, {`[a-z&&[^b]]`, "a]", "b]"}, {`[~~a]`, "~"}, {`[a||b]`, "|"}, {`#a`, "#a"}, {`a b`, "a b"}, {`[\x{1F600}-\x{1F64F}]`, "\U0001f600", "a"},
	{``, "", "a"}, {`()`, "", "a"}, {`(|a)`, "", "a"}, {`(a|)`, "", "a"}, {`a||b`, "", "a", "b"}, {`|`, "", "a"}, {`(?:)`, ""}, {`(?:)*`, "", "a"}, {`(|)`, ""},
	{`a*?`, "aa"}, {`(a*?)(a*)`, "aa"}, {`(a+?)(a*)`, "aaa"}, {`(a??)(a?)`, "a"}, {`(a{1,2}?)(a*)`, "aaa"}, {`(?U)(a*)(a*)`, "aa"}, {`(?U)(a*?)(a*)`, "aa"}, {`(?U:a*)(a*)`, "aa"},
	{`(a|ab)(c|bcd)(d*)`, "abcd"}, {`(ab|a)(bcd|c)(d*)`, "abcd"}, {`(a)|(b)`, "a", "b"}, {`(?:(a)|b)*`, "ab", "ba"}, {`(?:(a)|(b))+`, "ab", "ba"}, {`(a)?b`, "b", "ab"}, {`((a)|b)+`, "ab"},
	{`(?P<n>a)(?P<n>b)`, "ab"}, {`(?P<n>a)|(?P<n>b)`, "a", "b"}, {`(?<1>a)`, "a"}, {`(?<n>a)(?<m_2>b)`, "ab"}, {`(?P<averyveryveryveryveryveryveryverylongname>a)`, "a"},
	{`(?i)a(?-i)b`, "Ab", "AB"}, {`(?i:a)b`, "Ab", "AB"}, {`a(?i)b|c`, "aB", "C", "A"}, {`(a(?i)b)c`, "aBc", "aBC"}, {`(?)a`, "a"}, {`(?:)a`, "a"}, {`(?i-s).`, "\n", "a"}, {`(?-s).`, "\n", "a"}, {`(?-s).*`, "a\nb", "ab"}, {`(?s).`, "\n"}, {`.`, "\n", "日", "", "ab"}, {`(?-s:.).`, "\na", "a\n"},
	{`a(?i)*`, "aa", "A"}, {`a*(?i)*`, "aa"}, {`(?i)(?-i)a`, "a", "A"}, {`(?im-Us)a`, "A"}, {`(?s-i)a`, "a"}, {`(?i)(?i)a`, "A"},
	{`^a`, "a"}, {`^a$`, "a"}, {`^^a$$`, "a"}, {`^*a`, "a"}, {`$*`, ""}, {`a^`, "a"}, {`$a`, "a"}, {`a$b`, "ab"}, {`(^a)`, "a"}, {`(?:^|,)a`, "a", ",a"}, {`^a|b$`, "a", "b", "ab"}, {`(^|a)+b`, "b", "ab"}, {`\b*a`, "a"}, {`(?:\b)+a`, "a"},
	{`\ba\b`, "a"}, {`a\b`, "a"}, {`a\bé`, "aé"}, {`é\b`, "é"}, {`\Bé`, "é"}, {`a\Bb`, "ab"}, {`.*\bfoo\b.*`, "a foo b", "afoo"}, {`\b`, "", "a"}, {`\B`, ""},
	{`a{0}`, "", "a"}, {`a{0}b`, "b"}, {`(a){0}b`, "b", "ab"}, {`a{0,0}`, ""}, {`a{1,1}`, "a"}, {`a{3,}`, "aa", "aaa", "aaaa"}, {`(a{2}){2}`, "aaaa", "aaa"}, {`a{0,2}`, "", "aaa"}, {`(?:a{2}){3}`, "aaaaaa"}, {`(a{100}){10}`, strings.Repeat("a", 20)}, {`a{1000}`, strings.Repeat("a", 1000)}, {`(?:ab){2,3}?`, "abab", "ababab"}, {`a{2}?`, "aa"},
	{`(a*)*`, "", "aa", "b"}, {`(a*)+`, "", "aa"}, {`(|a)*`, "", "aa"}, {`(|a)+`, "", "aa"}, {`(a|b*)*`, "ab", "ba"}, {`(a*?)*`, "aa"}, {`(?:(a)|)*`, "aa"}, {`((a?)b?)*`, "ab", "aab"}, {`(a?){3}`, "a", "aaaa"}, {`(a*){2,3}`, "aa"},
	{`(.*)`, "", "a", "a\nb"}, {`.*`, "", "é"}, {`.+`, "", "é"}, {`(.+)`, "", "é", "\n"}, {`(.*?)`, "", "a"}, {`foo`, "foo", "fo", "fooo", ""}, {`(foo)`, "foo", "bar"}, {`foo|bar`, "foo", "bar", "foobar", ""}, {`(foo|bar|)`, "foo", "", "b"},
	{`(?:foo|bar)`, "bar"}, {`foo.*`, "foo", "foobar", "fo"}, {`foo.+`, "foo", "foob"}, {`foo(.*)`, "foo", "foobar"}, {`foo(.+)`, "foo", "foobar", "fo"}, {`(foo.*)`, "foo", "foox", "fo"}, {`(foo(.*))`, "foox"}, {`.*bar`, "bar", "foobar", "ba"},
	{`(.+)bar`, "bar", "xbar"}, {`a(.*)a`, "a", "aa", "aba"}, {`a(.+?)a`, "aa", "aba", "aéa"}, {`(a.*b)`, "ab", "axb", "b"}, {`((.*))`, "x"}, {`((a.*a))`, "aa", "a"}, {`^foo$`, "foo"}, {`^foo|bar$`, "foo", "bar"}, {`^(.*)$`, "x"}, {`^(?:foo)$`, "foo"}, {`(^foo$)`, "foo"}, {`日(.*)本`, "日本", "日x本", "日"},
	{`(.+?)(?::\d+)?;(\d+)`, "10.1.2.3:8080;6060", "10.1.2.3;6060", "[fd00::5]:8080;6060", "10.1.2.3:8080;", ";1"}, {`([^:]+)(?::\d+)?;(\d+)`, "10.1.2.3:8080;6060", "[fd00::5]:1;2"}, {`(.+?)(\:\d+)?;(\d+)`, "h;1", "h:2;1"},
	{`^(?:;*)?([^;]+).*$`, "a;b", ";b", ";", ""}, {`(?:.+,|^)path:(/[^,]+).*`, "path:/secret,job:some-job", "a,path:/x"}, {`__meta_kubernetes_pod_label_(.+)`, "__meta_kubernetes_pod_label_app", "__meta_kubernetes_pod_label_", "__meta_kubernetes_pod_labelpresent_app"},
	{`Pending|Succeeded|Failed|Completed`, "Succeeded", "SucceededX"}, {`some-([^-]+)-([^,]+)`, "some-name-value"}, {`(line1).*(?<second>line2)`, "line1\nline2"}, {`(.*)some-[regex]`, "foo;example-some-x", "foo;example-some-x.com"}, {`.*-metrics`, "http-metrics", "metrics"},
	{`https?`, "http", "https", "httpss"}, {`(http|https)://([^/]+)(/.*)?`, "http://a.b/c", "https://a", "ftp://a"}, {`([^/]+)/(.*)`, "a/b/c", "a"}, {`(\w+)-(\w+)-[0-9a-f]{5}`, "web-abc-12ef0", "web-abc-12ef"}, {`(.*)-[0-9a-f]{8,10}-[a-z0-9]{5}`, "app-6d4cf56db6-x7k2p"},
	{`\d+`, "٣", "123"}, {`\w+`, "aé", "a_1"}, {`.{2}`, "日本", "a"}, {`..`, "日本"}, {`[日-本]`, "日", "本", "a"}, {`日*`, "日日"}, {`é+`, "éé"},
}

func emitByHand() {
	for _, p := range refused {
		emit(p, 0)
	}
	for _, row := range accepted {
		emit(row[0], 0, row[1:]...)
	}
	// Around the limit of 1,000 levels.
	for _, depth := range []int{10, 300, 997, 998, 999, 1000, 1001, 1500} {
		emit(strings.Repeat("(", depth)+"a"+strings.Repeat(")", depth), 0)
		emit(strings.Repeat("(", depth)+"a"+strings.Repeat(")", depth)+"b", 0)
	}
	for _, depth := range []int{10, 300, 498, 499, 500, 501, 700} {
		emit(strings.Repeat("(", depth)+"a"+strings.Repeat(")?", depth), 0)
	}
	// PCRE2 10.46 allows somewhat fewer levels than 10.42 does.
	emit(strings.Repeat("(?:", 300)+"a"+strings.Repeat(")?", 300), 0, "a", "")
	for _, depth := range []int{10, 300, 800} {
		emit(strings.Repeat("(?:", depth)+"a"+strings.Repeat(")", depth), 0, "a")
		emit(strings.Repeat("(?:a", depth)+strings.Repeat(")", depth), 0, strings.Repeat("a", depth))
	}
	emit(strings.Repeat("(", 200)+"a"+strings.Repeat(")", 200), 0, "a")
	// Every class that can be named, inside and outside of brackets; those with '_' are refused by
	// some versions of Go.
	for _, t := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		for _, name := range sorted(t) {
			if _, err := syntax.Parse(`\p{`+name+`}`, syntax.Perl); err == nil && !recent[name] {
				first := firstRune(t[name])
				emit(fmt.Sprintf(`\p{%s}`, name), 0, first, "a", "1", "é")
			}
		}
	}
}

// emitSurrogatePrefixes asks for surrogates at the start of a pattern, which Go turns into U+FFFD if the pattern
// leaves no choice, and for those elsewhere, which match nothing.
func emitSurrogatePrefixes() {
	subjects := []string{"\ufffd", "a\ufffd", "\ufffdb", "a\ufffdb", "\ufffdbb", "\ufffd\ufffd", "\ufffd\ufffdb", "", "b"}
	for _, s := range []string{`\x{d800}`, `[\x{dfff}]`, `(?i)\x{d800}`, `(?:\x{d800})`, `\x{d800}\x{dc00}`, `\x{d800}\x{fffd}`, `(?:a\x{d800})`} {
		for _, after := range []string{``, `b`, `.`, `[bc]`, `(b)`, `(?:b|c)`, `(b|c)`, `.*`, `b*`, `b+?`, `(.*)`, `.{1,2}`, `b{2}`, `()`, `$`, `\b`, `b$`} {
			for _, before := range []string{``, `a`, `(?:)`} {
				emit(before+s+after, 0, subjects...)
			}
		}
		for _, before := range []string{`.`, `^`, `()`, `(a)`, `a*`, `a?`, `\b`, `(?i:a)`, `[ab]`, `\x{fffd}`, `b|`} {
			emit(before+s, 0, subjects...)
		}
		for _, after := range []string{`.*b`, `(b*)b`, `.?b`, `(?:b*)+c`, `|b`} {
			emit(s+after, 0, subjects...)
		}
		emit(`(`+s+`)`, 0, subjects...)
		emit(`(?:`+s+`|b)a`, 0, subjects...)
	}
	emit(`[\x{d800}-\x{d801}]`, 0, subjects...)
	emit(`[a\x{d800}]`, 0, subjects...)
}

// Classes that begin, end or have a gap at each side of the surrogates, which are in no text.
func emitSurrogateBoundaries() {
	runes := []string{`\x{d7fe}`, `\x{d7ff}`, `\x{d800}`, `\x{dfff}`, `\x{e000}`, `\x{e001}`}
	subjects := []string{"\ud7fe", "\ud7ff", "\ue000", "\ue001", "a", "\U0010ffff"}
	for i, lo := range runes {
		emit(`[`+lo+`]`, 0, subjects...)
		emit(`[^`+lo+`]`, 0, subjects...)
		emit(`[^a`+lo+`]`, 0, subjects...)
		for _, hi := range runes[i+1:] {
			emit(`[`+lo+`-`+hi+`]`, 0, subjects...)
			emit(`[^`+lo+`-`+hi+`]`, 0, subjects...)
			emit(`[^`+lo+hi+`]`, 0, subjects...)
		}
		emit(`[\x00-`+lo+`]`, 0, subjects...)
		emit(`[`+lo+`-\x{10ffff}]`, 0, subjects...)
		emit(`[^\x00-`+lo+`]`, 0, subjects...)
		emit(`[^`+lo+`-\x{10ffff}]`, 0, subjects...)
	}
	emit(`[^\x{e000}-\x{f8ff}]+-[a-z]+`, 0, "web-prod", "\ue000-prod")
	emit(`x[^\x{e000}]*`, 0, "x", "xa", "x\ue000")
}

// emitBacktracking writes regexes that take a backtracking matcher a time that doubles with each character.
func emitBacktracking() {
	emit(`([a-z0-9]+-?)+`, 0, "prometheus-kube-state-metrics_v2", "prometheus-kube-state-metrics")
	emit(`(\w+\.?)+:\d+`, 0, "prometheus.kube.state.metrics.monitoring.svc:", "a.b.c:80")
	emit(`([a-z]+-?)+-[0-9]+`, 0, "prometheus-kube-state-metrics-v", "prometheus-kube-state-7")
	emit(`\s*(.*?)\s*;(\d+)`, 0, strings.Repeat(" ", 3000)+"x;1", strings.Repeat(" ", 3000))
	a := strings.Repeat("a", 40)
	for _, p := range []string{`(a+)+b`, `(a|aa)+b`, `(a|a)*b`, `(?:(a+)+b|x)`, `(a*)*b`, `((a?b?)*c?)*d`, `(?:(?:a?){20}){2}a{40}`} {
		emit(p, 0, a, a+"b", a+"bd", a+"c")
	}
	emit(`(.*)*`, 0, "", "a", "a\nb")
	emit(`(.*)+`, 0, "", "a")
	emit(`(?:(.*)|b)*`, 0, "ab", "")
	emit(`(.*?)*`, 0, "ab", "")
	emit(`(?:(a*)(b*))*`, 0, "aabab", "")
	emit(`((a)|b?)*c`, 0, "abac", "c")
	emit(`(\b|a)*`, 0, "aa", "")
	emit(`((?:^|a)*b?){2,}`, 0, "ab", "aab")
	emit(`(?i)(\p{Lu}|\P{Greek})*é`, 0, "aÉ", "αé", "日本é")
	emit(`((?:[\pN\p{Lu}]|-)+,?)+x`, 0, "A1-B2,C3", "Ä٣-,x", "ä")
}

// Scripts of Unicode 15, which PCRE2 10.42 does not know.
var recent = map[string]bool{"Kawi": true, "Nag_Mundari": true}

func sorted(m map[string]*unicode.RangeTable) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// firstRune gives a rune of a table that is no surrogate, or "" if there is none.
func firstRune(t *unicode.RangeTable) string {
	for _, r := range t.R16 {
		if r.Lo < 0xd800 || r.Lo > 0xdfff {
			return string(rune(r.Lo))
		}
	}
	for _, r := range t.R32 {
		return string(rune(r.Lo))
	}
	return ""
}
