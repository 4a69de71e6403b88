package migrate

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"

	azure "github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// acrTokens are the rules for a token of Azure Container Registry.
var acrTokens = rules{
	"spec.tenantId":                        unlessEmpty("spec.tenantID"),
	"spec.registry":                        loginServer,
	"spec.scope":                           unlessEmpty("spec.scope"),
	"spec.environmentType":                 registryEnvironment,
	"spec.auth.managedIdentity.identityId": unlessEmpty("spec.auth.managedIdentity.clientID"),
	"spec.auth.servicePrincipal.secretRef.clientId":     secretKey("spec.auth.clientSecret.clientIDRef", ""),
	"spec.auth.servicePrincipal.secretRef.clientSecret": secretKey("spec.auth.clientSecret.clientSecretRef", ""),
	"spec.auth.workloadIdentity.serviceAccountRef":      serviceAccount("spec.auth.serviceAccountRef", azure.FederatedAudience),
}

// registryEnvironment moves the name of a cloud.
func registryEnvironment(f *field) {
	switch {
	case f.isNoCloud("registry"):
	case f.node.Value == azureStack:
		f.unsupported("the addresses of the cloud are not in the generator", "write an ACRAccessToken with customCloudConfig")
	default:
		f.exact("spec.environment")
	}
}

// loginServer moves the address of a registry. It must be in the domain of the cloud, because tokens are sent only there.
func loginServer(f *field) {
	const to = "spec.registry"
	domain := azure.RegistryDomains[azure.Environment(cmp.Or(sibling(f, "environmentType"), string(azure.PublicCloud)))]
	switch {
	case f.byAction(to):
	case f.node.Kind != yaml.ScalarNode:
		f.invalid("a single value")
	case domain != "" && !strings.HasSuffix(strings.ToLower(f.node.Value), "."+domain):
		f.unsupported("tokens are sent only to login servers of the cloud, which end with "+domain, "write the address as NAME."+domain+", or set environmentType")
	default:
		f.exact(to)
	}
}

// sibling returns the text of a field next to f; empty if there is none.
func sibling(f *field, name string) string {
	if n := f.sibling(1, name); n != nil {
		return n.Value
	}
	return ""
}

// finishRegistry completes the login of a token of Azure Container Registry. at is where the spec is.
func (o *object) finishRegistry(at []string) {
	field := func(name string) string { return strings.Join(at, ".") + "." + name }
	spec := child(o.node, at...)
	auth := child(spec, "auth")
	application, machine, account := child(auth, "servicePrincipal"), child(auth, "managedIdentity"), child(auth, "workloadIdentity")
	set := 0
	for _, n := range []*yaml.Node{application, machine, account} {
		if n != nil && !isNull(n) {
			set++
		}
	}
	switch {
	case text(spec, "registry") == "":
		o.refuse(field("registry"), "it is missing")
	case set != 1:
		o.refuse(field("auth"), "External Secrets Operator requires one of servicePrincipal, managedIdentity and workloadIdentity")
	case application != nil && (child(application, "secretRef", "clientId") == nil || child(application, "secretRef", "clientSecret") == nil):
		o.refuse(field("auth.servicePrincipal.secretRef"), "it must have clientId and clientSecret")
	case application != nil && text(spec, "tenantId") == "":
		o.refuse(field("tenantId"), "it is missing, and servicePrincipal requires it")
	case machine != nil:
		o.completeMachine(field("auth.managedIdentity"))
	case account != nil:
		o.finishFederated(child(account, "serviceAccountRef"), field("auth.workloadIdentity.serviceAccountRef"), field("tenantId"))
	}
	if o.verdict() == Unsupported {
		return
	}
	o.add(Finding{Verdict: Changed, Reason: "the values have another key, expires_at", Todo: "check that readers of the Secret accept it, or remove it with rewrite"})
	o.add(Finding{Verdict: Changed, Reason: "the login is for tokens of registries; External Secrets Operator requests tokens of Azure Resource Manager", Todo: "check that no policy of conditional access excludes the application Azure Container Registry"})
}
