package main

import (
	"fmt"
	"go/ast"
	"regexp"
)

// bound is the line of the comment on a kept map that says what limits its entries.
var bound = regexp.MustCompile(`(?m)^\s*Bound: \S`)

// onlyTests matches the files that only tests use.
var onlyTests = regexp.MustCompile(`(^|/)(conformance|testing|testenv|simulation|emulator|vaulttest|awstest)/`)

// kept records the maps of a file that outlive a walk and do not say what bounds them: fields of a struct with a lock, and variables that begin
// empty. Tenants name their entries, so each needs a bound. A variable that is made with its entries is a table.
func (s *survey) kept(name string, file *ast.File) {
	if onlyTests.MatchString(name) {
		return
	}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && grows(v) {
				s.keeps(v.Names, d.Doc, v.Doc, v.Comment)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if t, ok := n.(*ast.StructType); ok {
			locked := false
			for _, f := range t.Fields.List {
				locked = locked || isLock(f.Type)
			}
			for _, f := range t.Fields.List {
				if isSyncMap(f.Type) || locked && isMap(f.Type) {
					s.keeps(f.Names, f.Doc, f.Comment)
				}
			}
		}
		return true
	})
}

// keeps records the names of a kept map, unless one of its comments has its bound.
func (s *survey) keeps(names []*ast.Ident, comments ...*ast.CommentGroup) {
	for _, c := range comments {
		if bound.MatchString(c.Text()) {
			return
		}
	}
	for _, name := range names {
		s.unbound = append(s.unbound, fmt.Sprintf("%s: the map %s outlives a walk; say in its comment what limits its entries, as in \"Bound: one per store.\"; remove what a tenant no longer names",
			s.fset.Position(name.Pos()), name.Name))
	}
}

// grows reports whether variables are maps that begin empty.
func grows(v *ast.ValueSpec) bool {
	if v.Type != nil && len(v.Values) == 0 {
		return isMap(v.Type)
	}
	for _, value := range v.Values {
		switch value := value.(type) {
		case *ast.CompositeLit:
			if len(value.Elts) == 0 && isMap(value.Type) {
				return true
			}
		case *ast.CallExpr:
			if f, ok := value.Fun.(*ast.Ident); ok && f.Name == "make" && isMap(value.Args[0]) {
				return true
			}
		}
	}
	return false
}

func isMap(e ast.Expr) bool {
	_, ok := e.(*ast.MapType)
	return ok || isSyncMap(e)
}

func isSyncMap(e ast.Expr) bool { return isOfSync(e, "Map") }

func isLock(e ast.Expr) bool { return isOfSync(e, "Mutex") || isOfSync(e, "RWMutex") }

// isOfSync reports whether a type is that of package sync.
func isOfSync(e ast.Expr, name string) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	x, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := x.X.(*ast.Ident)
	return ok && from.Name == "sync" && x.Sel.Name == name
}
