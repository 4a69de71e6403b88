package operatortest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// An Escape is an attempt to read a key that a cluster store does not allow.
type Escape struct {
	Why string
	Ref v1alpha1.RemoteRef
	// Find is used instead of Ref if it is set.
	Find *v1alpha1.Find
	// Invalid is true if the key passes the store's rules, and the provider's code refuses it.
	Invalid bool
}

// Key returns the Escape with a key alone.
func Key(why, key string) Escape { return Escape{Why: why, Ref: v1alpha1.RemoteRef{Key: key}} }

// Find returns the Escape with a find in a folder; an empty path means everywhere.
func Find(why, path string) Escape {
	return Escape{Why: why, Find: &v1alpha1.Find{Path: path, Name: &v1alpha1.FindName{RegExp: ".*"}}}
}

// Escapes creates a cluster store, and tries to read keys that it does not allow to a namespace. All must be refused
// before any call. calls returns the calls that the server has seen so far. own is an allowed key, which proves that
// the store works.
func (s *Suite) Escapes(t *testing.T, namespace string, o provider.ClusterObject, own string, cases map[string]Escape, calls func() []string) {
	t.Helper()
	c := s.For(t)
	c.Create(o)
	c.Eventually(func() string { return cmp.Diff("True Valid", c.Ready(o)) })
	allowed := over(c, o, namespace, o.GetName(), own, "password")
	c.Create(allowed)
	c.Eventually(func() string { return cmp.Diff("True SecretSynced", c.Ready(allowed)) })

	before := len(calls())
	tries := map[string]*v1alpha1.ExternalSecret{}
	for name, tc := range cases {
		es := over(c, o, namespace, o.GetName()+"-"+strings.ToLower(name), own, "password")
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: "stolen", RemoteRef: tc.Ref})
		if tc.Find != nil {
			es.Spec.Data, es.Spec.DataFrom = nil, []v1alpha1.DataFromEntry{{Find: tc.Find}}
		}
		if tc.Invalid { // The allowed entry would be read.
			es.Spec.Data = es.Spec.Data[1:]
		}
		c.Create(es)
		tries[name] = es
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := s.For(t)
			reason, message := v1alpha1.ReasonForbidden, "allow"
			if tc.Invalid {
				reason, message = v1alpha1.ReasonSecretSyncedError, "Invalid: "
			}
			c.Eventually(func() string {
				return wrong(tc.Why, c.condition(tries[name]), metav1.ConditionFalse, reason, message)
			})
			if diff := cmp.Diff(map[string]string{}, c.In(namespace).Data(tries[name].Name)); diff != "" {
				t.Errorf("%s\nthe Secret: -want, +got:\n%s", tc.Why, diff)
			}
		})
	}
	if diff := cmp.Diff([]string{}, calls()[before:]); diff != "" {
		t.Errorf("refused keys cause calls: -want, +got:\n%s", diff)
	}
}
