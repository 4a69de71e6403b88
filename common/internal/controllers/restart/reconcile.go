package restart

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/restart"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

const (
	// poll is the time between two looks at workloads that have been restarted.
	poll = 3 * time.Second
	// blockedPoll is the same while a user must do something first, and missingPoll while a listed workload does not exist.
	blockedPoll = 15 * time.Second
	missingPoll = time.Minute
)

// kinds are the Kinds of workloads.
var kinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: string(v1alpha1.WorkloadDeployment)},
	{Group: "apps", Version: "v1", Kind: string(v1alpha1.WorkloadStatefulSet)},
	{Group: "apps", Version: "v1", Kind: string(v1alpha1.WorkloadDaemonSet)},
	{Group: "argoproj.io", Version: "v1alpha1", Kind: string(v1alpha1.WorkloadRollout)},
}

// A Reconciler restarts the workloads of namespaces.
type Reconciler struct {
	// cache returns ConfigMaps as Secrets; live does not read from a cache.
	cache     client.Reader
	live      client.Client
	workloads lister
	writer    *target.Writer
	referrers *referrers.Referrers
	opts      setup.Options
	events    events.EventRecorder
	ledger    *metrics.Ledger

	mu sync.Mutex
	// known holds the last data that was read, by namespace and the uid of the ExternalSecret.
	// Bound: one per ExternalSecret.
	known map[string]map[types.UID]known
	// nextList is when the workloads of a namespace can be listed again.
	// Bound: one per namespace; listed removes those of the past.
	nextList map[string]time.Time
}

// known is the hash of the data of one version of a Secret, and its salt.
type known struct{ name, version, salt, hash string }

// Reconcile walks over the ExternalSecrets of a namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	now := r.opts.Now()
	objects, err := r.gather(ctx, req.Namespace, now)
	if err != nil {
		return result(err)
	}
	active := false
	for _, o := range objects {
		active = active || o.Active(now)
	}
	var res reconcile.Result
	if active {
		// Events of a tenant must not make the operator list its workloads without a pause.
		res.RequeueAfter = r.wait(req.Namespace, now)
	}
	paused := res.RequeueAfter > 0
	if active && !paused {
		if err := r.restart(ctx, req.Namespace, objects, now); err != nil {
			return result(err)
		}
	}
	for _, o := range objects {
		if paused && o.Active(now) {
			continue
		}
		if err := r.record(ctx, o, now); err != nil {
			return result(err)
		}
		if wait := next(o, now); wait > 0 && (res.RequeueAfter == 0 || wait < res.RequeueAfter) {
			res.RequeueAfter = wait
		}
	}
	r.ledger.Replace(req.Namespace, states(objects, now))
	return res, nil
}

// next returns the time until the next look at the workloads of an object; 0 if only an event starts one.
func next(o *restart.Object, now time.Time) time.Duration {
	wait, changed := o.Wait(now)
	switch {
	case o.Blocked():
		return blockedPoll
	case len(o.Next.Pending)+len(o.Next.Rolling) > 0:
		return poll
	case changed:
		return max(wait, time.Millisecond)
	case o.Missing():
		return missingPoll
	}
	return 0
}

// result returns the result of a walk that failed. A conflict means that a cache was behind.
func result(err error) (reconcile.Result, error) {
	if kerrors.IsConflict(err) {
		return queue.Soon(), nil
	}
	return reconcile.Result{}, err
}

// gather returns the objects of a namespace that restart workloads. It ends the restarts of the others.
func (r *Reconciler) gather(ctx context.Context, namespace string, now time.Time) ([]*restart.Object, error) {
	var list v1alpha1.ExternalSecretList
	if err := r.cache.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, errors.Wrap(err, "cannot list ExternalSecrets")
	}
	r.mu.Lock()
	before := r.known[namespace]
	r.mu.Unlock()
	var objects []*restart.Object
	after := map[types.UID]known{}
	for i := range list.Items {
		es := &list.Items[i]
		if !restarts(es) || es.DeletionTimestamp != nil {
			continue
		}
		if mine, err := r.referrers.Mine(ctx, es); err != nil || !mine {
			continue // The cache does not have the namespace yet, or the object is that of another operator.
		}
		if es.Spec.Target.Restart == nil {
			if err := r.clear(ctx, es); err != nil {
				return nil, err
			}
			continue
		}
		if k, ok := before[es.UID]; ok {
			after[es.UID] = k
		}
		o, err := r.object(ctx, es, after, now)
		if err != nil {
			return nil, err
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[namespace] = after; len(after) == 0 {
		delete(r.known, namespace)
	}
	return objects, nil
}

// object returns the Object of an ExternalSecret; nil if nothing is done for it. It decides from a live object what is due.
func (r *Reconciler) object(ctx context.Context, es *v1alpha1.ExternalSecret, all map[types.UID]known, now time.Time) (*restart.Object, error) {
	if es.Spec.Suspend {
		return nil, nil
	}
	hash, err := r.hash(ctx, es, all)
	switch {
	case unreadable(err), err == nil && hash == "" && es.Status.Restart == nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	o := restart.NewObject(es, hash, now)
	if !o.Active(now) && unchanged(o) {
		return o, nil
	}
	is := &v1alpha1.ExternalSecret{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(es), is); err != nil {
		return nil, errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
	}
	if is.UID != es.UID || is.Generation != es.Generation {
		return nil, nil // The event of that change starts another walk.
	}
	return restart.NewObject(is, hash, now), nil
}

// unreadable reports whether a target cannot be read or marked. The condition Ready of its ExternalSecret has the reason.
func unreadable(err error) bool {
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	return errors.As(err, &forbidden) || errors.As(err, &invalid) || errors.Is(err, target.ErrNamespaceTerminating)
}

// hash returns the hash of the data of a target; empty if it does not exist, or this object does not write it. It reads the
// target only if it has changed since the last read.
func (r *Reconciler) hash(ctx context.Context, es *v1alpha1.ExternalSecret, all map[types.UID]known) (string, error) {
	key := types.NamespacedName{Namespace: es.Namespace, Name: es.TargetName()}
	cached := resolve.SecretMetadata()
	if err := r.cache.Get(ctx, key, cached); err != nil {
		return "", errors.Wrap(client.IgnoreNotFound(err), "cannot read the metadata of the target")
	}
	if target.Marks(cached.Annotations)[es.Name].UID != es.UID || cached.DeletionTimestamp != nil {
		return "", nil
	}
	last := all[es.UID]
	if last.name == key.Name && last.version == cached.ResourceVersion {
		return last.hash, nil
	}
	secret, err := r.writer.Get(ctx, key)
	if err != nil || secret == nil {
		return "", err
	}
	// A Secret that was deleted and created again gets its former salt, so that the same data have the same hash.
	if last.name != key.Name {
		last.salt = ""
	}
	salt, err := r.writer.Salt(ctx, secret, last.salt)
	if err != nil {
		return "", err
	}
	k := known{key.Name, secret.ResourceVersion, salt, restart.Hash(salt, secret.Data)}
	all[es.UID] = k
	return k.hash, nil
}

// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list;patch,roleName=workloads
// +kubebuilder:rbac:groups=argoproj.io,resources=rollouts,verbs=list;patch,roleName=workloads

// restart restarts the workloads that are due.
func (r *Reconciler) restart(ctx context.Context, namespace string, objects []*restart.Object, now time.Time) error {
	workloads, bytes, err := r.workloads.all(ctx, namespace, restart.TargetsOf(objects))
	r.listed(namespace, r.opts.Now(), bytes)
	if kerrors.IsForbidden(err) {
		for _, o := range objects {
			o.Failure = "the operator is not allowed to list workloads; in the chart, set workloadRestarts.enabled"
		}
		return nil
	}
	if err != nil {
		return err
	}
	patches := restart.Plan(objects, workloads, now)
	// The list of pending workloads is recorded first: another client can remove an annotation, and that must not restart the
	// workload again.
	for _, o := range objects {
		if err := r.record(ctx, o, now); err != nil {
			return err
		}
	}
	for i := range patches {
		p := &patches[i]
		switch err := r.patch(ctx, namespace, p, now); {
		case err == nil:
			p.Done(objects, now)
		case kerrors.IsConflict(err) && r.workloads.exists(ctx, namespace, p.Workload):
			// Another client writes it at the same time. The next look restarts it.
		case kerrors.IsNotFound(err), kerrors.IsConflict(err):
			p.Drop(objects) // It was deleted, and another one of its name has started with the new data.
		default:
			p.Fail(objects, reason(err))
		}
	}
	return nil
}

// reason returns what a condition says about an error of a patch.
func reason(err error) string {
	switch {
	case kerrors.IsForbidden(err):
		return "the API server forbids it; allow the operator to patch the workload, or change the admission policy"
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return "the API server refuses the workload as invalid; correct the workload"
	}
	return "the API server does not answer; retrying"
}

// patch restarts a workload.
func (r *Reconciler) patch(ctx context.Context, namespace string, p *restart.Patch, now time.Time) error {
	body, err := p.Body(now)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	for _, gvk := range kinds {
		if gvk.Kind == string(p.Kind) {
			o.SetGroupVersionKind(gvk)
		}
	}
	o.SetNamespace(namespace)
	o.SetName(p.Name)
	return r.live.Patch(ctx, o, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.RestartFieldManager))
}

// unchanged reports whether the status of an object has what would be written.
func unchanged(o *restart.Object) bool {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionWorkloadsRestarted)
	return equality.Semantic.DeepEqual(o.Status.Restart, o.Next) && (c != nil && c.ObservedGeneration == o.Generation || o.Hash == "")
}

// record writes the status of an object if it has changed. The object has the status that it was decided from.
func (r *Reconciler) record(ctx context.Context, o *restart.Object, now time.Time) error {
	if unchanged(o) && !o.Active(now) {
		return nil
	}
	was := o.Status.RestartFailure()
	err := r.write(ctx, o.ExternalSecret, func(s *v1alpha1.ExternalSecretStatus) {
		s.Restart = o.Next.DeepCopy()
		status.Set(&s.Conditions, v1alpha1.ConditionWorkloadsRestarted, o.Generation, o.Verdict())
	})
	if err == nil {
		r.recordEvent(o.ExternalSecret, was)
	}
	return err
}

// clear removes the status of restarts.
func (r *Reconciler) clear(ctx context.Context, es *v1alpha1.ExternalSecret) error {
	return r.write(ctx, es.DeepCopy(), func(s *v1alpha1.ExternalSecretStatus) {
		s.Restart = nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionWorkloadsRestarted)
	})
}

// write changes the status of an object, and updates the object. The conditions of others are kept: after a conflict it reads
// the object live. The error is a conflict if another process has written the status of restarts.
func (r *Reconciler) write(ctx context.Context, es *v1alpha1.ExternalSecret, change func(*v1alpha1.ExternalSecretStatus)) error {
	for {
		next := es.Status.DeepCopy()
		change(next)
		if equality.Semantic.DeepEqual(&es.Status, next) {
			return nil
		}
		out := &v1alpha1.ExternalSecret{}
		err := status.Once(ctx, r.live, es, es.ResourceVersion, &es.Status, next, out)
		if err == nil {
			es.ResourceVersion, es.Status = out.ResourceVersion, out.Status
			return nil
		}
		if !kerrors.IsConflict(err) {
			return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
		}
		live := &v1alpha1.ExternalSecret{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(es), live); err != nil {
			return errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
		}
		if live.UID != es.UID || live.Generation != es.Generation || !equality.Semantic.DeepEqual(live.Status.Restart, es.Status.Restart) {
			return err
		}
		es.ResourceVersion, es.Status = live.ResourceVersion, live.Status
	}
}
