package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// startReloaded serves an ExternalSecret, and a Deployment that Reloader restarts for its Secret. StatefulSets are forbidden, and there are
// no Rollouts.
func startReloaded(t *testing.T) string {
	t.Helper()
	meta := func(name string, annotations map[string]any) map[string]any {
		return map[string]any{"name": name, "namespace": "shop", "annotations": annotations}
	}
	key := func(name string) map[string]any { return map[string]any{"name": "aws", "key": name} }
	store := map[string]any{"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": meta("prod", nil), "spec": map[string]any{"provider": map[string]any{"aws": map[string]any{
		"service": "SecretsManager", "region": "eu-central-1", "auth": map[string]any{"secretRef": map[string]any{"accessKeyIDSecretRef": key("id"), "secretAccessKeySecretRef": key("key")}},
	}}}}
	external := map[string]any{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": meta("db", nil), "spec": map[string]any{
		"secretStoreRef": map[string]any{"name": "prod"}, "data": []any{map[string]any{"secretKey": "a", "remoteRef": map[string]any{"key": "a"}}},
	}}
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("shop", map[string]any{"secret.reloader.stakater.com/reload": "db"})}
	answers := map[string]any{
		"/api":                         map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis":                        map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group("external-secrets.io", "v1"), group("apps", "v1"), group("batch", "v1")}},
		"/api/v1":                      resources("v1", "ConfigMap", "ServiceAccount"),
		"/apis/apps/v1":                resources("apps/v1", "Deployment", "StatefulSet", "DaemonSet"),
		"/apis/batch/v1":               resources("batch/v1", "CronJob"),
		"/apis/external-secrets.io/v1": resources("external-secrets.io/v1", "ExternalSecret", "SecretStore"),
		"/api/v1/serviceaccounts":      list("v1", "ServiceAccountList"),
		"/api/v1/namespaces/direct-secrets/configmaps": list("v1", "ConfigMapList"),
		"/apis/external-secrets.io/v1/externalsecrets": list("external-secrets.io/v1", "ExternalSecretList", external),
		"/apis/external-secrets.io/v1/secretstores":    list("external-secrets.io/v1", "SecretStoreList", store),
		"/apis/apps/v1/namespaces/shop/deployments":    list("apps/v1", "DeploymentList", deployment),
		"/apis/apps/v1/namespaces/shop/daemonsets":     list("apps/v1", "DaemonSetList"),
		"/apis/batch/v1/namespaces/shop/cronjobs":      list("batch/v1", "CronJobList"),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: the command changes the cluster", r.Method, r.URL.Path)
		}
		if !known {
			code := map[bool]int{true: http.StatusNotFound, false: http.StatusForbidden}[strings.HasPrefix(r.URL.Path, "/apis/argoproj.io")]
			w.WriteHeader(code)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": strings.ReplaceAll(http.StatusText(code), " ", ""), "code": code}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestMigrateWorkloads reads the annotations of Reloader in a cluster. It changes no workload, and reports what to change.
func TestMigrateWorkloads(t *testing.T) {
	t.Parallel()
	out, errs, code := run(t, "", "migrate", "--cluster", "-n", "shop", "-o", "wide", "--server", startReloaded(t), "--kubeconfig", "/dev/null")
	for _, want := range []string{"  target:\n    restart:\n      workloads:\n      - kind: Deployment\n        name: shop\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output is\n%s\nwant in it\n%s", out, want)
		}
	}
	for _, want := range []string{
		"warning: you are not allowed to list StatefulSets, so their annotations of Reloader are not read\n",
		"metadata.annotations.secret.reloader.stakater.com/reload: the ExternalSecret shop/db restarts it\n",
		"-> remove the annotation from the workload\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("the report is\n%s\nwant in it\n%s", errs, want)
		}
	}
	if strings.Contains(out, "kind: Deployment\nmetadata") || code != exitChanged {
		t.Errorf("exit code %d, and the output is\n%s", code, out)
	}
}
