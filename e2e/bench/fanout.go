package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

const (
	// filled is the number of namespaces that one ClusterExternalSecret fills.
	filled = 200
	// latecomers is the number of namespaces that match later, one after another.
	latecomers = 10
)

// matches is the label of the namespaces to fill.
var matches = map[string]string{"bench": "fanout"}

// FanOut measures how long a ClusterExternalSecret takes to fill many namespaces, and then single ones. The
// time is from its creation, or that of a namespace or its label, to the Secret. The module that creates the
// objects is not the one that reads the store for them.
func FanOut(ctx context.Context, r *Report, rounds int) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		return struct{}{}, fanOut(ctx, s, r, rounds)
	})
	return err
}

func fanOut(ctx context.Context, s *stack.Stack, r *Report, rounds int) error {
	maker, err := s.StartModule(ctx, stack.GeneratorPassword)
	if err != nil {
		return err
	}
	defer func() { _ = maker.Kill() }()
	if err := until(ctx, func() (bool, error) {
		held, err := maker.Metric(stack.SharedDuties)
		return held == 1, err
	}); err != nil {
		return err
	}
	reader, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Kill() }()
	if err := sharedStore(ctx, s); err != nil {
		return err
	}
	for i := range filled {
		if err := s.Admin.Create(ctx, namespaceOf(fmt.Sprintf("fanout-%03d", i), matches)); err != nil {
			return err
		}
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return err
	}
	defer seen.stop()

	var times []float64
	for round := range rounds {
		took, err := fill(ctx, s, seen, fmt.Sprintf("db-%d", round))
		if err != nil {
			return fmt.Errorf("%w\n%s\n%s", err, maker.Log(), reader.Log())
		}
		times = append(times, took.Seconds())
	}
	r.Add(Row{
		Scenario: "fanout", What: fmt.Sprintf("%d namespaces, until the last Secret", filled), Value: median(times), Unit: "s", Bound: atMost(5),
		Note: fmt.Sprintf("rounds: %.2f", times),
	})
	waits, err := late(ctx, s, seen, rounds)
	if err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, maker.Log(), reader.Log())
	}
	r.Add(Row{Scenario: "fanout", What: "one more namespace: p50", Value: percentile(waits, 50), Unit: "s"})
	r.Add(Row{
		Scenario: "fanout", What: fmt.Sprintf("the same: slowest of %d", len(waits)), Value: percentile(waits, 100), Unit: "s", Bound: atMost(1),
		Note: fmt.Sprintf("half of them new, half with a new label; %d Secrets each", rounds),
	})
	return nil
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// sharedStore creates a store for all namespaces, and waits until it is ready.
func sharedStore(ctx context.Context, s *stack.Stack) error {
	s.AWS.Put("fanout/db", []byte(`{"password":"0123456789abcdef0123456789abcdef"}`))
	if err := s.Admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.Namespace, Name: "store"},
		Data:       map[string][]byte{"id": []byte(stack.AccessKeyID), "secret": []byte(stack.SecretAccessKey)},
	}); err != nil {
		return err
	}
	st := &awsv1.ClusterAWSSecretsManager{ObjectMeta: metav1.ObjectMeta{Name: "store"}}
	st.Spec.Region, st.Spec.Endpoint = stack.Region, s.AWS.URL()
	st.Spec.Auth = &awsv1.AWSAuth{SecretRef: &awsv1.AWSSecretRef{
		AccessKeyIDSecretRef:     v1alpha1.SecretKeySelector{Namespace: stack.Namespace, Name: "store", Key: "id"},
		SecretAccessKeySecretRef: v1alpha1.SecretKeySelector{Namespace: stack.Namespace, Name: "store", Key: "secret"},
	}}
	if err := s.Admin.Create(ctx, st); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(st), st)
		return meta.IsStatusConditionTrue(st.Status.Conditions, v1alpha1.ConditionReady), err
	})
}

// fill creates a ClusterExternalSecret, and returns the time until the last Secret was seen. It also waits
// until the status agrees.
func fill(ctx context.Context, s *stack.Stack, seen *arrivals, name string) (time.Duration, error) {
	objects := make([]Object, filled)
	for i := range objects {
		objects[i].NamespacedName = types.NamespacedName{Namespace: fmt.Sprintf("fanout-%03d", i), Name: name}
	}
	start := time.Now()
	parent := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterExternalSecretSpec{
		ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "ClusterAWSSecretsManager", Name: "store"},
			Data:     []v1alpha1.DataEntry{{SecretKey: "password", RemoteRef: v1alpha1.RemoteRef{Key: "fanout/db", Property: "password"}}},
		},
		NamespaceChoice: v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: matches}}},
	}}
	if err := s.Admin.Create(ctx, parent); err != nil {
		return 0, err
	}
	last, err := seen.wait(ctx, objects)
	if err != nil {
		return 0, err
	}
	return last.Sub(start), until(ctx, func() (bool, error) {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(parent), parent)
		return len(parent.Status.ProvisionedNamespaces) == filled && meta.IsStatusConditionTrue(parent.Status.Conditions, v1alpha1.ConditionReady), err
	})
}

// late makes one namespace after another match, new ones and existing ones without the label. It measures how
// long each waits until it has the Secrets of all parents.
func late(ctx context.Context, s *stack.Stack, seen *arrivals, parents int) ([]time.Duration, error) {
	var waits []time.Duration
	for i := range latecomers {
		ns := namespaceOf(fmt.Sprintf("late-%02d", i), matches)
		if i%2 == 1 {
			ns.Labels = nil
			if err := s.Admin.Create(ctx, ns); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		if i%2 == 0 {
			if err := s.Admin.Create(ctx, ns); err != nil {
				return nil, err
			}
		} else if err := s.Admin.Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"bench":"fanout"}}}`))); err != nil {
			return nil, err
		}
		objects := make([]Object, parents)
		for p := range objects {
			objects[p].NamespacedName = types.NamespacedName{Namespace: ns.Name, Name: fmt.Sprintf("db-%d", p)}
		}
		last, err := seen.wait(ctx, objects)
		if err != nil {
			return nil, err
		}
		waits = append(waits, last.Sub(start))
	}
	return waits, nil
}
