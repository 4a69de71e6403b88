package bench

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// unrelated is the number of other Secrets in the cluster.
const unrelated = 20_000

// Push measures how long a change of a Secret takes to reach the store, and what other Secrets cost the
// operator that pushes.
func Push(ctx context.Context, r *Report) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, err := s.StartModule(ctx, stack.ProviderAWS)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Stop() }()
		objects := workload("push", 200, 10)
		if err := prepare(ctx, s, objects); err != nil {
			return struct{}{}, err
		}
		if err := storesReady(ctx, s); err != nil {
			return struct{}{}, err
		}
		if err := each(objects, clients, func(o Object) error { return pushed(ctx, s, o, "") }); err != nil {
			return struct{}{}, err
		}
		if err := allPushed(ctx, s, len(objects)); err != nil {
			return struct{}{}, err
		}
		before, err := p.ResidentMB()
		if err != nil {
			return struct{}{}, err
		}
		waits, err := pushChanges(ctx, s, objects)
		if err != nil {
			return struct{}{}, err
		}
		r.Add(Row{Scenario: "push", What: "from a change to the store: p50", Value: percentile(waits, 50), Unit: "s"})
		r.Add(Row{Scenario: "push", What: fmt.Sprintf("the same: p99 of %d", len(waits)), Value: percentile(waits, 99), Unit: "s", Bound: atMost(1)})

		waits, err = pushNew(ctx, s, len(objects))
		if err != nil {
			return struct{}{}, err
		}
		r.Add(Row{Scenario: "push", What: fmt.Sprintf("a new one among %d that are compared every ten seconds: p50", periodic), Value: percentile(waits, 50), Unit: "s"})
		r.Add(Row{Scenario: "push", What: fmt.Sprintf("the same: p99 of %d", len(waits)), Value: percentile(waits, 99), Unit: "s", Bound: atMost(2)})

		base, err := p.ResidentMB()
		if err != nil {
			return struct{}{}, err
		}
		unrelatedObjects := workload("others", unrelated, 20)
		for i := 0; i < len(unrelatedObjects); i += len(unrelatedObjects) / 20 {
			if err := s.CreateNamespace(ctx, unrelatedObjects[i].Namespace); err != nil {
				return struct{}{}, err
			}
		}
		if err := each(unrelatedObjects, clients, func(o Object) error {
			return s.Admin.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
				Data:       map[string][]byte{"value": bytes.Repeat([]byte("x"), 1024)},
			})
		}); err != nil {
			return struct{}{}, err
		}
		after, err := p.ResidentMB()
		if err != nil {
			return struct{}{}, err
		}
		r.Add(Row{Scenario: "push", What: fmt.Sprintf("memory with %d objects", len(objects)), Value: before, Unit: "MB"})
		r.Add(Row{Scenario: "push", What: "growth by 20,000 Secrets of others", Value: 100 * (after - base) / base, Unit: "%", Bound: atMost(10)})
		return struct{}{}, nil
	})
	return err
}

// pushed creates a Secret, and an object that pushes it and compares it again after an interval.
func pushed(ctx context.Context, s *stack.Stack, o Object, interval v1alpha1.Duration) error {
	name := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if err := s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: name, Data: map[string][]byte{"password": []byte("first")}}); err != nil {
		return err
	}
	return s.Admin.Create(ctx, &v1alpha1.PushSecret{ObjectMeta: name, Spec: v1alpha1.PushSecretSpec{
		StoreRefs:       []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: "store"}},
		RefreshInterval: interval,
		Selector:        v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: o.Name}},
		Data: []v1alpha1.PushData{{Match: v1alpha1.PushMatch{
			SecretKey: "password", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: remote(o), Property: "password"},
		}}},
	}})
}

func remote(o Object) string { return "pushed/" + o.Namespace + "/" + o.Name }

func allPushed(ctx context.Context, s *stack.Stack, n int) error {
	return until(ctx, func() (bool, error) {
		var list v1alpha1.PushSecretList
		if err := s.Admin.List(ctx, &list); err != nil {
			return false, err
		}
		for _, ps := range list.Items {
			if !meta.IsStatusConditionTrue(ps.Status.Conditions, v1alpha1.ConditionReady) {
				return false, nil
			}
		}
		return len(list.Items) == n, nil
	})
}

// periodic is the number of objects next to which new ones are created.
const periodic = 2_000

// pushNew creates new objects one after another next to many periodic ones, and measures the time until the store has the value.
// others is the number of objects that exist already.
func pushNew(ctx context.Context, s *stack.Stack, others int) ([]time.Duration, error) {
	compared, created := workload("periodic", periodic, 20), workload("new", 100, 10)
	for _, objects := range [][]Object{compared, created} {
		if err := prepare(ctx, s, objects); err != nil {
			return nil, err
		}
	}
	if err := storesReady(ctx, s); err != nil {
		return nil, err
	}
	if err := each(compared, clients, func(o Object) error { return pushed(ctx, s, o, "10s") }); err != nil {
		return nil, err
	}
	if err := allPushed(ctx, s, others+len(compared)); err != nil {
		return nil, err
	}
	var waits []time.Duration
	for _, o := range created {
		start := time.Now()
		if err := pushed(ctx, s, o, ""); err != nil {
			return nil, err
		}
		if err := arrived(ctx, s, o, []byte("first")); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(start))
	}
	return waits, nil
}

// arrived waits until the store has a value.
func arrived(ctx context.Context, s *stack.Stack, o Object, want []byte) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if v, ok := s.AWS.Get(remote(o)); ok && bytes.Contains(v, want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not come: %w", remote(o), ctx.Err())
		case <-tick.C:
		}
	}
}

// pushChanges changes one Secret after another, and measures the time until the store has the change.
func pushChanges(ctx context.Context, s *stack.Stack, objects []Object) ([]time.Duration, error) {
	var waits []time.Duration
	for i, o := range objects {
		want := fmt.Appendf(nil, `"password":"second-%d"`, i)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Data: map[string][]byte{"password": fmt.Appendf(nil, "second-%d", i)}}
		start := time.Now()
		if err := s.Admin.Update(ctx, secret); err != nil {
			return nil, err
		}
		if err := arrived(ctx, s, o, want); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(start))
	}
	return waits, nil
}
