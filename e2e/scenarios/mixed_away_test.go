//go:build long

package scenarios

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// TestMixedAway leaves out each of three modules from the start. The others report which one is missing and how
// to run it, and write nothing. When it starts, all objects are synced.
func TestMixedAway(t *testing.T) {
	t.Parallel()
	cases := []struct{ module, kind string }{
		{stack.ProviderAWS, "AWSSecretsManager"},
		{stack.ProviderVault, "VaultKV"},
		{stack.GeneratorPassword, "Password"},
	}
	var mixes []*mix
	for _, tc := range cases { // All cases wait at the same time.
		m := newMix(t, "mixed-without-"+tc.module)
		m.put("es", 1)
		m.run(slices.DeleteFunc(slices.Clone(mixedModules), func(module string) bool { return module == tc.module })...)
		m.create("es")
		mixes = append(mixes, m)
	}
	for i, tc := range cases {
		m := mixes[i]
		m.wantFailed("es", v1alpha1.ReasonProviderNotRunning, tc.kind, tc.module+".enabled=true")
		if s := getSecret(t, m.ns, "es"); s != nil {
			t.Errorf("without %s there is a Secret: %s", tc.module, half(newVersion(s, false).Data))
		}
	}
	for i, tc := range cases {
		m := mixes[i]
		m.run(tc.module)
		m.waitUntilInSync("es", "es", 1, 1)
		wantReady(t, m.ns, "es", v1alpha1.ReasonSecretSynced)
		m.history.end(t, m.ns)
		m.whole("es")
		if n := len(m.history.contents("es")); n != 1 {
			t.Errorf("without %s: the Secret held %d different contents, want 1", tc.module, n)
		}
	}
}

// TestMixedDown kills one module after the other, and requests new values meanwhile. The Secret stays unchanged
// until all modules can contribute.
func TestMixedDown(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-down")
	m.put("es", 0)
	m.create("es")
	m.run(mixedModules...)
	last := m.waitUntilInSync("es", "es", 0, 0)
	for i, module := range mixedModules {
		m.kill(module)
		m.put("es", i+1)
		m.refresh("es")
		asked := fmt.Sprint(m.requests)
		eventually(t, func() string { // The other modules have contributed.
			for _, kept := range []struct{ of, name string }{{stack.ProviderVault, readsName("es")}, {stack.GeneratorPassword, partName("es")}} {
				if kept.of != module && !m.serves(kept.name, asked) {
					return kept.of + " has not served the request"
				}
			}
			return ""
		})
		if diff := cmp.Diff(last, newVersion(getSecret(t, m.ns, "es"), false).Data); diff != "" {
			t.Errorf("without %s the Secret has changed: -before, +now:\n%s", module, diff)
		}
		m.run(module)
		last = m.waitUntilInSync("es", "es", i+1, i+1)
	}
	m.history.end(t, m.ns)
	m.whole("es")
	if n := len(m.history.contents("es")); n != 1+len(mixedModules) {
		t.Errorf("the Secret held %d different contents, want %d", n, 1+len(mixedModules))
	}
}
