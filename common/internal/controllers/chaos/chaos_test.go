package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const (
	// workers go through sequences at the same time, each in a namespace of its own.
	workers = 16
	// steps is how many things happen in a sequence.
	steps = 12
	// patience is how long it may take until all is as it shall be, once all is calm. Operators come and go meanwhile.
	patience = 2 * time.Minute
)

func TestPull(t *testing.T) { run(t, pulls, (*worker).pull) }

func run(t *testing.T, each int, sequence func(*worker, *rapid.T)) {
	t.Helper()
	ops := &operators{t: t, server: fake.NewServer()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ops.run(ctx, seeds[0])
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		t.Logf("%d operators were killed, %d ran beside another", ops.kills, ops.doubled)
	})
	var halt sync.Once
	halted := make(chan struct{})
	testenv.Sequences{Workers: workers, Each: each, Seeds: seeds, Random: random}.Run(t, func(t *testing.T, _ int) func(*rapid.T) {
		w := newWorker(t, ops.server)
		return func(rt *rapid.T) {
			select {
			case <-halted: // Somebody has found something; that is enough.
				return
			default:
			}
			defer func() {
				if rt.Failed() {
					halt.Do(func() { close(halted) })
				}
			}()
			sequence(w, rt)
		}
	})
}

// A worker has a namespace and backends of its own.
type worker struct {
	*testenv.Client
	// backends are those that a store can lead to.
	backends [2]*fake.Backend
	names    [2]string
	count    int

	mu sync.Mutex
	// see is told of each version of a Secret.
	see func(watch.EventType, *corev1.Secret)
}

func newWorker(t *testing.T, server *fake.Server) *worker {
	t.Helper()
	ns := "chaos-" + testenv.RandomName()
	p := testenv.Shared(t)
	w := &worker{Client: &testenv.Client{T: t, Plane: p, Ctx: context.Background(), NS: ns}}
	for i, suffix := range []string{"-one", "-two"} {
		w.names[i] = ns + suffix
		w.backends[i] = server.Backend(w.names[i])
	}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	secrets, err := p.API.Watch(w.Ctx, &corev1.SecretList{}, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(secrets.Stop)
	go func() {
		for ev := range secrets.ResultChan() {
			if s, ok := ev.Object.(*corev1.Secret); ok {
				w.locked(func() {
					if w.see != nil {
						w.see(ev.Type, s)
					}
				})
			}
		}
	}()
	return w
}

func (w *worker) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// A sequence is what all sequences have.
type sequence struct {
	*worker
	rt     *rapid.T
	name   string
	values int
	trace  []string
	heals  []func()
	// wrong is the first thing that must never be; guarded by the worker's lock.
	wrong string
}

func (w *worker) begin(rt *rapid.T) *sequence {
	w.count++
	for _, b := range w.backends {
		b.Reset()
	}
	return &sequence{worker: w, rt: rt, name: fmt.Sprintf("s%d", w.count)}
}

// value returns one that is later than all before.
func (s *sequence) value(of string) string {
	s.values++
	return fmt.Sprintf("%s-%d", of, s.values)
}

// note tells a step; it returns true so that it fits where a step is drawn.
func (s *sequence) note(format string, args ...any) {
	s.locked(func() {
		s.trace = append(s.trace, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
	})
}

// never notes what must never be; the worker is locked.
func (s *sequence) never(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.trace = append(s.trace, time.Now().Format("05.000 ")+"WRONG: "+what)
	if s.wrong == "" {
		s.wrong = what
	}
}

// check ends the sequence if something was that must never be.
func (s *sequence) check() {
	var wrong, trace string
	s.locked(func() { wrong, trace = s.wrong, strings.Join(s.trace, "\n") })
	if wrong != "" {
		s.Logf("%s/%s:\n%s", s.NS, s.name, trace)
		s.rt.Fatal("it was as it must never be")
	}
}

// finally waits until nothing is missing.
func (s *sequence) finally(missing func() string) {
	deadline := time.Now().Add(patience)
	for {
		s.check()
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			s.locked(func() { s.never("%s", what) })
			s.check()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// gone waits until a namespace has no objects of a Kind.
func (s *sequence) gone(list client.ObjectList) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if err := s.API.List(s.Ctx, list, client.InNamespace(s.NS)); err == nil && meta.LenList(list) == 0 {
			return
		}
		if time.Now().After(end) {
			s.Errorf("%s/%s: objects do not go: %+v", s.NS, s.name, list)
			return
		}
	}
}

// breathe lets some time pass, mostly none.
func (s *sequence) breathe() {
	time.Sleep(time.Duration(testenv.Pick(s.rt, "pause", 0, 0, 5, 50, 300)) * time.Millisecond)
}

// fault has a backend fail or hang for a secret until heal.
func (s *sequence) fault(b *fake.Backend, key string) string {
	f := testenv.Pick(s.rt, "fault", faults...)
	f.Key = key
	s.heals = append(s.heals, b.Inject(f))
	return fmt.Sprintf("%+v", f)
}

func (s *sequence) heal() {
	for _, heal := range s.heals {
		heal()
	}
	s.heals = nil
}

// must ends the sequence if the API server refuses what a person does.
func (s *sequence) must(err error) {
	if err != nil {
		s.note("the API server says: %v", err)
		s.locked(func() { s.never("the API server says: %v", err) })
		s.check()
	}
}
