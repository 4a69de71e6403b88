package pushsecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
)

func TestTakenOut(t *testing.T) {
	t.Parallel()
	data := func(key, remote, property string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: key, RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: remote, Property: property}}}}}
	}
	dataTo := func(d ...v1alpha1.PushDataTo) v1alpha1.PushSecretSpec { return v1alpha1.PushSecretSpec{DataTo: d} }
	elsewhere := &v1alpha1.StoreRef{Kind: "FakeStore", Name: "other"}
	source := []pushed{{Source: push.Source{Name: "source", Data: map[string][]byte{"a": []byte("1")}}}}
	entry := v1alpha1.PushEntryStatus{RemoteKey: "old", Created: true, Source: "source"}
	property := v1alpha1.PushEntryStatus{RemoteKey: "old", Property: "p", Created: true, Source: "source"}
	cases := map[string]struct {
		reason   string
		spec     v1alpha1.PushSecretSpec
		entry    v1alpha1.PushEntryStatus
		secrets  []pushed
		observed int64
		source   string
		want     bool
	}{
		"Renamed":         {"the spec names another key", data("a", "new", ""), entry, source, 1, "as then", true},
		"RenamedMeantime": {"the spec names another key, and the source or the store has changed since", data("a", "new", ""), entry, source, 1, "another", true},
		"Property":        {"the spec names another property", data("a", "old", "q"), property, source, 1, "another", true},
		"Lacks":           {"the Secret lacks the key that the spec names", data("b", "old", ""), entry, source, 1, "another", false},
		"InSync":          {"the store has been in sync with this spec", data("a", "new", ""), entry, source, 2, "another", false},
		"SecretGone":      {"its Secret is deleted", data("a", "new", ""), entry, nil, 1, "another", false},
		"SecretEmpty":     {"its Secret is empty", data("a", "new", ""), entry, []pushed{{Source: push.Source{Name: "source"}}}, 1, "another", false},
		"Keys":            {"the key may be missing in the Secret", dataTo(v1alpha1.PushDataTo{}), entry, source, 1, "another", false},
		"KeysAsThen":      {"the Secret is unchanged, so the spec has changed", dataTo(v1alpha1.PushDataTo{}), entry, source, 1, "as then", true},
		"KeysElsewhere":   {"the spec sends keys to another store", dataTo(v1alpha1.PushDataTo{StoreRef: elsewhere}), entry, source, 1, "another", true},
		"Properties":      {"the property may be missing in the Secret", dataTo(v1alpha1.PushDataTo{RemoteKey: "old"}), property, source, 1, "another", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &destination{status: v1alpha1.PushStoreStatus{Kind: "FakeStore", Name: "store", ObservedGeneration: tc.observed, ObservedSource: "as then"}}
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: tc.spec}
			if diff := cmp.Diff(tc.want, d.takenOut(tc.entry, ps, tc.secrets, tc.source)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
