package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
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
	// Stores are those that are not in the input, by KIND/NAME or KIND/NAMESPACE/NAME of External Secrets Operator.
	Stores map[string]GivenStore
	// Accounts are ServiceAccounts of the pods that mount a SecretProviderClass, by its NAMESPACE/NAME.
	Accounts map[string]string
	// GKECluster is that of the ServiceAccounts, as projects/PROJECT/locations/LOCATION/clusters/CLUSTER.
	GKECluster string
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
	// MadeBy is the object that makes this one, so that it is not converted by itself; "" if a user does.
	MadeBy string
	// JSON is the new object; nil if there is none.
	JSON []byte
}

// Convert converts the objects of the tools that it knows among the sources. Documents whose text cannot be edited are refused before
// others are converted that depend on them.
func Convert(sources []Source, options Options) (Result, error) {
	refused := map[position]error{}
	for {
		result, failed, err := convertOnce(sources, options, refused)
		if err != nil || len(failed) == 0 {
			return result, err
		}
		before := len(refused)
		if maps.Copy(refused, failed); len(refused) == before {
			return Result{}, errors.New("a document that is left as it is cannot be edited")
		}
	}
}

// position is that of a document.
type position struct {
	file string
	line int
}

// convertOnce converts all but the documents that are refused. It returns those whose text cannot be edited.
func convertOnce(sources []Source, options Options, refused map[position]error) (Result, map[position]error, error) {
	in := &inputs{Options: options, accounts: map[string][]account{}, written: map[string]bool{}, existing: map[string][]*document{}, patchedRoles: map[string]string{}, names: map[string]string{}, mounts: map[string][]mount{}}
	var own, others []*document
	files, read := make([][]*document, len(sources)), make([][]byte, len(sources))
	for i, s := range sources {
		files[i], read[i] = split(s)
		for _, d := range files[i] {
			own = append(own, d.flat()...)
		}
	}
	for _, s := range options.Context {
		documents, _ := split(s)
		for _, d := range documents {
			others = append(others, d.flat()...)
		}
	}
	k := findKustomizations(in, slices.Concat(files...))
	for _, d := range own {
		d.own = true
	}
	for _, d := range slices.Concat(own, others) {
		if k.patches[path.Clean(d.source)] == nil {
			in.take(d)
		}
	}
	for _, d := range own {
		if d.object != nil {
			d.object.own = true
		}
	}
	for _, d := range own {
		if why := refused[position{d.source, d.line}]; d.object != nil && why != nil {
			d.object.unedited(why)
		}
	}
	in.convertAll()
	in.moveRestarts(refused)
	in.keepNeeded()
	k.convert(refused)
	result, failed := Result{}, map[position]error{}
	for i, s := range sources {
		result.Files = append(result.Files, Source{Name: s.Name, Content: edited(files[i], read[i], failed), Chart: s.Chart})
	}
	if len(failed) > 0 {
		return Result{}, failed, nil
	}
	for _, d := range own {
		switch {
		case d.err != nil:
			result.Report.unreadable(d)
		case d.object != nil:
			result.Report.add(d.object)
			one, err := d.object.converted()
			if err != nil {
				return Result{}, nil, fmt.Errorf("%s: %w", d.object.Name, err)
			}
			result.Objects = append(result.Objects, one)
		}
	}
	result.Report.Objects = append(result.Report.Objects, in.restarted...)
	result.Report.addWorkloads(in.workloads)
	result.Report.Others = k.notes
	var err error
	result.Values, err = in.used.yaml()
	return result, nil, err
}

// take adds the object of a document, if it is one of a tool that is known.
func (in *inputs) take(d *document) {
	if d.err != nil {
		in.unreadable = append(in.unreadable, d)
	}
	if d.err != nil || d.node == nil {
		return
	}
	name := Name{
		APIVersion: text(d.node, "apiVersion"), Kind: text(d.node, "kind"),
		Namespace: text(d.node, "metadata", "namespace"), Name: text(d.node, "metadata", "name"), File: d.source, Line: d.line,
	}
	if d.namespace != "" {
		name.Namespace = d.namespace
	}
	if name.APIVersion == "v1" && name.Kind == "ServiceAccount" {
		place := in.namespace(name.Namespace) + "/" + name.Name
		in.accounts[place] = append(in.accounts[place], account{name, stringsOf(child(d.node, "metadata", "annotations"))})
	} else {
		in.takeRoles(d, d.node)
	}
	if group := groupOf(name.APIVersion); group == "direct-secrets.io" || strings.HasSuffix(group, ".direct-secrets.io") {
		place := name.Kind + "/" + in.namespace(name.Namespace) + "/" + name.Name
		in.existing[place] = append(in.existing[place], d)
		if d.own && d.hidden == nil && name.Kind == "ExternalSecret" {
			in.restarters = append(in.restarters, d)
		}
	}
	in.takeWorkload(name, d.node)
	in.takeRestarted(name, d)
	from, known := tools[groupOf(name.APIVersion)]
	if !known {
		return
	}
	o := &object{Name: name, document: d, inputs: in, from: from, out: newTree()}
	in.objects = append(in.objects, o)
	d.object, d.original = o, copyOf(d.node)
}

// convert converts one object.
func (in *inputs) convert(o *object) {
	k, found := o.source()
	_, version, _ := strings.Cut(o.APIVersion, "/")
	switch {
	case o.verdict() == Unsupported: // Its text cannot be edited.
	case o.from.internal != "" && o.Kind == o.from.internal:
		o.omitted = true
		o.add(Finding{Verdict: Exact, Reason: o.from.name + " keeps it for itself"})
	case !found:
		o.add(Finding{Field: "kind", Verdict: Unsupported, Reason: "direct-secrets has nothing like " + o.Kind, Todo: "leave it with " + o.from.name})
	case !slices.Contains(k.versions, version):
		o.add(Finding{Field: "apiVersion", Verdict: Unsupported, Reason: "dsctl does not know the version " + version + " of " + o.Kind, Todo: "write it in one of the versions " + strings.Join(k.versions, ", ")})
	case o.madeByFanOut() != "":
		o.omitted = true
		o.add(Finding{Verdict: Exact, Reason: o.madeByFanOut() + " makes it, so it is not converted by itself"})
	case templated(o.node):
		o.add(Finding{Field: "metadata", Verdict: Unsupported, Reason: "it is a template of Helm", Todo: "render the chart first, as with helm template"})
	case o.Name.Name == "":
		o.add(Finding{Field: "metadata.name", Verdict: Unsupported, Reason: "the object has no name", Todo: "name it, and convert it again"})
	default:
		o.checkFields()
		k.convert(o)
		if spec := []string{"spec"}; child(o.node, spec...) != nil && child(o.out.root, spec...) == nil {
			o.out.put(spec, nil, &yaml.Node{Kind: yaml.MappingNode})
		}
		o.verify()
		if o.verdict() != Unsupported && o.claim() {
			o.addAccounts()
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

// madeByFanOut returns the Kind of the object of External Secrets Operator that made this one; "" if a user did.
func (o *object) madeByFanOut() string {
	owners := child(o.node, "metadata", "ownerReferences")
	if owners == nil || groupOf(o.APIVersion) != groupESO {
		return ""
	}
	for _, n := range owners.Content {
		if groupOf(text(n, "apiVersion")) == groupESO && isFanOut(text(n, "kind")) {
			return text(n, "kind") + " " + text(n, "name")
		}
	}
	return ""
}

// account is a ServiceAccount with its annotations.
type account struct {
	Name

	annotations map[string]string
}

// annotation returns an annotation of a ServiceAccount that the object refers to. Of several with its name it is that of one in
// the folder of the object, or in a folder around it. twice says where two of them have different ones; empty if they have not.
func (o *object) annotation(namespace, name, key string) (value string, found bool, twice string) {
	place := namespace + "/" + name
	if arn, given := o.inputs.Roles[place]; given && key == roleAnnotation {
		return arn, true, ""
	}
	all := nearest(o.File, o.inputs.accounts[place], func(a account) string { return a.File })
	for i, a := range all {
		is, has := a.annotations[key]
		if i > 0 && is != value {
			return "", false, fmt.Sprintf("the ServiceAccount %s is in the input more than once, in %s:%d and %s:%d, with different annotations %s", place, all[0].File, all[0].Line, a.File, a.Line, key)
		}
		value, found = is, has
	}
	return value, found, ""
}

// takeRoles remembers roles in values of charts, which make ServiceAccounts.
func (in *inputs) takeRoles(d *document, n *yaml.Node) {
	if arn := text(n, "annotations", roleAnnotation); arn != "" {
		in.roles = append(in.roles, account{Name{Name: text(n, "name"), File: d.source, Line: d.line + n.Line - 1}, map[string]string{roleAnnotation: arn}})
	}
	for _, c := range n.Content {
		in.takeRoles(d, c)
	}
}

// roleOfValues returns the only role that values of charts have for a ServiceAccount, and where it is; "" if there is none.
func (in *inputs) roleOfValues(name string) (arn string, at Name) {
	for _, r := range in.roles {
		if r.Name.Name != "" && r.Name.Name != name {
			continue
		}
		if is := r.annotations[roleAnnotation]; arn != "" && arn != is {
			return "", Name{}
		}
		arn, at = r.annotations[roleAnnotation], r.Name
	}
	return arn, at
}

// knows reports whether a ServiceAccount is in the input.
func (in *inputs) knows(namespace, name string) bool {
	return len(in.accounts[namespace+"/"+name]) > 0
}
