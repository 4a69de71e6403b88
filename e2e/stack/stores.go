package stack

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// AWSStore creates an AWSSecretsManager that reads the emulator, with the Secret that holds its
// credentials.
func (s *Stack) AWSStore(ctx context.Context, namespace, name string, change ...func(*awsv1.AWSSecretsManager)) error {
	store, credentials := &awsv1.AWSSecretsManager{}, secret(namespace, name+"-credentials", map[string]string{"id": AccessKeyID, "secret": SecretAccessKey})
	store.Spec.Region = Region
	store.Spec.Endpoint = s.AWS.URL()
	store.Spec.Auth = &awsv1.AWSAuth{SecretRef: &awsv1.AWSSecretRef{
		AccessKeyIDSecretRef:     v1alpha1.SecretKeySelector{Name: credentials.Name, Key: "id"},
		SecretAccessKeySecretRef: v1alpha1.SecretKeySelector{Name: credentials.Name, Key: "secret"},
	}}
	return createStore(ctx, s, name, store, credentials, change)
}

// VaultStore creates a VaultKV that reads a KV v2 engine of a Vault, with the Secret that holds its token.
func (s *Stack) VaultStore(ctx context.Context, namespace, name, server, path, token string, change ...func(*vaultv1.VaultKV)) error {
	store, credentials := &vaultv1.VaultKV{}, secret(namespace, name+"-token", map[string]string{"token": token})
	store.Spec.Server, store.Spec.Path = server, path
	store.Spec.Auth = &vaultv1.VaultAuth{TokenSecretRef: &v1alpha1.SecretKeySelector{Name: credentials.Name, Key: "token"}}
	return createStore(ctx, s, name, store, credentials, change)
}

// GCPStore creates a GCPSecretManager that reads a project at an endpoint, with the Secret that holds the key of its
// service account.
func (s *Stack) GCPStore(ctx context.Context, namespace, name, endpoint, project string, key []byte, change ...func(*gcpv1.GCPSecretManager)) error {
	store, credentials := &gcpv1.GCPSecretManager{}, secret(namespace, name+"-key", map[string]string{"key.json": string(key)})
	store.Spec.Endpoint, store.Spec.ProjectID = endpoint, project
	store.Spec.Auth = &gcpv1.GCPAuth{SecretRef: &gcpv1.GCPSecretRef{
		SecretAccessKeySecretRef: v1alpha1.SecretKeySelector{Name: credentials.Name, Key: "key.json"},
	}}
	return createStore(ctx, s, name, store, credentials, change)
}

func secret(namespace, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
}

func createStore[S client.Object](ctx context.Context, s *Stack, name string, store S, credentials *corev1.Secret, change []func(S)) error {
	store.SetNamespace(credentials.Namespace)
	store.SetName(name)
	for _, f := range change {
		f(store)
	}
	if err := s.Admin.Create(ctx, credentials); err != nil {
		return err
	}
	return s.Admin.Create(ctx, store)
}
