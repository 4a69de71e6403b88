//go:build long

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// untyped is the last commit whose modules store group, class and purpose of a contribution in its key, and the
// class of an error in its message.
const untyped = "7f0680439cbb7bc3845644bf05418fac8cb5851a"

// withItsFlags runs a program without the flags that it does not have yet.
const withItsFlags = `#!/bin/bash
known=$(%[1]q -h 2>&1)
for flag; do
	name=${flag%%%%=*}
	[[ $known =~ $'\n'"  -${name#--}"[[:space:]] ]] && flags+=("$flag")
done
exec %[1]q "${flags[@]}"
`

// TestMixedVersions makes modules with and without typed contributions work on the same objects.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	tree := checkout(t, untyped)
	old := map[string]string{}
	for _, module := range mixedModules {
		binary := filepath.Join(tree, module+".bin")
		must(t, buildIn(filepath.Join(tree, module), binary))
		old[module] = filepath.Join(tree, module+".sh")
		must(t, os.WriteFile(old[module], fmt.Appendf(nil, withItsFlags, binary), 0o700)) //nolint:gosec // It is a program.
	}
	cases := map[string]struct {
		reason string
		old    []string
	}{
		"contributors": {"old modules contribute to an object of a new one", []string{stack.ProviderVault, stack.GeneratorPassword}},
		"leader":       {"new modules contribute to an object of an old one", []string{stack.ProviderAWS}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			m := newMix(t, "versions-"+name)
			m.put("es", 1)
			m.create("es", often)
			for _, module := range mixedModules {
				if slices.Contains(tc.old, module) {
					m.processes[module] = startBinary(t, old[module], module, m.ns, m.flags()...)
				} else {
					m.run(module)
				}
			}
			m.inStep("es", "es", 1, 1)
			m.put("es", 2)
			m.inStep("es", "es", 2, 2)
			m.refresh("es")
			m.inStep("es", "es", 2, 2)

			// The error of a contributor is only in its entry of status.parts.
			m.vault.Policy("reader", fmt.Sprintf("path %q { capabilities = [\"deny\"] }", vaultMount+"/*"))
			m.refresh("es")
			m.wantFailed("es", v1alpha1.ReasonSecretSyncedError, m.key("es"), "VaultKV")
			m.vault.Policy("reader", fmt.Sprintf("path %q { capabilities = [\"read\", \"list\"] }", vaultMount+"/*"))
			m.put("es", 2)
			m.inStep("es", "es", 2, 2)

			m.forget("es")
			m.refresh("es")
			m.wantFailed("es", v1alpha1.ReasonSecretSyncedError, m.key("es"))
			m.put("es", 3)
			m.inStep("es", "es", 3, 3)

			// The new versions replace the old ones, and use what these have stored.
			for _, module := range tc.old {
				m.kill(module)
				m.run(module)
			}
			m.put("es", 4)
			m.inStep("es", "es", 4, 4)
			m.refresh("es")
			m.inStep("es", "es", 4, 4)
			m.history.end(t, m.ns)
			m.whole("es")
		})
	}
}
