package placement

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Whatever a VM asks for beyond room, records and reservations keep: nothing that it could ask is forgotten.
func TestAsksKnowsEveryConstraint(t *testing.T) {
	fields := reflect.TypeFor[Constraints]()
	for i := range fields.NumField() {
		var c Constraints
		f := reflect.ValueOf(&c).Elem().Field(i)
		if f.Kind() == reflect.Struct {
			for k := range f.NumField() {
				f.SetZero()
				fill(f.Field(k))
				keepsApart(t, fields.Field(i).Name+"."+f.Type().Field(k).Name, c)
			}
			continue
		}
		fill(f)
		keepsApart(t, fields.Field(i).Name, c)
	}
}

// fill gives a field a value that is not its zero value.
func fill(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("x")
	case reflect.Int:
		f.SetInt(1)
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	case reflect.Map:
		f.Set(reflect.MakeMap(f.Type()))
		f.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("x"))
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	}
}

func keepsApart(t *testing.T, what string, c Constraints) {
	t.Helper()
	if !Asks(&c) {
		t.Errorf("a VM with Constraints.%s counts as one that asks for nothing but room: records would not keep it; "+
			"add it to AsksMore", what)
	}
}

// An operator finds the name of every filter in the documentation.
func TestEveryFilterIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/failed-migrations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Why a host refuses a VM")
	if !found {
		t.Fatal("docs/failed-migrations.md has no section about refusals")
	}
	for _, name := range append(filterNames(), ForcedMemory().Name) {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/failed-migrations.md does not say what the filter %s means", name)
		}
	}
}
