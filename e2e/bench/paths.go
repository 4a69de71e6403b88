package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// pathLasts is how long the memory is watched for each path.
const pathLasts = 20 * time.Second

// Paths measures how much memory one hostile tenant can take, one path after another. Each begins with a new process.
func Paths(ctx context.Context, r *Report) error {
	h := startHostile()
	defer h.stop()
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		idle, err := memoryOf(ctx, s, nil, "")
		if err != nil {
			return struct{}{}, err
		}
		r.Add(Row{Scenario: "paths", What: "memory at most, idle", Value: idle, Unit: "MB"})
		for i, p := range h.paths() {
			memory, err := memoryOf(ctx, s, p.tenant, fmt.Sprint("hostile-", i))
			if err != nil {
				return struct{}{}, err
			}
			r.Add(Row{Scenario: "paths", What: "one tenant, above that: " + p.what, Value: memory - idle, Unit: "MB", Bound: atMost(64 * mebibyte)})
		}
		return struct{}{}, nil
	})
	return err
}

// mebibyte is in MB.
const mebibyte = 1.048576

// memoryOf returns the maximum memory of an operator next to a hostile tenant, if there is one. The tenant is removed afterwards.
func memoryOf(ctx context.Context, s *stack.Stack, disturb tenant, ns string) (float64, error) {
	p, err := s.StartModule(ctx, stack.ProviderVault)
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Kill() }()
	peak := watchMemory(p)
	if disturb != nil {
		if err := disturb(ctx, s, nil, ns); err != nil {
			return 0, err
		}
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(pathLasts):
	}
	memory := peak()
	if disturb == nil {
		return memory, nil
	}
	var all []error
	for _, o := range []client.Object{&v1alpha1.PushSecret{}, &v1alpha1.ExternalSecret{}, &vaultv1.VaultKV{}} {
		all = append(all, s.Admin.DeleteAllOf(ctx, o, client.InNamespace(ns)))
	}
	return memory, errors.Join(all...)
}
