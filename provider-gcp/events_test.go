package main

import (
	"bytes"
	"strings"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

// TestEvents applies examples/eventsource.yaml, and changes a secret in each way.
func TestEvents(t *testing.T) {
	const id = "orchard-press"
	srv := startEmulator(t)
	changes := srv.AddSubscription("secrets")
	srv.Put(id, []byte("one"))
	for doc := range bytes.SplitSeq(operatortest.Example(t, manifests.Examples, "eventsource.yaml"), []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			t.Fatal(err)
		}
		path, value := []string{"spec", "endpoint"}, srv.URL()
		switch {
		case o.GetKind() == "Secret":
			path, value = []string{"stringData", "key.json"}, string(srv.Key(reader))
		case o.GroupVersionKind().Group != v1alpha1.Group:
			path = nil
		}
		if path != nil {
			if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}
		suite.For(t).Create(o)
	}
	fullName := operatortest.ExternalSecret("orchard", "full-name", "GCPSecretManager", "prod", id)
	fullName.Spec.RefreshInterval = "24h"
	fullName.Spec.Data = []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "projects/" + emulator.DefaultProject + "/secrets/" + id}}}
	suite.For(t).Create(fullName)
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	want := func(value string) {
		t.Helper()
		for _, name := range []string{"press", "full-name"} {
			controlplane.Eventually(t, func() string { return cmp.Diff(value, suite.For(t).In("orchard").Data(name)["password"]) })
		}
	}
	want("one")
	srv.Put(id, []byte("two"))
	want("two")
	srv.SetState(id, 2, pb.SecretVersion_DISABLED)
	for _, name := range []string{"press", "full-name"} {
		o := &common.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "orchard", Name: name}}
		controlplane.Eventually(t, func() string { return cmp.Diff("False SecretSyncedError", suite.For(t).Ready(o)) })
	}
	srv.SetState(id, 2, pb.SecretVersion_ENABLED)
	srv.Delete(id)
	srv.Put(id, []byte("again")) // Version 1, as the first one.
	want("again")
	controlplane.Eventually(t, func() string { return cmp.Diff(0, changes.Left()) })

	srv.Reset()
	changes.Publish([]byte("no notification"), nil)
	srv.Put("orchard-other", []byte("unused"))
	controlplane.Eventually(t, func() string { return cmp.Diff(0, changes.Left()) })
	if diff := cmp.Diff(0, srv.Count("AccessSecretVersion")); diff != "" {
		t.Errorf("reads after events of other secrets: -want, +got:\n%s", diff)
	}
	source := &v1alpha1.GCPEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: "orchard", Name: "changes"}}
	controlplane.Eventually(t, func() string { return cmp.Diff("True Valid", suite.For(t).Ready(source)) })
}

// TestEventSourceCRD breaks each rule of event sources.
func TestEventSourceCRD(t *testing.T) {
	const rule = "subscription must be the ID of a subscription"
	cases := map[string]struct{ reason, project, subscription, endpoint, want string }{
		"ID":            {"An ID is enough.", "p", "secrets", "", ""},
		"FullName":      {"A subscription can be in another project.", "p", "projects/example.com:shop/subscriptions/secrets", "", ""},
		"Characters":    {"An ID can have some other characters.", "p", "a.b_c~d+e%f-1", "", ""},
		"Emulator":      {"An emulator can have plain HTTP.", "p", "secrets", "http://127.0.0.1:8080", ""},
		"Short":         {"An ID has three characters or more.", "p", "ab", "", rule},
		"Long":          {"An ID has at most 255 characters.", "p", strings.Repeat("a", 256), "", rule},
		"Digit":         {"An ID starts with a letter.", "p", "1secrets", "", rule},
		"Topic":         {"A topic is not a subscription.", "p", "projects/p/topics/secrets", "", rule},
		"Slash":         {"A part of a name is not an ID.", "p", "subscriptions/secrets", "", rule},
		"NoProjectName": {"A full name has a project.", "p", "projects//subscriptions/secrets", "", rule},
		"TooLong":       {"A full name has at most 512 characters.", "p", strings.Repeat("a", 513), "", "spec.pubSub.subscription"},
		"NoProject":     {"A missing project is rejected.", "", "secrets", "", "spec.projectID"},
		"Project":       {"A project with other characters is rejected, because it becomes part of a name.", "p/x", "secrets", "", "spec.projectID"},
		"Endpoint":      {"An endpoint without a scheme is rejected.", "p", "secrets", "gcp.example", "endpoint must be a URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.GCPEventSourceSpec{ProjectID: tc.project, Endpoint: tc.endpoint, PubSub: v1alpha1.PubSubSubscription{Subscription: tc.subscription}}
			one := &v1alpha1.GCPEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault}, Spec: spec}
			twin := &v1alpha1.ClusterGCPEventSource{Spec: v1alpha1.ClusterGCPEventSourceSpec{GCPEventSourceSpec: spec}}
			for _, o := range []client.Object{one, twin} {
				o.SetName(strings.ToLower(name))
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}
