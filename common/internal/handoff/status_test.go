package handoff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestContributor pins the names by which modules of different versions find each other's contributions.
func TestContributor(t *testing.T) {
	type names struct{ Key, Part string }
	cases := map[string]struct {
		reason string
		c      Contributor
		want   names
	}{
		"Generated": {"generated values have the plain names", Contributor{"fake", "", v1alpha1.PartGenerated}, names{"fake", "db-part-52befbd044732ec6"}},
		"Read":      {"values that were read are stored separately", Contributor{"fake", "", v1alpha1.PartRead}, names{"fake#reads", "db-part-372d583eedf35a4c"}},
		"Class":     {"operators of two classes store separately", Contributor{"fake", "blue", v1alpha1.PartGenerated}, names{"fake/blue", "db-part-7452d84ae90de551"}},
		"ClassRead": {"operators of two classes store read values separately", Contributor{"fake", "a/b", v1alpha1.PartRead}, names{"fake/a/b#reads", "db-part-6b7a8220ab402882"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := names{tc.c.Key(), tc.c.PartName("ExternalSecret", "db")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			entry := v1alpha1.PartStatus{Module: tc.c.Key(), Group: tc.c.Group, Class: tc.c.Class, Purpose: tc.c.Purpose}
			if diff := cmp.Diff(tc.c, ContributorOf(entry)); diff != "" {
				t.Errorf("ContributorOf(): -want, +got:\n%s", diff)
			}
			for other, o := range cases {
				if got, want := o.c.Wrote(entry), other == name; got != want {
					t.Errorf("%s wrote the entry of %s: %t, want %t", other, name, got, want)
				}
			}
		})
	}
}

// TestWrote checks entries of modules built before entries had a group: only the key identifies their writer.
func TestWrote(t *testing.T) {
	cases := map[string]struct {
		reason       string
		group, class string
		entry        string
		want         bool
	}{
		"Read":      {"values that the operator read", "aws.direct-secrets.io", "", "aws.direct-secrets.io#reads", true},
		"Generated": {"values that the operator generated", "aws.direct-secrets.io", "blue", "aws.direct-secrets.io/blue", true},
		"Class":     {"values that an operator of another class read", "aws.direct-secrets.io", "", "aws.direct-secrets.io/blue#reads", false},
		"Module":    {"values of another module", "aws.direct-secrets.io", "", "gcp.direct-secrets.io", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Wrote(tc.group, tc.class, v1alpha1.PartStatus{Module: tc.entry}); got != tc.want {
				t.Errorf("\n%s\nWrote(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPartName(t *testing.T) {
	long := strings.Repeat("a", 252) + "b"
	plain := Contributor{"fake", "", v1alpha1.PartGenerated}
	names := map[string]string{}
	for _, n := range []string{
		plain.PartName("ExternalSecret", "db"), plain.PartName("PushSecret", "db"), plain.PartName("ExternalSecret", "dbx"),
		Contributor{"fake", "x", v1alpha1.PartGenerated}.PartName("ExternalSecret", "db"),
		Contributor{"fake", "", v1alpha1.PartRead}.PartName("ExternalSecret", "db"),
		Contributor{"other", "", v1alpha1.PartGenerated}.PartName("ExternalSecret", "db"),
		plain.PartName("ExternalSecret", long), plain.PartName("ExternalSecret", long[:252]+"c"),
		plain.PartName("ExternalSecret", strings.Repeat("a.", 126)+"a"),
	} {
		if msgs := validation.IsDNS1123Subdomain(n); len(msgs) > 0 {
			t.Errorf("%q cannot be the name of a Secret: %s", n, msgs[0])
		}
		if _, twice := names[n]; twice {
			t.Errorf("%q is the name of two parts", n)
		}
		names[n] = n
	}
}
