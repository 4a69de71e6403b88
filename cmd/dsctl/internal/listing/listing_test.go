package listing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	external := snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "direct-secrets.io", Kind: "ExternalSecret"}, Namespaced: true}
	push := snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "direct-secrets.io", Kind: "PushSecret"}, Namespaced: true}
	store := snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "aws.direct-secrets.io", Kind: "AWSSecretsManager"}, Namespaced: true}
	object := func(k snapshot.Kind, manifest string) snapshot.Object {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace("shop")
		u.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
		o, err := snapshot.NewObject(k, u)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	s := &snapshot.Snapshot{Objects: []snapshot.Object{
		object(store, `
metadata: {name: prod}
status: {conditions: [{type: Ready, status: "True", reason: Valid}]}`),
		object(external, `
metadata: {name: db}
spec: {storeRef: {kind: AWSSecretsManager, name: prod}}
status: {refreshTime: "2026-11-23T11:55:00Z", conditions: [{type: Ready, status: "False", reason: SecretSyncedError, message: "Denied: no"}]}`),
		object(external, `
metadata: {name: new}
spec: {dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: pw}}}]}`),
		object(push, `
metadata: {name: up}
spec: {storeRefs: [{kind: AWSSecretsManager, labelSelector: {matchLabels: {a: b}}}]}
status: {stores: [{refreshTime: "2026-11-23T11:50:00Z"}, {refreshTime: "2026-11-23T11:40:00Z"}]}`),
	}}
	cases := map[string]struct {
		reason           string
		keep             func(*Row) bool
		namespaces, wide bool
		want             [][]string
	}{
		"All": {
			reason: "all Kinds are in one table, and a push has the age of its oldest store",
			keep:   func(*Row) bool { return true },
			want: [][]string{
				{"KIND", "NAME", "STORE", "READY", "REASON", "REFRESHED", "AGE"},
				{"AWSSecretsManager", "prod", "", "True", "Valid", "", "60m"},
				{"ExternalSecret", "db", "AWSSecretsManager/prod", "False", "SecretSyncedError", "5m", "60m"},
				{"ExternalSecret", "new", "Password/pw", "Unknown", "", "", "60m"},
				{"PushSecret", "up", "AWSSecretsManager/a=b", "Unknown", "", "20m", "60m"},
			},
		},
		"Wide": {
			reason: "the message and the namespace are columns on request",
			keep:   func(r *Row) bool { return r.Ready == "False" }, namespaces: true, wide: true,
			want: [][]string{
				{"NAMESPACE", "KIND", "NAME", "STORE", "READY", "REASON", "REFRESHED", "AGE", "MESSAGE"},
				{"shop", "ExternalSecret", "db", "AWSSecretsManager/prod", "False", "SecretSyncedError", "5m", "60m", "Denied: no"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Table(Rows(s, tc.keep), now, tc.namespaces, tc.wide)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
