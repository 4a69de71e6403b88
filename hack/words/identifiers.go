package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
)

//go:embed identifiers.txt
var identifierList string

//go:embed identifierexceptions.txt
var identifierExceptionList string

// A term is what an identifier must not contain.
type term struct {
	// words are in lower case; an identifier contains the term if it has them in a row.
	words   []string
	instead string
}

// identifierCheck collects the identifiers that contain a term.
type identifierCheck struct {
	terms      []term
	exceptions []*exception
	found      []identifierFinding
	// folders are those whose names were read.
	folders map[string]bool
}

// identifierFinding is an identifier that contains a term.
type identifierFinding struct {
	path, name string
	line       int
	term       term
}

func newIdentifierCheck(list, exceptionList string) *identifierCheck {
	c := &identifierCheck{exceptions: exceptions(exceptionList), folders: map[string]bool{}}
	for _, f := range lines(list, 2) {
		for form := range strings.SplitSeq(f[0], ", ") {
			c.terms = append(c.terms, term{words: strings.Fields(form), instead: f[1]})
		}
	}
	return c
}

// file checks what a file of Go declares, and the names of the file and its folders.
func (c *identifierCheck) file(name string, content []byte) {
	if path.Ext(name) != ".go" || generated.MatchString(name) && !strings.HasPrefix(name, "hack/words/") {
		return
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return
	}
	for folder := path.Dir(name); folder != "." && !c.folders[folder]; folder = path.Dir(folder) {
		c.folders[folder] = true
		c.identifier(folder, 1, path.Base(folder))
	}
	c.identifier(name, 1, strings.TrimSuffix(path.Base(name), ".go"))
	if strings.TrimSuffix(parsed.Name.Name, "_test") != path.Base(path.Dir(name)) {
		c.identifier(name, files.Position(parsed.Name.Pos()).Line, parsed.Name.Name)
	}
	for _, id := range declared(parsed) {
		c.identifier(name, files.Position(id.Pos()).Line, id.Name)
	}
}

// identifier checks one name.
func (c *identifierCheck) identifier(name string, line int, identifier string) {
	split := split(identifier)
	for _, t := range c.terms {
		if containsRun(split, t.words) && !c.allowed(name, identifier) {
			c.found = append(c.found, identifierFinding{name, identifier, line, t})
		}
	}
}

// allowed reports whether an exception allows an identifier below its path.
func (c *identifierCheck) allowed(name, identifier string) bool {
	for _, e := range c.exceptions {
		if e.text == identifier && strings.HasPrefix(name, e.path) {
			e.used = true
			return true
		}
	}
	return false
}

// report returns a line for each finding, and one for each exception that allows nothing if all files were read.
func (c *identifierCheck) report(all bool) []string {
	var report []string
	for _, f := range c.found {
		report = append(report, fmt.Sprintf("%s:%d: %s: %s", f.path, f.line, f.name, f.term.instead))
	}
	for _, e := range c.exceptions {
		if all && !e.used {
			report = append(report, fmt.Sprintf("hack/words/identifierexceptions.txt: %s has no such identifier any more: %s", e.path, e.text))
		}
	}
	return report
}

// declared returns the identifiers that a file declares, in the order of the file, without the name of its package.
func declared(parsed *ast.File) []*ast.Ident {
	var all []*ast.Ident
	add := func(of ast.Expr, ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil && id.Name != "_" && !isIterator(id, of) {
				all = append(all, id)
			}
		}
	}
	addDefined := func(operator token.Token, of ast.Expr, expressions ...ast.Expr) {
		for _, e := range expressions {
			if id, ok := e.(*ast.Ident); ok && operator == token.DEFINE {
				add(of, id)
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			add(nil, n.Name)
		case *ast.FuncDecl:
			add(nil, n.Name)
		case *ast.TypeSpec:
			add(nil, n.Name)
		case *ast.ValueSpec:
			add(n.Type, n.Names...)
		case *ast.Field:
			add(n.Type, n.Names...)
		case *ast.AssignStmt:
			addDefined(n.Tok, n.Rhs[0], n.Lhs...)
		case *ast.RangeStmt:
			addDefined(n.Tok, nil, n.Key, n.Value)
		}
		return true
	})
	return all
}

// isIterator reports whether an identifier is the function yield of an iterator, as the package iter names it. of is its type or
// value.
func isIterator(id *ast.Ident, of ast.Expr) bool {
	switch of.(type) {
	case *ast.FuncType, *ast.FuncLit:
		return id.Name == "yield"
	}
	return false
}

// split returns the words of an identifier in lower case. They end at capitals, digits, underscores, dashes and dots.
func split(identifier string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(identifier)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]), // mendNow
			unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]): // JSONMend
			end()
		}
		word = append(word, r)
	}
	end()
	return all
}

// containsRun reports whether words contains run as consecutive elements.
func containsRun(words, run []string) bool {
	for i := range len(words) - len(run) + 1 {
		if slices.Equal(words[i:i+len(run)], run) {
			return true
		}
	}
	return false
}
