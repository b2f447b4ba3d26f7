package importer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/inventory"
)

// TestYAMLAndJSONAreTheSameFleet: what is printed as YAML, as JSON, as JSON in one
// line, or as documents one after another, is one fleet.
func TestYAMLAndJSONAreTheSameFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
		pretty, err1 := json.MarshalIndent(list, "", "    ")
		compact, err2 := json.Marshal(list)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		var documents strings.Builder
		for _, item := range items {
			documents.WriteString("---\n" + block(item, ""))
		}
		want, err := kubevirtRead(string(compact))
		if err != nil {
			t.Fatalf("%s: %v", compact, err)
		}
		for _, text := range []string{string(pretty), block(list, ""), documents.String()} {
			got, err := kubevirtRead(text)
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			ignore := cmpopts.IgnoreFields(inventory.Problem{}, "Line")
			if diff := cmp.Diff(want, got, ignore); diff != "" {
				t.Fatalf("%s\n(-want +got):\n%s", text, diff)
			}
		}
	})
}

// block prints a value as YAML in block style, as kubectl does, with every text in
// quotes.
func block(value any, indent string) string {
	var b strings.Builder
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(indent + name + ":")
			if list, isList := v[name].([]any); isList {
				b.WriteString("\n" + block(list, indent))
			} else if inner, isMap := v[name].(map[string]any); isMap && len(inner) > 0 {
				b.WriteString("\n" + block(inner, indent+"  "))
			} else {
				b.WriteString(" " + block(v[name], ""))
			}
		}
	case []any:
		for _, item := range v {
			b.WriteString(indent + "- " + strings.TrimLeft(block(item, indent+"  "), " "))
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(text) + "\n"
	}
	return b.String()
}

func drawItems(t *rapid.T) []any {
	word := rapid.StringMatching(`[a-z][a-z0-9-]{0,6}`)
	label := rapid.MapOfN(word, rapid.StringMatching(`[ -~]{0,8}`), 0, 3)
	items := []any{map[string]any{"apiVersion": "v1", "kind": "Service"}}
	hosts := rapid.IntRange(1, 4).Draw(t, "hosts")
	for i := range hosts {
		items = append(items, map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{
				"name": fmt.Sprintf("n%d", i), "labels": label.Draw(t, "labels"),
			},
			"spec": map[string]any{"unschedulable": rapid.Bool().Draw(t, "cordoned")},
			"status": map[string]any{"allocatable": map[string]any{
				"cpu":    rapid.SampledFrom([]string{"8", "7500m", "0.5"}).Draw(t, "cpu"),
				"memory": rapid.SampledFrom([]string{"8Gi", "123456Ki", "1e9"}).Draw(t, "memory"),
			}},
		})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "VMs") {
		items = append(items, map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
			"metadata": map[string]any{
				"namespace": word.Draw(t, "namespace"), "name": fmt.Sprintf("vm%d", i),
				"labels": label.Draw(t, "labels"),
			},
			"spec": map[string]any{"domain": map[string]any{
				"memory": map[string]any{"guest": "1Gi"},
				"cpu":    map[string]any{"cores": rapid.IntRange(0, 9).Draw(t, "cores")},
			}},
			"status": map[string]any{
				"nodeName": fmt.Sprintf("n%d", rapid.IntRange(0, hosts-1).Draw(t, "host")),
				"conditions": []any{map[string]any{
					"type": "LiveMigratable", "status": "False",
					"message": rapid.StringMatching(`[ -~\n]{0,20}`).Draw(t, "message"),
				}},
			},
		})
	}
	return items
}

func FuzzReadKubeVirt(f *testing.F) {
	for _, name := range []string{"cluster.yaml", "cluster.json"} {
		text, err := os.ReadFile("../../inventory/testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:1500])
	}
	for _, seed := range []string{
		"", node + instance + move, cluster(guest{"a", "x", []string{"x"}}),
		`{"items":[{"kind":"Node"},[],1,"]"],"kind":"List"}{}`,
		"items:\n  - a: |\n  - b\n#\nkind: List",
		"kind: List\nitems: [{kind: Node}, null]\n", "items:\n-\n- a\n\n---\n...\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fleet, err := kubevirtRead(string(text))
		_, is := errors.AsType[inventory.Problems](err)
		if (fleet == nil) != is {
			t.Errorf("Read() = %v, %v", fleet, err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"cluster.json", "cluster.yaml"} {
		text, err := os.ReadFile("../../inventory/testdata/" + name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := kubevirtRead(string(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
