package main

import (
	"go/ast"
	"reflect"
	"regexp"
	"strings"
)

// api adds the descriptions of types and fields, and the messages of validation rules.
func (f *goFile) api(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() && !strings.HasSuffix(t.Name.Name, "List") {
					f.described(t.Name.Name, n.Doc)
					f.fields(t)
				}
			}
		case *ast.Comment:
			if m := celMessage.FindStringSubmatch(n.Text); m != nil {
				f.add("rule: " + m[1])
			}
		}
		return true
	})
}

// fields adds the descriptions of the fields of a type, with their names in manifests.
func (f *goFile) fields(t *ast.TypeSpec) {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		f.described(t.Name.Name+"."+name, field.Doc)
	}
}

// described adds a description without its markers.
func (f *goFile) described(name string, doc *ast.CommentGroup) {
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		f.add(name + ": " + strings.Join(lines, " "))
	}
}

var celMessage = regexp.MustCompile(`^//\s*\+kubebuilder:validation:XValidation:.*message="([^"]*)"`)
