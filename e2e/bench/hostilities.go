package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// awsTenant creates a store, event sources and finds at a tenant's own endpoint.
func (a *attack) awsTenant(ctx context.Context, ns, server string, sources, finds int) error {
	err := errors.Join(a.CreateNamespace(ctx, ns), a.AWSStore(ctx, ns, "store", func(st *awsv1.AWSSecretsManager) {
		st.Spec.Endpoint, st.Spec.GatingPolicy = server, v1alpha1.GatingDisabled
	}))
	for i := range sources {
		err = errors.Join(err, a.source(ctx, ns, fmt.Sprint("queue-", i), server, "store-credentials", fmt.Sprintf("https://sqs.%s.amazonaws.com/111122223333/queue-%d", stack.Region, i)))
	}
	for i := range finds {
		err = errors.Join(err, a.Admin.Create(ctx, finding(ns, fmt.Sprint("find-", i), "AWSSecretsManager", everySecond)))
	}
	return err
}

// finding returns an object that reads all secrets of a store.
func finding(ns, name, kind string, change ...change) *v1alpha1.ExternalSecret {
	return externalSecret(Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: name}}, append(change, func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef.Kind, es.Spec.Data = kind, nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Name: &v1alpha1.FindName{RegExp: ".*"}}}}
	})...)
}

func repeats(ctx context.Context, a *attack, ns, server string) error {
	return a.awsTenant(ctx, ns, server, 1, 1)
}

func polls(ctx context.Context, a *attack, ns, server string) error {
	return a.awsTenant(ctx, ns, server, 4, 4)
}

func trickles(ctx context.Context, a *attack, ns, server string) error {
	return readsMany(server, "trickle", 200, 1)(ctx, a.Stack, a.vault, ns)
}

func selectsStores(ctx context.Context, a *attack, ns, server string) error {
	if err := errors.Join(a.CreateNamespace(ctx, ns), a.Admin.Create(ctx, secretOf(ns, "source", nil, 1))); err != nil {
		return err
	}
	large := map[string]string{"note": strings.Repeat("n", 250<<10)}
	for i := range 60 {
		if err := ownStore(ctx, a.Stack, ns, fmt.Sprint("store-", i), server, func(st *vaultv1.VaultKV) {
			st.Labels, st.Annotations = map[string]string{"group": fmt.Sprint(i % 10)}, large
		}); err != nil {
			return err
		}
	}
	ps := pushing(ns, "push", "", "pushed")
	ps.Spec.RefreshInterval, ps.Spec.StoreRefs = "1s", nil
	for i := range 10 {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "VaultKV", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": fmt.Sprint(i)}}})
	}
	return a.Admin.Create(ctx, ps)
}

// restartsLarge creates one Secret, whose values always change, and Deployments that use it.
func restartsLarge(ctx context.Context, a *attack, ns, server string) error {
	if err := errors.Join(a.CreateNamespace(ctx, ns), ownStore(ctx, a.Stack, ns, "store", server)); err != nil {
		return err
	}
	o := Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: "secret"}, Key: "changing"}
	large := strings.Repeat("x", 1200<<10)
	if err := each(workload(ns, 120, 1), 4, func(other Object) error {
		d := stack.Deployment(ns, o.Name)
		d.Name, d.Spec.Template.Spec.Containers[0].Args = other.Name, []string{large}
		return a.Admin.Create(ctx, d)
	}); err != nil {
		return err
	}
	return a.Admin.Create(ctx, ofVault(o, everySecond, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "1s"}
	}))
}

func rotates(ctx context.Context, a *attack, ns, _ string) error {
	if err := errors.Join(a.CreateNamespace(ctx, ns), a.Apply(ctx, fmt.Appendf(nil,
		"apiVersion: %s\nkind: SSHKey\nmetadata: {namespace: %s, name: key}\nspec: {keyType: rsa, keySize: 4096, rotationInterval: 1s}\n", keysVersion, ns))); err != nil {
		return err
	}
	return each(workload(ns, 200, 1), clients, func(o Object) error {
		return a.Admin.Create(ctx, ofKey(types.NamespacedName{Namespace: ns, Name: o.Name}))
	})
}

// edits creates objects with windows that seldom open, and edits their labels.
func edits(ctx context.Context, a *attack, ns, _ string) error {
	if err := errors.Join(a.CreateNamespace(ctx, ns), a.VaultStore(ctx, ns, "store", a.vault.Address, "secret", a.vault.RootToken)); err != nil {
		return err
	}
	windows := &v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow}
	for i := range 20 {
		windows.Windows = append(windows.Windows, v1alpha1.SyncWindow{Schedule: fmt.Sprintf("* * 29 2 %d", i%7), Duration: "1m", TimeZone: "America/St_Johns"})
	}
	const objects = 5
	for i := range objects {
		o := Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: fmt.Sprint("edited-", i)}, Key: "edited"}
		if err := errors.Join(a.vault.put(o), a.Admin.Create(ctx, ofVault(o, everySecond, func(es *v1alpha1.ExternalSecret) { es.Spec.SyncWindows = windows }))); err != nil {
			return err
		}
	}
	a.repeat(ctx, time.Second/5, func(i int) error {
		es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("edited-", i%objects)}}
		return a.Admin.Patch(ctx, es, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"edit":"%d"}}}`, i)))
	})
	return nil
}

// receiving creates an EventReceiver, and a store at a tenant's own server.
func (a *attack) receiving(ctx context.Context, ns, server string) error {
	return errors.Join(a.CreateNamespace(ctx, ns), ownStore(ctx, a.Stack, ns, "store", server),
		a.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "signatures"}, StringData: map[string]string{"key": receiverKey}}),
		a.Admin.Create(ctx, receiverOf(ns)))
}

// senders is the number of requests that a tenant sends at the same time.
const senders = 4

func reportsOthers(ctx context.Context, a *attack, ns, server string) error {
	if err := a.receiving(ctx, ns, server); err != nil {
		return err
	}
	var keys []string
	for _, o := range a.ordinary {
		keys = append(keys, o.Key)
		o.Namespace = ns
		if err := a.Admin.Create(ctx, ofVault(o, seldom)); err != nil {
			return err
		}
	}
	a.sendOften(ctx, ns, func(sender, i int) []string {
		if i%2 == 0 {
			return keys
		}
		return distinct(sender, i, 2000)
	})
	return nil
}

// sendOften sends events with keys as fast as they are accepted.
func (a *attack) sendOften(ctx context.Context, ns string, keys func(sender, i int) []string) {
	for sender := range senders {
		a.repeat(ctx, 10*time.Millisecond, func(i int) error {
			err := a.send(ctx, ns, keys(sender, i)...)
			if err == nil {
				a.accepted.Add(1)
			}
			return err
		})
	}
}

// distinct returns keys of a length that nothing has used before.
func distinct(sender, i, length int) []string {
	var keys []string
	for k := range 30 {
		keys = append(keys, fmt.Sprintf("%d/%d/%d/%s", sender, i, k, strings.Repeat("k", length)))
	}
	return keys
}

// findsElsewhere creates finds in namespaces of the same tenant, which the receiver does not reach.
func findsElsewhere(ctx context.Context, a *attack, ns, server string) error {
	if err := a.receiving(ctx, ns, server); err != nil {
		return err
	}
	for i := range 5 {
		elsewhere := fmt.Sprintf("%s-%d", ns, i)
		if err := errors.Join(a.CreateNamespace(ctx, elsewhere), ownStore(ctx, a.Stack, elsewhere, "store", server)); err != nil {
			return err
		}
		if err := each(workload(ns, 100, 1), clients, func(o Object) error {
			return a.Admin.Create(ctx, finding(elsewhere, o.Name, "VaultKV", seldom))
		}); err != nil {
			return err
		}
	}
	a.sendOften(ctx, ns, func(sender, i int) []string { return distinct(sender, i, 8) })
	return nil
}

// pushesMany pushes 1,900 properties, which is close to the limit, with each of 106 objects, and removes and creates one of them every second.
func pushesMany(ctx context.Context, a *attack, ns, _ string) error {
	source := secretOf(ns, "source", nil, 1)
	for i := range 1900 {
		source.Data[fmt.Sprintf("k%04d", i)] = []byte("v")
	}
	delete(source.Data, "a")
	if err := errors.Join(a.CreateNamespace(ctx, ns), a.VaultStore(ctx, ns, "store", a.vault.Address, "secret", a.vault.RootToken), a.Admin.Create(ctx, source)); err != nil {
		return err
	}
	const objects = 106
	of := func(i int) *v1alpha1.PushSecret {
		ps := pushing(ns, fmt.Sprint("push-", i%objects), "store", "")
		ps.Spec.Data, ps.Spec.DeletionPolicy = nil, v1alpha1.PushDeletionDelete
		ps.Spec.DataTo = []v1alpha1.PushDataTo{{RemoteKey: fmt.Sprint("pushed/", ns, i%objects)}}
		return ps
	}
	for i := range objects {
		if err := a.Admin.Create(ctx, of(i)); err != nil {
			return err
		}
	}
	a.repeat(ctx, time.Second, func(i int) error { return errors.Join(a.Admin.Create(ctx, of(i-1)), a.Admin.Delete(ctx, of(i))) })
	return nil
}
