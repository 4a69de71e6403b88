package command

import (
	"fmt"
	"io"
	"net/http"
	"os"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/reader"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/migrate/output"
	"github.com/direct-secrets/direct-secrets/migrate/strict"
)

// A session is a connection to the cluster that the flags select.
type session struct {
	*reader.Reader

	// namespace is empty for all namespaces.
	namespace string
}

// connect opens a session. It makes no requests.
func (o *options) connect() (*session, error) {
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 50, 300 // The same values as kubectl.
	if cfg.Proxy == nil {
		cfg.Proxy = http.ProxyFromEnvironment // Else a plain connection is the default transport, which a build of a kustomization cuts off.
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := strict.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	s := &session{Reader: &reader.Reader{Client: c, Discovery: d, OperatorNamespace: o.operatorNamespace, Progress: o.progress}}
	if o.allNamespaces {
		return s, nil
	}
	if s.namespace, _, err = o.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("cannot determine the namespace: %w", err)
	}
	return s, nil
}

// progress returns a function that shows on a terminal what is being read. An empty text clears the line.
func progress(w io.Writer) func(string) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(string) {}
	}
	const erase = "\r\x1b[K"
	return func(text string) {
		if text != "" {
			text = "Reading " + output.Clean(text) + " ..."
		}
		_, _ = fmt.Fprint(w, erase, text)
	}
}
