package migrate

import (
	"regexp"
	"slices"
	"strings"
	syntax "text/template/parse"

	"go.yaml.in/yaml/v3"
)

// transformation is where an object of Vault Secrets Operator says how the Secret differs from the answer of Vault.
const transformation = "spec.destination.transformation"

// transformed returns a field of the transformation of an object.
func (o *object) transformed(name string) *yaml.Node {
	return child(o.node, append(strings.Split(transformation, "."), name)...)
}

func excludeRaw(f *field) {
	switch f.node.Value {
	case "true":
		f.dropped("the key _raw is never written")
	case "false":
		f.pend() // finishDestination reports on it.
	default:
		f.invalid("true or false")
	}
}

// isAll reports whether a list has an expression that matches every key.
func isAll(list *yaml.Node) bool {
	for i := range length(list) {
		switch list.Content[i].Value {
		case ".*", "^.*$", ".+", "^.+$":
			return true
		}
	}
	return false
}

// vsoTemplates moves the templates of the Secret.
func vsoTemplates(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	for key, value := range pairs(f.node) {
		at := f.below(key, value, key.Value)
		if value.Kind != yaml.MappingNode {
			at.invalid("a mapping")
			continue
		}
		if !at.only("name", "text") {
			continue
		}
		was := child(value, "text")
		if was == nil || was.Kind != yaml.ScalarNode {
			at.unsupported("it has no text", "correct it, and convert it again")
			continue
		}
		text, why := vsoTemplate(was.Value)
		if why == "" {
			why = faultOf(plain(text))
		}
		if why != "" {
			at.below(nil, nil, "text").unsupported(why, "write the template by hand, and try it with dsctl render")
			continue
		}
		at.node = scalarNode(text, was)
		found := Finding{Verdict: Exact}
		if strings.Contains(text, "{{") {
			found = Finding{Verdict: Changed, Reason: "values are text here, numbers and booleans too, and a key that the secret lacks is an error", Todo: "try the template with dsctl render"}
		}
		at.moveTo([]string{"spec", "target", "template", "data", key.Value}, found)
	}
	if len(f.node.Content) > 0 && length(f.transformed("includes")) == 0 && !isAll(f.transformed("excludes")) {
		f.out.set("Merge", "spec", "target", "template", "mergePolicy")
		f.add(Finding{To: "spec.target.template.mergePolicy", Verdict: Exact, Reason: "Vault Secrets Operator also writes the keys of the secret that no template yields"})
	}
}

// oneKey matches an expression that matches one key.
var oneKey = regexp.MustCompile(`^\^([A-Za-z0-9_-]+|(?:[A-Za-z0-9_-]|\\\.)+)\$$`)

// identifier matches a key that a template can name with a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// includes moves the names of the keys that the Secret has. Here a template selects them.
func includes(f *field) {
	switch {
	case f.node.Kind != yaml.SequenceNode:
		f.invalid("a list")
		return
	case len(f.node.Content) == 0 || isAll(f.node):
		f.dropped("all keys are included")
		return
	case isAll(f.transformed("excludes")):
		f.dropped("excludes leaves out all keys")
		return
	}
	f.pend()
	for i, n := range f.node.Content {
		at := f.below(nil, n, index(i))
		found := oneKey.FindStringSubmatch(n.Value)
		if found == nil {
			at.unsupported("keys are not selected by regular expressions", "write one entry for each key, such as ^password$, and convert it again")
			return
		}
		key := strings.ReplaceAll(found[1], `\.`, ".")
		if child(f.transformed("templates"), key) != nil {
			at.dropped("a template yields the key")
			continue
		}
		text := "{{ index . " + quoted(key) + " }}"
		if identifier.MatchString(key) {
			text = "{{ ." + key + " }}"
		}
		at.node = scalarNode(text, n)
		at.moveTo([]string{"spec", "target", "template", "data", key}, Finding{
			Verdict: Changed, Reason: "a key that the secret lacks is an error; Vault Secrets Operator leaves it out", Todo: "check that the secret has the key",
		})
	}
}

// excludes drops the expression that leaves nothing but the templates.
func excludes(f *field) {
	switch {
	case f.node.Kind != yaml.SequenceNode:
		f.invalid("a list")
	case len(f.node.Content) == 0:
		f.dropped("it is empty")
	case !isAll(f.node):
		f.unsupported("keys are not left out by regular expressions", "list the keys that are wanted in includes, such as ^password$, and remove excludes")
	case len(pairsOf(f.transformed("templates"))) == 0:
		f.unsupported("no key remains", "correct it, and convert it again")
	default:
		f.dropped("the Secret has the keys of its templates only")
	}
}

// pairsOf returns the keys and values of a mapping.
func pairsOf(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	return n.Content
}

// vsoTemplate returns a template of Vault Secrets Operator as one of direct-secrets, or says why it cannot be used. There
// the values are below .Secrets, and here they are the keys of the input itself.
func vsoTemplate(s string) (text, why string) {
	all := map[string]*syntax.Tree{}
	t := syntax.New("vso")
	t.Mode = syntax.SkipFuncCheck
	if _, err := t.Parse(s, "", "", all); err != nil {
		return "", "the template cannot be read"
	}
	if len(all) > 1 {
		return "", "the template defines others"
	}
	if !strings.Contains(s, "{{") || t.Root == nil {
		return s, ""
	}
	r := &secretsRewriter{}
	r.list(t.Root, true)
	if r.why != "" {
		return "", r.why
	}
	return t.Root.String(), ""
}

// A secretsRewriter takes .Secrets out of the fields of a template. The first reason why it cannot is kept.
type secretsRewriter struct{ why string }

func (r *secretsRewriter) refuse(why string) {
	if r.why == "" {
		r.why = why
	}
}

// list rewrites nodes; top says that the dot is the whole input.
func (r *secretsRewriter) list(l *syntax.ListNode, top bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *syntax.ActionNode:
			r.pipe(n.Pipe, top)
		case *syntax.IfNode:
			r.branch(&n.BranchNode, top, top)
		case *syntax.WithNode:
			r.branch(&n.BranchNode, top, false)
		case *syntax.RangeNode:
			r.branch(&n.BranchNode, top, false)
		case *syntax.TemplateNode:
			r.refuse("the template calls another one")
		}
	}
}

func (r *secretsRewriter) branch(n *syntax.BranchNode, top, inside bool) {
	r.pipe(n.Pipe, top)
	r.list(n.List, inside)
	r.list(n.ElseList, top)
}

func (r *secretsRewriter) pipe(p *syntax.PipeNode, top bool) {
	if p == nil {
		return
	}
	piped := false
	for _, c := range p.Cmds {
		r.call(c, piped)
		piped = isSecrets(c.Args[0])
		for i, a := range c.Args {
			c.Args[i] = r.argument(a, top)
		}
	}
}

// ofDicts are functions that take a dict. The input of a template is a map of text, which is none.
var ofDicts = []string{"hasKey", "keys", "values", "pick", "omit", "dig", "set", "unset", "pluck", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite", "get"}

// call replaces get by index, and refuses other functions of dicts on .Secrets; piped says that it is the last argument.
func (r *secretsRewriter) call(c *syntax.CommandNode, piped bool) {
	name, ok := c.Args[0].(*syntax.IdentifierNode)
	if !ok || (!piped && !slices.ContainsFunc(c.Args[1:], isSecrets)) || !slices.Contains(ofDicts, name.Ident) {
		return
	}
	if name.Ident == "get" && !piped && len(c.Args) == 3 && isSecrets(c.Args[1]) {
		c.Args[0] = syntax.NewIdentifier("index")
		return
	}
	r.refuse("the template calls " + name.Ident + " with .Secrets, which is no dict here")
}

// isSecrets reports whether an argument is .Secrets as a whole.
func isSecrets(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.FieldNode:
		return len(n.Ident) == 1 && n.Ident[0] == "Secrets"
	case *syntax.VariableNode:
		return len(n.Ident) == 2 && n.Ident[0] == "$" && n.Ident[1] == "Secrets"
	}
	return false
}

// argument returns what takes the place of an argument.
func (r *secretsRewriter) argument(n syntax.Node, top bool) syntax.Node {
	switch n := n.(type) {
	case *syntax.PipeNode:
		r.pipe(n, top)
	case *syntax.ChainNode:
		n.Node = r.argument(n.Node, top)
	case *syntax.DotNode:
		if top {
			r.refuse("the template reads its whole input, which has another shape")
		}
	case *syntax.FieldNode:
		if !top {
			return n // The dot is another value.
		}
		if n.Ident = r.field(n.Ident); len(n.Ident) == 0 {
			return &syntax.DotNode{NodeType: syntax.NodeDot, Pos: n.Pos}
		}
	case *syntax.VariableNode:
		if n.Ident[0] != "$" {
			return n
		}
		if len(n.Ident) == 1 {
			r.refuse("the template reads its whole input, which has another shape")
			return n
		}
		n.Ident = append([]string{"$"}, r.field(n.Ident[1:])...)
	}
	return n
}

// field returns the path of a field without .Secrets.
func (r *secretsRewriter) field(path []string) []string {
	switch {
	case path[0] != "Secrets":
		r.refuse("the template reads ." + path[0] + ", which does not exist here")
	case len(path) > 2:
		r.refuse("the template reads a field of ." + strings.Join(path[:2], ".") + ", which is text here")
	default:
		return path[1:]
	}
	return path
}
