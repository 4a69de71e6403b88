package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPages checks that the pages state the versions of the tree.
func TestPages(t *testing.T) {
	t.Parallel()
	stale, err := pages(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range stale {
		is, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s states other versions than the tree: run `make generate`: -want, +got:\n%s", path, cmp.Diff(text, string(is)))
	}
}

// TestVersionsInText replaces each form in which a page states a version.
func TestVersionsInText(t *testing.T) {
	t.Parallel()
	is := unitVersions{"provider-aws": "0.3.1", umbrella: "0.4.0"}
	cases := map[string]struct{ reason, text, want string }{
		"Chart":         {"the umbrella chart has its own version", "oci://ghcr.io/direct-secrets/charts/direct-secrets --version 0.1.0 -n a", "oci://ghcr.io/direct-secrets/charts/direct-secrets --version 0.4.0 -n a"},
		"Archive":       {"so does its archive", "bin/charts/direct-secrets-0.1.0.tgz", "bin/charts/direct-secrets-0.4.0.tgz"},
		"ArgoCD":        {"so does the chart in an Application", "targetRevision: 0.1.0", "targetRevision: 0.4.0"},
		"Download":      {"dsctl is released with the umbrella chart", "releases/download/v0.1.0/direct-secrets.yaml", "releases/download/v0.4.0/direct-secrets.yaml"},
		"Base":          {"so do the static manifests of the CRDs", "charts/crds?ref=v0.1.0", "charts/crds?ref=v0.4.0"},
		"Image":         {"an image has the version of its module", "ghcr.io/direct-secrets/provider-aws:0.1.0", "ghcr.io/direct-secrets/provider-aws:0.3.1"},
		"ImageArchive":  {"so does an archive of it", "oci-archive:provider-aws.tar:0.1.0", "oci-archive:provider-aws.tar:0.3.1"},
		"Tag":           {"so does a tag", "`provider-aws/v0.1.0`", "`provider-aws/v0.3.1`"},
		"Build":         {"so does a build of one module", "IMAGES=provider-aws IMAGE_VERSION=0.1.0", "IMAGES=provider-aws IMAGE_VERSION=0.3.1"},
		"Common":        {"the version of common, which Renovate changes, is left unchanged", "direct-secrets/common v0.1.0", "direct-secrets/common v0.1.0"},
		"UnknownModule": {"a module that is not in the tree is left unchanged", "provider-acme:0.1.0", "provider-acme:0.1.0"},
		"Other":         {"versions of other software are left unchanged", "Kubernetes 1.33.13", "Kubernetes 1.33.13"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := is.in(tc.text); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
