package main

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// roots are the folders of the tree with messages for users.
var roots = []string{"common", "provider-*", "generator-*", "cmd/dsctl"}

// aside are folders with code for tests and developers only. A name without a slash matches at any depth.
var aside = []string{"testdata", "testing", "testenv", "fake", "simulation", "awstest", "vaulttest", "emulator", "aws-emulator",
	"common/provider/conformance"}

// texts are the functions whose arguments are messages even if they are a single word.
var texts = []string{"New", "Errorf", "Wrap", "Wrapf", "NewError", "Eventf"}

// code adds the messages of the packages below the roots.
func (l *list) code(tree fs.FS) error {
	for _, pattern := range roots {
		folders, err := fs.Glob(tree, pattern)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case d.IsDir() && (slices.Contains(aside, name) || slices.Contains(aside, d.Name())):
					return fs.SkipDir
				case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
					return nil
				}
				return l.file(tree, name)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// file adds the messages of a Go file.
func (l *list) file(tree fs.FS, name string) error {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	f := goFile{fset: token.NewFileSet(), add: func(message string) { l.add(path.Dir(name), message) }}
	parsed, err := parser.ParseFile(f.fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if path.Base(path.Dir(name)) == "v1alpha1" {
		f.api(parsed)
	}
	if !ast.IsGenerated(parsed) {
		ast.Inspect(parsed, f.visit)
	}
	return nil
}

// A goFile finds the messages of a Go file.
type goFile struct {
	fset *token.FileSet
	add  func(message string)
}

// visit adds the messages of a node, and reports whether to visit its children.
func (f *goFile) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.CommentGroup:
		return false
	case *ast.Field:
		ast.Inspect(n.Type, f.visit)
		return false
	case *ast.CallExpr:
		return !matches(n) && !f.flag(n) && f.call(n)
	case *ast.BasicLit, *ast.BinaryExpr:
		message, ok := f.text(n.(ast.Expr))
		if ok && isProse(message) {
			f.add(message)
			return false
		}
	}
	return true
}

// matches reports whether a call compares or parses a string, so that its literals are not messages.
func matches(n *ast.CallExpr) bool {
	fun, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch pkg, _ := fun.X.(*ast.Ident); {
	case pkg == nil:
		return false
	case pkg.Name == "regexp":
		return true
	case pkg.Name == "strings":
		return !slices.Contains([]string{"Join", "ReplaceAll", "Replace", "NewReplacer"}, fun.Sel.Name)
	}
	return false
}

// call adds single words that are messages by the function that they are passed to, and reports whether to
// visit the children.
func (f *goFile) call(n *ast.CallExpr) bool {
	var name string
	switch fun := n.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	if slices.Contains(texts, name) {
		for _, arg := range n.Args {
			if message, ok := f.text(arg); ok && !isProse(message) && word.MatchString(bare(message)) {
				f.add(message)
			}
		}
	}
	return true
}

// flag adds the declaration of a flag with functions of flag and pflag, whose name precedes the help.
func (f *goFile) flag(n *ast.CallExpr) bool {
	fun, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || !flagFunc.MatchString(fun.Sel.Name) || len(n.Args) < 3 {
		return false
	}
	name, ok := f.text(n.Args[1])
	help, isText := f.text(n.Args[len(n.Args)-1])
	if ok && isText {
		f.add("--" + name + ": " + help)
	}
	return ok && isText
}

var flagFunc = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*)?VarP?$`)

// text returns a literal, or a sum with at least one literal. Computed operands are in braces.
func (f *goFile) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.ParenExpr:
		return f.text(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, isX := f.text(e.X)
		y, isY := f.text(e.Y)
		if !isX {
			x = f.computed(e.X)
		}
		if !isY {
			y = f.computed(e.Y)
		}
		return x + y, isX || isY
	}
	return "", false
}

// computed returns an expression in braces.
func (f *goFile) computed(e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, f.fset, e); err != nil {
		return "{}"
	}
	return "{" + strings.Join(strings.Fields(b.String()), " ") + "}"
}

var (
	verb  = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[0-9*]*(\.[0-9*]+)?[a-zA-Z%]|\{[^}]*\}`)
	word  = regexp.MustCompile(`\pL{2}`)
	prose = regexp.MustCompile(`\pL{2}\S*\s|\s\S*\pL{2}`)
)

// bare returns a message without its verbs.
func bare(message string) string { return verb.ReplaceAllString(message, "%") }

// isProse reports whether a string has a word and a space. Messages have both, names do not.
func isProse(s string) bool { return prose.MatchString(bare(s)) }
