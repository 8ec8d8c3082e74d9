package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"

	google "github.com/google/pprof/profile"
)

// Merges, against google/pprof's: byte for byte, except for compression. Of a window
// of deltas, the reference is its merge of profiles whose other gauges are zero; stacks may come in
// another order then, so they are compared one by one.

// merge gives profiles to the tool and returns what it made of them, not compressed.
func (c *checker) mergeTool(window bool, profiles [][]byte) ([]byte, error) {
	out := filepath.Join(c.dir, "merged")
	var args []string
	if window {
		args = append(args, "-window")
	}
	args = append(args, out)
	for i, b := range profiles {
		name := filepath.Join(c.dir, fmt.Sprint("in", i))
		check(os.WriteFile(name, b, 0o600))
		args = append(args, name)
	}
	if said, err := exec.Command(c.tool, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %s", err, said)
	}
	zipped, err := os.ReadFile(out)
	check(err)
	return gunzip(zipped)
}

func parseAll(profiles [][]byte) ([]*google.Profile, error) {
	var all []*google.Profile
	for _, b := range profiles {
		p, err := google.ParseData(b)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (c *checker) compareSums(profiles [][]byte) error {
	all, err := parseAll(profiles)
	if err != nil {
		return fmt.Errorf("google/pprof: %v", err)
	}
	merged, err := google.Merge(all)
	if err != nil {
		return fmt.Errorf("google/pprof: %v", err)
	}
	var want bytes.Buffer
	check(merged.WriteUncompressed(&want))
	got, err := c.mergeTool(false, profiles)
	if err != nil {
		return err
	}
	c.google += len(merged.Sample)
	if !bytes.Equal(got, want.Bytes()) {
		name := filepath.Join(c.dir, fmt.Sprint("differs-", c.failed))
		check(os.WriteFile(name+".got", got, 0o600))
		check(os.WriteFile(name+".want", want.Bytes(), 0o600))
		return fmt.Errorf("%d bytes, google/pprof has %d others: %s.got, .want", len(got), want.Len(), name)
	}
	return nil
}

func (c *checker) compareWindow(profiles [][]byte) error {
	all, err := parseAll(profiles)
	check(err)
	for _, p := range all[:len(all)-1] {
		for _, s := range p.Sample {
			for k, t := range p.SampleType {
				if !isCounter(valueType{t.Type, t.Unit}) {
					s.Value[k] = 0
				}
			}
		}
	}
	merged, err := google.Merge(all)
	check(err)
	plain, err := c.mergeTool(true, profiles)
	if err != nil {
		return err
	}
	if len(plain) == 0 && len(merged.Sample) == 0 {
		return nil
	}
	out, err := google.ParseData(plain)
	if err != nil {
		return fmt.Errorf("google/pprof reads our merge: %v", err)
	}
	want, got := googleSums(merged), googleSums(out)
	for key, row := range want {
		c.samples++
		if fmt.Sprint(row) != fmt.Sprint(got[key]) {
			return fmt.Errorf("%v, want %v, of %q", got[key], row, key)
		}
	}
	if len(got) != len(want) || len(out.Sample) != len(merged.Sample) {
		return fmt.Errorf("%d stacks, %d samples, want %d, %d", len(got), len(out.Sample), len(want),
			len(merged.Sample))
	}
	return nil
}

func (c *checker) mergeCase(name string, profiles [][]byte, hasCounters bool) {
	c.pairs++
	err := c.compareSums(profiles)
	if err == nil && hasCounters {
		err = c.compareWindow(profiles)
	}
	if err == nil {
		return
	}
	c.failed++
	fmt.Printf("%s: %v\n", name, err)
	for i, b := range profiles {
		path := filepath.Join(c.dir, fmt.Sprintf("failed-%d-%d.pb", c.failed, i))
		check(os.WriteFile(path, b, 0o600))
		fmt.Println("  kept as", path)
	}
}

// merges compares n random sets of profiles: half as a program writes them over time, half with
// everything that a profile can say.
func (c *checker) merges(n int, seed int64) {
	for i := 0; i < n; i++ {
		r := rand.New(rand.NewSource(seed + int64(i)))
		var profiles [][]byte
		if i%2 == 0 {
			w := newWorld(r)
			for k := 0; k <= r.Intn(5); k++ {
				w.grow()
				profiles = append(profiles, w.write())
				w.addStacks(r.Intn(10))
			}
		} else {
			g := newRich(r, c.columns)
			for k := 0; k <= r.Intn(5); k++ {
				profiles = append(profiles, g.write())
			}
		}
		c.mergeCase(fmt.Sprintf("seed %d", seed+int64(i)), profiles, i%2 == 0)
	}
}

// mergeFiles compares the merge of files, which are profiles of one program, or n > 1 random sets of
// any files whose types are equal.
func (c *checker) mergeFiles(names []string, n int, seed int64) {
	var profiles [][]byte
	groups := map[string][][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		check(err)
		p, err := google.ParseData(b)
		check(err)
		types := fmt.Sprint(p.PeriodType)
		for _, t := range p.SampleType {
			types += fmt.Sprint(" ", t.Type, "/", t.Unit)
		}
		groups[types] = append(groups[types], b)
		profiles = append(profiles, b)
	}
	if n > 1 {
		c.mergeSets(groups, n, seed)
	} else {
		c.mergeCase(fmt.Sprint(names), profiles, false)
	}
}

// mergeSets compares n random sets, each of up to eight profiles of one group in any order; the same
// one may come several times.
func (c *checker) mergeSets(groups map[string][][]byte, n int, seed int64) {
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	sort.Strings(names)
	r := rand.New(rand.NewSource(seed))
	for i := 0; i < n; i++ {
		name := names[i%len(names)]
		var profiles [][]byte
		for k := 0; k <= r.Intn(8); k++ {
			profiles = append(profiles, groups[name][r.Intn(len(groups[name]))])
		}
		c.mergeCase(fmt.Sprintf("set %d of %s", i, name), profiles, false)
	}
}

// ---- rich profiles ----------------------------------------------------------------------------

// rich is a pool of texts and frames from which profiles of one kind are made, so small that much of
// it is equal, and more of it nearly so.
type rich struct {
	r       *rand.Rand
	columns bool // lines have columns
	types   []*google.ValueType
	period  *google.ValueType
	texts   []string
}

func newRich(r *rand.Rand, columns bool) *rich {
	g := &rich{r: r, columns: columns, texts: []string{"", "", "a", "b", "main", "\xff", "a b", "zz", "main.go"}}
	for i := 0; i <= r.Intn(4); i++ {
		g.types = append(g.types, &google.ValueType{Type: g.text(), Unit: g.text()})
	}
	g.period = &google.ValueType{Type: g.text(), Unit: g.text()}
	return g
}

func (g *rich) text() string { return g.texts[g.r.Intn(len(g.texts))] }
func (g *rich) few() uint64  { return uint64(g.r.Intn(3)) }
func (g *rich) yes() bool    { return g.r.Intn(3) == 0 }

func (g *rich) mapping(id uint64) *google.Mapping {
	start := uint64(g.r.Intn(4)) << 20
	return &google.Mapping{ID: id, Start: start, Limit: start + 0x1000*g.few() + g.few(), Offset: 0x1000 * g.few() / 2,
		File: g.text(), BuildID: g.text(), HasFunctions: g.yes(), HasFilenames: g.yes(),
		HasLineNumbers: g.yes(), HasInlineFrames: g.yes()}
}

func (g *rich) location(id uint64, p *google.Profile) *google.Location {
	l := &google.Location{ID: id, IsFolded: g.yes()}
	if n := len(p.Mapping); n > 0 && !g.yes() {
		l.Mapping = p.Mapping[g.r.Intn(n)]
	}
	if !g.yes() {
		l.Address = g.few()
		if l.Mapping != nil {
			l.Address += l.Mapping.Start
		}
	}
	for i := g.r.Intn(4); i > 0 && len(p.Function) > 0; i-- {
		l.Line = append(l.Line, google.Line{Function: p.Function[g.r.Intn(len(p.Function))],
			Line: int64(g.few()) - 1})
		if column := int64(g.few()); g.columns {
			setNew(&l.Line[len(l.Line)-1], "Column", column)
		}
	}
	return l
}

// setNew sets a field that google/pprof does not have in Go before 1.21: a line's column, a URL of
// documentation.
func setNew(object interface{}, field string, value interface{}) {
	if f := reflect.ValueOf(object).Elem().FieldByName(field); f.IsValid() {
		f.Set(reflect.ValueOf(value))
	}
}

func (g *rich) labels(s *google.Sample) {
	for i := g.r.Intn(4); i > 0; i-- {
		key := g.text()
		if g.yes() {
			// A text of "" is written as none: not one that comes back.
			s.Label[key] = append(s.Label[key], "v"+g.text())
			continue
		}
		// Neither is a number 0 without a unit.
		s.NumLabel[key] = append(s.NumLabel[key], int64(g.r.Intn(3))-1)
		s.NumUnit[key] = append(s.NumUnit[key], "u"+g.text())
	}
}

// value: sums of a few often are zero, and never too large.
func (g *rich) value() int64 {
	if g.r.Intn(10) == 0 {
		return g.r.Int63n(1<<60) - 1<<59
	}
	return int64(g.r.Intn(3)) - 1
}

func (g *rich) write() []byte {
	r := g.r
	p := &google.Profile{SampleType: g.types, TimeNanos: 1 + int64(r.Intn(1000)), DurationNanos: int64(g.few()),
		PeriodType: g.period, Period: int64(g.few()), DefaultSampleType: g.text()}
	setNew(p, "DocURL", g.text())
	p.DropFrames, p.KeepFrames = g.text(), g.text()
	for i := r.Intn(4); i > 0; i-- {
		p.Comments = append(p.Comments, g.text())
	}
	for i := r.Intn(4); i > 0; i-- {
		p.Mapping = append(p.Mapping, g.mapping(uint64(i*i)))
	}
	for i := r.Intn(5); i > 0; i-- {
		p.Function = append(p.Function, &google.Function{ID: uint64(i), Name: g.text(), SystemName: g.text(),
			Filename: g.text(), StartLine: int64(g.few())})
	}
	for i := r.Intn(9); i > 0; i-- {
		p.Location = append(p.Location, g.location(uint64(i*i), p))
	}
	for i := r.Intn(12); i > 0; i-- {
		s := &google.Sample{Label: map[string][]string{}, NumLabel: map[string][]int64{}, NumUnit: map[string][]string{}}
		for k := r.Intn(5); k > 0 && len(p.Location) > 0; k-- {
			s.Location = append(s.Location, p.Location[r.Intn(len(p.Location))])
		}
		g.labels(s)
		for range g.types {
			s.Value = append(s.Value, g.value())
		}
		p.Sample = append(p.Sample, s)
	}
	var b bytes.Buffer
	check(p.WriteUncompressed(&b))
	return pack(r, b.Bytes())
}
