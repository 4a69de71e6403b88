package manifests_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

var (
	cluster *controlplane.ControlPlane
	api     client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) (err error) {
		cluster = c
		api, err = client.New(c.Config(), client.Options{})
		return err
	}, controlplane.WithCRDs(controlplane.Manifests(fake.CRDs, manifests.CRDs)...))
}

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

// A refusal is a spec that the API server does not take, and what it says.
type refusal struct {
	reason string
	kind   string
	spec   string
	want   string // Empty: it is taken.
}

const (
	pushes = "storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a}}"
	reads  = "storeRef: {kind: FakeStore, name: a}"
)

var refusals = map[string]refusal{
	"interval-shortest":   {"The shortest interval is allowed.", "ExternalSecret", "{refreshInterval: 1s, " + reads + "}", ""},
	"interval-zero":       {"Zero has a meaning of its own.", "ExternalSecret", "{refreshInterval: '0', " + reads + "}", ""},
	"interval-empty":      {"Empty is unset.", "ExternalSecret", "{refreshInterval: '', " + reads + "}", ""},
	"interval":            {"1,000 reads a second are no interval.", "ExternalSecret", "{refreshInterval: 1ms, " + reads + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-below":      {"The bound is exact.", "ExternalSecret", "{refreshInterval: 999ms, " + reads + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-push":       {"A push reads, too.", "PushSecret", "{refreshInterval: 1ms, " + pushes + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-push-never": {"Zero never compares.", "PushSecret", "{refreshInterval: 0s, " + pushes + "}", ""},
	"interval-fan-out":    {"So does each object of many.", "ClusterExternalSecret", "{externalSecretSpec: {refreshInterval: 1ms, " + reads + "}}", "refreshInterval must be 0 or at least 1s"},
	"interval-store":      {"A validation calls the provider.", "FakeStore", "{backend: a, refreshInterval: 1ms}", "refreshInterval must be 0 or at least 1s"},
	"interval-generator":  {"That of a generator does, too.", "FakeGenerator", "{backend: a, refreshInterval: 1ms}", "refreshInterval must be 0 or at least 1s"},
	"rotation":            {"A rotation makes a credential.", "FakeGenerator", "{backend: a, rotationInterval: 1ms}", "rotationInterval must be 0 or at least 1s"},

	"template-push":             {"A template shapes what is pushed.", "PushSecret", "{" + pushes + ", template: {type: '', metadata: {}, data: {a: b}, templateFrom: [{literal: a}, {literal: a, target: Data}]}}", ""},
	"template-push-type":        {"A remote secret has no type.", "PushSecret", "{" + pushes + ", template: {type: Opaque}}", "template.type has no effect"},
	"template-push-labels":      {"Nor has it labels of a Secret.", "PushSecret", "{" + pushes + ", template: {metadata: {labels: {a: b}}}}", "template.metadata has no effect"},
	"template-push-annotations": {"Nor annotations.", "PushSecret", "{" + pushes + ", template: {metadata: {annotations: {a: b}}}}", "template.metadata has no effect"},
	"template-push-from":        {"Nor those of a text.", "PushSecret", "{" + pushes + ", template: {templateFrom: [{literal: a, target: Labels}]}}", "template.templateFrom.target has no effect"},
	"template-push-fan-out":     {"Nor has one of many.", "ClusterPushSecret", "{pushSecretSpec: {" + pushes + ", template: {type: Opaque}}}", "template.type has no effect"},
	"template":                  {"A Secret has all that.", "ExternalSecret", "{target: {template: {type: Opaque, metadata: {labels: {a: b}}, templateFrom: [{literal: a, target: Labels}]}}}", ""},

	"merge-json":         {"The merged object goes into a key.", "ExternalSecret", "{dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: JSON, into: a}}]}]}", ""},
	"merge-extract":      {"Members take the place of all keys.", "ExternalSecret", "{dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: Extract, into: ''}}]}]}", ""},
	"merge-extract-into": {"They go into no key.", "ExternalSecret", "{dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: Extract, into: a}}]}]}", "merge.into has no effect"},
	"merge-into":         {"Extract is the default.", "ExternalSecret", "{dataFrom: [{extract: {key: a}, rewrite: [{merge: {into: a}}]}]}", "merge.into has no effect"},
	"merge-into-push":    {"A push merges by the same rules.", "PushSecret", "{" + pushes + ", dataTo: [{rewrite: [{merge: {into: a}}]}]}", "merge.into has no effect"},

	"conversion":         {"secretKey is taken as it is written.", "ExternalSecret", "{data: [{secretKey: a, remoteRef: {key: a, conversionStrategy: Unicode}}]}", "conversionStrategy Unicode has no effect in data"},
	"conversion-default": {"Tools write the default.", "ExternalSecret", "{data: [{secretKey: a, remoteRef: {key: a, conversionStrategy: Default}}]}", ""},
	"conversion-extract": {"Keys that are extracted are converted.", "ExternalSecret", "{dataFrom: [{extract: {key: a, conversionStrategy: Unicode}}]}", ""},
}

func (r refusal) object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	group := "direct-secrets.io/v1alpha1"
	if strings.Contains(r.kind, "Fake") {
		group = "fake." + group
	}
	o := &unstructured.Unstructured{}
	text := "{apiVersion: " + group + ", kind: " + r.kind + ", metadata: {name: " + name + "}, spec: " + r.spec + "}"
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !strings.HasPrefix(r.kind, "Cluster") {
		o.SetNamespace("default")
	}
	return o
}

// TestRules offers specs to the API server.
func TestRules(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			err := api.Create(t.Context(), tc.object(t, name), client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: the API server refuses it: %v", tc.reason, err)
			case tc.want != "" && (!kerrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: the API server says %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// withoutRules returns CRDs as they were before they had rules.
func withoutRules(t *testing.T, crds [][]byte) (old [][]byte) {
	t.Helper()
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "x-kubernetes-validations")
			for _, child := range v {
				strip(child)
			}
		case []any:
			for _, child := range v {
				strip(child)
			}
		}
	}
	for _, crd := range crds {
		var v map[string]any
		if err := yaml.Unmarshal(crd, &v); err != nil {
			t.Fatal(err)
		}
		strip(v)
		raw, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, raw)
	}
	return old
}

// TestRulesOfUpgrades stores what no rule allows before there are rules. After the upgrade the status of each object is
// written, its finalizer is taken, and it is deleted, as if it were allowed; only a field that a rule names cannot be
// changed to another bad value.
func TestRulesOfUpgrades(t *testing.T) {
	crds := controlplane.Manifests(fake.CRDs, manifests.CRDs)
	install := func(crds [][]byte) {
		t.Helper()
		if err := cluster.InstallCRDs(context.Background(), crds...); err != nil {
			t.Fatal(err)
		}
	}
	merge := func(body string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(body))
	}
	t.Cleanup(func() { install(crds) })
	install(withoutRules(t, crds))
	stored := map[string]*unstructured.Unstructured{}
	for name, tc := range refusals {
		if tc.want == "" {
			continue
		}
		o := tc.object(t, name)
		o.SetFinalizers([]string{"direct-secrets.io/test"})
		// An API server takes a moment until it follows another CRD.
		controlplane.Eventually(t, func() string {
			if err := api.Create(t.Context(), o); err != nil && !kerrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		stored[name] = o
	}
	install(crds)
	for name, tc := range refusals {
		if tc.want == "" {
			continue
		}
		controlplane.Eventually(t, func() string {
			if api.Create(t.Context(), tc.object(t, name+"-new"), client.DryRunAll) == nil {
				return name + ": the rule is not in force"
			}
			return ""
		})
	}
	for name, o := range stored {
		t.Run(name, func(t *testing.T) {
			if err := api.Status().Patch(t.Context(), o, merge(`{"status":{"observedGeneration":1}}`)); err != nil {
				t.Errorf("its status: %v", err)
			}
			if err := api.Patch(t.Context(), o, merge(`{"metadata":{"labels":{"a":"b"}}}`)); err != nil {
				t.Errorf("its labels: %v", err)
			}
			whole := o.DeepCopy()
			if err := api.Update(t.Context(), whole); err != nil {
				t.Errorf("the whole object, unchanged: %v", err)
			}
			if err := api.Delete(t.Context(), o); err != nil {
				t.Errorf("its deletion: %v", err)
			}
			if err := api.Patch(t.Context(), o, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
				t.Errorf("its finalizer: %v", err)
			}
		})
	}
}

// TestRulesAreServed shows that withoutRules has something to strip, without which TestRulesOfUpgrades shows nothing.
func TestRulesAreServed(t *testing.T) {
	for _, crd := range controlplane.Manifests(manifests.CRDs) {
		if !bytes.Contains(crd, []byte("x-kubernetes-validations")) {
			t.Errorf("a CRD has no rule: %.80s", crd)
		}
	}
}
