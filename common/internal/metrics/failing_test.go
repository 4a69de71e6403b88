package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestFailing(t *testing.T) {
	broken := State{Status: "False", Reason: "StoreNotReady", Wrong: start}
	later := func(s State, by time.Duration) State { s.Wrong = s.Wrong.Add(by); return s }
	synced := State{Status: "True", Reason: "SecretSynced"}
	stores := ledger("FakeStore", nil)
	stores.stores = true
	stores.Set(types.NamespacedName{Name: "cluster"}, State{Status: "False", Reason: "ProviderNotRunning"})
	recovered := ledger("ExternalSecret", map[string]State{"a": broken, "b": broken})
	recovered.Set(types.NamespacedName{Namespace: "team", Name: "a"}, synced)
	recovered.Forget(types.NamespacedName{Namespace: "team", Name: "b"})
	others := ledger("ExternalSecret", map[string]State{"a": broken})
	others.counts = func() bool { return false }
	crowd := ledger("ExternalSecret", map[string]State{"a": broken, "b": later(broken, 2*time.Second), "c": later(broken, time.Second)})
	crowd.Set(types.NamespacedName{Namespace: "small", Name: "x"}, later(broken, time.Minute))

	const left = `directsecrets_failing_left_out{} `
	cases := map[string]struct {
		reason string
		most   int
		of     []*Ledger
		want   []string
	}{
		"Well": {"An object that is in sync, suspended or new has no series.", 9,
			[]*Ledger{ledger("ExternalSecret", map[string]State{
				"a": synced, "b": {Status: "False", Reason: "Suspended"}, "c": {Status: "Unknown", Reason: "Pending", Wrong: start.Add(time.Hour - time.Second)}})},
			[]string{left + "0"}},
		"Failing": {"A failing object has a series with its name, reason and start; so has an object that waits for long.", 9,
			[]*Ledger{ledger("ExternalSecret", map[string]State{"a": broken, "b": synced, "c": {Status: "Unknown", Reason: "Pending", Wrong: start}})},
			[]string{left + "0",
				fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,a,team,StoreNotReady} %g`, float64(start.Unix())),
				fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,c,team,Pending} %g`, float64(start.Unix()))}},
		"Recovered": {"The series of a recovered or deleted object disappears.", 9, []*Ledger{recovered}, []string{left + "0"}},
		"Store": {"A cluster store has no namespace. A store that no operator serves fails from when that was first seen.", 9, []*Ledger{stores},
			[]string{left + "0", fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{FakeStore,cluster,,ProviderNotRunning} %g`, float64(start.Add(time.Hour).Unix()))}},
		"Restarts": {"An object whose workloads do not restart fails since the first failure; one that restarts workloads does not.", 9, []*Ledger{restarting()},
			[]string{left + "0", fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,failed,team,WorkloadNotFound} %g`, float64(start.Unix()))}},
		"Others": {"Objects of another process are not counted.", 9, []*Ledger{others}, []string{left + "0"}},
		"Twice": {"An object that moves from one controller to another has one series; two would fail the whole scrape.", 9,
			[]*Ledger{ledger("ExternalSecret", map[string]State{"a": broken}), ledger("ExternalSecret", map[string]State{"a": later(broken, time.Second)})},
			[]string{left + "0", fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,a,team,StoreNotReady} %g`, float64(start.Unix()+1))}},
		"Crowd": {"One namespace cannot crowd out another, and its own objects that fail longest are shown.", 3, []*Ledger{crowd},
			[]string{left + "1",
				fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,a,team,StoreNotReady} %g`, float64(start.Unix())),
				fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,c,team,StoreNotReady} %g`, float64(start.Unix()+1)),
				fmt.Sprintf(`directsecrets_failing_since_timestamp_seconds{ExternalSecret,x,small,StoreNotReady} %g`, float64(start.Unix()+60))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &ledgers{all: map[*Ledger]struct{}{}}
			for _, l := range tc.of {
				c.add(l)
			}
			if diff := cmp.Diff(tc.want, gather(t, &failing{c, tc.most})); diff != "" {
				t.Errorf("\n%s\nCollect(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFailingCrowd makes ten thousand objects fail: almost all in one namespace, and a few in many others.
func TestFailingCrowd(t *testing.T) {
	const objects, others = 10_000, 300
	l := ledger("ExternalSecret", nil)
	for i := range objects {
		key := types.NamespacedName{Namespace: "crowd", Name: fmt.Sprint("object-", i)}
		if i < others {
			key.Namespace = fmt.Sprint("team-", i)
		}
		l.Set(key, State{Status: "False", Reason: "StoreNotReady", Wrong: start.Add(time.Duration(objects-i) * time.Millisecond)})
	}
	c := &ledgers{all: map[*Ledger]struct{}{l: {}}}
	lines := gather(t, &failing{c, mostFailing})
	series, small := 0, 0
	for _, line := range lines {
		if strings.HasPrefix(line, "directsecrets_failing_since") {
			series++
		}
		if strings.Contains(line, ",team-") {
			small++
		}
	}
	t.Logf("%d failing objects: %d series, %d of them of the %d namespaces with one; %s; without --metrics-per-object: %v", objects, series, small, others, lines[0], gather(t, c))
	type counts struct {
		Series, Small int
		LeftOut       string
	}
	want := counts{mostFailing, others, fmt.Sprint("directsecrets_failing_left_out{} ", objects-mostFailing)}
	if diff := cmp.Diff(want, counts{series, small, lines[0]}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// The same series are shown in each scrape: they do not depend on the order of a map.
	if diff := cmp.Diff(lines, gather(t, &failing{c, mostFailing})); diff != "" {
		t.Errorf("the next scrape: -want, +got:\n%s", diff)
	}
}
