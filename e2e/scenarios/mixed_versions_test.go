//go:build long

package scenarios

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/previous"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

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
		old[module] = binaryOf(t, tree, module)
	}
	return old
}

// binaryOf builds a module in the folder with an old tree.
func binaryOf(t *testing.T, tree, module string) string {
	t.Helper()
	binary, program := filepath.Join(tree, module+".bin"), filepath.Join(tree, module+".sh")
	must(t, buildIn(filepath.Join(tree, module), binary))
	must(t, os.WriteFile(program, fmt.Appendf(nil, withItsFlags, binary), 0o700)) //nolint:gosec // It is a program.
	return program
}

// These are the operations that read a value from AWS, and those that write one.
var (
	awsReads  = []string{"GetSecretValue", "BatchGetSecretValue"}
	awsWrites = []string{"CreateSecret", "PutSecretValue", "UpdateSecret"}
)

// awsCalls returns how many calls of some operations name a remote secret, or its ARN.
func awsCalls(key string, operations ...string) (n int) {
	for _, c := range shared.AWS.Calls() {
		if slices.Contains(operations, c.Operation) && slices.ContainsFunc(c.SecretIDs, func(id string) bool { return strings.Contains(id, key) }) {
			n++
		}
	}
	return n
}

// TestModuleVersions upgrades and downgrades the modules of a cluster one by one, between the last release and the present
// code with the next minor version of common after that of the release. The steady modules run at the present version all
// the time. A change of a version writes nothing, and a new value is written once.
func TestModuleVersions(t *testing.T) {
	t.Parallel()
	from := previousRelease(t)
	released, err := previous.Common(filepath.Join("..", ".."), from)
	must(t, err)
	old, present := binariesOf(t, from), map[string]string{}
	for _, module := range slices.Concat(steadyModules, mixedModules) {
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
	for _, module := range steadyModules {
		start(module, present)
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
	s := newSteady(m)
	names := slices.Collect(maps.Keys(claimingStores))
	names = append(names, "es")
	putAWS := func(n int) {
		for _, name := range names {
			m.putAWS(name, n)
		}
	}
	inSync := func(aws, kubernetes int) {
		t.Helper()
		m.waitUntilInSync("es", "es", aws, 0)
		s.waitUntilInSync(aws, kubernetes)
	}
	// refreshed waits until AWS and Vault are read for each object so many times more.
	refreshed := func(more int) {
		t.Helper()
		reads := func(name string) [2]int { return [2]int{awsCalls(m.key(name), awsReads...), m.vaultReads(name)} }
		for _, name := range names {
			before := reads(name)
			eventually(t, func() string {
				if is := reads(name); is[0] < before[0]+more || is[1] < before[1]+more {
					return fmt.Sprintf("%s: after %v reads of AWS and of Vault there are %v, want %d more", name, before, is, more)
				}
				return ""
			})
		}
	}
	inSync(0, 0)
	putAWS(1) // The first change of a created Secret takes a second request, which makes it one of server-side apply.
	s.putKubernetes(1)
	inSync(1, 1)
	// written returns how many versions of the Secrets and writes of the remote secrets there were.
	written := func() map[string]int {
		n := s.written()
		n["Secret es"], n["AWS: push"] = len(m.history.of("es")), awsCalls(m.key("push"), awsWrites...)
		return n
	}
	pushed := func(n int) {
		t.Helper()
		eventually(t, func() string {
			value, _ := shared.AWS.Get(m.key("push"))
			return cmp.Diff(fmt.Sprint("pushed ", n), string(value)) + unpushed(t, m.ns, "push")
		})
		s.waitUntilPushed(n)
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
		refreshed(2)
		inSync(n+1, n+1)
		if diff := cmp.Diff(before, written()); diff != "" {
			t.Errorf("step %d: another version of %s writes something: -before, +after:\n%s", n, step.module, diff)
		}
		putAWS(n + 2)
		inSync(n+2, n+1)
		s.putKubernetes(n + 2)
		inSync(n+2, n+2)
		source.StringData = map[string]string{"value": fmt.Sprint("pushed ", n+1)}
		must(t, shared.Admin.Update(t.Context(), source))
		pushed(n + 1)
		before["Secret es"]++
		before["AWS: push"]++
		s.wantMore(before)
		if diff := cmp.Diff(before, written()); diff != "" {
			t.Errorf("step %d: new values are not written once: -want, +got:\n%s", n, diff)
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
	s.end()
	must(t, shared.Admin.Delete(t.Context(), ps))
	wantExist("an old version removes what was created, by whichever version, and not what was adopted", "adopted")
	m.history.end(t, m.ns)
	m.whole("es")
	s.whole()
}

// vaultReads returns the number of reads from Vault for an object.
func (m *mix) vaultReads(name string) int {
	return m.vault.Count(vaulttest.On(vaultMount + "/data/" + m.key(name)))
}

// buildWith builds a module with another version of common in its go.mod.
func buildWith(t *testing.T, module, common string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", module, file))
		must(t, err)
		required := "direct-secrets/common " + present(t) + "\n"
		if file == "go.mod" && strings.Count(string(text), required) != 1 {
			t.Fatalf("the go.mod of %s does not require %s", module, required)
		}
		text = []byte(strings.Replace(string(text), required, "direct-secrets/common "+common+"\n", 1))
		must(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	binary := filepath.Join(dir, module)
	must(t, build(module, binary, "-modfile", filepath.Join(dir, "go.mod")))
	return binary
}

// present returns the version of common that all modules require.
func present(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "go.mod"))
	must(t, err)
	found := regexp.MustCompile(`direct-secrets/common (v\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("e2e/go.mod does not require common")
	}
	return string(found[1])
}

// ahead returns the version of common that is some minor versions after another one.
func ahead(t *testing.T, version string, minors int) string {
	t.Helper()
	parts := strings.Split(version, ".")
	minor, err := strconv.Atoi(parts[1])
	must(t, err)
	return fmt.Sprintf("%s.%d.0", parts[0], minor+minors)
}
