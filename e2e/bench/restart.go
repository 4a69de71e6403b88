package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// Restart measures the cost of a restart with synced objects: the time until every object has been checked, the
// reads of secrets, and the writes to the API server. It does so after SIGTERM and after kill -9.
func Restart(ctx context.Context, r *Report, size Size) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, objects, err := running(ctx, s, "restart", size, size.Namespaces)
		if err != nil {
			return struct{}{}, err
		}
		for _, kill := range []bool{false, true} {
			how := "SIGTERM"
			end := p.Stop
			if kill {
				how, end = "kill -9", p.Kill
			}
			if err := end(); err != nil {
				return struct{}{}, err
			}
			if p, err = restart(ctx, r, s, objects, how); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, p.Stop()
	}, stack.Options{Audit: true})
	return err
}

func restart(ctx context.Context, r *Report, s *stack.Stack, objects []Object, how string) (*stack.Process, error) {
	s.AWS.Reset()
	start := time.Now()
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return nil, err
	}
	// Ready means that every object has been checked: each reconcile is counted.
	want := float64(len(objects))
	if err := until(ctx, func() (bool, error) {
		n, err := p.Metric(`controller_runtime_reconcile_time_seconds_count{controller="externalsecret"}`)
		return n >= want, err
	}); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	took := time.Since(start)
	// An unchanged status is not written. Late writes come with the next refreshes of the stores, for which
	// these calls wait.
	if err := storesReady(ctx, s); err != nil {
		return nil, err
	}
	events, err := s.ReadAuditLog(start)
	if err != nil {
		return nil, err
	}
	writes := 0
	for _, e := range events {
		if e.IsWrite() && strings.Contains(e.UserAgent, stack.ProviderAWS) && e.ObjectRef.Resource != "leases" {
			writes++
			r.Progress("write: %s %s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	}
	bound := 3.0
	if how != "SIGTERM" {
		bound += 15 // The duration of the Lease.
	}
	what := fmt.Sprintf("%s with %d fresh objects", how, len(objects))
	r.Add(Row{Scenario: "restart", What: what + ": ready after", Value: took.Seconds(), Unit: "s", Bound: atMost(bound)})
	r.Add(Row{Scenario: "restart", What: what + ": calls that read secrets", Value: float64(reads(s)), Unit: "calls", Bound: atMost(0)})
	r.Add(Row{Scenario: "restart", What: what + ": writes but Leases", Value: float64(writes), Unit: "writes", Bound: atMost(0)})
	return p, nil
}

// running starts provider-aws and creates a workload, and returns when all objects are in sync.
func running(ctx context.Context, s *stack.Stack, prefix string, size Size, namespaces int, change ...change) (*stack.Process, []Object, error) {
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return nil, nil, err
	}
	objects := workload(prefix, size.Objects, namespaces)
	if err := prepare(ctx, s, objects); err != nil {
		return nil, nil, err
	}
	if err := storesReady(ctx, s); err != nil {
		return nil, nil, err
	}
	if err := each(objects, clients, func(o Object) error { return s.Admin.Create(ctx, externalSecret(o, change...)) }); err != nil {
		return nil, nil, err
	}
	return p, objects, allSynced(ctx, s, objects)
}
