// Package controlplane runs a real Kubernetes control plane on this machine: etcd,
// kube-apiserver with RBAC on, and kube-controller-manager. Tests, benchmarks and the
// demo use it. It needs no container engine; `make controlplane` builds the binaries.
//
// A test package starts one for all its tests:
//
//	var cluster *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		controlplane.Main(m, func(c *controlplane.ControlPlane) error { cluster = c; return nil })
//	}
package controlplane
