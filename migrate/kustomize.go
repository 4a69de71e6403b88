package migrate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kustomizationFiles are the names by which Kustomize knows its folders.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// IsKustomization reports whether a file is that of a folder of Kustomize.
func IsKustomization(file string) bool { return slices.Contains(kustomizationFiles, path.Base(file)) }

// kustomizations are the folders of Kustomize in the input.
type kustomizations struct {
	in *inputs
	// roots are the kustomizations by their folder.
	roots map[string]*document
	// files are the documents of files by their name.
	files map[string][]*document
	// patches are the files of patches, with the targets that are named for them; nil if a patch names its own.
	patches map[string][]patchUse
	// notes say what is to be changed by hand.
	notes []Note
}

// patchUse is the use of a patch by a kustomization.
type patchUse struct {
	dir    string
	target *yaml.Node
}

// findKustomizations returns the kustomizations among documents, and the files of their patches.
func findKustomizations(in *inputs, all []*document) *kustomizations {
	k := &kustomizations{in: in, roots: map[string]*document{}, files: map[string][]*document{}, patches: map[string][]patchUse{}}
	for _, d := range all {
		k.files[path.Clean(d.source)] = append(k.files[path.Clean(d.source)], d)
		if IsKustomization(d.source) && d.node != nil {
			k.roots[path.Dir(path.Clean(d.source))] = d
		}
	}
	k.namespaces()
	for dir, d := range k.roots {
		for _, p := range k.patchesOf(d.node) {
			k.patchesRole(dir, d, p)
			if file := text(p.node, "path"); file != "" && p.inline == nil {
				k.patches[path.Join(dir, file)] = append(k.patches[path.Join(dir, file)], patchUse{dir, child(p.node, "target")})
			}
		}
	}
	return k
}

// patchesRole remembers ServiceAccounts whose role a patch of a kustomization changes.
func (k *kustomizations) patchesRole(dir string, d *document, p onePatch) {
	contents := [][]byte{}
	if p.inline != nil {
		contents = append(contents, []byte(p.inline.Value))
	}
	for _, of := range k.files[path.Join(dir, text(p.node, "path"))] {
		contents = append(contents, of.raw)
	}
	for _, raw := range contents {
		escaped := strings.ReplaceAll(roleAnnotation, "/", "~1")
		if !bytes.Contains(raw, []byte(roleAnnotation)) && !bytes.Contains(raw, []byte(escaped)) {
			continue
		}
		name := text(p.node, "target", "name")
		if root, err := readOne(raw); err == nil && len(root.Content) > 0 && name == "" {
			name = text(root.Content[0], "metadata", "name")
		}
		k.in.patchedRoles[name] = d.source
	}
}

// namespaces gives documents the namespace that kustomizations give their objects.
func (k *kustomizations) namespaces() {
	all := map[string]map[string]bool{}
	for dir, d := range k.roots {
		n := text(d.node, "namespace")
		if n == "" {
			continue
		}
		for file := range k.closure(dir, map[string]bool{}) {
			if all[file] == nil {
				all[file] = map[string]bool{}
			}
			all[file][n] = true
		}
	}
	for file, names := range all {
		for n := range names {
			for _, d := range k.files[file] {
				for _, one := range append(d.flat(), d) {
					if len(names) == 1 {
						one.namespace = n
					}
					one.severalNamespaces = len(names) > 1
				}
			}
		}
	}
}

// onePatch is an entry of a kustomization. inline is the text of a patch in it; nil if it is in a file.
type onePatch struct{ node, inline *yaml.Node }

// patchesOf returns the patches of a kustomization.
func (k *kustomizations) patchesOf(root *yaml.Node) []onePatch {
	var all []onePatch
	for _, list := range []string{"patches", "patchesJson6902"} {
		for _, n := range contentOf(child(root, list)) {
			all = append(all, onePatch{n, child(n, "patch")})
		}
	}
	for _, n := range contentOf(child(root, "patchesStrategicMerge")) {
		if strings.Contains(n.Value, "\n") {
			all = append(all, onePatch{mapping(), n})
			continue
		}
		all = append(all, onePatch{mapping("path", n), nil})
	}
	return all
}

func contentOf(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// closure returns the files that a kustomization reads as resources, its own and those of others that it uses.
func (k *kustomizations) closure(dir string, seen map[string]bool) map[string]bool {
	d := k.roots[dir]
	if d == nil || seen[dir+"/"] {
		return seen
	}
	seen[dir+"/"] = true
	for _, list := range []string{"resources", "bases", "components"} {
		for _, n := range contentOf(child(d.node, list)) {
			at := path.Join(dir, n.Value)
			if k.roots[at] != nil {
				k.closure(at, seen)
			} else {
				seen[at] = true
			}
		}
	}
	return seen
}

// targets returns the objects of a kustomization that a patch is for.
func (k *kustomizations) targets(dir string, match func(o *object) bool) []*object {
	files := k.closure(dir, map[string]bool{})
	var own, all []*object
	for _, o := range k.in.objects {
		if !match(o) {
			continue
		}
		all = append(all, o)
		if files[path.Clean(o.File)] {
			own = append(own, o)
		}
	}
	if d := k.roots[dir]; len(own) > 0 || (d != nil && text(d.node, "kind") != "Component") {
		return own
	}
	return all // A component is for the objects of whoever uses it, and the folder of Flux or Argo CD is not known.
}

// selected returns a match for the target of a patch. An expression that cannot be compiled matches nothing.
func selected(target *yaml.Node) func(o *object) bool {
	expressions := map[string]*regexp.Regexp{}
	for _, of := range []string{"group", "version", "kind", "name"} {
		if pattern := text(target, of); pattern != "" {
			r, err := regexp.Compile("^(?:" + pattern + ")$")
			if err != nil {
				return func(*object) bool { return false }
			}
			expressions[of] = r
		}
	}
	return func(o *object) bool {
		group, version, _ := strings.Cut(o.APIVersion, "/")
		for of, value := range map[string]string{"group": group, "version": version, "kind": o.Kind, "name": o.Name.Name} {
			if r := expressions[of]; r != nil && !r.MatchString(value) {
				return false
			}
		}
		return true
	}
}

// namedBy returns a match for the object that a patch names.
func namedBy(patch *yaml.Node) func(o *object) bool {
	return func(o *object) bool {
		return groupOf(o.APIVersion) == groupOf(text(patch, "apiVersion")) && o.Kind == text(patch, "kind") && o.Name.Name == text(patch, "metadata", "name")
	}
}

// ours reports whether a target is for objects that are converted. The error says that this is not certain.
func (k *kustomizations) ours(target *yaml.Node) (bool, error) {
	group, kind := text(target, "group"), text(target, "kind")
	if g := groupOfKind(kind); g != "" {
		return group == "" || group == g, nil
	}
	if kind != "" && !strings.ContainsAny(kind, "|.*[]()?+^$\\") {
		return false, nil
	}
	if slices.ContainsFunc(k.in.objects, selected(target)) {
		return false, errors.New("a target that names no single Kind can be for converted objects")
	}
	return false, nil
}

// convert converts the patches, and the kustomizations themselves, unless they are refused.
func (k *kustomizations) convert(refused map[position]error) {
	defer k.refuse(refused)
	for file, uses := range k.patches {
		for _, d := range k.files[file] {
			k.convertPatch(d, uses)
		}
	}
	for dir, d := range k.roots {
		root := copyOf(d.node)
		if k.convertRoot(dir, d, root) {
			d.replaced = root
		}
	}
	for _, all := range k.files {
		for _, d := range all {
			if d.node != nil && d.replaced == nil && !IsKustomization(d.source) {
				if root := copyOf(d.node); k.gitOps(d, root) {
					d.replaced = root
				}
			}
			k.mentions(d)
			k.mentionsReloader(d)
		}
	}
}

// refuse leaves documents as they are whose text cannot be edited.
func (k *kustomizations) refuse(refused map[position]error) {
	for _, all := range k.files {
		for _, d := range all {
			if why := refused[position{d.source, d.line}]; d.replaced != nil && why != nil {
				d.replaced = nil
				k.note(d, &yaml.Node{Line: 1}, "its text cannot be edited: "+why.Error(), todoPatch)
			}
		}
	}
	slices.SortFunc(k.notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
	})
}

func copyOf(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, of := range n.Content {
		c.Content = append(c.Content, copyOf(of))
	}
	return &c
}

// note records what is to be changed by hand.
func (k *kustomizations) note(d *document, n *yaml.Node, reason, todo string) {
	k.notes = append(k.notes, Note{File: d.source, Line: d.line + max(0, n.Line-1), Reason: reason, Todo: todo})
}

const todoPatch = "write it for the new Kind by hand; kustomize skips a patch whose target is not there without a word"

// convertPatch converts a document of a file of patches.
func (k *kustomizations) convertPatch(d *document, uses []patchUse) {
	root := d.node
	if root == nil {
		if list, err := readOne(d.raw); err == nil && len(list.Content) > 0 && list.Content[0].Kind == yaml.SequenceNode {
			root = list.Content[0]
		}
	}
	if root == nil {
		return
	}
	var result *yaml.Node
	for i, use := range uses {
		one, err := k.patch(use.dir, use.target, root)
		switch {
		case err != nil:
			k.note(d, root, "a patch cannot be converted: "+err.Error(), todoPatch)
			return
		case one == nil && result == nil:
			continue
		case i > 0 && (one == nil || result == nil || !sameJSON(result, one)):
			k.note(d, root, "a patch becomes different ones, since several kustomizations use it", todoPatch)
			return
		}
		result = one
	}
	if result != nil && (result.Kind == yaml.MappingNode || root.Kind == yaml.SequenceNode) {
		d.replaced = result
	}
}

// patch returns what a patch becomes; nil if it is for none of the objects that are converted.
func (k *kustomizations) patch(dir string, target, patch *yaml.Node) (*yaml.Node, error) {
	match := selected(target)
	switch is, err := k.ours(target); {
	case target != nil && err != nil:
		return nil, err
	case target != nil && !is:
		return nil, nil
	case target == nil && patch.Kind == yaml.MappingNode:
		if !KnowsESO(groupOf(text(patch, "apiVersion"))) {
			return nil, nil
		}
		match = namedBy(patch)
	case target == nil:
		return nil, nil
	}
	all := k.targets(dir, match)
	if len(all) == 0 {
		return nil, errors.New("the input has no object that it is for")
	}
	if stay(all) {
		return nil, nil
	}
	var result *yaml.Node
	for _, o := range all {
		one, err := k.in.patchOf(o, patch)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Name.Name, err)
		}
		if result != nil && !sameJSON(result, one) {
			return nil, errors.New("the objects that it is for become different ones")
		}
		result = one
	}
	markPatched(all)
	return result, nil
}
