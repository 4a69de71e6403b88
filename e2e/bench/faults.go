package bench

import (
	"context"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// Faults measures how long new objects on a healthy store wait, first alone, and then together with a store
// that hangs and one that answers 429 to everything, each with many objects.
func Faults(ctx context.Context, r *Report, size Size) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, err := s.StartModule(ctx, stack.ProviderAWS)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Kill() }()
		alone, err := measureNewcomers(ctx, s, "alone", 100)
		if err != nil {
			return struct{}{}, err
		}
		if err := burden(ctx, s, size.Objects, "hang", emulator.Fault{Hang: true}); err != nil {
			return struct{}{}, err
		}
		hanging, err := measureNewcomers(ctx, s, "hanging", 100)
		if err != nil {
			return struct{}{}, err
		}
		if err := burden(ctx, s, size.Objects, "throttle", emulator.Fault{Status: 429}); err != nil {
			return struct{}{}, err
		}
		underLoad, err := measureNewcomers(ctx, s, "beside", 100)
		if err != nil {
			return struct{}{}, err
		}
		r.Add(Row{Scenario: "faults", What: "p50 of 100 on a healthy store, alone", Value: percentile(alone, 50), Unit: "s"})
		r.Add(Row{Scenario: "faults", What: "p50 next to a store that hangs and one of 429", Value: percentile(underLoad, 50), Unit: "s"})
		r.Add(Row{Scenario: "faults", What: "p99 of 100 on a healthy store, alone", Value: percentile(alone, 99), Unit: "s"})
		bound := atMost(max(0.25, 2*percentile(alone, 99)))
		r.Add(Row{Scenario: "faults", What: "p99 next to a store that hangs", Value: percentile(hanging, 99), Unit: "s", Bound: bound})
		r.Add(Row{
			Scenario: "faults", What: "p99 next to a store that hangs and one of 429", Value: percentile(underLoad, 99), Unit: "s",
			Bound: bound, Note: "bound: a quarter second, or twice the figure alone",
		})
		return struct{}{}, nil
	})
	return err
}

// burden creates a store that does not work, with n objects, and returns when its calls are in progress.
func burden(ctx context.Context, s *stack.Stack, n int, prefix string, fault emulator.Fault) error {
	objects := workload(prefix, n, 1)
	if err := prepare(ctx, s, objects); err != nil {
		return err
	}
	if err := storesReady(ctx, s); err != nil {
		return err
	}
	fault.Key = prefix + "/*"
	s.AWS.Inject(fault)
	s.AWS.Reset()
	if err := each(objects, clients, func(o Object) error { return s.Admin.Create(ctx, externalSecret(o)) }); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) { return reads(s) >= 10, nil })
}
