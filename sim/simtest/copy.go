package simtest

import (
	"reflect"
	"sync"
)

// copied returns a copy of a value that shares nothing with it, as far as its fields can be
// read from outside of their package.
func copied[T any](v T) T {
	detach(reflect.ValueOf(&v).Elem())
	return v
}

// detach lets a variable refer to copies of all that it refers to.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			detach(fresh.Elem())
			v.Set(fresh)
		}
	case reflect.Slice:
		if !v.IsNil() {
			fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(fresh, v)
			if refers(v.Type().Elem()) {
				for i := range v.Len() {
					detach(fresh.Index(i))
				}
			}
			v.Set(fresh)
		}
	case reflect.Map:
		if !v.IsNil() {
			fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
			for all := v.MapRange(); all.Next(); {
				value := reflect.New(v.Type().Elem()).Elem()
				value.Set(all.Value())
				detach(value)
				fresh.SetMapIndex(all.Key(), value)
			}
			v.Set(fresh)
		}
	case reflect.Struct:
		for _, i := range referring(v.Type()) {
			detach(v.Field(i))
		}
	}
}

// refers reports whether values of a type may refer to others.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	case reflect.Struct:
		return len(referring(t)) > 0
	}
	return false
}

// known are the fields of structures that refer to others, []int by reflect.Type: they are
// looked up for thousands of questions.
var known sync.Map

func referring(t reflect.Type) []int {
	if all, is := known.Load(t); is {
		return all.([]int)
	}
	var all []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && refers(f.Type) {
			all = append(all, i)
		}
	}
	known.Store(t, all)
	return all
}
