package operator_test

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// prompt bounds what shall happen within a second. A machine under load may need longer, but what
// nobody is told of comes only with the next look, which is 40 seconds or more away.
const prompt = 20 * time.Second

// promptly waits until f returns an empty string, and logs how long that took.
func (e *env) promptly(what string, f func() string) {
	e.Helper()
	start := time.Now()
	e.eventually(f)
	took := time.Since(start)
	e.Logf("%s after %s", what, took.Round(time.Millisecond))
	if took > prompt {
		e.Errorf("%s after %s, want a second", what, took)
	}
}

// operator returns an operator for this namespace, as start runs it, with further options.
func (e *env) operator(more ...operator.Option) *operator.Operator {
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(e.config),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect = "0", "0", false
			f.Namespaces, f.LogFormat = e.ns, "text"
			f.ProviderTimeout = 5 * time.Second
			for _, set := range e.flags {
				set(f)
			}
		}),
	}
	return operator.New("provider-fake", fakev1.Group, append(opts, more...)...)
}

// withKinds is an option for each Kind.
func withKinds(kinds ...provider.Kind) []operator.Option {
	var opts []operator.Option
	for _, k := range kinds {
		opts = append(opts, operator.WithStore(k))
	}
	return opts
}

// run is start with an operator of the test's own making.
func (e *env) run(o *operator.Operator) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("operator: %v", err)
		}
	})
}

// withDefault is the flag --default-secret-cleanup-policy.
func withDefault(p v1alpha1.CleanupPolicy) func(*operator.Flags) {
	return func(f *operator.Flags) { f.DefaultCleanupPolicy = string(p) }
}

// into sets the target of an ExternalSecret.
func into(t v1alpha1.Target) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.Target = t }
}

// fills replaces the entries: pairs of a key in the Secret and the remote secret that fills it.
func fills(pairs ...string) spec {
	return func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = nil
		for p := range slices.Chunk(pairs, 2) {
			es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: p[0], RemoteRef: v1alpha1.RemoteRef{Key: p[1]}})
		}
	}
}

// request is the annotation that asks for a refresh.
func request(value string) spec {
	return func(es *v1alpha1.ExternalSecret) {
		if es.Annotations == nil {
			es.Annotations = map[string]string{}
		}
		es.Annotations[v1alpha1.RefreshRequestAnnotation] = value
	}
}

// refresh asks for a refresh and waits until it was served.
func (e *env) refresh(name string) {
	e.Helper()
	value := randomName()
	update(e, e.get(name), request(value))
	e.eventually(func() string {
		if got := e.get(name).Status.ObservedRefreshRequest; got != value {
			return "the refresh of " + name + " was not served"
		}
		return ""
	})
}

// synced creates an ExternalSecret of that name and waits until it is in step.
func (e *env) synced(name string, change ...spec) *v1alpha1.ExternalSecret {
	e.Helper()
	es := e.externalSecret(name, change...)
	e.create(es)
	e.wantReady(name, v1alpha1.ReasonSecretSynced)
	return es
}

// plain creates a Secret as a person does: pairs of a key and a value.
func (e *env) plain(name string, pairs ...string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: e.meta(name), Data: map[string][]byte{}}
	for p := range slices.Chunk(pairs, 2) {
		s.Data[p[0]] = []byte(p[1])
	}
	e.create(s)
	return s
}

// holds is the data of a Secret: pairs of a key and a value.
func holds(pairs ...string) map[string]string {
	m := map[string]string{}
	for p := range slices.Chunk(pairs, 2) {
		m[p[0]] = p[1]
	}
	return m
}

// dataOf returns the data of a Secret as text; nil if it does not exist.
func (e *env) dataOf(name string) map[string]string {
	e.Helper()
	s := e.secret(name)
	if s == nil {
		return nil
	}
	m := map[string]string{}
	for k, v := range s.Data {
		m[k] = string(v)
	}
	return m
}

// settle returns when the operator has worked off all that it has seen of Secrets until now: what is
// put right of a later change comes behind it.
func (e *env) settle() {
	e.Helper()
	name := "settle-" + randomName()
	e.backend.Put(name, []byte("right"))
	es := e.synced(name)
	s := e.wantSecret(name, "value", "right")
	update(e, s, func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") })
	e.wantSecret(name, "value", "right")
	e.delete(es)
}

// ownedBy reports whether a Secret has an ownerReference to an object.
func ownedBy(s *corev1.Secret, o client.Object) bool {
	for _, r := range s.OwnerReferences {
		if r.UID == o.GetUID() {
			return true
		}
	}
	return false
}
