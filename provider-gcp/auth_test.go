package main

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

func newClusterStore(spec v1alpha1.GCPSpec, serves common.ClusterStoreSpec) *v1alpha1.ClusterGCPSecretManager {
	return &v1alpha1.ClusterGCPSecretManager{Spec: v1alpha1.ClusterGCPSecretManagerSpec{
		GCPSecretManagerSpec: v1alpha1.GCPSecretManagerSpec{GCPSpec: spec}, ClusterStoreSpec: serves,
	}}
}

// annotated returns a ServiceAccount whose annotation names a service account of Google.
func annotated(namespace, name, email string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"iam.gke.io/gcp-service-account": email}}}
}

// TestAnnotations logs in as the service accounts that the annotations of ServiceAccounts name. A changed annotation is a new login
// without a restart.
func TestAnnotations(t *testing.T) {
	const ns, bank, next, domain = "wages", "wages-bank", "next", "@test-project.iam.gserviceaccount.com"
	subject := func(namespace string) string { return "system:serviceaccount:" + namespace + ":annotated" }
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject(ns), subject(bank)}})
	for account, namespace := range map[string]string{ns: ns, bank: bank, next: ns} {
		srv.AddServiceAccount(account+domain, subject(namespace))
	}
	srv.Put("wages-db", []byte(`{"password":"one"}`))
	for _, namespace := range []string{ns, bank} {
		suite.For(t).Namespace(namespace, nil)
	}
	suite.For(t).Create(annotated(ns, "annotated", "unknown"+domain))
	suite.For(t).Create(annotated(bank, "annotated", bank+domain))
	spec := func(namespace string) v1alpha1.GCPSpec {
		auth := byToken("")
		auth.WorkloadIdentity.ServiceAccountRef = &common.ServiceAccountSelector{Namespace: namespace, Name: "annotated"}
		auth.WorkloadIdentity.ServiceAccountEmailFrom = v1alpha1.EmailFromAnnotation
		return v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: auth}
	}
	suite.For(t).Create(newStore(ns, "annotated", spec("")))
	shared := newClusterStore(spec(bank), common.ClusterStoreSpec{})
	shared.Name = "annotated"
	suite.For(t).Create(shared)
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	own := operatortest.ExternalSecret(ns, "own", "GCPSecretManager", "annotated", "wages-db", "password")
	suite.For(t).Create(own)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "shared", "ClusterGCPSecretManager", "annotated", "wages-db", "password"))
	readAs := func(name, account string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			caller := ""
			for _, c := range srv.Calls() {
				if c.Method == "AccessSecretVersion" && c.Caller == account+domain {
					caller = account
				}
			}
			return cmp.Diff([]string{"one", account}, []string{suite.For(t).In(ns).Data(name)["password"], caller})
		})
	}
	readAs("shared", bank)
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False "+common.ReasonStoreAuthFailed, suite.For(t).Ready(newStore(ns, "annotated", v1alpha1.GCPSpec{})))
	})
	account := annotated(ns, "annotated", "")
	for _, email := range []string{ns, next} {
		suite.For(t).Update(account, func() { account.Annotations["iam.gke.io/gcp-service-account"] = email + domain })
		controlplane.Eventually(t, func() string {
			for _, c := range srv.Calls() {
				if c.Method == emulator.MethodImpersonate && c.Name == email+domain+":generateAccessToken" {
					return ""
				}
			}
			return "no login as " + email
		})
		suite.For(t).Refresh(own, email)
		readAs("own", email)
	}
}

// TestOwnAccount logs in as the operator's own ServiceAccount, with a token for the audience that a cluster store names. Such a store is
// refused with an audience of the API server, and a namespaced store always.
func TestOwnAccount(t *testing.T) {
	const (
		ns      = "own-account"
		own     = "spec.auth.workloadIdentity.operatorServiceAccount: "
		invalid = common.ReasonStoreInvalidSpec
	)
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{"system:serviceaccount:provider-gcp:provider-gcp"}})
	srv.Put("own-db", []byte(`{"password":"one"}`))
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	spec := func(audience string) v1alpha1.GCPSpec {
		return v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byOperator(audience)}
	}
	calls := func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			if c.Method == "AccessSecretVersion" || c.Method == emulator.MethodExchange {
				all = append(all, c.Method)
			}
		}
		return all
	}
	suite.BadStores(t, ns, map[string]operatortest.BadStore{
		"Namespaced": {Why: "A namespaced store does not get the operator's own ServiceAccount.", Store: newStore(ns, "", spec(poolProvider)), Want: invalid, Message: own + "a namespaced store is not allowed"},
		"APIServer":  {Why: "A token that the API server accepts is never sent.", Store: newClusterStore(spec("https://kubernetes.default.svc"), common.ClusterStoreSpec{}), Want: invalid, Message: own + "the API server accepts tokens for audience"},
	}, calls)

	s := newClusterStore(spec(poolProvider), common.ClusterStoreSpec{})
	s.Name = ns
	suite.For(t).Create(s)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "db", "ClusterGCPSecretManager", ns, "own-db", "password"))
	suite.For(t).In(ns).WantSecret("db", "password", "one")
}

func TestBadAuth(t *testing.T) {
	const (
		ns       = "bad-auth"
		subject  = "system:serviceaccount:" + ns + ":default"
		deleted  = "deleted@test-project.iam.gserviceaccount.com"
		key      = "spec.auth.secretRef.secretAccessKeySecretRef: "
		workload = "spec.auth.workloadIdentity"
		invalid  = common.ReasonStoreInvalidSpec
		failed   = common.ReasonStoreAuthFailed
	)
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject, "system:serviceaccount:" + ns + ":stealing"}})
	srv.AddServiceAccount("owner@test-project.iam.gserviceaccount.com", "system:serviceaccount:bank:default")
	certified := httptest.NewTLSServer(nil) // The test only uses its certificate, which is not trusted.
	certified.Close()
	untrustedServer := startEmulator(t, emulator.WithTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	good, revoked := srv.Key(reader), srv.Key(deleted)
	srv.RevokeKeys(deleted)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{
		"key.json": string(good), "revoked": string(revoked), "stranger": string(untrustedServer.Key(reader)),
	})
	suite.For(t).Create(annotated(ns, "named", "owner"))
	suite.For(t).Create(annotated(ns, "stealing", "owner@test-project.iam.gserviceaccount.com"))
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)

	file := func(name, key string) *v1alpha1.GCPAuth {
		return &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: common.SecretKeySelector{Name: name, Key: key}}}
	}
	federated := func(change func(*v1alpha1.WorkloadIdentity)) *v1alpha1.GCPAuth {
		a := byToken("")
		change(a.WorkloadIdentity)
		return a
	}
	byAnnotation := func(namespace, name string) *v1alpha1.GCPAuth {
		return federated(func(w *v1alpha1.WorkloadIdentity) {
			w.ServiceAccountRef.Namespace, w.ServiceAccountRef.Name, w.ServiceAccountEmailFrom = namespace, name, v1alpha1.EmailFromAnnotation
		})
	}
	cases := map[string]struct {
		why               string
		spec              v1alpha1.GCPSpec
		want, wantMessage string
	}{
		"NoSecret":  {"The Secret of the key does not exist.", v1alpha1.GCPSpec{Auth: file("none", "key.json")}, invalid, key + "Secret bad-auth/none does not exist"},
		"Elsewhere": {"A namespaced store reads only Secrets in its own namespace.", v1alpha1.GCPSpec{Auth: byKey("bank")}, invalid, key + "Secret gcp must not name a namespace"},
		"Revoked":   {"The key was deleted.", v1alpha1.GCPSpec{Auth: file("gcp", "revoked")}, failed, key},

		"NoAccount":     {"The ServiceAccount does not exist.", v1alpha1.GCPSpec{Auth: federated(func(w *v1alpha1.WorkloadIdentity) { w.ServiceAccountRef.Name = "missing" })}, invalid, workload + ".serviceAccountRef: ServiceAccount bad-auth/missing does not exist"},
		"Impersonation": {"The ServiceAccount is not allowed to impersonate the service account.", v1alpha1.GCPSpec{Auth: byToken("owner@test-project.iam.gserviceaccount.com")}, failed, workload + ".serviceAccountEmail: the ServiceAccount has no permission to impersonate it"},
		"Bare":          {"The ServiceAccount has no annotation.", v1alpha1.GCPSpec{Auth: byAnnotation("", "default")}, invalid, workload + ".serviceAccountEmail: is not set, and ServiceAccount default has no annotation iam.gke.io/gcp-service-account"},
		"NoEmail":       {"The annotation of the ServiceAccount is no email.", v1alpha1.GCPSpec{Auth: byAnnotation("", "named")}, invalid, workload + ".serviceAccountRef: annotation iam.gke.io/gcp-service-account of ServiceAccount named is not valid"},
		"Another":       {"A namespaced store reads only annotations of ServiceAccounts in its own namespace.", v1alpha1.GCPSpec{Auth: byAnnotation("bank", "default")}, invalid, workload + ".serviceAccountRef: ServiceAccount default must not name a namespace"},
		"Stolen":        {"The annotation names the service account of another namespace.", v1alpha1.GCPSpec{Auth: byAnnotation("", "stealing")}, failed, workload + ".serviceAccountRef: annotation iam.gke.io/gcp-service-account: the ServiceAccount has no permission to impersonate it"},

		"Ambient":   {"A namespaced store does not get the operator's own identity.", v1alpha1.GCPSpec{}, invalid, "spec.auth: "},
		"UnknownCA": {"The server's certificate is not trusted.", v1alpha1.GCPSpec{Endpoint: untrustedServer.URL(), Auth: file("gcp", "stranger")}, common.ReasonStoreUnreachable, "check spec.endpoint"},
	}
	reads := func() []string {
		all := []string{}
		for _, c := range append(srv.Calls(), untrustedServer.Calls()...) {
			if c.Method == "AccessSecretVersion" {
				all = append(all, c.Name)
			}
		}
		return all
	}
	at := func(spec v1alpha1.GCPSpec) v1alpha1.GCPSpec {
		spec.ProjectID = emulator.DefaultProject
		if spec.Endpoint == "" {
			spec.Endpoint = srv.URL()
		}
		return spec
	}
	bad := map[string]operatortest.BadStore{}
	for name, tc := range cases {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newStore(ns, "", at(tc.spec)), Want: tc.want, Message: tc.wantMessage}
	}
	t.Run("GCPSecretManager", func(t *testing.T) { suite.BadStores(t, ns, bad, reads) })
	t.Run("ClusterGCPSecretManager", func(t *testing.T) {
		none := common.ClusterStoreSpec{}
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"NoNamespace":        {Why: "The reference to the Secret needs a namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: byKey("")}), none), Want: invalid, Message: key + "Secret gcp needs a namespace"},
			"AccountNoNamespace": {Why: "The reference to the ServiceAccount needs a namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: byToken("")}), none), Want: invalid, Message: workload + ".serviceAccountRef: ServiceAccount default needs a namespace"},
		}, reads)

		// The login of a store with authenticationScope ManifestNamespace cannot be checked, so the
		// ExternalSecret reports its failure.
		s := newClusterStore(at(v1alpha1.GCPSpec{Auth: byKey(ns)}), common.ClusterStoreSpec{ScopeSpec: common.ScopeSpec{AuthenticationScope: common.ScopeManifestNamespace}})
		s.Name = "scoped"
		suite.For(t).Create(s)
		es := operatortest.ExternalSecret(ns, "scoped", "ClusterGCPSecretManager", "scoped", "shop-db", "password")
		suite.For(t).Create(es)
		controlplane.Eventually(t, func() string {
			return cmp.Diff(`False SecretSyncedError Invalid: "shop-db" in ClusterGCPSecretManager "scoped": `+key+`Secret gcp must not name a namespace with authenticationScope ManifestNamespace; remove the namespace`, suite.For(t).Condition(es))
		})
	})
}
