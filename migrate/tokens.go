package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tokenValues are the ServiceAccounts whose tokens a module creates.
type tokenValues struct {
	enabled           bool
	namespaces, names known
}

// known is a list of values, and the objects for which a value is not known.
type known struct{ values, missing map[string]bool }

// add adds a value, or the object for which it is not known.
func (k *known) add(value, object string) {
	if k.values == nil {
		k.values, k.missing = map[string]bool{}, map[string]bool{}
	}
	if knownText(value) {
		k.values[value] = true
	} else {
		k.missing[object] = true
	}
}

// merge adds another list.
func (k *known) merge(other known) {
	for v := range other.values {
		k.add(v, "")
	}
	for object := range other.missing {
		k.add("", object)
	}
}

// put writes the list. If a value is not known, it writes none, because the chart then allows all, and says why in a comment.
func (k *known) put(t *tree, module, list string) (comment string) {
	if len(k.missing) > 0 {
		return fmt.Sprintf("The list %s is left out, so all are allowed: the conversion does not know them for %s.", list, shortened(slices.Sorted(maps.Keys(k.missing))))
	}
	if len(k.values) == 0 {
		return ""
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range slices.Sorted(maps.Keys(k.values)) {
		item := &yaml.Node{}
		item.SetString(v)
		n.Content = append(n.Content, item)
	}
	t.put([]string{module, "serviceAccountTokens", list}, nil, n)
	return ""
}

// put writes the values of a module.
func (v *tokenValues) put(t *tree, module string) {
	if !v.enabled {
		return
	}
	enabled := []string{module, "serviceAccountTokens", "enabled"}
	t.put(enabled, nil, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	comments := append(nonEmpty(v.namespaces.put(t, module, "namespaces")), nonEmpty(v.names.put(t, module, "names"))...)
	child(t.root, module, "serviceAccountTokens").Content[0].HeadComment = strings.Join(comments, "\n")
}

// addAccounts adds the ServiceAccounts that the results of an object name to its values. A part of other objects has none: they have
// it in their results.
func (o *object) addAccounts() {
	if o.isPart() {
		return
	}
	for _, root := range o.roots() {
		m := o.used.modules[moduleOf(text(root, "apiVersion"))]
		if m == nil || !m.tokens.enabled {
			continue
		}
		name := o.shownName()
		for _, ref := range accountRefs(root) {
			namespace := text(ref, "namespace")
			if namespace == "" && !strings.HasPrefix(text(root, "kind"), "Cluster") && !o.severalNamespaces {
				namespace = o.Namespace
			}
			m.tokens.namespaces.add(namespace, name)
			m.tokens.names.add(text(ref, "name"), name)
		}
	}
}

// accountRefs returns the references to ServiceAccounts below a node.
func accountRefs(n *yaml.Node) (all []*yaml.Node) {
	for key, value := range pairs(n) {
		if key.Value == "serviceAccountRef" || (key.Value == "serviceAccount" && value.Kind == yaml.MappingNode) {
			all = append(all, value)
		}
		all = append(all, accountRefs(value)...)
	}
	return all
}

// moduleOf returns the module that serves the stores and generators of an API version; "" if there is none.
func moduleOf(apiVersion string) string {
	for _, k := range append(slices.Clone(storeKinds), password) {
		if k.apiVersion() == apiVersion {
			return k.module
		}
	}
	return ""
}

// shownName returns Kind, namespace and name as the manifest has them.
func (o *object) shownName() string {
	name := o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name.Name, "/")
	if o.hidden != nil {
		name = o.hidden.Show(name)
	}
	return strings.Join(strings.Fields(name), " ")
}
