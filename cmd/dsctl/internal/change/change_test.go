package change

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

func kind(group, name, plural string, namespaced bool, short ...string) snapshot.Kind {
	return snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: name}, Resource: plural, ShortNames: short, Namespaced: namespaced}
}

var (
	external = kind("direct-secrets.io", "ExternalSecret", "externalsecrets", true, "des")
	push     = kind("direct-secrets.io", "PushSecret", "pushsecrets", true, "dps")
	cluster  = kind("direct-secrets.io", "ClusterExternalSecret", "clusterexternalsecrets", false, "dces")
	store    = kind("aws.direct-secrets.io", "AWSSecretsManager", "awssecretsmanagers", true)
	kinds    = []snapshot.Kind{external, push, cluster, store}
)

func object(t *testing.T, k snapshot.Kind, manifest string) *snapshot.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	o, err := snapshot.NewObject(k, u)
	if err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, arg string
		want        string
		err         string
	}{
		"Name":       {reason: "a name without a Kind is that of an ExternalSecret", arg: "db", want: "ExternalSecret db"},
		"Kind":       {reason: "the Kind can be in front", arg: "pushsecret/db", want: "PushSecret db"},
		"ShortName":  {reason: "a short name is accepted", arg: "dps/db", want: "PushSecret db"},
		"Plural":     {reason: "a plural with its group is accepted", arg: "externalsecrets.direct-secrets.io/db", want: "ExternalSecret db"},
		"OtherGroup": {reason: "a Kind of External Secrets Operator is rejected", arg: "externalsecrets.external-secrets.io/db", err: `externalsecrets.external-secrets.io/db: the cluster has no Kind "externalsecrets.external-secrets.io" of direct-secrets`},
		"NoName":     {reason: "a Kind without a name is rejected", arg: "pushsecret/", err: `"pushsecret/" has no name: write KIND/NAME`},
		"WrongKind":  {reason: "a store cannot be refreshed", arg: "awssecretsmanager/prod", err: "awssecretsmanager/prod: this command does not support the Kind AWSSecretsManager"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, err := ParseTarget(kinds, tc.arg, CanRefresh)
			got, gotErr := "", ""
			if err != nil {
				gotErr = err.Error()
			} else {
				got = target.Kind.Kind + " " + target.Name
			}
			if diff := cmp.Diff([]string{tc.want, tc.err}, []string{got, gotErr}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPatches(t *testing.T) {
	t.Parallel()
	suspend := func(o *snapshot.Object) ([]byte, error) { return SuspendPatch(o, true) }
	resume := func(o *snapshot.Object) ([]byte, error) { return SuspendPatch(o, false) }
	refresh := func(o *snapshot.Object) ([]byte, error) { return RefreshPatch(o, "now") }
	const made = `metadata: {name: db, annotations: {direct-secrets.io/fan-out: "{}"}}`
	cases := map[string]struct {
		reason string
		kind   snapshot.Kind
		object string
		patch  func(*snapshot.Object) ([]byte, error)
		want   string
		err    error
	}{
		"Suspend":          {reason: "suspending sets the field", kind: external, object: `spec: {}`, patch: suspend, want: `{"spec":{"suspend":true}}`},
		"SuspendAgain":     {reason: "nothing changes for a suspended object", kind: external, object: `spec: {suspend: true}`, patch: suspend},
		"Resume":           {reason: "resuming removes the field, because unset means false", kind: push, object: `spec: {suspend: true}`, patch: resume, want: `{"spec":{"suspend":null}}`},
		"ResumeAgain":      {reason: "nothing changes for an object that is not suspended", kind: push, object: `spec: {}`, patch: resume},
		"SuspendCluster":   {reason: "a cluster Kind suspends the objects that it creates", kind: cluster, object: `spec: {}`, patch: suspend, want: `{"spec":{"externalSecretSpec":{"suspend":true}}}`},
		"ResumeCluster":    {reason: "a cluster Kind resumes the objects that it creates", kind: cluster, object: `spec: {externalSecretSpec: {suspend: true}}`, patch: resume, want: `{"spec":{"externalSecretSpec":{"suspend":null}}}`},
		"SuspendMade":      {reason: "an object of a cluster Kind is rejected, because the change would be reverted", kind: external, object: made, patch: suspend, err: errMade},
		"Refresh":          {reason: "a refresh is requested with an annotation", kind: external, object: `spec: {}`, patch: refresh, want: `{"metadata":{"annotations":{"direct-secrets.io/refresh-requested-at":"now"}}}`},
		"RefreshMade":      {reason: "an object of a cluster Kind can be refreshed, because its annotations are not reverted", kind: external, object: made, patch: refresh, want: `{"metadata":{"annotations":{"direct-secrets.io/refresh-requested-at":"now"}}}`},
		"RefreshCluster":   {reason: "a cluster Kind passes the request on", kind: cluster, object: `spec: {}`, patch: refresh, want: `{"spec":{"externalSecretMetadata":{"annotations":{"direct-secrets.io/refresh-requested-at":"now"}}}}`},
		"RefreshSuspended": {reason: "a suspended object is rejected, because it would ignore the request", kind: external, object: `spec: {suspend: true}`, patch: refresh, err: errSuspended},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.patch(object(t, tc.kind, tc.object))
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s: error: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		kind   snapshot.Kind
		object string
		want   bool
	}{
		"Served":      {reason: "an operator of an earlier version records that a request was served", kind: external, object: `status: {observedRefreshRequest: now}`, want: true},
		"Failed":      {reason: "a request that failed is handled", kind: external, object: `status: {attemptedRefreshRequest: now}`, want: true},
		"Earlier":     {reason: "an earlier request in the status does not count", kind: external, object: `status: {observedRefreshRequest: before}`},
		"AllStores":   {reason: "a push is handled once all of its stores have the request", kind: push, object: `status: {stores: [{observedRefreshRequest: now}, {observedRefreshRequest: now}]}`, want: true},
		"SomeStores":  {reason: "a push is not handled if a store lacks the request", kind: push, object: `status: {stores: [{observedRefreshRequest: now}, {}]}`},
		"NoStoresYet": {reason: "a push without stores in its status is not handled", kind: push, object: `status: {}`},
		"Cluster":     {reason: "a cluster Kind does not report requests itself", kind: cluster, object: `status: {}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Answered(object(t, tc.kind, tc.object), "now"); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
