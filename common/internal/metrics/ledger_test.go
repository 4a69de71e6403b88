package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func ledger(kind string, stores map[string]State) *Ledger {
	l := &Ledger{kind: kind, now: func() time.Time { return start.Add(time.Hour) }, counts: func() bool { return true }}
	for name, s := range stores {
		l.Set(types.NamespacedName{Namespace: "team", Name: name}, s)
	}
	return l
}

// following makes a Ledger follow one deletion with a timestamp some time after the start; 0 is none.
func following(l *Ledger, deleted time.Duration) *Ledger {
	l.deletions = &deletions{}
	l.deletions.see(pushSecret("deleted", deleted))
	return l
}

// restarting returns a Ledger of restarts: one waits, one has failed for an hour, and one of another namespace is done.
func restarting() *Ledger {
	failed := func(at time.Time) State { return State{Status: "False", Reason: "WorkloadNotFound", Wrong: at} }
	l := ledger("ExternalSecret", nil)
	l.restarts = true
	l.Replace("other", map[string]State{"x": {Status: "True", Reason: "UpToDate"}})
	l.Replace("team", map[string]State{"deleted": failed(start), "failed": failed(start)})
	l.Replace("team", map[string]State{"failed": failed(start.Add(time.Hour)), "waits": {Status: "False", Reason: "Restarting"}})
	return l
}

func TestCollect(t *testing.T) {
	synced := State{Status: "True", Reason: "SecretSynced"}
	broken := State{Status: "False", Reason: "StoreNotReady", Wrong: start}
	periodic := func(age time.Duration) State {
		return State{Status: "True", Reason: "SecretSynced", Interval: 24 * time.Hour, Good: start.Add(time.Hour - age)}
	}
	stores := ledger("FakeStore", map[string]State{"a": {Status: "True", Reason: "Valid"}, "b": {Status: "False", Reason: "AuthFailed", Wrong: start}})
	stores.stores = true
	deleted := ledger("FakeStore", map[string]State{"a": {Status: "True", Reason: "Valid"}})
	deleted.stores = true
	others := ledger("ExternalSecret", map[string]State{"a": broken})
	others.counts = func() bool { return false }
	changed := ledger("ExternalSecret", map[string]State{"a": broken, "b": broken, "c": broken})
	changed.Set(types.NamespacedName{Namespace: "team", Name: "a"}, synced)
	changed.Forget(types.NamespacedName{Namespace: "team", Name: "b"})
	cleared := ledger("ExternalSecret", map[string]State{"a": broken})
	cleared.Clear()
	removed := ledger("ExternalSecret", map[string]State{"a": broken})

	cases := map[string]struct {
		reason string
		of     []*Ledger
		want   []string
	}{
		"NoLedger": {"A standby replica has no Ledger, and counts no object.", nil, nil},
		"Empty": {
			"Without objects there is no age, and none is out of sync.",
			[]*Ledger{ledger("PushSecret", nil)},
			[]string{`directsecrets_out_of_step_seconds{PushSecret} 0`},
		},
		"Objects": {
			"Objects are counted by reason, and the longest times are shown.",
			[]*Ledger{ledger("ExternalSecret", map[string]State{"a": synced, "b": synced, "c": broken, "d": periodic(time.Minute), "e": periodic(2 * time.Minute)})},
			[]string{
				`directsecrets_objects{ExternalSecret,SecretSynced,True} 4`,
				`directsecrets_objects{ExternalSecret,StoreNotReady,False} 1`,
				`directsecrets_oldest_sync_age_seconds{ExternalSecret} 120`,
				`directsecrets_out_of_step_seconds{ExternalSecret} 3600`,
			},
		},
		"SameKind": {
			"An object of a module that does not run is in another Ledger of the same Kind; the same series twice would fail the whole scrape.",
			[]*Ledger{ledger("ExternalSecret", map[string]State{"a": synced}), ledger("ExternalSecret", map[string]State{"b": synced, "c": broken})},
			[]string{
				`directsecrets_objects{ExternalSecret,SecretSynced,True} 2`,
				`directsecrets_objects{ExternalSecret,StoreNotReady,False} 1`,
				`directsecrets_out_of_step_seconds{ExternalSecret} 3600`,
			},
		},
		"Stores": {
			"Stores have their own series, and no refresh times.",
			[]*Ledger{stores},
			[]string{`directsecrets_stores{FakeStore,AuthFailed,False} 1`, `directsecrets_stores{FakeStore,Valid,True} 1`},
		},
		"Restarts": {
			"Restarts of workloads have a series of their own; the objects of a namespace are replaced at once.",
			[]*Ledger{ledger("ExternalSecret", map[string]State{"a": synced}), restarting()},
			[]string{
				`directsecrets_objects{ExternalSecret,SecretSynced,True} 1`,
				`directsecrets_out_of_step_seconds{ExternalSecret} 0`,
				`directsecrets_restarts{ExternalSecret,Restarting,False} 1`,
				`directsecrets_restarts{ExternalSecret,UpToDate,True} 1`,
				`directsecrets_restarts{ExternalSecret,WorkloadNotFound,False} 1`,
			},
		},
		"Others": {"Objects that another process reconciles are not counted.", []*Ledger{others}, nil},
		"Changed": {"The last Standing counts, and a deleted object does not.", []*Ledger{changed}, []string{
			`directsecrets_objects{ExternalSecret,SecretSynced,True} 1`,
			`directsecrets_objects{ExternalSecret,StoreNotReady,False} 1`,
			`directsecrets_out_of_step_seconds{ExternalSecret} 3600`,
		}},
		"Deletion": {
			"The longest deletion is shown once for each Kind, for stores as well.",
			[]*Ledger{following(ledger("PushSecret", map[string]State{"a": synced}), 20*time.Minute), following(ledger("PushSecret", nil), 0), following(deleted, 0)},
			[]string{
				`directsecrets_deletion_pending_seconds{FakeStore} 0`,
				`directsecrets_deletion_pending_seconds{PushSecret} 2400`,
				`directsecrets_objects{PushSecret,SecretSynced,True} 1`,
				`directsecrets_out_of_step_seconds{PushSecret} 0`,
				`directsecrets_stores{FakeStore,Valid,True} 1`,
			},
		},
		"Cleared": {"Objects dropped by Clear are not counted.", []*Ledger{cleared}, []string{`directsecrets_out_of_step_seconds{ExternalSecret} 0`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &ledgers{all: map[*Ledger]struct{}{}}
			for _, l := range append(tc.of, removed) {
				c.add(l)
			}
			c.remove(removed)
			if diff := cmp.Diff(tc.want, gather(t, c)); diff != "" {
				t.Errorf("\n%s\nCollect(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// gather returns the lines of a scrape, with the values of labels only.
func gather(t *testing.T, c prometheus.Collector) (lines []string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %g", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()))
		}
	}
	return lines
}

// TestNil checks that controllers can run without a Ledger: the methods of a nil Ledger do nothing, and do not panic.
func TestNil(t *testing.T) {
	cases := map[string]func(*Ledger){
		"Replace": func(l *Ledger) { l.Replace("", map[string]State{}) },
		"Set":     func(l *Ledger) { l.Set(types.NamespacedName{}, State{}) },
		"Forget":  func(l *Ledger) { l.Forget(types.NamespacedName{}) },
		"Clear":   (*Ledger).Clear,
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s(): a nil Ledger panics: %v", name, p)
				}
			}()
			call(nil)
		})
	}
}

func BenchmarkCollect(b *testing.B) {
	l := ledger("ExternalSecret", nil)
	for i := range 10_000 {
		l.Set(types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, State{Status: "True", Reason: "SecretSynced", Interval: time.Hour, Good: start})
	}
	c := &ledgers{all: map[*Ledger]struct{}{l: {}}}
	b.ReportAllocs()
	for b.Loop() {
		to := make(chan prometheus.Metric, 10)
		c.Collect(to)
	}
}
