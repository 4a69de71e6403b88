package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// migrated is what `dsctl migrate` converts: the providers of stores and of SecretProviderClasses, and the Kinds of generators.
type migrated struct{ stores, classes, generators []string }

// migratedBy reads the rules of `dsctl migrate`, whose package only dsctl can import.
func migratedBy(tree string) (migrated, error) {
	folder := filepath.Join(tree, "migrate")
	var m migrated
	for file, found := range map[string]struct {
		in   func(*ast.File) []string
		into *[]string
	}{
		"store.go":     {func(f *ast.File) []string { return cases(f, "provider", returnsTrue) }, &m.stores},
		"csi.go":       {func(f *ast.File) []string { return cases(f, "secretProviderClass", assigns) }, &m.classes},
		"generator.go": {func(f *ast.File) []string { return keys(f, "specs") }, &m.generators},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return m, err
		}
		if *found.into = found.in(parsed); len(*found.into) == 0 {
			return m, errors.Errorf("%s/%s has no rules that can be read", folder, file)
		}
		slices.Sort(*found.into)
	}
	return m, nil
}

// cases returns the texts of the cases of the first switch in a function that do what is wanted.
func cases(f *ast.File, function string, wanted func(ast.Stmt) bool) []string {
	var out []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		at := slices.IndexFunc(fn.Body.List, func(s ast.Stmt) bool { _, ok := s.(*ast.SwitchStmt); return ok })
		if at < 0 {
			continue
		}
		for _, s := range fn.Body.List[at].(*ast.SwitchStmt).Body.List { //nolint:forcetypeassert // The index is that of a switch.
			if c, ok := s.(*ast.CaseClause); ok && slices.ContainsFunc(c.Body, wanted) {
				out = append(out, literals(c.List)...)
			}
		}
	}
	return out
}

// returnsTrue reports whether a statement has a return whose last result is true.
func returnsTrue(s ast.Stmt) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			last, ok := r.Results[len(r.Results)-1].(*ast.Ident)
			found = found || ok && last.Name == "true"
		}
		return true
	})
	return found
}

// assigns reports whether a statement is an assignment.
func assigns(s ast.Stmt) bool {
	_, ok := s.(*ast.AssignStmt)
	return ok
}

// keys returns the keys of a map of texts.
func keys(f *ast.File, variable string) []string {
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != variable || len(v.Values) == 0 {
			return true
		}
		if all, ok := v.Values[0].(*ast.CompositeLit); ok {
			for _, e := range all.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					out = append(out, literals([]ast.Expr{pair.Key})...)
				}
			}
		}
		return false
	})
	return out
}

// literals returns the values of literals of text.
func literals(all []ast.Expr) []string {
	var out []string
	for _, e := range all {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				out = append(out, text)
			}
		}
	}
	return out
}
