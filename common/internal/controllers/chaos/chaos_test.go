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
	// workers is the number of sequences that run at the same time, each in its own namespace.
	workers = 16
	// steps is the number of steps of a sequence.
	steps = 12
	// stableTimeout is how long it may take until everything is as specified, after all disturbances have ended.
	// Operators still start and stop meanwhile.
	stableTimeout = 2 * time.Minute
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
		t.Logf("%d operators were killed, %d ran at the same time as another", ops.kills, ops.doubled)
	})
	var halt sync.Once
	halted := make(chan struct{})
	testenv.Sequences{Workers: workers, Each: each, Seeds: seeds, Random: random}.Run(t, func(t *testing.T, _ int) func(*rapid.T) {
		w := newWorker(t, ops.server)
		return func(rt *rapid.T) {
			select {
			case <-halted: // Another worker has found a failure.
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

// A worker has its own namespace and backends.
type worker struct {
	*testenv.Client
	// backends are the backends that a store can use.
	backends [2]*fake.Backend
	names    [2]string
	count    int

	mu sync.Mutex
	// see is called with each version of a Secret.
	see func(watch.EventType, *corev1.Secret)
}

func newWorker(t *testing.T, server *fake.Server) *worker {
	t.Helper()
	ns := "chaos-" + testenv.RandomName()
	p := testenv.Shared(t)
	w := &worker{Client: testenv.NewClient(t, p, ns)}
	w.Ctx = context.Background()
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

// A sequence is the state common to all sequences.
type sequence struct {
	*worker
	rt      *rapid.T
	name    string
	values  int
	trace   []string
	repairs []func()
	// wrong is the first forbidden state that was seen; guarded by the worker's lock.
	wrong string
}

func (w *worker) begin(rt *rapid.T) *sequence {
	w.count++
	for _, b := range w.backends {
		b.Reset()
	}
	return &sequence{worker: w, rt: rt, name: fmt.Sprintf("s%d", w.count)}
}

// value returns a value that is later than all values before.
func (s *sequence) value(of string) string {
	s.values++
	return fmt.Sprintf("%s-%d", of, s.values)
}

// note logs a step. It returns true for use where a step is drawn.
func (s *sequence) note(format string, args ...any) {
	s.locked(func() {
		s.trace = append(s.trace, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
	})
}

// never records a forbidden state. The caller must hold the worker's lock.
func (s *sequence) never(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.trace = append(s.trace, time.Now().Format("05.000 ")+"WRONG: "+what)
	if s.wrong == "" {
		s.wrong = what
	}
}

// check ends the sequence if a forbidden state was seen.
func (s *sequence) check() {
	var wrong, trace string
	s.locked(func() { wrong, trace = s.wrong, strings.Join(s.trace, "\n") })
	if wrong != "" {
		s.Logf("%s/%s:\n%s", s.NS, s.name, trace)
		s.rt.Fatal("a forbidden state was seen")
	}
}

// finally waits until missing returns "".
func (s *sequence) finally(missing func() string) {
	deadline := time.Now().Add(stableTimeout)
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

// waitUntilEmpty waits until a namespace has no objects of a Kind.
func (s *sequence) waitUntilEmpty(list client.ObjectList) {
	for end := time.Now().Add(stableTimeout); ; time.Sleep(20 * time.Millisecond) {
		if err := s.API.List(s.Ctx, list, client.InNamespace(s.NS)); err == nil && meta.LenList(list) == 0 {
			return
		}
		if time.Now().After(end) {
			s.Errorf("%s/%s: objects are not deleted: %+v", s.NS, s.name, list)
			return
		}
	}
}

// breathe waits for a short time, mostly not at all.
func (s *sequence) breathe() {
	time.Sleep(time.Duration(testenv.Pick(s.rt, "pause", 0, 0, 5, 50, 300)) * time.Millisecond)
}

// fault makes a backend fail or hang for a secret until repair.
func (s *sequence) fault(b *fake.Backend, key string) string {
	f := testenv.Pick(s.rt, "fault", faults...)
	f.Key = key
	s.repairs = append(s.repairs, b.Inject(f))
	return fmt.Sprintf("%+v", f)
}

func (s *sequence) repair() {
	for _, repair := range s.repairs {
		repair()
	}
	s.repairs = nil
}

// must ends the sequence if the API server refuses an action of a user.
func (s *sequence) must(err error) {
	if err != nil {
		s.note("the API server answers: %v", err)
		s.locked(func() { s.never("the API server answers: %v", err) })
		s.check()
	}
}
