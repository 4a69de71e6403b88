package kv

import (
	"context"
	"crypto/tls"
	"crypto/x509"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// tlsOf reads certificates and keys. The operator connects anew when one of their Secrets changes.
func tlsOf(ctx context.Context, spec *v1alpha1.VaultKVSpec, creds store.Credentials) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = authoritiesOf(ctx, spec, creds); err != nil {
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
			return nil, store.NewError(store.Invalid, "spec.clientTLS: a connection shows one certificate only, and that is spec.auth.cert; remove clientTLS")
		}
		a := spec.Auth.Cert
		c.Certificates, err = certificateOf(ctx, creds, "spec.auth.cert.clientCert", a.ClientCert, "spec.auth.cert.secretRef", a.SecretRef)
	}
	return c, err
}

// authoritiesOf returns who may sign the server's certificate; nil for those of the system.
func authoritiesOf(ctx context.Context, spec *v1alpha1.VaultKVSpec, creds store.Credentials) (*x509.CertPool, error) {
	field, pem := "spec.caBundle", spec.CABundle
	switch p := spec.CAProvider; {
	case p == nil && len(pem) == 0:
		return nil, nil
	case p != nil && len(pem) > 0:
		return nil, store.NewError(store.Invalid, "spec.caProvider: set either caBundle or caProvider")
	case p != nil && p.Type != v1alpha1.CAProviderSecret:
		return nil, store.NewError(store.Invalid, "spec.caProvider.type: only a Secret can be read; put the certificates into a Secret, or into spec.caBundle")
	case p != nil:
		var err error
		field = "spec.caProvider"
		if pem, err = secretAt(ctx, creds, field, p.SecretKeySelector); err != nil {
			return nil, err
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, store.NewError(store.Invalid, "%s: holds no certificate in PEM form", field)
	}
	return pool, nil
}

func certificateOf(ctx context.Context, creds store.Credentials, certField string, certRef common.SecretKeySelector, keyField string, keyRef common.SecretKeySelector) ([]tls.Certificate, error) {
	cert, err := secretAt(ctx, creds, certField, certRef)
	if err != nil {
		return nil, err
	}
	key, err := secretAt(ctx, creds, keyField, keyRef)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, store.NewError(store.Invalid, "%s and %s: are no certificate and its private key in PEM form", certField, keyField)
	}
	return []tls.Certificate{pair}, nil
}
