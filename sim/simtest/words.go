package simtest

import (
	"fmt"
	"reflect"
	"strings"
)

// words writes a value without the fields that say nothing.
func words(v any) string { return describe(reflect.ValueOf(v)) }

func describe(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	if _, speaks := v.Interface().(fmt.Stringer); speaks {
		return fmt.Sprint(v.Interface())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		return describe(v.Elem())
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				fields = append(fields, f.Name+": "+describe(v.Field(i)))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case reflect.Slice:
		entries := make([]string, v.Len())
		for i := range entries {
			entries[i] = describe(v.Index(i))
		}
		return "[" + strings.Join(entries, ", ") + "]"
	}
	return fmt.Sprint(v.Interface())
}
