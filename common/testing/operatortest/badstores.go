package operatortest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A BadStore is a store that cannot become ready.
type BadStore struct {
	Why   string
	Store provider.Object
	// Want is the reason of its Ready condition.
	Want string
	// Message is a part of the message: the field to fix.
	Message string
}

// BadStores creates stores that cannot become ready, and checks their conditions. Stores get the names of the cases.
// An ExternalSecret with such a store must wait for it, report why, and cause no read. reads returns the reads that
// the server has seen so far.
func (s *Suite) BadStores(t *testing.T, namespace string, cases map[string]BadStore, reads func() []string) {
	t.Helper()
	c := s.For(t)
	for name, tc := range cases {
		tc.Store.SetName(strings.ToLower(name))
		dropRetries(tc.Store)
		c.Create(tc.Store)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := s.For(t)
			c.Eventually(func() string {
				return wrong(tc.Why, c.condition(tc.Store), metav1.ConditionFalse, tc.Want, tc.Message)
			})
		})
	}
	// After the first round, the operator has seen the status that it wrote to the stores. The objects of the second
	// round then meet a closed gate.
	for _, round := range []string{"first", "second"} {
		before := len(reads())
		waiting := map[string]*v1alpha1.ExternalSecret{}
		for name, tc := range cases {
			waiting[name] = over(c, tc.Store, namespace, fmt.Sprintf("%s-%s", tc.Store.GetName(), round), "shop/db", "password")
			c.Create(waiting[name])
		}
		for name, es := range waiting {
			c.Eventually(func() string {
				return wrong(name+": the object reports why it waits", c.condition(es), metav1.ConditionFalse, v1alpha1.ReasonStoreNotReady, cases[name].Message)
			})
		}
		if diff := cmp.Diff([]string{}, reads()[before:]); round == "second" && diff != "" {
			t.Errorf("objects over stores that are not ready cause reads: -want, +got:\n%s", diff)
		}
	}
}

// wrong returns the difference between a condition and the expected one; empty if there is none.
func wrong(why string, c metav1.Condition, status metav1.ConditionStatus, reason, message string) string {
	if c.Status == status && c.Reason == reason && strings.Contains(c.Message, message) {
		return ""
	}
	return fmt.Sprintf("%s\nReady is %s %s %q, want %s %s with %q", why, c.Status, c.Reason, c.Message, status, reason, message)
}

// dropRetries sets zero retries for a store or generator, if its Kind has retries.
func dropRetries(o provider.Object) {
	if f := reflect.ValueOf(o).Elem().FieldByName("Spec").FieldByName("RetrySettings"); f.IsValid() {
		f.Set(reflect.ValueOf(&v1alpha1.RetrySettings{MaxRetries: new(int32)}))
	}
}
