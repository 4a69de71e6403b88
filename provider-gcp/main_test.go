package main

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/crds"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/config"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/examples"
)

const (
	// patience is how long a test waits for what must come.
	patience = 60 * time.Second

	poolProvider = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/prod"
	reader       = "reader@test-project.iam.gserviceaccount.com"
)

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

func create(t *testing.T, o client.Object, opts ...client.CreateOption) {
	t.Helper()
	if err := api.Create(t.Context(), o, opts...); err != nil {
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

func newStore(namespace, name string, spec v1alpha1.GCPSpec) *v1alpha1.GCPSecretManager {
	return &v1alpha1.GCPSecretManager{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GCPSecretManagerSpec{GCPSpec: spec},
	}
}

func byKey(namespace string) *v1alpha1.GCPAuth {
	return &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{
		SecretAccessKeySecretRef: common.SecretKeySelector{Namespace: namespace, Name: "gcp", Key: "key.json"},
	}}
}

func byToken(impersonate string) *v1alpha1.GCPAuth {
	return &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
		ServiceAccountRef: common.ServiceAccountSelector{Name: "default"},
		Audience:          poolProvider, ServiceAccountEmail: impersonate,
	}}
}

func TestCRD(t *testing.T) {
	both, bad := byKey(""), byToken("no email")
	both.WorkloadIdentity = byToken("").WorkloadIdentity
	elsewhere := byToken("")
	elsewhere.WorkloadIdentity.Audience = "https://evil.example"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.GCPSpec
		want   string // part of the rejection
	}{
		"Project":    {"A project is enough; the rest is left to the operator.", v1alpha1.GCPSpec{ProjectID: "p"}, ""},
		"NoProject":  {"Without a project there is nothing to read.", v1alpha1.GCPSpec{}, "spec.projectID"},
		"Domain":     {"Old projects belong to a domain.", v1alpha1.GCPSpec{ProjectID: "example.com:shop"}, ""},
		"Slash":      {"A project becomes part of a name.", v1alpha1.GCPSpec{ProjectID: "p/secrets/x"}, "spec.projectID"},
		"Everything": {"All fields go together.", v1alpha1.GCPSpec{ProjectID: "p", Location: "europe-west3", Endpoint: "https://gcp.example", Auth: byToken(reader)}, ""},
		"Key":        {"So does a key.", v1alpha1.GCPSpec{ProjectID: "p", Auth: byKey("")}, ""},
		"TwoAuths":   {"Which of two would win?", v1alpha1.GCPSpec{ProjectID: "p", Auth: both}, "set either secretRef or workloadIdentity"},
		"NoAuth":     {"An auth that names nobody is a mistake.", v1alpha1.GCPSpec{ProjectID: "p", Auth: &v1alpha1.GCPAuth{}}, "set either secretRef or workloadIdentity"},
		"Location":   {"A location becomes part of a host name.", v1alpha1.GCPSpec{ProjectID: "p", Location: "evil.example/"}, "spec.location"},
		"Audience":   {"A token is for a pool of Google only.", v1alpha1.GCPSpec{ProjectID: "p", Auth: elsewhere}, "spec.auth.workloadIdentity.audience"},
		"Email":      {"An email becomes part of a URL.", v1alpha1.GCPSpec{ProjectID: "p", Auth: bad}, "spec.auth.workloadIdentity.serviceAccountEmail"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.GCPSecretManagerSpec{GCPSpec: tc.spec}
			twin := &v1alpha1.ClusterGCPSecretManager{
				ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)},
				Spec:       v1alpha1.ClusterGCPSecretManagerSpec{GCPSecretManagerSpec: spec},
			}
			for _, o := range []client.Object{newStore("default", strings.ToLower(name), tc.spec), twin} {
				err := api.Create(t.Context(), o, client.DryRunAll)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("%s\n%T: error %v, want %q", tc.reason, o, err, tc.want)
				}
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

func TestExamples(t *testing.T) {
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	docs := append(bytes.Split(examples.SecretManager, []byte("\n---\n")), examples.WorkloadIdentity)
	for _, doc := range docs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "Namespace" { // A dry run would not leave it for the others.
			create(t, o, client.DryRunAll, client.FieldValidation("Strict"))
		}
	}
	if len(docs) != 5 {
		t.Errorf("%d documents, want 5", len(docs))
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

func TestProvider(t *testing.T) {
	const subject = "system:serviceaccount:orders:default"
	srv, err := emulator.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // Nothing depends on its end.
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject}})
	srv.AddServiceAccount(reader, subject)
	srv.Put("orders-db", []byte(`{"user":"u","password":"one"}`))

	account := grant(t, "gcp-system", "provider-gcp")
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "orders", Labels: map[string]string{"team": "orders"}}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "orders", Name: "gcp"}, Data: map[string][]byte{"key.json": srv.Key(reader)}})
	spec := v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey("")}
	create(t, newStore("orders", "by-key", spec))
	create(t, &v1alpha1.ClusterGCPSecretManager{
		ObjectMeta: metav1.ObjectMeta{Name: "shared"},
		Spec: v1alpha1.ClusterGCPSecretManagerSpec{
			GCPSecretManagerSpec: v1alpha1.GCPSecretManagerSpec{GCPSpec: v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey("orders")}},
			ClusterStoreSpec: common.ClusterStoreSpec{Conditions: []common.StoreCondition{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "orders"}},
				AllowedKeys:       []string{"${namespace}-*"},
			}}},
		},
	})
	spec.Auth = byToken("")
	create(t, newStore("orders", "by-token", spec))
	spec.Auth = byToken(reader)
	create(t, newStore("orders", "by-impersonation", spec))
	spec.Auth = byToken("nobody@test-project.iam.gserviceaccount.com")
	create(t, newStore("orders", "nobody", spec))
	create(t, newStore("orders", "ambient", v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject}))

	run(t, operator.WithConfig(account), operator.WithFlags(func(f *operator.Flags) {
		f.MetricsAddress, f.ProbeAddress, f.LeaderElectNamespace = "0", "0", "gcp-system"
	}))
	refs := map[string]string{"by-key": "GCPSecretManager", "by-token": "GCPSecretManager", "by-impersonation": "GCPSecretManager", "shared": "ClusterGCPSecretManager"}
	for name, kind := range refs {
		create(t, &common.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "orders", Name: name},
			Spec: common.ExternalSecretSpec{
				StoreRef: &common.StoreRef{Kind: kind, Name: name},
				Data:     []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "orders-db", Property: "password"}}},
			},
		})
	}
	for name := range refs {
		eventually(t, func() string { return cmp.Diff("one", password(t, name)) })
	}
	for _, s := range []string{"by-key", "by-token", "by-impersonation"} {
		eventually(t, func() string { return cmp.Diff("True Valid", ready(t, newStore("orders", s, v1alpha1.GCPSpec{}))) })
	}
	eventually(t, func() string {
		return cmp.Diff("True Valid", ready(t, &v1alpha1.ClusterGCPSecretManager{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
	})
	eventually(t, func() string {
		return cmp.Diff("False AuthFailed", ready(t, newStore("orders", "nobody", v1alpha1.GCPSpec{})))
	})
	eventually(t, func() string {
		return cmp.Diff("False InvalidSpec", ready(t, newStore("orders", "ambient", v1alpha1.GCPSpec{})))
	})
	tenProperties(t, srv)
}

// tenProperties has one object ask for ten properties of one secret, which is one call.
func tenProperties(t *testing.T, srv *emulator.Server) {
	t.Helper()
	srv.Put("orders-ten", []byte(`{"p0":"0","p1":"1","p2":"2","p3":"3","p4":"4","p5":"5","p6":"6","p7":"7","p8":"8","password":"ten"}`))
	es := &common.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "orders", Name: "ten"},
		Spec: common.ExternalSecretSpec{
			StoreRef: &common.StoreRef{Kind: "GCPSecretManager", Name: "by-key"},
			Data:     []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "orders-ten", Property: "password"}}},
		},
	}
	for i := range 9 {
		key := fmt.Sprintf("p%d", i)
		es.Spec.Data = append(es.Spec.Data, common.DataEntry{SecretKey: key, RemoteRef: common.RemoteRef{Key: "orders-ten", Property: key}})
	}
	create(t, es)
	eventually(t, func() string { return cmp.Diff("ten", password(t, "ten")) })
	var calls []string
	for _, c := range srv.CallLog() {
		if strings.Contains(c.Name, "/orders-ten") {
			calls = append(calls, c.Method)
		}
	}
	if diff := cmp.Diff([]string{"AccessSecretVersion"}, calls); diff != "" {
		t.Errorf("ten properties of one secret are one call: -want, +got:\n%s", diff)
	}
}

func password(t *testing.T, name string) string {
	t.Helper()
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "orders", Name: name}, s); err != nil {
		return err.Error()
	}
	return string(s.Data["password"])
}

func ready(t *testing.T, s store.Object) string {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(s.StoreStatus().Conditions, common.ConditionReady)
	if c == nil {
		return "no condition"
	}
	return string(c.Status) + " " + c.Reason
}
