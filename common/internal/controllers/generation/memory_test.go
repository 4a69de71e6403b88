package generation

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestCarried creates an object again after its part was deleted. The watch may have reported the deletion of the part before that
// of the object, so that the credentials counted as those of the present object: its new Secret would show that nothing holds them.
func TestCarried(t *testing.T) {
	m := newMemory(func() float64 { return 0 })
	req := request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "db"}}
	o, _ := m.Get(req, "first")
	o.carried = []handoff.Retired{{UID: "before"}, {}}
	for _, uid := range []types.UID{"second", "third"} {
		o, _ = m.Get(req, uid)
	}
	var holders []types.UID
	for _, c := range o.carried {
		holders = append(holders, c.UID)
	}
	if diff := cmp.Diff([]types.UID{"before", "first"}, holders); diff != "" {
		t.Errorf("the objects whose Secrets may hold the credentials: -want, +got:\n%s", diff)
	}
}

// TestAttemptsKept lets attempts fail, each for something that the spec names only once. Only those of the last hour are kept.
func TestAttemptsKept(t *testing.T) {
	a := attempts{random: func() float64 { return 0 }}
	now := time.Unix(1_000_000, 0)
	for i := range 300 {
		a.fail(strconv.Itoa(i), "cause", now.Add(time.Duration(i)*time.Minute), provider.NewError(provider.Invalid, "it fails"))
	}
	if diff := cmp.Diff(true, len(a.tries) <= 62); diff != "" {
		t.Errorf("after 300 failures, one a minute, %d are kept; -want, +got:\n%s", len(a.tries), diff)
	}
	if a.failed("299") == nil {
		t.Error("the last failure is not kept")
	}
}
