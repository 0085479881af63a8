package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// sources has the modules that say how server-side apply merges their types, and the file that says it, as text.
var sources = map[string]string{
	"k8s.io/client-go":               "applyconfigurations/internal/internal.go",
	"k8s.io/apiextensions-apiserver": "pkg/client/applyconfiguration/internal/internal.go",
	"k8s.io/kube-aggregator":         "pkg/client/applyconfiguration/internal/internal.go",
}

// merging is how values of the types are merged, by the names that OpenAPI has for them.
type merging map[string]smd.TypeDef

func readMerging() (merging, error) {
	all := merging{}
	for module, file := range sources {
		directory, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return nil, fmt.Errorf("where %s is: %w", module, err)
		}
		text, err := schemaText(filepath.Join(strings.TrimSpace(string(directory)), file))
		if err != nil {
			return nil, err
		}
		parser, err := typed.NewParser(typed.YAMLObject(text))
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", file, module, err)
		}
		for _, t := range parser.Schema.Types {
			all[t.Name] = t
		}
	}
	return all, nil
}

// schemaText is the one long text in a file.
func schemaText(file string) (text string, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return "", err
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, "`types:") {
			text, err = strconv.Unquote(literal.Value)
		}
		return true
	})
	if text == "" && err == nil {
		err = fmt.Errorf("%s has no text that begins with types:", file)
	}
	return text, err
}

// openAPIName is the name of a Go type there: io.k8s.api.core.v1.Pod.
func openAPIName(t reflect.Type) string {
	domain, rest, _ := strings.Cut(t.PkgPath(), "/")
	words := strings.Split(domain, ".")
	slices.Reverse(words)
	return strings.Join(append(words, strings.Split(rest, "/")...), ".") + "." + t.Name()
}

// mark writes down in a message and its fields what is not the rule: that lists and messages with form are replaced, and maps
// and other messages are merged. What is embedded may be known by the message that it is embedded in.
func (all merging) mark(m *message, around *smd.Map) error {
	own, ok := all[openAPIName(m.t)]
	fields := around
	if ok && own.Map != nil {
		fields = own.Map
		m.atomic = fields.ElementRelationship == smd.Atomic
	}
	if fields == nil || m.form != "" {
		return nil
	}
	for i, f := range m.fields {
		known, ok := fields.FindField(f.name)
		if !ok {
			continue
		}
		mark, err := all.markOf(f, known.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		m.fields[i].merge = mark
	}
	return nil
}

func (all merging) markOf(f field, t smd.TypeRef) (string, error) {
	atom := t.Inlined
	if t.NamedType != nil {
		atom = all[*t.NamedType].Atom
	}
	switch {
	case strings.HasPrefix(f.marks, "[]") || f.scalar == "strlist":
		if atom.List == nil || atom.List.ElementRelationship != smd.Associative {
			return "", nil
		}
		keys := []string{}
		for _, key := range atom.List.Keys {
			keys = append(keys, key+all.defaultOf(atom.List.ElementType, key))
		}
		return "@" + strings.Join(keys, ","), nil
	case strings.HasPrefix(f.marks, "{}"):
		if atom.Map != nil && relation(t, atom) == smd.Atomic {
			return "@!", nil
		}
	case f.message != nil && atom.Map != nil && t.ElementRelationship != nil:
		if *t.ElementRelationship == smd.Atomic {
			return "@!", nil
		}
		return "@+", nil
	}
	return "", nil
}

func relation(t smd.TypeRef, atom smd.Atom) smd.ElementRelationship {
	if t.ElementRelationship != nil {
		return *t.ElementRelationship
	}
	return atom.Map.ElementRelationship
}

// defaultOf is what an item of a list has for a key that it leaves out.
func (all merging) defaultOf(item smd.TypeRef, key string) string {
	if item.NamedType == nil || all[*item.NamedType].Map == nil {
		return ""
	}
	known, ok := all[*item.NamedType].Map.FindField(key)
	if !ok || known.Default == nil {
		return ""
	}
	return fmt.Sprintf("=%v", known.Default)
}
