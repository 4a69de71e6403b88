package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// Kill kills the operator at random moments during the sync, starts it again each time, and counts the Secrets
// that are wrong at the end.
func Kill(ctx context.Context, r *Report, size Size, kills int) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		objects := workload("kill", size.Objects, size.Namespaces)
		if err := prepare(ctx, s, objects); err != nil {
			return struct{}{}, err
		}
		created := make(chan error, 1)
		go func() {
			created <- each(objects, clients, func(o Object) error { return s.Admin.Create(ctx, externalSecret(o)) })
		}()
		for range kills {
			if err := runBriefly(ctx, s); err != nil {
				return struct{}{}, err
			}
		}
		if err := <-created; err != nil {
			return struct{}{}, err
		}
		p, err := s.StartModule(ctx, stack.ProviderAWS, "--leader-elect=false")
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Stop() }()
		if err := allSynced(ctx, s, objects); err != nil {
			return struct{}{}, fmt.Errorf("%w\n%s", err, p.Log())
		}
		wrong, err := countWrong(ctx, s, objects)
		r.Add(Row{
			Scenario: "kill", What: fmt.Sprintf("wrong Secrets of %d after %d times kill -9", len(objects), kills),
			Value: float64(wrong), Unit: "wrong", Bound: atMost(0),
		})
		return struct{}{}, err
	})
	return err
}

// runBriefly runs the operator for up to one second.
func runBriefly(ctx context.Context, s *stack.Stack) error {
	p, err := s.StartModule(ctx, stack.ProviderAWS, "--leader-elect=false")
	if err != nil {
		return err
	}
	select {
	case <-time.After(rand.N(time.Second)):
	case <-ctx.Done():
	}
	return p.Kill()
}

// countWrong counts the Secrets that do not match the remote one, or that lack their ExternalSecret as owner.
func countWrong(ctx context.Context, s *stack.Stack, objects []Object) (int, error) {
	wrong := 0
	for _, o := range objects {
		var secret corev1.Secret
		if err := s.Admin.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, &secret); err != nil {
			return wrong, err
		}
		if string(secret.Data["username"]) != "user-of-"+o.Name || len(secret.Data) != 2 || len(secret.OwnerReferences) != 1 {
			wrong++
		}
	}
	return wrong, nil
}
