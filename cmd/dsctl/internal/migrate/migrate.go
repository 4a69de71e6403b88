package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are what a conversion has to know besides its input.
type Options struct {
	// Namespace is that of objects that name none.
	Namespace string
	// Roles are ARNs of IAM roles by NAMESPACE/NAME of a ServiceAccount.
	Roles map[string]string
	// Context are objects that are looked up and not converted, such as those of a cluster.
	Context []Source
}

// A Result is what a conversion yields.
type Result struct {
	// Files are the sources with what their objects became. The rest is unchanged.
	Files []Source
	// Values are those of the umbrella chart; nil if no module is needed.
	Values []byte
	Report Report
	// Objects are what the objects of the sources became, in their order.
	Objects []Converted
}

// Converted is what one object became.
type Converted struct {
	Name

	Verdict Verdict
	// Changes is how many findings say that something changes.
	Changes int
	// JSON is the new object; nil if there is none.
	JSON []byte
}

// versions are the API versions that are read, by the Kind.
var versions = map[string][]string{
	"ExternalSecret": {"v1", "v1beta1", "v1alpha1"}, "ClusterExternalSecret": {"v1", "v1beta1"},
	"SecretStore": {"v1", "v1beta1", "v1alpha1"}, "ClusterSecretStore": {"v1", "v1beta1", "v1alpha1"},
	"PushSecret": {"v1alpha1"}, "ClusterPushSecret": {"v1alpha1"},
}

// converters convert each Kind. Stores and generators come first, since others refer to them.
var converters = map[string]func(*object){
	"SecretStore": store, "ClusterSecretStore": store, "ClusterGenerator": clusterGenerator,
	"Password": generator, "ECRAuthorizationToken": generator, "STSSessionToken": generator, "GCRAccessToken": generator, "VaultDynamicSecret": generator,
	"ExternalSecret": externalSecret, "ClusterExternalSecret": clusterExternalSecret, "PushSecret": pushSecret, "ClusterPushSecret": clusterPushSecret,
}

// Convert converts the objects of External Secrets Operator among the sources.
func Convert(sources []Source, options Options) (Result, error) {
	in := &inputs{Options: options, accounts: map[string]map[string]string{}}
	var own, others []*document
	files := make([][]*document, len(sources))
	for i, s := range sources {
		files[i] = split(s)
		for _, d := range files[i] {
			own = append(own, d.flat()...)
		}
	}
	for _, s := range options.Context {
		for _, d := range split(s) {
			others = append(others, d.flat()...)
		}
	}
	for _, d := range slices.Concat(own, others) {
		in.take(d)
	}
	for _, first := range []bool{true, false} {
		for _, o := range in.objects {
			if refersToOthers(o.Kind) != first {
				in.convert(o)
			}
		}
	}
	result := Result{}
	for i, s := range sources {
		content, err := render(files[i], s.Content)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		result.Files = append(result.Files, Source{Name: s.Name, Content: content})
	}
	for _, d := range own {
		switch {
		case d.err != nil:
			result.Report.unreadable(d)
		case d.object != nil:
			result.Report.add(d.object)
			one, err := d.object.converted()
			if err != nil {
				return Result{}, fmt.Errorf("%s: %w", d.object.Name, err)
			}
			result.Objects = append(result.Objects, one)
		}
	}
	var err error
	result.Values, err = in.used.yaml()
	return result, err
}

// Knows reports whether an API group is of External Secrets Operator.
func Knows(group string) bool { return group == groupESO || group == groupGenerators }

func refersToOthers(kind string) bool {
	return slices.Contains([]string{"ExternalSecret", "ClusterExternalSecret", "PushSecret", "ClusterPushSecret"}, kind)
}

// take adds the object of a document, if it is one of External Secrets Operator.
func (in *inputs) take(d *document) {
	if d.err != nil || d.node == nil {
		return
	}
	name := Name{
		APIVersion: text(d.node, "apiVersion"), Kind: text(d.node, "kind"),
		Namespace: text(d.node, "metadata", "namespace"), Name: text(d.node, "metadata", "name"), File: d.source, Line: d.line,
	}
	if name.APIVersion == "v1" && name.Kind == "ServiceAccount" {
		in.accounts[in.namespace(name.Namespace)+"/"+name.Name] = textsOf(child(d.node, "metadata", "annotations"))
	}
	if !Knows(groupOf(name.APIVersion)) {
		return
	}
	o := &object{Name: name, document: d, inputs: in, out: &tree{root: &yaml.Node{Kind: yaml.MappingNode}, lists: map[string]*yaml.Node{}}}
	in.objects = append(in.objects, o)
	d.object = o
}

// convert converts one object.
func (in *inputs) convert(o *object) {
	apply, found := converters[o.Kind]
	known := versions[o.Kind]
	if groupOf(o.APIVersion) == groupGenerators {
		known = []string{"v1alpha1"}
	}
	_, version, _ := strings.Cut(o.APIVersion, "/")
	switch {
	case o.Kind == "GeneratorState":
		o.omitted = true
		o.add(Finding{Verdict: Exact, Reason: "External Secrets Operator keeps it for itself"})
	case !found:
		o.add(Finding{Field: "kind", Verdict: Unsupported, Reason: "direct-secrets has nothing like " + o.Kind, Todo: "leave it with External Secrets Operator"})
	case !slices.Contains(known, version):
		o.add(Finding{Field: "apiVersion", Verdict: Unsupported, Reason: "dsctl does not know the version " + version + " of " + o.Kind, Todo: "write it in one of the versions " + strings.Join(known, ", ")})
	case o.madeByFanOut() != "":
		o.omitted = true
		o.add(Finding{Verdict: Exact, Reason: o.madeByFanOut() + " makes it, so it is not converted by itself"})
	case templated(o.node):
		o.add(Finding{Field: "metadata", Verdict: Unsupported, Reason: "it is a template of Helm", Todo: "render the chart first, as with helm template"})
	case o.Name.Name == "":
		o.add(Finding{Field: "metadata.name", Verdict: Unsupported, Reason: "the object has no name", Todo: "name it, and convert it again"})
	default:
		apply(o)
		if spec := []string{"spec"}; child(o.node, spec...) != nil && child(o.out.root, spec...) == nil {
			o.out.put(spec, nil, &yaml.Node{Kind: yaml.MappingNode})
		}
		o.verify()
		if o.verdict() != Unsupported {
			in.used.add(o.used)
		}
	}
}

// helm matches what a template of a chart reads.
var helm = regexp.MustCompile(`\{\{[^}]*\.(Values|Release|Chart|Capabilities)\b`)

// templated reports whether a text below a node is a template of a chart.
func templated(n *yaml.Node) bool {
	return (n.Kind == yaml.ScalarNode && helm.MatchString(n.Value)) || slices.ContainsFunc(n.Content, templated)
}

// madeByFanOut returns the Kind of the object that made this one; "" if a user did.
func (o *object) madeByFanOut() string {
	owners := child(o.node, "metadata", "ownerReferences")
	if owners == nil {
		return ""
	}
	for _, n := range owners.Content {
		if Knows(groupOf(text(n, "apiVersion"))) && isFanOut(text(n, "kind")) {
			return text(n, "kind") + " " + text(n, "name")
		}
	}
	return ""
}

// annotation returns an annotation of a ServiceAccount.
func (in *inputs) annotation(namespace, name, key string) (string, bool) {
	if arn, found := in.Roles[namespace+"/"+name]; found && key == roleAnnotation {
		return arn, true
	}
	value, found := in.accounts[namespace+"/"+name][key]
	return value, found
}

// knows reports whether a ServiceAccount is in the input.
func (in *inputs) knows(namespace, name string) bool {
	_, found := in.accounts[namespace+"/"+name]
	return found
}
