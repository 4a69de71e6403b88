package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// tlsOf reads certificates and keys. The operator reconnects when the object that contains one of them changes.
func tlsOf(ctx context.Context, spec *v1alpha1.VaultServer, creds provider.Credentials) (*tls.Config, error) {
	c, err := provider.ServerTLS(ctx, creds, "spec", spec.Authorities)
	if err != nil {
		return nil, err
	}
	if t := spec.ClientTLS; t != nil {
		c.Certificates, err = certificateOf(ctx, creds, "spec.clientTLS.certSecretRef", t.CertSecretRef, "spec.clientTLS.keySecretRef", t.KeySecretRef)
		if err != nil {
			return nil, err
		}
	}
	if spec.Auth != nil && spec.Auth.Cert != nil {
		if spec.ClientTLS != nil {
			return nil, provider.NewError(provider.Invalid, "spec.clientTLS: a connection has only one client certificate, and spec.auth.cert sets it; remove clientTLS")
		}
		a := spec.Auth.Cert
		c.Certificates, err = certificateOf(ctx, creds, "spec.auth.cert.clientCert", a.ClientCert, "spec.auth.cert.secretRef", a.SecretRef)
	}
	return c, err
}

// authoritiesField returns the field with the authorities for the server's certificate, or the field to set.
func authoritiesField(spec *v1alpha1.VaultServer) string {
	if spec.CAProvider != nil {
		return "spec.caProvider"
	}
	return "spec.caBundle"
}

// untrusted is the error for a server's certificate that none of the authorities in field has signed.
type untrusted struct {
	error
	field string
}

// Unwrap returns what failed.
func (u untrusted) Unwrap() error { return u.error }

// trusting is a transport whose error for an untrusted certificate names the field to fix.
type trusting struct {
	next  http.RoundTripper
	field string
}

// RoundTrip implements http.RoundTripper.
func (t trusting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		err = untrusted{err, t.field}
	}
	return resp, err
}

func certificateOf(ctx context.Context, creds provider.Credentials, certField string, certRef common.SecretKeySelector, keyField string, keyRef common.SecretKeySelector) ([]tls.Certificate, error) {
	cert, err := secretAt(ctx, creds, certField, certRef)
	if err != nil {
		return nil, err
	}
	key, err := secretAt(ctx, creds, keyField, keyRef)
	if err != nil {
		return nil, err
	}
	pair, err := provider.KeyPair(cert, key)
	if err != nil {
		return nil, provider.Field(certField+" and "+keyField, err)
	}
	return []tls.Certificate{pair}, nil
}
