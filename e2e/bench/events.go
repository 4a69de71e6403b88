package bench

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	// eventChanges is the number of changes one after another, and burstChanges that of changes at once.
	eventChanges, burstChanges = 500, 1000
	// unusedEvents is the number of events of secrets that no object reads.
	unusedEvents = 10000
)

func seldom(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "24h" }

// Events measures how long a change takes that a queue reports, from the write of the remote secret to the write of the Secret.
func Events(ctx context.Context, r *Report, size Size) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		p, objects, err := running(ctx, s, "events", size, size.Namespaces, seldom)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = p.Stop() }()
		queue := s.AWS.AddQueue("changes")
		if err := eventSource(ctx, s, queue, objects[0].Namespace); err != nil {
			return struct{}{}, err
		}
		seen, err := watchSecrets(ctx, s)
		if err != nil {
			return struct{}{}, err
		}
		defer seen.stop()
		for _, f := range []func() error{
			func() error { return changeEach(ctx, r, s, seen, objects) },
			func() error { return changeMany(ctx, r, s, seen, objects) },
			func() error { return sendUnused(ctx, r, s, p, queue) },
		} {
			if err := f(); err != nil {
				return struct{}{}, fmt.Errorf("%w\n%s", err, p.Log())
			}
		}
		if err := p.Stop(); err != nil {
			return struct{}{}, err
		}
		some := objects[:min(burstChanges, len(objects))]
		floor, err := changeFloor(ctx, s, some)
		r.Add(Row{Scenario: "events", What: fmt.Sprintf("%d Secrets changed: floor", len(some)), Value: floor.Seconds(), Unit: "s"})
		return struct{}{}, err
	})
	return err
}

// eventSource creates an event source for all namespaces, with the credentials of a store, and waits until it is ready.
func eventSource(ctx context.Context, s *stack.Stack, queue *emulator.Queue, namespace string) error {
	o := &awsv1.ClusterAWSEventSource{ObjectMeta: metav1.ObjectMeta{Name: "changes"}}
	o.Spec.Region, o.Spec.Endpoint, o.Spec.SQS.QueueURL = stack.Region, s.AWS.URL(), queue.URL
	o.Spec.Auth = &awsv1.AWSAuth{SecretRef: &awsv1.AWSSecretRef{
		AccessKeyIDSecretRef:     v1alpha1.SecretKeySelector{Name: "store-credentials", Key: "id", Namespace: namespace},
		SecretAccessKeySecretRef: v1alpha1.SecretKeySelector{Name: "store-credentials", Key: "secret", Namespace: namespace},
	}}
	if err := s.Admin.Create(ctx, o); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		return meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady), err
	})
}

// changeEach changes secrets one after another.
func changeEach(ctx context.Context, r *Report, s *stack.Stack, seen *arrivals, objects []Object) error {
	var waits []time.Duration
	for i := range eventChanges {
		o := objects[i*len(objects)/eventChanges]
		seen.forget()
		start := time.Now()
		s.AWS.Put(o.Key, fmt.Appendf(nil, `{"username":"u","password":"changed-%d"}`, i))
		at, err := seen.wait(ctx, []Object{o})
		if err != nil {
			return err
		}
		waits = append(waits, at.Sub(start))
	}
	what := fmt.Sprintf("a change to the Secret, one of %d objects with 24h", len(objects))
	r.Add(Row{Scenario: "events", What: what + ": p50", Value: percentile(waits, 50), Unit: "s", Bound: atMost(0.5)})
	r.Add(Row{Scenario: "events", What: fmt.Sprintf("%s: p99 of %d", what, eventChanges), Value: percentile(waits, 99), Unit: "s", Bound: atMost(2)})
	return nil
}

// changeMany changes secrets at once.
func changeMany(ctx context.Context, r *Report, s *stack.Stack, seen *arrivals, objects []Object) error {
	some := objects[:min(burstChanges, len(objects))]
	seen.forget()
	s.AWS.Reset()
	start := time.Now()
	for _, o := range some {
		s.AWS.Put(o.Key, fmt.Appendf(nil, `{"username":"u","password":"at once, %s"}`, o.Name))
	}
	wrote := time.Since(start)
	at, err := seen.wait(ctx, some)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d secrets changed within %.1f s", len(some), wrote.Seconds())
	r.Add(Row{Scenario: "events", What: what + ": all Secrets are new after", Value: at.Sub(start).Seconds(), Unit: "s", Bound: atMost(10)})
	r.Add(Row{Scenario: "events", What: what + ": calls that read", Value: float64(reads(s)), Unit: "calls", Bound: atMost(60)})
	return nil
}

// sendUnused sends events of secrets that no object reads.
func sendUnused(ctx context.Context, r *Report, s *stack.Stack, p *stack.Process, queue *emulator.Queue) error {
	empty := func() (bool, error) { return queue.Left() == 0, nil }
	if err := until(ctx, empty); err != nil {
		return err
	}
	s.AWS.Reset()
	cpu := cpuOf(p)
	memory, err := p.ResidentMB()
	if err != nil {
		return err
	}
	for i := range unusedEvents {
		s.AWS.Put(fmt.Sprintf("unused/%05d", i), []byte("x"))
	}
	if err := until(ctx, empty); err != nil {
		return err
	}
	used := cpuOf(p) - cpu
	after, err := p.ResidentMB()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d events that match nothing", unusedEvents)
	r.Add(Row{Scenario: "events", What: what + ": calls that read", Value: float64(reads(s)), Unit: "calls", Bound: atMost(0)})
	r.Add(Row{Scenario: "events", What: what + ": processor time", Value: used.Seconds(), Unit: "s", Bound: atMost(2)})
	r.Add(Row{Scenario: "events", What: what + ": more memory", Value: after - memory, Unit: "MB", Bound: atMost(5)})
	return nil
}
