package migrate

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	azure "github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// The values of authType.
const (
	servicePrincipal = "ServicePrincipal"
	managedIdentity  = "ManagedIdentity"
	// federated is the login of a ServiceAccount.
	federated = "WorkloadIdentity"
)

const (
	clientIDAnnotation = "azure.workload.identity/client-id"
	tenantIDAnnotation = "azure.workload.identity/tenant-id"
)

// azureStack is the environment whose addresses are in customCloudConfig.
const azureStack = "AzureStackCloud"

const azureAt = "spec.provider.azurekv"

// azureStore are the rules for a store of Azure Key Vault.
var azureStore = rules{
	azureAt + ".vaultUrl":                                  vaultURL,
	azureAt + ".tenantId":                                  unlessEmpty("spec.tenantID"),
	azureAt + ".environmentType":                           azureEnvironment,
	azureAt + ".useAzureSDK":                               usesAzureSDK,
	azureAt + ".authType":                                  azureAuthType,
	azureAt + ".identityId":                                azureLogins(unlessEmpty("spec.auth.managedIdentity.clientID"), managedIdentity),
	azureAt + ".serviceAccountRef":                         azureLogins(serviceAccount("spec.auth.serviceAccountRef", azure.FederatedAudience), federated),
	azureAt + ".authSecretRef.clientId":                    azureLogins(azureClientID, servicePrincipal, federated),
	azureAt + ".authSecretRef.tenantId":                    azureLogins(never("tenantID is text, and no reference to a Secret", "write the ID of the tenant into tenantId, and remove the reference"), federated),
	azureAt + ".authSecretRef.clientSecret":                azureLogins(secretKey("spec.auth.clientSecret.clientSecretRef", ""), servicePrincipal),
	azureAt + ".authSecretRef.clientCertificate":           azureLogins(secretKey("spec.auth.clientCertificate.clientCertificateRef", ""), servicePrincipal),
	azureAt + ".customCloudConfig.activeDirectoryEndpoint": customCloud(func(f *field) { f.authority("spec.customCloudConfig.activeDirectoryEndpoint") }),
	azureAt + ".customCloudConfig.keyVaultDNSSuffix":       customCloud(scalar("spec.customCloudConfig.keyVaultDNSSuffix")),
	azureAt + ".customCloudConfig.keyVaultEndpoint":        drop("vaultURL is the address of the vault"),
	azureAt + ".customCloudConfig.resourceManagerEndpoint": drop("secrets are not read from Resource Manager"),
}

// unlessEmpty moves a text that is not empty.
func unlessEmpty(to string) rule {
	return func(f *field) {
		if f.node.Kind == yaml.ScalarNode && f.node.Value == "" {
			f.dropped("it is empty")
			return
		}
		scalar(to)(f)
	}
}

// azureAuth returns the authType of a store.
func (o *object) azureAuth() string {
	return cmp.Or(text(o.node, "spec", "provider", "azurekv", "authType"), servicePrincipal)
}

// usesNewSDK reports whether External Secrets Operator uses the current SDK of Azure for a store, which decides some of what it does.
func (o *object) usesNewSDK() bool {
	return text(o.node, "spec", "provider", "azurekv", "useAzureSDK") == "true"
}

// azureLogins applies a rule if the store logs in by one of some types, and else drops the field.
func azureLogins(then rule, of ...string) rule {
	return func(f *field) {
		if !slices.Contains(of, f.azureAuth()) {
			f.dropped("External Secrets Operator ignores it, unless authType is " + strings.Join(of, " or "))
			return
		}
		then(f)
	}
}

func azureAuthType(f *field) {
	switch f.node.Value {
	case servicePrincipal, managedIdentity, federated:
		f.pend()
		f.add(Finding{Field: f.String(), To: "spec.auth", Verdict: Exact})
	default:
		f.invalid("one of " + strings.Join([]string{servicePrincipal, managedIdentity, federated}, ", "))
	}
}

func usesAzureSDK(f *field) {
	if !slices.Contains([]string{"true", "false"}, f.node.Value) {
		f.invalid("true or false")
		return
	}
	f.dropped("the current SDK of Azure is always used")
}

// vaultURL moves the address of a vault. It must be in the domain of the cloud, because tokens are sent only there.
func vaultURL(f *field) {
	const to = "spec.vaultURL"
	if f.byAction(to) {
		return
	}
	u, err := url.Parse(f.node.Value)
	if f.node.Kind != yaml.ScalarNode || err != nil || u.Hostname() == "" {
		f.invalid("a URL")
		return
	}
	domain := f.vaultDomain()
	switch {
	case u.Scheme != "https":
		f.unsupported("a vault is read only with https://", "write the address as https://NAME."+cmp.Or(domain, azure.VaultDomains[azure.PublicCloud]))
	case u.Path != "" && u.Path != "/":
		f.unsupported("the address of a vault has no path", "write it as https://"+u.Host)
	case domain != "" && !unknown(domain) && !strings.HasSuffix(strings.ToLower(u.Hostname()), "."+domain):
		f.unsupported("tokens are sent only to hosts of the cloud, which end with "+domain, "write the address as https://NAME."+domain+", or set environmentType")
	default:
		f.exact(to)
	}
}

// vaultDomain returns the domain of the vaults of the store's cloud; "" if the store does not name it.
func (f *field) vaultDomain() string {
	store := child(f.object.node, "spec", "provider", "azurekv")
	return cmp.Or(text(store, "customCloudConfig", "keyVaultDNSSuffix"), azure.VaultDomains[azure.Environment(cmp.Or(text(store, "environmentType"), string(azure.PublicCloud)))])
}

// azureEnvironment moves the name of a cloud. With customCloudConfig, the environment is always Custom.
func azureEnvironment(f *field) {
	const to = "spec.environment"
	config := f.sibling(1, "customCloudConfig")
	switch {
	case f.isNoCloud("vault"):
	case f.node.Value == azureStack && config == nil:
		f.unsupported("External Secrets Operator requires customCloudConfig for "+azureStack, "set customCloudConfig, and convert it again")
	case f.node.Value == azureStack && f.azureAuth() == managedIdentity:
		f.unsupported("a managed identity is used only for a vault of a known cloud", "use another authType")
	case f.node.Value == azureStack:
		f.node = scalarNode(string(azure.CustomEnvironment), f.node)
		f.exact(to)
	case config != nil && f.azureAuth() != managedIdentity:
		f.node = scalarNode(string(azure.CustomEnvironment), f.node)
		f.move(to, Finding{Verdict: Exact, Reason: "customCloudConfig has the addresses"})
	default:
		f.exact(to)
	}
}

// isNoCloud reports an environment that is no cloud, or one that does not exist any more. noun is what the cloud has.
func (f *field) isNoCloud(noun string) bool {
	_, known := azure.VaultDomains[azure.Environment(f.node.Value)]
	switch {
	case f.node.Kind != yaml.ScalarNode:
		f.invalid("a single value")
	case f.node.Value == "":
		f.dropped("PublicCloud is the default")
	case f.node.Value == "GermanCloud":
		f.unsupported("Azure closed this cloud in 2021", "write the cloud that has the "+noun+" now")
	case !known && f.node.Value != azureStack && !unknown(f.node.Value):
		f.invalid("one of PublicCloud, USGovernmentCloud, ChinaCloud, GermanCloud, " + azureStack)
	default:
		return false
	}
	return true
}

// customCloud applies a rule for an address of customCloudConfig, which a managed identity does not need.
func customCloud(then rule) rule {
	return func(f *field) {
		switch {
		case !f.usesNewSDK():
			f.unsupported("External Secrets Operator refuses customCloudConfig unless useAzureSDK is true", "set useAzureSDK, and convert it again, or remove customCloudConfig")
		case f.azureAuth() == managedIdentity:
			f.dropped("a managed identity gets its tokens from the machine")
		default:
			then(f)
		}
	}
}

// authority moves the address of the authority that issues tokens.
func (f *field) authority(to string) {
	u, err := url.Parse(f.node.Value)
	switch {
	case f.byAction(to):
	case f.node.Kind != yaml.ScalarNode || err != nil || u.Scheme != "https" || u.Host == "":
		f.unsupported("it is not a URL with https://", "write it as https://HOST")
	case u.Path != "" && u.Path != "/":
		f.unsupported("the address of an authority has no path", "use another login than that of the path "+u.Path+", or leave the store with External Secrets Operator")
	default:
		f.exact(to)
	}
}

// azureClientID moves the reference to the ID of an application.
func azureClientID(f *field) {
	switch {
	case f.azureAuth() == federated:
		f.unsupported("the client ID of a ServiceAccount is text, and no reference to a Secret", "remove authSecretRef, and write the ID into the annotation "+clientIDAnnotation+" of the ServiceAccount")
	case f.sibling(1, "clientCertificate") != nil:
		secretKey("spec.auth.clientCertificate.clientIDRef", "")(f)
	default:
		secretKey("spec.auth.clientSecret.clientIDRef", "")(f)
	}
}

// finishAzureStore completes the login and the addresses, and reports what differs for each store.
func finishAzureStore(o *object, at []string) {
	store := child(o.node, at...)
	if text(store, "vaultUrl") == "" {
		o.refuse(azureAt+".vaultUrl", "it is missing")
	}
	switch o.azureAuth() {
	case servicePrincipal:
		o.finishApplication(store)
	case managedIdentity:
		o.completeMachine(azureAt + ".authType")
	case federated:
		if child(store, "authSecretRef", "clientId") == nil { // Otherwise it is reported there.
			o.finishFederated(child(store, "serviceAccountRef"), azureAt+".serviceAccountRef", azureAt+".tenantId")
		}
	}
	if config := child(o.out.root, "spec", "customCloudConfig"); config != nil {
		o.finishCustomCloud(store, config)
	}
	o.strictNames(azureAt)
}

// strictNames reports which secrets of Azure Key Vault a store does not read, and other tools do.
func (o *object) strictNames(field string) {
	o.add(Finding{Field: field, Verdict: Changed, Reason: "the case of names counts, and a secret that has expired, or is not valid yet, is an error; " + o.from.name + " ignores the case, and reads such a secret", Todo: "check that each key is written as its secret is named, and that its dates are right"})
}

// finishApplication reports a login of an application that is not complete.
func (o *object) finishApplication(store *yaml.Node) {
	secret, certificate := child(store, "authSecretRef", "clientSecret"), child(store, "authSecretRef", "clientCertificate")
	switch {
	case text(store, "tenantId") == "":
		o.refuse(azureAt+".tenantId", "it is missing, and "+servicePrincipal+" requires it")
	case secret != nil && certificate != nil:
		o.refuse(azureAt+".authSecretRef", "External Secrets Operator refuses clientSecret together with clientCertificate")
	case child(store, "authSecretRef", "clientId") == nil || (secret == nil && certificate == nil):
		o.refuse(azureAt+".authSecretRef", servicePrincipal+" requires clientId, and clientSecret or clientCertificate")
	}
}

// completeMachine completes the login of a managed identity, which is one of the machines that the operator runs on.
func (o *object) completeMachine(field string) {
	if child(o.out.root, "spec", "auth", "managedIdentity") == nil {
		o.out.put([]string{"spec", "auth", "managedIdentity"}, nil, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle})
	}
	o.machineIdentity(field)
}

// machineIdentity reports a login with a managed identity, and allows it to namespaced Kinds.
func (o *object) machineIdentity(field string) {
	found := Finding{Field: field, To: "spec.auth.managedIdentity", Verdict: Changed, Reason: "the identity is one of the machines that the operator runs on", Todo: "check that these machines have it"}
	if !strings.HasPrefix(o.Kind, "Cluster") {
		o.used.ambient(&azureKeyVault) // Of the module, for each of its Kinds.
		found.Reason += ", and namespaced Kinds can use it only if ambientCredentials is all"
		found.Todo += "; the values that are written allow it for now, so give it a login of its own"
	}
	o.add(found)
}

// finishFederated reports the login of a ServiceAccount whose client or tenant is not in its annotations. Both operators read them
// there. account and tenantID are the fields of the original.
func (o *object) finishFederated(ref *yaml.Node, account, tenantID string) {
	if ref == nil {
		o.add(Finding{Field: account, Verdict: Unsupported, Reason: "without it, External Secrets Operator logs in as its own ServiceAccount", Todo: "name a ServiceAccount that the client trusts by a federated credential, and convert it again"})
		return
	}
	if child(o.out.root, "spec", "auth", "serviceAccountRef") == nil {
		return // It is reported there.
	}
	own, namespace, name := text(o.out.root, "spec", "tenantID"), o.accountOf(ref), text(ref, "name")
	if o.referent(ref) || !o.inputs.knows(namespace, name) {
		if own == "" {
			o.add(Finding{Field: tenantID, To: "spec.tenantID", Verdict: Changed, Reason: "the tenant is in the annotation " + tenantIDAnnotation + " of the ServiceAccount, which is not in the input; without it, External Secrets Operator uses a tenant of its own environment", Todo: "check that the ServiceAccount has the annotation, or set tenantID"})
		}
		return
	}
	client, _, clients := o.annotation(namespace, name, clientIDAnnotation)
	tenant, _, tenants := o.annotation(namespace, name, tenantIDAnnotation)
	switch {
	case client == "" && clients == "":
		o.add(Finding{Field: account, Verdict: Unsupported, Reason: "the ServiceAccount " + namespace + "/" + name + " has no annotation " + clientIDAnnotation + ", which External Secrets Operator requires", Todo: "annotate it with the ID of the client, and convert it again"})
	case own == "" && tenant == "" && tenants == "":
		o.add(Finding{Field: tenantID, Verdict: Unsupported, Reason: "without it, and without the annotation " + tenantIDAnnotation + " of the ServiceAccount, External Secrets Operator uses a tenant of its own environment", Todo: "set tenantId, and convert it again"})
	case own != "" && tenant != "" && tenant != own:
		o.refuse(tenantID, "the annotation "+tenantIDAnnotation+" of the ServiceAccount has another tenant")
	}
}

// finishCustomCloud adds what a cloud of its own needs, and External Secrets Operator does not.
func (o *object) finishCustomCloud(store, config *yaml.Node) {
	o.out.set(string(azure.CustomEnvironment), "spec", "environment")
	if child(config, "activeDirectoryEndpoint") == nil {
		o.refuse(azureAt+".customCloudConfig.activeDirectoryEndpoint", "it is missing")
	}
	if child(config, "keyVaultDNSSuffix") != nil {
		return
	}
	const to = "spec.customCloudConfig.keyVaultDNSSuffix"
	if known := azure.VaultDomains[azure.Environment(cmp.Or(text(store, "environmentType"), string(azure.PublicCloud)))]; known != "" {
		o.out.set(known, strings.Split(to, ".")...)
		o.add(Finding{To: to, Verdict: Exact, Reason: "it is the domain of the vaults of environmentType"})
		return
	}
	u, err := url.Parse(text(store, "vaultUrl"))
	if err != nil {
		return // It is reported at vaultUrl.
	}
	_, domain, _ := strings.Cut(strings.ToLower(u.Hostname()), ".")
	o.out.set(domain, strings.Split(to, ".")...)
	o.add(Finding{Field: azureAt + ".customCloudConfig.keyVaultDNSSuffix", To: to, Verdict: Changed, Reason: "tokens are requested for the domain of vaultUrl, " + domain + "; External Secrets Operator requests them for what the vault names", Todo: "check that the cloud has this domain"})
}
