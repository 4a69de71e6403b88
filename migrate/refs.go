package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/common/inspect"
)

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// faultOf says why a template cannot be used; "" if it can.
func faultOf(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "the value is not a single value"
	}
	if err := inspect.CheckTemplate(n.Value); err != nil {
		return "the template cannot be used here: " + strings.TrimPrefix(err.Error(), ": ")
	}
	return ""
}

// target is the store or generator that an object refers to.
type target struct {
	kind kind
	// object is the original.
	object *object
	// guess says why the store is one of several; empty if it is in the input.
	guess string
}

// storeOf returns the store of a reference of External Secrets Operator. The error says why there is none.
func (o *object) storeOf(kind, name string) (target, error) {
	if kind == "" {
		kind = "SecretStore"
	}
	namespace := ""
	if kind == "SecretStore" {
		namespace = o.inputs.namespace(o.Namespace)
	}
	if isFanOut(o.Kind) {
		namespace = "" // Its objects are in several namespaces.
	}
	return o.referTo(groupESO, kind, namespace, name)
}

func isFanOut(kind string) bool {
	return kind == "ClusterExternalSecret" || kind == "ClusterPushSecret"
}

// A refError says why a reference cannot be converted.
type refError struct{ reason, todo, cause, subject string }

// Error implements error.
func (e *refError) Error() string { return e.reason }

// unresolved reports a reference that cannot be converted.
func (f *field) unresolved(err error) {
	finding := Finding{Field: f.String(), Verdict: Unsupported, Reason: err.Error(), Todo: "correct it, and convert it again"}
	var e *refError
	if errors.As(err, &e) {
		finding.Todo, finding.Cause, finding.Subject = e.todo, e.cause, e.subject
	}
	f.add(finding)
}

// unconverted returns why an object to which another one refers cannot be converted.
func (o *object) unconverted() error {
	e := &refError{reason: o.Kind + " " + o.Name.Name + " cannot be converted", todo: "convert that first"}
	for _, f := range o.findings {
		if f.Verdict == Unsupported {
			e.cause, e.todo, e.subject = cmp.Or(f.Cause, f.Reason), f.Todo, f.Subject
			e.reason += ": " + f.Reason
			break
		}
	}
	return e
}

// referTo returns what a store or a generator becomes that the object refers to. Of several with its name it is one in the folder
// of the object, or in a folder around it, or any if they become the same.
func (o *object) referTo(group, kind, namespace, name string) (target, error) {
	all, guess := nearest(o.File, o.inputs.allNamed(group, kind, namespace, name), func(o *object) string { return o.File }), ""
	if len(all) == 0 && group == groupESO {
		if found, err := o.knownStore(kind, namespace, name); found != nil || err != nil {
			return *cmp.Or(found, &target{}), err
		}
	}
	if len(all) == 0 {
		all = o.inputs.candidates(group, kind, name)
		guess = fmt.Sprintf("%s %s is not in the input, but all that it can be become the same", kind, name)
	}
	if len(all) == 0 {
		return target{}, &refError{
			reason: fmt.Sprintf("%s %s is not in the input, so it is not known what it becomes", kind, name), todo: "add its manifest, use --cluster, or name the Kind of a store with --store",
			cause: "what it refers to is not in the input, so it is not known what that becomes", subject: kind + " " + name,
		}
	}
	for _, found := range all {
		if found.becomesKind == nil || found.verdict() == Unsupported {
			return target{}, found.unconverted()
		}
		if one, other := (target{kind: *all[0].becomesKind, object: all[0]}), (target{kind: *found.becomesKind, object: found}); one.meaning() != other.meaning() {
			return target{}, fmt.Errorf("%s %s is in the input more than once, in %s:%d and %s:%d, and these become different stores; convert the folder of each by itself", kind, name, all[0].File, all[0].Line, found.File, found.Line)
		}
	}
	return target{*all[0].becomesKind, all[0], guess}, nil
}

// candidates returns the objects that a reference can mean if it leads to none of the input. These are those of its name in other
// namespaces or, if its name or its Kind is not known, all that fit.
func (in *inputs) candidates(group, kind, name string) (all []*object) {
	for _, o := range in.objects {
		fits := o.Kind == kind || (unknown(kind) && (o.Kind == "SecretStore" || o.Kind == "ClusterSecretStore"))
		if groupOf(o.APIVersion) == group && fits && (o.Name.Name == name || unknown(name)) {
			all = append(all, o)
		}
	}
	return all
}

// nearest returns those whose file is in the folder of a file or, if there is none, in the nearest folder around it. If there is
// none either, it returns all.
func nearest[T any](file string, all []T, fileOf func(T) string) []T {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		in := slices.DeleteFunc(slices.Clone(all), func(o T) bool { return path.Dir(fileOf(o)) != dir })
		switch {
		case len(in) > 0:
			return in
		case dir == path.Dir(dir):
			return all
		}
	}
}

// meaning is what the conversion of a reference depends on.
func (t target) meaning() string {
	engine, version := "", ""
	if t.is(vaultKV) {
		engine, version = t.vault()
	}
	return strings.Join([]string{t.kind.name, engine, version, text(t.object.node, "spec", "provider", "aws", "prefix"), strconv.FormatBool(t.object.usesNewSDK())}, " ")
}

// storeRef moves a reference to a store. That of an object may name none, if its entries do.
func storeRef(to string) rule {
	return func(f *field) {
		name, of := text(f.node, "name"), text(f.node, "kind")
		switch {
		case f.node.Kind != yaml.MappingNode:
			f.invalid("a mapping")
		case !f.only("name", "kind"):
		case !slices.Contains([]string{"", "SecretStore", "ClusterSecretStore"}, of) && !unknown(of):
			f.unsupported("the kind is not one of SecretStore, ClusterSecretStore", "correct it, and convert it again")
		case name == "" && strings.HasSuffix(f.String(), "secretStoreRef"):
			f.dropped("it names no store")
		case name == "":
			f.unsupported("it names no store", "name it, and convert it again")
		default:
			found, err := f.storeOf(of, name)
			if err != nil {
				f.unresolved(err)
				return
			}
			f.refer(to, found)
		}
	}
}

// storeFor returns the store that the entry of an ExternalSecret reads which holds the field.
func (f *field) storeFor() (target, bool) {
	at := slices.IndexFunc(f.path, func(p string) bool { _, list := indexOf(p); return list })
	if at < 0 {
		return target{}, false
	}
	ref := child(f.object.node, slices.Concat(f.path[:at+1], []string{"sourceRef", "storeRef"})...)
	if ref == nil {
		ref = child(f.object.node, strings.Split(f.specPath("spec.secretStoreRef"), ".")...)
	}
	if text(ref, "name") == "" {
		return target{}, false
	}
	found, err := f.storeOf(text(ref, "kind"), text(ref, "name"))
	return found, err == nil
}

// is reports whether a store is of a Kind, or of its cluster twin.
func (t target) is(k kind) bool { return t.kind == k || t.kind == k.cluster() }

// vault returns where the secrets of a store of Vault are.
func (t target) vault() (path, version string) {
	for _, name := range []string{"vault", "openBao"} {
		if store := child(t.object.node, "spec", "provider", name); store != nil {
			return text(store, "path"), text(store, "version")
		}
	}
	return "", ""
}

// refer moves a reference and names the Kind in it.
func (f *field) refer(to string, t target) {
	f.node = f.reference(t.kind)
	f.used.module(t.kind.module)
	if t.guess != "" {
		f.changed(to, t.guess, "check that it will be there")
		return
	}
	f.exact(to)
}

// reference returns what a reference with a name becomes, with its comments.
func (f *field) reference(k kind) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, HeadComment: f.node.HeadComment, LineComment: f.node.LineComment, FootComment: f.node.FootComment}
	kindKey, kindNode, nameKey := scalarNode("kind", &yaml.Node{}), scalarNode(k.name, &yaml.Node{}), scalarNode("name", &yaml.Node{})
	for key, value := range pairs(f.node) {
		switch key.Value {
		case "name":
			nameKey = key
		case "kind":
			kindKey, kindNode = key, scalarNode(k.name, value)
		default:
			f.out.pend(len(f.path)+1, key, value)
		}
	}
	n.Content = []*yaml.Node{kindKey, kindNode, nameKey, child(f.node, "name")}
	return n
}

// only reports whether a mapping has no other keys than these; it records those that it has.
func (f *field) only(keys ...string) bool {
	all := true
	for key := range pairs(f.node) {
		if !slices.Contains(keys, key.Value) {
			f.below(nil, nil, key.Value).unsupported(f.from.name+" has no such field, or dsctl does not know it", "remove it, or convert the object by hand")
			all = false
		}
	}
	return all
}

// generatorKinds are the Kinds that generators become.
var generatorKinds = map[string]kind{
	"Password": password, "SSHKey": sshKey, "UUID": uuid, "ECRAuthorizationToken": ecrToken, "STSSessionToken": stsToken,
	"ACRAccessToken": acrToken, "GCRAccessToken": gcpToken, "VaultDynamicSecret": vaultDynamic,
}

// generatorRef moves a reference to a generator.
func generatorRef(to string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.MappingNode {
			f.invalid("a mapping")
			return
		}
		if !f.only("apiVersion", "kind", "name") {
			return
		}
		if version := text(f.node, "apiVersion"); version != "" && groupOf(version) != groupGenerators {
			f.unsupported("External Secrets Operator has no generators in "+version, "correct it, and convert it again")
			return
		}
		of, name := text(f.node, "kind"), text(f.node, "name")
		if _, known := generatorKinds[of]; !known && of != "ClusterGenerator" {
			f.unsupported("direct-secrets has no generator "+of, "leave this object with External Secrets Operator")
			return
		}
		namespace := ""
		if of != "ClusterGenerator" && !isFanOut(f.Kind) {
			namespace = f.inputs.namespace(f.Namespace)
		}
		found, err := f.referTo(groupGenerators, of, namespace, name)
		if err != nil {
			f.unresolved(err)
			return
		}
		f.refer(to, found)
	}
}

// secretKey moves a reference to a key of a Secret; missing is the key that External Secrets Operator takes if there is none.
func secretKey(to, missing string) rule {
	return func(f *field) {
		f.selector(to, []string{"name", "key", "namespace"}, func() bool {
			if child(f.node, "key") == nil && missing != "" {
				f.node.Content = append(f.node.Content, scalarNode("key", &yaml.Node{}), scalarNode(missing, &yaml.Node{}))
			}
			return text(f.node, "key") != ""
		})
	}
}

// selector moves a reference to something in a namespace, and remembers which namespaces the object names.
func (f *field) selector(to string, keys []string, complete func() bool) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	if !f.only(keys...) {
		return
	}
	if text(f.node, "name") == "" || !complete() {
		f.unsupported("the reference is not complete", "name what it refers to, and convert it again")
		return
	}
	namespace := child(f.node, "namespace")
	if !f.namesNamespaces() && namespace != nil {
		if !f.ownNamespace(namespace) {
			return
		}
		f.without("namespace")
		namespace = nil
	}
	scope := ""
	if namespace != nil {
		scope = namespace.Value
	}
	f.scopes = append(f.scopes, scope)
	f.exact(to)
}

// ownNamespace reports whether the namespace of a reference can be left out: External Secrets Operator ignores it except
// in a ClusterSecretStore, and refuses one that is not that of a SecretStore.
func (f *field) ownNamespace(namespace *yaml.Node) bool {
	at := f.below(nil, namespace, "namespace")
	own := f.Kind != "ClusterGenerator" && namespace.Value == f.inputs.namespace(f.Namespace)
	switch {
	case own:
		at.dropped("it is the namespace of the object")
	case f.Kind == "SecretStore":
		at.unsupported("External Secrets Operator refuses another namespace than that of the SecretStore", "correct it, and convert it again")
		return false
	case text(f.node, "type") == "ConfigMap":
		at.unsupported("the ConfigMap is in another namespace", "copy it, and remove the namespace")
		return false
	default:
		at.dropped("External Secrets Operator ignores it in a generator, and looks in the namespace of the object that uses it")
	}
	return true
}

// without takes a key out of a mapping.
func (f *field) without(key string) {
	f.out.pend(len(f.path)+1, cut(f.node, key)...)
}

// serviceAccount moves a reference to a ServiceAccount; the first of the audiences of its token are given.
func serviceAccount(to string, audiences ...string) rule {
	return func(f *field) {
		f.selector(to, []string{"name", "namespace", "audiences"}, func() bool {
			if own := child(f.node, "audiences"); own != nil && len(audiences) > 0 {
				for i := len(audiences) - 1; i >= 0; i-- {
					if !slices.ContainsFunc(own.Content, func(n *yaml.Node) bool { return n.Value == audiences[i] }) {
						own.Content = slices.Insert(own.Content, 0, scalarNode(audiences[i], &yaml.Node{}))
					}
				}
			}
			return true
		})
		f.used.tokens(f.becomesKind)
	}
}
