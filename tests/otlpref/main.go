// Command otlpref reads OTLP requests of ours with the messages that OpenTelemetry publishes, and
// compares each sample, value, label, line and mapping with what google/pprof reads in the profile. Then it
// encodes the messages again, and compares the profiles that profpull reads in them with the first ones.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

var passed, failed int

func report(name string, err error) {
	if err == nil {
		passed++
		return
	}
	failed++
	fmt.Printf("FAIL %s: %v\n", name, err)
}

func main() {
	tool := flag.String("tool", "", "otlp-tool")
	count := flag.Int("random", 300, "random profiles")
	seed := flag.Int64("seed", 1, "of them")
	flag.Parse()
	dir, err := os.MkdirTemp("", "otlpref")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var paths []string
	for _, path := range flag.Args() {
		if _, err := read(path); err == nil {
			paths = append(paths, path)
		} else {
			fmt.Printf("left out: %s: %v\n", path, err)
		}
	}
	files := len(paths)
	r := rand.New(rand.NewSource(*seed))
	for i := 0; i < *count; i++ {
		path := filepath.Join(dir, fmt.Sprintf("random-%d.pb.gz", i))
		paths = append(paths, path)
		var out bytes.Buffer
		if err := randomProfile(r).Write(&out); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			panic(err)
		}
	}
	if files == 0 && *count == 0 {
		failed++
	}
	// Each alone, then many in one request.
	for _, path := range paths {
		check(*tool, dir, []string{path})
	}
	for len(paths) > 0 {
		n := min(len(paths), 64)
		check(*tool, dir, paths[:n])
		paths = paths[n:]
	}
	fmt.Printf("otlp-diff: %d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func read(path string) (*profile.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 1)
	if _, err := f.Read(head); err != nil || (head[0] != 0x0a && head[0] != 0x1f) {
		return nil, fmt.Errorf("no pprof of protobuf")
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	return profile.Parse(f)
}

func check(tool, dir string, paths []string) {
	out := filepath.Join(dir, "request")
	text, err := exec.Command(tool, append([]string{out}, paths...)...).CombinedOutput()
	if err != nil {
		report(paths[0], fmt.Errorf("%v: %s", err, text))
		return
	}
	data, err := os.ReadFile(out)
	if err != nil {
		panic(err)
	}
	var request collector.ExportProfilesServiceRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		report(paths[0], err)
		return
	}
	if len(request.ProtoReflect().GetUnknown()) > 0 || len(request.ResourceProfiles) != len(paths) {
		report(paths[0], fmt.Errorf("%d resources, expected %d", len(request.ResourceProfiles), len(paths)))
		return
	}
	if err := checkZeros(request.Dictionary); err != nil {
		report(paths[0], err)
		return
	}
	for i, path := range paths {
		want, err := read(path)
		if err == nil {
			err = compare(want, request.ResourceProfiles[i], request.Dictionary, path)
		}
		report(path, err)
	}
	checkBack(tool, dir, &request, paths)
}

// checkBack lets profpull read a request that Go has encoded: what it makes of the request has to be the
// profiles of which the request was made.
func checkBack(tool, dir string, request *collector.ExportProfilesServiceRequest, paths []string) {
	data, err := proto.Marshal(request)
	if err != nil {
		panic(err)
	}
	in, prefix := filepath.Join(dir, "encoded"), filepath.Join(dir, "back-")
	if err := os.WriteFile(in, data, 0o600); err != nil {
		panic(err)
	}
	if text, err := exec.Command(tool, "-read", in, prefix).CombinedOutput(); err != nil {
		report(paths[0], fmt.Errorf("back: %v: %s", err, text))
		return
	}
	n := 0
	for _, path := range paths {
		want, err := read(path)
		if err == nil && len(want.Sample) > 0 {
			var got *profile.Profile
			if got, err = read(fmt.Sprint(prefix, n)); err == nil {
				err = compareBack(want, got)
			}
			n++
		}
		if err != nil {
			err = fmt.Errorf("back: %w", err)
		}
		report(path, err)
	}
}

func compareBack(want, got *profile.Profile) error {
	types := func(p *profile.Profile) (out []string) {
		for _, t := range append(p.SampleType, p.PeriodType) {
			if t != nil {
				out = append(out, t.Type+"/"+t.Unit)
			}
		}
		return out
	}
	time := want.TimeNanos
	if time <= 0 {
		time = 1795230000 * 1e9
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"types", types(got), types(want)},
		{"period", got.Period, want.Period},
		{"time", got.TimeNanos, time},
		{"duration", got.DurationNanos, max(want.DurationNanos, 0)},
		{"texts", got.DropFrames + got.KeepFrames + got.DocURL, want.DropFrames + want.KeepFrames + want.DocURL},
		{"comments", fmt.Sprint(got.Comments), fmt.Sprint(want.Comments)},
		{"samples", len(got.Sample), len(want.Sample)},
	} {
		if err := differ(c.what, c.got, c.want); err != nil {
			return err
		}
	}
	for i, s := range got.Sample {
		w := want.Sample[i]
		if err := differ("values", s.Value, w.Value); err != nil {
			return err
		}
		if err := differ("labels", wantLabels(s), wantLabels(w)); err != nil {
			return err
		}
		if err := differ("frames", len(s.Location), len(w.Location)); err != nil {
			return err
		}
		for k, l := range s.Location {
			if err := differ("location", wantLocation(l), wantLocation(w.Location[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkZeros looks for entries that are there twice, and for entry 0 of each table.
func checkZeros(d *otlp.ProfilesDictionary) error {
	tables := map[string][]proto.Message{
		"mapping": messages(d.MappingTable), "location": messages(d.LocationTable), "function": messages(d.FunctionTable),
		"link": messages(d.LinkTable), "attribute": messages(d.AttributeTable), "stack": messages(d.StackTable),
	}
	for name, table := range tables {
		if len(table) == 0 || proto.Size(table[0]) != 0 {
			return fmt.Errorf("entry 0 of the %s table is not empty", name)
		}
		seen := map[string]bool{}
		for _, m := range table {
			data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if seen[string(data)] {
				return fmt.Errorf("the %s table has an entry twice", name)
			}
			seen[string(data)] = true
		}
	}
	if len(d.StringTable) == 0 || d.StringTable[0] != "" {
		return fmt.Errorf("string 0 is not empty")
	}
	return nil
}

func messages[T proto.Message](all []T) []proto.Message {
	out := make([]proto.Message, len(all))
	for i, m := range all {
		out[i] = m
	}
	return out
}

// reader turns indices back into what they stand for; it panics where one is out of range.
type reader struct{ d *otlp.ProfilesDictionary }

func (r reader) text(i int32) string { return r.d.StringTable[i] }

func (r reader) attributes(indices []int32) map[string][]string {
	out := map[string][]string{}
	for _, i := range indices {
		a := r.d.AttributeTable[i]
		key := r.text(a.KeyStrindex)
		out[key] = append(out[key], valueOf(a.Value)+"|"+r.text(a.UnitStrindex))
	}
	return out
}

func valueOf(v *common.AnyValue) string {
	switch x := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return "text " + x.StringValue
	case *common.AnyValue_BoolValue:
		return fmt.Sprintf("flag %v", x.BoolValue)
	case *common.AnyValue_IntValue:
		return fmt.Sprintf("number %d", x.IntValue)
	case *common.AnyValue_ArrayValue:
		var all []string
		for _, e := range x.ArrayValue.Values {
			all = append(all, valueOf(e))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprintf("unexpected %T", v.Value)
}

func (r reader) mapping(i int32) string {
	m := r.d.MappingTable[i]
	a := r.attributes(m.AttributeIndices)
	return fmt.Sprintf("%x-%x+%x %q %v", m.MemoryStart, m.MemoryLimit, m.FileOffset, r.text(m.FilenameStrindex), a)
}

func wantMapping(m *profile.Mapping) string {
	if m == nil {
		return (reader{&otlp.ProfilesDictionary{MappingTable: []*otlp.Mapping{{}}, StringTable: []string{""}}}).mapping(0)
	}
	a := map[string][]string{}
	if m.BuildID != "" {
		a["process.executable.build_id.gnu"] = []string{"text " + m.BuildID + "|"}
	}
	for key, flag := range map[string]bool{"functions": m.HasFunctions, "filenames": m.HasFilenames,
		"line_numbers": m.HasLineNumbers, "inline_frames": m.HasInlineFrames} {
		a["pprof.mapping.has_"+key] = []string{fmt.Sprintf("flag %v|", flag)}
	}
	return fmt.Sprintf("%x-%x+%x %q %v", m.Start, m.Limit, m.Offset, m.File, a)
}

func (r reader) location(i int32) string {
	l := r.d.LocationTable[i]
	out := fmt.Sprintf("%s %x folded=%v", r.mapping(l.MappingIndex), l.Address, len(l.AttributeIndices) > 0)
	if len(l.AttributeIndices) > 0 {
		want := map[string][]string{"pprof.location.is_folded": {"flag true|"}}
		if got := r.attributes(l.AttributeIndices); !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("attributes %v", got)
		}
	}
	for _, line := range l.Lines {
		f := r.d.FunctionTable[line.FunctionIndex]
		out += fmt.Sprintf("; %q %q %q %d at %d:%d", r.text(f.NameStrindex), r.text(f.SystemNameStrindex),
			r.text(f.FilenameStrindex), f.StartLine, line.Line, line.Column)
	}
	return out
}

func wantLocation(l *profile.Location) string {
	out := fmt.Sprintf("%s %x folded=%v", wantMapping(l.Mapping), l.Address, l.IsFolded)
	for _, line := range l.Line {
		f := line.Function
		out += fmt.Sprintf("; %q %q %q %d at %d:%d", f.Name, f.SystemName, f.Filename, f.StartLine, line.Line, line.Column)
	}
	return out
}

func wantLabels(s *profile.Sample) map[string][]string {
	out := map[string][]string{}
	for key, values := range s.Label {
		for _, v := range values {
			out[key] = append(out[key], "[text "+v+"]|")
		}
	}
	for key, values := range s.NumLabel {
		for i, v := range values {
			unit := ""
			if units := s.NumUnit[key]; len(units) > i {
				unit = units[i]
			}
			out[key] = append(out[key], fmt.Sprintf("[number %d]|%s", v, unit))
		}
	}
	return sorted(out)
}

func sorted(m map[string][]string) map[string][]string {
	for _, v := range m {
		sort.Strings(v)
	}
	return m
}

func differ(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: %v, expected %v", what, got, want)
}

func (r reader) valueType(v *otlp.ValueType) string {
	if v == nil {
		return "/"
	}
	return r.text(v.TypeStrindex) + "/" + r.text(v.UnitStrindex)
}

func compare(want *profile.Profile, got *otlp.ResourceProfiles, d *otlp.ProfilesDictionary, path string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	attributes := map[string]string{}
	for _, a := range got.Resource.Attributes {
		attributes[a.Key] = valueOf(a.Value)
	}
	wantAttributes := map[string]string{"k8s.pod.name": "text pod-1", "team": "text blue", "service.name": "text " + path}
	if err := differ("resource", attributes, wantAttributes); err != nil {
		return err
	}
	if len(got.ScopeProfiles) != 1 || got.ScopeProfiles[0].Scope.Name != "profpull" {
		return fmt.Errorf("scopes %v", got.ScopeProfiles)
	}
	r := reader{d}
	profiles := got.ScopeProfiles[0].Profiles
	if len(profiles) != len(want.SampleType) {
		return fmt.Errorf("%d profiles for %d types", len(profiles), len(want.SampleType))
	}
	ids := map[string]bool{}
	for t, p := range profiles {
		if err := compareProfile(r, want, t, p); err != nil {
			return fmt.Errorf("type %d: %v", t, err)
		}
		ids[string(p.ProfileId)] = len(p.ProfileId) == 16
	}
	return differ("ids", len(ids), len(profiles))
}

func compareProfile(r reader, want *profile.Profile, t int, p *otlp.Profile) error {
	time := uint64(want.TimeNanos)
	if want.TimeNanos <= 0 {
		time = 1795230000 * 1e9
	}
	period := "/"
	if want.PeriodType != nil {
		period = want.PeriodType.Type + "/" + want.PeriodType.Unit
	}
	attributes := map[string][]string{}
	for key, text := range map[string]string{"drop_frames": want.DropFrames, "keep_frames": want.KeepFrames, "doc_url": want.DocURL} {
		if text != "" {
			attributes["pprof.profile."+key] = []string{"text " + text + "|"}
		}
	}
	for i, text := range want.Comments {
		attributes[fmt.Sprintf("pprof.profile.comment.%d", i)] = []string{"text " + text + "|"}
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"type", r.valueType(p.SampleType), want.SampleType[t].Type + "/" + want.SampleType[t].Unit},
		{"period type", r.valueType(p.PeriodType), period},
		{"period", p.Period, want.Period},
		{"time", p.TimeUnixNano, time},
		{"duration", p.DurationNano, uint64(max(want.DurationNanos, 0))},
		{"attributes", r.attributes(p.AttributeIndices), attributes},
		{"samples", len(p.Samples), len(want.Sample)},
	} {
		if err := differ(c.what, c.got, c.want); err != nil {
			return err
		}
	}
	for i, s := range p.Samples {
		if err := compareSample(r, want.Sample[i], t, s); err != nil {
			return fmt.Errorf("sample %d: %v", i, err)
		}
	}
	return nil
}

func compareSample(r reader, want *profile.Sample, t int, s *otlp.Sample) error {
	if err := differ("values", s.Values, []int64{want.Value[t]}); err != nil {
		return err
	}
	if err := differ("labels", sorted(r.attributes(s.AttributeIndices)), wantLabels(want)); err != nil {
		return err
	}
	indices := r.d.StackTable[s.StackIndex].LocationIndices
	if err := differ("frames", len(indices), len(want.Location)); err != nil {
		return err
	}
	for i, l := range indices {
		if err := differ("location", r.location(l), wantLocation(want.Location[i])); err != nil {
			return err
		}
	}
	return nil
}
