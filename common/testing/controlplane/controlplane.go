package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// etcdData is the folder of etcd's data in the folder of a control plane.
const etcdData = "etcd"

// startAttempts limits the attempts to start: a port that was free can be taken before a server binds it.
const startAttempts = 3

// A ControlPlane is a running control plane. Its methods are safe for concurrent use, except Stop and InstallCRDs.
type ControlPlane struct {
	settings settings
	assets   map[string]string // Paths of binaries by name.
	dir      string
	config   *rest.Config

	etcd              *process
	apiServer         *process
	controllerManager *process
}

// Start starts a control plane and returns when it serves: RBAC is set up, the namespace default exists, and
// controllers run if there is a controller manager. ctx limits only the start. The servers run until Stop, or until
// this process ends.
func Start(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	assets, err := findAssets(s.optional...)
	if err != nil {
		return nil, err
	}

	var failed error
	for range startAttempts {
		c := &ControlPlane{settings: s, assets: assets}
		err := c.start(ctx)
		if err == nil {
			return c, nil
		}
		failed = errors.Join(err, c.Stop())
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("cannot start a control plane: %w", failed)
}

// Attach returns a ControlPlane for a running cluster. Stop does not stop it.
func Attach(cluster *rest.Config) (*ControlPlane, error) {
	c := &ControlPlane{config: rest.CopyConfig(cluster), assets: map[string]string{}}
	c.config.QPS = -1
	return c, rest.LoadTLSFiles(c.config) // Kubeconfigs for ServiceAccounts contain the CA.
}

// attached reports whether the servers were not started by this package.
func (c *ControlPlane) attached() bool { return c.apiServer == nil }

func (c *ControlPlane) start(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return err
	}
	c.dir = dir
	if of := c.settings.dataOf; of != nil {
		if err := c.copyData(of); err != nil {
			return fmt.Errorf("cannot copy the data of the other control plane: %w", err)
		}
	}
	creds, err := writeCredentials(dir)
	if err != nil {
		return err
	}
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}

	etcdURL := "http://" + net.JoinHostPort(loopback, ports[0])
	if err := c.startEtcd(etcdURL, "http://"+net.JoinHostPort(loopback, ports[1])); err != nil {
		return err
	}
	c.config = &rest.Config{
		Host:            "https://" + net.JoinHostPort(loopback, ports[2]),
		BearerToken:     creds.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: creds.ca},
		QPS:             -1, // The API server's own priority and fairness limits requests.
	}
	if err := c.startAPIServer(ctx, etcdURL, ports[2]); err != nil {
		return err
	}
	if _, err := c.applyCRDs(ctx, c.settings.crds); err != nil {
		return err
	}
	return c.startControllerManager(ctx)
}

func (c *ControlPlane) startEtcd(clientURL, peerURL string) (err error) {
	// The API server waits for etcd, so this function does not need to.
	c.etcd, err = startProcess(c.assets[etcdBinary], c.dir, c.settings.output,
		"--data-dir="+filepath.Join(c.dir, etcdData),
		"--listen-client-urls="+clientURL,
		"--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL,
		"--unsafe-no-fsync", // The data need not survive a power failure.
		"--log-level=warn",
	)
	return err
}

func (c *ControlPlane) startAPIServer(ctx context.Context, etcdURL, port string) (err error) {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + loopback,
		"--secure-port=" + port,
		"--tls-cert-file=" + file(servingCertFile),
		"--tls-private-key-file=" + file(servingKeyFile),
		"--cert-dir=" + c.dir,
		"--token-auth-file=" + file(tokenFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + file(accountKeyFile),
		"--service-account-key-file=" + file(accountKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
	}
	if c.settings.audit {
		args = append(args, "--audit-policy-file="+file(auditPolicyFile), "--audit-log-path="+file(auditLogFile),
			"--audit-log-mode=blocking") // A request is recorded before its answer is sent.
	}
	args = append(args, c.settings.apiServer...)
	c.apiServer, err = startProcess(c.assets[apiServerBinary], c.dir, c.settings.output, args...)
	if err != nil {
		return err
	}

	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return c.apiServer.waitFor(ctx, func(ctx context.Context) error {
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// controllers are those that affect the objects of this project. There are no nodes and no pods.
const controllers = "garbage-collector-controller,namespace-controller,serviceaccount-controller,serviceaccount-token-controller," +
	"resourcequota-controller,clusterrole-aggregation-controller"

// HasControllerManager reports whether there is a garbage collector; see WithOptionalControllerManager.
func (c *ControlPlane) HasControllerManager() bool {
	return c.attached() || c.assets[controllerManagerBinary] != ""
}

func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	if c.attached() || !c.HasControllerManager() {
		return nil
	}
	admin, err := c.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.dir, adminConfigFile)
	if err := os.WriteFile(kubeconfig, admin, 0o600); err != nil {
		return err
	}
	c.controllerManager, err = startProcess(c.assets[controllerManagerBinary], c.dir, c.settings.output,
		"--kubeconfig="+kubeconfig,
		"--controllers="+controllers,
		"--service-account-private-key-file="+filepath.Join(c.dir, accountKeyFile),
		"--leader-elect=false",
		"--secure-port=0",
		// A benchmark deletes thousands of objects at its end.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	)
	if err != nil {
		return err
	}

	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return c.controllerManager.waitFor(ctx, func(ctx context.Context) error {
		_, err := clients.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// Config returns a configuration for the cluster's admin, without a client-side rate limit.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// AdminKubeconfig returns the content of a kubeconfig file for the cluster's admin.
func (c *ControlPlane) AdminKubeconfig() ([]byte, error) {
	return kubeconfig(c.config, corev1.NamespaceDefault)
}

// Stop stops the servers that Start started, and removes their data and the audit log.
func (c *ControlPlane) Stop() error {
	c.controllerManager.kill()
	c.apiServer.kill()
	c.etcd.kill()
	if c.dir == "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}
