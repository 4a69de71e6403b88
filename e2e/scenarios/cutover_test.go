//go:build long

package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A cutover is a cluster with objects of External Secrets Operator, and both operators.
type cutover struct {
	*testing.T

	stack  *stack.Stack
	eso    *esoOperator
	dsctl  *plugin
	config string
	// secrets are the Secrets at the start, by their names.
	secrets map[types.NamespacedName]*corev1.Secret
	history *secretHistory
}

// The scale of the test.
const (
	cutoverNamespaces = 20
	cutoverEach       = 25
	cutoverKills      = 10
)

// startCutover creates a number of objects in each of a number of namespaces, and waits until External Secrets Operator
// has synced them.
func startCutover(t *testing.T, namespaces, each int) *cutover {
	t.Helper()
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{Modules: []string{stack.ProviderAWS}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	must(t, s.InstallCRDs(ctx, esoCRDs(t)...))
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	c := &cutover{T: t, stack: s, eso: startESO(t, s), dsctl: buildPlugin(t), secrets: map[types.NamespacedName]*corev1.Secret{}}
	c.config = filepath.Join(t.TempDir(), "kubeconfig")
	raw, err := s.AdminKubeconfig()
	must(t, err)
	must(t, os.WriteFile(c.config, raw, 0o600))
	c.allow()
	for n := range namespaces {
		namespace := fmt.Sprintf("team-%02d", n)
		must(t, s.CreateNamespace(ctx, namespace))
		applyIn(t, s, namespace, `
{apiVersion: v1, kind: Secret, metadata: {name: aws}, stringData: {id: `+stack.AccessKeyID+`, key: `+stack.SecretAccessKey+`}}
---
{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: aws}, spec: {provider: {aws: {service: SecretsManager, region: `+stack.Region+`, auth: {secretRef: {
  accessKeyIDSecretRef: {name: aws, key: id}, secretAccessKeySecretRef: {name: aws, key: key}}}}}}}`)
		for i := range each {
			name := fmt.Sprintf("app-%02d", i)
			remote := namespace + "/" + name
			s.AWS.Put(remote, []byte(fmt.Sprintf(`{"user":"u%d","password":"%s %s"}`, i, planted, remote)))
			applyIn(t, s, namespace, `
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: `+name+`, labels: {app: `+name+`}}, spec: {secretStoreRef: {name: aws}, data: [
  {secretKey: user, remoteRef: {key: `+remote+`, property: user}}, {secretKey: password, remoteRef: {key: `+remote+`, property: password}}]}}`)
			c.secrets[types.NamespacedName{Namespace: namespace, Name: name}] = nil
		}
	}
	c.eventually("synced by External Secrets Operator", func(s *corev1.Secret) string {
		if owner := metav1.GetControllerOf(s); owner == nil || owner.APIVersion != "external-secrets.io/v1" || len(s.Data) != 2 {
			return "it is not synced"
		}
		return ""
	})
	return c
}

// movingUser is the user that moves objects.
const movingUser = "mover"

// allow gives the user that moves objects the role in the guide, and nothing else.
func (c *cutover) allow() {
	c.Helper()
	blocks := readPage(c.T, "docs/guides/moving-from-eso.md").blocks
	at := slices.IndexFunc(blocks, func(b block) bool { return strings.Contains(b.text, "kind: ClusterRole\n") })
	if at < 0 {
		c.Fatal("the guide has no role")
	}
	applyIn(c.T, c.stack, stack.Namespace, blocks[at].text)
	applyIn(c.T, c.stack, stack.Namespace, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: mover}, subjects: [{kind: User, name: `+movingUser+`, apiGroup: rbac.authorization.k8s.io}],
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: move-from-eso}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mover}, subjects: [{kind: User, name: `+movingUser+`, apiGroup: rbac.authorization.k8s.io}],
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: move-from-eso}}`)
}

// eventually waits until all Secrets are as they should be, and remembers them if it is the first time.
func (c *cutover) eventually(what string, check func(*corev1.Secret) string) {
	c.Helper()
	eventually(c.T, func() string {
		list := &corev1.SecretList{}
		must(c.T, c.stack.Admin.List(c.Context(), list))
		found := 0
		for i := range list.Items {
			s := &list.Items[i]
			if _, known := c.secrets[client.ObjectKeyFromObject(s)]; !known {
				continue
			}
			if wrong := check(s); wrong != "" {
				return fmt.Sprintf("%s/%s: %s", s.Namespace, s.Name, wrong)
			}
			found++
			if c.history == nil {
				c.secrets[client.ObjectKeyFromObject(s)] = s
			}
		}
		if found != len(c.secrets) {
			return fmt.Sprintf("%d of %d Secrets are %s", found, len(c.secrets), what)
		}
		return ""
	})
}

// A secretHistory records each version of each Secret that a watch shows.
type secretHistory struct {
	sync.Mutex
	faults   []string
	versions int
}

// watch compares each version of each Secret with the one at the start, until the test ends.
func (c *cutover) watch() {
	c.Helper()
	c.history = &secretHistory{}
	watcher, err := client.NewWithWatch(c.stack.Config(), client.Options{Scheme: stack.Scheme()})
	must(c.T, err)
	list := &corev1.SecretList{}
	must(c.T, watcher.List(c.Context(), list))
	w, err := watcher.Watch(c.Context(), &corev1.SecretList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true}})
	must(c.T, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			s, ok := e.Object.(*corev1.Secret)
			if !ok {
				continue
			}
			c.history.Lock()
			was := c.secrets[client.ObjectKeyFromObject(s)]
			if was == nil {
				c.history.Unlock()
				continue
			}
			c.history.versions++
			if e.Type == "DELETED" || s.UID != was.UID || s.DeletionTimestamp != nil || !reflect.DeepEqual(s.Data, was.Data) {
				c.history.faults = append(c.history.faults, fmt.Sprintf("%s %s/%s: UID %s, was %s; keys %d", e.Type, s.Namespace, s.Name, s.UID, was.UID, len(s.Data)))
			}
			c.history.Unlock()
		}
	}()
	c.Cleanup(func() {
		w.Stop()
		<-ended
	})
}

// unbroken checks that no Secret was absent, changed or created again so far.
func (c *cutover) unbroken() {
	c.Helper()
	c.history.Lock()
	defer c.history.Unlock()
	c.Logf("%d versions of %d Secrets were seen", c.history.versions, len(c.secrets))
	for _, f := range c.history.faults {
		c.Error(f)
	}
}

// migrate runs dsctl, and kills it after a while if that is not 0. It returns the output and the exit code, -1 if it was killed.
func (c *cutover) migrate(kill time.Duration, args ...string) (string, int) {
	c.Helper()
	ctx := c.Context()
	if kill > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, kill)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.dsctl.folder, "kubectl-direct_secrets"), append([]string{"migrate", "--cluster", "--as", movingUser}, args...)...) // Ended by SIGKILL.
	cmd.Env = []string{"HOME=" + c.dsctl.folder, "KUBECONFIG=" + c.config}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && ctx.Err() == nil {
		c.Fatal(err)
	}
	if strings.Contains(out.String(), planted) {
		c.Error("dsctl prints a value")
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// TestCutOver moves 500 Secrets in 20 namespaces to direct-secrets, and back: those of ExternalSecrets, and of a
// ClusterExternalSecret. PushSecrets are moved, too, and no remote secret is written or deleted. Meanwhile a watch shows each version
// of each Secret, and dsctl is killed ten times.
func TestCutOver(t *testing.T) {
	t.Parallel()
	c := startCutover(t, cutoverNamespaces, cutoverEach-1)
	c.shareInAll(cutoverNamespaces)
	pusher := c.pushOne(cutoverNamespaces)
	objects := cutoverNamespaces*(cutoverEach-1) + 1 + cutoverNamespaces
	c.watch()
	read, pushed := c.eso.reads.Load(), pusher.writes.Load()
	unpushed := func() {
		t.Helper()
		counts := c.stack.AWS.Counts()
		n := counts["CreateSecret"] + counts["PutSecretValue"] + counts["UpdateSecret"] + counts["DeleteSecret"]
		if by := pusher.writes.Load() - pushed; by != 0 || n != 0 {
			t.Errorf("External Secrets Operator wrote or deleted %d remote secrets, direct-secrets %d", by, n)
		}
	}
	c.stack.AWS.Reset()
	started := time.Now()
	for range cutoverKills {
		after := time.Second + time.Duration(rand.Int64N(int64(4*time.Second)))
		out, code := c.migrate(after, "--execute", "-A", "--accept-changes")
		if code != -1 {
			t.Fatalf("it ended after %s, before it was killed: exit code %d: %s", after, code, tail(out))
		}
		t.Logf("killed after %s: %d objects moved", after.Round(time.Millisecond), strings.Count(out, "moved  "))
	}
	c.wantOutput(fmt.Sprintf("\n%d moved, 0 reverted, 0 left, 0 failed\n", objects), "--execute", "-A", "--accept-changes")
	t.Logf("moved in %s, kills included", time.Since(started).Round(time.Second))
	c.eventually("of direct-secrets", heldByUs)
	c.unbroken()
	unpushed()
	if n := c.eso.reads.Load() - read; n != 0 {
		t.Errorf("External Secrets Operator read the provider %d times", n)
	}
	t.Logf("direct-secrets made %v", c.stack.AWS.Counts())
	for id, n := range c.readsOf() {
		// All namespaces read the first, and pushes compare, by name or by ARN. The plan reads a secret, and so does who takes over.
		if n > 2 && id != "shared" && !strings.Contains(id, "pushed/") {
			t.Errorf("secret %q was read %d times", id, n)
		}
	}

	c.wantOutput(fmt.Sprintf("\n0 moved, %d reverted, 0 left, 0 failed\n", objects), "--revert", "-A")
	c.eventually("of External Secrets Operator", heldByESO)
	c.unbroken()
	unpushed()
	for _, list := range []client.ObjectList{&v1alpha1.ExternalSecretList{}, &corev1.ConfigMapList{}} {
		must(t, c.stack.Admin.List(t.Context(), list, client.HasLabels{v1alpha1.Group + "/migration"}))
		if n := reflect.ValueOf(list).Elem().FieldByName("Items").Len(); n != 0 {
			t.Errorf("%d of %T are left", n, list)
		}
	}
}

// wantOutput runs dsctl, which must succeed and print a text.
func (c *cutover) wantOutput(want string, args ...string) {
	c.Helper()
	out, code := c.migrate(0, args...)
	if code != 0 || !strings.Contains(out, want) {
		c.Fatalf("exit code %d: %s", code, tail(out))
	}
}

// heldByUs says why a Secret is not held by direct-secrets alone; "" if it is.
func heldByUs(s *corev1.Secret) string {
	if owner := metav1.GetControllerOf(s); owner == nil || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Sprintf("the owner is %v", owner)
	}
	for _, f := range s.ManagedFields {
		if strings.HasPrefix(f.Manager, "externalsecrets.") && strings.Contains(f.FieldsV1.GetRawString(), "f:data") {
			return "External Secrets Operator manages keys"
		}
	}
	return ""
}

// heldByESO says why a Secret is not held by External Secrets Operator alone; "" if it is.
func heldByESO(s *corev1.Secret) string {
	if owner := metav1.GetControllerOf(s); owner == nil || owner.APIVersion != "external-secrets.io/v1" {
		return fmt.Sprintf("the owner is %v", owner)
	}
	for name := range s.Annotations {
		if strings.Contains(name, "direct-secrets.io") {
			return "it has the annotation " + name
		}
	}
	return ""
}

// readsOf returns how often each remote secret was read.
func (c *cutover) readsOf() map[string]int {
	all := map[string]int{}
	for _, call := range c.stack.AWS.Calls() {
		for _, id := range call.SecretIDs {
			all[id]++
		}
	}
	return all
}

// tail returns the last lines of an output.
func tail(out string) string { return out[max(0, len(out)-2000):] }

// TestCutOverUncertain changes something in each of some objects, so that dsctl leaves it to External Secrets Operator.
func TestCutOverUncertain(t *testing.T) {
	t.Parallel()
	c := startCutover(t, 1, 5)
	ctx := t.Context()
	name := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "team-00", Name: fmt.Sprintf("app-%02d", i)}
	}
	patch := func(i int, text string) {
		es := &unstructured.Unstructured{}
		es.SetGroupVersionKind(esoExternalSecret)
		es.SetNamespace(name(i).Namespace)
		es.SetName(name(i).Name)
		must(t, c.stack.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, []byte(text))))
	}
	// Argo CD manages the first object. It would take a change of the second one back, too, but no label tells.
	patch(0, `{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"a"}}}`)
	back := c.takeBack(name(1))
	// The third one has a value that External Secrets Operator has not refreshed yet.
	c.stack.AWS.Put("team-00/app-02", []byte(`{"user":"u2","password":"new"}`))
	// The fourth one has an object of direct-secrets with its name.
	applyIn(t, c.stack, "team-00", `{apiVersion: direct-secrets.io/v1alpha1, kind: ExternalSecret, metadata: {name: app-03}, spec: {suspend: true, storeRef: {kind: AWSSecretsManager, name: other}, data: [{secretKey: a, remoteRef: {key: a}}]}}`)
	c.eventually("as before", func(*corev1.Secret) string { return "" })
	c.watch()
	out, code := c.migrate(0, "--execute", "-n", "team-00", "--timeout", "20s")
	t.Log("\n" + out)
	if code != 2 || !strings.Contains(out, "\n1 moved, 0 reverted, 4 left, 0 failed\n") {
		t.Errorf("exit code %d", code)
	}
	for i, want := range []string{"Argo CD manages it", "was changed back", "direct-secrets would change the Secret: changes key password", "exists already"} {
		if !strings.Contains(out, "left      ExternalSecret "+name(i).String()+": ") || !strings.Contains(out, want) {
			t.Errorf("%s: the output has no %q", name(i), want)
		}
	}
	if !back() {
		t.Error("nothing was taken back")
	}
	c.eventually("of who had them", func(s *corev1.Secret) string {
		want := "external-secrets.io/v1"
		if s.Name == "app-04" {
			want = v1alpha1.GroupVersion.String()
		}
		if owner := metav1.GetControllerOf(s); owner == nil || owner.APIVersion != want {
			return fmt.Sprintf("the owner is %v", owner)
		}
		return ""
	})
	c.history.Lock()
	delete(c.secrets, name(2)) // Giving it back is a refresh, with the new value.
	c.history.Unlock()
	c.unbroken()
	// Once its reconciliation is suspended, the first object is moved, and what it was is removed.
	out, code = c.migrate(0, "--execute", "-n", "team-00", "--selector", "app=app-00", "--reconciliation-suspended", "--remove")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	es := &unstructured.Unstructured{}
	es.SetGroupVersionKind(esoExternalSecret)
	eventually(t, func() string {
		err := c.stack.Admin.Get(ctx, name(0), es)
		must(t, client.IgnoreNotFound(err))
		if err == nil {
			return "the object is still there"
		}
		return ""
	})
	c.unbroken()
	if out, code = c.migrate(0, "--revert", "-n", "team-00", "--reconciliation-suspended"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	c.eventually("of External Secrets Operator", heldByESO)
	c.unbroken()
}

// takeBack plays a tool that reconciles an object of External Secrets Operator from Git. It returns a function that says
// whether it has done so, and stops it.
func (c *cutover) takeBack(name types.NamespacedName) func() bool {
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan bool, 1)
	go func() {
		did := false
		for ctx.Err() == nil {
			es := &unstructured.Unstructured{}
			es.SetGroupVersionKind(esoExternalSecret)
			if err := c.stack.Admin.Get(ctx, name, es); err == nil {
				spec := maps.Clone(es.Object["spec"].(map[string]any))
				if target, _ := spec["target"].(map[string]any); target["creationPolicy"] == "Orphan" {
					p := []byte(`{"spec":{"refreshInterval":"1h0m0s","refreshPolicy":null,"target":{"creationPolicy":"Owner"}}}`)
					did = c.stack.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, p)) == nil || did
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		ended <- did
	}()
	return func() bool {
		cancel()
		return <-ended
	}
}
