package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/duration"
)

// A limit is a constant or variable whose doc comment has a line such as
//
//	//limit:reads Concurrent requests | flag=NAME | metric=NAME{resource="calls"} | unit=a second | The request waits.
//
// The fields are the section of the page and the name, then options, and last what the user sees when the limit is reached.
type limit struct{ Section, Name, Value, Flag, Metric, Effect string }

// limitMark begins the line of a limit.
const limitMark = "//limit:"

var (
	limitField = regexp.MustCompile(`^(flag|metric|unit)=(.+)$`)
	// limitSections are those of the page.
	limitSections = []string{"reads", "objects", "memory", "watches", "events"}
)

// limitTable is the table of one section of the page of limits.
func limitTable(section string) list {
	around := regexp.MustCompile(`(<!-- limits of ` + section + `[^\n]*-->\n\n)(?:\|.*\n)*()`)
	return list{"docs/reference/limits.md", around, func(f facts) string {
		rows := "| limit | default | flag | metric | when it is reached |\n|---|---|---|---|---|\n"
		for _, l := range f.limits {
			if l.Section == section {
				rows += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", l.Name, l.Value, quoted(l.Flag), quoted(l.Metric), l.Effect)
			}
		}
		return rows
	}}
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return code(text)
}

// limitsOf returns the limits of all packages of a tree, by path and line.
func limitsOf(tree string) ([]limit, error) {
	dirs := map[string]bool{}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != tree && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"node_modules", "testdata", "docs"}, d.Name())):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // A file of the tree.
		if bytes.Contains(text, []byte("\n"+limitMark)) || bytes.Contains(text, []byte("\n\t"+limitMark)) {
			dirs[filepath.Dir(path)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c := checker{fset: token.NewFileSet(), tree: tree, known: map[string]*types.Package{}}
	var out []limit
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		found, err := c.limits(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// A checker evaluates the constants of packages. It ignores what it cannot import: the value of a limit rarely needs more than time.
type checker struct {
	fset  *token.FileSet
	tree  string
	known map[string]*types.Package
}

// timeSource is what constants use of package time. Reading the real one takes seconds.
const timeSource = `package time
type Duration int64
const Millisecond, Second, Minute, Hour Duration = 1e6, 1e9, 60e9, 3600e9`

const modulePath = "github.com/direct-secrets/direct-secrets/"

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	rel, own := strings.CutPrefix(path, modulePath)
	switch {
	case c.known[path] != nil:
		return c.known[path], nil
	case path == "time":
		f, err := parser.ParseFile(c.fset, "time", timeSource, 0)
		if err != nil {
			return nil, err
		}
		c.known[path], err = new(types.Config).Check(path, c.fset, []*ast.File{f}, nil)
		return c.known[path], err
	case !own:
		return nil, errors.Errorf("%s is not read", path)
	}
	pkg, _, _, err := c.check(filepath.Join(c.tree, filepath.FromSlash(rel)), path)
	c.known[path] = pkg
	return pkg, err
}

func (c *checker) check(dir, path string) (*types.Package, []*ast.File, *types.Info, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(c.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: c, IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := conf.Check(path, c.fset, files, info) // The errors are those of packages that are not read.
	return pkg, files, info, nil
}

// limits returns those of the package in a folder.
func (c *checker) limits(dir string) ([]limit, error) {
	_, files, info, err := c.check(dir, dir)
	if err != nil {
		return nil, err
	}
	var out []limit
	used := map[*ast.Comment]bool{}
	for _, f := range files {
		for spec, doc := range declared(f) {
			for _, line := range marked(doc) {
				used[line] = true
				l, err := parseLimit(line.Text)
				if err == nil {
					l.Value, err = value(spec, info, l.Value)
				}
				if err != nil {
					return nil, errors.Wrap(err, c.fset.Position(line.Pos()).String())
				}
				out = append(out, l)
			}
		}
		for _, group := range f.Comments {
			for _, line := range marked(group) {
				if !used[line] {
					return nil, errors.Errorf("%s: a limit is described at no constant or variable of the package", c.fset.Position(line.Pos()))
				}
			}
		}
	}
	return out, nil
}

// parseLimit parses the line of a limit. The result has its unit as Value.
func parseLimit(line string) (limit, error) {
	fields := strings.Split(strings.TrimPrefix(line, limitMark), " | ")
	var l limit
	l.Section, l.Name, _ = strings.Cut(fields[0], " ")
	l.Effect = fields[len(fields)-1]
	if !slices.Contains(limitSections, l.Section) || l.Name == "" || len(fields) < 2 || limitField.MatchString(l.Effect) {
		return l, errors.Errorf("want SECTION NAME | OPTIONS | EFFECT with a section of %s: %s", strings.Join(limitSections, ", "), line)
	}
	for _, field := range fields[1 : len(fields)-1] {
		switch of := limitField.FindStringSubmatch(field); {
		case of == nil:
			return l, errors.Errorf("unknown field %q; want flag=, metric= or unit=", field)
		case of[1] == "flag":
			l.Flag = "--" + of[2]
		case of[1] == "metric":
			l.Metric = of[2]
		default:
			l.Value = of[2]
		}
	}
	return l, nil
}

// value returns the value of a constant or variable as text, with its unit. Bytes are a unit that shows as KiB or MiB.
func value(spec *ast.ValueSpec, info *types.Info, unit string) (string, error) {
	if len(spec.Names) != 1 {
		return "", errors.New("declare a limit on a line of its own")
	}
	of, isConst := info.Defs[spec.Names[0]].(*types.Const)
	var v constant.Value
	switch {
	case isConst:
		v = of.Val()
	case len(spec.Values) == 1:
		v = info.Types[spec.Values[0]].Value
	}
	n, exact := int64(0), false
	if v != nil {
		n, exact = constant.Int64Val(constant.ToInt(v))
	}
	if !exact {
		return "", errors.Errorf("%s has no value that is a known integer", spec.Names[0])
	}
	if t := info.Defs[spec.Names[0]].Type().String(); t == "time.Duration" {
		text := duration.HumanDuration(time.Duration(n))
		if n < int64(time.Second) {
			text = time.Duration(n).String()
		}
		return strings.TrimSpace(text + " " + unit), nil
	}
	if rest, isBytes := strings.CutPrefix(unit, "bytes"); isBytes {
		return size(n) + rest, nil
	}
	return strings.TrimSpace(thousands(n) + " " + unit), nil
}

// size returns bytes as text.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return thousands(n>>20) + " MiB"
	case n > 1<<20 && n%(1<<19) == 0:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n%(1<<10) == 0:
		return thousands(n>>10) + " KiB"
	}
	return thousands(n) + " bytes"
}

// thousands returns a number with commas.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// declared returns the constants and variables of a file with their doc comments, in order.
func declared(f *ast.File) iter.Seq2[*ast.ValueSpec, *ast.CommentGroup] {
	return func(yield func(*ast.ValueSpec, *ast.CommentGroup) bool) {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				doc := spec.Doc
				if !decl.Lparen.IsValid() {
					doc = decl.Doc
				}
				if !yield(spec, doc) {
					return
				}
			}
		}
	}
}

// marked returns the lines of a comment that describe limits.
func marked(doc *ast.CommentGroup) []*ast.Comment {
	if doc == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(doc.List), func(c *ast.Comment) bool { return !strings.HasPrefix(c.Text, limitMark) })
}
