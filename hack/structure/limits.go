package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A type or file beyond these limits has more than one concern. The linter limits functions.
const (
	maxMethods = 20
	maxFields  = 14
	maxLines   = 400
)

// aside are the folders without these limits. The types of APIs have as many fields as the API. A fake has a
// method for each thing that a test can check. A suite is a list of checks.
var aside = []string{"apis", "provider/conformance", "provider/fake"}

// exempt is the prefix of the comment, above a type or a package clause, with the reason for an exemption.
const exempt = "//structure:exempt"

// A subject is a type or a file with limits.
type subject struct {
	at, name               string
	methods, fields, lines int
	// exemption is the comment with the reason; empty if there is none.
	exemption string
}

// fault returns what is wrong with a subject, or "".
func (s *subject) fault() string {
	var over []string
	for _, limit := range []struct {
		is, most int
		unit     string
	}{{s.methods, maxMethods, "methods"}, {s.fields, maxFields, "fields"}, {s.lines, maxLines, "lines"}} {
		if limit.is > limit.most {
			over = append(over, fmt.Sprintf("%d %s (at most %d)", limit.is, limit.unit, limit.most))
		}
	}
	switch {
	case s.exemption == "" && len(over) > 0:
		return fmt.Sprintf("%s: %s has %s", s.at, s.name, strings.Join(over, ", "))
	case s.exemption != "" && len(over) == 0:
		return fmt.Sprintf("%s: %s needs no %s", s.at, s.name, exempt)
	case s.exemption != "" && strings.TrimSpace(strings.TrimPrefix(s.exemption, exempt)) == "":
		return fmt.Sprintf("%s: %s does not say why", s.at, exempt)
	}
	return ""
}

// A survey finds the subjects of a module.
type survey struct {
	module fs.FS
	fset   *token.FileSet
	files  []*subject
	// types maps folder and name to types, because methods can be in another file than their type.
	types map[string]*subject
	// unbound are what kept has found.
	unbound []string
}

// newSurvey returns what a module has.
func newSurvey(module fs.FS) (*survey, error) {
	s := &survey{module: module, fset: token.NewFileSet(), types: map[string]*subject{}}
	return s, fs.WalkDir(module, ".", s.visit)
}

// beyond returns the subjects that exceed the limits.
func (s *survey) beyond() []string {
	var faults []string
	for _, subject := range slices.Concat(s.files, slices.Collect(maps.Values(s.types))) {
		if fault := subject.fault(); fault != "" {
			faults = append(faults, fault)
		}
	}
	slices.Sort(faults)
	return faults
}

// visit reads a file, or skips a folder.
func (s *survey) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case d.IsDir() && (slices.Contains(aside, name) || d.Name() == "testdata"):
		return fs.SkipDir
	case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
		return nil
	}
	source, err := fs.ReadFile(s.module, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(s.fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	s.files = append(s.files, &subject{
		at: name, name: "the file", lines: s.fset.File(file.Pos()).LineCount(),
		exemption: exemption(slices.DeleteFunc(file.Comments, func(c *ast.CommentGroup) bool { return c.Pos() > file.Package })...),
	})
	s.kept(name, file)
	for _, decl := range file.Decls {
		s.declaration(path.Dir(name), decl)
	}
	return nil
}

func (s *survey) declaration(folder string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			s.typed(folder, receiver(d.Recv.List[0].Type)).methods++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			is := s.typed(folder, t.Name.Name)
			is.at, is.exemption = s.fset.Position(t.Pos()).String(), exemption(d.Doc, t.Doc)
			switch t := t.Type.(type) {
			case *ast.StructType:
				is.fields = size(t.Fields)
			case *ast.InterfaceType:
				is.methods = size(t.Methods)
			}
		}
	}
}

// typed returns the subject of a type.
func (s *survey) typed(folder, name string) *subject {
	key := path.Join(folder, name)
	if s.types[key] == nil {
		s.types[key] = &subject{name: name}
	}
	return s.types[key]
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// size counts fields or methods. An embedded one counts as one.
func size(l *ast.FieldList) int {
	n := 0
	for _, f := range l.List {
		n += max(1, len(f.Names))
	}
	return n
}

// exemption returns the comment with an exemption, or "".
func exemption(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, exempt) {
				return c.Text
			}
		}
	}
	return ""
}
