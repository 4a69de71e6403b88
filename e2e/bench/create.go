package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// Size is the size of the main workload.
type Size struct{ Objects, Namespaces, Rounds int }

// Create measures the time from the creation of N ExternalSecrets in M namespaces to the last Secret, compared
// with the floor. The rounds alternate, each on its own control plane.
func Create(ctx context.Context, r *Report, size Size) error {
	var floors, times, ratios, cpus, calls []float64
	for round := range size.Rounds {
		r.Progress("round %d of %d", round+1, size.Rounds)
		objects := workload("bench", size.Objects, size.Namespaces)
		f, err := onStack(ctx, func(s *stack.Stack) (time.Duration, error) {
			if err := prepare(ctx, s, objects); err != nil {
				return 0, err
			}
			return floor(ctx, s, objects)
		})
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		m, err := onStack(ctx, func(s *stack.Stack) (creation, error) { return create(ctx, s, objects) })
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		floors, times = append(floors, f.Seconds()), append(times, m.took.Seconds())
		ratios = append(ratios, m.took.Seconds()/f.Seconds())
		cpus, calls = append(cpus, m.cpu.Seconds()), append(calls, float64(m.calls))
		r.Progress("floor %.2f s, here %.2f s, ratio %.2f, p50 of one object %.3f s, p99 %.3f s", f.Seconds(), m.took.Seconds(), ratios[round], m.p50, m.p99)
		if round == size.Rounds-1 {
			r.Add(Row{Scenario: "create", What: "memory idle, stores validated", Value: m.idle, Unit: "MB", Bound: atMost(60)})
			r.Add(Row{Scenario: "create", What: "memory after", Value: m.after, Unit: "MB", Bound: atMost(90)})
		}
	}
	what := fmt.Sprintf("%d over %d namespaces", size.Objects, size.Namespaces)
	r.Add(Row{Scenario: "create", What: what + ": floor", Value: median(floors), Unit: "s"})
	r.Add(Row{Scenario: "create", What: what, Value: median(times), Unit: "s"})
	r.Add(Row{Scenario: "create", What: what + ": ratio", Value: median(ratios), Unit: "x", Bound: atMost(1.5), Note: fmt.Sprintf("rounds: %.2f", ratios)})
	r.Add(Row{Scenario: "create", What: what + ": CPU of the operator", Value: median(cpus), Unit: "s"})
	r.Add(Row{Scenario: "create", What: what + ": calls that read secrets", Value: median(calls), Unit: "calls", Bound: atMost(75 * float64(size.Objects) / 1000)})
	return nil
}

type creation struct {
	took, cpu   time.Duration
	idle, after float64
	p50, p99    float64
	calls       int
}

func create(ctx context.Context, s *stack.Stack, objects []Object) (m creation, err error) {
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return m, err
	}
	defer func() { _ = p.Kill() }()
	if err := prepare(ctx, s, objects); err != nil {
		return m, err
	}
	if err := storesReady(ctx, s); err != nil {
		return m, err
	}
	if m.idle, err = p.ResidentMB(); err != nil {
		return m, err
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return m, err
	}
	defer seen.stop()
	before, err := p.CPU()
	if err != nil {
		return m, err
	}
	s.AWS.Reset()

	created := newStopwatch()
	start := time.Now()
	if err := each(objects, clients, func(o Object) error {
		created.start(o)
		return s.Admin.Create(ctx, externalSecret(o))
	}); err != nil {
		return m, err
	}
	last, err := seen.wait(ctx, objects)
	if err != nil {
		return m, fmt.Errorf("%w\n%s", err, p.Log())
	}
	m.took = last.Sub(start)
	m.calls = reads(s)
	waits := created.until(seen, objects)
	m.p50, m.p99 = percentile(waits, 50), percentile(waits, 99)
	if err := allSynced(ctx, s, objects); err != nil {
		return m, err
	}
	cpu, err := p.CPU()
	m.cpu = cpu - before
	if err != nil {
		return m, err
	}
	m.after, err = p.ResidentMB()
	return m, err
}

// reads returns the number of calls that read secrets.
func reads(s *stack.Stack) int {
	return s.AWS.Count("BatchGetSecretValue") + s.AWS.Count("GetSecretValue")
}

// onStack runs f on a new stack.
func onStack[T any](ctx context.Context, f func(*stack.Stack) (T, error), o ...stack.Options) (out T, err error) {
	var opts stack.Options
	if len(o) > 0 {
		opts = o[0]
	}
	s, err := stack.Start(ctx, opts)
	if err != nil {
		return out, err
	}
	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()
	return f(s)
}
