package restart_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestRestart changes a value. The workload gets one annotation, and nothing else.
func TestRestart(t *testing.T) {
	t.Parallel()
	named := func(kind v1alpha1.WorkloadKind) testenv.Spec {
		return func(es *v1alpha1.ExternalSecret) {
			es.Spec.Target.Restart = &v1alpha1.Restart{Window: "1s", Workloads: []v1alpha1.WorkloadRef{{Kind: kind, Name: "app"}}}
		}
	}
	configMap := func(es *v1alpha1.ExternalSecret) {
		auto(es)
		es.Spec.Target.Kind = v1alpha1.TargetConfigMap
	}
	long := strings.Repeat("a", 64)
	cases := map[string]struct {
		reason  string
		kind    string
		secret  string
		uses    string
		change  testenv.Spec
		key     string
		ignored bool
	}{
		"Deployment":  {"A Deployment that uses the Secret restarts.", "Deployment", "db", "db", auto, "db", false},
		"StatefulSet": {"A StatefulSet that uses the Secret restarts.", "StatefulSet", "db", "db", auto, "db", false},
		"DaemonSet":   {"A DaemonSet that uses the Secret restarts.", "DaemonSet", "db", "db", auto, "db", false},
		"Rollout":     {"A Rollout that uses the Secret restarts.", "Rollout", "db", "db", auto, "db", false},
		"Named":       {"A listed workload restarts without a use of the Secret.", "StatefulSet", "db", "other", named("StatefulSet"), "db", false},
		"ConfigMap":   {"A ConfigMap restarts the workloads that use it.", "Deployment", "db", "configmap:db", configMap, "configmap_db", false},
		"LongName":    {"The name of a Secret that is too long for an annotation is hashed.", "Deployment", long, long, auto, "", false},
		"NotUsed":     {"A workload that uses another Secret does not restart.", "Deployment", "db", "other", auto, "", true},
		"NotNamed":    {"A workload that is not listed does not restart.", "Deployment", "db", "db", named("StatefulSet"), "", true},
		"SameName":    {"A Secret does not restart a workload that uses a ConfigMap of its name.", "Deployment", "db", "configmap:db", auto, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			if tc.kind == "Rollout" {
				e.rollouts()
			}
			app := e.workload(tc.kind, "app", tc.uses)
			if name == "NotNamed" {
				e.workload("StatefulSet", "app", "other")
			}
			e.synced(tc.secret, "1", tc.change)
			if n := e.restarts(app); n != 0 {
				t.Errorf("%s: the first sync restarted the workload %d times", tc.reason, n)
			}
			before := e.live(app)
			e.set(tc.secret, "2")
			if tc.ignored {
				time.Sleep(quiet)
				e.wantRestarted(app, 0)
				return
			}
			e.wantRestarted(app, 1)
			e.wantRestarts(tc.secret, v1alpha1.ReasonRestarting, "restarting "+tc.kind+` "app"`)
			e.rolled(app)
			e.wantRestarts(tc.secret, v1alpha1.ReasonUpToDate, "")
			after := e.live(app)
			e.wantOnlyAnnotation(before, after, tc.key)
			e.WantReady(tc.secret, v1alpha1.ReasonSecretSynced)
		})
	}
}

// wantOnlyAnnotation checks that a restart has changed nothing but an annotation of the pod template.
func (e *env) wantOnlyAnnotation(before, after *unstructured.Unstructured, key string) {
	e.Helper()
	was, wasAnnotations := template(before)
	is, annotations := template(after)
	if diff := cmp.Diff(was, is); diff != "" {
		e.Errorf("the spec of the workload has changed: -before, +after:\n%s", diff)
	}
	if len(annotations) != len(wasAnnotations)+1 || annotations["team"] != "shop" || key != "" && annotations[v1alpha1.RestartAnnotationPrefix+key] == "" {
		e.Errorf("the annotations were %v, and are %v; want one more with %q", wasAnnotations, annotations, key)
	}
	if diff := cmp.Diff(before.GetLabels(), after.GetLabels()) + cmp.Diff(before.GetAnnotations(), after.GetAnnotations()); before.GetKind() != "Deployment" && before.GetKind() != "DaemonSet" && diff != "" {
		e.Errorf("the metadata of the workload have changed: %s", diff)
	}
	wasManagers, isManagers := managers(before), managers(after)
	if diff := cmp.Diff(wasManagers["kubectl"].FieldsV1, isManagers["kubectl"].FieldsV1); diff != "" {
		e.Errorf("the fields of kubectl have changed: %s", diff)
	}
	if own := isManagers[v1alpha1.RestartFieldManager].FieldsV1; own == nil || strings.Count(own.String(), `"f:`) != 5 {
		e.Errorf("%s owns %v, want one annotation", v1alpha1.RestartFieldManager, own)
	}
}

// TestReferringRollout changes a value that a Rollout uses whose pod template is that of a Deployment. Argo Rollouts refuses it
// with a pod template of its own.
func TestReferringRollout(t *testing.T) {
	e := newEnv(t)
	e.rollouts()
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "app", "namespace": e.NS},
		"spec": map[string]any{"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}},
	}}
	e.Create(app)
	e.synced("db", "1", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Restart = &v1alpha1.Restart{Window: "1s", Workloads: []v1alpha1.WorkloadRef{{Kind: "Rollout", Name: "app"}}}
	})
	e.set("db", "2")
	e.wantRestarted(app, 1)
	e.wantRestarts("db", v1alpha1.ReasonRestarting, `restarting Rollout "app"`)
	is := e.live(app)
	_, hasTemplate, _ := unstructured.NestedMap(is.Object, "spec", "template")
	at, _, _ := unstructured.NestedString(is.Object, "spec", "restartAt")
	if hasTemplate || at == "" || is.GetAnnotations()[v1alpha1.RestartAnnotationPrefix+"db"] == "" {
		t.Errorf("the Rollout is %v, want restartAt, a record in its annotations, and no pod template", is.Object)
	}
	e.rolled(app)
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	e.refresh("db")
	e.wantRestarted(app, 1)
}

// TestSameData makes changes after a restart that leave the data as they are.
func TestSameData(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		do     func(e *env)
	}{
		"Refresh": {"A refresh that finds the same values restarts nothing.", func(e *env) { e.refresh("db") }},
		"Operator": {"An operator that starts restarts nothing.", func(e *env) {
			e.Stop()
			e.Start()
		}},
		"Reinstalled": {"An operator that starts without its status restarts nothing.", func(e *env) {
			e.Stop()
			testenv.Update(e.Client, e.Get("db"), func(*v1alpha1.ExternalSecret) {})
			es := e.Get("db")
			es.Status = v1alpha1.ExternalSecretStatus{}
			if err := e.API.Status().Update(e.Ctx, es); err != nil {
				e.Fatal(err)
			}
			e.Start()
			e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
		}},
		"Drift": {"A value that the operator restores within the window restarts nothing.", func(e *env) {
			testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Data["value"] = []byte("x") })
			e.WantSecret("db", "value", "2")
		}},
		"Deleted": {"A Secret that is created again with the same data restarts nothing.", func(e *env) {
			old := e.Secret("db")
			e.Delete(old)
			e.Eventually(func() string {
				if s := e.Secret("db"); s == nil || s.UID == old.UID {
					return "the Secret was not created again"
				}
				return ""
			})
		}},
		"Pruned": {"Another client that removes the annotation does not cause another restart.", func(e *env) {
			app := e.live(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "app", "namespace": e.NS}}})
			e.Update(app, func() {
				if err := unstructured.SetNestedStringMap(app.Object, map[string]string{"team": "shop"}, "spec", "template", "metadata", "annotations"); err != nil {
					e.Fatal(err)
				}
			})
		}},
		"Label": {"A change of the Secret's metadata restarts nothing.", func(e *env) {
			testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Labels["x"] = "y" })
		}},
		"BackWithin": {"A change that is undone within the window restarts nothing.", func(e *env) {
			testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Restart.Window = "5m" })
			e.set("db", "3")
			e.wantRestarts("db", v1alpha1.ReasonRestartPending, "")
			e.set("db", "2")
			e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
			testenv.Update(e.Client, e.Get("db"), auto)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			app := e.workload("Deployment", "app", "db")
			e.synced("db", "1", auto)
			e.set("db", "2")
			e.wantRestarted(app, 1)
			e.rolled(app)
			e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
			app = e.live(app)
			tc.do(e)
			time.Sleep(quiet)
			want := int64(0)
			if name == "Pruned" {
				want = 1 // The removal itself.
			}
			if got := e.restarts(app); got != want {
				t.Errorf("%s The pod template has changed %d times, want %d.", tc.reason, got, want)
			}
			e.set("db", "4")
			e.wantRestarted(app, want+1)
		})
	}
}

// TestSwitchedOn adds restart to an object, and removes it.
func TestSwitchedOn(t *testing.T) {
	e := newEnv(t)
	app := e.workload("Deployment", "app", "db")
	e.synced("db", "1")
	e.set("db", "2")
	testenv.Update(e.Client, e.Get("db"), auto)
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	time.Sleep(quiet)
	e.wantRestarted(app, 0)
	e.set("db", "3")
	e.wantRestarted(app, 1)
	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Restart = nil })
	e.Eventually(func() string {
		if s := e.Get("db").Status; s.Restart != nil || len(s.Conditions) != 1 {
			return "the status of restarts is still there"
		}
		return ""
	})
}

// TestSeveralSecrets changes two Secrets of one workload within the window.
func TestSeveralSecrets(t *testing.T) {
	e := newEnv(t)
	app := e.workload("Deployment", "app", "a", "b")
	long := func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "6s"}
	}
	e.synced("a", "1", long)
	e.synced("b", "1", long)
	e.set("a", "2")
	e.wantRestarts("a", v1alpha1.ReasonRestartPending, "after the window of 6s")
	time.Sleep(time.Second)
	e.set("b", "2")
	e.wantRestarted(app, 1)
	e.rolled(app)
	e.wantRestarts("a", v1alpha1.ReasonUpToDate, "")
	e.wantRestarts("b", v1alpha1.ReasonUpToDate, "")
	time.Sleep(quiet)
	e.wantRestarted(app, 1)
	if _, annotations := template(e.live(app)); len(annotations) != 3 {
		t.Errorf("the annotations are %v, want one for each Secret", annotations)
	}
}

// TestNewWorkload creates a workload between the change and the end of the window.
func TestNewWorkload(t *testing.T) {
	e := newEnv(t)
	old := e.workload("Deployment", "old", "db")
	e.synced("db", "1", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "5s"}
	})
	e.set("db", "2")
	e.wantRestarts("db", v1alpha1.ReasonRestartPending, "")
	time.Sleep(1100 * time.Millisecond) // Times of objects are whole seconds.
	fresh := e.workload("Deployment", "new", "db")
	e.wantRestarted(old, 1)
	e.rolled(old)
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	e.wantRestarted(fresh, 0)
}

// TestLimit restarts more workloads than may roll at a time, and one that does not become available.
func TestLimit(t *testing.T) {
	e := newEnv(t)
	apps := e.deployments(7, "db")
	e.synced("db", "1", auto)
	count := func() (n int64) {
		for _, a := range apps {
			n += e.restarts(a)
		}
		return n
	}
	want := func(n int64) {
		t.Helper()
		e.Eventually(func() string {
			if count() < n {
				return "too few workloads were restarted"
			}
			return ""
		})
		time.Sleep(quiet)
		if got := count(); got != n {
			t.Fatalf("%d workloads were restarted, want %d", got, n)
		}
	}
	e.set("db", "2")
	want(5)
	e.rolled(apps[0])
	want(6)
	e.stuck(apps[1])
	e.wantRestarts("db", v1alpha1.ReasonWorkloadNotAvailable, `Deployment "app-1" has not become available`)
	e.WantNote("db", v1alpha1.ReasonWorkloadNotAvailable, `Deployment "app-1" has not become available`)
	e.rolled(apps[2])
	want(6)
	e.rolled(apps[1])
	want(7)
	for _, a := range apps {
		e.rolled(a)
	}
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	want(7)
}

// TestCrash ends an operator between the restarts of two workloads, and between a restart and its record.
func TestCrash(t *testing.T) {
	t.Parallel()
	onSecond := func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/app-1")
	}
	cases := map[string]struct {
		reason string
		shut   func(e *env) (open func())
	}{
		"Between":    {"The second workload restarts later, the first does not restart again.", func(e *env) func() { return e.gate.Close(onSecond) }},
		"Unrecorded": {"A restart whose answer was lost is not repeated.", func(e *env) func() { return e.gate.Lose(onSecond) }},
		"Status": {"A restart that the status does not show is not repeated.", func(e *env) func() {
			var patched atomic.Bool
			return e.gate.Close(func(r *http.Request) bool {
				if onSecond(r) {
					patched.Store(true)
				}
				return patched.Load() && strings.HasSuffix(r.URL.Path, "/status")
			})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			apps := e.deployments(2, "db")
			e.synced("db", "1", auto)
			open := tc.shut(e)
			e.set("db", "2")
			e.wantRestarted(apps[0], 1)
			e.Eventually(func() string {
				if e.gate.Hits.Load() == 0 {
					return "no request was refused"
				}
				return ""
			})
			e.Stop()
			open()
			second := e.SecondOperator(e.Flags...)
			second.Start()
			e.wantRestarted(apps[1], 1)
			e.wantRestarts("db", v1alpha1.ReasonRestarting, "")
			time.Sleep(quiet)
			for _, a := range apps {
				e.wantRestarted(a, 1)
				e.rolled(a)
			}
			e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
		})
	}
}

// TestConflict has the API server refuse a restart because of other writes at the same time.
func TestConflict(t *testing.T) {
	e := newIdleEnv(t)
	var refused atomic.Bool
	e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/app-0") || !refused.CompareAndSwap(false, true) {
				return next.RoundTrip(r)
			}
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"injected","code":409}`
			return &http.Response{
				StatusCode: http.StatusConflict, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			}, nil
		})
	})
	e.Start()
	app := e.deployments(1, "db")[0]
	e.synced("db", "1", auto)
	e.set("db", "2")
	e.wantRestarted(app, 1)
	if !refused.Load() {
		t.Error("no restart was refused")
	}
}

// TestEvents changes the metadata of a target while a workload is restarted. Each change starts a walk, but not each walk lists the
// workloads.
func TestEvents(t *testing.T) {
	e := newIdleEnv(t)
	var lists atomic.Int64
	e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/namespaces/"+e.NS+"/deployments") {
				lists.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	e.Start()
	app := e.deployments(1, "db")[0]
	e.synced("db", "1", auto)
	e.set("db", "2")
	e.wantRestarted(app, 1)
	before, start := lists.Load(), time.Now()
	for i := range 100 {
		testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Labels["x"] = fmt.Sprint(i) })
	}
	e.rolled(app)
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	if got, most := lists.Load()-before, 2+int64(time.Since(start)/time.Second); got == 0 || got > most {
		t.Errorf("the workloads were listed %d times, want at most %d: once a second", got, most)
	}
}

// TestMissing lists a workload that does not exist. It is reported before the data change, once, until the list is corrected.
func TestMissing(t *testing.T) {
	e := newEnv(t)
	app := e.workload("Deployment", "app", "db")
	list := func(name string) testenv.Spec {
		return func(es *v1alpha1.ExternalSecret) {
			es.Spec.Target.Restart = &v1alpha1.Restart{Window: "1s", Workloads: []v1alpha1.WorkloadRef{{Kind: "Deployment", Name: name}, {Kind: "Deployment", Name: "app"}}}
		}
	}
	e.synced("db", "1")
	testenv.Update(e.Client, e.Get("db"), list("absent"))
	e.wantRestarts("db", v1alpha1.ReasonWorkloadNotFound, `Deployment "absent" does not exist`)
	e.set("db", "2")
	e.wantRestarted(app, 1)
	e.rolled(app)
	e.WantNote("db", v1alpha1.ReasonWorkloadNotFound, `Deployment "absent" does not exist`)
	e.wantFailing(v1alpha1.ReasonWorkloadNotFound)
	testenv.Update(e.Client, e.Get("db"), list("app"))
	e.wantRestarts("db", v1alpha1.ReasonUpToDate, "")
	e.WantNote("db", v1alpha1.ReasonUpToDate, "no restart is due")
	e.wantFailing("")
	events := slices.DeleteFunc(e.EventsOf("db"), func(reason string) bool { return reason == "Created" || reason == "Updated" })
	if diff := cmp.Diff([]string{v1alpha1.ReasonUpToDate, v1alpha1.ReasonWorkloadNotFound}, events); diff != "" {
		t.Errorf("the events: -want, +got:\n%s", diff)
	}
	testenv.Update(e.Client, e.Get("db"), list("absent"))
	e.wantFailing(v1alpha1.ReasonWorkloadNotFound)
	e.Delete(e.Get("db"))
	e.wantFailing("")
}

// TestRefused checks an operator without the flag.
func TestRefused(t *testing.T) {
	e := newIdleEnv(t)
	e.Flags = append(e.Flags, func(f *operator.Flags) { f.WorkloadRestarts = false })
	e.Start()
	e.Backend.Put("db", []byte("1"))
	e.Create(e.ExternalSecret("db", auto))
	e.Eventually(func() string {
		if c := e.Condition(e.Get("db")); !strings.Contains(c, "in the chart, set workloadRestarts.enabled") {
			return "Ready is " + c
		}
		return ""
	})
	if e.Secret("db") != nil {
		t.Error("the operator has written the Secret of a refused object")
	}
}

// TestSuspended changes the Secret of an object that is suspended.
func TestSuspended(t *testing.T) {
	e := newEnv(t)
	app := e.workload("Deployment", "app", "db")
	e.synced("db", "1", auto)
	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	e.WantReady("db", v1alpha1.ReasonSuspended)
	testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Data["value"] = []byte("x") })
	time.Sleep(quiet)
	e.wantRestarted(app, 0)
}
