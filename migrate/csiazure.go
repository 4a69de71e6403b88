package migrate

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	azure "github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

const podIdentityTodo = "let the client trust the ServiceAccount by a federated credential, remove usePodIdentity, and set clientID"

var csiAzure = csiProvider{
	list: "objects", array: true, object: azureObject, login: azureClassLogin,
	parameters: rules{
		"spec.parameters.keyvaultName":           usedBy("spec.vaultURL"),
		"spec.parameters.cloudName":              usedBy("spec.environment"),
		"spec.parameters.tenantId":               usedBy("spec.tenantID"),
		"spec.parameters.tenantID":               usedBy("spec.tenantID"),
		"spec.parameters.clientID":               usedBy("spec.auth"),
		"spec.parameters.userAssignedIdentityID": usedBy("spec.auth.managedIdentity.clientID"),
		"spec.parameters.useVMManagedIdentity":   trueOrFalse(usedBy("spec.auth.managedIdentity")),
		"spec.parameters.usePodIdentity":         trueOrFalse(onlyFalse("Azure has retired pod identities", podIdentityTodo)),
		"spec.parameters.cloudEnvFileName":       never(csiFileOfNode, "write the store by hand, with environment Custom and customCloudConfig"),
	},
}

// trueOrFalse applies a rule to a switch, which is a text in parameters; an empty text is false.
func trueOrFalse(then rule) rule {
	return func(f *field) {
		on, err := strconv.ParseBool(cmp.Or(strings.TrimSpace(f.node.Value), "false"))
		if f.node.Kind != yaml.ScalarNode || err != nil {
			f.invalid("true or false")
			return
		}
		f.node = scalarNode(strconv.FormatBool(on), f.node)
		then(f)
	}
}

// A keyVaultObject is one that a class names.
type keyVaultObject struct {
	*field

	name, of, version, format, encoding string
}

// part returns a setting of the object, and where it is.
func (o keyVaultObject) part(name string) (string, *field) {
	n := child(o.node, name)
	return strings.TrimSpace(text(o.node, name)), o.below(nil, n, name)
}

// azureObject converts one object of Azure.
func azureObject(c *class, f *field) {
	if !f.only("objectName", "objectType", "objectAlias", "objectVersion", "objectVersionHistory", "objectNotAfter", "objectFormat", "objectEncoding", "filePermission") {
		return
	}
	o := keyVaultObject{field: f}
	for name, to := range map[string]*string{"objectName": &o.name, "objectType": &o.of, "objectVersion": &o.version, "objectFormat": &o.format, "objectEncoding": &o.encoding} {
		*to, _ = o.part(name)
	}
	o.format, o.encoding = strings.ToLower(o.format), strings.ToLower(o.encoding)
	_, at := o.part("objectType")
	switch {
	case o.name == "":
		f.unsupported("it has no objectName", "correct it, and convert it again")
	case !slices.Contains([]string{azureSecret, azureKey, azureCertificate}, o.of):
		at.invalid("one of secret, key, cert")
	case o.isVersion() && o.isForm():
		c.azureFile(o)
	}
}

// isVersion reports whether the object is one version that a store reads; if not, it reports why.
func (o keyVaultObject) isVersion() bool {
	history, atHistory := o.part("objectVersionHistory")
	date, atDate := o.part("objectNotAfter")
	_, at := o.part("objectVersion")
	switch {
	case o.version != "" && !azureVersion.MatchString(o.version):
		at.unsupported("it is not the ID of a version", "write the ID, which has 32 hexadecimal digits in lower case")
	case !slices.Contains([]string{"", "0", "1"}, history):
		atHistory.unsupported("an object is one version", "make an object for each version, with its objectVersion")
	case date != "":
		atDate.unsupported("a version is not chosen by its date", "write the ID of the version into objectVersion")
	default:
		return true
	}
	return false
}

// isForm reports whether the object has a format and an encoding that a store reads; if not, it reports why.
func (o keyVaultObject) isForm() bool {
	_, format := o.part("objectFormat")
	_, encoding := o.part("objectEncoding")
	switch {
	case !slices.Contains([]string{"", "pem", pfx}, o.format):
		format.invalid("one of pem, pfx")
	case o.format == pfx && o.of != azureSecret:
		format.unsupported("the driver refuses pfx, unless objectType is secret", "correct it, and convert it again")
	case o.encoding != "" && o.of != azureSecret:
		encoding.unsupported("the driver refuses an encoding, unless objectType is secret", "correct it, and convert it again")
	case o.encoding == "hex":
		encoding.unsupported("a value in hexadecimal digits is not decoded", "store the value in Base64, or decode it with a template and hexdec")
	case !slices.Contains([]string{"", "utf-8", "base64"}, o.encoding):
		encoding.invalid("one of utf-8, base64, hex")
	default:
		return true
	}
	return false
}

// pfx is the format of a secret that is read as it is stored.
const pfx = "pfx"

// azureFile adds the file of an object.
func (c *class) azureFile(o keyVaultObject) {
	o.fileMode("filePermission")
	key, property, decoding := o.name, "", ""
	switch {
	case o.of == azureCertificate:
		key = azureCertificate + "/" + o.name
	case o.of == azureKey:
		key, property = azureKey+"/"+o.name, "publicKey"
	case o.format != pfx:
		_, at := o.part("objectFormat")
		o.add(Finding{Field: at.String(), Verdict: Changed, Reason: "the secret of a certificate is read as it is stored; the driver converts PKCS#12 to PEM", Todo: "if it is the secret of a certificate, set the content type of the certificate to application/x-pem-file, or use the functions pkcs12cert and pkcs12key in target.template"})
	}
	if o.encoding == "base64" {
		decoding = "Base64"
	}
	alias, _ := o.part("objectAlias")
	ref := withParts(mapping("key", plain(key)), [2]string{"property", property}, [2]string{"version", o.version}, [2]string{"decodingStrategy", decoding})
	c.addFile(o.field, &csiFile{name: cmp.Or(alias, o.name), store: c.store(azureKeyVault, ""), ref: ref})
	o.add(Finding{Field: o.String(), To: "spec.data[].remoteRef", Verdict: Exact})
}

// csiClouds are the clouds, by the names that the driver has for them, in lower case.
var csiClouds = map[string]azure.Environment{
	"": azure.PublicCloud, "azurecloud": azure.PublicCloud, "azurepubliccloud": azure.PublicCloud,
	"azurechinacloud": azure.ChinaCloud, "azureusgovernment": azure.USGovernmentCloud, "azureusgovernmentcloud": azure.USGovernmentCloud,
}

var keyVaultName = regexp.MustCompile(`^[-A-Za-z0-9]{3,24}$`)

// azureClassLogin completes the store of Azure.
func azureClassLogin(c *class) {
	parameter := func(name string) string { return strings.TrimSpace(text(c.node, "spec", "parameters", name)) }
	cloud, known := csiClouds[strings.ToLower(parameter("cloudName"))]
	vault, tenant := parameter("keyvaultName"), cmp.Or(parameter("tenantID"), parameter("tenantId"))
	switch {
	case !keyVaultName.MatchString(vault):
		c.refuse("spec.parameters.keyvaultName", "the value is not the name of a vault")
	case tenant == "":
		c.refuse("spec.parameters.tenantID", "it is missing")
	case !known:
		c.add(Finding{Field: "spec.parameters.cloudName", Verdict: Unsupported, Reason: "the addresses of this cloud are not known", Todo: "write the store by hand, with environment Custom and customCloudConfig"})
	default:
		c.azureStore(vault, tenant, cloud, c.azureCredentials(parameter))
	}
}

// azureStore describes the store, if it has a login.
func (c *class) azureStore(vault, tenant string, cloud azure.Environment, login *yaml.Node) {
	if login == nil {
		return
	}
	s := c.stores[0]
	s.spec = mapping("vaultURL", plain("https://"+strings.ToLower(vault)+"."+azure.VaultDomains[cloud]))
	if cloud != azure.PublicCloud {
		s.spec.Content = append(s.spec.Content, plain("environment"), plain(string(cloud)))
	}
	s.spec.Content = append(s.spec.Content, plain("tenantID"), plain(tenant), plain("auth"), login)
	c.strictNames("spec.parameters.objects")
}

// azureCredentials returns the login of the store, or reports why there is none. The driver prefers the identity of the machine to a
// client that trusts the ServiceAccount, and that to a Secret that volumes name.
func (c *class) azureCredentials(parameter func(string) string) *yaml.Node {
	machine, _ := strconv.ParseBool(parameter("useVMManagedIdentity"))
	switch client := parameter("clientID"); {
	case machine:
		identity := mapping()
		if id := parameter("userAssignedIdentityID"); id != "" {
			identity = mapping("clientID", plain(id))
		}
		c.machineIdentity("spec.parameters.useVMManagedIdentity")
		return mapping("managedIdentity", identity)
	case client != "":
		account := c.account()
		if account == "" {
			return nil
		}
		c.used.tokens(&azureKeyVault)
		return mapping("serviceAccountRef", mapping("name", plain(account), "clientID", plain(client)))
	}
	secret, same := c.publishSecret()
	switch {
	case !same:
		return nil
	case secret == "":
		c.add(Finding{Field: "spec.parameters", Verdict: Unsupported, Reason: "it has no login: neither clientID nor useVMManagedIdentity, and no volume of the input has a nodePublishSecretRef", Todo: "add the manifests of the workloads, or set clientID, and convert it again"})
		return nil
	}
	c.add(Finding{Field: "spec.parameters", To: "spec.auth.clientSecret", Verdict: Exact, Reason: "nodePublishSecretRef of the volumes names the Secret"})
	ref := func(key string) *yaml.Node { return mapping("name", plain(secret), "key", plain(key)) }
	return mapping("clientSecret", mapping("clientIDRef", ref("clientid"), "clientSecretRef", ref("clientsecret")))
}
