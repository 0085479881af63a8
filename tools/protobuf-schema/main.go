// Command protobuf-schema prints crates/model/src/protobuf/schema.txt: which messages the kinds of Kubernetes are in
// protobuf, and what their fields are in JSON. Nothing goes in but the Go types of the modules in go.mod, which it
// reflects over; the head of what comes out explains its lines. `run` compares it with the file.
package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	admission "k8s.io/api/admission/v1"
	admissionbeta "k8s.io/api/admission/v1beta1"
	imagepolicy "k8s.io/api/imagepolicy/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsbeta "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationbeta "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

const head = `# The protobuf messages of Kubernetes and their JSON, written by tools/protobuf-schema.
#
# kinds VERSION PACKAGE KIND...   these kinds of an apiVersion (* for any) are the messages of that name
# package PACKAGE                 the messages that follow are in it
# MESSAGE[=FORM] FIELD...         FORM when the JSON is not an object of the fields; with ! it is atomic
#
# FIELD is NAME:NUMBER, marks, and TYPE: a scalar, or a message, with its package unless it is the same.
# Marks: [] list, {} map from texts, * pointer, + embedded; ? left out when zero or absent, and of a list
# without it: ! [] when absent.
#
# What is merged by server-side apply, where it is not as usual (a list is atomic, maps and messages are not), is after
# the type: @! atomic, @+ not atomic, @ a set, @KEY,KEY... a list by keys, with =DEFAULT of a key that has one.
`

func main() {
	text, err := table()
	if err != nil {
		fmt.Fprintln(os.Stderr, "protobuf-schema:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// table is the whole text.
func table() (string, error) {
	kinds, err := allKinds()
	if err != nil {
		return "", err
	}
	merging, err := readMerging()
	if err != nil {
		return "", err
	}
	packages, err := allMessages(slices.Collect(maps.Values(kinds)), merging)
	if err != nil {
		return "", err
	}
	lines := append([]string{head}, kindLines(kinds)...)
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		lines = append(lines, "\npackage "+name)
		messages := packages[name]
		for _, name := range slices.Sorted(maps.Keys(messages)) {
			lines = append(lines, messages[name].String())
		}
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// allKinds is every kind that has a protobuf form, and its type.
func allKinds() (map[schema.GroupVersionKind]reflect.Type, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgo.AddToScheme, meta.AddMetaToScheme, admission.AddToScheme, admissionbeta.AddToScheme,
		imagepolicy.AddToScheme, apiextensions.AddToScheme, apiextensionsbeta.AddToScheme,
		apiregistration.AddToScheme, apiregistrationbeta.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	kinds := scheme.AllKnownTypes()
	for kind, t := range kinds {
		if kind.Version == runtime.APIVersionInternal || !isMessage(t) {
			delete(kinds, kind)
		} else if kind.Kind != t.Name() {
			return nil, fmt.Errorf("%v has another name than its message %v", kind, t)
		}
	}
	return kinds, nil
}

// kindLines says the kinds of each version. Options and watch events are registered in every version: once with * is
// enough.
func kindLines(kinds map[schema.GroupVersionKind]reflect.Type) (lines []string) {
	homes := map[reflect.Type]int{}
	for _, t := range kinds {
		homes[t]++
	}
	type line struct{ version, inPackage string }
	names := map[line][]string{}
	for kind, t := range kinds {
		at := line{kind.GroupVersion().String(), packageOf(t)}
		if homes[t] > 1 {
			at.version = "*"
		}
		names[at] = append(names[at], kind.Kind)
	}
	inOrder := func(a, b line) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.inPackage, b.inPackage))
	}
	for _, at := range slices.SortedFunc(maps.Keys(names), inOrder) {
		slices.Sort(names[at])
		words := append([]string{"kinds", at.version, at.inPackage}, slices.Compact(names[at])...)
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// allMessages is what can be met in these types, by package and name.
func allMessages(open []reflect.Type, merging merging) (map[string]map[string]message, error) {
	packages := map[string]map[string]message{}
	// What embeds a message knows its fields by name, too.
	around := map[reflect.Type]*smd.Map{}
	for len(open) > 0 {
		t := open[len(open)-1]
		open = open[:len(open)-1]
		messages := packages[packageOf(t)]
		if messages == nil {
			messages = map[string]message{}
			packages[packageOf(t)] = messages
		}
		if known, ok := messages[t.Name()]; ok {
			if known.t != t {
				return nil, fmt.Errorf("%s and %s are shortened to one package", known.t.PkgPath(), t.PkgPath())
			}
			continue
		}
		m, err := newMessage(t)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", packageOf(t), t.Name(), err)
		}
		if err := merging.mark(&m, around[t]); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", packageOf(t), t.Name(), err)
		}
		messages[t.Name()] = m
		for _, f := range m.fields {
			if f.message != nil {
				open = append(open, f.message)
			}
			if strings.HasPrefix(f.marks, "+") {
				around[f.message] = merging[openAPIName(t)].Map
			}
		}
	}
	return packages, nil
}

var versioned = regexp.MustCompile(`[^/]+/v[0-9][^/]*$`)

// packageOf is the last part of a type's package, with the group if that is a version: core/v1, runtime.
func packageOf(t reflect.Type) string {
	path := t.PkgPath()
	if group := versioned.FindString(path); group != "" {
		return group
	}
	return path[strings.LastIndex(path, "/")+1:]
}
