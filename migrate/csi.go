package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// groupCSI is the API group of the Secrets Store CSI driver.
const groupCSI = "secrets-store.csi.x-k8s.io"

// csiDriver is the name of the driver in volumes of pods.
const csiDriver = "secrets-store.csi.k8s.io"

// gkeDriver is that of the add-on of GKE.
const gkeDriver = "secrets-store-gke.csi.k8s.io"

var csi = &tool{name: "the Secrets Store CSI driver", internal: "SecretProviderClassPodStatus", groups: map[string]map[string]source{groupCSI: {
	"SecretProviderClass": {[]string{"v1", "v1alpha1"}, 2, secretProviderClass},
}}}

// A mount is a volume of pods that the driver fills.
type mount struct {
	// workload and volume are the names for a report.
	workload, volume string
	// account is the ServiceAccount of the pods.
	account string
	// secret is the Secret that the driver passes to the provider; empty if there is none.
	secret string
}

// takeWorkload remembers which volumes of a workload the driver fills.
func (in *inputs) takeWorkload(name Name, node *yaml.Node) {
	var pods *yaml.Node
	for _, path := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"spec"}} {
		if pods = child(node, path...); child(pods, "volumes") != nil {
			break
		}
	}
	volumes := child(pods, "volumes")
	for i := range length(volumes) {
		v := volumes.Content[i]
		class := text(v, "csi", "volumeAttributes", "secretProviderClass")
		if driver := text(v, "csi", "driver"); (driver != csiDriver && driver != gkeDriver) || class == "" {
			continue
		}
		account := text(pods, "serviceAccountName")
		if account == "" {
			account = "default"
		}
		place := in.namespace(name.Namespace) + "/" + class
		in.mounts[place] = append(in.mounts[place], mount{name.Kind + " " + name.Name, text(v, "name"), account, text(v, "csi", "nodePublishSecretRef", "name")})
	}
}

// A class is a SecretProviderClass while it is converted.
type class struct {
	*object

	stores []*csiStore
	files  []*csiFile
	// mounts are the volumes of the input that use it.
	mounts []mount
	// results are the documents that it becomes.
	results []*yaml.Node
}

// A csiStore is a store that a class becomes.
type csiStore struct {
	kind kind
	// place distinguishes stores of a Kind: a mount, or a project.
	place string
	spec  *yaml.Node
	name  string
}

// A csiFile is a file that the driver mounts.
type csiFile struct {
	name  string
	store *csiStore
	// ref is the remoteRef of its value.
	ref    *yaml.Node
	synced bool
}

// store returns the store of a Kind and a place.
func (c *class) store(k kind, place string) *csiStore {
	for _, s := range c.stores {
		if s.kind == k && s.place == place {
			return s
		}
	}
	s := &csiStore{kind: k, place: place}
	c.stores = append(c.stores, s)
	return s
}

// add adds a file, unless there is one of its name.
func (c *class) addFile(f *field, file *csiFile) {
	if c.file(file.name) != nil {
		f.unsupported("there are several files "+file.name, "correct it, and convert it again")
		return
	}
	c.files = append(c.files, file)
}

func (c *class) file(name string) *csiFile {
	for _, f := range c.files {
		if f.name == name {
			return f
		}
	}
	return nil
}

// A csiProvider converts the parameters of a provider.
type csiProvider struct {
	parameters rules
	// list is the parameter with the objects.
	list string
	// array says that the objects are texts in YAML, in a list with the name array.
	array bool
	// object converts one of them.
	object func(c *class, f *field)
	// login completes the stores.
	login func(c *class)
}

// secretProviderClass converts a SecretProviderClass to stores, and an ExternalSecret for each Secret.
func secretProviderClass(o *object) {
	c := &class{object: o, mounts: o.inputs.mounts[o.inputs.namespace(o.Namespace)+"/"+o.Name.Name]}
	var p csiProvider
	switch name := text(o.node, "spec", "provider"); name {
	case "aws":
		p = csiAWS
	case "gcp", "gke": // The latter is the add-on of GKE.
		p = csiGCP
	case "vault":
		p = csiVault
	case "azure":
		p = csiAzure
	default:
		o.add(Finding{Field: "spec.provider", Verdict: Unsupported, Reason: "direct-secrets has no module for this provider", Todo: "leave it with " + o.from.name})
		return
	}
	pend := func(f *field) { f.pend() }
	p.parameters.with(secretObjects, metadata(), rules{
		"spec.provider":             pend,
		"spec.parameters." + p.list: c.objects(p),
	}).walk(&field{object: o, node: o.node})
	if o.verdict() == Unsupported {
		return
	}
	if len(c.files) == 0 {
		o.refuse("spec.parameters."+p.list, "it reads nothing")
		return
	}
	p.login(c)
	if o.verdict() != Unsupported {
		c.finish()
	}
}

// objects reads a list of objects, which is YAML in a string.
func (c *class) objects(p csiProvider) rule {
	return func(f *field) {
		f.pend()
		root, err := readOne([]byte(f.node.Value))
		if err == nil && len(root.Content) > 0 {
			err = new(expansion).expand(root.Content[0], 0)
		}
		if f.node.Kind != yaml.ScalarNode || err != nil || len(root.Content) == 0 {
			f.invalid("a list in YAML")
			return
		}
		list := root.Content[0]
		if p.array {
			list = arrayOf(list)
		}
		if list == nil || list.Kind != yaml.SequenceNode {
			f.invalid(map[bool]string{false: "a list in YAML", true: "a list in YAML with the name array, and with a text in YAML for each object"}[p.array])
			return
		}
		for i, n := range list.Content {
			at := f.below(nil, n, index(i))
			if n.Kind != yaml.MappingNode {
				at.invalid("a mapping")
				continue
			}
			p.object(c, at)
		}
	}
}

// arrayOf returns the list array of a mapping, whose entries are texts in YAML, with what these hold; nil if it is no such mapping.
func arrayOf(n *yaml.Node) *yaml.Node {
	array := child(n, "array")
	if length(array) == 0 {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, entry := range array.Content {
		root, err := readOne([]byte(entry.Value))
		if err == nil && len(root.Content) > 0 {
			err = new(expansion).expand(root.Content[0], 0)
		}
		if entry.Kind != yaml.ScalarNode || err != nil || len(root.Content) == 0 {
			return nil
		}
		list.Content = append(list.Content, root.Content[0])
	}
	return list
}

// withParts adds texts to a mapping, each a key and its value, without those that are empty.
func withParts(n *yaml.Node, parts ...[2]string) *yaml.Node {
	for _, p := range parts {
		if p[1] != "" {
			n.Content = append(n.Content, plain(p[0]), plain(p[1]))
		}
	}
	return n
}

// fileMode reports the mode of a file.
func (f *field) fileMode(name string) {
	if n := child(f.node, name); n != nil {
		f.add(Finding{Field: f.String() + "." + name, Verdict: Changed, Reason: "the volume of a Secret sets the modes of its files", Todo: "set defaultMode or items[].mode of the volume"})
	}
}

// account returns the ServiceAccount that logs in: that of the pods that mount the class.
func (c *class) account() string {
	place := c.inputs.namespace(c.Namespace) + "/" + c.Name.Name
	name := c.inputs.Accounts[place]
	var all []string
	for _, m := range c.mounts {
		if !slices.Contains(all, m.account) {
			all = append(all, m.account)
		}
	}
	flag := "--service-account " + place + "=ACCOUNT"
	switch {
	case name != "":
	case len(all) == 0:
		c.add(Finding{Field: "spec.parameters", Verdict: Unsupported, Reason: "the ServiceAccount of the pods that mount it logs in, and no workload of the input mounts it", Todo: "add the manifests of the workloads, or name the ServiceAccount: " + flag})
		return ""
	case len(all) > 1:
		c.add(Finding{Field: "spec.parameters", Verdict: Unsupported, Reason: "pods of several ServiceAccounts mount it (" + strings.Join(all, ", ") + "), and a store logs in as one", Todo: "make a SecretProviderClass for each of them, or name one: " + flag})
		return ""
	default:
		name = all[0]
	}
	c.add(Finding{Field: "spec.parameters", Verdict: Changed, Reason: "the store logs in as the ServiceAccount " + name + " for every ExternalSecret of the namespace; the driver does so for pods of this ServiceAccount", Todo: "check who can create ExternalSecrets in the namespace"})
	return name
}

// publishSecret returns the Secret that the driver passes to the provider; "" if there is none. It reports volumes with different ones.
func (c *class) publishSecret() (secret string, same bool) {
	for i, m := range c.mounts {
		if i > 0 && m.secret != secret {
			c.add(Finding{Field: "spec.parameters", Verdict: Unsupported, Reason: "its volumes log in with different Secrets", Todo: "make a SecretProviderClass for each of them"})
			return "", false
		}
		secret = m.secret
	}
	return secret, true
}

// finish makes the results: the stores, and an ExternalSecret for each Secret.
func (c *class) finish() {
	metadata := child(c.out.root, "metadata")
	for _, s := range c.stores {
		names := []string{c.Name.Name}
		if several := func(other *csiStore) bool { return other != s && other.kind == s.kind }; slices.ContainsFunc(c.stores, several) {
			names = append(names, s.place)
		}
		namespace := c.inputs.namespace(c.Namespace)
		s.name = c.inputs.freeName(s.kind, namespace, strings.Join([]string{"csi", namespace, c.Name.Name, s.place}, "\x00"), names...)
		c.result(s.kind, s.name, metadata, s.spec)
		c.used.module(s.kind.module)
	}
	objects := child(c.node, "spec", "secretObjects")
	for i := range length(objects) {
		c.secret(fmt.Sprintf("spec.secretObjects[%d]", i), objects.Content[i], metadata)
	}
	c.mounted(metadata)
	last := len(c.results) - 1
	for _, root := range c.results[:last] {
		c.before = append(c.before, &tree{root: root})
	}
	c.results[0].HeadComment = strings.Join(c.keyComments(), "\n")
	c.out.root = c.results[last]
	c.add(Finding{Field: "spec", Verdict: Changed, Reason: "the Secrets exist and are refreshed every hour, whether pods need them or not; the driver makes them when a pod mounts the class, and refreshes them only if rotation is on", Todo: "set refreshInterval, if another interval is wanted"})
}

// keyComments returns the comments of keys of the class that no result has.
func (c *class) keyComments() []string {
	var all []string
	for key := range pairs(c.node) {
		if key.Value == "apiVersion" || key.Value == "kind" {
			all = append(all, nonEmpty(key.HeadComment)...)
		}
	}
	for key := range pairs(c.out.root) {
		all = append(all, nonEmpty(key.HeadComment)...)
	}
	return all
}

// result adds a document with the labels and annotations of the class.
func (c *class) result(k kind, name string, metadata, spec *yaml.Node) {
	n := c.metadataFor(name)
	for _, what := range []string{"labels", "annotations"} {
		if of := child(metadata, what); of != nil {
			n.Content = append(n.Content, plain(what), new(expansion).copied(of, 0))
		}
	}
	c.results = append(c.results, mapping("apiVersion", plain(k.apiVersion()), "kind", plain(k.name), "metadata", n, "spec", spec))
}
