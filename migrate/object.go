package migrate

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The API groups of External Secrets Operator.
const (
	groupESO        = "external-secrets.io"
	groupGenerators = "generators.external-secrets.io"
)

// A Name identifies an object of the input.
type Name struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// File and Line are where it is.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// object is one of a tool while it is converted.
type object struct {
	Name
	*document

	inputs *inputs
	// from is the tool.
	from *tool
	// own says that the object is converted, and not only looked up.
	own bool
	// before are results in front of out.
	before []*tree
	out    *tree
	// becomesKind is what a store or a generator becomes; nil if it becomes nothing.
	becomesKind *kind
	// connection and global are those of a VaultAuth; merged is the VaultAuth with what the global adds.
	connection, global *object
	merged             *yaml.Node
	// omitted says that the result holds no such object.
	omitted bool
	// neededBy are the objects that need it and stay with External Secrets Operator. keptBefore says that a former conversion kept it
	// for such objects, notKept that its text cannot be copied, and patched that a kustomization changes it.
	neededBy                     []*object
	keptBefore, notKept, patched bool
	// scopes are the namespaces that references of the object name; "" where one names none.
	scopes []string
	// used are the modules and permissions that the result needs.
	used     values
	findings []Finding
}

func (o *object) add(f Finding) { o.findings = append(o.findings, f) }

// verdict is the worst of the findings.
func (o *object) verdict() Verdict {
	all := Exact
	for _, f := range o.findings {
		all = worse(all, f.Verdict)
	}
	return all
}

// converted returns what the object became.
func (o *object) converted() (Converted, error) {
	c := Converted{Name: o.Name, Verdict: o.verdict(), MadeBy: o.madeByFanOut()}
	for _, f := range o.findings {
		if f.Verdict == Changed {
			c.Changes++
		}
	}
	if c.Verdict == Unsupported || o.omitted {
		return c, nil
	}
	var b bytes.Buffer
	err := encodeJSON(&b, o.out.root, "")
	c.JSON = b.Bytes()
	return c, err
}

// becomes sets API version and Kind of the result.
func (o *object) becomes(k kind) {
	for _, n := range []struct{ name, value string }{{"apiVersion", k.apiVersion()}, {"kind", k.name}} {
		for key, value := range pairs(o.node) {
			if key.Value == n.name {
				o.out.put([]string{n.name}, key, scalarNode(n.value, value))
			}
		}
	}
	o.used.module(k.module)
}

// roots are what takes the place of the object, in order.
func (o *object) roots() []*yaml.Node {
	if o.omitted {
		return nil
	}
	var all []*yaml.Node
	for _, t := range o.before {
		all = append(all, t.root)
	}
	return append(all, o.out.root)
}

// kinds are those of the roots.
func (o *object) kinds() []string {
	var all []string
	for _, n := range o.roots() {
		all = append(all, nonEmpty(text(n, "kind"))...)
	}
	return all
}

// claim leaves out the results that another object already has, and reports whether no other object has one of the same
// name. Objects of External Secrets Operator keep their names, so two of a name are not told apart.
func (o *object) claim() bool {
	if !o.own || o.isPart() {
		return true
	}
	var own []string
	for _, root := range o.roots() {
		place := o.place(root)
		shared := slices.ContainsFunc(o.before, func(t *tree) bool { return t.root == root && t.shared != "" })
		if (o.inputs.written[place] || len(o.inputs.existing[place]) > 0) && !shared && groupOf(o.APIVersion) != groupESO && groupOf(o.APIVersion) != groupGenerators {
			o.add(Finding{Verdict: Unsupported, Reason: "another object of the input becomes the " + text(root, "kind") + " " + text(root, "metadata", "name") + ", too", Todo: "rename one of them, and convert it again"})
			return false
		}
		own = append(own, place)
	}
	for _, place := range own {
		o.inputs.written[place] = true
	}
	o.before = slices.DeleteFunc(o.before, func(t *tree) bool {
		there := t.shared != "" && (o.inputs.written[t.shared] || len(o.inputs.existing[o.place(t.root)]) > 0)
		o.inputs.written[t.shared] = true
		return there
	})
	return true
}

// place is that of a result, as KIND/NAMESPACE/NAME.
func (o *object) place(root *yaml.Node) string {
	return text(root, "kind") + "/" + o.inputs.namespace(o.Namespace) + "/" + text(root, "metadata", "name")
}

// A kind is one of direct-secrets.
type kind struct {
	// group is without the suffix that all groups share; empty for the Kinds of common.
	group, name string
	// module is the chart's value that switches it on; empty for the Kinds of common.
	module string
}

func (k kind) apiVersion() string {
	return strings.TrimPrefix(k.group+".direct-secrets.io/v1alpha1", ".")
}

// cluster returns the cluster twin.
func (k kind) cluster() kind {
	k.name = "Cluster" + k.name
	return k
}

// The Kinds of stores and generators.
var (
	awsSecretsManager = kind{"aws", "AWSSecretsManager", "provider-aws"}
	awsParameterStore = kind{"aws", "AWSParameterStore", "provider-aws"}
	vaultKV           = kind{"vault", "VaultKV", "provider-vault"}
	gcpSecretManager  = kind{"gcp", "GCPSecretManager", "provider-gcp"}
	kubernetesSecrets = kind{"kubernetes", "KubernetesSecrets", "provider-kubernetes"}
	onePassword       = kind{"onepassword", "OnePasswordConnect", "provider-onepassword"}
	azureKeyVault     = kind{"azure", "AzureKeyVault", "provider-azure"}
	password          = kind{"generator", "Password", "generator-password"}
	sshKey            = kind{"keys", "SSHKey", "generator-keys"}
	uuid              = kind{"keys", "UUID", "generator-keys"}
	ecrToken          = kind{"aws", "ECRAuthorizationToken", "provider-aws"}
	stsToken          = kind{"aws", "STSSessionToken", "provider-aws"}
	acrToken          = kind{"azure", "ACRAccessToken", "provider-azure"}
	gcpToken          = kind{"gcp", "GCPAccessToken", "provider-gcp"}
	vaultDynamic      = kind{"vault", "VaultDynamicSecret", "provider-vault"}
)

// inputs are the objects that others refer to.
type inputs struct {
	Options

	objects []*object
	// unreadable are the documents that can have objects of tools, and cannot be read.
	unreadable []*document
	// mounts are the volumes of workloads that use a SecretProviderClass, by its NAMESPACE/NAME.
	mounts map[string][]mount
	// workloads are those that a tool can restart, and restarters the ExternalSecrets of direct-secrets that are converted, too.
	workloads  []*workload
	restarters []*document
	// restarted reports on those of the restarters that change.
	restarted []ObjectReport
	// makes says that an ExternalSecret of the input makes a Secret.
	makes bool
	// names are the keys of the results that have names of their own, by KIND/NAMESPACE/NAME.
	names map[string]string
	// written are the results that an object has, as KIND/NAMESPACE/NAME, and those that several objects share.
	written map[string]bool
	// existing are the objects of direct-secrets in the input, as KIND/NAMESPACE/NAME.
	existing map[string][]*document
	// accounts are the ServiceAccounts by NAMESPACE/NAME.
	accounts map[string][]account
	// roles are those in values of charts. Their names are those of ServiceAccounts, if the values have them.
	roles []account
	// patchedRoles are the kustomizations that change the role of a ServiceAccount, by its name.
	patchedRoles map[string]string
	// used are the modules and permissions that the results need.
	used values
}

// named returns the object of a Kind and a name; nil if there is none. A namespace that a manifest leaves out is that
// of the command line.
func (in *inputs) named(group, kind, namespace, name string) *object {
	if all := in.allNamed(group, kind, namespace, name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// allNamed returns all objects of a name: those of several overlays can be in one tree.
func (in *inputs) allNamed(group, kind, namespace, name string) (all []*object) {
	for _, o := range in.objects {
		if groupOf(o.APIVersion) == group && o.Kind == kind && o.Name.Name == name && (namespace == "" || in.namespace(o.Namespace) == in.namespace(namespace)) {
			all = append(all, o)
		}
	}
	return all
}

func (in *inputs) namespace(n string) string {
	if n == "" {
		return in.Namespace
	}
	return n
}

// metadata are the rules for what all objects have.
func metadata() rules {
	return rules{
		"apiVersion": func(*field) {}, "kind": func(*field) {}, // The Kind sets them.
		"metadata.name":                       scalar("metadata.name"),
		"metadata.namespace":                  scalar("metadata.namespace"),
		"metadata.labels":                     stringMap("metadata.labels"),
		"metadata.annotations":                annotations,
		"metadata.generateName":               never("an object without a name cannot be referred to", "name it"),
		"metadata.finalizers":                 drop("set by the operator"),
		"metadata.ownerReferences":            drop("set by the operator"),
		"metadata.creationTimestamp":          drop("set by the API server"),
		"metadata.deletionTimestamp":          drop("set by the API server"),
		"metadata.deletionGracePeriodSeconds": drop("set by the API server"),
		"metadata.generation":                 drop("set by the API server"),
		"metadata.managedFields":              drop("set by the API server"),
		"metadata.resourceVersion":            drop("set by the API server"),
		"metadata.selfLink":                   drop("set by the API server"),
		"metadata.uid":                        drop("set by the API server"),
		"status":                              drop("set by the operator"),
	}
}

// forceSync is the annotation that users of External Secrets Operator change for a refresh.
const forceSync = "force-sync"

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// dropped reports whether an annotation is about the original alone.
func dropped(key string) bool {
	return key == lastApplied || key == forceSync || strings.HasSuffix(key, "external-secrets.io/"+forceSync)
}

// annotations keeps those that are not about the application of the original.
func annotations(f *field) {
	if f.byAction("metadata.annotations") {
		return
	}
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	for key, value := range pairs(f.node) {
		at := f.below(key, value, key.Value)
		switch {
		case key.Value == lastApplied:
			at.dropped("set by kubectl")
		case dropped(key.Value):
			at.dropped("a refresh was requested of External Secrets Operator")
		case !isText(value):
			at.invalid("text")
		default:
			at.out.put(slices.Concat([]string{"metadata", "annotations"}, []string{key.Value}), key, value)
			at.add(Finding{Field: at.String(), To: at.String(), Verdict: Exact})
		}
	}
}

// stringMap moves a mapping of text.
func stringMap(to string) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		if f.node.Kind != yaml.MappingNode {
			f.invalid("a mapping")
			return
		}
		for key, value := range pairs(f.node) {
			if !isText(value) {
				f.below(nil, value, key.Value).invalid("text")
				return
			}
		}
		f.exact(to)
	}
}

// isText reports whether a node is text for kubectl, which takes some words for booleans unless they are quoted.
func isText(n *yaml.Node) bool {
	words := []string{"y", "n", "yes", "no", "on", "off"}
	return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && (n.Style != 0 || !slices.Contains(words, strings.ToLower(n.Value)))
}
