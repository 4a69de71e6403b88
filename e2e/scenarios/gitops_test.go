package scenarios

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// healthCheck returns the script in the page on Argo CD, and its Kinds.
func healthCheck(t *testing.T) (kinds, script string) {
	t.Helper()
	for _, b := range readPage(t, "docs/guides/gitops.md").blocks {
		var m struct {
			Metadata metav1.ObjectMeta
			Data     map[string]string
		}
		if err := yaml.Unmarshal([]byte(b.text), &m); err != nil || m.Metadata.Name != "argocd-cm" {
			continue
		}
		var customizations map[string]map[string]string
		must(t, yaml.UnmarshalStrict([]byte(m.Data["resource.customizations"]), &customizations))
		for k, c := range customizations {
			kinds, script = k, c["health.lua"]
		}
	}
	if script == "" {
		t.Fatal("the page has no health check")
	}
	return kinds, script
}

// health runs a health check as Argo CD does: with only the standard libraries of the language.
func health(t *testing.T, script string, obj map[string]any) string {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	must(t, l.CallByParam(lua.P{Fn: l.NewFunction(lua.OpenBase), Protect: true}))
	l.SetGlobal("obj", luaValue(l, obj))
	must(t, l.DoString(script))
	answer, isTable := l.Get(-1).(*lua.LTable)
	if !isTable {
		t.Fatalf("the health check returns %s", l.Get(-1))
	}
	return lua.LVAsString(answer.RawGetString("status")) + ": " + lua.LVAsString(answer.RawGetString("message"))
}

func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for k, v := range v {
			table.RawSetString(k, luaValue(l, v))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, v := range v {
			table.Append(luaValue(l, v))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}

// TestArgoHealth runs the health check for Argo CD on objects in every state.
func TestArgoHealth(t *testing.T) {
	kinds, script := healthCheck(t)
	for kind, gvk := range customKinds(t, shared) {
		if matches, err := path.Match(kinds, gvk.Group+"/"+kind); err != nil || !matches {
			t.Errorf("%q does not match %s of %s: %v", kinds, kind, gvk.Group, err)
		}
	}
	ready := func(generation, reason, status string) string {
		return `{type: Ready, observedGeneration: ` + generation + `, reason: ` + reason + `, status: "` + status + `", message: "` + strings.ToLower(reason) + `"}`
	}
	for _, tc := range []struct{ reason, object, want string }{
		{"the object has not been handled", `{metadata: {generation: 1}, spec: {}}`, "Progressing: waiting for the operator"},
		{"a Password needs no spec", `{metadata: {generation: 1}, status: {conditions: [` + ready("1", v1alpha1.ReasonStoreValid, "True") + `]}}`, "Healthy: valid"},
		{"the condition is about the previous spec", `{metadata: {generation: 2}, spec: {}, status: {observedGeneration: 1, conditions: [` + ready("1", v1alpha1.ReasonSecretSynced, "True") + `]}}`, "Progressing: waiting for the operator"},
		{"no module serves the object, which the status reports for the present spec", `{metadata: {generation: 2}, spec: {}, status: {observedGeneration: 1, conditions: [` + ready("2", v1alpha1.ReasonProviderNotRunning, "False") + `]}}`, "Degraded: providernotrunning"},
		{"the object is in sync", `{metadata: {generation: 2}, spec: {}, status: {observedGeneration: 2, conditions: [` + ready("2", v1alpha1.ReasonSecretSynced, "True") + `]}}`, "Healthy: secretsynced"},
		{"the object is retried after an error", `{metadata: {generation: 1}, spec: {}, status: {conditions: [{type: Reconciling, status: "True"}, ` + ready("1", v1alpha1.ReasonSecretSyncedError, "False") + `]}}`, "Degraded: secretsyncederror"},
		{"the error needs a change by the user", `{metadata: {generation: 1}, spec: {}, status: {conditions: [` + ready("1", v1alpha1.ReasonInvalidSpec, "False") + `, {type: Stalled, status: "True", message: fix it}]}}`, "Degraded: fix it"},
		{"the stores of a PushSecret are being compared", `{metadata: {generation: 1}, spec: {}, status: {conditions: [` + ready("1", v1alpha1.ConditionReconciling, "Unknown") + `]}}`, "Progressing: reconciling"},
		{"the object is suspended", `{metadata: {generation: 1}, spec: {suspend: true}, status: {conditions: [` + ready("1", v1alpha1.ReasonSuspended, "True") + `]}}`, "Suspended: suspended"},
		{"the object reports what it would push", `{metadata: {generation: 1}, spec: {dryRun: true}, status: {conditions: [` + ready("1", v1alpha1.ReasonDryRun, "Unknown") + `]}}`, "Suspended: dryrun"},
	} {
		obj := map[string]any{}
		must(t, yaml.Unmarshal([]byte(tc.object), &obj))
		if diff := cmp.Diff(tc.want, health(t, script, obj)); diff != "" {
			t.Errorf("\n%s: -want, +got:\n%s", tc.reason, diff)
		}
	}
}
