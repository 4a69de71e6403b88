package fake_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// credentials have the passwords of Secrets by name.
type credentials struct {
	passwords map[string]string
	ambient   error
}

func (c credentials) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	p, ok := c.passwords[sel.Name]
	if !ok {
		return nil, provider.NewError(provider.Invalid, "Secret %q does not exist", sel.Name)
	}
	return []byte(p), nil
}

func (c credentials) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("not asked for in these tests")
}

func (c credentials) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errors.New("not asked for in these tests")
}

func (c credentials) Ambient() error { return c.ambient }

func TestConnect(t *testing.T) {
	auth := func(name string) *v1alpha1.FakeAuth {
		return &v1alpha1.FakeAuth{SecretRef: common.SecretKeySelector{Name: name, Key: "password"}}
	}
	creds := credentials{passwords: map[string]string{"right": "hunter2", "wrong": "12345"}}
	cases := map[string]struct {
		reason  string
		spec    v1alpha1.FakeStoreSpec
		ambient error
		connect provider.Class // of the error
		check   provider.Class
	}{
		"Right":        {reason: "The right password is accepted.", spec: v1alpha1.FakeStoreSpec{Backend: "prod", Auth: auth("right")}},
		"Wrong":        {reason: "A wrong password is an error of the check.", spec: v1alpha1.FakeStoreSpec{Backend: "prod", Auth: auth("wrong")}, check: provider.Denied},
		"None":         {reason: "A missing password is an error of the check.", spec: v1alpha1.FakeStoreSpec{Backend: "prod"}, check: provider.Denied},
		"NoSecret":     {reason: "A missing Secret is an error of the connect.", spec: v1alpha1.FakeStoreSpec{Backend: "prod", Auth: auth("missing")}, connect: provider.Invalid},
		"Ambient":      {reason: "The operator's identity is accepted.", spec: v1alpha1.FakeStoreSpec{Backend: "prod", Ambient: true}},
		"AmbientNot":   {reason: "A store without permission for the operator's identity is refused.", spec: v1alpha1.FakeStoreSpec{Backend: "prod", Ambient: true}, ambient: provider.NewError(provider.Invalid, "not allowed"), connect: provider.Invalid},
		"NoBackend":    {reason: "A missing backend is an error in the spec.", spec: v1alpha1.FakeStoreSpec{Backend: "other"}, connect: provider.Invalid},
		"OpenPassword": {reason: "A backend without a password accepts any.", spec: v1alpha1.FakeStoreSpec{Backend: "open", Auth: auth("wrong")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := fake.NewServer()
			srv.Backend("prod").SetPassword("hunter2")
			srv.Backend("open")
			objects := []provider.Object{
				&v1alpha1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}, Spec: tc.spec},
				&v1alpha1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.ClusterFakeStoreSpec{FakeStoreSpec: tc.spec}},
			}
			creds := creds
			creds.ambient = tc.ambient
			for i, kind := range srv.Kinds() {
				c, err := fake.Connect(t.Context(), kind, objects[i], creds)
				if diff := cmp.Diff(tc.connect, classOf(err)); diff != "" {
					t.Errorf("%s\n%s: Connect(...): -want class, +got class:\n%s", tc.reason, kind.GoName(), diff)
				}
				if err != nil {
					continue
				}
				if diff := cmp.Diff(tc.check, classOf(c.Check(t.Context()))); diff != "" {
					t.Errorf("%s\n%s: Check(...): -want class, +got class:\n%s", tc.reason, kind.GoName(), diff)
				}
			}
		})
	}
}

func classOf(err error) provider.Class {
	if err == nil {
		return ""
	}
	return provider.ClassOf(err)
}

func TestServersAreApart(t *testing.T) {
	one, other := fake.NewServer(), fake.NewServer()
	one.Backend("prod").Put("a", []byte("x"))
	if got := other.Backend("prod").Versions("a"); got != nil {
		t.Errorf("a secret of one server is in another one: %q", got)
	}
	if first, second := one.Backend("prod"), one.Backend("prod"); first != second {
		t.Error("Backend creates a new backend for an existing name")
	}
}

func TestRecordNamesStore(t *testing.T) {
	srv := fake.NewServer()
	b := srv.Backend("prod")
	s := &v1alpha1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}, Spec: v1alpha1.FakeStoreSpec{Backend: "prod"}}
	if _, err := srv.ConnectFakeStore(t.Context(), s, credentials{}); err != nil {
		t.Fatal(err)
	}
	if got := b.Calls(fake.CallConnect); len(got) != 1 || got[0].Store != "shop/s" {
		t.Errorf("Calls(Connect) = %+v, want one for shop/s", got)
	}
}

func TestCRDs(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range controlplane.Manifests(fake.CRDs) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest)).Decode(crd); err != nil {
			t.Fatal(err)
		}
		kind := v1alpha1.GroupVersion.WithKind(crd.Spec.Names.Kind)
		if crd.Spec.Group != v1alpha1.Group || !scheme.Recognizes(kind) {
			t.Errorf("the scheme lacks %s of group %s", kind, crd.Spec.Group)
		}
		v := crd.Spec.Versions[0]
		if v.Subresources == nil || v.Subresources.Status == nil {
			t.Errorf("%s has no status subresource", kind)
		}
		if diff := cmp.Diff([]string{"direct-secrets"}, crd.Spec.Names.Categories); diff != "" {
			t.Errorf("%s: categories: -want, +got:\n%s", kind, diff)
		}
	}
}
