package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// hostile is a text that forges a line, and changes what a terminal shows.
const hostile = "x\nFORGED\r\tFORGED\x1b[2J\u009b31m\u202e\u2066\u200b\u2028\x7f"

// startHostile starts an API server with objects whose names and messages are hostile. It allows no other list.
func startHostile(t *testing.T) string {
	t.Helper()
	condition := func(name string) map[string]any {
		return map[string]any{"type": name, "status": "False", "reason": hostile, "message": hostile, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
	}
	ready, synced := condition("Ready"), condition("Synced")
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": "shop", "uid": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": map[string]any{"a": hostile}}
	}
	external := map[string]any{
		"apiVersion": "direct-secrets.io/v1alpha1", "kind": "ExternalSecret", "metadata": meta("db"),
		"spec": map[string]any{"storeRef": map[string]any{"kind": hostile, "name": hostile}, "target": map[string]any{"name": hostile, "creationPolicy": "None"}},
		"status": map[string]any{"observedGeneration": 1, "conditions": []any{ready}, "difference": map[string]any{"exists": true, "type": hostile,
			"data": map[string]any{"added": []any{hostile}}, "labels": map[string]any{"changed": []any{hostile}}}},
	}
	push := map[string]any{
		"apiVersion": "direct-secrets.io/v1alpha1", "kind": "PushSecret", "metadata": meta("up"),
		"spec": map[string]any{"dryRun": true, "storeRefs": []any{map[string]any{"kind": hostile, "name": hostile}}, "selector": map[string]any{"secret": map[string]any{"name": hostile}}},
		"status": map[string]any{"conditions": []any{ready}, "stores": []any{map[string]any{"kind": hostile, "name": hostile, "conditions": []any{synced},
			"difference": map[string]any{"entries": []any{map[string]any{"remoteKey": hostile, "property": hostile, "action": hostile}}}}}},
	}
	eso := map[string]any{
		"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": meta("old"),
		"spec": map[string]any{"refreshInterval": hostile, "secretStoreRef": map[string]any{"name": hostile, "kind": hostile}, "data": []any{
			map[string]any{"secretKey": hostile, "remoteRef": map[string]any{"key": hostile, "property": hostile}, hostile: hostile}}},
	}
	answers := map[string]any{
		"/api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group("direct-secrets.io", "v1alpha1"), group("external-secrets.io", "v1"), group("authorization.k8s.io", "v1"), group("apps", "v1"), group("batch", "v1"), group("networking.k8s.io", "v1")}},
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":              map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": false}},
		"/apis/direct-secrets.io/v1alpha1/namespaces/shop/externalsecrets/db": external,
		"/apis/direct-secrets.io/v1alpha1/namespaces/shop/pushsecrets/up":     push,
		"/api/v1/serviceaccounts":                      list("v1", "ServiceAccountList"),
		"/api/v1/namespaces/direct-secrets/configmaps": list("v1", "ConfigMapList"),
		"/api/v1/configmaps":                           list("v1", "ConfigMapList"),
		"/api/v1":                                      resources("v1", "ConfigMap", "ServiceAccount", "Secret", "Pod"),
		"/apis/authorization.k8s.io/v1":                resources("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
		"/apis/direct-secrets.io/v1alpha1":             resources("direct-secrets.io/v1alpha1", "ExternalSecret", "PushSecret"),
		"/apis/apps/v1":                                resources("apps/v1", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
		"/apis/batch/v1":                               resources("batch/v1", "CronJob", "Job"),
		"/apis/networking.k8s.io/v1":                   resources("networking.k8s.io/v1", "Ingress"),
		"/apis/external-secrets.io/v1":                 resources("external-secrets.io/v1", "ExternalSecret"),
		"/apis/direct-secrets.io/v1alpha1/namespaces/shop/externalsecrets": list("direct-secrets.io/v1alpha1", "ExternalSecretList", external),
		"/apis/direct-secrets.io/v1alpha1/namespaces/shop/pushsecrets":     list("direct-secrets.io/v1alpha1", "PushSecretList", push),
		"/apis/external-secrets.io/v1/externalsecrets":                     list("external-secrets.io/v1", "ExternalSecretList", eso),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !known || (r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/up")) {
			w.WriteHeader(http.StatusForbidden)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden, "message": hostile}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func group(name, version string) map[string]any {
	v := map[string]any{"groupVersion": name + "/" + version, "version": version}
	return map[string]any{"name": name, "versions": []any{v}, "preferredVersion": v}
}

func resources(groupVersion string, kinds ...string) map[string]any {
	var all []any
	for _, k := range kinds {
		all = append(all, map[string]any{"name": strings.ToLower(k) + "s", "singularName": strings.ToLower(k), "kind": k, "namespaced": k != "SelfSubjectAccessReview", "verbs": []any{"get", "list", "patch", "create"}})
	}
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": all}
}

func list(apiVersion, kind string, items ...any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"resourceVersion": "1"}, "items": append([]any{}, items...)}
}

// TestHostileNames runs each command that prints on objects with hostile names. No text forges a line or controls the
// terminal, and JSON stays valid and complete.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	server := startHostile(t)
	report := filepath.Join(t.TempDir(), "report.md")
	for _, args := range []string{
		"get", "get -o wide", "get -o json", "tree", "tree db", "tree -o json", "doctor", "doctor -o json",
		"diff db", "diff pushsecret/up", "diff pushsecret/up -o json", "refresh db", "refresh db -o json", "refresh db --wait --timeout 1ms", "suspend pushsecret/up", "suspend --all -o json",
		"migrate --cluster", "migrate --cluster -o markdown", "migrate --cluster -o json", "migrate --cluster --execute", "migrate --cluster --execute -o json",
		"migrate --cluster -o markdown --report " + report, "__complete get", "__complete refresh", "get nothing", "refresh nothing",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			words := append(strings.Fields(args), "--server", server, "-n", "shop")
			if words[0] == "__complete" {
				words = append(words, "")
			}
			out, errs, code := run(t, "", words...)
			t.Logf("exit code %d: %q %q", code, out, errs)
			if out+errs == "" && !strings.Contains(args, "--report") {
				t.Fatal("it prints nothing")
			}
			if args == "migrate --cluster" || args == "migrate --cluster -o markdown" || args == "migrate --cluster -o json" {
				out = "" // The manifest.
			}
			for what, text := range map[string]string{"output": out, "errors": errs} {
				if fault := forged(text); fault != "" {
					t.Errorf("%s: %s:\n%q", what, fault, text)
				}
			}
			if text := strings.TrimSpace(out); strings.HasSuffix(args, "json") && text != "" {
				var into any
				if err := json.Unmarshal([]byte(text), &into); err != nil {
					t.Errorf("the JSON is not valid: %v: %q", err, text)
				}
				if args == "get -o json" && !strings.Contains(fmt.Sprint(into), hostile) {
					t.Errorf("the JSON is not complete: %q", text)
				}
			}
		})
	}
}

// forged says what is wrong with a text; "" if nothing is.
func forged(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(text, "error: ") && strings.HasPrefix(line, "  ") {
			continue // It is a line of the error.
		}
		if strings.HasPrefix(strings.TrimLeft(line, " │├└─"), "FORGED") {
			return "a line is forged"
		}
	}
	for _, r := range text {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return fmt.Sprintf("the control character %U is printed", r)
		}
	}
	return ""
}

// TestYAMLOf writes values as YAML, and reads them with the library of migrate. They do not change.
func TestYAMLOf(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"Plain": "a: b", "Hostile": hostile, "Delete": "a\x7fb", "Control": "a\u0085\u009bb", "Separators": "a\u2028b\u2029c", "Planes": "a\x7f\U000e0041\U0001f600",
	} {
		raw, err := yamlOf(map[string]any{"key": value})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := map[string]string{}
		if err := yaml.Unmarshal(raw, &got); err != nil || got["key"] != value {
			t.Errorf("%s: got %q, want %q: %v", name, got["key"], value, err)
		}
	}
}
