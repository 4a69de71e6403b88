package controlplane

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const loopback = "127.0.0.1"

// Files in the folder of a control plane.
const (
	servingCertFile = "serving.crt"
	servingKeyFile  = "serving.key"
	accountKeyFile  = "serviceaccount.key"
	tokenFile       = "tokens.csv"
	adminConfigFile = "controller-manager.kubeconfig"
	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
)

// auditPolicy records the metadata of requests, never a body. Health checks are not recorded.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// credentials are those of the servers and the admin of a control plane.
type credentials struct {
	ca    []byte // It is PEM, and signs the API server's serving certificate.
	token string // It is the token of the cluster's admin.
}

// writeCredentials creates new credentials, and writes the files for the API server into dir.
func writeCredentials(dir string) (credentials, error) {
	crt, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, []string{"localhost"})
	if err != nil {
		return credentials{}, fmt.Errorf("cannot make a serving certificate: %w", err)
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return credentials{}, fmt.Errorf("cannot make a key for service account tokens: %w", err)
	}
	c := credentials{ca: crt, token: rand.Text()}
	for name, data := range map[string][]byte{
		servingCertFile: crt,
		servingKeyFile:  key,
		accountKeyFile:  accountKey,
		tokenFile:       []byte(c.token + `,admin,admin,"system:masters"` + "\n"),
		auditPolicyFile: []byte(auditPolicy),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return credentials{}, err
		}
	}
	return c, nil
}

// kubeconfig returns the content of a kubeconfig file for cfg, which must use a bearer token.
func kubeconfig(cfg *rest.Config, namespace string) ([]byte, error) {
	const name = "direct-secrets"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, InsecureSkipTLSVerify: cfg.Insecure, TLSServerName: cfg.ServerName,
	}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}
