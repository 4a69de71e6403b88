package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// storeOfOverlay returns a store with the name prod.
func storeOfOverlay(provider string) string {
	return "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: prod}\nspec: {provider: {" + provider + "}}\n"
}

// TestAccountsOfOverlays converts stores whose ServiceAccount is in the tree more than once, with the role of each overlay.
func TestAccountsOfOverlays(t *testing.T) {
	t.Parallel()
	account := func(role string) string {
		return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::111122223333:role/" + role + "'}}\n"
	}
	const store = "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: prod}\nspec: {provider: {aws: {service: SecretsManager, region: a, role: 'arn:aws:iam::444455556666:role/other', auth: {jwt: {serviceAccountRef: {name: reader}}}}}}\n"
	cases := map[string]struct {
		reason, file string
		roles        map[string]string
		want         Verdict
		wantRole     string
	}{
		"Own":       {"The ServiceAccount of the same overlay counts.", "prod/store.yaml", nil, Exact, "arn:aws:iam::111122223333:role/prod"},
		"Different": {"The tree does not say which one it is.", "base/store.yaml", nil, Unsupported, ""},
		"Given":     {"A flag says which role it is.", "base/store.yaml", map[string]string{"default/reader": "arn:aws:iam::111122223333:role/given"}, Exact, "arn:aws:iam::111122223333:role/given"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Convert([]Source{
				{Name: "dev/account.yaml", Content: []byte(account("dev"))}, {Name: "prod/account.yaml", Content: []byte(account("prod"))},
				{Name: tc.file, Content: []byte(store)},
			}, Options{Namespace: "default", Roles: tc.roles})
			if err != nil {
				t.Fatal(err)
			}
			role := ""
			if _, after, found := strings.Cut(string(r.Files[2].Content), "additionalRoles:\n  - "); found {
				role, _, _ = strings.Cut(after, "\n")
			}
			if diff := cmp.Diff([]any{tc.want, tc.wantRole}, []any{r.Report.Objects[0].Verdict, role}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%+v", tc.reason, diff, r.Report.Objects[0].Findings)
			}
		})
	}
}

// TestOverlays converts trees in which several stores have the same name.
func TestOverlays(t *testing.T) {
	t.Parallel()
	const (
		login    = "auth: {secretRef: {accessKeyIDSecretRef: {name: a, key: a}, secretAccessKeySecretRef: {name: a, key: a}}}"
		manager  = "aws: {service: SecretsManager, region: a, " + login + "}"
		west     = "aws: {service: SecretsManager, region: b, " + login + "}"
		params   = "aws: {service: ParameterStore, region: a, " + login + "}"
		of       = "vault: {server: 'https://v', path: %s, auth: {tokenSecretRef: {name: v, key: t}}}"
		consumer = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: db}\nspec: {secretStoreRef: {name: prod}, data: [{secretKey: a, remoteRef: {key: kv/db}}]}\n"
	)
	cases := map[string]struct {
		reason string
		files  map[string]string
		// file is that of the ExternalSecret, and want what it refers to; otherwise the error.
		file, want string
	}{
		"Own":       {"Each overlay has its own store.", map[string]string{"dev/s.yaml": storeOfOverlay(params), "prod/s.yaml": storeOfOverlay(manager)}, "prod/e.yaml", "AWSSecretsManager"},
		"Around":    {"The store is in a folder around.", map[string]string{"a/s.yaml": storeOfOverlay(manager), "b/s.yaml": storeOfOverlay(params)}, "a/app/db/e.yaml", "AWSSecretsManager"},
		"Same":      {"All stores become the same.", map[string]string{"dev/s.yaml": storeOfOverlay(manager), "prod/s.yaml": storeOfOverlay(west)}, "base/e.yaml", "AWSSecretsManager"},
		"Different": {"The tree does not say which one it is.", map[string]string{"dev/s.yaml": storeOfOverlay(params), "prod/s.yaml": storeOfOverlay(manager)}, "base/e.yaml", "SecretStore prod is in the input more than once, in dev/s.yaml:1 and prod/s.yaml:1, and these become different stores; convert the folder of each by itself"},
		"Keys":      {"Keys depend on the path of a Vault store.", map[string]string{"dev/s.yaml": storeOfOverlay(fmt.Sprintf(of, "kv")), "prod/s.yaml": storeOfOverlay(fmt.Sprintf(of, "other"))}, "base/e.yaml", "SecretStore prod is in the input more than once, in dev/s.yaml:1 and prod/s.yaml:1, and these become different stores; convert the folder of each by itself"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sources []Source
			for _, file := range []string{"a/s.yaml", "b/s.yaml", "dev/s.yaml", "prod/s.yaml"} {
				if text, found := tc.files[file]; found {
					sources = append(sources, Source{Name: file, Content: []byte(text)})
				}
			}
			r, err := Convert(append(sources, Source{Name: tc.file, Content: []byte(consumer)}), Options{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			of := r.Report.Objects[len(r.Report.Objects)-1]
			got := ""
			for _, f := range of.Findings {
				if f.Field == "spec.secretStoreRef" {
					got = f.Reason
				}
			}
			if got == "" {
				got = text(documents(r.Files[len(r.Files)-1].Content)[0].Content[0], "spec", "storeRef", "kind")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
