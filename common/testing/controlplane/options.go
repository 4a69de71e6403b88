package controlplane

import (
	"io"
	"sync"
)

// An Option configures the start of a control plane.
type Option func(*settings)

type settings struct {
	optional  []string
	crds      [][]byte
	apiServer []string
	output    io.Writer
	audit     bool
	dataOf    *ControlPlane
}

// WithOptionalControllerManager also starts the control plane if kube-controller-manager is not found. Then there is
// no garbage collection, and a deleted namespace stays Terminating.
func WithOptionalControllerManager() Option {
	return func(s *settings) { s.optional = append(s.optional, controllerManagerBinary) }
}

// WithCRDs installs CustomResourceDefinitions, each a manifest of YAML documents, before the controller manager
// starts. It avoids the restart of InstallCRDs.
func WithCRDs(manifests ...[]byte) Option {
	return func(s *settings) { s.crds = append(s.crds, manifests...) }
}

// WithAPIServerArg passes --key=value to kube-apiserver, once for each value. It follows the flags of this package,
// so it overrides them.
func WithAPIServerArg(key string, values ...string) Option {
	return func(s *settings) {
		for _, v := range values {
			s.apiServer = append(s.apiServer, "--"+key+"="+v)
		}
	}
}

// WithOutput copies the output of the servers to w. Without it, the output is stored in files until Stop, and an
// error at the start shows its end.
func WithOutput(w io.Writer) Option {
	return func(s *settings) { s.output = &serialWriter{to: w} }
}

// A serialWriter lets several servers share one writer.
type serialWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes p without interleaving.
func (w *serialWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// WithAuditLog makes the API server record each completed request without its body: user, user agent, verb, object
// and answer. AuditLog returns the file, and ReadAuditLog reads it.
func WithAuditLog() Option {
	return func(s *settings) { s.audit = true }
}
