package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// KubernetesSecrets is a store: the Secrets of one namespace of this or of another cluster, used as one identity.
//
// +direct-secrets:store:shortName=ks
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server.url`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.remoteNamespace`

// KubernetesSecretsSpec describes where the secrets are, and how to log in.
//
// +kubebuilder:validation:XValidation:rule="has(self.auth) != has(self.authRef)",message="set either auth or authRef"
// +kubebuilder:validation:XValidation:rule="!has(self.authRef) || !has(self.server)",message="the kubeconfig of authRef contains the server: remove server"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || !has(self.auth) || !has(self.auth.serviceAccount) || (has(self.auth.serviceAccount.audiences) && size(self.auth.serviceAccount.audiences) > 0)",message="auth.serviceAccount.audiences is required with server: another cluster must not get a token that this one accepts"
type KubernetesSecretsSpec struct {
	common.StoreSpec `json:",inline"`

	// Namespace of the Secrets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	RemoteNamespace string `json:"remoteNamespace"`

	// API server of another cluster. Default: the API server of this cluster.
	// +optional
	Server *KubernetesServer `json:"server,omitempty"`

	// How to log in. The operator's own identity is never used.
	// +optional
	Auth *KubernetesAuth `json:"auth,omitempty"`

	// Key of a Secret that holds a kubeconfig, which contains the server and how to log in. Certificates, keys and tokens must
	// be in it as data. Files, commands and plugins are rejected.
	// +optional
	AuthRef *common.SecretKeySelector `json:"authRef,omitempty"`
}

// KubernetesServer is an API server.
type KubernetesServer struct {
	// Address of the API server, for example https://10.0.0.1:6443. It must use https, except on the operator's own host
	// (127.0.0.1, localhost).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="url must be a URL, such as https://10.0.0.1:6443"
	URL string `json:"url"`

	common.Authorities `json:",inline"`
}

// KubernetesAuth selects how to log in.
//
// +kubebuilder:validation:XValidation:rule="[has(self.serviceAccount), has(self.token), has(self.cert)].exists_one(x, x)",message="set exactly one of serviceAccount, token and cert"
type KubernetesAuth struct {
	// A ServiceAccount of this cluster whose token is sent. With server, the other cluster must trust the issuer of these tokens,
	// and audiences is required. Default audience: that of this cluster's API server.
	// +optional
	ServiceAccount *common.ServiceAccountSelector `json:"serviceAccount,omitempty"`

	// A token, for example of a ServiceAccount of the other cluster.
	// +optional
	Token *KubernetesToken `json:"token,omitempty"`

	// A client certificate.
	// +optional
	Cert *KubernetesCert `json:"cert,omitempty"`
}

// KubernetesToken is a token to log in with.
type KubernetesToken struct {
	// Key of a Secret that holds the token.
	BearerToken common.SecretKeySelector `json:"bearerToken"`
}

// KubernetesCert is a client certificate to log in with.
type KubernetesCert struct {
	// Key of a Secret that holds the certificate in PEM form.
	ClientCert common.SecretKeySelector `json:"clientCert"`

	// Key of a Secret that holds the private key in PEM form.
	ClientKey common.SecretKeySelector `json:"clientKey"`
}
