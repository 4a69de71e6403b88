package bench

import (
	"context"
	"fmt"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

type change = func(*v1alpha1.ExternalSecret)

// Together counts the calls for objects that are due at the same time: existing objects, never synced, at the
// start of the operator.
func Together(ctx context.Context, r *Report) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		for _, c := range []struct {
			what       string
			prefix     string
			objects    int
			namespaces int
			bound      float64
			change     func(Object) change
		}{
			{"1,000 secrets over 50 namespaces, due together", "thousand", 1000, 50, 75, func(Object) change { return func(*v1alpha1.ExternalSecret) {} }},
			{"100 secrets due together", "distinct", 100, 1, 6, func(Object) change { return func(*v1alpha1.ExternalSecret) {} }},
			{"100 objects on one secret, due together", "shared", 100, 1, 1, func(Object) change { return sameKey }},
			{"10 properties of one secret", "ten", 1, 1, 1, func(o Object) change { return tenProperties(o.Key) }},
		} {
			n, err := together(ctx, s, c.prefix, c.objects, c.namespaces, c.change)
			if err != nil {
				return struct{}{}, fmt.Errorf("%s: %w", c.what, err)
			}
			r.Add(Row{Scenario: "together", What: c.what, Value: float64(n), Unit: "calls", Bound: atMost(c.bound)})
		}
		return struct{}{}, nil
	})
	return err
}

func together(ctx context.Context, s *stack.Stack, prefix string, n, namespaces int, change func(Object) change) (int, error) {
	objects := workload(prefix, n, namespaces)
	if err := prepare(ctx, s, objects); err != nil {
		return 0, err
	}
	s.AWS.Put("shared/one", value(objects[0]))
	// A first run validates the store, so that its gate is open in the second.
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return 0, err
	}
	if err := storesReady(ctx, s); err != nil {
		return 0, err
	}
	if err := p.Stop(); err != nil {
		return 0, err
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	if err := each(objects, clients, func(o Object) error { return s.Admin.Create(ctx, externalSecret(o, change(o))) }); err != nil {
		return 0, err
	}
	s.AWS.Reset()
	if p, err = s.StartModule(ctx, stack.ProviderAWS); err != nil {
		return 0, err
	}
	defer func() { _ = p.Stop() }()
	if _, err := seen.wait(ctx, objects); err != nil {
		return 0, err
	}
	calls := reads(s)
	// The next operator reads objects once more if their status was not written before the stop.
	return calls, allSynced(ctx, s, objects)
}

func sameKey(es *v1alpha1.ExternalSecret) {
	for i := range es.Spec.Data {
		es.Spec.Data[i].RemoteRef.Key = "shared/one"
	}
}

func tenProperties(key string) change {
	return func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = nil
		for i := range 5 {
			for _, property := range []string{"username", "password"} {
				es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
					SecretKey: fmt.Sprintf("%s-%d", property, i),
					RemoteRef: v1alpha1.RemoteRef{Key: key, Property: property},
				})
			}
		}
	}
}
