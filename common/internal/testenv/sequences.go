package testenv

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Sequences are runs of a model: random steps, after which the result is compared with the rules.
type Sequences struct {
	// Workers is the number of workers that run sequences at the same time. Each waits most of the time.
	Workers int
	// Each is the number of sequences for each seed, in total for all workers, unless -rapid.checks sets it.
	Each int
	// Seeds are the recorded seeds, so that all changes are tested with the same sequences. A random one is added.
	Seeds []uint64
}

// Run runs all sequences. It calls start for each seed and worker; the result runs one sequence. -rapid.seed replaces
// the seeds; 0 selects a random one. A failure names the seed with which it can be repeated.
func (s Sequences) Run(t *testing.T, start func(t *testing.T, worker int) func(*rapid.T)) {
	t.Helper()
	seeds, each := s.settings(t)
	var all atomic.Int64
	began := time.Now()
	for _, seed := range seeds {
		t.Logf("seed %d; repeat with -run '^%s$' -rapid.seed=%d", seed, t.Name(), seed)
		setFlag(t, "rapid.seed", strconv.FormatUint(seed, 10))
		var wg sync.WaitGroup
		for i := range s.Workers {
			wg.Go(func() {
				// t.Parallel would run only one worker for each core.
				t.Run(fmt.Sprintf("Worker%d", i), func(t *testing.T) {
					sequence := start(t, i)
					rapid.Check(t, func(rt *rapid.T) {
						drawWorker(rt, i)
						sequence(rt)
						all.Add(1)
					})
				})
			})
		}
		wg.Wait()
		if t.Failed() {
			t.Fatalf("seed %d failed", seed)
		}
	}
	t.Logf("%d sequences of seeds %v in %s", all.Load(), seeds, time.Since(began).Round(time.Second))
	if want := int64(each * s.Workers * len(seeds)); all.Load() < want {
		t.Errorf("%d sequences were run, want %d", all.Load(), want)
	}
}

// settings returns the seeds, and the number of sequences for each seed and worker.
func (s Sequences) settings(t *testing.T) (seeds []uint64, each int) {
	t.Helper()
	given := commandLine()
	all := s.Each
	if v, ok := given["rapid.checks"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		all = n
	}
	each = (all + s.Workers - 1) / s.Workers
	setFlag(t, "rapid.checks", strconv.Itoa(each))
	// Each attempt to find a shorter failing sequence takes as long as a sequence, so their time is limited. The
	// output has the sequence, so no file is needed.
	for name, value := range map[string]string{"rapid.shrinktime": "5s", "rapid.nofailfile": "true"} {
		if _, ok := given[name]; !ok {
			setFlag(t, name, value)
		}
	}
	seeds = slices.Concat(s.Seeds, []uint64{rand.Uint64()})
	if v, ok := given["rapid.seed"]; ok {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			n = rand.Uint64()
		}
		seeds = []uint64{n}
	}
	return seeds, each
}

// commandLine returns the flags of the command line, without those that an earlier model has set.
var commandLine = sync.OnceValue(func() map[string]string {
	given := map[string]string{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	return given
})

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// drawWorker makes workers with the same seed draw different values.
func drawWorker(rt *rapid.T, worker int) {
	rapid.Custom(func(rt *rapid.T) int {
		for range worker + 1 { // Each draw must use at least one bit.
			rapid.Bool().Draw(rt, "bit")
		}
		return worker
	}).Draw(rt, "worker")
}

// Pick draws one of several options with equal probability. rapid itself prefers small numbers.
func Pick[T any](rt *rapid.T, label string, options ...T) T {
	return rapid.Custom(func(t *rapid.T) T {
		n := 0
		for range 12 {
			n *= 2
			if rapid.Bool().Draw(t, "bit") {
				n++
			}
		}
		return options[n%len(options)]
	}).Draw(rt, label)
}
