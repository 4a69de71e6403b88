package migrate

import (
	"fmt"
	"regexp"
)

var csiGCP = csiProvider{
	list: "secrets", object: gcpObject, login: gcpLogin,
	parameters: rules{
		"spec.parameters.auth": gcpAuthMode,
	},
}

// gcpAuthMode checks who logs in: the pods, or the driver.
func gcpAuthMode(f *field) {
	switch f.node.Value {
	case "", "pod-adc", "provider-adc":
		usedBy("spec.auth")(f)
	default:
		f.invalid("one of pod-adc, provider-adc")
	}
}

// gcpVersion matches the name of a version of a secret.
var gcpVersion = regexp.MustCompile(`^projects/([^/]+)/(?:locations/([^/]+)/)?secrets/([^/]+)/versions/([^/]+)$`)

// gcpObject converts one secret of Google.
func gcpObject(c *class, f *field) {
	if !f.only("resourceName", "path", "fileName", "mode", "extractJSONKey", "extractYAMLKey") {
		return
	}
	if n := child(f.node, "extractYAMLKey"); n != nil {
		f.below(nil, n, "extractYAMLKey").unsupported("a property is one of JSON", "write the ExternalSecret by hand, with a template and fromYaml")
		return
	}
	name := gcpVersion.FindStringSubmatch(text(f.node, "resourceName"))
	if name == nil {
		f.below(nil, nil, "resourceName").unsupported("the value is not projects/PROJECT/secrets/SECRET/versions/VERSION", "correct it, and convert it again")
		return
	}
	file := text(f.node, "path")
	if file == "" {
		file = text(f.node, "fileName")
	}
	if file == "" {
		f.unsupported("it has neither path nor fileName", "correct it, and convert it again")
		return
	}
	f.fileMode("mode")
	place := name[1]
	if name[2] != "" {
		place += "-" + name[2]
	}
	store := c.store(gcpSecretManager, place)
	store.spec = mapping("projectID", plain(name[1]))
	if name[2] != "" {
		store.spec = mapping("projectID", plain(name[1]), "location", plain(name[2]))
	}
	ref := mapping("key", plain(name[3]))
	if key := text(f.node, "extractJSONKey"); key != "" {
		ref.Content = append(ref.Content, plain("property"), plain(literalProperty(key)))
	}
	if name[4] != "latest" {
		ref.Content = append(ref.Content, plain("version"), plain(name[4]))
	}
	c.addFile(f, &csiFile{name: file, store: store, ref: ref})
	f.add(Finding{Field: f.String(), To: "spec.data[].remoteRef", Verdict: Exact})
}

// gkeCluster matches the name of a GKE cluster.
var gkeCluster = regexp.MustCompile(`^projects/([^/]+)/locations/([^/]+)/clusters/([^/]+)$`)

// gcpLogin completes the stores of Google.
func gcpLogin(c *class) {
	secret, same := c.publishSecret()
	if !same {
		return
	}
	switch {
	case secret != "":
		for _, s := range c.stores {
			s.spec.Content = append(s.spec.Content, plain("auth"), mapping("secretRef", mapping("secretAccessKeySecretRef", mapping("name", plain(secret), "key", plain("key.json")))))
		}
		c.add(Finding{Field: "spec.parameters", To: "spec.auth.secretRef", Verdict: Exact, Reason: "nodePublishSecretRef of the volumes names the Secret"})
	case text(c.node, "spec", "parameters", "auth") == "provider-adc":
		c.used.ambient(&gcpSecretManager)
		c.add(Finding{Field: "spec.parameters.auth", Verdict: Changed, Reason: "the driver logs in as itself; the operator's own credentials are for cluster Kinds only, unless ambientCredentials is all", Todo: "give the store a login of its own; the values that are written allow the operator's for now"})
	default:
		c.workloadIdentity()
	}
}

// workloadIdentity makes explicit the login of a ServiceAccount of a GKE cluster.
func (c *class) workloadIdentity() {
	account := c.account()
	if account == "" {
		return
	}
	cluster := gkeCluster.FindStringSubmatch(c.inputs.GKECluster)
	if cluster == nil {
		c.add(Finding{Field: "spec.parameters", Verdict: Unsupported, Reason: "the ServiceAccount logs in by the name of its GKE cluster, which the driver reads from the machine", Todo: "name the cluster: --gke-cluster projects/PROJECT/locations/LOCATION/clusters/CLUSTER"})
		return
	}
	email, known := (&field{object: c.object, path: []string{"spec", "parameters"}}).googleAccount(mapping("name", plain(account)))
	if !known {
		return
	}
	for _, s := range c.stores {
		login := mapping("serviceAccountRef", mapping("name", plain(account)),
			"audience", plain(fmt.Sprintf("identitynamespace:%s.svc.id.goog:https://container.googleapis.com/v1/%s", cluster[1], cluster[0])))
		if email != "" {
			login.Content = append(login.Content, plain("serviceAccountEmail"), plain(email))
		}
		s.spec.Content = append(s.spec.Content, plain("auth"), mapping("workloadIdentity", login))
		c.used.tokens(&s.kind)
	}
}
