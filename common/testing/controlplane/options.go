package controlplane

import (
	"io"
	"sync"
)

// An Option changes how a control plane is started.
type Option func(*settings)

type settings struct {
	optional  []string
	crds      [][]byte
	apiServer []string
	output    io.Writer
	audit     bool
}

// WithOptionalControllerManager starts the control plane also where kube-controller-manager is not found. Then there is no
// garbage collection, and a namespace that is deleted stays in the phase Terminating.
func WithOptionalControllerManager() Option {
	return func(s *settings) { s.optional = append(s.optional, controllerManagerBinary) }
}

// WithCRDs installs CustomResourceDefinitions, YAML documents each, before the
// controller manager starts. It saves the restart that InstallCRDs needs.
func WithCRDs(manifests ...[]byte) Option {
	return func(s *settings) { s.crds = append(s.crds, manifests...) }
}

// WithAPIServerArg passes --key=value to kube-apiserver, once for each value. It comes
// after the flags that this package sets, so it wins over them.
func WithAPIServerArg(key string, values ...string) Option {
	return func(s *settings) {
		for _, v := range values {
			s.apiServer = append(s.apiServer, "--"+key+"="+v)
		}
	}
}

// WithOutput copies what the servers print to w. Without it, it is kept in files until
// Stop, and an error at the start shows its end.
func WithOutput(w io.Writer) Option {
	return func(s *settings) { s.output = &serialWriter{to: w} }
}

// A serialWriter lets several servers write to one writer.
type serialWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes p in one piece.
func (w *serialWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// WithAuditLog has the API server record each completed request, without its body:
// who, with which user agent, did what to which object, and the answer. AuditLog
// returns the file and ReadAuditLog reads it.
func WithAuditLog() Option {
	return func(s *settings) { s.audit = true }
}
