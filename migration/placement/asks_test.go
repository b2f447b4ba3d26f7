package placement_test

import (
	"reflect"
	"testing"

	"github.com/godwit-vm/godwit/migration/placement"
)

// TestAsksKnowsEveryConstraint: records keep the constraints of a VM only if Asks is true. A field that it does not
// look at would be obeyed by plans, and by no controller.
func TestAsksKnowsEveryConstraint(t *testing.T) {
	eachConstraint(func(name string, c placement.Constraints) {
		if !placement.Asks(&c) {
			t.Errorf("a VM with %s counts as one that asks for nothing but room, and its record will not keep it: "+
				"add the field to AsksMore in asks.go", name)
		}
	})
}

// TestTogetherKeepsEveryConstraint: VMs that move together ask for what each of them asks for. What they tolerate is
// no demand: all must tolerate it.
func TestTogetherKeepsEveryConstraint(t *testing.T) {
	eachConstraint(func(name string, c placement.Constraints) {
		vms := []*placement.VM{{ID: "a"}, {ID: "b", Constraints: c}}
		all, ok := placement.Together(vms)
		if ok && !placement.Asks(&all.Constraints) && name != "Tolerations" {
			t.Errorf("VMs that move together lose %s: add the field to Constraints.and in together.go", name)
		}
	})
}

// eachConstraint calls do with each field of the constraints set alone, those of Platform one by one.
func eachConstraint(do func(name string, c placement.Constraints)) {
	fields := reflect.TypeFor[placement.Constraints]()
	for i := range fields.NumField() {
		var c placement.Constraints
		f := reflect.ValueOf(&c).Elem().Field(i)
		if f.Kind() == reflect.Struct {
			for k := range f.NumField() {
				f.SetZero()
				fill(f.Field(k))
				do(fields.Field(i).Name+"."+f.Type().Field(k).Name, c)
			}
			continue
		}
		fill(f)
		do(fields.Field(i).Name, c)
	}
}

// fill gives a field a value that is not its zero value.
func fill(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("x")
	case reflect.Int, reflect.Int64:
		f.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		f.SetUint(1)
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	case reflect.Map:
		f.Set(reflect.MakeMap(f.Type()))
		f.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("x"))
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	default:
		panic("fill knows no " + f.Kind().String() + ": add it here")
	}
}
