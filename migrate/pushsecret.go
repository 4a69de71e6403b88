package migrate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// pushSecrets are the rules for the spec of a PushSecret.
var pushSecrets = rules{
	"spec.refreshInterval":                       interval("spec.refreshInterval"),
	"spec.secretStoreRefs":                       pushStores,
	"spec.updatePolicy":                          oneOf("spec.updatePolicy", "Replace", "IfNotExists"),
	"spec.deletionPolicy":                        oneOf("spec.deletionPolicy", "None", "Delete"),
	"spec.selector.secret.name":                  scalar("spec.selector.secret.name"),
	"spec.selector.secret.selector":              unless(1, "name", whole("spec.selector.secret.selector", yaml.MappingNode)),
	"spec.selector.generatorRef":                 unless(1, "secret.name", generatorRef("spec.selector.generatorRef")),
	"spec.data[].match.secretKey":                scalar("spec.data[].match.secretKey"),
	"spec.data[].match.remoteRef.remoteKey":      pushKey("spec.data[].match.remoteRef.remoteKey"),
	"spec.data[].match.remoteRef.property":       pushProperty,
	"spec.data[].metadata":                       pushMetadata,
	"spec.dataTo[].storeRef":                     dataToStore,
	"spec.dataTo[].remoteKey":                    pushKey("spec.dataTo[].remoteKey"),
	"spec.dataTo[].match.regexp":                 scalar("spec.dataTo[].match.regexp"),
	"spec.dataTo[].rewrite[].regexp.source":      scalar("spec.dataTo[].rewrite[].regexp.source"),
	"spec.dataTo[].rewrite[].regexp.target":      scalar("spec.dataTo[].rewrite[].regexp.target"),
	"spec.dataTo[].rewrite[].transform.template": templateText("spec.dataTo[].rewrite[].transform.template"),
	"spec.dataTo[].metadata":                     never("the settings of dataTo are not converted", "write metadata by hand, in the terms of the new Kind"),
	"spec.dataTo[].conversionStrategy":           oneOf("spec.dataTo[].conversionStrategy", "None", "ReverseUnicode"),
	"spec.data[].conversionStrategy":             oneOf("spec.data[].conversionStrategy", "None", "ReverseUnicode"),
}.with(templates("spec.template"), rules{
	"spec.template.mergePolicy":           drop("values of the Secret that the template does not yield are pushed, too"),
	"spec.template.type":                  drop("it has no effect on what is pushed"),
	"spec.template.metadata.labels":       drop("it has no effect on what is pushed"),
	"spec.template.metadata.annotations":  drop("it has no effect on what is pushed"),
	"spec.template.metadata.finalizers":   drop("it has no effect on what is pushed"),
	"spec.template.templateFrom[].target": pushTarget,
})

// pushTarget refuses templates that yield nothing that is pushed.
func pushTarget(f *field) {
	if f.node.Value != "Data" {
		f.unsupported("labels and annotations are not pushed", "remove the entry of templateFrom")
		return
	}
	f.dropped("it is the default")
}

// pushSecret converts a PushSecret.
func pushSecret(o *object) {
	o.becomes(kind{name: "PushSecret"})
	pushSecrets.with(metadata()).walk(&field{object: o, node: o.node})
	o.finishPush("spec")
	o.refuseLoop()
}

// refuseLoop reports a Secret that an ExternalSecret reads from a store to which it would be pushed back. The ExternalSecret can be
// converted already.
func (o *object) refuseLoop() {
	for _, es := range o.inputs.objects {
		if es.Kind == "ExternalSecret" && groupOf(es.APIVersion) == groupESO && o.inputs.namespace(es.Namespace) == o.inputs.namespace(o.Namespace) {
			from := child(es.node, "spec", "secretStoreRef")
			o.refuseLoopOf(es.Name.Name, es.node, func(of, name string) bool {
				return name == text(from, "name") && of == cmp.Or(text(from, "kind"), "SecretStore")
			})
		}
	}
	for _, place := range slices.Sorted(maps.Keys(o.inputs.existing)) {
		name, found := strings.CutPrefix(place, "ExternalSecret/"+o.inputs.namespace(o.Namespace)+"/")
		if !found {
			continue
		}
		for _, es := range o.inputs.existing[place] {
			from := child(es.node, "spec", "storeRef")
			o.refuseLoopOf(name, es.node, func(of, name string) bool {
				to, err := o.storeOf(of, name)
				return err == nil && name == text(from, "name") && to.kind.name == text(from, "kind")
			})
		}
	}
}

// refuseLoopOf reports the stores to which the Secret of an ExternalSecret would be pushed and which it reads.
func (o *object) refuseLoopOf(name string, es *yaml.Node, reads func(of, name string) bool) {
	if cmp.Or(text(es, "spec", "target", "name"), name) != text(o.node, "spec", "selector", "secret", "name") {
		return
	}
	for i, to := range contentOf(child(o.node, "spec", "secretStoreRefs")) {
		if store := text(to, "name"); store != "" && reads(cmp.Or(text(to, "kind"), "SecretStore"), store) {
			o.add(Finding{Field: "spec.secretStoreRefs[" + strconv.Itoa(i) + "]", Verdict: Unsupported, Reason: "ExternalSecret " + name + " reads the Secret from this store, so it is not pushed back to it", Todo: "push another Secret, or leave this object with External Secrets Operator"})
		}
	}
}

// clusterPushSecrets are the rules for the spec of a ClusterPushSecret.
var clusterPushSecrets = rules{
	"spec.pushSecretSpec":                 nest(pushSecrets, false),
	"spec.pushSecretName":                 scalar("spec.pushSecretName"),
	"spec.pushSecretMetadata.labels":      stringMap("spec.pushSecretMetadata.labels"),
	"spec.pushSecretMetadata.annotations": stringMap("spec.pushSecretMetadata.annotations"),
	"spec.namespaceSelectors":             whole("spec.namespaceSelectors", yaml.SequenceNode),
	"spec.refreshTime":                    drop("namespaces are watched"),
}

// clusterPushSecret converts a ClusterPushSecret.
func clusterPushSecret(o *object) {
	o.becomes(kind{name: "ClusterPushSecret"})
	clusterPushSecrets.with(metadata()).walk(&field{object: o, node: o.node})
	o.finishPush("spec.pushSecretSpec")
}

// finishPush makes explicit what differs when a PushSecret writes.
func (o *object) finishPush(at string) {
	path := strings.Split(at, ".")
	if child(o.node, append(path, "template")...) != nil {
		o.out.set("Merge", append(path, "template", "mergePolicy")...)
		o.add(Finding{To: at + ".template.mergePolicy", Verdict: Exact, Reason: "External Secrets Operator pushes values of the Secret that the template does not yield, too"})
	}
	f := &field{object: o, node: o.node, nested: at}
	f.oldVault()
	f.finishSettings(child(o.node, append(path, "data")...))
	o.add(Finding{Verdict: Changed, Reason: "a remote secret that exists is written also if another tool created it, which External Secrets Operator refuses; deletionPolicy: Delete removes only what direct-secrets created or has taken over", Todo: "check that no other tool writes the remote keys, or set adoptionPolicy: Refuse for new ones; --execute takes over what External Secrets Operator created"})
}

// pushStores moves the references to stores. A label selector selects stores of one Kind here, so it becomes one
// reference for each Kind that it selects.
func pushStores(f *field) {
	if f.node.Kind != yaml.SequenceNode {
		f.invalid("a list")
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, HeadComment: f.node.HeadComment, LineComment: f.node.LineComment, FootComment: f.node.FootComment}
	for i, n := range f.node.Content {
		at := f.below(nil, n, index(i))
		if n.Kind != yaml.MappingNode {
			at.invalid("a mapping")
			return
		}
		if !at.only("name", "kind", "labelSelector") {
			return
		}
		refs, err := at.pushStore()
		if err != nil {
			at.unresolved(err)
			return
		}
		list.Content = append(list.Content, refs...)
	}
	f.node = list
	f.exact("spec.storeRefs")
}

// dataToStore moves the store of an entry of dataTo.
func dataToStore(f *field) {
	if child(f.node, "labelSelector") != nil {
		f.unsupported("an entry of dataTo names its store, and does not select it", "make an entry for each store")
		return
	}
	storeRef("spec.dataTo[].storeRef")(f)
}

// pushStore returns the references that one of External Secrets Operator becomes, or says why there are none.
func (f *field) pushStore() ([]*yaml.Node, error) {
	of, name := text(f.node, "kind"), text(f.node, "name")
	selector := child(f.node, "labelSelector")
	if selector == nil {
		if name == "" {
			return nil, errors.New("it names no store")
		}
		found, err := f.storeOf(of, name)
		if err != nil {
			return nil, err
		}
		f.used.module(found.kind.module)
		return []*yaml.Node{f.reference(found.kind)}, nil
	}
	if of == "" {
		of = "SecretStore"
	}
	selected, err := f.selectedStores(of, selector)
	if err != nil {
		return nil, err
	}
	kinds := map[string]kind{}
	for _, o := range selected {
		if o.becomesKind == nil || o.verdict() == Unsupported {
			return nil, o.unconverted()
		}
		kinds[o.becomesKind.name] = *o.becomesKind
	}
	if len(kinds) == 0 {
		return nil, &refError{reason: "no store of the input has the labels, so their Kind is not known", todo: "add their manifests, or use --cluster"}
	}
	var all []*yaml.Node
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		f.used.module(kinds[k].module)
		all = append(all, mapping("kind", scalarNode(k, &yaml.Node{}), "labelSelector", selector))
	}
	first := all[0] // It has the comments.
	first.HeadComment, first.LineComment, all[len(all)-1].FootComment = f.node.HeadComment, f.node.LineComment, f.node.FootComment
	for key, value := range pairs(f.node) {
		switch key.Value {
		case "kind":
			first.Content[0], first.Content[1] = key, scalarNode(first.Content[1].Value, value)
		case "labelSelector":
			first.Content[2] = key
		}
	}
	return all, nil
}

// selectedStores returns the stores of the input that a label selector of an object selects.
func (o *object) selectedStores(of string, selector *yaml.Node) (all []*object, err error) {
	var parsed metav1.LabelSelector
	if err := decode(selector, &parsed); err != nil {
		return nil, errors.New("the label selector cannot be read")
	}
	matching, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return nil, errors.New("the label selector cannot be read")
	}
	for _, store := range o.inputs.objects {
		inNamespace := of == "ClusterSecretStore" || isFanOut(o.Kind) || o.inputs.namespace(store.Namespace) == o.inputs.namespace(o.Namespace)
		if store.Kind == of && inNamespace && matching.Matches(labelsOf(store.node)) {
			all = append(all, store)
		}
	}
	return all, nil
}

func labelsOf(n *yaml.Node) labels.Set { return stringsOf(child(n, "metadata", "labels")) }

// specPath returns the path of a field of the spec in the result.
func (f *field) specPath(pattern string) string {
	if f.nested == "" {
		return pattern
	}
	return f.nested + strings.TrimPrefix(pattern, "spec")
}

// mapping returns a mapping of keys and values.
func mapping(of ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(of); i += 2 {
		n.Content = append(n.Content, scalarNode(of[i].(string), &yaml.Node{}), of[i+1].(*yaml.Node))
	}
	return n
}
