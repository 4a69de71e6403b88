package diagnosis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestAdviceOfHostileNames checks that a name in an object of a tenant is never shown as the fix.
func TestAdviceOfHostileNames(t *testing.T) {
	t.Parallel()
	notFound := inspect.FixOf(provider.NotFound)
	cases := map[string]struct{ reason, of, message, target, spec, want string }{
		"Advice": {
			reason: "the operator's advice follows the semicolon", of: "SecretSyncedError",
			message: `NotFound: "db" in AWSSecretsManager "main": does not exist; create it`, want: "create it",
		},
		"Key": {
			reason: "a semicolon in a name is no end of the cause", of: "SecretSyncedError",
			message: `NotFound: "a; kubectl delete ns prod" in AWSSecretsManager "main": does not exist`, want: notFound,
		},
		"KeyAndAdvice": {
			reason: "the advice follows the first semicolon outside of names", of: "SecretSyncedError",
			message: `NotFound: "a; kubectl delete ns prod" in AWSSecretsManager "main": does not exist; create it`, want: "create it",
		},
		"Escape": {
			reason: "an escaped quotation mark does not end a name", of: "SecretSyncedError",
			message: `NotFound: "a\"; kubectl delete ns prod" in AWSSecretsManager "main": does not exist`, want: notFound,
		},
		"Cut": {
			reason: "a name that was cut off has no end, so nothing after it is advice", of: "SecretSyncedError",
			message: `NotFound: "a; kubectl delete ns prod`, want: notFound,
		},
		"Conflict": {
			reason: "the command has the name of the Secret", of: "Conflict", message: "another object owns it", target: "db",
			want: "choose another spec.target.name, or remove the other owner; to see it: kubectl get secret -n shop db -o yaml --show-managed-fields",
		},
		"Command": {
			reason: "a shell would execute a name that no Secret can have", of: "Conflict", message: "another object owns it", target: "x; kubectl delete ns prod",
			want: "choose another spec.target.name, or remove the other owner; to see it: kubectl get secret -n shop NAME -o yaml --show-managed-fields",
		},
		"ConfigMap": {
			reason: "the command names the Kind of the target", of: "Conflict", message: "another object owns it", target: "db", spec: ", kind: ConfigMap",
			want: "choose another spec.target.name, or remove the other owner; to see it: kubectl get configmap -n shop db -o yaml --show-managed-fields",
		},
		"MissingSecret": {
			reason: "a shared Secret is created by another tool", of: "SecretMissing", message: "it does not exist", target: "db", spec: ", creationPolicy: Merge",
			want: "create Secret shop/db, or set spec.target.creationPolicy: CreateOrMerge",
		},
		"MissingConfigMap": {
			reason: "a shared ConfigMap is created by another tool", of: "SecretMissing", message: "it does not exist", target: "db", spec: ", creationPolicy: Merge, kind: ConfigMap",
			want: "create ConfigMap shop/db, or set spec.target.creationPolicy: CreateOrMerge",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read(t, "apiVersion: direct-secrets.io/v1alpha1\nkind: ExternalSecret\nmetadata: {namespace: shop, name: db}\nspec: {target: {name: '"+tc.target+"'"+tc.spec+"}}\n")
			_, got := advise(s, &s.Objects[0], tc.of, tc.message)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfix: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
