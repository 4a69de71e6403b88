package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// otherPrivate returns a key file with the private key of another key.
func otherPrivate(t *testing.T, file []byte) []byte {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return with(t, file, "private_key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

// with replaces a field of a key file.
func with(t *testing.T, file []byte, field, value string) []byte {
	t.Helper()
	fields := map[string]string{}
	if err := json.Unmarshal(file, &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = value
	changed, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestBadAuth(t *testing.T) {
	const (
		ns       = "bad-auth"
		subject  = "system:serviceaccount:" + ns + ":default"
		guarded  = poolProvider + "-guarded"
		deleted  = "deleted@test-project.iam.gserviceaccount.com"
		key      = "spec.auth.secretRef.secretAccessKeySecretRef: "
		workload = "spec.auth.workloadIdentity"
		invalid  = common.ReasonStoreInvalidSpec
		failed   = common.ReasonStoreAuthFailed
	)
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject}})
	srv.AddProvider(emulator.Provider{Audience: guarded, Subjects: []string{"system:serviceaccount:bank:default"}})
	srv.AddServiceAccount("owner@test-project.iam.gserviceaccount.com", "system:serviceaccount:bank:default")
	certified := httptest.NewTLSServer(nil) // The test only uses its certificate, which is not trusted.
	certified.Close()
	untrustedServer := startEmulator(t, emulator.WithTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	good, revoked := srv.Key(reader), srv.Key(deleted)
	srv.RevokeKeys(deleted)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{
		"key.json": string(good), "revoked": string(revoked), "garbage": "c4n4ry", "cut": string(bytes.TrimRight(good, "}")),
		"user": string(with(t, good, "type", "authorized_user")), "no-email": string(with(t, good, "client_email", "")),
		"no-private": string(with(t, good, "private_key", "c4n4ry")), "other-private": string(otherPrivate(t, good)),
		"other-account": string(with(t, good, "client_email", "unknown@test-project.iam.gserviceaccount.com")),
		"stranger":      string(untrustedServer.Key(reader)),
		"elsewhere":     string(with(t, good, "token_uri", "https://evil.example/token")),
	})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)

	file := func(name, key string) *v1alpha1.GCPAuth {
		return &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: common.SecretKeySelector{Name: name, Key: key}}}
	}
	federated := func(change func(*v1alpha1.WorkloadIdentity)) *v1alpha1.GCPAuth {
		a := byToken("")
		change(a.WorkloadIdentity)
		return a
	}
	cases := map[string]struct {
		why               string
		spec              v1alpha1.GCPSpec
		want, wantMessage string
	}{
		"NoSecret":     {"The Secret of the key does not exist.", v1alpha1.GCPSpec{Auth: file("none", "key.json")}, invalid, key + "Secret bad-auth/none does not exist"},
		"NoKey":        {"The Secret has no such key.", v1alpha1.GCPSpec{Auth: file("gcp", "none")}, invalid, key + `Secret bad-auth/gcp has no value under key "none"`},
		"Elsewhere":    {"A namespaced store reads only Secrets in its own namespace.", v1alpha1.GCPSpec{Auth: byKey("bank")}, invalid, key + "Secret gcp must not name a namespace"},
		"Garbage":      {"The key is not JSON.", v1alpha1.GCPSpec{Auth: file("gcp", "garbage")}, invalid, key},
		"Cut":          {"The JSON of the key is truncated.", v1alpha1.GCPSpec{Auth: file("gcp", "cut")}, invalid, key},
		"User":         {"The key is of another type.", v1alpha1.GCPSpec{Auth: file("gcp", "user")}, invalid, key + "its type is not service_account"},
		"NoEmail":      {"The key names no service account.", v1alpha1.GCPSpec{Auth: file("gcp", "no-email")}, invalid, key + "it has no client_email"},
		"NoPrivate":    {"The key contains no private key.", v1alpha1.GCPSpec{Auth: file("gcp", "no-private")}, invalid, key + "its private_key is not PEM"},
		"OtherPrivate": {"The private key is that of another key.", v1alpha1.GCPSpec{Auth: file("gcp", "other-private")}, failed, key},
		"OtherAccount": {"The service account of the key does not exist.", v1alpha1.GCPSpec{Auth: file("gcp", "other-account")}, failed, key},
		"Revoked":      {"The key was deleted.", v1alpha1.GCPSpec{Auth: file("gcp", "revoked")}, failed, key},
		"TokenURI":     {"The key has another token URI.", v1alpha1.GCPSpec{Auth: file("gcp", "elsewhere")}, invalid, key + "its token_uri is not"},

		"NoAccount": {"The ServiceAccount does not exist.", v1alpha1.GCPSpec{Auth: federated(func(w *v1alpha1.WorkloadIdentity) { w.ServiceAccountRef.Name = "missing" })}, invalid, workload + ".serviceAccountRef: ServiceAccount bad-auth/missing does not exist"},
		"NoPool":    {"The pool does not exist.", v1alpha1.GCPSpec{Auth: federated(func(w *v1alpha1.WorkloadIdentity) { w.Audience = poolProvider + "-none" })}, failed, workload + ".audience: "},
		"TokenAudience": {"The ServiceAccount token has another audience.", v1alpha1.GCPSpec{Auth: federated(func(w *v1alpha1.WorkloadIdentity) {
			w.ServiceAccountRef.Audiences = []string{"https://elsewhere.example"}
		})}, failed, "audience (or serviceAccountRef.audiences)"},
		"Rejected":      {"The pool does not accept this ServiceAccount.", v1alpha1.GCPSpec{Auth: federated(func(w *v1alpha1.WorkloadIdentity) { w.Audience = guarded })}, failed, workload + ".serviceAccountRef: "},
		"Impersonation": {"The ServiceAccount is not allowed to impersonate the service account.", v1alpha1.GCPSpec{Auth: byToken("owner@test-project.iam.gserviceaccount.com")}, failed, workload + ".serviceAccountEmail: the ServiceAccount has no permission to impersonate it"},
		"NoEmailOwner":  {"The service account to impersonate does not exist.", v1alpha1.GCPSpec{Auth: byToken("unknown@test-project.iam.gserviceaccount.com")}, failed, workload + ".serviceAccountEmail: "},

		"Ambient":     {"A namespaced store does not get the operator's own identity.", v1alpha1.GCPSpec{}, invalid, "spec.auth: "},
		"UnknownCA":   {"The server's certificate is not trusted.", v1alpha1.GCPSpec{Endpoint: untrustedServer.URL(), Auth: file("gcp", "stranger")}, common.ReasonStoreUnreachable, "check spec.endpoint"},
		"UnknownCAWI": {"The certificate of the server that exchanges the token is not trusted.", v1alpha1.GCPSpec{Endpoint: untrustedServer.URL(), Auth: byToken("")}, common.ReasonStoreUnreachable, "check spec.endpoint"},
		"PlainHTTP":   {"Plain HTTP to another host is rejected.", v1alpha1.GCPSpec{Endpoint: "http://gcp.example", Auth: file("gcp", "key.json")}, invalid, "spec.endpoint: "},
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
		nowhere := federated(func(w *v1alpha1.WorkloadIdentity) { w.ServiceAccountRef.Namespace = "nowhere" })
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"NoNamespace":        {Why: "The reference to the Secret needs a namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: byKey("")}), none), Want: invalid, Message: key + "Secret gcp needs a namespace"},
			"AccountNoNamespace": {Why: "The reference to the ServiceAccount needs a namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: byToken("")}), none), Want: invalid, Message: workload + ".serviceAccountRef: ServiceAccount default needs a namespace"},
			"NoSecret":           {Why: "The Secret does not exist in that namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: byKey("nowhere")}), none), Want: invalid, Message: key + "Secret nowhere/gcp does not exist"},
			"NoAccount":          {Why: "The ServiceAccount does not exist in that namespace.", Store: newClusterStore(at(v1alpha1.GCPSpec{Auth: nowhere}), none), Want: invalid, Message: workload + ".serviceAccountRef: ServiceAccount nowhere/default does not exist"},
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
