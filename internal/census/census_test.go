package census_test

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/godwit-vm/godwit/internal/census"
)

// What the repository is held to. Two that are as alike as near share nine tenths of what they
// are made of, names, numbers and comments apart: one is a copy of the other.
const (
	leastProperties = 150
	leastScenarios  = 500
	near            = 0.9
)

// TestTheRepositoryIsTestedWithDifferentThings counts, and looks for copies.
func TestTheRepositoryIsTestedWithDifferentThings(t *testing.T) {
	root := os.DirFS("../..")
	for _, of := range []struct {
		what  string
		find  func(fs.FS) ([]census.Item, error)
		least int
	}{
		{"properties", census.Properties,
			leastProperties},
		{"scenarios", census.Scenarios,
			leastScenarios},
	} {
		all, err := of.find(root)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, i := range all {
			kinds[i.Kind]++
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("%4d  %s", kinds[kind], kind)
		}
		if len(all) < of.least {
			t.Errorf("%d %s, fewer than %d", len(all), of.what, of.least)
		}
		alike := census.Alike(all, near-0.2)
		t.Logf("%4d  %s in all; %d pairs of them are %.1f alike or more", len(all), of.what,
			len(alike), near-0.2)
		for i, pair := range alike {
			switch {
			case pair.Likeness >= near:
				t.Errorf("nearly the same twice, %v", pair)
			case i == 0:
				t.Logf("the nearest two %s are %v", of.what, pair)
			}
		}
	}
}

const story = `# A host drains.
world
hosts:
- {name: n1, memory: 64GiB, cpus: 32, link: 1Gbit/s}
- {name: n2, memory: 64GiB, cpus: 32, link: 1Gbit/s}
vms:
- {name: web, host: n1, memory: 4GiB, cpus: 2, class: idle}
----
2 hosts, 1 VMs

run
drain n1
----
00:00.000  web  Pending
00:14.012  web  Running → Succeeded n1→n2
at rest
`

// scenarios writes files of transcripts, and counts what is in them.
func scenarios(t *testing.T, texts ...string) []census.Item {
	t.Helper()
	root := fstest.MapFS{}
	for _, folder := range []string{"sim/testdata", "migration/testdata/step",
		"hypervisor/qmp/life/testdata/story", "hypervisor/libvirt/life/testdata/story",
		"migration/placement/choose/testdata", "sim/explore/testdata",
		"cmd/godwit/testdata/script", "examples", "hypervisor/hypervisortest/internal",
		"record/storetest"} {
		root[folder] = &fstest.MapFile{Mode: 0o777 | os.ModeDir}
	}
	for i, text := range texts {
		root["sim/testdata/"+string(rune('a'+i))+".txt"] = &fstest.MapFile{Data: []byte(text)}
	}
	all, err := census.Scenarios(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOtherNamesAndNumbersMakeNoOtherScenario(t *testing.T) {
	copied := strings.NewReplacer("web", "shop", "n1", "rack-7", "n2", "b", "4GiB", "12GiB",
		"14.012", "31.7", "A host drains.", "Something quite different.").Replace(story)
	for _, row := range []struct {
		name, other string
		least, most float64
	}{
		{"the same", story, 1, 1},
		{"other names, sizes and times", copied, 1, 1},
		{"another end", strings.Replace(story, "Running → Succeeded n1→n2",
			"Running → Failed: target-down", 1), 0.7, 0.9},
		{"another event", strings.Replace(story, "drain n1", "migrate web to=n2 force=yes\n"+
			"5s cancel web\n6s crash-controller for=4s", 1), 0.5, 0.85},
		{"another story", "world\nvms: [x]\n----\nno hosts\n\nresult\n----\nnothing\n", 0, 0.2},
	} {
		t.Run(row.name, func(t *testing.T) {
			all := scenarios(t, story, row.other)
			if len(all) != 2 {
				t.Fatalf("%d scenarios: %v", len(all), all)
			}
			pairs := census.Alike(all, 0)
			if l := pairs[0].Likeness; l < row.least || l > row.most {
				t.Errorf("%.2f alike, want %.2f to %.2f", l, row.least, row.most)
			}
		})
	}
}

func TestAFileMayHaveSeveralScenariosOrNone(t *testing.T) {
	all := scenarios(t, story+"\n# Again.\n"+story, "# Nothing happens.\nworld\nhosts: []\n")
	var names []string
	for _, i := range all {
		names = append(names, i.Where+" "+i.Name)
	}
	want := []string{"sim/testdata/a.txt:2 a: A host drains.",
		"sim/testdata/a.txt:20 a: Again."}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
}

// code is a test file with so many properties.
var code = []struct {
	name, text string
	want       int
}{
	{"a literal", `func TestA(t *testing.T) { rapid.Check(t, func(t *rapid.T) { f(t) }) }`, 1},
	{"one that is checked and fuzzed", `func prop(t *rapid.T) { f(t) }
func TestA(t *testing.T) { rapid.Check(t, prop) }
func FuzzA(f *testing.F) { f.Fuzz(rapid.MakeFuzz(prop)) }`, 1},
	{"a fuzz target", `func FuzzA(f *testing.F) { f.Fuzz(func(t *testing.T, b []byte) { g(b) }) }`,
		1},
	{"a policy", `func TestA(t *testing.T) { simtest.Check(t, worlds.Calm(), mine) }`, 1},
	{"two that one function says", `func TestA(t *testing.T) {
	check := func(t *rapid.T) { f(t) }
	rapid.Check(t, check)
	rapid.Check(t, func(t *rapid.T) { check(t) })
}`, 1},
	{"none", `func TestA(t *testing.T) { t.Run("a", func(t *testing.T) { f(t) }) }`, 0},
}

func TestWhatIsAProperty(t *testing.T) {
	for _, row := range code {
		t.Run(row.name, func(t *testing.T) {
			root := fstest.MapFS{"p/a_test.go": {Data: []byte("package p\n" + row.text + "\n")}}
			all, err := census.Properties(root)
			if err != nil || len(all) != row.want {
				t.Errorf("%v, %v, want %d", all, err, row.want)
			}
		})
	}
}

func TestWhatIsNoGoIsAnError(t *testing.T) {
	_, err := census.Properties(fstest.MapFS{"p/a.go": {Data: []byte("package // rapid.")}})
	if err == nil || !strings.Contains(err.Error(), "p/a.go") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
