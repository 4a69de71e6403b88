package restart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// env is an environment with workloads. Their controllers do not run: tests write their status.
type env struct {
	*testenv.Env
	gate testenv.Gate
}

func newIdleEnv(t *testing.T) *env {
	t.Helper()
	e := &env{Env: testenv.NewIdle(t, func(f *operator.Flags) {
		f.WorkloadRestarts, f.ConfigMapTargets, f.MetricsPerObject = true, true, true
	})}
	e.Config.Wrap(e.gate.Wrap)
	return e
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := newIdleEnv(t)
	e.Start()
	return e
}

// quiet is longer than a window and two looks at the workloads.
const quiet = 6 * time.Second

// auto restarts all workloads that use the target.
func auto(es *v1alpha1.ExternalSecret) {
	es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "1s"}
}

// synced creates an ExternalSecret with a value, and waits until its data are known.
func (e *env) synced(name, value string, change ...testenv.Spec) *v1alpha1.ExternalSecret {
	e.Helper()
	e.Backend.Put(name, []byte(value))
	es := e.ExternalSecret(name, change...)
	e.Create(es)
	e.WantReady(name, v1alpha1.ReasonSecretSynced)
	if es.Spec.Target.Restart != nil {
		e.wantRestarts(name, v1alpha1.ReasonUpToDate, "")
	}
	return es
}

// set changes a remote secret, and waits until the target was refreshed.
func (e *env) set(name, value string) {
	e.Helper()
	e.Backend.Put(name, []byte(value))
	e.refresh(name)
}

func (e *env) refresh(name string) {
	e.Helper()
	request := testenv.RandomName()
	testenv.Update(e.Client, e.Get(name), testenv.Request(request))
	e.Eventually(func() string {
		if got := e.Get(name).Status.ObservedRefreshRequest; got != request {
			return "the refresh of " + name + " was not served"
		}
		return ""
	})
}

// wantRestarts waits for the condition WorkloadsRestarted.
func (e *env) wantRestarts(name, reason, text string) {
	e.Helper()
	e.Eventually(func() string {
		c := meta.FindStatusCondition(e.Get(name).Status.Conditions, v1alpha1.ConditionWorkloadsRestarted)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Sprintf("WorkloadsRestarted of %s is %+v, want %s with %q", name, c, reason, text)
		}
		return ""
	})
}

// wantFailing waits until the metrics name an object of the namespace with a reason; empty for none.
func (e *env) wantFailing(reason string) {
	e.Helper()
	e.Eventually(func() string {
		families, err := metrics.Registry.Gather()
		if err != nil {
			return err.Error()
		}
		got := ""
		for _, f := range families {
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if f.GetName() == "directsecrets_failing_since_timestamp_seconds" && labels["object_namespace"] == e.NS {
					got = labels["reason"]
				}
			}
		}
		if got != reason {
			return fmt.Sprintf("an object fails with %q, want %q", got, reason)
		}
		return ""
	})
}

// crd is the part of the CRD of Argo Rollouts that matters here.
const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec:
  group: argoproj.io
  names: {kind: Rollout, plural: rollouts}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`

var installed sync.Once

// rollouts installs the Kind Rollout.
func (e *env) rollouts() {
	e.Helper()
	var err error
	installed.Do(func() { err = e.Cluster.InstallCRDs(context.Background(), []byte(crd)) })
	if err != nil {
		e.Fatal(err)
	}
}

// workload creates a workload of a Kind whose containers have a Secret as their environment.
func (e *env) workload(kind, name string, secrets ...string) *unstructured.Unstructured {
	e.Helper()
	var from []any
	for _, s := range secrets {
		source := "secretRef"
		if configMap, ok := strings.CutPrefix(s, "configmap:"); ok {
			source, s = "configMapRef", configMap
		}
		from = append(from, map[string]any{source: map[string]any{"name": s}})
	}
	raw, err := json.Marshal(from)
	if err != nil {
		e.Fatal(err)
	}
	group := "apps/v1"
	if kind == "Rollout" {
		group = "argoproj.io/v1alpha1"
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: %s, namespace: %s}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}, annotations: {team: shop}}
    spec:
      containers: [{name: a, image: a, envFrom: %s}]`, group, kind, name, e.NS, raw)), &o.Object); err != nil {
		e.Fatal(err)
	}
	e.Create(o, client.FieldOwner("kubectl"))
	return o
}

// deployments creates Deployments with the same Secrets.
func (e *env) deployments(n int, secrets ...string) (all []*unstructured.Unstructured) {
	e.Helper()
	for i := range n {
		all = append(all, e.workload("Deployment", fmt.Sprintf("app-%d", i), secrets...))
	}
	return all
}

// live reads a workload.
func (e *env) live(o *unstructured.Unstructured) *unstructured.Unstructured {
	e.Helper()
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(o.GroupVersionKind())
	if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(o), is); err != nil {
		e.Fatal(err)
	}
	return is
}

// restarts returns how often the pod template of a workload has changed.
func (e *env) restarts(o *unstructured.Unstructured) int64 {
	e.Helper()
	return e.live(o).GetGeneration() - o.GetGeneration()
}

// wantRestarted waits until a workload was restarted a number of times.
func (e *env) wantRestarted(o *unstructured.Unstructured, times int64) {
	e.Helper()
	e.Eventually(func() string {
		if got := e.restarts(o); got != times {
			return fmt.Sprintf("%s %s was restarted %d times, want %d", o.GetKind(), o.GetName(), got, times)
		}
		return ""
	})
}

// rolled writes the status of a rollout that has ended.
func (e *env) rolled(o *unstructured.Unstructured) { e.report(o, true) }

// stuck writes the status of a rollout that has failed.
func (e *env) stuck(o *unstructured.Unstructured) { e.report(o, false) }

func (e *env) report(o *unstructured.Unstructured, available bool) {
	e.Helper()
	is := e.live(o)
	status := map[string]any{
		"observedGeneration": is.GetGeneration(), "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
		"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1, "numberMisscheduled": 0, "numberReady": 1,
	}
	if is.GetKind() == "Rollout" {
		status["observedGeneration"], status["phase"] = fmt.Sprint(is.GetGeneration()), "Healthy"
		if at, ok, _ := unstructured.NestedString(is.Object, "spec", "restartAt"); ok {
			status["restartedAt"] = at
		}
	}
	if !available {
		status["availableReplicas"], status["readyReplicas"] = 0, 0
		status["conditions"] = []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
	}
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		e.Fatal(err)
	}
	if err := e.API.Status().Patch(e.Ctx, is, client.RawPatch(types.MergePatchType, raw)); err != nil {
		e.Fatal(err)
	}
}

// template returns the pod template of a workload, and its annotations apart from it.
func template(o *unstructured.Unstructured) (rest map[string]any, annotations map[string]string) {
	rest, _, _ = unstructured.NestedMap(o.Object, "spec")
	annotations, _, _ = unstructured.NestedStringMap(rest, "template", "metadata", "annotations")
	unstructured.RemoveNestedField(rest, "template", "metadata", "annotations")
	return rest, annotations
}

// managers returns the field managers of an object, without those of its status.
func managers(o *unstructured.Unstructured) map[string]metav1.ManagedFieldsEntry {
	all := map[string]metav1.ManagedFieldsEntry{}
	for _, m := range o.GetManagedFields() {
		if m.Subresource == "" {
			all[m.Manager] = m
		}
	}
	return all
}
