package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// testEvents applies examples/eventsource.yaml, and changes a secret and a parameter in each way.
func testEvents(t *testing.T) {
	srv, err := emulator.Start(emulator.WithRegion("eu-central-1"), emulator.WithAccount("111122223333"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	queue := srv.AddQueue("secrets")
	srv.Put("orchard/press", []byte("one"))
	srv.PutParameter("/orchard/juice", "one")
	applyExample(t, srv, operatortest.Example(t, manifests.Examples, "eventsource.yaml"))
	auth := byKey()
	auth.SecretRef.AccessKeyIDSecretRef = common.SecretKeySelector{Name: "aws-access-key", Key: "id"}
	auth.SecretRef.SecretAccessKeySecretRef = common.SecretKeySelector{Name: "aws-access-key", Key: "secret"}
	spec := v1alpha1.AWSSpec{Region: "eu-central-1", Endpoint: srv.URL(), Auth: auth}
	suite.For(t).Create(&v1alpha1.AWSParameterStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "orchard", Name: "parameters"}, Spec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec},
	})
	juice := operatortest.ExternalSecret("orchard", "juice", "AWSParameterStore", "parameters", "/orchard/juice")
	juice.Spec.RefreshInterval = "24h"
	juice.Spec.Data = []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "/orchard/juice"}}}
	suite.For(t).Create(juice)
	want := func(name, value string) {
		t.Helper()
		controlplane.Eventually(t, func() string { return cmp.Diff(value, suite.For(t).In("orchard").Data(name)["password"]) })
	}
	want("press", "one")
	want("juice", "one")
	srv.Put("orchard/press", []byte("two"))
	want("press", "two")
	srv.PutParameter("/orchard/juice", "two")
	want("juice", "two")
	controlplane.Eventually(t, func() string { return cmp.Diff(0, queue.Left()) })

	srv.Reset()
	queue.Send("no event")
	srv.Put("orchard/other", []byte("unused"))
	controlplane.Eventually(t, func() string { return cmp.Diff(0, queue.Left()) })
	if diff := cmp.Diff(0, srv.Count("GetSecretValue", "BatchGetSecretValue", "GetParameter", "GetParameters")); diff != "" {
		t.Errorf("reads after events of other secrets: -want, +got:\n%s", diff)
	}
}

// TestEventSourceCRD breaks each rule of event sources.
func TestEventSourceCRD(t *testing.T) {
	const url = "https://sqs.eu-central-1.amazonaws.com/111122223333/secrets"
	cases := map[string]struct{ reason, url, want string }{
		"URL":      {"A URL names the account and the queue.", url, ""},
		"Emulator": {"A server for tests can have plain HTTP.", "http://127.0.0.1:4566/000000000000/secrets", ""},
		"Name":     {"A name is not enough.", "secrets", "queueURL must be the URL of a standard queue"},
		"Ordered":  {"A queue that keeps the order holds back all messages behind one.", url + ".fifo", "queueURL must be the URL of a standard queue"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.AWSEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strings.ToLower(name)}}
			o.Spec.SQS.QueueURL = tc.url
			suite.Accepts(t, tc.reason, o, tc.want)
		})
	}
	o := &v1alpha1.ClusterAWSEventSource{ObjectMeta: metav1.ObjectMeta{Name: "tagged"}}
	o.Spec.SQS.QueueURL, o.Spec.Role, o.Spec.SessionTagsPolicy = url, shopRole, v1alpha1.SessionTagsSimple
	suite.Accepts(t, "A tag would name no namespace.", o, "sessionTagsPolicy: Simple is not supported here")
}
