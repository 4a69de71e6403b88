//go:build long

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/previous"
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

// binariesOf builds the modules of a mix as they were at a commit.
func binariesOf(t *testing.T, commit string) map[string]string {
	t.Helper()
	tree, old := checkout(t, commit), map[string]string{}
	for _, module := range mixedModules {
		binary := filepath.Join(tree, module+".bin")
		must(t, buildIn(filepath.Join(tree, module), binary))
		old[module] = filepath.Join(tree, module+".sh")
		must(t, os.WriteFile(old[module], fmt.Appendf(nil, withItsFlags, binary), 0o700)) //nolint:gosec // It is a program.
	}
	return old
}

// TestMixedVersions makes modules with and without typed contributions work on the same objects.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	old := binariesOf(t, untyped)
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
			m.waitUntilInSync("es", "es", 1, 1)
			m.put("es", 2)
			m.waitUntilInSync("es", "es", 2, 2)
			m.refresh("es")
			m.waitUntilInSync("es", "es", 2, 2)

			// The error of a contributor is only in its entry of status.parts.
			m.vault.Policy("reader", fmt.Sprintf("path %q { capabilities = [\"deny\"] }", vaultMount+"/*"))
			m.refresh("es")
			m.wantFailed("es", v1alpha1.ReasonSecretSyncedError, m.key("es"), "VaultKV")
			m.vault.Policy("reader", fmt.Sprintf("path %q { capabilities = [\"read\", \"list\"] }", vaultMount+"/*"))
			m.put("es", 2)
			m.waitUntilInSync("es", "es", 2, 2)

			m.forget("es")
			m.refresh("es")
			m.wantFailed("es", v1alpha1.ReasonSecretSyncedError, m.key("es"))
			m.put("es", 3)
			m.waitUntilInSync("es", "es", 3, 3)

			// The new versions replace the old ones, and use what these have stored.
			for _, module := range tc.old {
				m.kill(module)
				m.run(module)
			}
			m.put("es", 4)
			m.waitUntilInSync("es", "es", 4, 4)
			m.refresh("es")
			m.waitUntilInSync("es", "es", 4, 4)
			m.history.end(t, m.ns)
			m.whole("es")
		})
	}
}

// TestModuleVersions upgrades and downgrades the modules of a cluster one by one, between the last release and the present
// code with the next minor version of common after that of the release. A change of a version writes nothing, and a new value is written once.
func TestModuleVersions(t *testing.T) {
	t.Parallel()
	from := previousRelease(t)
	released, err := previous.Common(filepath.Join("..", ".."), from)
	must(t, err)
	old, present := binariesOf(t, from), map[string]string{}
	for _, module := range mixedModules {
		present[module] = buildWith(t, module, ahead(t, released, 1))
	}
	m := newMix(t, "module-versions")
	start := func(module string, version map[string]string) {
		t.Helper()
		m.processes[module] = startBinary(t, version[module], module, m.ns, m.flags()...)
	}
	for _, module := range mixedModules {
		start(module, old)
	}
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "source"}, StringData: map[string]string{"value": "pushed 0"}}
	must(t, shared.Admin.Create(t.Context(), source))
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "push"}}
	ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: "store"}}
	ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "source"}
	for _, key := range []string{"push", "adopted", "stays", "removed"} {
		ps.Spec.Data = append(ps.Spec.Data, v1alpha1.PushData{Match: v1alpha1.PushMatch{SecretKey: "value", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: m.key(key)}}})
	}
	ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete
	shared.AWS.Put(m.key("adopted"), []byte("theirs"))
	must(t, shared.Admin.Create(t.Context(), ps))
	m.put("es", 0)
	m.create("es", often)
	m.waitUntilInSync("es", "es", 0, 0)
	m.putAWS("es", 1)
	m.waitUntilInSync("es", "es", 1, 0) // The first change of a created Secret takes a second request, which makes it one of server-side apply.
	// calls returns how many calls of some operations name a remote secret, or its ARN.
	calls := func(key string, operations ...string) (n int) {
		for _, c := range shared.AWS.Calls() {
			if slices.Contains(operations, c.Operation) && slices.ContainsFunc(c.SecretIDs, func(id string) bool { return strings.Contains(id, m.key(key)) }) {
				n++
			}
		}
		return n
	}
	reads := func() int { return calls("es", "GetSecretValue", "BatchGetSecretValue") }
	// written returns how many versions of the Secret and writes of the remote secret there were.
	written := func() [2]int {
		return [2]int{len(m.history.of("es")), calls("push", "CreateSecret", "PutSecretValue", "UpdateSecret")}
	}
	pushed := func(n int) {
		t.Helper()
		eventually(t, func() string {
			value, _ := shared.AWS.Get(m.key("push"))
			is := &v1alpha1.PushSecret{}
			must(t, shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(ps), is))
			c := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
			if want := fmt.Sprint("pushed ", n); string(value) != want || c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Sprintf("the remote secret is %q, want %q; Ready is %+v", value, want, c)
			}
			return ""
		})
	}
	pushed(0)
	// exist returns which of the pushed secrets exist.
	exist := func() (keys []string) {
		for _, key := range []string{"adopted", "push", "removed", "stays"} {
			if _, is := shared.AWS.Get(m.key(key)); is {
				keys = append(keys, key)
			}
		}
		return keys
	}
	wantExist := func(reason string, want ...string) {
		t.Helper()
		eventually(t, func() string { return cmp.Diff(want, exist(), cmpopts.EquateEmpty()) })
		if t.Failed() {
			t.Log(reason)
		}
	}
	for n, step := range []struct {
		module  string
		version map[string]string
	}{
		{stack.ProviderAWS, present}, {stack.ProviderVault, present}, {stack.ProviderAWS, old}, {stack.GeneratorPassword, present},
		{stack.ProviderAWS, present}, {stack.ProviderVault, old}, {stack.GeneratorPassword, old}, {stack.ProviderAWS, old},
	} {
		before := written()
		m.kill(step.module)
		start(step.module, step.version)
		aws, vault := reads(), m.vaultReads("es")
		eventually(t, func() string {
			if a, v := reads(), m.vaultReads("es"); a < aws+2 || v < vault+2 {
				return fmt.Sprintf("after the change: %d reads of AWS and %d of Vault, want 2", a-aws, v-vault)
			}
			return ""
		})
		m.waitUntilInSync("es", "es", n+1, 0)
		if diff := cmp.Diff(before, written()); diff != "" {
			t.Errorf("step %d: another version of %s writes something: Secret and remote secret: -before, +after:\n%s", n, step.module, diff)
		}
		m.putAWS("es", n+2)
		m.waitUntilInSync("es", "es", n+2, 0)
		source.StringData = map[string]string{"value": fmt.Sprint("pushed ", n+1)}
		must(t, shared.Admin.Update(t.Context(), source))
		pushed(n + 1)
		if diff := cmp.Diff([2]int{before[0] + 1, before[1] + 1}, written()); diff != "" {
			t.Errorf("step %d: new values are not written once: Secret and remote secret: -want, +got:\n%s", n, diff)
		}
		switch n {
		case 0:
			wantExist("the present version removes nothing that an old one has pushed", "adopted", "push", "removed", "stays")
			// Entries that one version has recorded are removed by the other.
			must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				must(t, shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(ps), ps))
				ps.Spec.Data = ps.Spec.Data[:3]
				return shared.Admin.Update(t.Context(), ps)
			}))
			wantExist("the present version removes what was created by an old one", "adopted", "push", "stays")
		case 2:
			wantExist("an old version removes nothing that the present one has pushed", "adopted", "push", "stays")
		}
	}
	must(t, shared.Admin.Delete(t.Context(), ps))
	wantExist("an old version removes what was created, by whichever version, and not what was adopted", "adopted")
	m.history.end(t, m.ns)
	m.whole("es")
}
