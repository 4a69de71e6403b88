package template

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"text/template/parse"
)

const (
	// maxNesting limits the nesting of actions and parentheses.
	maxNesting = 200
	// maxVariables limits the variables of a template.
	maxVariables = 1_000
)

// native are the builtin functions of text/template that need no rule: their cost does not depend on the size of
// their arguments.
var native = []string{"and", "or", "not", "len"}

// guards are the hidden functions for the arguments of native functions.
var guards = map[string]string{"and": hiddenTest, "or": hiddenTest, "not": hiddenTest, "len": hiddenLength}

// asked are the hidden functions that replace others where a value is only tested.
var asked = map[string]string{"index": hiddenIndex, "get": hiddenGet}

// A rewriter adds the limits to parsed templates. It adds an action that counts at the start of each body of a range,
// a pair of actions around each template, and a measure at the end of each printed pipeline. It also finds errors
// that are visible without data.
type rewriter struct {
	engine *Engine
	text   string
	trees  map[string]*parse.Tree
	// used are the functions that the templates call.
	used map[string]*function
	// fields are the names of all fields that the templates mention, and the literals that can be keys.
	fields []string
	// keys are the keys of the data that the templates read by name.
	keys      []string
	variables int
	// data is true where the dot is the data: outside of range, with and define.
	data bool
	// called is true if a template calls another template or itself.
	called bool
	// asking is true where a value is only tested, as in the condition of an if. There an empty value is not an
	// error.
	asking bool
	// hide are the hidden functions in use.
	hide   map[string]bool
	failed *Error
}

func newRewriter(e *Engine, text string, trees map[string]*parse.Tree) *rewriter {
	return &rewriter{engine: e, text: text, trees: trees, used: map[string]*function{}, hide: map[string]bool{}}
}

// rewrite changes all trees. It returns the steps of the first execution, without those that hidden actions count.
func (rw *rewriter) rewrite() (int, *Error) {
	if root := rw.trees[""]; len(rw.trees) == 1 && root != nil {
		rw.data = true
		return rw.list(root.Root, 0), rw.failed
	}
	steps := map[string]int{}
	// The order affects the cost of variables, so it must always be the same.
	for _, name := range slices.Sorted(maps.Keys(rw.trees)) {
		rw.data = name == ""
		steps[name] = rw.list(rw.trees[name].Root, 0)
	}
	if !rw.called {
		return steps[""], rw.failed
	}
	for name, t := range rw.trees {
		t.Root.Nodes = slices.Concat(
			[]parse.Node{rw.hidden(hiddenEnter, t.Root.Pos, steps[name])},
			t.Root.Nodes,
			[]parse.Node{rw.hidden(hiddenExit, t.Root.Pos)},
		)
	}
	return 0, rw.failed
}

// fail stores the first error by position.
func (rw *rewriter) fail(pos parse.Pos, format string, args ...any) {
	e := &Error{Reason: fmt.Sprintf(format, args...)}
	e.Line, e.Column = place(rw.text, pos)
	if f := rw.failed; f == nil || e.Line < f.Line || e.Line == f.Line && e.Column < f.Column {
		rw.failed = e
	}
}

// list rewrites the nodes of a body. It returns the steps of one execution, without the bodies of ranges, which are
// counted separately.
func (rw *rewriter) list(l *parse.ListNode, depth int) int {
	if l == nil {
		return 0
	}
	if depth > maxNesting {
		rw.fail(l.Pos, "actions are nested more than %d deep", maxNesting)
		return 0
	}
	steps := 2
	for _, n := range l.Nodes {
		steps += 1 + rw.node(n, depth)
	}
	return steps
}

func (rw *rewriter) node(n parse.Node, depth int) int {
	switch n := n.(type) {
	case *parse.ActionNode:
		steps := rw.pipe(n.Pipe, depth)
		if len(n.Pipe.Decl) == 0 && !rw.small(n.Pipe) {
			n.Pipe.Cmds = append(n.Pipe.Cmds, rw.call(hiddenMeasure, n.Pos, nameNode(n.Pipe)))
		}
		return steps
	case *parse.IfNode:
		return rw.branch(&n.BranchNode, depth, rw.list)
	case *parse.WithNode:
		return rw.branch(&n.BranchNode, depth, rw.outsideData)
	case *parse.RangeNode:
		steps := 1 + rw.pipe(n.Pipe, depth) + rw.list(n.ElseList, depth+1)
		n.Pipe.Cmds = append(n.Pipe.Cmds, rw.call(hiddenRange, n.Pos))
		body := rw.outsideData(n.List, depth+1)
		n.List.Nodes = append([]parse.Node{rw.hidden(hiddenTick, n.Pos, body)}, n.List.Nodes...)
		return steps
	case *parse.TemplateNode:
		rw.called = true
		if n.Name == "" || rw.trees[n.Name] == nil {
			rw.fail(n.Pos, "the template calls a template that is not defined")
		}
		return rw.pipe(n.Pipe, depth)
	}
	return 0
}

// outsideData rewrites a body in which the dot is not the data.
func (rw *rewriter) outsideData(l *parse.ListNode, depth int) int {
	defer func(before bool) { rw.data = before }(rw.data)
	rw.data = false
	return rw.list(l, depth)
}

// small reports whether the value of a pipeline needs no measure: it is a value of the data, or the result of a
// function whose type and rule limit it.
func (rw *rewriter) small(p *parse.PipeNode) bool {
	last := p.Cmds[len(p.Cmds)-1].Args[0]
	if _, ok := last.(*parse.FieldNode); ok {
		return rw.ofData(last)
	}
	id, ok := last.(*parse.IdentifierNode)
	if !ok || rw.used[id.Ident] == nil {
		return false
	}
	switch rw.used[id.Ident].typ.Out(0).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	}
	return false
}

// ofData reports whether a node is a value of the data, which is never null.
func (rw *rewriter) ofData(n parse.Node) bool {
	field, ok := n.(*parse.FieldNode)
	return ok && rw.data && len(field.Ident) == 1
}

// isData reports whether a node is the data itself, where dot says whether the dot is the data.
func isData(n parse.Node, dot bool) bool {
	v, ok := n.(*parse.VariableNode)
	return ok && len(v.Ident) == 1 && v.Ident[0] == "$" || dot && n.Type() == parse.NodeDot
}

// branch rewrites an if or a with. body rewrites what it does if its condition holds.
func (rw *rewriter) branch(b *parse.BranchNode, depth int, body func(l *parse.ListNode, depth int) int) int {
	rw.asking = true
	steps := rw.pipe(b.Pipe, depth)
	rw.asking = false
	if !rw.small(b.Pipe) {
		// A declared variable keeps its value; only the condition is tested.
		if test := rw.call(hiddenTest, b.Pos); len(b.Pipe.Decl) > 0 {
			test.Args = append(test.Args, b.Pipe)
			b.Pipe = argument(test)
		} else {
			b.Pipe.Cmds = append(b.Pipe.Cmds, test)
		}
	}
	return steps + body(b.List, depth+1) + rw.list(b.ElseList, depth+1)
}

// pipe rewrites a pipeline.
func (rw *rewriter) pipe(p *parse.PipeNode, depth int) int {
	if p == nil {
		return 0
	}
	if depth > maxNesting {
		rw.fail(p.Pos, "parentheses are nested more than %d deep", maxNesting)
		return 0
	}
	if rw.variables += len(p.Decl); rw.variables > maxVariables {
		rw.fail(p.Pos, "the template declares more than %d variables", maxVariables)
	}
	steps := rw.variable() * len(p.Decl)
	asking := rw.asking
	for i := 0; i < len(p.Cmds); i++ {
		c := p.Cmds[i]
		rw.asking = asking || asks(c) || (i+1 < len(p.Cmds) && asks(p.Cmds[i+1]))
		steps += rw.command(c, i > 0, depth)
		guard := rw.guardOf(c)
		if name := nameNode(p.Cmds[max(i-1, 0)]); i > 0 && (guard != "" && guard != hiddenNeed || guard == hiddenNeed && name.Text != "") {
			passed := rw.call(guard, c.Pos)
			if guard == hiddenNeed {
				passed.Args = append(passed.Args, name)
			}
			p.Cmds = slices.Insert(p.Cmds, i, passed)
			i++
			steps++
		}
		if guard == hiddenTest {
			i++
			p.Cmds = slices.Insert(p.Cmds, i, rw.call(hiddenTested, c.Pos))
		}
	}
	rw.asking = asking
	return steps
}

// command rewrites one command of a pipeline. piped is true if it gets the value of the previous command.
func (rw *rewriter) command(c *parse.CommandNode, piped bool, depth int) int {
	steps, first := 0, c.Args[0]
	for i, a := range c.Args {
		steps += rw.operand(a, depth)
		if id, ok := a.(*parse.IdentifierNode); ok && i > 0 {
			rw.arguments(id, 0)
		}
		c.Args[i] = rw.bind(a)
	}
	if call, ok := c.Args[0].(*parse.PipeNode); ok && call != first {
		c.Args = append(call.Cmds[0].Args, c.Args[1:]...) // The method call takes the arguments of the command.
	}
	id, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok {
		return steps
	}
	given := len(c.Args) - 1
	if piped {
		given++
	}
	rw.arguments(id, given)
	if len(c.Args) == 3 && isData(c.Args[1], rw.data) && asked[id.Ident] != "" {
		rw.keys = append(rw.keys, nameNode(c).Text)
	}
	if guard := rw.guardOf(c); guard != "" {
		for i, a := range c.Args[1:] {
			c.Args[i+1] = rw.guarded(guard, a)
		}
	}
	if name := asked[id.Ident]; rw.asking && name != "" {
		rw.hide[name] = true
		c.Args[0] = parse.NewIdentifier(name).SetPos(id.Pos)
	}
	return steps
}

// asks reports whether a command calls a function that only tests its argument, so that an empty value is not an
// error.
func asks(c *parse.CommandNode) bool {
	id, ok := c.Args[0].(*parse.IdentifierNode)
	return ok && slices.Contains([]string{"default", "empty", "coalesce", "and", "or", "not"}, id.Ident)
}

// nameNode returns the name of the value of a node in the template: its last field, or the last literal key of a call;
// empty if it has none.
func nameNode(n parse.Node) *parse.StringNode {
	name := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Position()}
	switch n := n.(type) {
	case *parse.PipeNode:
		return nameNode(n.Cmds[len(n.Cmds)-1])
	case *parse.CommandNode:
		if len(n.Args) == 1 {
			return nameNode(n.Args[0])
		}
		id, ok := n.Args[0].(*parse.IdentifierNode)
		key, literal := n.Args[len(n.Args)-1].(*parse.StringNode)
		if ok && literal && slices.Contains([]string{"index", "get", hiddenIndex, hiddenGet, hiddenMethod}, id.Ident) {
			name.Text = key.Text
		}
	case *parse.FieldNode:
		name.Text = n.Ident[len(n.Ident)-1]
	case *parse.ChainNode:
		name.Text = n.Field[len(n.Field)-1]
	case *parse.VariableNode:
		name.Text = n.Ident[len(n.Ident)-1]
	}
	return name
}

// argument returns a command as an argument of another command.
func argument(c *parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: c.Pos, Cmds: []*parse.CommandNode{c}}
}

// operand rewrites the parts of an argument and returns its steps.
func (rw *rewriter) operand(n parse.Node, depth int) int {
	switch n := n.(type) {
	case *parse.PipeNode:
		return 1 + rw.pipe(n, depth+1)
	case *parse.ChainNode:
		rw.fields = append(rw.fields, n.Field...)
		if id, ok := n.Node.(*parse.IdentifierNode); ok {
			rw.arguments(id, 0)
		}
		return len(n.Field) + rw.operand(n.Node, depth)
	case *parse.FieldNode:
		rw.fields = append(rw.fields, n.Ident...)
		if rw.data {
			rw.keys = append(rw.keys, n.Ident[0])
		}
		return len(n.Ident)
	case *parse.VariableNode:
		rw.fields = append(rw.fields, n.Ident[1:]...)
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			rw.keys = append(rw.keys, n.Ident[1])
		}
		return len(n.Ident) + rw.variable()
	case *parse.IdentifierNode:
		if f := rw.engine.functions[n.Ident]; f != nil {
			rw.used[n.Ident] = f
		}
	case *parse.StringNode:
		rw.fields = append(rw.fields, n.Text)
		return 1 + len(n.Text)/256
	}
	return 1
}

// variable returns the cost of a variable: text/template searches the list of all variables.
func (rw *rewriter) variable() int { return 1 + rw.variables/32 }

// arguments checks the number of arguments of a function.
func (rw *rewriter) arguments(id *parse.IdentifierNode, given int) {
	f := rw.engine.functions[id.Ident]
	if f == nil {
		return
	}
	switch t := f.typ; {
	case t.IsVariadic() && given < t.NumIn()-1:
		rw.fail(id.Pos, "function %q needs at least %d arguments, not %d", id.Ident, t.NumIn()-1, given)
	case !t.IsVariadic() && given != t.NumIn():
		rw.fail(id.Pos, "function %q needs %d arguments, not %d", id.Ident, t.NumIn(), given)
	}
}

// guardOf returns the hidden function for the arguments of a command; empty if it needs none.
func (rw *rewriter) guardOf(c *parse.CommandNode) string {
	id, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok {
		return ""
	}
	if f := rw.engine.functions[id.Ident]; f != nil && f.rule.class != passes {
		return hiddenNeed
	}
	return guards[id.Ident]
}

// guarded returns an argument wrapped in a hidden function. Literals are not wrapped, because they adapt to the type
// of the parameter; their cost is part of the body.
func (rw *rewriter) guarded(guard string, n parse.Node) parse.Node {
	switch n.(type) {
	case *parse.NumberNode, *parse.BoolNode, *parse.StringNode, *parse.NilNode:
		return n
	}
	c := rw.call(guard, n.Position())
	if guard == hiddenNeed {
		name := nameNode(n)
		if name.Text == "" || rw.ofData(n) {
			return n
		}
		c.Args = append(c.Args, name)
	}
	c.Args = append(c.Args, n)
	return argument(c)
}

// hidden returns an action that calls a hidden function.
func (rw *rewriter) hidden(name string, pos parse.Pos, args ...int) *parse.ActionNode {
	c := rw.call(name, pos)
	for _, n := range args {
		c.Args = append(c.Args, &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(n), Text: strconv.Itoa(n)})
	}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: argument(c)}
}

// call returns a command that calls a hidden function.
func (rw *rewriter) call(name string, pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	rw.hide[name] = true
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{parse.NewIdentifier(name).SetPos(pos)}, args...)}
}
