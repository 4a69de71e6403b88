package uuid

import (
	"context"
	"math"
	"regexp"
	"testing"

	"github.com/google/uuid"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

func generate(t testing.TB) string {
	t.Helper()
	made, err := Generator{}.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Values) != 1 || !made.Expires.IsZero() || made.State != "" {
		t.Fatalf("%d values with expiry %s and state %q", len(made.Values), made.Expires, made.State)
	}
	return string(made.Values["uuid"])
}

// TestFormat checks the text, version and variant of RFC 9562.
func TestFormat(t *testing.T) {
	like := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for range 1000 {
		if id := generate(t); !like.MatchString(id) {
			t.Errorf("%s is no UUID of version 4", id)
		}
	}
}

// TestRandom checks that no UUID occurs twice, and that each of the 122 random bits is set in half of all UUIDs. The
// number of UUIDs with a set bit has a binomial distribution, whose standard deviation is sqrt(n)/2. It differs by more
// than eight of them with a probability of at most 2*exp(-32) (Hoeffding). The 122 bits therefore raise a false alarm in
// fewer than one of 1e11 runs.
func TestRandom(t *testing.T) {
	const n = 100_000
	seen, set := map[string]bool{}, [128]int{}
	for range n {
		text := generate(t)
		seen[text] = true
		id, err := uuid.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range set {
			set[bit] += int(id[bit/8] >> (7 - bit%8) & 1)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d UUIDs came before", n-len(seen), n)
	}
	fixed := map[int]int{48: 0, 49: n, 50: 0, 51: 0, 64: n, 65: 0}
	for bit, times := range set {
		if want, ok := fixed[bit]; ok {
			if times != want {
				t.Errorf("bit %d of version and variant is set %d times, want %d", bit, times, want)
			}
			continue
		}
		if off := math.Abs(float64(times) - n/2); off > 8*math.Sqrt(n)/2 {
			t.Errorf("bit %d is set %d of %d times", bit, times, n)
		}
	}
}

func TestConnect(t *testing.T) {
	own, err := Connect(t.Context(), &v1alpha1.UUID{}, nil)
	shared, errShared := Connect(t.Context(), &v1alpha1.ClusterUUID{}, nil)
	if err != nil || errShared != nil || own != shared {
		t.Errorf("%v, %v, errors %v, %v", own, shared, err, errShared)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, err := Generator{}.Generate(ctx)
	if provider.ClassOf(err) != provider.Unavailable || made.Values != nil {
		t.Errorf("a call that was cancelled has %d values and error %v", len(made.Values), err)
	}
}
