package operator

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// added is a manager that stores the added runnables.
type added struct {
	manager.Manager

	runnables []manager.Runnable
}

func (a *added) Add(r manager.Runnable) error {
	a.runnables = append(a.runnables, r)
	return nil
}

// loop is a runnable with caches to fill.
type loop struct{ err error }

func (loop) Start(context.Context) error    { return nil }
func (loop) NeedLeaderElection() bool       { return true }
func (l loop) Warmup(context.Context) error { return l.err }

func TestReadiness(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		add    []manager.Runnable
		warm   int // It is the number of runnables that fill their caches.
		want   bool
	}{
		"NoLoop": {
			reason: "a runnable without caches is not waited for",
			add:    []manager.Runnable{manager.RunnableFunc(func(context.Context) error { return nil })},
			want:   true,
		},
		"NotYet": {
			reason: "one of two controllers has not filled its caches",
			add:    []manager.Runnable{loop{}, loop{}},
			warm:   1,
		},
		"Failed": {
			reason: "a controller whose warmup failed has not filled its caches",
			add:    []manager.Runnable{loop{err: boom}},
			warm:   1,
		},
		"All": {
			reason: "all controllers have filled their caches",
			add:    []manager.Runnable{loop{}, loop{}},
			warm:   2,
			want:   true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mgr := &added{}
			r := &readiness{Manager: mgr}
			for _, runnable := range tc.add {
				if err := r.Add(runnable); err != nil {
					t.Fatal(err)
				}
			}
			for _, runnable := range mgr.runnables[:tc.warm] {
				w, ok := runnable.(warm)
				if !ok {
					t.Fatalf("%T fills no caches", runnable)
				}
				if !w.NeedLeaderElection() {
					t.Error("a loop must wait to lead")
				}
				if err := w.Warmup(t.Context()); err != nil && !errors.Is(err, boom) {
					t.Fatal(err)
				}
			}
			if err := r.Check(nil); (err == nil) != tc.want {
				t.Errorf("%s: Check() = %v", tc.reason, err)
			}
		})
	}
}
