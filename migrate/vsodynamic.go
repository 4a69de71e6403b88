package migrate

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// dynamicSecrets are the rules for the spec of a VaultDynamicSecret of Vault Secrets Operator. Its generator has what other
// fields say.
var dynamicSecrets = rules{
	"spec.vaultAuthRef":      usedBy("spec.dataFrom[0].sourceRef.generatorRef"),
	"spec.namespace":         usedBy("spec.namespace"),
	"spec.mount":             usedBy("spec.path"),
	"spec.path":              usedBy("spec.path"),
	"spec.params":            dynamicParams,
	"spec.requestHTTPMethod": dynamicMethod,
	"spec.renewalPercent": func(f *field) {
		if f.node.Value == "67" {
			f.dropped("it is the default, and leases are renewed after two thirds of their time")
			return
		}
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "leases are renewed after two thirds of their time", Todo: "check that leases are long enough for it"})
	},
	"spec.revoke":           dynamicRevoke,
	"spec.allowStaticCreds": staticCreds,
	"spec.refreshAfter":     dynamicRefresh,
	"spec.syncConfig.instantUpdates": func(f *field) {
		if f.node.Value == "true" {
			f.pend()
			f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "events of Vault are not received", Todo: "set rotationInterval of the generator, if Vault changes the values by itself"})
			return
		}
		f.dropped("it is the default")
	},
}

// vaultDynamicSecret converts a VaultDynamicSecret to a generator and an ExternalSecret of its values.
func vaultDynamicSecret(o *object) {
	o.becomes(kind{name: "ExternalSecret"})
	dynamicSecrets.with(destinations, metadata()).walk(&field{object: o, node: o.node})
	o.finishDestination()
	mount, path := strings.Trim(text(o.node, "spec", "mount"), "/"), strings.Trim(text(o.node, "spec", "path"), "/")
	switch {
	case mount == "":
		o.refuse("spec.mount", "it is missing")
	case path == "":
		o.refuse("spec.path", "it is missing")
	default:
		o.dynamicGenerator(mount + "/" + path)
	}
	if child(o.node, "spec", "revoke") == nil {
		o.add(Finding{Field: "spec.revoke", Verdict: Changed, Reason: "credentials are revoked when the object is deleted; without revoke, Vault Secrets Operator leaves them until their lease expires", Todo: "allow sys/leases/revoke in the policy"})
	}
	o.add(Finding{Field: "spec", Verdict: Changed, Reason: "the operator creates credentials of its own, and revokes those that it has replaced after five minutes", Todo: "allow sys/leases/revoke and auth/token/renew-accessor in the policy, and set revocationDelay, if workloads need longer to read new values"})
	ordered(child(o.out.root, "spec"), "refreshInterval", "target", "dataFrom")
}

// dynamicGenerator adds the generator of a path, and the reference to it.
func (o *object) dynamicGenerator(path string) {
	auth, spec := o.vaultFor()
	if auth == nil {
		return
	}
	spec.Content = append(spec.Content, plain("path"), plain(path))
	params := child(o.node, "spec", "params")
	switch method := text(o.node, "spec", "requestHTTPMethod"); {
	case params != nil && len(params.Content) > 0:
		spec.Content = append(spec.Content, plain("method"), plain("PUT"), plain("parameters"), new(expansion).copied(params, 0))
	case method != "" && method != "GET":
		spec.Content = append(spec.Content, plain("method"), plain(method))
	}
	if d := child(o.out.root, "spec", "refreshInterval"); d != nil {
		spec.Content = append(spec.Content, plain("rotationInterval"), plain(d.Value))
		o.out.remove("spec", "refreshInterval")
	}
	ordered(spec, "server", "namespace", "path", "method", "parameters", "rotationInterval", "auth", "caProvider", "headers")
	namespace := o.inputs.namespace(o.Namespace)
	name := o.inputs.freeName(vaultDynamic, namespace, strings.Join([]string{"generator", namespace, o.Name.Name}, "\x00"), o.Name.Name)
	t := o.newResult(vaultDynamic, o.metadataFor(name), spec, "")
	t.root.HeadComment = strings.Join(auth.comments(), "\n")
	o.out.put([]string{"spec", "dataFrom", index(0), "sourceRef", "generatorRef"}, nil, mapping("kind", plain(vaultDynamic.name), "name", plain(name)))
}

// dynamicParams checks the parameters of a request, which dynamicGenerator writes.
func dynamicParams(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	f.pend()
	for key, value := range pairs(f.node) {
		if !isText(value) {
			f.below(nil, value, key.Value).invalid("text")
			return
		}
	}
	f.add(Finding{Field: f.String(), To: "spec.parameters", Verdict: Exact, Reason: "with params, Vault Secrets Operator sends PUT"})
}

func dynamicMethod(f *field) {
	params := child(f.object.node, "spec", "params")
	switch f.node.Value {
	case "GET", "POST", "PUT":
		if params != nil && len(params.Content) > 0 {
			f.dropped("Vault Secrets Operator ignores it if there are params")
			return
		}
		usedBy("spec.method")(f)
	default:
		f.invalid("one of GET, POST, PUT")
	}
}

func dynamicRevoke(f *field) {
	switch f.node.Value {
	case "true":
		f.dropped("credentials are revoked when the object and its Secret are deleted")
	case "false":
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "credentials are revoked when the object and its Secret are deleted", Todo: "check that no workload uses them longer"})
	default:
		f.invalid("true or false")
	}
}

// staticCreds refuses credentials that Vault rotates by itself: they have no lease, so a generator would not notice it.
func staticCreds(f *field) {
	switch f.node.Value {
	case "true":
		f.unsupported("Vault rotates such credentials by itself, and a generator does not notice it", "write a VaultDynamicSecret by hand, with a rotationInterval that is shorter than the period of Vault")
	case "false":
		f.dropped("it is the default")
	default:
		f.invalid("true or false")
	}
}

// dynamicRefresh moves how often credentials without a lease are replaced: dynamicGenerator moves it on to the generator.
func dynamicRefresh(f *field) {
	if d, err := readDuration(f.node); err == nil && d == 0 {
		f.dropped("0 is as if it were not set")
		return
	}
	interval("spec.refreshInterval")(f)
	f.add(Finding{Field: f.String(), To: "spec.rotationInterval", Verdict: Changed, Reason: "credentials with a lease are replaced after this time, too; Vault Secrets Operator counts it for those without a lease only", Todo: "remove rotationInterval of the generator, if the credentials have a lease"})
}
