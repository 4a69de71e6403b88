package migrate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// keepNeeded finds the stores and generators that are converted, and that objects need which stay with External Secrets Operator.
// Without their manifests, Git would prune them, and these objects could not refresh. Objects that are only looked up count, too,
// unless the input has them: then the input is newer.
func (in *inputs) keepNeeded() {
	own := map[string]bool{}
	for _, o := range in.objects {
		own[o.identity()] = own[o.identity()] || o.own
	}
	for _, o := range in.objects {
		if o.from != eso || o.verdict() != Unsupported || (!o.own && own[o.identity()]) {
			continue
		}
		for _, needed := range o.references(o.node) {
			if needed.canBeKept() && !slices.Contains(needed.neededBy, o) {
				needed.neededBy = append(needed.neededBy, o)
			}
		}
	}
	for _, o := range in.objects {
		if o.canBeKept() {
			o.neededByUnreadable()
			o.recognizeKept()
		}
	}
}

// canBeKept reports whether an object is a store or a generator of the input that is converted.
func (o *object) canBeKept() bool {
	return o.own && o.from == eso && o.becomesKind != nil && o.verdict() != Unsupported && !o.omitted
}

// neededByUnreadable finds documents that cannot be read, and in which the name of the object is.
func (o *object) neededByUnreadable() {
	name := regexp.MustCompile(`\bname["']?\s*:\s*["']?` + regexp.QuoteMeta(o.Name.Name) + `(?:["'\s,}]|$)`)
	for _, d := range o.inputs.unreadable {
		if name.Match(d.raw) {
			place := Name{Kind: "the document", Name: fmt.Sprintf("%s:%d", d.source, d.line)}
			o.neededBy = append(o.neededBy, &object{Name: place, document: &document{}})
		}
	}
}

// recognizeKept finds a manifest that a former conversion has kept: what it becomes is in the same file. It is left out once no
// object needs it.
func (o *object) recognizeKept() {
	o.keptBefore = slices.ContainsFunc(o.inputs.existing[o.place(o.out.root)], func(d *document) bool { return d.source == o.File })
	if o.keptBefore && len(o.neededBy) == 0 {
		o.omitted = true
		o.add(Finding{Verdict: Changed, Reason: "its manifest was kept next to the converted one, and is removed: the objects of the input do not need it any more", Todo: "check that no object outside of the input names it, or convert these together with it"})
	}
}

// identity is that of an object of External Secrets Operator. Its version does not matter.
func (o *object) identity() string {
	return groupOf(o.APIVersion) + "/" + o.Kind + "/" + o.inputs.namespace(o.Namespace) + "/" + o.Name.Name
}

// references returns the stores and generators of the input to which an object refers below a node.
func (o *object) references(n *yaml.Node) (all []*object) {
	for key, value := range pairs(n) {
		switch key.Value {
		case "secretStoreRef", "storeRef":
			all = append(all, o.storesAt(value)...)
		case "secretStoreRefs":
			for _, ref := range contentOf(value) {
				all = append(all, o.storesAt(ref)...)
			}
		case "generatorRef":
			all = append(all, o.needed(groupGenerators, text(value, "kind"), text(value, "name"))...)
		}
		all = append(all, o.references(value)...)
	}
	for _, c := range contentOf(n) {
		all = append(all, o.references(c)...)
	}
	return all
}

// storesAt returns the stores of a reference.
func (o *object) storesAt(ref *yaml.Node) []*object {
	kind, name := text(ref, "kind"), text(ref, "name")
	if kind == "" {
		kind = "SecretStore"
	}
	if selector := child(ref, "labelSelector"); selector != nil {
		all, _ := o.selectedStores(kind, selector) // External Secrets Operator cannot read it either.
		return all
	}
	if name == "" {
		return nil
	}
	return o.needed(groupESO, kind, name)
}

// needed returns the objects that a reference can mean.
func (o *object) needed(group, kind, name string) []*object {
	namespace := o.inputs.namespace(o.Namespace)
	anywhere := isFanOut(o.Kind) || strings.HasPrefix(kind, "Cluster")
	if anywhere {
		namespace = ""
	}
	all := o.inputs.allNamed(group, kind, namespace, name)
	if len(all) > 0 && o.own {
		return nearest(o.File, all, func(o *object) string { return o.File })
	}
	if len(all) == 0 {
		all = o.inputs.candidates(group, kind, name)
	}
	return slices.DeleteFunc(all, func(c *object) bool {
		return !anywhere && knownText(o.Namespace) && knownText(c.Namespace) && c.Namespace != o.Namespace
	})
}

// knownText reports whether a manifest has a text that does not depend on when it is applied.
func knownText(s string) bool { return s != "" && !unknown(s) && !strings.Contains(s, "{{") }

// keepsText reports whether the text of a document stays next to what it becomes.
func (d *document) keepsText() bool { return d.items == nil && d.object.isKept() }

// isKept reports whether the manifest of External Secrets Operator stays next to what it becomes.
func (o *object) isKept() bool { return o != nil && len(o.neededBy) > 0 && !o.omitted }

// withKept returns what a document became, with the manifest of External Secrets Operator behind it. Comments and conditions of a
// template around the manifest stay around both.
func (d *document) withKept(became []byte) []byte {
	newline := []byte("\n")
	if bytes.Contains(d.raw, []byte("\r\n")) {
		newline = []byte("\r\n")
	}
	lines := bytes.SplitAfter(d.raw, []byte("\n"))
	from, to := 0, len(lines)
	for from < to && outside(lines[from]) {
		from++
	}
	for to > from && outside(lines[to-1]) {
		to--
	}
	body, after := bytes.Join(lines[from:to], nil), bytes.Join(lines[to:], nil)
	converted, found := bytes.CutSuffix(became, after)
	if !found || !d.isBalanced(body) || !isDocument(body, d.original) || !isDocument(converted, d.object.out.root) {
		d.object.notKept = true
		return became
	}
	for _, text := range []*[]byte{&converted, &body} {
		if !bytes.HasSuffix(*text, []byte("\n")) {
			*text = append(slices.Clone(*text), newline...)
		}
	}
	return slices.Concat(converted, []byte("---"), newline, body, after)
}

// outside reports whether a line is empty or a comment, and cannot be a part of a value.
func outside(line []byte) bool {
	return len(bytes.TrimSpace(line)) == 0 || line[0] == '#'
}

// isBalanced reports whether each condition of a template that begins in a text ends in it.
func (d *document) isBalanced(body []byte) bool {
	if d.hidden == nil {
		return true
	}
	depth := 0
	for line := range strings.SplitSeq(string(body), "\n") {
		switch {
		case d.hidden.Opens(line):
			depth++
		case d.hidden.Closes(line):
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}

// isDocument reports whether a text is a document with the data of a node.
func isDocument(raw []byte, n *yaml.Node) bool {
	root, err := readOne(raw)
	if err != nil || len(root.Content) == 0 || new(expansion).expand(root.Content[0], 0) != nil {
		return false
	}
	return sameJSON(root.Content[0], n)
}

// keptFinding is for the report only. A cut-over leaves the store of External Secrets Operator in the cluster, so nothing changes
// for the objects that it moves.
func (o *object) keptFinding() Finding {
	var names []string
	for _, by := range o.neededBy {
		names = append(names, by.shownName())
	}
	all := shortened(names)
	f := Finding{
		Verdict: Changed, Subject: fmt.Sprintf("%s for %s", o.String(), all),
		Cause: "its manifest is kept next to the converted one, for objects that stay with External Secrets Operator",
		Todo:  "once these objects are converted, remove the manifest, or run dsctl migrate again, which removes it",
	}
	switch {
	case o.notKept:
		f.Cause = "objects that stay with External Secrets Operator need its manifest, whose text cannot be copied"
		f.Todo = "add the former manifest next to the converted one, until these objects are converted"
	case o.patched:
		f.Cause += "; patches and replacements of kustomizations are now for the converted one only"
		f.Todo = "add the former patches and replacements, too, for the manifest that is kept; " + f.Todo
	}
	f.Reason = f.Cause + ": " + all
	return f
}

// stay reports whether objects are all manifests that a former conversion has kept. Patches for them stay, too.
func stay(all []*object) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(o *object) bool { return !o.isKept() || !o.keptBefore })
}

// markPatched records that a patch or a selector is now for what objects become.
func markPatched(all []*object) {
	for _, o := range all {
		o.patched = true
	}
}
