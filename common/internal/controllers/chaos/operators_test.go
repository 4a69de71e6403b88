package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// An instance is a running operator with its connection to the API server.
type instance struct {
	mu   sync.Mutex
	cond *sync.Cond
	// held makes requests wait. killed makes them fail; the process then never gets the response to a request that was
	// executed.
	held, killed bool

	end context.CancelFunc
	// ended is closed when the operator has stopped.
	ended chan struct{}
	// writes counts the requests that are not reads.
	writes atomic.Int64
}

// leastWrites is the number of writes that an operator makes before it is killed, and workTimeout how long that may take. On a
// busy machine operators would otherwise be killed before they have done anything, and no object would ever be in sync.
const (
	leastWrites = 200
	workTimeout = 30 * time.Second
)

var errKilled = errors.New("the process was killed")

// wait blocks while the instance is held. It returns an error if the instance was killed.
func (i *instance) wait() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.held && !i.killed {
		i.cond.Wait()
	}
	if i.killed {
		return errKilled
	}
	return nil
}

func (i *instance) set(held, killed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held, i.killed = held, killed
	i.cond.Broadcast()
}

func (i *instance) wrap(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if err := i.wait(); err != nil {
			return nil, err
		}
		if r.Method != http.MethodGet {
			i.writes.Add(1)
		}
		resp, err := next.RoundTrip(r)
		if killed := i.wait(); killed != nil && err == nil {
			_ = resp.Body.Close()
			return nil, killed
		}
		return resp, err
	})
}

func (i *instance) kill() {
	i.set(false, true)
	i.end()
	<-i.ended
}

// operators are the cluster-wide operators: mostly one, at times two that both act as the leader.
type operators struct {
	t      *testing.T
	server *fake.Server
	// kills counts the operators that were killed, and doubled those that ran at the same time as another.
	kills, doubled int
}

func (o *operators) start() *instance {
	i := &instance{ended: make(chan struct{})}
	i.cond = sync.NewCond(&i.mu)
	e := testenv.On(o.t, testenv.Shared(o.t), "")
	e.Config = rest.CopyConfig(e.Config)
	e.Config.WrapTransport = i.wrap
	op := e.Operator("provider-fake", fakev1.Group, append(o.server.Kinds(), o.server.GeneratorKinds()...))
	ctx, cancel := context.WithCancel(context.Background())
	i.end = cancel
	go func() {
		defer close(i.ended)
		if err := op.Run(ctx); err != nil && ctx.Err() == nil {
			o.t.Errorf("an operator stops: %v", err)
		}
	}()
	return i
}

// run starts and stops operators until ctx ends. The actions are drawn from a seed; their timing is random.
func (o *operators) run(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	current := o.start()
	defer func() { current.kill() }()
	pause := func(least, most time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(least + time.Duration(random.Int64N(int64(most-least)))):
			return true
		}
	}
	works := func() bool {
		for end := time.Now().Add(workTimeout); current.writes.Load() < leastWrites && time.Now().Before(end); {
			if !pause(10*time.Millisecond, 20*time.Millisecond) {
				return false
			}
		}
		return true
	}
	for pause(time.Second, 4*time.Second) && works() {
		switch random.IntN(3) {
		case 0: // The operator dies, and the next one starts at once.
			current.kill()
			current = o.start()
		case 1: // The next one starts before it has stopped.
			next := o.start()
			o.doubled++
			pause(time.Second, 3*time.Second)
			current.kill()
			current = next
		case 2: // The operator is paused, the next one takes over, and then the first one continues for a while.
			current.set(true, false)
			next := o.start()
			o.doubled++
			pause(time.Second, 3*time.Second)
			current.set(false, false)
			pause(100*time.Millisecond, time.Second)
			current.kill()
			current = next
		}
		o.kills++
	}
}
