// Command benchtable reads what several runs of a benchmark have printed, one file each, and prints
// it once, with the median of each number and how far the runs were apart.
//
//	benchtable RUN1 RUN2 ...        runs of the same benchmark
//	benchtable -fit RUN1 RUN2 ...   runs of cmd/bench with different numbers of targets, and a line
//	                                fitted to the medians
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
)

var number = regexp.MustCompile(`[+-]?[0-9]+(?:\.[0-9]+)?`)

func main() {
	fit := flag.Bool("fit", false, "fit a line over the number of targets")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("benchtable: ")
	var runs []run
	for _, name := range flag.Args() {
		text, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		runs = append(runs, parse(string(text)))
	}
	if len(runs) == 0 {
		log.Fatal("expected the files of at least one run")
	}
	if *fit {
		printCurve(runs)
		return
	}
	printMedians(runs)
}

// row is a line of a run: its text with a mark in place of each number.
type row struct {
	key     string // section and name
	text    string
	numbers []float64
}

type run struct{ rows []row }

// parse takes lines such as "  lateness p50 / p99 / max   2.09 ms / 4.95 ms / under 10 ms". A line
// that is not indented begins a section.
func parse(text string) (r run) {
	section := ""
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		name, value := line, ""
		if !strings.HasPrefix(line, "  ") {
			section = number.ReplaceAllString(line, "#")
		} else if i := strings.Index(line[2:], "  "); i >= 0 {
			name, value = line[:i+2], line[i+2:]
		}
		item := row{key: section + "\n" + number.ReplaceAllString(name, "#"), text: name}
		for _, n := range number.FindAllString(value, -1) {
			var v float64
			fmt.Sscan(n, &v)
			item.numbers = append(item.numbers, v)
		}
		item.text += value
		r.rows = append(r.rows, item)
	}
	return r
}

// find returns the n-th row with this key.
func (r run) find(key string, n int) *row {
	for i := range r.rows {
		if r.rows[i].key == key {
			if n == 0 {
				return &r.rows[i]
			}
			n--
		}
	}
	return nil
}

// printMedians prints the rows of the first run with the medians of all.
func printMedians(runs []run) {
	fmt.Printf("medians of %d runs; in brackets the least and the greatest\n", len(runs))
	seen := map[string]int{}
	for _, first := range runs[0].rows {
		n := seen[first.key]
		seen[first.key]++
		fmt.Println(first.withMedians(runs, n))
	}
}

func (first row) withMedians(runs []run, n int) string {
	if len(first.numbers) == 0 {
		return first.text
	}
	values := make([][]float64, len(first.numbers))
	for _, r := range runs {
		other := r.find(first.key, n)
		if other == nil || len(other.numbers) != len(first.numbers) {
			continue
		}
		for i, v := range other.numbers {
			values[i] = append(values[i], v)
		}
	}
	name, value := split(first)
	i := 0
	value = number.ReplaceAllStringFunc(value, func(text string) string {
		v := median(values[i])
		low, high := bounds(values[i])
		i++
		if low == high {
			return text
		}
		return fmt.Sprintf("%s [%s..%s]", like(text, v), like(text, low), like(text, high))
	})
	return name + value
}

// split parts a row into its name and its value.
func split(r row) (name, value string) {
	i := strings.Index(r.text[2:], "  ")
	return r.text[:i+2], r.text[i+2:]
}

// like prints a number with as many decimals as another has.
func like(text string, v float64) string {
	decimals := 0
	if i := strings.IndexByte(text, '.'); i >= 0 {
		decimals = len(text) - i - 1
	}
	if text[0] == '+' || text[0] == '-' {
		return fmt.Sprintf("%+.*f", decimals, v)
	}
	return fmt.Sprintf("%.*f", decimals, v)
}
