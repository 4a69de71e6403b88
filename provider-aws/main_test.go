package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commoncrds "github.com/direct-secrets/direct-secrets/common/apis/crds"
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controlplane"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/crds"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/config"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/examples"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

var (
	cluster *controlplane.ControlPlane
	api     client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		ctrl.SetLogger(logr.Discard())
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, common.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		var err error
		cluster = c
		api, err = client.New(c.Config(), client.Options{Scheme: scheme})
		return err
	}, controlplane.WithCRDs(append(crds.All(), commoncrds.ExternalSecrets)...))
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %s", o, o.GetName(), err)
	}
}

func eventually(t *testing.T, missing func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for what := missing(); what != ""; what = missing() {
		select {
		case <-deadline:
			t.Fatalf("still not so: %s", what)
		case <-tick.C:
		}
	}
}

func newStore(namespace, name string, spec v1alpha1.AWSSpec) *v1alpha1.AWSSecretsManager {
	return &v1alpha1.AWSSecretsManager{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.AWSSecretsManagerSpec{AWSSpec: spec},
	}
}

func byKey() *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{
		AccessKeyIDSecretRef:     common.SecretKeySelector{Name: "aws", Key: "id"},
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "aws", Key: "key"},
	}}
}

func byToken() *v1alpha1.AWSAuth {
	return &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "default"}}
}

func TestCRD(t *testing.T) {
	both := byKey()
	both.ServiceAccountRef = byToken().ServiceAccountRef
	const needsRole = "additionalRoles, externalID, sessionTags and transitiveTagKeys need a role"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.AWSSpec
		want   string // part of the rejection
	}{
		"Empty":      {"A store may leave all to the operator.", v1alpha1.AWSSpec{}, ""},
		"Key":        {"A key is enough.", v1alpha1.AWSSpec{Region: "eu-central-1", Auth: byKey()}, ""},
		"Everything": {"All fields go together.", v1alpha1.AWSSpec{Region: "eu-central-1", Role: "r", AdditionalRoles: []string{"a"}, ExternalID: "x", SessionTags: []v1alpha1.SessionTag{{Key: "k", Value: ""}}, TransitiveTagKeys: []string{"k"}, Prefix: "p/", Endpoint: "https://aws.example", Auth: byToken()}, ""},
		"TwoAuths":   {"Which of two would win?", v1alpha1.AWSSpec{Role: "r", Auth: both}, "set either secretRef or serviceAccountRef"},
		"NoAuth":     {"An auth that names nobody is a mistake.", v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{}}, "set either secretRef or serviceAccountRef"},
		"TokenAlone": {"A token is good for assuming a role only.", v1alpha1.AWSSpec{Auth: byToken()}, "auth.serviceAccountRef needs a role that its token can assume"},
		"Roles":      {"additionalRoles only lead to role.", v1alpha1.AWSSpec{AdditionalRoles: []string{"a"}}, needsRole},
		"ExternalID": {"What would be ignored is refused.", v1alpha1.AWSSpec{ExternalID: "x"}, needsRole},
		"Tags":       {"What would be ignored is refused.", v1alpha1.AWSSpec{SessionTags: []v1alpha1.SessionTag{{Key: "k"}}}, needsRole},
		"Region":     {"A region becomes part of a host name.", v1alpha1.AWSSpec{Region: "evil.example/"}, "spec.region"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := api.Create(t.Context(), newStore("default", strings.ToLower(name), tc.spec), client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestCRDSize(t *testing.T) {
	for _, crd := range crds.All() {
		if len(crd) > 60_000 {
			t.Errorf("A CRD is at most 60 KB: %d bytes", len(crd))
		}
		if bytes.Contains(crd, []byte(" default: ")) {
			t.Error("A default of the API server shows as drift")
		}
	}
}

// grant makes the roles of config/rbac.yaml and binds them to a ServiceAccount, as which the
// configuration that it returns acts.
func grant(t *testing.T, namespace, name string) *rest.Config {
	t.Helper()
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(config.RBAC, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, role); err != nil {
			t.Fatal(err)
		}
		create(t, role)
		create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	}
	return account
}

func run(t *testing.T, opts ...operator.Option) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- provider(opts...).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("operator: %s", err)
		}
	})
}

// TestProvider runs one operator over the whole cluster, with the rights of config/rbac.yaml and no
// others.
func TestProvider(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/shop"
	srv, err := emulator.Start(emulator.WithRoles(emulator.Role{ARN: role, WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:shop:default", Audience: "sts.amazonaws.com"},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // Nothing depends on its end.
	t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
	account := grant(t, "aws-system", "provider-aws")
	for name, labels := range map[string]map[string]string{"shop": {"secrets": "aws"}, "bank": nil} {
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "aws"}, Data: map[string][]byte{"id": []byte("test"), "key": []byte("test")}})
	}
	run(t, operator.WithConfig(account), operator.WithFlags(func(f *operator.Flags) {
		f.MetricsAddress, f.ProbeAddress, f.LeaderElectNamespace = "0", "0", "aws-system"
	}))
	t.Run("Namespaced", func(t *testing.T) { testNamespaced(t, srv, role) })
	t.Run("Cluster", func(t *testing.T) { testCluster(t, srv) })
	t.Run("Example", func(t *testing.T) { testExample(t, srv) })
}

func testNamespaced(t *testing.T, srv *emulator.Server, role string) {
	srv.Put("shop/db", []byte(`{"user":"u","password":"one"}`))
	srv.PutParameter("shop/db", `{"user":"u","password":"two"}`, emulator.Secure())
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Prefix: "shop/", Auth: byKey()}
	create(t, newStore("shop", "by-key", spec))
	create(t, &v1alpha1.AWSParameterStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "parameters"}, Spec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec},
	})
	spec.Auth, spec.Role = byToken(), role
	create(t, newStore("shop", "by-token", spec))
	create(t, newStore("shop", "ambient", v1alpha1.AWSSpec{Region: "us-east-1"}))

	create(t, externalSecret("shop", "AWSSecretsManager", "by-key", "db"))
	create(t, externalSecret("shop", "AWSSecretsManager", "by-token", "db"))
	create(t, externalSecret("shop", "AWSParameterStore", "parameters", "db"))
	for name, want := range map[string]string{"by-key": "one", "by-token": "one", "parameters": "two"} {
		eventually(t, func() string { return cmp.Diff(want, password(t, "shop", name)) })
	}
	for _, name := range []string{"by-key", "by-token"} {
		eventually(t, func() string { return cmp.Diff("True Valid", ready(t, &v1alpha1.AWSSecretsManager{}, "shop", name)) })
	}
	eventually(t, func() string {
		return cmp.Diff("True Valid", ready(t, &v1alpha1.AWSParameterStore{}, "shop", "parameters"))
	})
	eventually(t, func() string {
		return cmp.Diff("False InvalidSpec", ready(t, &v1alpha1.AWSSecretsManager{}, "shop", "ambient"))
	})
}

// testCluster has cluster stores serve the namespaces with a label, and the keys of each.
func testCluster(t *testing.T, srv *emulator.Server) {
	for _, ns := range []string{"shop", "bank"} {
		srv.Put(ns+"/key", []byte(`{"password":"secret of `+ns+`"}`))
		srv.PutParameter("/"+ns+"/key", `{"password":"parameter of `+ns+`"}`)
	}
	auth := byKey()
	auth.SecretRef.AccessKeyIDSecretRef.Namespace, auth.SecretRef.SecretAccessKeySecretRef.Namespace = "bank", "bank"
	spec := v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: auth}
	serves := common.ClusterStoreSpec{Conditions: []common.StoreCondition{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"secrets": "aws"}},
		AllowedKeys:       []string{"${namespace}/*", "/${namespace}/*"},
	}}}
	create(t, &v1alpha1.ClusterAWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}, Spec: v1alpha1.ClusterAWSSecretsManagerSpec{
		AWSSecretsManagerSpec: v1alpha1.AWSSecretsManagerSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
	}})
	create(t, &v1alpha1.ClusterAWSParameterStore{ObjectMeta: metav1.ObjectMeta{Name: "parameters"}, Spec: v1alpha1.ClusterAWSParameterStoreSpec{
		AWSParameterStoreSpec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
	}})
	eventually(t, func() string {
		return cmp.Diff("True Valid", ready(t, &v1alpha1.ClusterAWSSecretsManager{}, "", "secrets"))
	})
	eventually(t, func() string {
		return cmp.Diff("True Valid", ready(t, &v1alpha1.ClusterAWSParameterStore{}, "", "parameters"))
	})

	for kind, of := range map[string]struct{ store, slash, value string }{
		"ClusterAWSSecretsManager": {"secrets", "", "secret of "},
		"ClusterAWSParameterStore": {"parameters", "/", "parameter of "},
	} {
		name := func(es *common.ExternalSecret, suffix string) *common.ExternalSecret {
			es.Name = strings.ToLower(kind) + suffix
			return es
		}
		own := name(externalSecret("shop", kind, of.store, of.slash+"shop/key"), "-own")
		foreign := name(externalSecret("shop", kind, of.store, of.slash+"bank/key"), "-foreign")
		unlabelled := name(externalSecret("bank", kind, of.store, of.slash+"bank/key"), "")
		for _, es := range []*common.ExternalSecret{own, foreign, unlabelled} {
			create(t, es)
		}
		eventually(t, func() string { return cmp.Diff(of.value+"shop", password(t, "shop", own.Name)) })
		for _, es := range []*common.ExternalSecret{foreign, unlabelled} {
			eventually(t, func() string { return cmp.Diff("False Forbidden", condition(t, es)) })
		}

		label(t, "bank", "aws")
		eventually(t, func() string { return cmp.Diff(of.value+"bank", password(t, "bank", unlabelled.Name)) })
		label(t, "bank", "none")
	}
}

// testExample applies examples/parameterstore.yaml as it is, but for the address.
func testExample(t *testing.T, srv *emulator.Server) {
	srv.PutParameter("/bakery/oven/password", "before")
	srv.LabelParameter("/bakery/oven/password", "previous")
	srv.PutParameter("/bakery/oven/password", "now", emulator.Secure())
	srv.PutParameter("/bakery/settings/heat", "230")
	srv.PutParameter("/bakery/settings/minutes", "40")
	for doc := range bytes.SplitSeq(examples.ParameterStore, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, o); err != nil {
			t.Fatal(err)
		}
		if o.GroupVersionKind().Group == v1alpha1.Group {
			if err := unstructured.SetNestedField(o.Object, srv.URL(), "spec", "endpoint"); err != nil {
				t.Fatal(err)
			}
		}
		create(t, o)
	}
	for name, want := range map[string]map[string]string{
		"oven":     {"password": "now", "password-before": "before"},
		"settings": {"heat": "230", "minutes": "40"},
	} {
		eventually(t, func() string { return cmp.Diff(want, data(t, "bakery", name)) })
	}
}

// externalSecret reads the property password of a key. It has the store's name.
func externalSecret(namespace, kind, store, key string) *common.ExternalSecret {
	return &common.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: store},
		Spec: common.ExternalSecretSpec{
			StoreRef: &common.StoreRef{Kind: kind, Name: store},
			Data:     []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: key, Property: "password"}}},
		},
	}
}

func label(t *testing.T, namespace, value string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"secrets":"`+value+`"}}}`))
	if err := api.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch); err != nil {
		t.Fatal(err)
	}
}

func password(t *testing.T, namespace, name string) string {
	t.Helper()
	return data(t, namespace, name)["password"]
}

// data is what a Secret holds; nothing if there is none.
func data(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for k, v := range s.Data {
		texts[k] = string(v)
	}
	return texts
}

func ready(t *testing.T, s store.Object, namespace, name string) string {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return err.Error()
	}
	return short(s.StoreStatus().Conditions)
}

func condition(t *testing.T, es *common.ExternalSecret) string {
	t.Helper()
	got := &common.ExternalSecret{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(es), got); err != nil {
		return err.Error()
	}
	return short(got.Status.Conditions)
}

func short(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, common.ConditionReady)
	if c == nil {
		return "no condition"
	}
	return string(c.Status) + " " + c.Reason
}
