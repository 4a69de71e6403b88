package charts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

// TestNotesOfLogins checks that the notes list the logins that work for the enabled modules, and the values for
// the others.
func TestNotesOfLogins(t *testing.T) {
	cases := map[string]struct {
		reason  string
		modules []string
		sets    []string
		want    string
	}{
		"NoStores": {reason: "the notes have no logins for generator-password", modules: []string{"generator-password"}},
		"Defaults": {
			reason: "the notes list the logins that are denied by default", modules: []string{"generator-password", "provider-aws"},
			want: `
  provider-aws
    serviceAccountRef: refused; to allow it, --set provider-aws.serviceAccountTokens.enabled=true
    the operator's own identity, without credentials in the store: cluster stores (provider-aws.ambientCredentials)`,
		},
		"Allowed": {
			reason: "the notes list the logins by the settings of each module", modules: []string{"provider-aws", "provider-gcp", "provider-vault"},
			sets: []string{
				`global.serviceAccountTokens.enabled=true`, `provider-aws.serviceAccountTokens={"namespaces":["shop","jobs"],"names":["reader"]}`,
				`provider-gcp.serviceAccountTokens.enabled=false`, `global.ambientCredentials="none"`, `provider-gcp.ambientCredentials="all"`,
			},
			want: `
  provider-aws
    serviceAccountRef: ServiceAccounts reader of the namespaces shop, jobs
    the operator's own identity, without credentials in the store: refused (provider-aws.ambientCredentials)
  provider-gcp
    serviceAccountRef: refused; to allow it, --set provider-gcp.serviceAccountTokens.enabled=true
    the operator's own identity, without credentials in the store: all stores (provider-gcp.ambientCredentials)
  provider-vault
    serviceAccountRef: ServiceAccounts of any name of every namespace that is served
    the operator's own identity, without credentials in the store: refused (provider-vault.ambientCredentials)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes, err := helmClient.Notes(helm.Release{Name: release, Namespace: namespace, Chart: umbrella, Values: enable(tc.modules, append(tc.sets, noCRDs)...)}, "v1.35.0")
			must(t, err)
			_, got, _ := strings.Cut(notes, "\nLogins of stores, and the values that allow them:\n")
			if diff := cmp.Diff(tc.want, strings.TrimRight(got, "\n")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\nin:\n%s", tc.reason, diff, notes)
			}
		})
	}
}

// TestNotesOfAParent checks the notes below a parent chart, where a misspelt setting of global can also be one
// of the parent. The notes ask which one was meant.
func TestNotesOfAParent(t *testing.T) {
	cases := map[string]struct {
		reason, set string
		want        string // the suggested setting; empty for none
	}{
		"Exact":    {reason: "without an unknown setting there is no question", set: `replicaCount`},
		"Others":   {reason: "a setting that is not similar to one of ours has no question", set: `storageClass`},
		"Missing":  {reason: "a missing letter is found", set: `replicaCont`, want: "replicaCount"},
		"TooMany":  {reason: "an additional letter is found", set: `replicaCounts`, want: "replicaCount"},
		"Other":    {reason: "a wrong letter is found", set: `replicaCourt`, want: "replicaCount"},
		"First":    {reason: "a wrong first letter is found", set: `teplicaCount`, want: "replicaCount"},
		"Swapped":  {reason: "two swapped letters are found", set: `replicaCuont`, want: "replicaCount"},
		"Case":     {reason: "a different case is found", set: `Replicacount`, want: "replicaCount"},
		"TwoOff":   {reason: "two wrong letters are another word", set: `replicaCo`},
		"Repeated": {reason: "equal adjacent letters are counted separately", set: `proxyy`, want: "proxy"},
		"Renamed":  {reason: "an old name is found", set: `replicas`, want: "replicaCount"},
	}
	sets := []string{`direct-secrets.provider-aws.enabled=true`, noCRDs}
	for _, tc := range cases {
		sets = append(sets, `global.`+tc.set+`=1`)
	}
	notes, err := helmClient.Notes(helm.Release{Name: release, Namespace: namespace, Chart: parentChart(t), Values: enable(nil, sets...)}, "v1.35.0")
	must(t, err)
	if !strings.Contains(notes, "runs provider-aws") {
		t.Fatalf("these are not the notes of the chart:\n%s", notes)
	}
	for name, tc := range cases {
		question := "UNKNOWN: global." + tc.set + " is not a setting of direct-secrets. Did you mean global."
		want := tc.want != "" && strings.Contains(notes, question+tc.want+"?")
		if got := strings.Contains(notes, question); got != (tc.want != "") || got != want {
			t.Errorf("%s: %s: want %q, got:\n%s", name, tc.reason, tc.want, notes)
		}
	}
}
