package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMatches(t *testing.T) {
	aws := schema.GroupKind{Group: "aws." + Group, Kind: "AWSSecretsManager"}
	foreign := schema.GroupKind{Group: "stores.example.com", Kind: "AWSSecretsManager"}
	cases := map[string]struct {
		reason string
		ref    *StoreRef
		kind   schema.GroupKind
		want   bool
	}{
		"Kind":         {"the Kind is enough within the project", &StoreRef{Kind: "AWSSecretsManager"}, aws, true},
		"OtherKind":    {"another Kind is not named", &StoreRef{Kind: "VaultKV"}, aws, false},
		"Foreign":      {"a Kind of another project needs its group", &StoreRef{Kind: "AWSSecretsManager"}, foreign, false},
		"ForeignGroup": {"and is named with it", &StoreRef{APIVersion: "stores.example.com/v1", Kind: "AWSSecretsManager"}, foreign, true},
		"AnyVersion":   {"the version does not count", &StoreRef{APIVersion: "aws.direct-secrets.io/v9", Kind: "AWSSecretsManager"}, aws, true},
		"OtherGroup":   {"the group does", &StoreRef{APIVersion: "gcp.direct-secrets.io/v1alpha1", Kind: "AWSSecretsManager"}, aws, false},
		"Suffix":       {"a group that only ends alike is foreign", &StoreRef{Kind: "AWSSecretsManager"}, schema.GroupKind{Group: "evil" + Group, Kind: "AWSSecretsManager"}, false},
		"Root":         {"the root group is the project's, too", &StoreRef{Kind: "AWSSecretsManager"}, schema.GroupKind{Group: Group, Kind: "AWSSecretsManager"}, true},
		"None":         {"no reference names nothing", nil, aws, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.ref.Matches(tc.kind); got != tc.want {
				t.Errorf("\n%s\nMatches(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLeadingStore(t *testing.T) {
	type spec = ExternalSecretSpec
	ref := func(name string) *StoreRef { return &StoreRef{Kind: "FakeStore", Name: name} }
	generator := &StoreRef{Kind: "Password", Name: "pw"}
	withStore := func(name string) DataEntry { return DataEntry{SourceRef: &DataSourceRef{StoreRef: *ref(name)}} }
	fromStore := func(name string) DataFromEntry { return DataFromEntry{SourceRef: &SourceRef{StoreRef: ref(name)}} }
	cases := map[string]struct {
		reason string
		spec   spec
		want   *StoreRef
	}{
		"Spec":           {"spec.storeRef leads, whatever the entries name.", spec{StoreRef: ref("a"), Data: []DataEntry{withStore("b")}, DataFrom: []DataFromEntry{fromStore("c")}}, ref("a")},
		"Data":           {"Without one, the first data entry leads.", spec{Data: []DataEntry{withStore("b"), withStore("x")}, DataFrom: []DataFromEntry{fromStore("c")}}, ref("b")},
		"DataFrom":       {"Without data, the first dataFrom entry leads.", spec{DataFrom: []DataFromEntry{fromStore("c"), fromStore("x")}}, ref("c")},
		"Generator":      {"A generator leads like a store.", spec{DataFrom: []DataFromEntry{{SourceRef: &SourceRef{GeneratorRef: generator}}}}, generator},
		"FirstHasNone":   {"Only the first entry counts.", spec{Data: []DataEntry{{}, withStore("x")}}, nil},
		"FirstFromNone":  {"Only the first entry counts.", spec{DataFrom: []DataFromEntry{{}, fromStore("x")}}, nil},
		"DataBeforeFrom": {"A data entry without a store does not make dataFrom lead.", spec{Data: []DataEntry{{}}, DataFrom: []DataFromEntry{fromStore("c")}}, nil},
		"Nothing":        {"An object that names no store has no leading one.", spec{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (&ExternalSecret{Spec: tc.spec}).LeadingStore()); diff != "" {
				t.Errorf("\n%s\nLeadingStore(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
