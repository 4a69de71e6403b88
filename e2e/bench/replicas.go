package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

const (
	// takeover is the duration of the leader's Lease in seconds; see common/operator/lease.go.
	takeover = 15.0
	// tail is how long the load continues after a phase, so that the wait of a late object is measured, too.
	tail = 5 * time.Second
	// every is the time between two new objects of the load.
	every = 50 * time.Millisecond
)

// Replicas measures how long new objects wait while two replicas are replaced one after the other, and after
// killing the leader.
func Replicas(ctx context.Context, r *Report) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) { return struct{}{}, replicas(ctx, s, r) })
	return err
}

func replicas(ctx context.Context, s *stack.Stack, r *Report) error {
	const ns = "replicas"
	if err := prepare(ctx, s, []Object{load(ns, 0)}); err != nil {
		return err
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return err
	}
	defer seen.stop()
	var running []*stack.Process
	defer func() {
		for _, p := range running {
			_ = p.Kill()
		}
	}()
	start := func() error {
		p, err := s.StartModule(ctx, stack.ProviderAWS)
		if err != nil {
			return err
		}
		running = append(running, p)
		return until(ctx, func() (bool, error) { return p.Ready(), nil })
	}
	for range 2 {
		if err := start(); err != nil {
			return err
		}
	}
	if err := storesReady(ctx, s); err != nil {
		return err
	}
	rolling := func() error { // As in a Deployment, an old replica stops when a new one is ready.
		for range 2 {
			if err := start(); err != nil {
				return err
			}
			old := running[0]
			running = running[1:]
			if err := old.Stop(); err != nil {
				return err
			}
			if err := waitForLeader(ctx, running); err != nil {
				return err
			}
		}
		return nil
	}
	killed := func() error {
		i := slices.IndexFunc(running, isLeader)
		if i < 0 {
			return fmt.Errorf("none of %d replicas leads", len(running))
		}
		killed := running[i]
		running = slices.Delete(running, i, i+1)
		if err := killed.Kill(); err != nil {
			return err
		}
		return waitForLeader(ctx, running)
	}
	first := 0
	for _, phase := range []struct {
		what  string
		do    func() error
		bound float64
	}{
		{"rolling restart of two replicas", rolling, takeover},
		{"leader of two replicas killed", killed, takeover},
	} {
		objects, waits, err := underLoad(ctx, s, seen, ns, first, phase.do)
		if err != nil {
			return err
		}
		first += len(objects)
		r.Add(Row{Scenario: "replicas", What: phase.what + ": slowest new object", Value: percentile(waits, 100), Unit: "s", Bound: atMost(phase.bound), Note: fmt.Sprintf("of %d", len(objects))})
		wrong, err := countWrong(ctx, s, objects)
		if err != nil {
			return err
		}
		r.Add(Row{Scenario: "replicas", What: phase.what + ": wrong Secrets", Value: float64(wrong), Unit: "wrong", Bound: atMost(0)})
	}
	return nil
}

// load returns the nth object of the load.
func load(ns string, n int) Object {
	return Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("es-%05d", n)}, Key: fmt.Sprintf("%s/secret-%05d", ns, n)}
}

// underLoad runs do while objects are created, from the nth on. It returns the objects and how long each
// waited.
func underLoad(ctx context.Context, s *stack.Stack, seen *arrivals, ns string, n int, do func() error) (objects []Object, waits []time.Duration, err error) {
	done := make(chan struct{})
	watch := newStopwatch()
	var failed error
	var creating sync.WaitGroup
	creating.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			o := load(ns, n)
			s.AWS.Put(o.Key, value(o))
			watch.start(o)
			if failed = s.Admin.Create(ctx, externalSecret(o)); failed != nil {
				return
			}
			objects, n = append(objects, o), n+1
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	if err = do(); err == nil {
		select {
		case <-time.After(tail):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	close(done)
	creating.Wait()
	if err != nil {
		return nil, nil, err
	}
	if failed != nil {
		return nil, nil, failed
	}
	if _, err := seen.wait(ctx, objects); err != nil {
		return nil, nil, err
	}
	return objects, watch.until(seen, objects), nil
}

// waitForLeader waits until one of the processes is the leader.
func waitForLeader(ctx context.Context, of []*stack.Process) error {
	return until(ctx, func() (bool, error) { return slices.ContainsFunc(of, isLeader), nil })
}

// isLeader reports whether a process is the leader. A process that does not answer is not.
func isLeader(p *stack.Process) bool {
	yes, err := p.IsLeader()
	return err == nil && yes
}
