//go:build !long

package scenarios

import "github.com/direct-secrets/direct-secrets/e2e/stack"

// builtModules are the modules that the scenarios run.
var builtModules = []string{stack.ProviderAWS, stack.ProviderGCP, stack.ProviderVault, stack.GeneratorPassword}

// furtherKindCases are cases of TestEveryKind that need a cluster of their own.
var furtherKindCases map[string]kindCase
