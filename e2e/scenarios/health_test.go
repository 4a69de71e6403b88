//go:build long

package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// These are the states of objects that GitOps tools must distinguish.
const (
	stateNew             = "new"
	stateReady           = "ready"
	stateRetried         = "retried"
	stateStalled         = "stalled"
	stateSuspended       = "suspended"
	stateDryRun          = "dry-run"
	stateChanged         = "changed"
	stateMissingProvider = "no module serves it"
)

// A toolsView is the health of an object by kstatus and by the rules for Argo CD.
type toolsView struct{ Flux, Argo string }

// views is the expected health for each state. An object that is retried can recover, so Flux waits for it.
// Argo CD has no timeout, so it must report the problem immediately.
var views = map[string]toolsView{
	stateNew:             {"InProgress", "Progressing"},
	stateReady:           {"Current", "Healthy"},
	stateRetried:         {"InProgress", "Degraded"},
	stateStalled:         {"Failed", "Degraded"},
	stateSuspended:       {"Current", "Suspended"},
	stateDryRun:          {"InProgress", "Suspended"},
	stateChanged:         {"InProgress", "Progressing"},
	stateMissingProvider: {"Failed", "Degraded"},
}

// specs are the specs of objects that are not stores, by Kind and state. The stores of the place are the
// others.
var specs = map[string]map[string]string{
	"ExternalSecret": {
		stateReady:           `{storeRef: {kind: AWSSecretsManager, name: sm}, data: [{secretKey: a, remoteRef: {key: health-sm}}]}`,
		stateRetried:         `{storeRef: {kind: AWSSecretsManager, name: sm}, data: [{secretKey: a, remoteRef: {key: absent}}]}`,
		stateStalled:         `{dataFrom: [{sourceRef: {generatorRef: {kind: AWSSecretsManager, name: sm}}}]}`,
		stateSuspended:       `{storeRef: {kind: AWSSecretsManager, name: sm}, data: [{secretKey: a, remoteRef: {key: health-sm}}]}`,
		stateMissingProvider: `{storeRef: {kind: Absent, name: sm}, data: [{secretKey: a, remoteRef: {key: health-sm}}]}`,
	},
	"PushSecret": {
		stateReady:           `{storeRefs: [{kind: AWSSecretsManager, name: sm}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-pushed}}}]}`,
		stateRetried:         `{storeRefs: [{kind: AWSSecretsManager, name: sm}], selector: {secret: {name: absent}}, data: [{match: {remoteRef: {remoteKey: health-absent}}}]}`,
		stateStalled:         `{storeRefs: [{kind: AWSSecretsManager, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-stalled}}}]}`,
		stateSuspended:       `{storeRefs: [{kind: AWSSecretsManager, name: sm}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-suspended}}}]}`,
		stateDryRun:          `{dryRun: true, storeRefs: [{kind: AWSSecretsManager, name: sm}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-dry-run}}}]}`,
		stateMissingProvider: `{storeRefs: [{kind: Absent, name: sm}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-no-module}}}]}`,
	},
	"ClusterExternalSecret": fannedOut("externalSecret", `{storeRef: {kind: AWSSecretsManager, name: sm}, data: [{secretKey: a, remoteRef: {key: health-sm}}]}`),
	"ClusterPushSecret":     fannedOut("pushSecret", `{storeRefs: [{kind: AWSSecretsManager, name: sm}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: health-spread}}}]}`),
}

// fannedOut returns the specs of a Kind that creates objects in namespaces. An object with the name "taken"
// exists already.
func fannedOut(of, spec string) map[string]string {
	all := map[string]string{
		stateReady:   of + `Name: spread, namespaces: [health]`,
		stateRetried: of + `Name: taken, namespaces: [health]`,
		stateStalled: `namespaceSelectors: [{matchExpressions: [{key: a, operator: Like}]}]`,
	}
	for state, text := range all {
		all[state] = "{" + text + ", " + of + "Spec: " + spec + "}"
	}
	return all
}

// A healthSuite has an object of every Kind in every state.
type healthSuite struct {
	*place
	kinds map[string]schema.GroupVersionKind
	seen  map[string]map[string]*unstructured.Unstructured
}

// TestHealthInEveryState brings objects of every Kind into every state, and compares the health by Flux's
// library and by the rules for Argo CD with the real state. A change that no module has seen must never count
// as handled.
func TestHealthInEveryState(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	h := &healthSuite{newPlace(t, s, "health"), customKinds(t, s), map[string]map[string]*unstructured.Unstructured{}}
	// A place has a store of most Kinds. All stores have the same states.
	maps.DeleteFunc(h.kinds, func(kind string, _ schema.GroupVersionKind) bool { return specs[kind] == nil && h.store(kind) == "" })
	h.put(1)
	h.putTo("sm", "health-sm", "x")
	must(t, s.Admin.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "source"}, StringData: map[string]string{"a": "b"}}))
	h.apply(false)
	h.apply(true)
	for kind := range h.kinds {
		h.seen[kind] = map[string]*unstructured.Unstructured{}
		for state, spec := range specs[kind] {
			h.create(kind, state, spec)
		}
		h.see(kind, stateNew, stateReady, "")
	}
	h.create("ExternalSecret", "taken", specs["ExternalSecret"][stateReady])
	h.create("PushSecret", "taken", specs["PushSecret"][stateSuspended])

	var processes []*stack.Process
	stop := func() {
		for _, p := range processes {
			must(t, p.Stop())
		}
		processes = nil
	}
	t.Cleanup(stop)
	for _, module := range stack.Modules() {
		p, err := s.StartModule(t.Context(), module, "--leader-elect=false")
		must(t, err)
		processes = append(processes, p)
	}
	h.prepareStates()
	stop()
	for kind := range h.kinds {
		h.change(kind)
		h.see(kind, stateChanged, stateReady, "")
	}
	h.checkHealth()
}

// store returns the name of the store or generator of a Kind in the place, or "" for other Kinds.
func (h *healthSuite) store(kind string) string {
	for name, k := range kinds {
		if strings.TrimPrefix(kind, "Cluster") == k {
			return name
		}
	}
	return ""
}

// nameOf returns the name of the object of a Kind in a state.
func (h *healthSuite) nameOf(kind, state string) string {
	if name := h.store(kind); name != "" && state == stateReady {
		return name
	}
	return strings.ReplaceAll(state, " ", "-")
}

func (h *healthSuite) get(kind, name string) *unstructured.Unstructured {
	h.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(h.kinds[kind])
	key := types.NamespacedName{Name: name}
	if !strings.HasPrefix(kind, "Cluster") {
		key.Namespace = h.ns
	}
	must(h.t, h.stack.Admin.Get(h.t.Context(), key, o))
	return o
}

func (h *healthSuite) create(kind, state, spec string) {
	h.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	must(h.t, yaml.UnmarshalStrict([]byte("spec: "+spec), &o.Object))
	o.SetGroupVersionKind(h.kinds[kind])
	o.SetName(h.nameOf(kind, state))
	if !strings.HasPrefix(kind, "Cluster") {
		o.SetNamespace(h.ns)
	}
	must(h.t, client.WithFieldValidation(h.stack.Admin, metav1.FieldValidationStrict).Create(h.t.Context(), o))
}

// see adds an object of a Kind to a state once it has a condition that is True, or immediately if condition is
// empty.
func (h *healthSuite) see(kind, state, of, condition string) {
	h.t.Helper()
	eventually(h.t, func() string {
		o := h.get(kind, h.nameOf(kind, of))
		if condition != "" && conditionOf(o, condition) != "True" {
			return fmt.Sprintf("%s %s is not %s: %v", kind, o.GetName(), condition, o.Object["status"])
		}
		h.seen[kind][state] = o
		return ""
	})
}

func conditionOf(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

// prepareStates waits until every object is in its state. It then makes working stores fail.
func (h *healthSuite) prepareStates() {
	h.t.Helper()
	credentials := &corev1.Secret{}
	must(h.t, h.stack.Admin.Get(h.t.Context(), types.NamespacedName{Namespace: h.ns, Name: "credentials"}, credentials))
	away := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "away"}, StringData: map[string]string{}}
	for key, value := range credentials.Data {
		away.StringData[key] = h.elsewhere().Replace(string(value))
	}
	must(h.t, h.stack.Admin.Create(h.t.Context(), away))
	for kind := range h.kinds {
		h.see(kind, stateReady, stateReady, v1alpha1.ConditionReady)
		if h.store(kind) == "" {
			continue
		}
		raw, err := json.Marshal(h.seen[kind][stateReady].Object["spec"])
		must(h.t, err)
		lost := strings.NewReplacer(`"name":"credentials"`, `"name":"absent"`, `"name":"default"`, `"name":"absent"`, `"length":30`, `"length":12,"digits":12,"allowRepeat":true`).Replace(string(raw))
		h.create(kind, stateStalled, lost)
		if away := h.elsewhere().Replace(string(raw)); strings.Contains(away, nowhere) {
			h.create(kind, stateRetried, away)
		}
	}
	for kind := range h.kinds {
		h.see(kind, stateStalled, stateStalled, v1alpha1.ConditionStalled)
		if !strings.HasSuffix(kind, "Password") { // A Password makes no requests.
			h.see(kind, stateRetried, stateRetried, v1alpha1.ConditionReconciling)
		}
		if specs[kind][stateMissingProvider] != "" {
			h.see(kind, stateMissingProvider, stateMissingProvider, "")
			eventually(h.t, func() string {
				h.see(kind, stateMissingProvider, stateMissingProvider, "")
				if reason, _ := readyOf(h.t, h.seen[kind][stateMissingProvider]); reason != v1alpha1.ReasonProviderNotRunning {
					return kind + "  does not report that no module serves it: " + reason
				}
				return ""
			})
		}
		if specs[kind][stateDryRun] != "" {
			eventually(h.t, func() string {
				h.see(kind, stateDryRun, stateDryRun, "")
				if reason, _ := readyOf(h.t, h.seen[kind][stateDryRun]); reason != v1alpha1.ReasonDryRun {
					return kind + " reports no dry run: " + reason
				}
				return ""
			})
		}
		if specs[kind][stateSuspended] != "" {
			h.see(kind, stateSuspended, stateSuspended, v1alpha1.ConditionReady)
			must(h.t, h.stack.Admin.Patch(h.t.Context(), h.seen[kind][stateSuspended].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))))
			eventually(h.t, func() string {
				h.see(kind, stateSuspended, stateSuspended, "")
				if reason, _ := readyOf(h.t, h.seen[kind][stateSuspended]); reason != v1alpha1.ReasonSuspended {
					return kind + " is not suspended: " + reason
				}
				return ""
			})
		}
	}
}

// nowhere is an address that does not answer.
const nowhere = "http://127.0.0.1:1"

// elsewhere replaces the servers of the place by an address that does not answer, and the credentials by those
// for it.
func (h *healthSuite) elsewhere() *strings.Replacer {
	return strings.NewReplacer(h.stack.AWS.URL(), nowhere, h.vault.URL, nowhere, h.gcp.URL(), nowhere, `"name":"credentials"`, `"name":"away"`)
}

// change changes the spec of an object that is ready.
func (h *healthSuite) change(kind string) {
	h.t.Helper()
	patch := `{"spec":{"refreshInterval":"2h"}}`
	switch {
	case h.store(kind) != "":
		patch = `{"spec":{"controller":"another"}}`
	case strings.HasPrefix(kind, "Cluster"):
		patch = `{"spec":{"namespaces":["another"]}}`
	}
	must(h.t, h.stack.Admin.Patch(h.t.Context(), h.seen[kind][stateReady].DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// checkHealth compares the health of each object with its state, and prints all.
func (h *healthSuite) checkHealth() {
	h.t.Helper()
	_, script := healthCheck(h.t)
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, kind := range slices.Sorted(maps.Keys(h.seen)) {
		for _, state := range []string{stateNew, stateReady, stateRetried, stateStalled, stateSuspended, stateDryRun, stateChanged, stateMissingProvider} {
			o := h.seen[kind][state]
			if o == nil {
				continue
			}
			result, err := status.Compute(o)
			must(h.t, err)
			var plain map[string]any // Argo CD has numbers in this form, too.
			raw, err := json.Marshal(o.Object)
			must(h.t, err)
			must(h.t, json.Unmarshal(raw, &plain))
			argo, _, _ := strings.Cut(health(h.t, script, plain), ":")
			reason, _ := readyOf(h.t, o)
			got, want := toolsView{result.Status.String(), argo}, views[state]
			if state == stateMissingProvider && kind == "PushSecret" {
				want.Flux = "InProgress" // Each module applies its own part of the status, and cannot remove the part of a missing module.
			}
			if state == stateRetried && conditionOf(o, v1alpha1.ConditionReady) == "Unknown" {
				want.Argo = "Progressing" // The health is not known yet.
			}
			verdict := ""
			if diff := cmp.Diff(want, got); diff != "" {
				verdict = "WRONG"
				h.t.Errorf("%s that is %s: -want, +got:\n%s%v", kind, state, diff, o.Object["status"])
			}
			line := strings.Join([]string{kind, state, conditionOf(o, v1alpha1.ConditionReady) + " " + reason, got.Flux, got.Argo, verdict}, "\t")
			_, err = w.Write([]byte(line + "\n"))
			must(h.t, err)
		}
	}
	must(h.t, w.Flush())
	h.t.Log("\nKIND, STATE, READY, FLUX, ARGO CD\n" + out.String())
}
