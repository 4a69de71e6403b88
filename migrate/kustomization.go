package migrate

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/splice"
)

// convertRoot converts a kustomization, and reports whether anything changes.
func (k *kustomizations) convertRoot(dir string, d *document, root *yaml.Node) bool {
	changed := false
	for _, p := range k.patchesOf(root) {
		changed = k.patchOf(dir, d, p) || changed
	}
	for _, n := range contentOf(child(root, "replacements")) {
		if file := text(n, "path"); file != "" {
			k.replacementFile(dir, path.Join(dir, file))
			continue
		}
		one, err := k.replacement(dir, n)
		if err != nil {
			k.note(d, n, err.Error(), todoPatch)
		}
		changed = changed || one
	}
	k.labels(dir, d, root)
	for _, n := range contentOf(child(root, "configurations")) {
		k.configuration(path.Join(dir, n.Value))
	}
	return changed
}

// inline converts the text of a patch in a kustomization.
func (k *kustomizations) inline(dir string, target, n *yaml.Node) (bool, error) {
	root, err := readOne([]byte(n.Value))
	switch {
	case err != nil && strings.Contains(n.Value, groupESO):
		return false, fmt.Errorf("a patch cannot be read as one document: %w", err)
	case err != nil || len(root.Content) == 0:
		return false, nil // Kustomize reports it.
	}
	result, err := k.patch(dir, target, root.Content[0])
	if err != nil {
		return false, fmt.Errorf("a patch cannot be converted: %w", err)
	}
	if result == nil {
		return false, nil
	}
	edited, err := splice.Document([]byte(n.Value), result, nil)
	if err != nil {
		return false, fmt.Errorf("a patch cannot be edited: %w", err)
	}
	changed := n.Value != string(edited)
	n.Value = string(edited)
	return changed, nil
}

// becomesOf returns what the objects become that a selector of a kustomization selects.
func (k *kustomizations) becomesOf(dir string, selector *yaml.Node) (*yaml.Node, []*object, error) {
	all := k.targets(dir, selected(selector))
	if len(all) == 0 {
		return nil, nil, errors.New("the input has no object that the selector is for")
	}
	for _, o := range all {
		switch {
		case o.verdict() == Unsupported || o.omitted:
			return nil, nil, fmt.Errorf("it selects %s %s, which cannot be converted", o.Kind, o.Name.Name)
		case text(o.out.root, "kind") != text(all[0].out.root, "kind"):
			return nil, nil, fmt.Errorf("it selects %s %s and %s, which become different Kinds", o.Kind, all[0].Name.Name, o.Name.Name)
		}
	}
	return all[0].out.root, all, nil
}

// patchOf returns what a patch of an object becomes.
func (in *inputs) patchOf(o *object, patch *yaml.Node) (*yaml.Node, error) {
	if patch.Kind == yaml.SequenceNode {
		return in.patchOperations(o, patch)
	}
	return in.mergePatch(o, patch)
}

// selector converts the group, the version and the Kind of a selector.
func (k *kustomizations) selector(dir string, selector *yaml.Node) (bool, error) {
	is, all, err := k.becomesOf(dir, selector)
	if err != nil || stay(all) {
		return false, err
	}
	markPatched(all)
	group, version, _ := strings.Cut(text(is, "apiVersion"), "/")
	changed := false
	for key, to := range map[string]string{"group": group, "version": version, "kind": text(is, "kind")} {
		if n := child(selector, key); n != nil && n.Value != to {
			n.Value, changed = to, true
		}
	}
	return changed, nil
}

// replacement converts the selectors and the paths of a replacement.
func (k *kustomizations) replacement(dir string, original *yaml.Node) (bool, error) {
	changed, n := false, copyOf(original)
	one := func(selector *yaml.Node, paths ...*yaml.Node) error {
		if selector == nil {
			return nil
		}
		if is, err := k.ours(selector); err != nil || !is {
			return err
		}
		_, all, err := k.becomesOf(dir, selector)
		if err != nil || stay(all) {
			return err
		}
		for _, p := range paths {
			to, err := movedPath(p.Value, all)
			if err != nil {
				return err
			}
			changed = changed || to != p.Value
			p.Value = to
		}
		moved, err := k.selector(dir, selector)
		changed = changed || moved
		return err
	}
	source := child(n, "source")
	var from []*yaml.Node
	if p := child(source, "fieldPath"); p != nil {
		from = append(from, p)
	}
	if err := one(source, from...); err != nil {
		return false, fmt.Errorf("a replacement cannot be converted: %w", err)
	}
	for _, t := range contentOf(child(n, "targets")) {
		err := one(child(t, "select"), contentOf(child(t, "fieldPaths"))...)
		for _, r := range contentOf(child(t, "reject")) {
			err = errors.Join(err, one(r))
		}
		if err != nil {
			return false, fmt.Errorf("a replacement cannot be converted: %w", err)
		}
	}
	*original = *n
	return changed, nil
}

// listPart matches a part of a path of Kustomize that selects items of a list.
var listPart = regexp.MustCompile(`^(?:\*|\d+|-|\[.*\])$`)

var indexPart = regexp.MustCompile(`\[\d+\]`)

// movedPath returns the path of a field of Kustomize, such as spec.data.*.remoteRef.key, in what objects became.
func movedPath(path string, all []*object) (string, error) {
	parts := splitPath(path)
	var lists []string
	for i, p := range parts {
		if listPart.MatchString(p) {
			lists, parts[i] = append(lists, p), "*"
		}
	}
	result := ""
	for _, o := range all {
		to, found := "", false
		for n := len(parts); n > 0 && !found; n-- {
			for _, f := range o.findings {
				if anyIndex(f.Field) == strings.Join(parts[:n], ".") && f.To != "" {
					to, found = strings.Join(append([]string{anyIndex(f.To)}, parts[n:]...), "."), true
					break
				}
			}
		}
		switch {
		case !found || strings.Count(to, "*") != len(lists):
			return "", fmt.Errorf("%s of %s %s: %w", path, o.Kind, o.Name.Name, errManual)
		case result != "" && result != to:
			return "", fmt.Errorf("%s becomes different fields", path)
		}
		result = to
	}
	for _, l := range lists {
		result = strings.Replace(result, "*", "\x00"+l, 1)
	}
	return strings.ReplaceAll(result, "\x00", ""), nil
}

// splitPath splits a path at its dots. Brackets and escapes can hold dots.
func splitPath(path string) []string {
	var all []string
	depth, from := 0, 0
	for i := range len(path) {
		switch {
		case path[i] == '[':
			depth++
		case path[i] == ']':
			depth--
		case path[i] == '.' && depth == 0 && (i == 0 || path[i-1] != '\\'):
			all, from = append(all, path[from:i]), i+1
		}
	}
	return append(all, path[from:])
}

// replacementFile converts a file of replacements.
func (k *kustomizations) replacementFile(dir, file string) {
	for _, d := range k.files[file] {
		root := d.node
		list := []*yaml.Node{root}
		if root == nil {
			if parsed, err := readOne(d.raw); err == nil && len(parsed.Content) > 0 {
				root = parsed.Content[0]
				list = root.Content
			}
		}
		changed := false
		for _, n := range list {
			one, err := k.replacement(dir, n)
			if err != nil {
				k.note(d, n, err.Error(), todoPatch)
			}
			changed = changed || one
		}
		if changed {
			d.replaced = root
		}
	}
}

// labels reports labels that a kustomization adds. External Secrets Operator copies them to Secrets.
func (k *kustomizations) labels(dir string, d *document, root *yaml.Node) {
	for _, list := range []string{"commonLabels", "labels", "commonAnnotations"} {
		n := child(root, list)
		if n == nil || len(n.Content) == 0 || !k.copiesMetadata(dir) {
			continue
		}
		what := "labels"
		if list == "commonAnnotations" {
			what = "annotations"
		}
		k.note(d, n, fmt.Sprintf("%s adds %s to ExternalSecrets, which External Secrets Operator copies to their Secrets", list, what),
			"if readers of the Secrets need them, add them to spec.target.template.metadata."+what+" too, as with an entry of labels that has fields")
	}
}

// copiesMetadata reports whether a kustomization has an ExternalSecret whose labels External Secrets Operator copies.
func (k *kustomizations) copiesMetadata(dir string) bool {
	files := k.closure(dir, map[string]bool{})
	return slices.ContainsFunc(k.in.objects, func(o *object) bool {
		return files[path.Clean(o.File)] && o.Kind == "ExternalSecret" && groupOf(o.APIVersion) == groupESO && child(o.node, "spec", "target", "template") == nil
	})
}

// configuration reports a configuration of Kustomize that names Kinds which are converted.
func (k *kustomizations) configuration(file string) {
	for _, d := range k.files[file] {
		for i, line := range strings.Split(string(d.raw), "\n") {
			if name := kindLine.FindStringSubmatch(line); name != nil && groupOfKind(name[1]) != "" {
				k.note(d, &yaml.Node{Line: i + 1}, "a configuration of Kustomize names the Kind "+name[1], "name the new Kind, its group and its fields, such as spec/storeRef")
			}
		}
	}
}

var kindLine = regexp.MustCompile(`^\s*(?:-\s+)?kind:\s*["']?(\w+)["']?\s*$`)
