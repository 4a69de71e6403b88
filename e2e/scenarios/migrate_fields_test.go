//go:build long

package scenarios

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// migrateFields is the list that a test of dsctl holds the rules of migrate to.
const migrateFields = "../../migrate/testdata/fields.txt"

// migrateKinds are the Kinds of External Secrets Operator that migrate converts.
var migrateKinds = []string{
	"ACRAccessToken", "ClusterExternalSecret", "ClusterGenerator", "ClusterPushSecret", "ClusterSecretStore", "ECRAuthorizationToken", "ExternalSecret",
	"GCRAccessToken", "PushSecret", "Password", "SSHKey", "STSSessionToken", "SecretStore", "UUID", "VaultDynamicSecret",
}

// A parent holds what migrate converts only some of; of the rest the list has the names.
type parent struct {
	path  string
	known []string
}

// migrateParents are those of each Kind.
var migrateParents = map[string]parent{
	"SecretStore":        {"spec.provider.", []string{"aws", "vault", "gcpsm", "kubernetes", "onepassword", "azurekv"}},
	"ClusterSecretStore": {"spec.provider.", []string{"aws", "vault", "gcpsm", "kubernetes", "onepassword", "azurekv"}},
	"ClusterGenerator":   {"spec.generator.", []string{"passwordSpec", "sshKeySpec", "uuidSpec", "ecrAuthorizationTokenSpec", "stsSessionTokenSpec", "acrAccessTokenSpec", "gcrAccessTokenSpec", "vaultDynamicSecretSpec"}},
}

// TestMigrateFields holds the list of the fields of External Secrets Operator to its CRDs. If they have changed, set
// UPDATE_FIELDS=1 to write the list, and let migrate convert or refuse what is new.
func TestMigrateFields(t *testing.T) {
	var lines []string
	for _, raw := range esoCRDs(t) {
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, yaml.Unmarshal(raw, &crd))
		if !slices.Contains(migrateKinds, crd.Spec.Names.Kind) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			for _, f := range schemaFields(migrateParents[crd.Spec.Names.Kind], v.Schema.OpenAPIV3Schema, "") {
				lines = append(lines, fmt.Sprintf("%s/%s %s %s", crd.Spec.Group, v.Name, crd.Spec.Names.Kind, f))
			}
		}
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	if os.Getenv("UPDATE_FIELDS") != "" {
		must(t, os.WriteFile(migrateFields, []byte(got), 0o644))
	}
	want, err := os.ReadFile(migrateFields)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", migrateFields, diff)
	}
}

// schemaFields returns the paths of the fields of a schema that hold no other, each with its type.
func schemaFields(of parent, s *apiextensionsv1.JSONSchemaProps, path string) []string {
	if path != "" && path != "spec" && !strings.HasPrefix(path, "spec.") {
		return nil
	}
	name, found := strings.CutPrefix(path, of.path)
	switch {
	case of.path != "" && found && !strings.Contains(name, ".") && !slices.Contains(of.known, name):
		return []string{path + " object"}
	case s.Type == "array":
		return schemaFields(of, s.Items.Schema, path+"[]")
	case len(s.Properties) == 0:
		return []string{strings.TrimSpace(path + " " + s.Type)}
	}
	var all []string
	for name, p := range s.Properties {
		all = append(all, schemaFields(of, &p, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}
