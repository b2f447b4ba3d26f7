package guard

import "reflect"

// copied returns a copy of a value that shares nothing with it, as far as its fields can be
// read from outside of their package.
func copied[T any](v T) T {
	of := reflect.ValueOf(&v).Elem()
	of.Set(deep(of))
	return v
}

func deep(v reflect.Value) reflect.Value {
	fresh := reflect.New(v.Type()).Elem()
	fresh.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fresh.Set(reflect.New(v.Type().Elem()))
			fresh.Elem().Set(deep(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			fresh.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				fresh.Index(i).Set(deep(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			fresh.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for all := v.MapRange(); all.Next(); {
				fresh.SetMapIndex(all.Key(), deep(all.Value()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fresh.Field(i).Set(deep(v.Field(i)))
			}
		}
	}
	return fresh
}
