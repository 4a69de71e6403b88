package missingprovider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// conditionsOf returns conditions sorted by type, without their times.
func conditionsOf(conditions []metav1.Condition) []metav1.Condition {
	out := slices.Clone(conditions)
	for i := range out {
		out[i].LastTransitionTime = metav1.Time{}
	}
	slices.SortFunc(out, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

const noFakeStore = "no running module serves FakeStore; correct the kind, or install the module that has this Kind"

func TestProviderNotRunning(t *testing.T) {
	c := testenv.NewCrowd(t)
	c.Generators()
	begun := time.Now()
	c.Create(c.ExternalSecret("db"))
	c.Create(c.PushSecret("push"))
	c.Create(c.ExternalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	c.Create(c.ExternalSecret("vault", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterVaultKV" }))
	c.Create(c.ExternalSecret("late", func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }))

	c.WantReady("db", v1alpha1.ReasonProviderNotRunning)
	if took := time.Since(begun); took < testenv.Quickly.GracePeriod {
		t.Errorf("it was reported after %s, too early for a module that is still starting", took)
	}
	want := []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonProviderNotRunning, Message: noFakeStore, ObservedGeneration: 1},
		{Type: "Stalled", Status: "True", Reason: v1alpha1.ReasonProviderNotRunning, Message: noFakeStore, ObservedGeneration: 1},
	}
	es := c.Get("db")
	if diff := cmp.Diff(want, conditionsOf(es.Status.Conditions)); diff != "" {
		t.Errorf("conditions: -want, +got:\n%s", diff)
	}
	if es.Status.ObservedGeneration != 0 {
		t.Errorf("observedGeneration is %d, although no module has observed the spec", es.Status.ObservedGeneration)
	}
	if got := c.WantPushed("push", v1alpha1.ReasonProviderNotRunning); got != noFakeStore {
		t.Errorf("the message of the PushSecret is %q", got)
	}
	for name, want := range map[string]string{
		"typo":  "no running module serves AwsSecretsManager; correct the kind, or install the module that has this Kind",
		"vault": "no running module serves ClusterVaultKV; set provider-vault.enabled=true in the chart",
	} {
		if got := c.WantReady(name, v1alpha1.ReasonProviderNotRunning).Message; got != want {
			t.Errorf("%s: message is %q, want %q", name, got, want)
		}
	}
	if got := c.Get("late").Status.Conditions; len(got) > 0 {
		t.Errorf("a suspended object has conditions %v", got)
	}
	testenv.Update(c.Client, c.Get("late"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false })
	c.WantReady("late", v1alpha1.ReasonProviderNotRunning)
	versions := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"db", "typo", "vault"} {
			out[name] = c.Get(name).ResourceVersion
		}
		return out
	}
	reportedVersions := versions()
	another := c.Join("another", nil) // After any change of the modules, all objects are checked again.
	c.WaitForLeaseText("another", `"another"`)
	c.Create(c.ExternalSecret("after"))
	c.WantReady("after", v1alpha1.ReasonProviderNotRunning)
	if diff := cmp.Diff(reportedVersions, versions()); diff != "" {
		t.Errorf("an unchanged condition was written again: -before, +after:\n%s", diff)
	}
	another()

	c.Stores()
	c.WantReady("db", v1alpha1.ReasonSecretSynced)
	c.WantSecret("db", "value", "s3cret")
	if got := c.WantPushed("push", v1alpha1.ReasonSecretSynced); got != "all stores are in sync" {
		t.Errorf("the message of the PushSecret is %q", got)
	}
	want = []metav1.Condition{{Type: "Ready", Status: "True", Reason: v1alpha1.ReasonSecretSynced, Message: "the Secret is in sync", ObservedGeneration: 1}}
	if diff := cmp.Diff(want, conditionsOf(c.Get("db").Status.Conditions)); diff != "" {
		t.Errorf("conditions once the module runs: -want, +got:\n%s", diff)
	}
	if got := len(c.GetPush("push").Status.Conditions); got != 1 {
		t.Errorf("the PushSecret has %d conditions, want Ready only", got)
	}
	c.WantReady("typo", v1alpha1.ReasonProviderNotRunning)
}

// TestModuleStopped stops a module, and checks the conditions of objects that it has served.
func TestModuleStopped(t *testing.T) {
	c := testenv.NewCrowd(t)
	c.Generators()
	stop := c.Stores()
	interval := func(d string) testenv.Spec {
		return func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = v1alpha1.Duration(d) }
	}
	cases := map[string]struct {
		reason string
		spec   testenv.Spec
		// change is applied after the module has stopped.
		change testenv.Spec
		want   string
	}{
		"hourly":    {reason: "an object whose refresh is not due stays in sync", spec: interval("1h"), want: v1alpha1.ReasonSecretSynced},
		"once":      {reason: "an object that is never refreshed again stays in sync", spec: func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshCreatedOnce }, want: v1alpha1.ReasonSecretSynced},
		"due":       {reason: "an object whose refresh is due is reported", spec: interval("5s"), want: v1alpha1.ReasonProviderNotRunning},
		"changed":   {reason: "an object with a changed spec is reported", spec: interval("1h"), change: testenv.Fills("other", "db"), want: v1alpha1.ReasonProviderNotRunning},
		"requested": {reason: "an object with a refresh request is reported", spec: interval("1h"), change: testenv.Request("now"), want: v1alpha1.ReasonProviderNotRunning},
		"suspended": {reason: "a suspended object is not reported", spec: interval("1h"), change: func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }, want: v1alpha1.ReasonSecretSynced},
		"labelled":  {reason: "an object with a changed label is not reported", spec: interval("1h"), change: func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} }, want: v1alpha1.ReasonSecretSynced},
	}
	for name, tc := range cases {
		c.Create(c.ExternalSecret(name, testenv.Fills("value", "db"), tc.spec))
	}
	c.Create(c.PushSecret("hourly"))
	c.Create(c.PushSecret("changed"))
	for name := range cases {
		c.WantReady(name, v1alpha1.ReasonSecretSynced)
	}
	c.WantPushed("hourly", v1alpha1.ReasonSecretSynced)
	c.WantPushed("changed", v1alpha1.ReasonSecretSynced)
	// On a busy machine, objects can be reported before the Lease of their module is there.
	early := map[string]bool{}
	for name := range cases {
		early[name] = slices.Contains(c.EventsOf(name), v1alpha1.ReasonProviderNotRunning)
	}
	stop()
	stopped := time.Now()
	for name, tc := range cases {
		if tc.change != nil {
			testenv.Update(c.Client, c.Get(name), tc.change)
		}
	}
	testenv.Update(c.Client, c.GetPush("changed"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })

	c.Create(c.ExternalSecret("new", testenv.Fills("value", "db")))
	c.WantReady("new", v1alpha1.ReasonProviderNotRunning)
	if took := time.Since(stopped); took < testenv.Quickly.Duration-2*testenv.Quickly.Renew {
		t.Errorf("it was reported %s after the module had stopped; a Lease is valid for %s", took, testenv.Quickly.Duration)
	}
	c.WantPushed("changed", v1alpha1.ReasonProviderNotRunning)
	for name, tc := range cases {
		c.Eventually(func() string {
			got := meta.FindStatusCondition(c.Get(name).Status.Conditions, v1alpha1.ConditionReady)
			if got.Reason != tc.want {
				return fmt.Sprintf("%s: %s: Ready is %s, want %s", name, tc.reason, got.Reason, tc.want)
			}
			return ""
		})
	}
	if got := c.GetPush("hourly").Status.Conditions[0].Reason; got != v1alpha1.ReasonSecretSynced {
		t.Errorf("the PushSecret in sync has the reason %s", got)
	}

	c.Stores()
	for name := range cases {
		if name != "suspended" {
			c.WantReady(name, v1alpha1.ReasonSecretSynced)
		}
	}
	c.WantReady("suspended", v1alpha1.ReasonSuspended)
	c.WantReady("new", v1alpha1.ReasonSecretSynced)
	c.WantPushed("changed", v1alpha1.ReasonSecretSynced)
	for name, tc := range cases {
		reported := slices.Contains(c.EventsOf(name), v1alpha1.ReasonProviderNotRunning)
		if reported != (tc.want == v1alpha1.ReasonProviderNotRunning) && !early[name] {
			t.Errorf("%s: %s: there is an event: %t", name, tc.reason, reported)
		}
	}
}

// TestModuleRestarts checks that a module that restarts soon is never reported as missing.
func TestModuleRestarts(t *testing.T) {
	c := testenv.NewCrowd(t)
	c.Generators()
	stop := c.Stores()
	c.Create(c.ExternalSecret("db"))
	c.WantReady("db", v1alpha1.ReasonSecretSynced)
	for i := range 3 {
		stop()
		name := fmt.Sprintf("db%d", i)
		c.Create(c.ExternalSecret(name, testenv.Fills("value", "db")))
		testenv.Update(c.Client, c.Get("db"), testenv.Request(name))
		stop = c.Stores()
		c.WantReady(name, v1alpha1.ReasonSecretSynced)
	}
	for _, name := range []string{"db", "db0", "db1", "db2"} {
		if got := c.EventsOf(name); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
			t.Errorf("%s has events %v", name, got)
		}
	}
}

// TestNamespacesOfMembers runs a module of stores and a module of generators, which serve different namespaces.
func TestNamespacesOfMembers(t *testing.T) {
	c := testenv.NewCrowd(t)
	elsewhere := testenv.NewSerial(t)
	elsewhere.Backend = c.Backend
	elsewhere.Create(elsewhere.Store("s", "main"))
	both := func(f *operator.Flags) { f.Namespaces = c.NS + "," + elsewhere.NS }
	only := func(f *operator.Flags) { f.Namespaces = elsewhere.NS }
	c.Generators(operator.WithFlags(both))
	c.Stores(operator.WithFlags(only))

	c.Create(c.ExternalSecret("db"))
	elsewhere.Create(elsewhere.ExternalSecret("db"))
	elsewhere.WantReady("db", v1alpha1.ReasonSecretSynced)
	if got := c.WantReady("db", v1alpha1.ReasonProviderNotRunning).Message; got != noFakeStore {
		t.Errorf("message is %q", got)
	}
	// A module with chosen namespaces reports by itself that it serves no cluster Kind. No other module reports on
	// that object.
	elsewhere.Create(elsewhere.ExternalSecret("cluster", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterFakeStore" }))
	elsewhere.Create(elsewhere.ExternalSecret("typo", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "AwsSecretsManager" }))
	elsewhere.WantReady("typo", v1alpha1.ReasonProviderNotRunning)
	elsewhere.WantReady("cluster", v1alpha1.ReasonForbidden)
	if got := elsewhere.EventsOf("cluster"); slices.Contains(got, v1alpha1.ReasonProviderNotRunning) {
		t.Errorf("the object of the cluster Kind has events %v", got)
	}
}

// TestUnknownClass reports a store whose controller class no running operator serves, and its objects, until an operator of
// that class starts.
func TestUnknownClass(t *testing.T) {
	c := testenv.NewCrowd(t)
	c.Stores()
	read := func() []metav1.Condition {
		var got fakev1alpha1.FakeStore
		if err := c.API.Get(c.Ctx, client.ObjectKey{Namespace: c.NS, Name: "classed"}, &got); err != nil {
			t.Fatal(err)
		}
		return conditionsOf(got.Status.Conditions)
	}
	c.Create(c.Store("classed", "main", func(s *fakev1alpha1.FakeStore) { s.Spec.Controller = "blue" }))
	of := func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Name = "classed" }
	c.Create(c.ExternalSecret("db", of))
	c.Create(c.PushSecret("push", func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = "classed" }))
	const message = `no running operator serves the class "blue" of FakeStore "classed"; correct its spec.controller, or start an operator with --controller-class=blue (global.controllerClass in the chart)`

	if got := c.WantReady("db", v1alpha1.ReasonProviderNotRunning).Message; got != message {
		t.Errorf("the message of the ExternalSecret is %q", got)
	}
	if got := c.WantPushed("push", v1alpha1.ReasonProviderNotRunning); got != message {
		t.Errorf("the message of the PushSecret is %q", got)
	}
	want := []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonProviderNotRunning, Message: message, ObservedGeneration: 1},
		{Type: "Stalled", Status: "True", Reason: v1alpha1.ReasonProviderNotRunning, Message: message, ObservedGeneration: 1},
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("conditions of the store: -want, +got:\n%s", diff)
	}

	c.Stores(operator.WithFlags(func(f *operator.Flags) { f.ControllerClass = "blue" }))
	c.WantReady("db", v1alpha1.ReasonSecretSynced)
	c.WantPushed("push", v1alpha1.ReasonSecretSynced)
	want = []metav1.Condition{{Type: "Ready", Status: "True", Reason: v1alpha1.ReasonStoreValid, Message: "the store answers and accepts the login", ObservedGeneration: 1}}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("conditions of the store, served: -want, +got:\n%s", diff)
	}
}
