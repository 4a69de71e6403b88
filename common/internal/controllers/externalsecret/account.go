package externalsecret

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// account notes how the object stands after a pass. One that another operator claims is in that one's books.
func (p *pass) account() {
	key := client.ObjectKeyFromObject(p.es)
	if p.obj.contributes.Load() || p.es.Spec.Suspend {
		p.objects.taken(key, p.es.Generation) // Nobody waits for it.
	}
	if p.obj.contributes.Load() {
		p.ledger.Forget(key)
		return
	}
	s := metrics.Of(p.next.Conditions, p.es.CreationTimestamp.Time)
	// A status without a next time is of an object that is read no more, or never was.
	if !p.es.Spec.Suspend && p.next.NextRefreshTime != nil && policy.Periodic(p.es.Spec.RefreshPolicy, p.plan.Interval) {
		s.Interval, s.Good = p.plan.Interval, p.obj.good
		if t := p.next.RefreshTime; t != nil && t.After(s.Good) {
			s.Good = t.Time // A process before this one wrote it.
		}
	}
	p.ledger.Set(key, s)
}

// took notes how long it took from what asked for a write to the write, if there was one. What mends the
// target after somebody changed it is neither.
func (p *pass) took(a *answer) {
	now := p.opts.Now()
	since := p.objects.taken(client.ObjectKeyFromObject(p.es), p.es.Generation)
	switch {
	case !p.written || p.lost:
	case !since.IsZero():
		metrics.Wrote(metrics.Object, now.Sub(since))
	default:
		metrics.Wrote(metrics.Provider, now.Sub(a.at))
	}
}
