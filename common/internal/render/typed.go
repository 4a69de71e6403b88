package render

import (
	"crypto/tls"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxPrivateKey limits the size of a private key that is checked, in bytes of PEM. It is far more than a key of
// 16,384 bits needs. The time of the check grows with the square of the size.
const maxPrivateKey = 32 << 10

// CheckType returns an error if data is not valid for a Secret of a type, so that the user reads it in the terms of
// the spec and not in those of the API server. The rules are those of Kubernetes
// (kubernetes.io/docs/concepts/configuration/secret/#secret-types). In addition, it checks that certificate and key
// of a TLS Secret match, which the API server does not.
func CheckType(t corev1.SecretType, data map[string][]byte) *provider.Error {
	need := func(keys ...string) *provider.Error {
		for _, k := range keys {
			if _, ok := data[k]; !ok {
				return wrongType(t, "it needs the key %q", k)
			}
		}
		return nil
	}
	switch t { //nolint:exhaustive // The others have no rules.
	case corev1.SecretTypeTLS:
		if err := need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey); err != nil {
			return err
		}
		if n := len(data[corev1.TLSPrivateKeyKey]); n > maxPrivateKey {
			return wrongType(t, "the value of the key %q has %d bytes, and only values of at most %d are checked", corev1.TLSPrivateKeyKey, n, maxPrivateKey)
		}
		if _, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
			return wrongType(t, "the keys %q and %q are not a PEM certificate and its private key", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		}
	case corev1.SecretTypeDockerConfigJson:
		return needJSON(t, data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeDockercfg:
		return needJSON(t, data, corev1.DockerConfigKey)
	case corev1.SecretTypeBasicAuth:
		_, user := data[corev1.BasicAuthUsernameKey]
		_, password := data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return wrongType(t, "it needs the key %q or %q", corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(data[corev1.SSHAuthPrivateKey]) == 0 {
			return wrongType(t, "it needs the key %q with a value", corev1.SSHAuthPrivateKey)
		}
	}
	return nil
}

func needJSON(t corev1.SecretType, data map[string][]byte, key string) *provider.Error {
	v, ok := data[key]
	if !ok {
		return wrongType(t, "it needs the key %q", key)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil || object == nil {
		return wrongType(t, "the value of the key %q is not a JSON object", key)
	}
	return nil
}

func wrongType(t corev1.SecretType, format string, args ...any) *provider.Error {
	return provider.NewError(provider.Invalid, "the content is not valid for a Secret of type %s: "+format, append([]any{t}, args...)...)
}
