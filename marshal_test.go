package godwit_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// public are the folders whose exported types users log and marshal.
var public = []string{"hypervisor", "migration", "evacuation", "controller", "agent", "store",
	"plan", "sim"}

// besides are folders below those that are no part of what users embed.
var besides = regexp.MustCompile(`/(testdata|internal)(/|$)|^hypervisor/(qmp|libvirt|fake)|` +
	`^sim/simtest`)

// enums are all enumerations there: a value of each.
var enums = []any{hypervisor.Running, hypervisor.PreCopy, hypervisor.JobNone, hypervisor.NoProof,
	hypervisor.Unknown, migration.Unset, migration.User, migration.Unclaimed, migration.NoTargetError,
	migration.NotRefused, migration.CreateTarget, migration.Open, convergence.Continue,
	convergence.NoReason, convergence.Method(0), migration.NoFault, placement.Policy,
	placement.Force(0), migration.Won, migration.Nothing, evacuation.Unclassified, evacuation.Found,
	evacuation.InstanceUnknown, evacuation.QueueAll, evacuation.LargestFirst, evacuation.Unset,
	evacuation.ByStrategy, sim.AtRest, store.RunPlan,
	store.MoveWaits, store.ServiceWaits, store.HookWaits}

// sets are bit sets, which print as names and marshal as lists of names.
var sets = []any{migration.Actions(0).With(migration.HandOff).With(migration.TellTarget),
	hypervisor.CanPostCopy | hypervisor.CanRecover, migration.Conditions{}.
		With(migration.AbortRequested).WithStale(migration.BlockedByBackup)}

// numbers are no enumerations, or are numbers on purpose: why.
var numbers = map[string]string{
	"migration.Condition":    "one bit of migration.Conditions, which is a set",
	"store.Kind":             "the key of stores, and part of the wire format of internal/boltstore",
	"store.StoreKind":        "an error, which prints as its text",
	"store.Version":          "a number that a store counts",
	"store.Revision":         "a number that a store counts",
	"migration.Priority":     "a number, as KubeVirt's",
	"hypervisor.Bytes":       "an amount",
	"hypervisor.Bandwidth":   "an amount",
	"controller.SourceState": "an index",
	"config.Stream":          "a number of a stream of chance",
}

// typeName is the name of a value's type, with its package.
func typeName(v any) string { return reflect.TypeOf(v).String() }

func TestEveryEnumerationIsAWordInLogsAndInJSON(t *testing.T) {
	for _, sample := range enums {
		kind := reflect.TypeOf(sample)
		t.Run(kind.String(), func(t *testing.T) {
			seen := map[string]bool{}
			for i := range 64 {
				v := reflect.New(kind).Elem()
				v.SetUint(uint64(i))
				m, is := v.Interface().(encoding.TextMarshaler)
				if !is {
					t.Fatalf("%v marshals as a number", kind)
				}
				text, err := m.MarshalText()
				if err != nil || strings.HasPrefix(string(text), "invalid") {
					break // there are no more
				}
				if seen[string(text)] {
					t.Fatalf("two are called %q", text)
				}
				seen[string(text)] = true
				returns(t, v.Interface())
				logged(t, v.Interface(), string(text))
			}
			if len(seen) < 2 {
				t.Errorf("there are only %v", seen)
			}
		})
	}
}

func TestBitSetsAreNamesInLogsAndInJSON(t *testing.T) {
	for _, set := range sets {
		text := fmt.Sprint(set)
		if regexp.MustCompile(`^[{0-9]`).MatchString(text) {
			t.Errorf("%T prints as %s", set, text)
		}
		returns(t, set)
		for name := range strings.SplitSeq(text, ", ") {
			logged(t, set, name)
		}
		if empty := fmt.Sprint(reflect.Zero(reflect.TypeOf(set)).Interface()); empty != "none" {
			t.Errorf("an empty %T prints as %q", set, empty)
		}
	}
}

func TestADecisionReturnsFromJSONWithAllItSays(t *testing.T) {
	config := migration.Config{}.Complete()
	at := time.Date(2026, 3, 20, 8, 0, 0, 0, time.UTC)
	spec := migration.Spec{ID: "move-web", VM: "web", Created: at}
	noted, woken := 0, 0
	for _, phase := range migration.Phases() {
		for i := range 64 {
			state := migration.State{Phase: phase, Source: "n1", Target: "n2", Entered: at}
			bit := func(n int) bool { return i>>n&1 == 1 }
			d := config.Step(&spec, &state, &migration.Observation{Now: at.Add(time.Hour),
				VM:        migration.VMStatus{Exists: bit(0), Running: bit(1)},
				Ownership: migration.Ownership(i % 4), Canceled: bit(2), Gate: migration.Open,
				Report: migration.Report{Began: bit(3), Started: bit(3), Failed: bit(4)},
				Target: migration.Instance{Exists: bit(5), Ready: bit(5)}})
			noted, woken = noted+len(d.Notes()), woken+len(d.Requeues())
			returns(t, d)
			logged(t, d, d.State.Phase.String())
		}
	}
	if noted == 0 || woken == 0 {
		t.Errorf("%d notes and %d wakes", noted, woken)
	}
}

// Records of the versions before had numbers where there are words now.
func TestNumbersOfVersionsBeforeAreRead(t *testing.T) {
	for _, row := range []struct {
		text string
		into any
		want any
	}{
		{`{"By":1}`, &migration.Spec{}, migration.Spec{By: migration.Evacuation}},
		{`{"Proof":3,"Host":"n1"}`, &hypervisor.Evidence{},
			hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1"}},
		{`{"Abilities":6}`, &hypervisor.Host{},
			hypervisor.Host{Abilities: hypervisor.CanPostCopy | hypervisor.CanRecover}},
		{`2`, new(evacuation.Strategy), evacuation.LiveMigrate},
	} {
		if err := json.Unmarshal([]byte(row.text), row.into); err != nil {
			t.Errorf("%s: %v", row.text, err)
		}
		if got := reflect.ValueOf(row.into).Elem().Interface(); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s is %+v, want %+v", row.text, got, row.want)
		}
	}
}

// returns checks that a value is the same after JSON.
func returns(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	back := reflect.New(reflect.TypeOf(v))
	if err := json.Unmarshal(text, back.Interface()); err != nil {
		t.Errorf("%T %s: %v", v, text, err)
	} else if !reflect.DeepEqual(v, back.Elem().Interface()) {
		t.Errorf("%T is %+v, and after %s it is %+v", v, v, text, back.Elem().Interface())
	}
}

// logged checks that both handlers of slog write a value with a word.
func logged(t *testing.T, v any, word string) {
	t.Helper()
	var text, js bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("", "v", v)
	slog.New(slog.NewJSONHandler(&js, nil)).Info("", "v", v)
	for _, line := range []string{text.String(), js.String()} {
		if !strings.Contains(line, word) {
			t.Errorf("%T is logged as %s, without %q", v, line, word)
		}
	}
}

// TestNoEnumerationIsForgotten walks over all exported types of the public packages.
func TestNoEnumerationIsForgotten(t *testing.T) {
	known := map[string]bool{}
	for _, v := range slices.Concat(enums, sets) {
		known[typeName(v)] = true
	}
	found := 0
	for _, dir := range public {
		err := fs.WalkDir(os.DirFS("."), dir, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || besides.MatchString(file) || !strings.HasSuffix(file, ".go") ||
				strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				return err
			}
			for _, name := range integers(parsed) {
				name = path.Base(path.Dir(file)) + "." + name
				found++
				if !known[name] && numbers[name] == "" {
					t.Errorf("%s: %s is an enumeration or a set, and is not tested", file, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if found < len(enums) {
		t.Errorf("only %d were found", found)
	}
}

// integers are the exported types of a file that are integers.
func integers(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		g, is := d.(*ast.GenDecl)
		if !is || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.TypeSpec)
			under, is := spec.Type.(*ast.Ident)
			if is && spec.Name.IsExported() && regexp.MustCompile(`^u?int\d*$`).MatchString(under.Name) {
				names = append(names, spec.Name.Name)
			}
		}
	}
	return names
}
