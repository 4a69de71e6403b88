// Command kinds writes zz_generated.kinds.go of API packages: what each Kind needs in addition to its spec. That is the type with its
// cluster twin, their lists, accessors and print columns, the registration, and the permissions of the shared controllers.
//
//	kinds FOLDER...
//
// It skips folders without a marker. A marker is in a comment of its own above the spec, whose first word is the name of the Kind:
//
//	// AcmeVault is a store of one service, used as one identity.
//	//
//	// +direct-secrets:store:shortName=av
//	// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
//
//	// AcmeVaultSpec describes where the secrets are, and how to log in.
//	type AcmeVaultSpec struct {
//
// The marker is +direct-secrets:store, generator or eventsource. These are its options:
//
//   - shortName=NAME is the short name. That of the cluster twin begins with c.
//   - optional: the Kind needs no spec.
//   - login: the spec of a generator refers to credentials, so its cluster twin has an authenticationScope.
//   - noCluster: there is no cluster twin.
//   - get=METHOD:FIELD;FIELD adds methods that return a field of the spec, or a pointer to an embedded type of the package.
//
// A package can declare the spec of a cluster twin itself, for example with rules of its own.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// file is the name of the generated file.
const file = "zz_generated.kinds.go"

//go:embed kinds.go.tmpl
var text string

var tmpl = template.Must(template.New("kinds").Funcs(template.FuncMap{"article": article}).Parse(text))

var groupName = regexp.MustCompile(`(?m)^\+groupName=(\S+)$`)

// A kind is a Kind, or the cluster twin of the Kind Of.
type kind struct {
	Name, Of string
	// Role is store, generator or eventsource. Embeds is the type of common that the spec of each such Kind embeds.
	Role, Embeds, Verbs string
	// Spec is the type of the spec. That of a cluster twin embeds OfSpec, and is written unless it is Declared.
	Spec, OfSpec string
	Declared     bool
	// Doc and Columns are comments.
	Doc               string
	Columns           []string
	Plural, ShortName string
	Optional, Login   bool
	Getters           []getter
	noCluster         bool
}

// A getter is a method that returns a field of the spec. Address is & for an embedded type.
type getter struct{ Method, Field, Address, Type string }

// A group is an API group.
type group struct {
	Group, Version string
	Kinds          []kind
}

func main() {
	for _, dir := range os.Args[1:] {
		out, err := generate(dir)
		if err == nil && out != nil {
			path := filepath.Join(dir, file)
			fmt.Println(path)
			err = os.WriteFile(path, out, 0o644) //nolint:gosec // It is part of the tree, for all to read.
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s\n", dir, err)
			os.Exit(1)
		}
	}
}

// generate returns the generated file of the package in a folder. It is nil without a marker.
func generate(dir string) ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var g group
	declared := map[string]bool{}
	files := token.NewFileSet()
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "zz_generated") {
			continue
		}
		parsed, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		g.Version = parsed.Name.Name
		// Text omits markers that have the form of a directive, but this one has none.
		if found := groupName.FindStringSubmatch(parsed.Doc.Text()); found != nil {
			g.Group = found[1]
		}
		all := typesOf(parsed)
		for _, t := range all {
			declared[t.Name.Name] = true
		}
		for _, comment := range parsed.Comments {
			k, err := read(comment, all)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", files.Position(comment.Pos()), err)
			}
			if k == nil {
				continue
			}
			g.Kinds = append(g.Kinds, *k)
			if !k.noCluster {
				g.Kinds = append(g.Kinds, twin(*k))
			}
		}
	}
	if len(g.Kinds) == 0 {
		return nil, nil
	}
	if g.Group == "" {
		return nil, errors.New("the comment of the package has no +groupName")
	}
	for i := range g.Kinds {
		g.Kinds[i].Declared = declared[g.Kinds[i].Spec]
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, g); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}

// typesOf returns the types that a file declares, in their order.
func typesOf(f *ast.File) []*ast.TypeSpec {
	var all []*ast.TypeSpec
	for _, decl := range f.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			for _, s := range d.Specs {
				all = append(all, s.(*ast.TypeSpec)) //nolint:forcetypeassert // The specs of a type declaration are of no other type.
			}
		}
	}
	return all
}

// read returns the Kind that a comment describes, with the next type as its spec. It is nil if the comment has no marker.
func read(comment *ast.CommentGroup, all []*ast.TypeSpec) (*kind, error) {
	var k kind
	var doc, options []string
	for _, line := range comment.List {
		marker, isMarker := strings.CutPrefix(line.Text, "// +direct-secrets:")
		switch {
		case isMarker:
			role, rest, _ := strings.Cut(marker, ":")
			k.Role, options = role, strings.Split(rest, ",")
		case strings.HasPrefix(line.Text, "// +kubebuilder:printcolumn:"):
			k.Columns = append(k.Columns, line.Text)
		case !strings.HasPrefix(line.Text, "// +") && line.Text != "//":
			doc = append(doc, line.Text)
		}
	}
	if k.Role == "" {
		return nil, nil
	}
	var spec ast.Expr
	if i := slices.IndexFunc(all, func(t *ast.TypeSpec) bool { return t.Pos() > comment.End() }); i >= 0 {
		k.Spec, spec = all[i].Name.Name, all[i].Type
	}
	k.Doc = strings.Join(doc, "\n")
	k.Name, _, _ = strings.Cut(strings.TrimPrefix(k.Doc, "// "), " ")
	if k.Name == k.Spec || !strings.HasSuffix(k.Spec, "Spec") {
		return nil, errors.New("a marker must be in a comment of its own above the spec of its Kind, whose name must end with Spec")
	}
	switch k.Role {
	case "store":
		k.Embeds, k.Verbs = "StoreSpec", "list;watch"
	case "generator":
		k.Embeds, k.Verbs = "GeneratorSpec", "get;list;watch"
	case "eventsource":
		k.Embeds, k.Verbs = "EventSourceSpec", "list;watch"
	default:
		return nil, fmt.Errorf("the marker is %q; it must be store, generator or eventsource", k.Role)
	}
	k.Plural = strings.TrimSuffix(strings.ToLower(k.Name), "s") + "s"
	return &k, k.set(options, spec)
}

// set sets the options of a marker above a spec.
func (k *kind) set(options []string, spec ast.Expr) error {
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "":
		case "shortName":
			k.ShortName = value
		case "optional":
			k.Optional = true
		case "login":
			k.Login = true
		case "noCluster":
			k.noCluster = true
		case "get":
			for asked := range strings.SplitSeq(value, ";") {
				g, err := getterOf(asked, spec)
				if err != nil {
					return err
				}
				k.Getters = append(k.Getters, g)
			}
		default:
			return fmt.Errorf("the marker has the unknown option %q", name)
		}
	}
	return nil
}

// getterOf returns the method for an item of the option get.
func getterOf(asked string, spec ast.Expr) (getter, error) {
	method, field, renamed := strings.Cut(asked, ":")
	if !renamed {
		field = method
	}
	if s, ok := spec.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			typ := types.ExprString(f.Type)
			if len(f.Names) == 0 && typ == field {
				return getter{method, field, "&", "*" + typ}, nil
			}
			if len(f.Names) == 1 && f.Names[0].Name == field {
				return getter{method, field, "", typ}, nil
			}
		}
	}
	return getter{}, fmt.Errorf("the option get names %q, which the spec does not have", field)
}

// twin returns the cluster twin of a Kind.
func twin(k kind) kind {
	serves := "that serves many namespaces"
	if k.Role == "eventsource" {
		serves = "for the objects of many namespaces"
	}
	k.Of, k.OfSpec = k.Name, k.Spec
	k.Name, k.Spec, k.Plural = "Cluster"+k.Name, "Cluster"+k.Spec, "cluster"+k.Plural
	k.Doc = fmt.Sprintf("// %s is %s %s %s.", k.Name, article(k.Of), k.Of, serves)
	if k.ShortName != "" {
		k.ShortName = "c" + k.ShortName
	}
	return k
}

var an = regexp.MustCompile(`^([AEFHILMNORSX][A-Z]|[AEI]|O[^n])`)

// article returns the article of a name, which can begin with an abbreviation.
func article(name string) string {
	if an.MatchString(name) {
		return "an"
	}
	return "a"
}
