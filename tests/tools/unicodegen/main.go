// Prints base/unicode_tables.c from the tables of Go's unicode package, so that label values
// change case, and regexes fold and name classes, exactly as Prometheus does:
//
//	go run tests/tools/unicodegen/main.go > base/unicode_tables.c
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"unicode"
)

var out = bufio.NewWriter(os.Stdout)

// row collects cells and breaks the line before column 100.
type row struct{ line string }

func (r *row) add(cell string) {
	if len(r.line)+len(cell)+1 > 96 {
		r.flush()
	}
	if r.line == "" {
		r.line = "   "
	}
	r.line += " " + cell
}

func (r *row) flush() {
	if r.line != "" {
		fmt.Fprintln(out, r.line)
	}
	r.line = ""
}

func caseRanges() {
	fmt.Fprintln(out, "const struct case_range unicode_case_ranges[] = {")
	var r row
	for _, c := range unicode.CaseRanges {
		up, low := c.Delta[unicode.UpperCase], c.Delta[unicode.LowerCase]
		if up > unicode.MaxRune || low > unicode.MaxRune {
			r.add(fmt.Sprintf("{0x%x, 0x%x, CASE_PAIRS, CASE_PAIRS},", c.Lo, c.Hi))
		} else if up != 0 || low != 0 {
			r.add(fmt.Sprintf("{0x%x, 0x%x, %d, %d},", c.Lo, c.Hi, up, low))
		}
	}
	r.flush()
	fmt.Fprintln(out, "};")
	fmt.Fprintln(out, "const size_t unicode_n_case_ranges =")
	fmt.Fprintln(out, "    sizeof(unicode_case_ranges) / sizeof(unicode_case_ranges[0]);")
}

// Runes whose next fold is neither their lower nor their upper case.
func orbits() {
	fmt.Fprintln(out, "\nconst struct case_orbit unicode_orbits[] = {")
	var r row
	for c := rune(0); c <= unicode.MaxRune; c++ {
		next := unicode.ToLower(c)
		if next == c {
			next = unicode.ToUpper(c)
		}
		if f := unicode.SimpleFold(c); f != next {
			r.add(fmt.Sprintf("{0x%x, 0x%x},", c, f))
		}
	}
	r.flush()
	fmt.Fprintln(out, "};")
	fmt.Fprintln(out, "const size_t unicode_n_orbits = sizeof(unicode_orbits) / sizeof(unicode_orbits[0]);")
}

func foldTable(id string, t *unicode.RangeTable) {
	fmt.Fprintf(out, "\nstatic const struct fold_range %s[] = {\n", id)
	var r row
	for _, x := range t.R16 {
		r.add(fmt.Sprintf("{0x%x, 0x%x, %d},", x.Lo, x.Hi, x.Stride))
	}
	for _, x := range t.R32 {
		r.add(fmt.Sprintf("{0x%x, 0x%x, %d},", x.Lo, x.Hi, x.Stride))
	}
	r.flush()
	fmt.Fprintln(out, "};")
}

// key is a class name as it is looked up: case, '_', '-' and ' ' do not count.
func key(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

type class struct{ key, pcre, fold string }

func classes() {
	all := map[string]class{}
	folds := map[string]string{}
	names := func(m map[string]*unicode.RangeTable) []string {
		var s []string
		for k := range m {
			s = append(s, k)
		}
		sort.Strings(s)
		return s
	}
	for _, k := range names(unicode.FoldCategory) {
		folds[k] = "fold_" + k
		foldTable("fold_"+k, unicode.FoldCategory[k])
	}
	for _, k := range names(unicode.FoldScript) {
		folds["sc:"+k] = "fold_script_" + k
		foldTable("fold_script_"+k, unicode.FoldScript[k])
	}
	add := func(name, pcre string) {
		if c, dup := all[key(name)]; dup && c.pcre != pcre {
			panic("two classes named " + name)
		}
		fold := folds[pcre]
		if pcre == "LC" {
			pcre = "L&"
		}
		all[key(name)] = class{key(name), pcre, fold}
	}
	for _, k := range names(unicode.Categories) {
		add(k, k)
	}
	for _, k := range names(unicode.Scripts) {
		add(k, "sc:"+k)
	}
	for k, v := range unicode.CategoryAliases {
		if c, dup := all[key(k)]; dup && c.pcre != v {
			panic("alias " + k)
		}
		add(k, v)
	}
	var keys []string
	for k := range all {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	fmt.Fprintln(out, "\n#define FOLD(table) table, sizeof(table) / sizeof((table)[0])")
	fmt.Fprintln(out, "const struct unicode_class unicode_classes[] = {")
	var r row
	for _, k := range keys {
		c := all[k]
		if c.fold != "" {
			r.add(fmt.Sprintf("{%q, %q, FOLD(%s)},", c.key, c.pcre, c.fold))
		} else {
			r.add(fmt.Sprintf("{%q, %q, NULL, 0},", c.key, c.pcre))
		}
	}
	r.flush()
	fmt.Fprintln(out, "};")
	fmt.Fprintln(out, "const size_t unicode_n_classes = sizeof(unicode_classes) / sizeof(unicode_classes[0]);")
}

func main() {
	fmt.Fprintf(out, `/* Generated from the unicode package of Go (Unicode %s); do not edit. To regenerate it:
 *     go run tests/tools/unicodegen/main.go > base/unicode_tables.c
 */
#include "base/unicode.h"

/* clang-format off */
`, unicode.Version)
	caseRanges()
	orbits()
	classes()
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
