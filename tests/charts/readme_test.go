package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// property is a part of values.schema.json.
type property struct {
	Type        interface{}
	Enum        []string
	Description string
	Minimum     *int
	Maximum     *int
	Items       *struct{ Type interface{} }
}

// ordered reads the members of a JSON object in the order in which they stand.
func ordered(t *testing.T, text json.RawMessage) (names []string, members map[string]json.RawMessage) {
	t.Helper()
	must(t, json.Unmarshal(text, &members))
	d := json.NewDecoder(strings.NewReader(string(text)))
	_, err := d.Token()
	must(t, err)
	for d.More() {
		name, err := d.Token()
		must(t, err)
		names = append(names, name.(string))
		var skipped json.RawMessage
		must(t, d.Decode(&skipped))
	}
	return names, members
}

func typeOf(p property) string {
	if len(p.Enum) > 0 {
		return "`" + strings.Join(p.Enum, "`, `") + "`"
	}
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Type), " ", " or "), "[]")
	switch {
	case text == "array" && p.Items != nil && p.Items.Type == "string":
		text = "list of strings"
	case text == "array":
		text = "list"
	}
	return text
}

// readme writes the table of values: one row for each value that can be set.
func readme(t *testing.T, schema json.RawMessage, values map[string]interface{}) string {
	t.Helper()
	var out strings.Builder
	var walk func(prefix string, schema json.RawMessage, values map[string]interface{})
	walk = func(prefix string, schema json.RawMessage, values map[string]interface{}) {
		var object struct{ Properties json.RawMessage }
		must(t, json.Unmarshal(schema, &object))
		names, members := ordered(t, object.Properties)
		for _, name := range names {
			var p property
			must(t, json.Unmarshal(members[name], &p))
			if p.Description == "" {
				t.Errorf("%s%s has no description", prefix, name)
			}
			value, has := values[name]
			if !has && prefix != "global." {
				t.Errorf("values.yaml has no %s%s", prefix, name)
			}
			text, err := json.Marshal(value)
			must(t, err)
			var below struct{ Properties json.RawMessage }
			must(t, json.Unmarshal(members[name], &below))
			if below.Properties == nil {
				fmt.Fprintf(&out, "| `%s%s` | %s | `%s` | %s |\n", prefix, name, typeOf(p), text, p.Description)
				continue
			}
			fmt.Fprintf(&out, "| **`%s%s`** | | | %s |\n", prefix, name, p.Description)
			inner, _ := value.(map[string]interface{})
			walk(prefix+name+".", members[name], inner)
		}
		for name := range values {
			if _, ok := members[name]; !ok {
				t.Errorf("values.schema.json has no %s%s", prefix, name)
			}
		}
	}
	walk("", schema, values)
	return out.String()
}

const readmeHead = `# The values of the chart

This page lists every value with its type, its default and its effect.
[docs/kubernetes.md](../../docs/kubernetes.md#the-chart) explains the main ones, with examples. The page is made from
` + "`values.schema.json` and `values.yaml`" + `: ` + "`GOLDEN_UPDATE=1 make charts`" + ` writes it.

| value | type | default | |
|---|---|---|---|
`

// README.md of the chart is what the schema and the defaults say.
func TestReadmeOfTheChart(t *testing.T) {
	schema, err := os.ReadFile("../../charts/profpull/values.schema.json")
	must(t, err)
	values, err := chartutil.ReadValuesFile("../../charts/profpull/values.yaml")
	must(t, err)
	want := readmeHead + readme(t, schema, values)
	file := "../../charts/profpull/README.md"
	if os.Getenv("GOLDEN_UPDATE") != "" {
		must(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s differs; GOLDEN_UPDATE=1 writes what it is now:\n%s", file, firstDifference(string(got), want))
	}
}
