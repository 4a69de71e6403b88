package bench

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// foreign is the number of ExternalSecrets that another module serves.
const foreign = 10_000

// Modules measures the memory of all modules together, and how much the objects of another module add to one.
func Modules(ctx context.Context, r *Report) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) { return struct{}{}, modules(ctx, s, r) })
	return err
}

func modules(ctx context.Context, s *stack.Stack, r *Report) error {
	processes := map[string]*stack.Process{}
	for _, name := range stack.Modules() {
		p, err := s.StartModule(ctx, name)
		if err != nil {
			return err
		}
		defer func() { _ = p.Kill() }()
		processes[name] = p
	}
	// The modules are idle once one of them has the shared duties.
	if err := until(ctx, func() (bool, error) {
		held := 0.0
		for _, p := range processes {
			n, err := p.Metric(stack.SharedDuties)
			if err != nil {
				return false, err
			}
			held += n
		}
		return held == 1, nil
	}); err != nil {
		return err
	}
	sum := 0.0
	for _, name := range stack.Modules() {
		mb, err := processes[name].ResidentMB()
		if err != nil {
			return err
		}
		sum += mb
		r.Add(Row{Scenario: "modules", What: "memory idle: " + name, Value: mb, Unit: "MB", Bound: atMost(60)})
	}
	r.Add(Row{Scenario: "modules", What: "memory idle: all", Value: sum, Unit: "MB", Note: "ESO 2.9: 139 MB for its controller alone, and two more pods"})

	reader := processes[stack.ProviderAWS]
	before, err := reader.ResidentMB()
	if err != nil {
		return err
	}
	// The objects are suspended, so that the module that serves them only writes their status.
	objects := workload("foreign", foreign, 50)
	for i := range 50 {
		if err := s.CreateNamespace(ctx, fmt.Sprintf("foreign-%02d", i)); err != nil {
			return err
		}
	}
	if err := each(objects, clients, func(o Object) error {
		return s.Admin.Create(ctx, externalSecret(o, func(es *v1alpha1.ExternalSecret) {
			es.Spec.StoreRef.Kind, es.Spec.Suspend = "VaultKV", true
		}))
	}); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		var list v1alpha1.ExternalSecretList
		if err := s.Admin.List(ctx, &list); err != nil {
			return false, err
		}
		for _, es := range list.Items {
			if c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonSuspended {
				return false, nil
			}
		}
		return len(list.Items) == foreign, nil
	}); err != nil {
		return err
	}
	after, err := stableMemory(ctx, reader)
	if err != nil {
		return err
	}
	r.Add(Row{Scenario: "modules", What: fmt.Sprintf("%d objects of another module add", foreign), Value: after - before, Unit: "MB", Bound: atMost(20), Note: fmt.Sprintf("%s: %.0f and %.0f MB", stack.ProviderAWS, before, after)})
	return nil
}

// stableMemory returns the memory of a process once it no longer grows.
func stableMemory(ctx context.Context, p *stack.Process) (float64, error) {
	last, since := 0.0, time.Now()
	for {
		mb, err := p.ResidentMB()
		switch {
		case err != nil:
			return 0, err
		case mb > last+0.5 || mb < last-0.5:
			last, since = mb, time.Now()
		case time.Since(since) > 5*time.Second:
			return mb, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
