package operatortest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TenProperties is the value of the secrets that Calls reads.
const TenProperties = `{"p0":"0","p1":"1","p2":"2","p3":"3","p4":"4","p5":"5","p6":"6","p7":"7","p8":"8","p9":"9"}`

// Calls creates a store, and one object for each of keys that needs ten properties of it, and refreshes them in three
// rounds. In each round a secret must be read once, and there must be only one login in total. reads returns the
// reads of a key that the server has seen so far, logins the logins.
func (s *Suite) Calls(t *testing.T, namespace string, o provider.Object, keys []string, reads func(key string) int, logins func() int) {
	t.Helper()
	c := s.For(t)
	c.Create(o)
	c.Eventually(func() string { return cmp.Diff("True Valid", c.Ready(o)) })
	var properties []string
	for i := range 10 {
		properties = append(properties, fmt.Sprintf("p%d", i))
	}
	var objects []*v1alpha1.ExternalSecret
	for i, key := range keys {
		objects = append(objects, over(c, o, namespace, strings.ToLower(fmt.Sprintf("%s-%s-%d", c.Kind(o), o.GetName(), i)), key, properties...))
		c.Create(objects[i])
	}
	for round := 1; round <= 3; round++ {
		for _, es := range objects {
			if round > 1 {
				c.Refresh(es, request(round))
			}
		}
		for i, es := range objects {
			c.Eventually(func() string {
				ready := c.Ready(es)
				return cmp.Diff("True SecretSynced "+request(round), ready+" "+es.Status.ObservedRefreshRequest)
			})
			if n := reads(keys[i]); n != round {
				t.Errorf("round %d: ten properties of one secret took %d reads in total, want %d", round, n, round)
			}
		}
		if n := logins(); n != 1 {
			t.Errorf("round %d: %d logins, want one in total", round, n)
		}
	}
}

// request returns the refresh request of a round; empty in the first.
func request(round int) string {
	if round == 1 {
		return ""
	}
	return fmt.Sprint(round)
}
