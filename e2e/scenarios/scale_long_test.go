//go:build long

package scenarios

import "github.com/direct-secrets/direct-secrets/e2e/stack"

// builtModules are the modules that the scenarios run.
var builtModules = stack.Modules()

// furtherKindCases are cases of TestEveryKind that need a cluster of their own.
var furtherKindCases = map[string]kindCase{
	"AllNamespaces": {"Namespaced Kinds in many namespaces, with ClusterRoles.", "every-all", 50, false, false},
	"ClusterKinds":  {"The cluster Kinds, which need ClusterRoles.", "every-cluster", 1, false, true},
}
