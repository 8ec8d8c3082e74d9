// Terminalsvg reads the output of a program for a terminal and writes a picture of it: an SVG with the colours that its
// sequences set, on the background of a light or a dark terminal.
//
//	profpull flame --color true --width 80 FILE | terminalsvg dark 80 > flame.svg
package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	cellWidth  = 8.4 // of a monospaced font of 14 pixels
	cellHeight = 19
	margin     = 10
)

type theme struct{ back, front string }

var themes = map[string]theme{
	"light": {"#ffffff", "#1f2328"},
	"dark":  {"#0d1117", "#e6edf3"},
}

// A run is text with one pair of colours; "" is the terminal's own.
type run struct {
	column      int
	text        []rune
	back, front string
}

// colour reads "2;R;G;B" after 38 or 48.
func colour(parts []string) string {
	if len(parts) < 5 || parts[1] != "2" {
		return ""
	}
	var c [3]int
	for i := range c {
		c[i], _ = strconv.Atoi(parts[2+i])
	}
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2])
}

// split cuts a line into runs.
func split(line string) (runs []run, columns int) {
	current := run{}
	flush := func() {
		if len(current.text) > 0 {
			runs = append(runs, current)
		}
		current = run{column: columns, back: current.back, front: current.front}
	}
	for len(line) > 0 {
		if strings.HasPrefix(line, "\033[") {
			end := strings.IndexByte(line, 'm')
			if end < 0 {
				break
			}
			flush()
			parts := strings.Split(line[2:end], ";")
			switch parts[0] {
			case "0":
				current.back, current.front = "", ""
			case "38":
				current.front = colour(parts)
			case "48":
				current.back = colour(parts)
			}
			line = line[end+1:]
			continue
		}
		r := []rune(line)[0]
		line = line[len(string(r)):]
		current.text = append(current.text, r)
		columns++
	}
	flush()
	return runs, columns
}

func draw(text string, columns int, t theme) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	width, height := float64(columns)*cellWidth+2*margin, len(lines)*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", t.back)
	for i, line := range lines {
		runs, _ := split(line)
		for _, r := range runs {
			x, y := margin+float64(r.column)*cellWidth, margin+i*cellHeight
			w := float64(len(r.text)) * cellWidth
			if r.back != "" {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, w, cellHeight, r.back)
			}
			front := r.front
			if front == "" {
				front = t.front
			}
			if strings.TrimSpace(string(r.text)) != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve" fill="%s">%s</text>`+"\n",
					x, y+14, w, front, html.EscapeString(string(r.text)))
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func main() {
	if len(os.Args) != 3 || themes[os.Args[1]] == (theme{}) {
		fmt.Fprintln(os.Stderr, "usage: terminalsvg light|dark COLUMNS < output > picture.svg")
		os.Exit(2)
	}
	columns, err := strconv.Atoi(os.Args[2])
	text, readErr := io.ReadAll(os.Stdin)
	if err != nil || readErr != nil {
		fmt.Fprintln(os.Stderr, "terminalsvg:", err, readErr)
		os.Exit(1)
	}
	fmt.Print(draw(string(text), columns, themes[os.Args[1]]))
}
