package restart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// decode returns the value that a YAML text holds.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestUsesOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		pod    string
		want   Uses
	}{
		"Volume":    {"A volume is a use.", `volumes: [{secret: {secretName: a}}, {configMap: {name: b}}]`, Uses{[]string{"a"}, []string{"b"}}},
		"Projected": {"A projected volume is a use.", `volumes: [{projected: {sources: [{secret: {name: a}}, {configMap: {name: b}}, {serviceAccountToken: {path: t}}]}}]`, Uses{[]string{"a"}, []string{"b"}}},
		"Env":       {"A variable is a use.", `containers: [{env: [{name: x, value: y}, {valueFrom: {secretKeyRef: {name: a, key: k}}}, {valueFrom: {configMapKeyRef: {name: b, key: k}}}]}]`, Uses{[]string{"a"}, []string{"b"}}},
		"EnvFrom":   {"All variables of a Secret are a use.", `containers: [{envFrom: [{secretRef: {name: a}}, {configMapRef: {name: b}}]}]`, Uses{[]string{"a"}, []string{"b"}}},
		"Init":      {"An init container is one of the pod.", `initContainers: [{envFrom: [{secretRef: {name: a}}]}]`, Uses{Secrets: []string{"a"}}},
		"Pull":      {"A running pod does not use the Secret of its image.", `imagePullSecrets: [{name: a}]`, Uses{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := decode[corev1.PodSpec](t, tc.pod)
			if diff := cmp.Diff(tc.want, UsesOf(&pod)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		kind   v1alpha1.WorkloadKind
		object string
		want   Progress
	}{
		"Unseen":       {"A status of an earlier pod template does not count.", "Deployment", `{spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, Rolling},
		"UnseenFail":   {"A failure of an earlier pod template does not count.", "Deployment", `{status: {observedGeneration: 1, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}`, Rolling},
		"Available":    {"All pods are new and available.", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`, Available},
		"Old":          {"An old pod is still there.", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}}`, Rolling},
		"Unavailable":  {"A new pod is not available yet.", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}}`, Rolling},
		"Zero":         {"Without pods nothing rolls.", "Deployment", `{spec: {replicas: 0}, status: {observedGeneration: 2}}`, Available},
		"Paused":       {"A paused Deployment replaces no pods.", "Deployment", `{spec: {paused: true}, status: {observedGeneration: 1}}`, Available},
		"Failed":       {"The deadline of a Deployment has passed.", "Deployment", `{status: {observedGeneration: 2, replicas: 1, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}`, Failed},
		"Stateful":     {"A StatefulSet is available.", "StatefulSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`, Available},
		"StatefulOld":  {"A pod of a StatefulSet is old.", "StatefulSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, Rolling},
		"Partition":    {"Pods below the partition stay old.", "StatefulSet", `{spec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, Available},
		"OnDelete":     {"A user replaces the pods.", "StatefulSet", `{spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1}}`, Available},
		"Daemon":       {"A DaemonSet is available.", "DaemonSet", `{status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}}`, Available},
		"DaemonOld":    {"A pod of a DaemonSet is not available.", "DaemonSet", `{status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}`, Rolling},
		"Rollout":      {"A Rollout reports its generation as text.", "Rollout", `{status: {observedGeneration: "2", phase: Healthy}}`, Available},
		"RolloutPause": {"A canary that waits rolls.", "Rollout", `{status: {observedGeneration: "2", phase: Paused}}`, Rolling},
		"Reference":    {"A Rollout stays Healthy while its pods restart.", "Rollout", `{spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: app}, restartAt: "2026-01-02T03:04:05Z"}, status: {observedGeneration: "2", phase: Healthy}}`, Rolling},
		"Restarted":    {"The pods of a Rollout have restarted.", "Rollout", `{spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: app}, restartAt: "2026-01-02T03:04:05Z"}, status: {observedGeneration: "2", phase: Healthy, restartedAt: "2026-01-02T03:04:05Z"}}`, Available},
		"Scheduled":    {"A restart that a user has planned is not one of a Rollout with a pod template.", "Rollout", `{spec: {restartAt: "2036-01-02T03:04:05Z"}, status: {observedGeneration: "2", phase: Healthy}}`, Available},
		"RolloutFail":  {"A Rollout has failed.", "Rollout", `{status: {observedGeneration: "2", phase: Degraded}}`, Failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := decode[map[string]any](t, tc.object)
			object["metadata"] = map[string]any{"name": "app", "generation": 2}
			w, err := Parse(tc.kind, encode(t, object), Targets{})
			if err != nil || w.Progress != tc.want {
				t.Errorf("%s Got %q, %v, want %q.", tc.reason, w.Progress, err, tc.want)
			}
		})
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	cases := map[string]struct {
		reason, object, want string
	}{
		"Template":  {"The pod template gets the annotation.", `{spec: {template: {metadata: {annotations: {a: b}}}}}`, `{"metadata":{"uid":"u"},"spec":{"template":{"metadata":{"annotations":{"k":"h"}}}}}`},
		"Reference": {"A Rollout without a pod template gets a time after that of all its pods.", `{spec: {workloadRef: {kind: Deployment, name: app}}}`, `{"metadata":{"annotations":{"k":"h"},"uid":"u"},"spec":{"restartAt":"2026-01-02T03:04:06Z"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := decode[map[string]any](t, tc.object)
			object["metadata"] = map[string]any{"name": "app", "uid": "u"}
			w, err := Parse(v1alpha1.WorkloadRollout, encode(t, object), Targets{})
			if err != nil {
				t.Fatal(err)
			}
			body, err := (&Patch{&w, map[string]string{"k": "h"}}).Body(at)
			if diff := cmp.Diff(tc.want, string(body)); diff != "" || err != nil {
				t.Errorf("%s %v -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	if got := Key("db"); got != "restart.direct-secrets.io/db" {
		t.Error(got)
	}
	keys := map[string]bool{}
	for _, target := range []string{"db", "configmap.db", v1alpha1.ConfigMapTarget + "db", strings.Repeat("a", 64), strings.Repeat("a", 65)} {
		key := Key(target)
		if _, name, _ := strings.Cut(key, "/"); keys[key] || len(name) > maxName {
			t.Errorf("the key of %s is %s: it is that of another target, or too long", target, key)
		}
		keys[key] = true
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	data := func(pairs ...string) map[string][]byte {
		m := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = []byte(pairs[i+1])
		}
		return m
	}
	hash := Hash("salt", data("a", "1", "b", "2"))
	if hash != Hash("salt", data("b", "2", "a", "1")) {
		t.Error("equal data have different hashes")
	}
	for name, other := range map[string]string{
		"value": Hash("salt", data("a", "1", "b", "3")), "boundary": Hash("salt", data("a", "1b", "", "2")), "none": Hash("salt", nil),
	} {
		if other == hash || !sameSalt(other, hash) {
			t.Errorf("%s: got %s and %s, want different hashes with the same salt", name, other, hash)
		}
	}
	if sameSalt(hash, Hash("other", data("a", "1"))) || sameSalt(hash, "") {
		t.Error("hashes with different salts are taken for comparable")
	}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ago time.Duration) *metav1.Time {
	t := metav1.NewTime(now.Add(-ago))
	return &t
}

func ref(i int) v1alpha1.WorkloadRef {
	return v1alpha1.WorkloadRef{Kind: v1alpha1.WorkloadDeployment, Name: fmt.Sprint("app-", i)}
}

func rolling(ago time.Duration, names ...int) (all []v1alpha1.RollingWorkload) {
	for _, i := range names {
		all = append(all, v1alpha1.RollingWorkload{WorkloadRef: ref(i), Time: *at(ago)})
	}
	return all
}

func refs(names ...int) (all []v1alpha1.WorkloadRef) {
	for _, i := range names {
		all = append(all, ref(i))
	}
	return all
}

// object returns an Object of the Secret "db" with the status before.
func object(hash string, before *v1alpha1.RestartStatus) *Object {
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true}
	es.Status.Restart = before
	return NewObject(es, hash, now)
}

func TestNewObject(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		hash   string
		before *v1alpha1.RestartStatus
		want   v1alpha1.RestartStatus
	}{
		"First":   {"The first data are no change.", "s.1", nil, v1alpha1.RestartStatus{Hash: "s.1"}},
		"Same":    {"Equal data are no change.", "s.1", &v1alpha1.RestartStatus{Hash: "s.1"}, v1alpha1.RestartStatus{Hash: "s.1"}},
		"Change":  {"Other data begin a window.", "s.2", &v1alpha1.RestartStatus{Hash: "s.1"}, v1alpha1.RestartStatus{Hash: "s.1", ChangeTime: at(0)}},
		"Again":   {"Another change does not extend the window.", "s.3", &v1alpha1.RestartStatus{Hash: "s.1", ChangeTime: at(time.Second)}, v1alpha1.RestartStatus{Hash: "s.1", ChangeTime: at(time.Second)}},
		"Undone":  {"A change that was undone ends the window.", "s.1", &v1alpha1.RestartStatus{Hash: "s.1", ChangeTime: at(time.Second)}, v1alpha1.RestartStatus{Hash: "s.1"}},
		"Deleted": {"A deletion is no change.", "", &v1alpha1.RestartStatus{Hash: "s.1"}, v1alpha1.RestartStatus{Hash: "s.1"}},
		"Salt":    {"A hash with another salt is not comparable.", "t.2", &v1alpha1.RestartStatus{Hash: "s.1", ChangeTime: at(0)}, v1alpha1.RestartStatus{Hash: "t.2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, *object(tc.hash, tc.before).Next); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	type status = v1alpha1.RestartStatus
	due := status{Hash: "s.1", ChangeTime: at(time.Minute)}
	// workload returns one that uses the Secret and was created an hour ago.
	workload := func(i int, progress Progress, change ...func(*Workload)) Workload {
		w := Workload{WorkloadRef: ref(i), Created: now.Add(-time.Hour), Progress: progress, uses: Uses{Secrets: []string{"db"}}}
		for _, f := range change {
			f(&w)
		}
		return w
	}
	hash := func(h string) func(*Workload) {
		return func(w *Workload) { w.Annotations = map[string]string{Key("db"): h} }
	}
	stateful := func(w *Workload) { w.Kind = v1alpha1.WorkloadStatefulSet }
	many := []Workload{}
	for i := range 7 {
		many = append(many, workload(i, Available))
	}
	cases := map[string]struct {
		reason    string
		before    status
		workloads []Workload
		patched   []v1alpha1.WorkloadRef
		want      status
		verdict   string
	}{
		"Waits": {"Nothing restarts before the window has ended.", status{Hash: "s.1", ChangeTime: at(29 * time.Second)}, many, nil, status{Hash: "s.1", ChangeTime: at(29 * time.Second)}, v1alpha1.ReasonRestartPending},
		"Due":   {"A workload that uses the Secret restarts.", due, many[:1], refs(0), status{Hash: "s.2", Rolling: rolling(0, 0)}, v1alpha1.ReasonRestarting},
		"Other": {"A workload that does not use the Secret does not restart.", due, []Workload{workload(0, Available, func(w *Workload) { w.uses = Uses{ConfigMaps: []string{"db"}} })}, nil, status{Hash: "s.2"}, v1alpha1.ReasonUpToDate},
		"New":   {"A workload that is younger than the change does not restart.", due, []Workload{workload(0, Available, func(w *Workload) { w.Created = now.Add(-59 * time.Second) })}, nil, status{Hash: "s.2"}, v1alpha1.ReasonUpToDate},
		"Done":  {"A workload that was restarted for this data does not restart again.", due, []Workload{workload(0, Rolling, hash("s.2"))}, nil, status{Hash: "s.2", Rolling: rolling(0, 0)}, v1alpha1.ReasonRestarting},
		"Old":   {"A workload that was restarted for other data restarts.", due, []Workload{workload(0, Available, hash("s.1"))}, refs(0), status{Hash: "s.2", Rolling: rolling(0, 0)}, v1alpha1.ReasonRestarting},
		"Limit": {"Five restart, two wait.", due, many, refs(0, 1, 2, 3, 4), status{Hash: "s.2", Pending: refs(5, 6), Rolling: rolling(0, 0, 1, 2, 3, 4)}, v1alpha1.ReasonRestarting},
		"Next": {
			"The next restarts when one has become available.", status{Hash: "s.2", Pending: refs(5, 6), Rolling: rolling(time.Minute, 0, 1, 2, 3, 4)},
			[]Workload{workload(0, Available), workload(1, Rolling), workload(2, Rolling), workload(3, Rolling), workload(4, Rolling), workload(5, Available), workload(6, Available)},
			refs(5), status{Hash: "s.2", Pending: refs(6), Rolling: append(rolling(time.Minute, 1, 2, 3, 4), rolling(0, 5)...)}, v1alpha1.ReasonRestarting,
		},
		"Failed":   {"A rollout that has failed stops the next.", status{Hash: "s.2", Pending: refs(1), Rolling: rolling(time.Minute, 0)}, []Workload{workload(0, Failed), workload(1, Available)}, nil, status{Hash: "s.2", Pending: refs(1), Rolling: rolling(time.Minute, 0)}, v1alpha1.ReasonWorkloadNotAvailable},
		"Deadline": {"A Deployment has a deadline of its own.", status{Hash: "s.2", Rolling: rolling(time.Hour, 0)}, []Workload{workload(0, Rolling)}, nil, status{Hash: "s.2", Rolling: rolling(time.Hour, 0)}, v1alpha1.ReasonRestarting},
		"Slow": {
			"A StatefulSet that rolls for too long stops the next.", status{Hash: "s.2", Rolling: []v1alpha1.RollingWorkload{{WorkloadRef: v1alpha1.WorkloadRef{Kind: v1alpha1.WorkloadStatefulSet, Name: "app-0"}, Time: *at(time.Hour)}}},
			[]Workload{workload(0, Rolling, stateful)}, nil,
			status{Hash: "s.2", Rolling: []v1alpha1.RollingWorkload{{WorkloadRef: v1alpha1.WorkloadRef{Kind: v1alpha1.WorkloadStatefulSet, Name: "app-0"}, Time: *at(time.Hour)}}}, v1alpha1.ReasonWorkloadNotAvailable,
		},
		"Evicting": {
			"A Rollout whose pods cannot be evicted stops the next.", status{Hash: "s.2", Rolling: rolling(time.Hour, 0)},
			[]Workload{workload(0, Rolling, func(w *Workload) { w.Referring = true })}, nil, status{Hash: "s.2", Rolling: rolling(time.Hour, 0)}, v1alpha1.ReasonWorkloadNotAvailable,
		},
		"Gone":   {"A deleted workload is done.", status{Hash: "s.2", Pending: refs(1), Rolling: rolling(time.Minute, 0)}, nil, nil, status{Hash: "s.2"}, v1alpha1.ReasonUpToDate},
		"Pruned": {"A workload that has lost its annotation does not restart again.", status{Hash: "s.2", Rolling: rolling(time.Minute, 0)}, []Workload{workload(0, Available)}, nil, status{Hash: "s.2"}, v1alpha1.ReasonUpToDate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := object("s.2", tc.before.DeepCopy())
			var patched []v1alpha1.WorkloadRef
			patches := Plan([]*Object{o}, tc.workloads, now)
			for i := range patches {
				patched = append(patched, patches[i].WorkloadRef)
				if got := patches[i].Annotations; len(got) != 1 || got[Key("db")] != "s.2" {
					t.Errorf("%s The annotations are %v.", tc.reason, got)
				}
				patches[i].Done([]*Object{o}, now)
			}
			if diff := cmp.Diff(tc.patched, patched); diff != "" {
				t.Errorf("%s Restarts: -want, +got:\n%s", tc.reason, diff)
			}
			got := *o.Next
			if len(got.Pending) == 0 {
				got.Pending = nil
			}
			if len(got.Rolling) == 0 {
				got.Rolling = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s Status: -want, +got:\n%s", tc.reason, diff)
			}
			if v := o.Verdict(); v.Reason != tc.verdict {
				t.Errorf("%s The condition is %+v, want %s.", tc.reason, v, tc.verdict)
			}
		})
	}
}
