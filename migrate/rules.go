package migrate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
)

// A Verdict says how a field or an object is converted.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// Exact: it does the same.
	Exact Verdict = "exact"
	// Changed: it does something else, or needs a look before it is applied.
	Changed Verdict = "changed"
	// Unsupported: it cannot be converted.
	Unsupported Verdict = "unsupported"
)

// worse returns the worse of two verdicts.
func worse(a, b Verdict) Verdict {
	order := []Verdict{Exact, Changed, Unsupported}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// A Finding is what the conversion has to report on one field.
type Finding struct {
	// Field is the path in the original; empty for the object as a whole.
	Field string `json:"field,omitempty"`
	// To is the path in the result; empty if nothing takes its place.
	To      string  `json:"to,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Reason says what differs, and Todo what to check or to do instead; empty for what is exact.
	Reason string `json:"reason,omitempty"`
	Todo   string `json:"todo,omitempty"`
	// Cause is the reason that this finding has in common with others, if it is not Reason, and Subject what tells them apart.
	Cause   string `json:"cause,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Accepted says that the user has decided about it.
	Accepted bool `json:"accepted,omitempty"`
}

// A field is a node of an object while it is converted.
type field struct {
	*object
	key, node *yaml.Node
	// path is that of the node, with the indexes of lists.
	path []string
	// nested is where the spec of the Kind is that the rules are for: in a Kind that fans out it is not "spec".
	nested string
	// flat says that the result has those fields in its spec, also if the original has them deeper.
	flat bool
}

// String returns the path as reports have it: spec.data[0].remoteRef.key.
func (f *field) String() string {
	var b strings.Builder
	for _, p := range f.path {
		if i, list := indexOf(p); list {
			b.WriteString("[" + strconv.Itoa(i) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

// below returns a field that this one holds.
func (f *field) below(key, node *yaml.Node, name string) *field {
	return &field{object: f.object, key: key, node: node, path: append(slices.Clone(f.path), name), nested: f.nested, flat: f.flat}
}

// pattern returns the path with [] for each index.
func (f *field) pattern() string {
	var all []string
	for _, p := range f.path {
		if _, list := indexOf(p); list && len(all) > 0 {
			all[len(all)-1] += "[]"
			continue
		}
		all = append(all, p)
	}
	p := strings.Join(all, ".")
	if f.nested != "" {
		p = "spec" + strings.TrimPrefix(p, f.nested)
	}
	return p
}

// indexes returns the indexes of the path.
func (f *field) indexes() []string {
	var all []string
	for _, p := range f.path {
		if _, list := indexOf(p); list {
			all = append(all, p)
		}
	}
	return all
}

// at returns the path in the result for a pattern: each [] stands for the index of the field.
func (f *field) at(pattern string) []string {
	indexes := f.indexes()
	var all []string
	if f.nested != "" && !f.flat {
		pattern = f.nested + strings.TrimPrefix(pattern, "spec")
	}
	for p := range strings.SplitSeq(pattern, ".") {
		name, list := strings.CutSuffix(p, "[]")
		all = append(all, name)
		if list && len(indexes) > 0 {
			all = append(all, indexes[0])
			indexes = indexes[1:]
		}
	}
	return all
}

// move puts the field into the result and records the finding.
func (f *field) move(to string, found Finding) {
	f.moveTo(f.at(to), found)
}

// moveTo puts the field at a path of the result and records the finding.
func (f *field) moveTo(path []string, found Finding) {
	f.out.put(path, f.key, f.node)
	found.Field, found.To = f.String(), (&field{path: path}).String()
	f.add(found)
}

// exact moves the field; it does the same there.
func (f *field) exact(to string) { f.move(to, Finding{Verdict: Exact}) }

// byAction moves the field if its value is not known.
func (f *field) byAction(to string) bool {
	if f.node.Kind != yaml.ScalarNode || !unknown(f.node.Value) {
		return false
	}
	f.move(to, Finding{Verdict: Exact, Reason: "it is made when the manifest is applied"})
	return true
}

// unknown reports whether an action of Helm or a variable of Flux makes a value, or a part of it.
func unknown(value string) bool { return actions.Is(value) || variable.MatchString(value) }

// variable matches a variable that Flux substitutes.
var variable = regexp.MustCompile(`\$\{[A-Za-z_]\w*(?:[:=+?^,/#%-][^}]*)?\}`)

// changed moves the field and says what differs.
func (f *field) changed(to, reason, todo string) {
	f.move(to, Finding{Verdict: Changed, Reason: reason, Todo: todo})
}

// pend keeps the comments of a field that has no place in the result. Those of the root stay where they are.
func (f *field) pend() {
	if len(f.path) > 0 {
		f.out.pend(len(f.path), f.key, f.node)
	}
}

// dropped leaves the field out: without it the result does the same.
func (f *field) dropped(reason string) {
	f.pend()
	f.add(Finding{Field: f.String(), Verdict: Exact, Reason: reason})
}

// left leaves the field out, and says what differs.
func (f *field) left(reason, todo string) {
	f.pend()
	f.add(Finding{Field: f.String(), Verdict: Changed, Reason: reason, Todo: todo})
}

// unsupported says that the field cannot be converted.
func (f *field) unsupported(reason, todo string) {
	f.add(Finding{Field: f.String(), Verdict: Unsupported, Reason: reason, Todo: todo})
}

// A rule converts the fields at one path.
type rule func(f *field)

// rules are those of a Kind, by the path; [] stands for the index of a list.
type rules map[string]rule

// scalar moves a single value to a path.
func scalar(to string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.ScalarNode {
			f.invalid("a single value")
			return
		}
		f.exact(to)
	}
}

// whole moves a mapping or a list with all it holds, to a path.
func whole(to string, kind yaml.Kind) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		if f.node.Kind != kind {
			f.invalid(map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}[kind])
			return
		}
		f.exact(to)
	}
}

// distinct moves a list, in which each value can be once only.
func distinct(to string) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		if f.node.Kind != yaml.SequenceNode {
			f.invalid("a list")
			return
		}
		list, seen := *f.node, map[string]bool{}
		list.Content = nil
		for _, n := range f.node.Content {
			if n.Kind == yaml.ScalarNode && seen[n.Value] {
				f.out.pend(len(f.path), n)
				continue
			}
			seen[n.Value] = true
			list.Content = append(list.Content, n)
		}
		f.node = &list
		f.exact(to)
	}
}

// onlyFalse drops a switch that is off, and refuses one that is on.
func onlyFalse(reason, todo string) rule {
	return func(f *field) {
		switch f.node.Value {
		case "true":
			f.unsupported(reason, todo)
		case "false":
			f.dropped("it is the default")
		default:
			f.invalid("true or false")
		}
	}
}

// oneOf moves one of several values to a path.
func oneOf(to string, values ...string) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		if f.node.Kind != yaml.ScalarNode || !slices.Contains(values, f.node.Value) {
			f.invalid("one of " + strings.Join(values, ", "))
			return
		}
		f.exact(to)
	}
}

// drop leaves out what the result does not need.
func drop(reason string) rule { return func(f *field) { f.dropped(reason) } }

// never refuses a field.
func never(reason, todo string) rule { return func(f *field) { f.unsupported(reason, todo) } }

// invalid reports a value that External Secrets Operator refuses, too.
func (f *field) invalid(want string) {
	f.unsupported("the value is not "+want, "correct it, and convert it again")
}

// nest applies the rules of another Kind to the spec that a Kind has of it. If flat, it is the spec of the result.
func nest(r rules, flat bool) rule {
	return func(f *field) {
		r.walk(&field{object: f.object, key: f.key, node: f.node, path: f.path, nested: f.String(), flat: flat})
	}
}

// sibling returns the node at a path that begins some levels above the field.
func (f *field) sibling(up int, path ...string) *yaml.Node {
	return child(f.object.node, slices.Concat(f.path[:max(0, len(f.path)-up)], path)...)
}

// unless drops a field if another one is set, which External Secrets Operator prefers. The path of the other begins as
// many levels above the field as up says.
func unless(up int, other string, then rule) rule {
	return func(f *field) {
		if f.sibling(up, strings.Split(other, ".")...) != nil {
			f.dropped("External Secrets Operator uses " + other + " instead")
			return
		}
		then(f)
	}
}

// with returns the rules with others; of two for a path the latter counts.
func (r rules) with(others ...rules) rules {
	all := maps.Clone(r)
	for _, o := range others {
		maps.Copy(all, o)
	}
	return all
}

// without returns the rules without those for a path.
func (r rules) without(path string) rules {
	all := maps.Clone(r)
	delete(all, path)
	return all
}

// walk applies the rules to a field and to what it holds.
func (r rules) walk(f *field) {
	if apply, found := r[f.pattern()]; found {
		if isNull(f.node) {
			f.pend()
			return // As if it were not there.
		}
		apply(f)
		return
	}
	switch {
	case f.node.Kind == yaml.MappingNode && len(f.node.Content) == 0 && empty[f.pattern()] != nil:
		empty[f.pattern()](f)
	case f.node.Kind == yaml.MappingNode && r.hasBelow(f.pattern()+"."), len(f.path) == 0:
		f.pend()
		for key, value := range pairs(f.node) {
			r.walk(f.below(key, value, key.Value))
		}
	case f.node.Kind == yaml.SequenceNode && r.hasBelow(f.pattern()+"[]"):
		f.pend()
		for i, n := range f.node.Content {
			r.walk(f.below(nil, n, index(i)))
		}
	case isNull(f.node):
		f.pend()
	case r.hasBelow(f.pattern() + "."):
		f.invalid("a mapping")
	case r.hasBelow(f.pattern() + "[]"):
		f.invalid("a list")
	default:
		f.unsupported(f.from.name+" has no such field, or dsctl does not know it", "remove it, or convert the object by hand")
	}
}

// empty are the rules for mappings that mean something although they hold nothing.
var empty = rules{
	"spec.dataFrom[].rewrite[].merge": func(f *field) { f.exact("spec.dataFrom[].rewrite[].merge") },
	"spec.dataFrom[].find.name": func(f *field) {
		f.pend()
		at := f.at("spec.dataFrom[].find.name.regexp")
		f.out.set(".*", at...)
		f.add(Finding{Field: f.String(), To: (&field{path: at}).String(), Verdict: Exact, Reason: "an empty expression matches every name"})
	},
}

func (r rules) hasBelow(prefix string) bool {
	for path := range r {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
