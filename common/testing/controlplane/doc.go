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
//
// It does not use envtest of controller-runtime (v0.25.2). envtest leaves etcd and kube-apiserver running if a test
// process ends without Stop, as at the timeout of `go test`, and does not allow other ways to start them. It has no
// kube-controller-manager, so this package would still have to start a process and wait for it. It uses ports that
// the system also gives to clients, and takes 1.3 seconds instead of 0.1 to stop.
package controlplane
