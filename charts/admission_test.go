package charts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// policies installs a release with only the admission policies.
func policies(t *testing.T) {
	t.Helper()
	newNamespace(t, "policies", nil)
	_, err := helmClient.Upgrade(background, helm.Release{Name: "policies", Namespace: "policies", Chart: umbrella, TakeOwnership: true, Values: enable([]string{"provider-aws", "generator-password"},
		`global.replicaCount=0`,
		`admissionPolicies={"protectCRDs":{"enabled":true},"protectParts":{"enabled":true,"serviceAccounts":["other:module"]},"protectStatus":{"enabled":true},`+
			`"clusterKinds":{"enabled":true,"namespaceSelector":{"matchLabels":{"tier":"platform"},"matchExpressions":[`+
			`{"key":"team","operator":"In","values":["a","b"]},{"key":"legacy","operator":"DoesNotExist"},{"key":"owner","operator":"Exists"},{"key":"stage","operator":"NotIn","values":["test"]}]}}}`)})
	must(t, err)
}

// as returns a client of a user with all permissions but those that admission denies.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := plane.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(cfg, client.Options{})
	must(t, err)
	return c
}

// object decodes YAML.
func object(t *testing.T, in, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(fmt.Sprintf(text, args...)), &o.Object))
	o.SetNamespace(in)
	return o
}

// admissionPolicies checks all policies on a release.
func admissionPolicies(t *testing.T) {
	policies(t)
	// The API server needs some time before it uses a policy.
	crd := crdNamed(t, "passwords.generator.direct-secrets.io")
	inForce(t, "the deletion of a CRD", "direct-secrets.io/allow-delete", func() error { return admin.Delete(background, crd, client.DryRunAll) })
	for _, kind := range []string{"ExternalSecret", "PushSecret"} { // The API server needs some time before it serves a CRD.
		controlplane.Eventually(t, func() string {
			if err := admin.Create(background, object(t, "policies", "{apiVersion: direct-secrets.io/v1alpha1, kind: %s, metadata: {name: x}}", kind), client.DryRunAll); meta.IsNoMatchError(err) || kerrors.IsNotFound(err) {
				return err.Error()
			}
			return ""
		})
	}
	t.Run("CRDs", crdsAreProtected)
	t.Run("ClusterKinds", clusterKindsAreChosen)
	t.Run("Parts", partsAreProtected)
	t.Run("Status", statusIsProtected)
	t.Run("Tokens", tokensAreRefused)
}

func crdNamed(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	crd := object(t, "", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}")
	must(t, admin.Get(background, client.ObjectKey{Name: name}, crd))
	return crd
}

// refused checks whether admission rejects a request with a message, or accepts it if want is empty.
func refused(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: the request is rejected: %v", reason, err)
	case want != "" && err == nil:
		t.Errorf("%s: the request is accepted", reason)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("%s: the message is %q, want one that contains %q", reason, err, want)
	}
}

// inForce waits until a request is rejected with a message: the API server uses each policy some time after it was created.
func inForce(t *testing.T, reason, want string, request func() error) {
	t.Helper()
	controlplane.Eventually(t, func() string {
		if err := request(); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Sprintf("%s: the error is %v, want %q", reason, err, want)
		}
		return ""
	})
}

func crdsAreProtected(t *testing.T) {
	crd := crdNamed(t, "passwords.generator.direct-secrets.io")
	refused(t, "a module's CRD", admin.Delete(background, crd, client.DryRunAll), "direct-secrets.io/allow-delete")
	refused(t, "a CRD of all modules", admin.Delete(background, crdNamed(t, "externalsecrets.direct-secrets.io"), client.DryRunAll), "direct-secrets.io/allow-delete")
	all := object(t, "", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}")
	refused(t, "all CRDs at once", admin.DeleteAllOf(background, all, client.DryRunAll), "direct-secrets.io/allow-delete")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"direct-secrets.io/allow-delete":"yes"}}}`))
	must(t, admin.Patch(background, crd, patch))
	refused(t, "a CRD with the annotation", admin.Delete(background, crd, client.DryRunAll), "")

	foreign := object(t, "", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.indirect-secrets.io},
spec: {group: indirect-secrets.io, scope: Namespaced, names: {plural: things, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	must(t, admin.Create(background, foreign))
	refused(t, "a CRD of another project", admin.Delete(background, foreign), "")
}

func clusterKindsAreChosen(t *testing.T) {
	allowed := newNamespace(t, "allowed", map[string]string{"tier": "platform", "team": "b", "owner": "x", "stage": "live"})
	denied := map[string]string{
		newNamespace(t, "denied-tier", map[string]string{"team": "a", "owner": "x"}):                                        "no label tier",
		newNamespace(t, "denied-team", map[string]string{"tier": "platform", "team": "c", "owner": "x"}):                    "another team",
		newNamespace(t, "denied-legacy", map[string]string{"tier": "platform", "team": "a", "owner": "x", "legacy": "yes"}): "a forbidden label",
		newNamespace(t, "denied-owner", map[string]string{"tier": "platform", "team": "a"}):                                 "a missing label",
		newNamespace(t, "denied-stage", map[string]string{"tier": "platform", "team": "a", "owner": "x", "stage": "test"}):  "a forbidden value",
	}
	const denial = "this namespace is not allowed to use Cluster"
	es := func(spec string) string {
		return "{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: x}, spec: " + spec + "}"
	}
	ps := func(spec string) string {
		return "{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: x}, spec: " + spec + "}"
	}
	cases := map[string]struct {
		object string
		free   bool
	}{
		"a store of the namespace":            {object: es("{storeRef: {kind: VaultKV, name: a}, data: [{secretKey: a, remoteRef: {key: a}}]}"), free: true},
		"the store of the object":             {object: es("{storeRef: {kind: ClusterVaultKV, name: a}, data: [{secretKey: a, remoteRef: {key: a}}]}")},
		"the store of an entry":               {object: es("{storeRef: {kind: VaultKV, name: a}, data: [{secretKey: b, remoteRef: {key: b}}, {secretKey: a, remoteRef: {key: a}, sourceRef: {storeRef: {kind: ClusterVaultKV, name: a}}}]}")},
		"the store of many":                   {object: es("{dataFrom: [{extract: {key: a}, sourceRef: {storeRef: {kind: ClusterVaultKV, name: a}}}]}")},
		"a generator":                         {object: es("{dataFrom: [{sourceRef: {generatorRef: {kind: ClusterPassword, name: a}}}]}")},
		"a generator of the namespace":        {object: es("{dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: a}}}]}"), free: true},
		"a store to push to":                  {object: ps("{storeRefs: [{kind: VaultKV, name: a}, {kind: ClusterVaultKV, name: a}], selector: {secret: {name: a}}}")},
		"a store of another provider":         {object: es("{storeRef: {apiVersion: acme.example.com/v1, kind: ClusterAcmeVault, name: a}, data: [{secretKey: a, remoteRef: {key: a}}]}")},
		"a Kind of another prefix":            {object: es("{storeRef: {apiVersion: acme.example.com/v1, kind: AcmeClusterVault, name: a}, data: [{secretKey: a, remoteRef: {key: a}}]}"), free: true},
		"stores to push to, by labels":        {object: ps("{storeRefs: [{kind: ClusterVaultKV, labelSelector: {}}], selector: {secret: {name: a}}}")},
		"a generator to push":                 {object: ps("{storeRefs: [{kind: VaultKV, name: a}], selector: {generatorRef: {kind: ClusterPassword, name: a}}}")},
		"a store of the namespace to push to": {object: ps("{storeRefs: [{kind: VaultKV, name: a}], selector: {secret: {name: a}}}"), free: true},
	}
	inForce(t, "an object of a cluster store", denial, func() error {
		return admin.Create(background, object(t, "policies", "%s", cases["the store of the object"].object), client.DryRunAll)
	})
	for what, tc := range cases {
		refused(t, what+", in an allowed namespace", admin.Create(background, object(t, allowed, "%s", tc.object), client.DryRunAll), "")
		for in, why := range denied {
			want := denial
			if tc.free {
				want = ""
			}
			refused(t, what+", in a namespace with "+why, admin.Create(background, object(t, in, "%s", tc.object), client.DryRunAll), want)
		}
	}

	// The namespace loses its labels after the object was created.
	o := object(t, allowed, "%s", cases["the store of the object"].object)
	must(t, admin.Create(background, o))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: allowed}}
	must(t, admin.Patch(background, ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"tier":null}}}`))))
	merge := func(raw string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(raw)) }
	// The API server sees the labels of a namespace with a delay.
	for what, request := range map[string]func() error{
		"a new object": func() error {
			return admin.Create(background, object(t, allowed, "%s", strings.ReplaceAll(cases["a generator"].object, "name: x}", "name: other}")), client.DryRunAll)
		},
		"another spec of an existing object": func() error {
			return admin.Patch(background, o.DeepCopy(), merge(`{"spec":{"refreshInterval":"5m"}}`), client.DryRunAll)
		},
	} {
		inForce(t, what, denial, request)
	}
	refused(t, "its metadata", admin.Patch(background, o, merge(`{"metadata":{"finalizers":["a.example.com/b"]}}`)), "")
	refused(t, "its status", admin.Status().Patch(background, o, merge(`{"status":{"observedGeneration":1}}`)), "")
	refused(t, "its deletion", admin.Delete(background, o), "")
	refused(t, "removing its finalizer", admin.Patch(background, o, merge(`{"metadata":{"finalizers":null}}`)), "")
}

func statusIsProtected(t *testing.T) {
	in := newNamespace(t, "status", nil)
	const denial = "status.stores of a PushSecret is written by the modules"
	user, module := as(t, "jane"), as(t, "system:serviceaccount:policies:policies-provider-aws")
	o := object(t, in, "{apiVersion: direct-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: x}, spec: {storeRefs: [{kind: VaultKV, name: a}], selector: {secret: {name: a}}}}")
	must(t, admin.Create(background, o))
	merge := func(raw string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(raw)) }
	const entries = `{"status":{"stores":[{"apiVersion":"aws.direct-secrets.io/v1alpha1","kind":"AWSSecretsManager","name":"a","entries":[{"remoteKey":"%s"}]}]}}`
	inForce(t, "a user records a remote secret", denial, func() error {
		return user.Status().Patch(background, o.DeepCopy(), merge(fmt.Sprintf(entries, "forged")), client.DryRunAll)
	})
	refused(t, "a user changes another field", user.Status().Patch(background, o, merge(`{"status":{"observedGeneration":7}}`)), "")
	refused(t, "a module records one", module.Status().Patch(background, o, merge(fmt.Sprintf(entries, "real"))), "")
	refused(t, "a user changes it", user.Status().Patch(background, o, merge(fmt.Sprintf(entries, "forged"))), denial)
	refused(t, "a user removes it", user.Status().Patch(background, o, merge(`{"status":{"stores":null}}`)), denial)
	refused(t, "a user changes the spec", user.Patch(background, o, merge(`{"spec":{"suspend":true}}`)), "")
}

func partsAreProtected(t *testing.T) {
	in := newNamespace(t, "parts", nil)
	const denial = "are written by the modules of direct-secrets only"
	user, module := as(t, "jane"), as(t, "system:serviceaccount:policies:policies-provider-aws")
	part := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: map[string]string{"direct-secrets.io/part": "true"}},
			Data: map[string][]byte{"a": []byte(strings.Repeat("v", 700<<10))}}
	}
	plain := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "plain"}}
	refused(t, "a user creates a Secret", user.Create(background, plain), "")
	inForce(t, "a user creates a part", denial, func() error { return user.Create(background, part("forged"), client.DryRunAll) })
	unlabelled := part("unlabelled")
	unlabelled.Labels, unlabelled.Type = nil, "direct-secrets.io/part"
	refused(t, "a user creates a Secret with only the type of a part", user.Create(background, unlabelled), denial)
	refused(t, "a module does", module.Create(background, part("real")), "")
	refused(t, "a module of another release creates a part", as(t, "system:serviceaccount:other:module").Create(background, part("others")), "")
	refused(t, "the ServiceAccount of another namespace creates a part", as(t, "system:serviceaccount:elsewhere:policies-provider-aws").Create(background, part("else")), denial)

	merge := func(raw string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(raw)) }
	for what, raw := range map[string]string{
		"values":            `{"data":{"a":"Yg=="}}`,
		"further values":    `{"stringData":{"b":"b"}}`,
		"the record":        `{"metadata":{"annotations":{"direct-secrets.io/part":"{}"}}}`,
		"the label":         `{"metadata":{"labels":{"direct-secrets.io/part":null}}}`,
		"the label's value": `{"metadata":{"labels":{"direct-secrets.io/part":"x"}}}`,
	} {
		refused(t, "a user changes "+what, user.Patch(background, part("real"), merge(raw), client.DryRunAll), denial)
		refused(t, "a module changes "+what, module.Patch(background, part("real"), merge(raw), client.DryRunAll), "")
	}
	refused(t, "a user turns a Secret into a part", user.Patch(background, plain, merge(`{"metadata":{"labels":{"direct-secrets.io/part":"true"}}}`)), denial)
	refused(t, "a module adds a finalizer", module.Patch(background, part("real"), merge(`{"metadata":{"finalizers":["aws.direct-secrets.io/part"]}}`)), "")
	refused(t, "a user deletes a part", user.Delete(background, part("real")), "")
	refused(t, "a user removes the finalizer of a part", user.Patch(background, part("real"), merge(`{"metadata":{"finalizers":null}}`)), "")
}

// tokensAreRefused checks that a compromised module cannot use its permissions for more than they are meant
// for. Without the policy, these permissions are enough to act as any ServiceAccount.
func tokensAreRefused(t *testing.T) {
	in := newNamespace(t, "tokens", nil)
	must(t, admin.Create(background, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "powerful"}}))
	token := func(name string, typ corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "powerful"}}, Type: typ}
	}
	module := acting(t, "system:serviceaccount:policies:policies-provider-aws")
	// other has the module's permissions by the chart, but the policy does not apply to it.
	other := acting(t, "jane")
	must(t, admin.Create(background, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "like-a-module"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "policies-provider-aws"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
	}))
	must(t, other.Create(background, token("minted", corev1.SecretTypeServiceAccountToken)))
	minted := &corev1.Secret{}
	controlplane.Eventually(t, func() string {
		must(t, other.Get(background, client.ObjectKey{Namespace: in, Name: "minted"}, minted))
		if len(minted.Data[corev1.ServiceAccountTokenKey]) == 0 {
			return "Kubernetes has issued no token, so this test would prove nothing"
		}
		return ""
	})
	cfg := rest.AnonymousClientConfig(plane.Config())
	cfg.BearerToken = string(minted.Data[corev1.ServiceAccountTokenKey])
	review := &authenticationv1.SelfSubjectReview{}
	controlplane.Eventually(t, func() string { // The API server accepts the token once its own watch has shown it.
		attacker, err := client.New(cfg, client.Options{})
		if err == nil {
			err = attacker.Create(background, review)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	if diff := cmp.Diff("system:serviceaccount:"+in+":powerful", review.Status.UserInfo.Username); diff != "" {
		t.Fatalf("the token that was minted is that of another: -want, +got:\n%s", diff)
	}

	const denial = "write no Secrets of the types from which Kubernetes takes tokens"
	inForce(t, "a token of a ServiceAccount", denial, func() error {
		return module.Create(background, token("a", corev1.SecretTypeServiceAccountToken), client.DryRunAll)
	})
	refused(t, "a bootstrap token of nodes", module.Create(background, token("b", "bootstrap.kubernetes.io/token")), denial)
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"kubernetes.io/service-account.name":"other"}}}`))
	refused(t, "an existing token of another ServiceAccount", module.Patch(background, minted, merge), denial)
	refused(t, "a Secret of an ExternalSecret", module.Create(background, token("c", corev1.SecretTypeOpaque)), "")
	refused(t, "a Secret of an ExternalSecret with another type", module.Create(background, token("d", "")), "")
	become := client.RawPatch("application/merge-patch+json", []byte(`{"type":"kubernetes.io/service-account-token"}`))
	refused(t, "a Secret that is changed into a token", module.Patch(background, token("c", ""), become), "immutable")
}

// acting returns a client of a user with only the permissions that RBAC grants.
func acting(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := plane.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(cfg, client.Options{})
	must(t, err)
	return c
}
