package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// steadyInterval causes about 300 refreshes per second with 3,000 objects.
const steadyInterval = "10s"

func steadily(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = steadyInterval }

// Steady measures how long new objects wait while many others are refreshed all the time, also just after a
// restart.
func Steady(ctx context.Context, r *Report, size Size) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, objects, err := running(ctx, s, "steady", size, 10, steadily)
		if err != nil {
			return struct{}{}, err
		}
		s.AWS.Reset()
		cpu, start := cpuOf(p), time.Now()
		if err := newcomers(ctx, r, s, fmt.Sprintf("a new one among %d in steady refresh", len(objects)), "calm"); err != nil {
			return struct{}{}, err
		}
		used, took := cpuOf(p)-cpu, time.Since(start)
		r.Add(Row{Scenario: "steady", What: "processor use meanwhile", Value: 100 * used.Seconds() / took.Seconds(), Unit: "%"})
		r.Add(Row{Scenario: "steady", What: "calls a second meanwhile", Value: float64(reads(s)) / took.Seconds(), Unit: "calls/s"})
		if err := p.Stop(); err != nil {
			return struct{}{}, err
		}
		if p, err = s.StartModule(ctx, stack.ProviderAWS); err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Stop() }()
		return struct{}{}, newcomers(ctx, r, s, "the same just after a restart", "fresh")
	})
	return err
}

// newcomers creates 50 objects one after another and measures how long each waits for its Secret.
func newcomers(ctx context.Context, r *Report, s *stack.Stack, what, prefix string) error {
	waits, err := measureNewcomers(ctx, s, prefix, 50)
	if err != nil {
		return err
	}
	r.Add(Row{Scenario: "steady", What: what + ": p50", Value: percentile(waits, 50), Unit: "s"})
	r.Add(Row{Scenario: "steady", What: what + ": p99 of 50", Value: percentile(waits, 99), Unit: "s", Bound: atMost(1)})
	return nil
}

func measureNewcomers(ctx context.Context, s *stack.Stack, prefix string, n int) ([]time.Duration, error) {
	objects := workload(prefix, n, 1)
	if err := prepare(ctx, s, objects[:1]); err != nil {
		return nil, err
	}
	for _, o := range objects {
		s.AWS.Put(o.Key, value(o))
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	var waits []time.Duration
	for _, o := range objects {
		start := time.Now()
		if err := s.Admin.Create(ctx, externalSecret(o)); err != nil {
			return nil, err
		}
		at, err := seen.wait(ctx, []Object{o})
		if err != nil {
			return nil, err
		}
		waits = append(waits, at.Sub(start))
	}
	return waits, nil
}

func cpuOf(p *stack.Process) time.Duration {
	d, err := p.CPU()
	if err != nil {
		return 0 // The process has stopped. The scenario detects that itself.
	}
	return d
}

// Soak runs many objects in steady refresh for a long time, with a new one now and then. It reports the longest
// time that an object waited.
func Soak(ctx context.Context, r *Report, size Size, lasting time.Duration) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, _, err := running(ctx, s, "soak", size, 10, steadily)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Stop() }()
		return struct{}{}, soak(ctx, r, s, p, lasting)
	})
	return err
}

func soak(ctx context.Context, r *Report, s *stack.Stack, p *stack.Process, lasting time.Duration) error {
	var oldest float64
	var waits []time.Duration
	memory, err := p.ResidentMB()
	if err != nil {
		return err
	}
	s.AWS.Reset()
	start := time.Now()
	for round := 0; time.Since(start) < lasting; round++ {
		w, err := measureNewcomers(ctx, s, fmt.Sprintf("new%d", round), 5)
		if err != nil {
			return err
		}
		waits = append(waits, w...)
		if err := pause(ctx, 10*time.Second, func() error {
			age, err := p.Metric(`directsecrets_queue_oldest_waiting_seconds{controller="externalsecret"}`)
			oldest = max(oldest, age)
			return err
		}); err != nil {
			return err
		}
		r.Progress("%s: oldest waiting %.1f s, slowest new object %.3f s, %d reads", time.Since(start).Round(time.Second), oldest, percentile(waits, 100), reads(s))
	}
	after, err := p.ResidentMB()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("over %s", lasting)
	r.Add(Row{Scenario: "soak", What: "oldest waiting object " + what, Value: oldest, Unit: "s", Bound: atMost(10)})
	r.Add(Row{Scenario: "soak", What: "slowest of the new objects " + what, Value: percentile(waits, 100), Unit: "s"})
	r.Add(Row{Scenario: "soak", What: "p99 of the new objects " + what, Value: percentile(waits, 99), Unit: "s", Bound: atMost(1)})
	r.Add(Row{Scenario: "soak", What: "memory before", Value: memory, Unit: "MB"})
	r.Add(Row{Scenario: "soak", What: "memory after", Value: after, Unit: "MB"})
	return nil
}

// pause calls check once a second for a duration.
func pause(ctx context.Context, d time.Duration, check func() error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.After(d)
	for {
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := check(); err != nil {
				return err
			}
		}
	}
}
