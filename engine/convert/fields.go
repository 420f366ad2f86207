package convert

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

var fieldCache sync.Map // reflect.Type -> map[string]reflect.Type

// Fields are the JSON fields of a struct with their types, those of embedded structs included. The map is shared: it is
// only read.
func Fields(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch inner := Deref(f.Type); {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			for n, ft := range Fields(inner) {
				if _, there := fields[n]; !there {
					fields[n] = ft
				}
			}
		case name != "":
			fields[name] = f.Type
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

// Required are the JSON fields of a struct that are written even when they are empty, sorted.
func Required(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch inner := Deref(f.Type); {
		case name == "-" || !f.IsExported() || strings.Contains(options, "omit"):
		case name != "":
			names = append(names, name)
		case f.Anonymous && inner.Kind() == reflect.Struct:
			names = append(names, Required(inner)...)
		}
	}
	slices.Sort(names)
	return names
}

// Deref is the type that a pointer points to, and any other type itself.
func Deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// DecodesItself tells whether a type reads its own JSON, such as a time or a quantity.
func DecodesItself(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

// Snake writes a camelCase name in snake_case.
func Snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
