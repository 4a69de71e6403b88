package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// storeRules are those for what every store has.
func storeRules() rules {
	return rules{
		"spec.controller":                      controller,
		"spec.retrySettings.maxRetries":        maxRetries,
		"spec.retrySettings.retryInterval":     scalar("spec.retrySettings.retryInterval"),
		"spec.refreshInterval":                 storeInterval,
		"spec.conditions":                      conditionList,
		"spec.conditions[]":                    condition,
		"spec.conditions[].namespaceSelector":  whole("spec.conditions[].namespaceSelector", yaml.MappingNode),
		"spec.conditions[].namespaces":         distinct("spec.conditions[].namespaces"),
		"spec.conditions[].namespaceRegexes[]": anywhere("spec.conditions[].namespaceRegexes[]"),
	}
}

// controller moves the class of the operator.
func controller(f *field) {
	switch f.node.Value {
	case "", "default":
		f.dropped("it is the class that External Secrets Operator has by default")
	default:
		f.changed("spec.controller", "only a module with the flag --controller-class="+f.node.Value+" serves the object", "install the modules with that class, or remove controller")
	}
}

// mostRetries is the bound of the schema.
const mostRetries = 100

func maxRetries(f *field) {
	const to = "spec.retrySettings.maxRetries"
	if n, err := strconv.Atoi(f.node.Value); err == nil && n > mostRetries {
		f.node = quantity(mostRetries)
		f.changed(to, fmt.Sprintf("%d is above the bound of %d", n, mostRetries), fmt.Sprintf("check that %d is enough", mostRetries))
		return
	}
	f.exact(to)
}

// storeInterval moves the interval of the validations of a store, which is a number of seconds.
func storeInterval(f *field) {
	seconds, err := strconv.ParseInt(f.node.Value, 10, 32)
	switch {
	case err != nil || seconds < 0 || f.node.Kind != yaml.ScalarNode:
		f.invalid("a number of seconds")
	case seconds == 0:
		f.dropped("0 is the default")
	default:
		f.node = scalarNode(fmt.Sprintf("%ds", seconds), f.node)
		f.exact("spec.validationInterval")
	}
}

// conditionList walks the conditions. External Secrets Operator looks at those of cluster stores only.
func conditionList(f *field) {
	switch {
	case f.node.Kind != yaml.SequenceNode:
		f.invalid("a list")
	case f.Kind == "SecretStore":
		f.dropped("External Secrets Operator looks at the conditions of cluster stores only")
	default:
		f.pend()
		for i, n := range f.node.Content {
			storeRules().walk(f.below(nil, n, index(i)))
		}
		if len(f.node.Content) > 0 && child(f.out.root, "spec", "conditions") == nil && f.verdict() != Unsupported {
			f.unsupported("no entry admits a namespace, so no namespace can use the store", "remove the store")
		}
	}
}

// condition walks an entry. One without criteria admits no namespace there, and every namespace here.
func condition(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	criteria := child(f.node, "namespaceSelector") != nil
	for _, list := range []string{"namespaces", "namespaceRegexes"} {
		n := child(f.node, list)
		criteria = criteria || (n != nil && (n.Kind != yaml.SequenceNode || len(n.Content) > 0))
	}
	if !criteria {
		f.dropped("the entry admits no namespace")
		return
	}
	f.pend()
	for key, value := range pairs(f.node) {
		if value.Kind == yaml.SequenceNode && len(value.Content) == 0 {
			f.below(key, value, key.Value).dropped("it is empty")
			continue
		}
		storeRules().walk(f.below(key, value, key.Value))
	}
}

// anywhere moves a regular expression that matches any part of a name; here expressions match the whole.
func anywhere(to string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.ScalarNode {
			f.invalid("a single value")
			return
		}
		f.node = scalarNode(wholeName(f.node.Value), f.node)
		f.exact(to)
	}
}

// wholeName returns an expression that matches the whole of each name that this one matches a part of.
func wholeName(expression string) string {
	before, after := ".*", ".*"
	inner := expression
	if !strings.ContainsAny(expression, `|\`) {
		if rest, anchored := strings.CutPrefix(inner, "^"); anchored {
			before, inner = "", rest
		}
		if rest, anchored := strings.CutSuffix(inner, "$"); anchored {
			after, inner = "", rest
		}
		return before + inner + after
	}
	return before + "(?:" + inner + ")" + after
}

// A provider is one whose stores are converted.
type provider struct {
	rules rules
	// finish makes explicit what the rules alone cannot.
	finish func(o *object, at []string)
}

// store converts a SecretStore or a ClusterSecretStore.
func store(o *object) {
	all := child(o.node, "spec", "provider")
	var names []string
	for key, value := range pairs(all) {
		if !isNull(value) {
			names = append(names, key.Value)
		}
	}
	if len(names) != 1 {
		o.add(Finding{Field: "spec.provider", Verdict: Unsupported, Reason: "the store must have exactly one provider", Todo: "correct it, and convert it again"})
		return
	}
	k, p, ok := o.provider(names[0])
	if !ok {
		return
	}
	if o.Kind == "ClusterSecretStore" {
		k = k.cluster()
	}
	o.becomesKind = &k
	o.becomes(k)
	p.rules.with(storeRules(), metadata()).walk(&field{object: o, node: o.node})
	at := []string{"spec", "provider", names[0]}
	p.finish(o, at)
	o.scope()
	o.withAuth(child(o.node, append(at, "auth")...))
}

// provider returns what a store becomes, and how.
func (o *object) provider(name string) (kind, provider, bool) {
	switch name {
	case "aws":
		p := provider{awsStore, func(o *object, at []string) { o.awsRoles(at) }}
		switch text(o.node, "spec", "provider", "aws", "service") {
		case "SecretsManager":
			return awsSecretsManager, p, true
		case "ParameterStore":
			return awsParameterStore, p, true
		}
		o.add(Finding{Field: "spec.provider.aws.service", Verdict: Unsupported, Reason: "the value is not one of SecretsManager, ParameterStore", Todo: "correct it, and convert it again"})
	case "vault":
		return vaultKV, provider{vaultStore, finishVaultStore}, true
	case "openBao":
		return vaultKV, provider{openBaoStore, finishVaultStore}, true
	case "gcpsm":
		return gcpSecretManager, provider{gcpStore, func(*object, []string) {}}, true
	case "kubernetes":
		return kubernetesSecrets, provider{kubernetesStore, finishKubernetesStore}, true
	case "onepassword":
		return onePassword, provider{onePasswordStore, finishOnePasswordStore}, true
	case "azurekv":
		return azureKeyVault, provider{azureStore, finishAzureStore}, true
	case "onepasswordSDK":
		o.add(Finding{Field: "spec.provider.onepasswordSDK", Verdict: Unsupported, Reason: "1Password is read through a Connect server, and not with a service account", Todo: "leave the store, and what refers to it, with External Secrets Operator, or install Connect and make a OnePasswordConnect"})
	default:
		o.add(Finding{Field: "spec.provider." + name, Verdict: Unsupported, Reason: "direct-secrets has no module for this provider", Todo: "leave the store, and what refers to it, with External Secrets Operator"})
	}
	return kind{}, provider{}, false
}

// withAuth reports a login that is not complete, and counts on the operator's own credentials where a store has none.
func (o *object) withAuth(auth *yaml.Node) {
	switch {
	case child(o.out.root, "spec", "auth") != nil || child(o.out.root, "spec", "authRef") != nil || o.verdict() == Unsupported:
	case auth != nil && len(auth.Content) > 0:
		o.add(Finding{Field: "spec", Verdict: Unsupported, Reason: "the login is not complete", Todo: "complete auth, and convert it again"})
	case o.becomesKind.module == vaultKV.module:
		o.add(Finding{Field: "spec", Verdict: Unsupported, Reason: "there is no login, and Vault knows no credentials of the operator", Todo: "give it a login of its own, and convert it again"})
	case o.becomesKind.module == kubernetesSecrets.module:
		o.add(Finding{Field: "spec", Verdict: Unsupported, Reason: "there is no login, and the operator's own credentials are never used for Kubernetes", Todo: "give it a login of its own, and convert it again"})
	case o.becomesKind.module == onePassword.module:
		o.add(Finding{Field: "spec", Verdict: Unsupported, Reason: "there is no login, and 1Password knows no credentials of the operator", Todo: "name the Secret with the token, and convert it again"})
	case strings.HasPrefix(o.Kind, "Cluster"):
		o.add(Finding{Verdict: Changed, Reason: "there is no login, so the operator's own credentials are used", Todo: "give the ServiceAccount of the operator what that of External Secrets Operator has"})
	default:
		o.used.ambient(o.becomesKind)
		o.add(Finding{Verdict: Changed, Reason: "there is no login; the operator's own credentials are for cluster Kinds only, unless ambientCredentials is all", Todo: "give it a login of its own; the values that are written allow the operator's for now"})
	}
}

// scope makes explicit where a cluster Kind looks up its credentials.
func (o *object) scope() {
	if !strings.HasPrefix(o.Kind, "Cluster") || len(o.scopes) == 0 {
		return
	}
	named := slices.ContainsFunc(o.scopes, func(n string) bool { return n != "" })
	switch {
	case named && slices.Contains(o.scopes, ""):
		o.add(Finding{Field: "spec", Verdict: Unsupported, Reason: "some references name a namespace and others do not", Todo: "name the namespace in all of them, or in none"})
	case !named:
		o.out.set("ManifestNamespace", "spec", "authenticationScope")
		o.add(Finding{To: "spec.authenticationScope", Verdict: Exact, Reason: "External Secrets Operator looks up the references in the namespace of each object that uses it"})
	}
}
