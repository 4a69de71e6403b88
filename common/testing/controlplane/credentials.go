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

// auditPolicy records who did what, never a body. Health checks are left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// credentials are what the servers and the first user of a control plane need.
type credentials struct {
	ca    []byte // PEM, signs the API server's serving certificate
	token string // of the cluster's admin
}

// writeCredentials makes new credentials and writes the files that the API server
// reads into dir.
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

// kubeconfig writes cfg, which must use a bearer token, as a kubeconfig file's content.
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
