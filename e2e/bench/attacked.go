package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

const (
	// waitsAtMost bounds how long an ordinary tenant waits next to hostile ones, in seconds.
	waitsAtMost = 2
	// givenUp is when a measure is given up. It counts as this wait.
	givenUp = time.Minute
	// between is the time between two measures of a figure.
	between = 250 * time.Millisecond
)

// A figure is something for which an ordinary tenant waits, or the floor, which no operator takes part in. once returns when it has happened, and the time at which the tenant asked for it.
type figure struct {
	what  string
	floor bool
	once  func(ctx context.Context, i int) (time.Time, error)
}

// observed is what ordinary tenants see during some time.
type observed struct {
	figures []figure
	waits   [][]time.Duration
	// memory is the maximum memory of each module, in MB.
	memory map[string]float64
	// cores is the processor time of each module in a second.
	cores map[string]float64
}

// observe measures all figures at the same time.
func observe(ctx context.Context, processes map[string]*stack.Process, figures []figure, lasts time.Duration) observed {
	out := observed{figures: figures, cores: map[string]float64{}, waits: make([][]time.Duration, len(figures))}
	peaks, start, cpu := watchAll(processes), time.Now(), map[string]time.Duration{}
	for name, p := range processes {
		cpu[name] = cpuOf(p)
	}
	end := start.Add(lasts)
	var wg sync.WaitGroup
	for i, f := range figures {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				once, cancel := context.WithTimeout(ctx, givenUp)
				begin := time.Now()
				start, err := f.once(once, len(out.waits[i]))
				if err != nil { // A failure counts as a measure that was given up.
					start = begin.Add(-givenUp + time.Since(begin))
				}
				cancel()
				out.waits[i] = append(out.waits[i], time.Since(start))
				time.Sleep(between)
			}
		})
	}
	wg.Wait()
	out.memory = peaks()
	for name, p := range processes {
		out.cores[name] = (cpuOf(p) - cpu[name]).Seconds() / time.Since(start).Seconds()
	}
	return out
}

// watchAll watches the memory of processes until the returned function is called.
func watchAll(processes map[string]*stack.Process) func() map[string]float64 {
	peaks := map[string]func() float64{}
	for name, p := range processes {
		peaks[name] = watchMemory(p)
	}
	return func() map[string]float64 {
		out := map[string]float64{}
		for name, peak := range peaks {
			out[name] = peak()
		}
		return out
	}
}

// report adds the figures next to hostile tenants, and those alone.
func (o observed) report(r *Report, alone observed) {
	for i, f := range o.figures {
		r.Add(Row{Scenario: "tenants", What: fmt.Sprintf("%s: p99 of %d, alone", f.what, len(alone.waits[i])), Value: percentile(alone.waits[i], 99), Unit: "s"})
		row := Row{
			Scenario: "tenants", What: fmt.Sprintf("%s: p99 of %d, all attacks at once", f.what, len(o.waits[i])), Value: percentile(o.waits[i], 99), Unit: "s", Bound: atMost(waitsAtMost),
			Note: fmt.Sprintf("p50 %.2f s, slowest %.2f s", percentile(o.waits[i], 50), percentile(o.waits[i], 100)),
		}
		if f.floor {
			row.Bound = nil
		}
		r.Add(row)
	}
	for _, name := range []string{stack.ProviderVault, stack.ProviderAWS, stack.GeneratorKeys} {
		r.Add(Row{
			Scenario: "tenants", What: "memory that all attacks at once add: " + name, Value: o.memory[name] - alone.memory[name], Unit: "MB", Bound: atMost(64 * mebibyte),
			Note: fmt.Sprintf("%.0f and %.0f MB", alone.memory[name], o.memory[name]),
		})
		r.Add(Row{Scenario: "tenants", What: "cores used, all attacks at once: " + name, Value: o.cores[name], Unit: "cores", Note: fmt.Sprintf("alone %.2f", alone.cores[name])})
	}
}

// figures prepares the figures. The caller must call stop.
func (a *attack) figures(ctx context.Context) (figures []figure, stop func(), err error) {
	stops := []func(){}
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	watch := func(group string) *arrivals {
		seen, failed := watchSecretsWith(ctx, a.Stack, group+"/managed")
		if failed != nil {
			err = errors.Join(err, failed)
			return nil
		}
		stops = append(stops, seen.stop)
		return seen
	}
	figures = []figure{
		{"a new object", false, a.newObject(watch(vaultv1.Group))},
		{"a changed secret by request", false, a.changedSecret(watch(vaultv1.Group))},
		{"a push", false, a.push},
		{"an Ed25519 key", false, a.newKey(watch("keys.direct-secrets.io"))},
		{"an event by SQS", false, a.queued(watch(awsv1.Group))},
		{"an event by HTTP", false, a.received(watch(vaultv1.Group))},
		{"floor: a value in Vault and a Secret, without an operator", true, a.plain(watch("plain"))},
	}
	ns := a.ordinary[0].Namespace
	queue := a.AWS.AddQueue("ordinary")
	o := Object{NamespacedName: types.NamespacedName{Namespace: ns, Name: "queued"}, Key: "queued"}
	a.AWS.Put(o.Key, value(o))
	signatures := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "signatures"}, StringData: map[string]string{"key": receiverKey}}
	return figures, stop, errors.Join(err,
		a.AWSStore(ctx, ns, "aws"), a.source(ctx, ns, "queue", a.AWS.URL(), "aws-credentials", queue.URL),
		a.Admin.Create(ctx, externalSecret(o, seldom, func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "aws" })),
		a.Admin.Create(ctx, signatures), a.Admin.Create(ctx, receiverOf(ns)),
		a.Admin.Create(ctx, secretOf(ns, "source", nil, 1)),
		a.Apply(ctx, fmt.Appendf(nil, "apiVersion: %s\nkind: SSHKey\nmetadata: {namespace: %s, name: key}\nspec: {keyType: ed25519}\n", keysVersion, ns)),
		allSynced(ctx, a.Stack, []Object{o}))
}

const keysVersion = "keys.direct-secrets.io/v1alpha1"

// source creates an event source that polls a queue at an endpoint.
func (a *attack) source(ctx context.Context, ns, name, endpoint, credentials, queue string) error {
	o := &awsv1.AWSEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	o.Spec.Region, o.Spec.Endpoint, o.Spec.SQS.QueueURL = stack.Region, endpoint, queue
	o.Spec.Auth = &awsv1.AWSAuth{SecretRef: &awsv1.AWSSecretRef{
		AccessKeyIDSecretRef:     v1alpha1.SecretKeySelector{Name: credentials, Key: "id"},
		SecretAccessKeySecretRef: v1alpha1.SecretKeySelector{Name: credentials, Key: "secret"},
	}}
	return a.Admin.Create(ctx, o)
}

// receiverOf returns an EventReceiver for the store of a namespace.
func receiverOf(ns string) *v1alpha1.EventReceiver {
	r := &v1alpha1.EventReceiver{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "http"}}
	r.Spec.SecretRef = v1alpha1.SecretKeySelector{Name: "signatures", Key: "key"}
	r.Spec.Stores = []v1alpha1.EventStoreRef{{Kind: "VaultKV", Name: "store"}}
	return r
}

// send sends a request to the EventReceiver of a namespace.
func (a *attack) send(ctx context.Context, ns string, keys ...string) error {
	return sendRequest(ctx, "http://"+a.receiver+"/events/"+ns+"/http", keys...)
}

func (a *attack) newObject(seen *arrivals) func(context.Context, int) (time.Time, error) {
	serial := 0 // Names of the figure alone are not used again.
	return func(ctx context.Context, i int) (time.Time, error) {
		serial++
		o := Object{NamespacedName: types.NamespacedName{Namespace: a.ordinary[i%20*5].Namespace, Name: fmt.Sprint("newcomer-", serial)}, Key: fmt.Sprint("new/", serial)}
		err := a.vault.put(o)
		start := time.Now()
		return start, after(ctx, seen, o, err, func() error { return a.Admin.Create(ctx, ofVault(o, seldom)) })
	}
}

// after does something if nothing has failed before, and waits for the Secret of an object.
func after(ctx context.Context, seen *arrivals, o Object, err error, do func() error) error {
	if err == nil {
		err = do()
	}
	if err == nil {
		_, err = seen.wait(ctx, []Object{o})
	}
	return err
}

func (a *attack) changedSecret(seen *arrivals) func(context.Context, int) (time.Time, error) {
	return func(ctx context.Context, i int) (time.Time, error) {
		o := a.ordinary[1+i%20*5]
		err := a.change(o)
		seen.forget()
		start := time.Now()
		return start, after(ctx, seen, o, err, func() error {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, start.Format(time.RFC3339Nano))
			return a.Admin.Patch(ctx, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}, client.RawPatch(types.MergePatchType, body))
		})
	}
}

// change changes the remote secret of an object.
func (a *attack) change(o Object) error {
	return a.vault.post("secret/data/"+o.Key, fmt.Sprintf(`{"data":{"username":"u","password":"%d"}}`, time.Now().UnixNano()))
}

// push waits until a new PushSecret is ready.
func (a *attack) push(ctx context.Context, _ int) (time.Time, error) {
	start := time.Now()
	name := fmt.Sprint("push-", start.UnixNano())
	ps := pushing(a.ordinary[0].Namespace, name, "store", "ordinary-pushed/"+name)
	if err := a.Admin.Create(ctx, ps); err != nil {
		return start, err
	}
	return start, until(ctx, func() (bool, error) {
		found, err := a.vault.has("secret/data/ordinary-pushed/" + name)
		return found, err
	})
}

func (a *attack) newKey(seen *arrivals) func(context.Context, int) (time.Time, error) {
	serial := 0
	return func(ctx context.Context, _ int) (time.Time, error) {
		serial++
		o := Object{NamespacedName: types.NamespacedName{Namespace: a.ordinary[0].Namespace, Name: fmt.Sprint("key-", serial)}}
		start := time.Now()
		return start, after(ctx, seen, o, nil, func() error { return a.Admin.Create(ctx, ofKey(o.NamespacedName)) })
	}
}

// ofKey returns an object with a generated key.
func ofKey(at types.NamespacedName, change ...change) *v1alpha1.ExternalSecret {
	return externalSecret(Object{NamespacedName: at}, append(change, func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef, es.Spec.Data = nil, nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "SSHKey", Name: "key"}}}}
	})...)
}

// plain does what an operator does for a new object, which shows how busy the machine is.
func (a *attack) plain(seen *arrivals) func(context.Context, int) (time.Time, error) {
	return func(ctx context.Context, _ int) (time.Time, error) {
		start := time.Now()
		o := Object{NamespacedName: types.NamespacedName{Namespace: a.ordinary[0].Namespace, Name: fmt.Sprint("plain-", start.UnixNano())}, Key: "plain"}
		return start, after(ctx, seen, o, a.vault.put(o), func() error {
			return a.Admin.Create(ctx, secretOf(o.Namespace, o.Name, map[string]string{"plain/managed": "true"}, 1))
		})
	}
}

func (a *attack) queued(seen *arrivals) func(context.Context, int) (time.Time, error) {
	o := Object{NamespacedName: types.NamespacedName{Namespace: a.ordinary[0].Namespace, Name: "queued"}, Key: "queued"}
	return func(ctx context.Context, _ int) (time.Time, error) {
		seen.forget()
		start := time.Now()
		a.AWS.Put(o.Key, fmt.Appendf(nil, `{"username":"u","password":"%d"}`, start.UnixNano()))
		return start, after(ctx, seen, o, nil, func() error { return nil })
	}
}

func (a *attack) received(seen *arrivals) func(context.Context, int) (time.Time, error) {
	return func(ctx context.Context, _ int) (time.Time, error) {
		o := a.ordinary[0]
		err := a.change(o)
		seen.forget()
		start := time.Now()
		return start, after(ctx, seen, o, err, func() error {
			// A receiver that refuses is asked again, as senders do.
			for ctx.Err() == nil && a.send(ctx, o.Namespace, o.Key) != nil {
				time.Sleep(20 * time.Millisecond)
			}
			return ctx.Err()
		})
	}
}
