package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsbeta "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// forms has the types whose JSON is not made of their fields.
var forms = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():      "quantity",
	reflect.TypeFor[intstr.IntOrString]():     "intstr",
	reflect.TypeFor[meta.Time]():              "time",
	reflect.TypeFor[meta.MicroTime]():         "microtime",
	reflect.TypeFor[meta.FieldsV1]():          "rawjson",
	reflect.TypeFor[apiextensions.JSON]():     "rawjson",
	reflect.TypeFor[apiextensionsbeta.JSON](): "rawjson",
	reflect.TypeFor[runtime.RawExtension]():   "rawext",
}

// choices has the types whose JSON is one of their fields.
var choices = map[reflect.Type]string{
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():           "orarray",
	reflect.TypeFor[apiextensionsbeta.JSONSchemaPropsOrArray]():       "orarray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray]():     "orstrarray",
	reflect.TypeFor[apiextensionsbeta.JSONSchemaPropsOrStringArray](): "orstrarray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():            "orbool",
	reflect.TypeFor[apiextensionsbeta.JSONSchemaPropsOrBool]():        "orbool",
}

// scalars has what is no message. The types in the protobuf tags are not used: for some fields they are wrong.
var scalars = map[reflect.Kind]string{
	reflect.Bool:    "bool",
	reflect.Int32:   "int32",
	reflect.Int64:   "int64",
	reflect.Float64: "double",
	reflect.String:  "string",
}

// message is one line of the table.
type message struct {
	t      reflect.Type
	form   string
	atomic bool
	fields []field
}

// field is one word of it.
type field struct {
	name    string
	number  int
	marks   string
	scalar  string
	message reflect.Type // unless it is a scalar
	merge   string
}

// isMessage tells whether a kind has a protobuf form. Table has none; that it embeds a message makes it look like one.
func isMessage(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("protobuf") != "" {
			return true
		}
	}
	return false
}

func newMessage(t reflect.Type) (message, error) {
	if form, ok := forms[t]; ok {
		return message{t: t, form: form}, nil
	}
	form, ok := choices[t]
	if !ok && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return message{}, errors.New("writes its own JSON, in a form that has no name here")
	}
	m := message{t: t, form: form}
	isList := false
	for i := range t.NumField() {
		goField := t.Field(i)
		if isOutside(goField) {
			continue
		}
		isList = isList || goField.Type == reflect.TypeFor[meta.ListMeta]()
		f, err := newField(goField)
		if err != nil {
			return message{}, fmt.Errorf("%s: %w", goField.Name, err)
		}
		m.fields = append(m.fields, f)
	}
	for i, f := range m.fields {
		if isList && f.name == "items" && f.marks == "[]" {
			m.fields[i].marks = "[]!"
		}
	}
	slices.SortFunc(m.fields, func(a, b field) int { return cmp.Compare(a.number, b.number) })
	return m, nil
}

// isOutside tells whether a field is neither in the protobuf nor in the JSON that is made of it: apiVersion and kind
// come from the envelope.
func isOutside(goField reflect.StructField) bool {
	return goField.Type == reflect.TypeFor[meta.TypeMeta]() ||
		goField.Tag.Get("protobuf") == "" && goField.Tag.Get("json") == "-"
}

func newField(goField reflect.StructField) (f field, err error) {
	if f.number, err = number(goField.Tag.Get("protobuf")); err != nil {
		return f, err
	}
	name, options, err := jsonTag(goField.Tag.Get("json"))
	if err != nil {
		return f, err
	}
	embedded := goField.Anonymous && name == ""
	if !embedded {
		f.name = cmp.Or(name, goField.Name)
	}
	var t reflect.Type
	if f.marks, t = count(goField.Type); embedded {
		f.marks = "+" + f.marks
	}
	if f.scalar, f.message, err = typeOf(t); err != nil {
		return f, err
	}
	// A struct is always written, whatever omitempty says.
	isStruct := goField.Type.Kind() == reflect.Struct
	if options["omitzero"] || options["omitempty"] && !isStruct {
		f.marks += "?"
	}
	return f, nil
}

func number(tag string) (int, error) {
	words := strings.Split(tag, ",")
	if len(words) < 2 {
		return 0, errors.New("has no number in protobuf")
	}
	return strconv.Atoi(words[1])
}

func jsonTag(tag string) (name string, options map[string]bool, err error) {
	words := strings.Split(tag, ",")
	if words[0] == "-" {
		return "", nil, errors.New("is not in the JSON")
	}
	options = map[string]bool{}
	for _, word := range words[1:] {
		if !slices.Contains([]string{"omitempty", "omitzero", "inline", ""}, word) {
			return "", nil, fmt.Errorf("has an option of JSON that has no mark here: %s", word)
		}
		options[word] = true
	}
	return words[0], options, nil
}

// count is the mark for how often a field of this type occurs, and the type of each.
func count(t reflect.Type) (string, reflect.Type) {
	switch {
	case t.Kind() == reflect.Pointer:
		return "*", t.Elem()
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		return "{}", t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !marshals(t):
		return "[]", t.Elem()
	}
	return "", t
}

// typeOf is the scalar or the message that a type is.
func typeOf(t reflect.Type) (scalar string, message reflect.Type, err error) {
	switch {
	case t.Kind() == reflect.Struct:
		return "", t, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes", nil, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && marshals(t):
		return "strlist", nil, nil
	case scalars[t.Kind()] != "":
		return scalars[t.Kind()], nil, nil
	}
	return "", nil, fmt.Errorf("is of a type that has no name here: %v", t)
}

// marshals tells whether a type that is no struct is a message all the same, which wraps it.
func marshals(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Marshal() ([]byte, error) }]())
}

func (m message) String() string {
	words := []string{m.t.Name()}
	if m.form != "" {
		words[0] += "=" + m.form
	}
	if m.atomic {
		words[0] += "!"
	}
	for _, f := range m.fields {
		typeName := f.scalar
		if f.message != nil {
			typeName = f.message.Name()
			if packageOf(f.message) != packageOf(m.t) {
				typeName = packageOf(f.message) + "." + typeName
			}
		}
		words = append(words, fmt.Sprintf("%s:%d%s%s%s", f.name, f.number, f.marks, typeName, f.merge))
	}
	return strings.Join(words, " ")
}
