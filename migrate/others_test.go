package migrate

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestOthers converts what repositories of Flux and Argo CD have besides manifests, or reports it with file and line.
func TestOthers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, file, want, note string }{
		"Health": {
			"A health check of Flux gets the new Kind.",
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\nspec:\n  path: ./apps\n  healthChecks:\n  - apiVersion: external-secrets.io/v1beta1 # wait\n    kind: SecretStore\n    name: vault\n    namespace: shop\n",
			"  - apiVersion: vault.direct-secrets.io/v1alpha1 # wait\n    kind: VaultKV\n", "",
		},
		"HealthOfNone": {
			"One for another object is reported.",
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\nspec:\n  healthChecks:\n  - apiVersion: external-secrets.io/v1beta1\n    kind: ExternalSecret\n    name: other\n", "",
			"a.yaml:6: a health check of Flux is for an object that is not in the input, or cannot be converted",
		},
		"Patch": {
			"A patch of Flux is converted, and so is its target.",
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\nspec:\n  patches:\n  - target: {kind: ExternalSecret, group: external-secrets.io}\n    patch: |\n      - op: replace\n        path: /spec/secretStoreRef/name\n        value: vault\n",
			"  - target: {kind: ExternalSecret, group: direct-secrets.io}\n    patch: |\n      - op: replace\n        path: /spec/storeRef/name\n        value: vault\n", "",
		},
		"Application": {
			"So is one of Argo CD.",
			"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop}\nspec:\n  source:\n    kustomize:\n      patches:\n      - target: {kind: ExternalSecret}\n        patch: |-\n          - op: replace\n            path: /spec/refreshInterval\n            value: 5m\n", "- target: {kind: ExternalSecret}\n        patch: |-\n          - op: replace\n", "",
		},
		"Ignored": {
			"Fields that Argo CD ignores are reported.",
			"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop}\nspec:\n  ignoreDifferences:\n  - group: external-secrets.io\n    kind: ExternalSecret\n", "",
			"a.yaml:6: an object of Argo CD names the API group of External Secrets Operator",
		},
		"AppProject": {"So are the groups of an AppProject.", "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: shop}\nspec:\n  namespaceResourceWhitelist:\n  - {group: external-secrets.io, kind: '*'}\n", "", "a.yaml:6: an AppProject of Argo CD names the API group of External Secrets Operator"},
		"Role":       {"And the rules of a role.", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules:\n- apiGroups: [\"external-secrets.io\"]\n  resources: ['*']\n  verbs: [get]\n", "", "a.yaml:5: a ClusterRole is for objects of External Secrets Operator"},
		"ConfigMap":  {"And health checks of Argo CD.", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n  resource.customizations.health.external-secrets.io_ExternalSecret: |\n    hs = {}\n", "", "a.yaml:5: a ConfigMap names the API group of External Secrets Operator, for example for health checks of Argo CD"},
		"Values":     {"And objects in values of a chart.", "extraObjects:\n- apiVersion: external-secrets.io/v1\n  kind: ExternalSecret\n", "", "a.yaml:2: values have objects of External Secrets Operator, or name its API group"},
		"Address":    {"The address of its chart is no group.", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: a}\nspec: {url: \"https://charts.external-secrets.io\"}\n", "", ""},
		"Comment":    {"Nor is a comment.", "a: 1\n# external-secrets.io\n", "", ""},
		"Workflow":   {"Files of other tools stay.", "on: push\njobs: {a: {steps: [{run: \"echo ${{ github.ref }}\"}]}}\n", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Convert(sourcesOf(map[string]string{"a.yaml": tc.file, "apps/store.yaml": kustomStore, "apps/db.yaml": kustomSecret}), Options{Namespace: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			got := string(r.Files[0].Content)
			if tc.want == "" && got != tc.file || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot\n%s\nwant in it\n%s", tc.reason, got, tc.want)
			}
			note := ""
			for _, n := range r.Report.Others {
				note += Name{File: n.File, Line: n.Line}.String() + ": " + n.Reason
			}
			if diff := gocmp.Diff(tc.note, note); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
