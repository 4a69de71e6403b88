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
// envtest of controller-runtime (v0.25.2) does not serve instead. It leaves etcd and kube-apiserver running where a test
// process ends without Stop, as it does at the timeout of `go test`, and gives no access to how it starts them. It has no
// kube-controller-manager, so that starting a process and waiting for it would stay here. It takes ports that the system
// also gives to clients, and 1.3 seconds instead of 0.1 to stop.
package controlplane
