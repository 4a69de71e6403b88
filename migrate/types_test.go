package migrate

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	utilyaml "sigs.k8s.io/yaml"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	keys "github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	passwords "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	aws "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	azure "github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	gcp "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	kubernetes "github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
	onepassword "github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	vault "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// types are those of the API, by Kind.
var types = map[string]func() any{
	"ExternalSecret":               func() any { return &common.ExternalSecret{} },
	"ClusterExternalSecret":        func() any { return &common.ClusterExternalSecret{} },
	"PushSecret":                   func() any { return &common.PushSecret{} },
	"ClusterPushSecret":            func() any { return &common.ClusterPushSecret{} },
	"AWSSecretsManager":            func() any { return &aws.AWSSecretsManager{} },
	"ClusterAWSSecretsManager":     func() any { return &aws.ClusterAWSSecretsManager{} },
	"AWSParameterStore":            func() any { return &aws.AWSParameterStore{} },
	"ClusterAWSParameterStore":     func() any { return &aws.ClusterAWSParameterStore{} },
	"ClusterAWSEventSource":        func() any { return &aws.ClusterAWSEventSource{} },
	"ClusterGCPEventSource":        func() any { return &gcp.ClusterGCPEventSource{} },
	"ECRAuthorizationToken":        func() any { return &aws.ECRAuthorizationToken{} },
	"ClusterECRAuthorizationToken": func() any { return &aws.ClusterECRAuthorizationToken{} },
	"STSSessionToken":              func() any { return &aws.STSSessionToken{} },
	"ClusterSTSSessionToken":       func() any { return &aws.ClusterSTSSessionToken{} },
	"GCPSecretManager":             func() any { return &gcp.GCPSecretManager{} },
	"ClusterGCPSecretManager":      func() any { return &gcp.ClusterGCPSecretManager{} },
	"GCPAccessToken":               func() any { return &gcp.GCPAccessToken{} },
	"ClusterGCPAccessToken":        func() any { return &gcp.ClusterGCPAccessToken{} },
	"VaultKV":                      func() any { return &vault.VaultKV{} },
	"ClusterVaultKV":               func() any { return &vault.ClusterVaultKV{} },
	"VaultDynamicSecret":           func() any { return &vault.VaultDynamicSecret{} },
	"ClusterVaultDynamicSecret":    func() any { return &vault.ClusterVaultDynamicSecret{} },
	"KubernetesSecrets":            func() any { return &kubernetes.KubernetesSecrets{} },
	"ClusterKubernetesSecrets":     func() any { return &kubernetes.ClusterKubernetesSecrets{} },
	"OnePasswordConnect":           func() any { return &onepassword.OnePasswordConnect{} },
	"ClusterOnePasswordConnect":    func() any { return &onepassword.ClusterOnePasswordConnect{} },
	"AzureKeyVault":                func() any { return &azure.AzureKeyVault{} },
	"ClusterAzureKeyVault":         func() any { return &azure.ClusterAzureKeyVault{} },
	"ACRAccessToken":               func() any { return &azure.ACRAccessToken{} },
	"ClusterACRAccessToken":        func() any { return &azure.ClusterACRAccessToken{} },
	"SSHKey":                       func() any { return &keys.SSHKey{} },
	"ClusterSSHKey":                func() any { return &keys.ClusterSSHKey{} },
	"UUID":                         func() any { return &keys.UUID{} },
	"ClusterUUID":                  func() any { return &keys.ClusterUUID{} },
	"Password":                     func() any { return &passwords.Password{} },
	"ClusterPassword":              func() any { return &passwords.ClusterPassword{} },
}

// documents returns the root nodes of a stream that can be read.
func documents(raw []byte) []*yaml.Node {
	var all []*yaml.Node
	for _, part := range separator.Split(string(raw), -1) {
		d := yaml.NewDecoder(strings.NewReader(part))
		for {
			var n yaml.Node
			if err := d.Decode(&n); errors.Is(err, io.EOF) || err != nil {
				break
			}
			all = append(all, &n)
		}
	}
	return all
}

// TestTypes decodes all that the corpus is converted to into the types of the API, and sees that each Kind occurs.
func TestTypes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, path := range corpus(t) {
		for _, d := range documents(converted(t, path).Files[0].Content) {
			nodes := d.Content
			if items := child(nodes[0], "items"); items != nil {
				nodes = items.Content
			}
			for _, n := range nodes {
				if !strings.HasSuffix(groupOf(text(n, "apiVersion")), "direct-secrets.io") {
					continue
				}
				kind := text(n, "kind")
				of, known := types[kind]
				if !known {
					t.Errorf("%s: there is no type for %s", path, kind)
					continue
				}
				seen[kind] = true
				if err := new(expansion).expand(n, 0); err != nil {
					t.Fatal(err)
				}
				raw, err := encode(n, "")
				if err != nil {
					t.Fatal(err)
				}
				if err := utilyaml.UnmarshalStrict(raw, of()); err != nil {
					t.Errorf("%s: %s %s: %v", path, kind, text(n, "metadata", "name"), err)
				}
			}
		}
	}
	for kind := range types {
		if !seen[kind] {
			t.Errorf("nothing in the corpus becomes a %s", kind)
		}
	}
}

// comments returns the lines of comments of a node and of what it holds.
func comments(n *yaml.Node) []string {
	var all []string
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.SplitSeq(c, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				all = append(all, line)
			}
		}
	}
	for _, c := range n.Content {
		all = append(all, comments(c)...)
	}
	return all
}

// TestComments sees that each comment of the corpus survives.
func TestComments(t *testing.T) {
	t.Parallel()
	for _, path := range corpus(t) {
		r := converted(t, path)
		if len(r.Report.Objects) == 0 {
			continue
		}
		raw, err := corpusFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents(raw) {
			for _, c := range comments(d) {
				if n := bytes.Count(r.Files[0].Content, []byte(c)); n == 0 {
					t.Errorf("%s: the comment %q is lost", path, c)
				}
			}
		}
		for _, d := range documents(r.Files[0].Content) {
			count := map[string]int{}
			for _, c := range comments(d) {
				if count[c]++; count[c] == 2 {
					t.Errorf("%s: the comment %q is there twice", path, c)
				}
			}
		}
	}
}
