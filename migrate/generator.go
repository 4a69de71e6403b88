package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// generators are the rules for the spec of each Kind of generators.
var generators = map[string]rules{
	"Password": {
		"spec.length":           scalar("spec.length"),
		"spec.digits":           scalar("spec.digits"),
		"spec.symbols":          scalar("spec.symbols"),
		"spec.symbolCharacters": scalar("spec.symbolCharacters"),
		"spec.noUpper":          scalar("spec.noUpper"),
		"spec.allowRepeat":      scalar("spec.allowRepeat"),
		"spec.secretKeys":       whole("spec.secretKeys", yaml.SequenceNode),
		"spec.encoding":         oneOf("spec.encoding", "raw", "base64", "base64url", "base32", "hex"),
	},
	"SSHKey": {
		"spec.keyType": keyType,
		"spec.keySize": keySize,
		"spec.comment": scalar("spec.comment"),
	},
	"UUID": {"spec": noSettings},
	"ECRAuthorizationToken": rules{
		"spec.region": scalar("spec.region"),
		"spec.role":   scalar("spec.role"),
		"spec.scope":  oneOf("spec.scope", "private", "public"),
	}.with(awsAuth("spec.auth", "spec.auth", "secretRef")),
	"STSSessionToken": rules{
		"spec.region": scalar("spec.region"),
		"spec.role": func(f *field) {
			f.changed("spec.role", "access keys of the role are made; External Secrets Operator asks for a session token of the role, which AWS refuses", "check that the access keys of the role are wanted")
		},
		"spec.requestParameters.sessionDuration": scalar("spec.requestParameters.sessionDuration"),
		"spec.requestParameters.serialNumber":    scalar("spec.requestParameters.serialNumber"),
		"spec.requestParameters.tokenCode":       scalar("spec.requestParameters.tokenCode"),
	}.with(awsAuth("spec.auth", "spec.auth", "secretRef"), rules{
		"spec.auth.jwt.serviceAccountRef": never("External Secrets Operator makes no session tokens for a ServiceAccount", "remove it, or write the generator by hand, with a role"),
	}),
	"ACRAccessToken": acrTokens,
	"GCRAccessToken": rules{
		"spec.projectID": drop("a token is for all projects of its account"),
	}.with(gcpAuth("spec.auth")),
	"VaultDynamicSecret": rules{
		"spec.controller":                  controller,
		"spec.method":                      method,
		"spec.parameters":                  parameters,
		"spec.getParameters":               getParameters,
		"spec.resultType":                  oneOf("spec.resultType", "Data", "Auth", "Raw"),
		"spec.path":                        scalar("spec.path"),
		"spec.retrySettings.maxRetries":    maxRetries,
		"spec.retrySettings.retryInterval": scalar("spec.retrySettings.retryInterval"),
		"spec.provider.path":               drop("the generator has a path of its own"),
		"spec.provider.version":            drop("it is of stores"),
		"spec.allowEmptyResponse": func(f *field) {
			if f.node.Value == "true" {
				f.unsupported("an empty answer is an error", "leave this generator with External Secrets Operator")
				return
			}
			f.dropped("it is the default")
		},
	}.with(vaultServer("spec.provider")),
}

// method moves the method of a request to Vault. There each one that has no meaning of its own writes.
func method(f *field) {
	switch m := f.node.Value; m {
	case "":
		f.dropped("GET is the default")
	case "LIST", "DELETE":
		f.unsupported("the method "+m+" makes no credentials", "leave this generator with External Secrets Operator")
	case "GET", "POST", "PUT":
		f.exact("spec.method")
	default:
		f.node = scalarNode("POST", f.node)
		f.move("spec.method", Finding{Verdict: Exact, Reason: "External Secrets Operator writes with any other method"})
	}
}

// parameters moves the body of a request to Vault. There a GET has none.
func parameters(f *field) {
	m := f.sibling(1, "method")
	switch {
	case f.node.Kind != yaml.MappingNode:
		f.invalid("a mapping")
	case m == nil || m.Value == "" || m.Value == "GET":
		f.dropped("External Secrets Operator does not send them with GET")
	default:
		f.exact("spec.parameters")
	}
}

// getParameters refuses the query of a GET.
func getParameters(f *field) {
	m := f.sibling(1, "method")
	if m != nil && m.Value != "" && m.Value != "GET" {
		f.dropped("External Secrets Operator sends them only with GET")
		return
	}
	f.unsupported("a request has no query", "use a method with parameters, or leave this generator with External Secrets Operator")
}

// specs has the field of a ClusterGenerator for each Kind.
var specs = map[string]string{
	"Password": "passwordSpec", "SSHKey": "sshKeySpec", "UUID": "uuidSpec", "ECRAuthorizationToken": "ecrAuthorizationTokenSpec", "STSSessionToken": "stsSessionTokenSpec",
	"ACRAccessToken": "acrAccessTokenSpec", "GCRAccessToken": "gcrAccessTokenSpec", "VaultDynamicSecret": "vaultDynamicSecretSpec",
}

// clusterGenerators are the rules for the spec of a ClusterGenerator.
func clusterGenerators() rules {
	all := rules{"spec.kind": drop("the Kind says so")}
	for of, name := range specs {
		all["spec.generator."+name] = nest(generators[of], true)
	}
	return all
}

// generator converts a generator.
func generator(o *object) {
	o.generate(o.Kind, []string{"spec"}, generators[o.Kind])
}

// clusterGenerator converts a ClusterGenerator: what it holds becomes the spec of the twin.
func clusterGenerator(o *object) {
	of := text(o.node, "spec", "kind")
	name, known := specs[of]
	inner := child(o.node, "spec", "generator")
	switch {
	case !known:
		o.add(Finding{Field: "spec.kind", Verdict: Unsupported, Reason: "direct-secrets has no generator " + of, Todo: "leave this generator with External Secrets Operator"})
	case child(inner, name) == nil || len(inner.Content) > 2:
		o.refuse("spec.generator", "it must have "+name+", and nothing else")
	default:
		o.generate(of, []string{"spec", "generator", name}, clusterGenerators())
	}
}

// generate converts a generator; at is where the spec of its Kind is.
func (o *object) generate(of string, at []string, r rules) {
	k := generatorKinds[of]
	if o.Kind == "ClusterGenerator" {
		k = k.cluster()
	}
	o.becomesKind = &k
	o.becomes(k)
	r.with(metadata()).walk(&field{object: o, node: o.node})
	login := slices.Concat(at, []string{"auth"})
	switch of {
	case "SSHKey":
		o.keyDefaults()
		fallthrough
	case "Password", "UUID":
		o.rotation()
		return
	case "ECRAuthorizationToken":
		o.awsRoles(at)
	case "ACRAccessToken":
		o.finishRegistry(at)
	case "VaultDynamicSecret":
		login = slices.Concat(at, []string{"provider", "auth"})
	}
	o.scope()
	o.withAuth(child(o.node, login...))
	if text(o.node, slices.Concat(at, []string{"requestParameters", "tokenCode"})...) != "" {
		o.add(Finding{Field: strings.Join(at, ".") + ".requestParameters.tokenCode", Verdict: Changed, Reason: "a code works once, so values are not replaced; External Secrets Operator fails at its second refresh", Todo: "write a new code for new values"})
		return
	}
	o.rotation()
}

// rotation makes explicit how often values are replaced: External Secrets Operator makes new ones with each refresh of
// an ExternalSecret or a PushSecret.
func (o *object) rotation() {
	if o.verdict() == Unsupported {
		return
	}
	var intervals []string
	for _, user := range o.inputs.objects {
		if interval, uses := user.usesGenerator(o); uses && !slices.Contains(intervals, interval) {
			intervals = append(intervals, interval)
		}
	}
	switch {
	case len(intervals) == 0:
		o.add(Finding{Verdict: Changed, Reason: "no object of the input uses it, and values are replaced only as rotationInterval says", Todo: "set rotationInterval if values should be replaced"})
	case len(intervals) > 1:
		o.add(Finding{Verdict: Changed, Reason: "its users have different refresh intervals (" + strings.Join(intervals, ", ") + "), and a generator has one rotationInterval", Todo: "make a generator for each interval, or set one"})
	case intervals[0] != never0:
		o.out.set(intervals[0], "spec", "rotationInterval")
		o.add(Finding{To: "spec.rotationInterval", Verdict: Exact, Reason: "External Secrets Operator makes new values with each refresh of its users"})
	}
}

// never0 is the interval of a user that refreshes once.
const never0 = "0"

// usesGenerator returns how often an object has a generator make new values, if it does.
func (o *object) usesGenerator(g *object) (interval string, uses bool) {
	spec := child(o.node, "spec")
	for _, of := range []string{"externalSecretSpec", "pushSecretSpec"} {
		if inner := child(spec, of); inner != nil {
			spec = inner
		}
	}
	refs := []*yaml.Node{child(spec, "selector", "generatorRef")}
	if from := child(spec, "dataFrom"); from != nil {
		for _, n := range from.Content {
			refs = append(refs, child(n, "sourceRef", "generatorRef"))
		}
	}
	for _, r := range refs {
		if text(r, "kind") != g.Kind || text(r, "name") != g.Name.Name {
			continue
		}
		if g.Kind != "ClusterGenerator" && !isFanOut(o.Kind) && o.inputs.namespace(o.Namespace) != o.inputs.namespace(g.Namespace) {
			continue
		}
		policy := text(spec, "refreshPolicy")
		if policy == "CreatedOnce" || policy == "OnChange" {
			return never0, true
		}
		n := child(spec, "refreshInterval")
		if n == nil {
			return "1h", true
		}
		d, err := readDuration(n)
		if err != nil || d == 0 {
			return never0, true
		}
		return max(d, minInterval).String(), true
	}
	return "", false
}
