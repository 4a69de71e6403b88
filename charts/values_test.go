package charts

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestSchemaFaults sets everything that the schema rejects at once, and compares the messages.
func TestSchemaFaults(t *testing.T) {
	t.Parallel()
	sets := []string{
		`global={"scope":{"namespace":["a"],"namespaces":["A"]},"replicaCount":-1,"concurrency":0,"terminationGracePeriodSeconds":null,"providerTimeout":"30","defaultSecretCleanupPolicy":"Always","logLevel":"trace","logFormat":"xml"}`,
		`global={"image":{"repository":"x/y"},"imagePullSecrets":["regcred"],"podDisruptionBudget":{"maxUnavailable":0},"crds":{"annotations":{"helm.sh/resource-policy":"delete"}},"volumes":[{"name":1,"emptyDir":{}}],"volumeMounts":[{"name":"a"}]}`,
		`global={"extraEnv":[{"name":"A","value":1},{"value":"a"}],"tolerations":[{"key":"a","value":true}],"dnsConfig":{"options":[{"name":"ndots","value":2}]},"hostAliases":["a",{"ip":10}],"topologySpreadConstraints":[{"maxSkew":"1"}]}`,
		`global.podSpecExtra={"serviceAccountName":"admin","initContainers":[{"name":"i","env":[{"name":"A","value":1}]}]}`,
		`provider-aws={"replica":2,"args":["a"],"extraArgs":"a,b","ambientCredentials":"yes","image":{"digest":"abc"},"podSpecExtra":{"containers":[{"name":"a"}]}}`,
		`admissionPolicies.clusterKinds.namespaceSelector={"team":"a","matchExpressions":[{"key":"a","operator":"Is"}]}`,
		`provider-awss.enabled=true`, `replicaCount=2`, `concurrent=2`, `nameOverride="a"`, `crds.enabled=false`,
	}
	_, err := template(release, namespace, enable([]string{"provider-aws"}, sets...))
	if err == nil {
		t.Fatal("the values are accepted")
	}
	_, faults, _ := strings.Cut(err.Error(), "\ndirect-secrets:\n")
	faults, _, _ = strings.Cut(faults, "\ncrds:\n") // The charts below have the same faults in global.
	var got []string
	for line := range strings.Lines(faults) {
		if fault := strings.Trim(line, "- \n"); !strings.HasSuffix(fault, "validation failed") {
			got = append(got, strings.TrimPrefix(fault, "at "))
		}
	}
	slices.Sort(got)
	want := []string{
		"'': additional properties 'provider-awss' not allowed",
		"'/admissionPolicies/clusterKinds/namespaceSelector': additional properties 'team' not allowed",
		"'/admissionPolicies/clusterKinds/namespaceSelector/matchExpressions/0/operator': value must be one of 'In', 'NotIn', 'Exists', 'DoesNotExist'",
		"'/concurrent': value must be '(not a setting: use global.concurrency, or MODULE.concurrency for one module)'",
		"'/crds/enabled': value must be '(not a setting: use global.crds.enabled)'",
		"'/global': missing property 'terminationGracePeriodSeconds'",
		"'/global/concurrency': minimum: got 0, want 1",
		"'/global/crds/annotations/helm.sh~1resource-policy': value must be '(set by the chart)'",
		"'/global/defaultSecretCleanupPolicy': value must be one of 'OnDelete', 'Never'",
		"'/global/dnsConfig/options/0/value': got number, want string",
		"'/global/extraEnv/0/value': got number, want string",
		"'/global/extraEnv/1': missing property 'name'",
		"'/global/hostAliases/0': got string, want object",
		"'/global/hostAliases/1/ip': got number, want string",
		"'/global/image': additional properties 'repository' not allowed",
		"'/global/imagePullSecrets/0': got string, want object",
		"'/global/logFormat': value must be one of 'json', 'text'",
		"'/global/logLevel': value must be one of 'debug', 'info', 'warn', 'error'",
		"'/global/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1",
		"'/global/podSpecExtra/initContainers/0/env/0/value': got number, want string",
		"'/global/podSpecExtra/serviceAccountName': value must be '(not a setting: use serviceAccount.name)'",
		`'/global/providerTimeout': '30' does not match pattern '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$'`,
		"'/global/replicaCount': minimum: got -1, want 0",
		"'/global/scope': additional properties 'namespace' not allowed",
		"'/global/scope/namespaces/0': 'A' does not match pattern '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
		"'/global/tolerations/0/value': got boolean, want string",
		"'/global/topologySpreadConstraints/0/maxSkew': got string, want integer",
		"'/global/volumeMounts/0': missing property 'mountPath'",
		"'/global/volumes/0/name': got number, want string",
		"'/nameOverride': value must be '(not a setting: use MODULE.nameOverride, which each module has for itself)'",
		"'/provider-aws': additional properties 'replica' not allowed",
		"'/provider-aws/ambientCredentials': value must be one of 'cluster', 'all', 'none'",
		"'/provider-aws/args': value must be '(not a setting: use extraArgs)'",
		"'/provider-aws/extraArgs': got string, want array",
		"'/provider-aws/image/digest': 'abc' does not match pattern '^(sha256:[0-9a-f]{64})?$'",
		"'/provider-aws/podSpecExtra/containers': value must be '(not a setting: use podSpecExtra.initContainers with restartPolicy Always)'",
		"'/replicaCount': value must be '(not a setting: use global.replicaCount, or MODULE.replicaCount for one module)'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	withoutMetrics := []string{"prometheusRule.enabled", "metrics.enabled is false for provider-aws", "global.metrics.enabled=true"}
	cases := map[string]struct {
		reason string
		values string
		want   []string
	}{
		"Misspelt":      {"a misspelt setting is rejected", `{"global":{"scop":{"namespaces":["a"]}}}`, []string{"global.scop is not a setting", "use global.scope"}},
		"Unlike":        {"a setting that is similar to no other is rejected", `{"global":{"foo":1}}`, []string{"global.foo is not a setting", "README of the chart"}},
		"Renamed":       {"the error of a renamed setting has the new name", `{"global":{"replicas":2}}`, []string{"global.replicas is not a setting", "use global.replicaCount"}},
		"SameNames":     {"two modules with one name are rejected", `{"provider-vault":{"enabled":true,"fullnameOverride":"x"},"provider-aws":{"fullnameOverride":"x"}}`, []string{"provider-aws and provider-vault", "fullnameOverride", `"x"`}},
		"NoLeader":      {"two replicas without leader election are rejected", `{"global":{"replicaCount":2,"leaderElection":{"enabled":false}}}`, []string{"replicaCount is 2", "leaderElection.enabled"}},
		"TwoCAs":        {"two sources of certificates are rejected", `{"global":{"extraCA":{"configMap":"a","secret":"b"}}}`, []string{"extraCA.configMap", "extraCA.secret"}},
		"TokensOutside": {"tokens in a namespace that is not served are rejected", `{"global":{"scope":{"namespaces":["a"]},"serviceAccountTokens":{"enabled":true,"namespaces":["b"]}}}`, []string{"serviceAccountTokens.namespaces", `"b"`, "scope.namespaces"}},
		"NothingToScrape": {"a ServiceMonitor without metrics is rejected", `{"provider-aws":{"metrics":{"enabled":false,"serviceMonitor":{"enabled":true}}}}`,
			[]string{"provider-aws", "metrics.serviceMonitor.enabled", "metrics.enabled"}},
		"UnverifiedMetrics": {"Prometheus would send its token without verifying the receiver", `{"global":{"metrics":{"auth":true,"serviceMonitor":{"enabled":true}}}}`,
			[]string{"provider-aws", "metrics.tls.secretName", "direct-secrets-provider-aws-metrics.direct-secrets.svc", "metrics.serviceMonitor.tlsConfig"}},
		"CertificateWithoutAuth":   {"a certificate is for metrics.auth only", `{"global":{"metrics":{"tls":{"secretName":"cert"}}}}`, []string{"provider-aws", "metrics.tls.secretName", "metrics.auth"}},
		"AlertsWithoutMetrics":     {"alerts without metrics are rejected, because one would never end", `{"global":{"metrics":{"enabled":false}},"prometheusRule":{"enabled":true}}`, withoutMetrics},
		"AlertsWithoutMetricsHere": {"alerts are rejected if the only module has no metrics", `{"provider-aws":{"metrics":{"enabled":false}},"prometheusRule":{"enabled":true}}`, withoutMetrics[:2]},
		"PolicyOnHost":             {"a NetworkPolicy that would have no effect is rejected", `{"global":{"hostNetwork":true,"networkPolicy":{"enabled":true}}}`, []string{"networkPolicy.enabled has no effect with hostNetwork"}},
		"TwoAtOnce":                {"an update with two pods needs leader election", `{"global":{"leaderElection":{"enabled":false},"strategy":{"rollingUpdate":{"maxSurge":1}}}}`, []string{"strategy.type must be Recreate", "leaderElection.enabled"}},
		"AllAvailable":             {"a budget with all replicas is rejected, because nodes could not be drained", `{"global":{"replicaCount":2,"podDisruptionBudget":{"minAvailable":2}}}`, []string{"podDisruptionBudget.minAvailable is 2", "replicaCount of 2"}},
		"RoundedUp":                {"a percentage that Kubernetes rounds up to all replicas is rejected", `{"global":{"replicaCount":2,"podDisruptionBudget":{"minAvailable":"51%"}}}`, []string{"podDisruptionBudget.minAvailable is 51%"}},
		"PolicyInScope":            {"a cluster-wide policy is rejected in a tenant's release", `{"global":{"scope":{"namespaces":["a"]}},"admissionPolicies":{"protectCRDs":{"enabled":true}}}`, []string{"admissionPolicies", "global.scope.namespaces"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sets := []string{noCRDs}
			for key, value := range topLevel(t, tc.values) {
				sets = append(sets, key+"="+value)
			}
			_, err := template(release, namespace, enable([]string{"provider-aws"}, sets...))
			if err == nil {
				t.Fatalf("%s: the values are accepted", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the message does not say %q:\n%v", tc.reason, want, err)
				}
			}
		})
	}
}

// TestAlertsNeedMetrics checks that alerts are accepted if one module has metrics, and that a setting of a module takes precedence.
func TestAlertsNeedMetrics(t *testing.T) {
	t.Parallel()
	sets := []string{noCRDs, `prometheusRule.enabled=true`, `global.metrics.enabled=false`, `provider-vault.metrics.enabled=true`}
	if got := of(render(t, umbrella, enable([]string{"provider-aws", "provider-vault"}, sets...)), "PrometheusRule"); len(got) != 1 {
		t.Errorf("there are %d PrometheusRules, want 1", len(got))
	}
	_, err := template(release, namespace, enable(nil, noCRDs, `prometheusRule.enabled=true`))
	for _, want := range []string{"prometheusRule.enabled is true, but no module is enabled", "provider-aws.enabled=true", "prometheusRule.enabled=false"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("alerts without a module: got %v, want an error with %q", err, want)
		}
	}
}

// TestGlobalBelowAModule checks that Helm replaces the global values of a module by those of the chart, before
// schemas and templates see them, as the README says. If this fails, the schema could reject them.
func TestGlobalBelowAModule(t *testing.T) {
	t.Parallel()
	if got := *deployment(t, "provider-aws", `provider-aws.global.replicaCount=7`).Spec.Replicas; got != 1 {
		t.Errorf("provider-aws.global.replicaCount=7 gives %d replicas; Helm shows it to the chart", got)
	}
	if got := *deployment(t, "provider-aws", `provider-aws.replicaCount=7`).Spec.Replicas; got != 7 {
		t.Errorf("provider-aws.replicaCount=7 gives %d replicas", got)
	}
}

// pod returns the pod template of a module.
func pod(t *testing.T, module string, sets ...string) corev1.PodTemplateSpec {
	t.Helper()
	return deployment(t, module, sets...).Spec.Template
}

// deployment returns the Deployment of a module. CRDs are not rendered, because most of the time is theirs.
func deployment(t *testing.T, module string, sets ...string) appsv1.Deployment {
	t.Helper()
	found := of(render(t, umbrella, enable([]string{module}, append([]string{noCRDs}, sets...)...)), "Deployment")
	if len(found) != 1 {
		t.Fatalf("%d Deployments of %s, want 1", len(found), module)
	}
	return decode[appsv1.Deployment](t, found[0])
}

func TestSettingsReachThePods(t *testing.T) {
	type facts struct{ Image, Args, Env, Rest string }
	of := func(p corev1.PodTemplateSpec) facts {
		c := p.Spec.Containers[0]
		var env, rest []string
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				e.Value = e.ValueFrom.FieldRef.FieldPath
			}
			env = append(env, e.Name+"="+e.Value)
		}
		for _, v := range p.Spec.Volumes {
			rest = append(rest, "volume "+v.Name)
		}
		for _, m := range c.VolumeMounts {
			rest = append(rest, strings.TrimPrefix(fmt.Sprintf("readOnly=%t mount %s", m.ReadOnly, m.MountPath), "readOnly=true "))
		}
		for k, v := range p.Spec.NodeSelector {
			rest = append(rest, "node "+k+"="+v)
		}
		for _, s := range p.Spec.TopologySpreadConstraints {
			rest = append(rest, fmt.Sprint("spread ", s.TopologyKey, " ", s.LabelSelector.MatchLabels["app.kubernetes.io/name"]))
		}
		for _, s := range p.Spec.ImagePullSecrets {
			rest = append(rest, "pull "+s.Name)
		}
		return facts{c.Image, strings.Join(c.Args, " "), strings.Join(env, " "), strings.Join(rest, " ")}
	}
	cases := map[string]struct {
		reason string
		sets   []string
		change func(*facts)
	}{
		"Defaults": {"the defaults", nil, func(*facts) {}},
		"ModuleWins": {"a setting of a module takes precedence over one for all", []string{`global.concurrency=10`, `provider-aws.concurrency=20`},
			func(f *facts) { f.Args = strings.ReplaceAll(f.Args, "concurrency=64", "concurrency=20") }},
		"ModuleTurnsOff": {"a setting of a module takes precedence even if it is false, empty or zero",
			[]string{`global={"allowPlainHTTP":true,"controllerClass":"x","image":{"tag":"v9"}}`, `provider-aws={"allowPlainHTTP":false,"controllerClass":"","image":{"tag":""}}`}, func(*facts) {}},
		"Everything": {"each flag has a value",
			[]string{`global={"leaderElection":{"enabled":false,"leaseDuration":"60s","renewDeadline":"40s","retryPeriod":"2s"},"presenceNamespace":"shared","controllerClass":"blue","concurrency":7,"providerTimeout":"5s","defaultSecretCleanupPolicy":"Never",` +
				`"ambientCredentials":"none","allowPlainHTTP":true,"remoteChanges":false,"configMapTargets":{"enabled":true},"workloadRestarts":{"enabled":true},"eventReceiver":{"enabled":true,"tls":{"secretName":"events"}},"logFormat":"text","logLevel":"debug","auditLog":true,"metrics":{"enabled":false,"perObject":true,"auth":true,"tls":{"secretName":"cert"}}}`},
			func(f *facts) {
				f.Args = "--leader-elect=false --leader-election-namespace=direct-secrets --leader-election-id=direct-secrets.provider-aws.direct-secrets.io --leader-election-lease-duration=60s --leader-election-renew-deadline=40s --leader-election-retry-period=2s --presence-namespace=shared --namespaces= --controller-class=blue " +
					"--concurrency=7 --provider-timeout=5s --default-secret-cleanup-policy=Never --ambient-credentials=none --allow-plain-http=true --no-remote-changes=true --configmap-targets=true --workload-restarts=true " +
					"--log-level=debug --log-format=text --audit-log=true --metrics-bind-address=0 --metrics-per-object=true --metrics-auth=true --metrics-cert-dir=/etc/direct-secrets/metrics --health-probe-bind-address=:8081 --pprof-bind-address=0 --event-receiver-bind-address=:8082 --event-receiver-cert-dir=/etc/direct-secrets/events " +
					strings.Join(moduleFlags(t), " ")
				f.Env += " POD_IP=status.podIP"
				f.Rest = "volume direct-secrets-metrics volume direct-secrets-events mount /etc/direct-secrets/metrics mount /etc/direct-secrets/events"
			}},
		"Mirror": {"images of a mirror, by digest", []string{`global.image={"registry":"mirror.example.com/proxy"}`, `provider-aws.image.digest="sha256:` + strings.Repeat("a", 64) + `"`, `global.imagePullSecrets=[{"name":"regcred"}]`},
			func(f *facts) {
				f.Image = "mirror.example.com/proxy/direct-secrets/provider-aws@sha256:" + strings.Repeat("a", 64)
				f.Rest = "pull regcred"
			}},
		"FIPS": {"the FIPS image of the module's own version", []string{`global.image.fips=true`}, func(f *facts) { f.Image += "-fips" }},
		"FIPSTag": {"a tag takes precedence", []string{`global.image={"fips":true,"tag":"v9"}`},
			func(f *facts) { f.Image = "ghcr.io/direct-secrets/provider-aws:v9" }},
		"Scope": {"selected namespaces", []string{`global.scope.namespaces=["a","b"]`},
			func(f *facts) { f.Args = strings.ReplaceAll(f.Args, "--namespaces=", "--namespaces=a,b") }},
		"Proxy": {"no proxy for the API server", []string{`global.proxy={"https":"http://proxy:3128","noProxy":["vault.example.com"]}`},
			func(f *facts) {
				f.Env += " HTTPS_PROXY=http://proxy:3128 NO_PROXY=$(KUBERNETES_SERVICE_HOST),.svc,.cluster.local,vault.example.com"
			}},
		"CA": {"additional certificate authorities", []string{`global.extraCA={"configMap":"roots"}`},
			func(f *facts) {
				f.Env += " SSL_CERT_DIR=/etc/ssl/certs:/etc/direct-secrets/ca"
				f.Rest = "volume direct-secrets-ca mount /etc/direct-secrets/ca"
			}},
		"Memory": {"Go's memory limit is below that of the pod", []string{`global.resources.limits.memory="1Gi"`},
			func(f *facts) { f.Env = strings.ReplaceAll(f.Env, "460MiB", "921MiB") }},
		"NoLimit": {"no memory limit for Go without a limit of the pod", []string{`provider-aws.resources.limits.memory=""`},
			func(f *facts) { f.Env = "" }},
		"Placement": {"topology spread of the module's own pods", []string{`global={"nodeSelector":{"kubernetes.io/os":"linux"},"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]}`},
			func(f *facts) { f.Rest = "node kubernetes.io/os=linux spread zone provider-aws" }},
		"Further": {"extra settings are last", []string{`provider-aws={"extraArgs":["--pprof-bind-address=:6060"],"extraEnv":[{"name":"AWS_REGION","value":"eu-central-1"}]}`},
			func(f *facts) { f.Args += " --pprof-bind-address=:6060"; f.Env += " AWS_REGION=eu-central-1" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := facts{
				Image: "ghcr.io/direct-secrets/provider-aws:" + appVersion(t),
				Args: "--leader-elect=true --leader-election-namespace=direct-secrets --leader-election-id=direct-secrets.provider-aws.direct-secrets.io --leader-election-lease-duration=15s --leader-election-renew-deadline=5s --leader-election-retry-period=1s --presence-namespace=direct-secrets --namespaces= --controller-class= " +
					"--concurrency=64 --provider-timeout=30s --default-secret-cleanup-policy=OnDelete --ambient-credentials=cluster --allow-plain-http=false --no-remote-changes=false --configmap-targets=false --workload-restarts=false " +
					"--log-level=info --log-format=json --audit-log=false --metrics-bind-address=:8080 --metrics-per-object=false --metrics-auth=false --metrics-cert-dir= --health-probe-bind-address=:8081 --pprof-bind-address=0 --event-receiver-bind-address=0 --event-receiver-cert-dir= " +
					strings.Join(moduleFlags(t), " "),
				Env: "GOMEMLIMIT=460MiB",
			}
			tc.change(&want)
			if diff := cmp.Diff(want, of(pod(t, "provider-aws", tc.sets...))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// moduleFlags returns the flags with the other modules, by their CRDs.
func moduleFlags(t *testing.T) []string {
	t.Helper()
	var flags []string
	for _, module := range modules {
		files, err := filepath.Glob(filepath.Join("..", module, "manifests", "crds", "*.yaml"))
		must(t, err)
		var kinds []string
		for _, f := range files {
			raw, err := os.ReadFile(f)
			must(t, err)
			var crd struct {
				Spec struct {
					Group, Scope string
					Names        struct{ Kind string }
				}
			}
			must(t, yaml.Unmarshal(raw, &crd))
			if crd.Spec.Scope == "Namespaced" {
				kinds = append(kinds, crd.Spec.Names.Kind+"."+crd.Spec.Group)
			}
		}
		slices.Sort(kinds)
		flags = append(flags, "--module="+module+"="+strings.Join(kinds, ","))
	}
	return flags
}

// TestEveryFlagIsWrittenOut compares the arguments with the flags of the modules.
func TestEveryFlagIsWrittenOut(t *testing.T) {
	t.Parallel()
	var flags operator.Flags
	set := flag.NewFlagSet("module", flag.ContinueOnError)
	flags.Bind(set)
	defaults := map[string]string{}
	set.VisitAll(func(f *flag.Flag) { defaults[f.Name] = f.DefValue })
	// The default of these is the namespace of the pod.
	defaults["leader-election-namespace"], defaults["presence-namespace"] = namespace, namespace
	defaults["leader-election-id"] = release + ".provider-vault.direct-secrets.io" // Two releases in a namespace need two ids.
	// The chart knows the other modules.
	var known operator.Flags
	for _, f := range moduleFlags(t) {
		must(t, known.Modules.Set(strings.TrimPrefix(f, "--module=")))
	}
	defaults["module"] = known.Modules.String()

	must(t, set.Parse(pod(t, "provider-vault").Spec.Containers[0].Args))
	must(t, flags.Check())
	got := map[string]string{}
	set.Visit(func(f *flag.Flag) { got[f.Name] = f.Value.String() })
	if diff := cmp.Diff(defaults, got); diff != "" {
		t.Errorf("the chart's defaults are those of the flags: -want, +got:\n%s", diff)
	}
}

// TestLongNames checks that long names are cut within the limits, and stay distinct.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 10) + "end" // 53 characters are the maximum of Helm.
	out, err := template(long, namespace, enable(modules, noCRDs, `admissionPolicies.protectCRDs.enabled=true`))
	must(t, err)
	seen := map[string]int{}
	for _, o := range objectsOf(t, out) {
		seen[name(o)]++
		if len(o.GetName()) > 63 {
			t.Errorf("%s has %d characters", name(o), len(o.GetName()))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(seen)) {
		if seen[n] > 1 {
			t.Errorf("%d objects are %s", seen[n], n)
		}
	}
}

// TestTheDefaultSelector checks the policy without a selector: a label of direct-secrets allows cluster Kinds.
// As a default value it would be merged with the user's own selector.
func TestTheDefaultSelector(t *testing.T) {
	t.Parallel()
	unset := of(render(t, umbrella, enable(nil, noCRDs, `admissionPolicies.clusterKinds.enabled=true`)), "ValidatingAdmissionPolicy")
	empty := of(render(t, umbrella, enable(nil, noCRDs, `admissionPolicies.clusterKinds={"enabled":true,"namespaceSelector":{"matchLabels":{}}}`)), "ValidatingAdmissionPolicy")
	if len(unset) != 2 || len(empty) != 2 {
		t.Errorf("%d and %d policies, want one of ExternalSecrets and one of PushSecrets", len(unset), len(empty))
	}
	for _, o := range append(unset, empty...) {
		raw, err := o.MarshalJSON()
		must(t, err)
		if !strings.Contains(string(raw), `(variables.labels[?\"direct-secrets.io/cluster-kinds\"] == optional.of(\"allowed\"))`) {
			t.Errorf("%s does not ask for the label direct-secrets.io/cluster-kinds=allowed:\n%s", name(o), raw)
		}
	}
}

// TestChartsFitTogether checks that each chart depends on the present version of another, and that the umbrella chart pins
// these versions and renders each module by its own setting.
func TestChartsFitTogether(t *testing.T) {
	t.Parallel()
	type meta struct {
		Name         string `json:"name"`
		Version      string `json:"version"`
		AppVersion   string `json:"appVersion"`
		Dependencies []struct {
			Name      string `json:"name"`
			Version   string `json:"version"`
			Condition string `json:"condition"`
		} `json:"dependencies"`
	}
	charts := map[string]meta{}
	files, err := filepath.Glob("*/Chart.yaml")
	must(t, err)
	for _, f := range files {
		var m meta
		must(t, yaml.Unmarshal([]byte(read(t, f)), &m))
		charts[m.Name] = m
	}
	for _, m := range charts {
		for _, d := range m.Dependencies {
			of, err := semver.NewConstraint(d.Version)
			must(t, err)
			if is := charts[d.Name].Version; !of.Check(semver.MustParse(is)) {
				t.Errorf("%s depends on %s %s, and there is %q", m.Name, d.Name, d.Version, is)
			}
		}
	}
	var lock meta
	must(t, yaml.Unmarshal([]byte(read(t, umbrella+"/Chart.lock")), &lock))
	for i, d := range charts[umbrella].Dependencies {
		if want := d.Name + ".enabled"; slices.Contains(modules, d.Name) && d.Condition != want {
			t.Errorf("%s is rendered with %q, want %q", d.Name, d.Condition, want)
		}
		d.Version, d.Condition = charts[d.Name].Version, ""
		if diff := cmp.Diff(d, lock.Dependencies[i]); diff != "" {
			t.Errorf("Chart.lock: -want, +got:\n%s", diff)
		}
	}
	if got, want := len(charts[umbrella].Dependencies), len(charts)-1; got != want {
		t.Errorf("the umbrella depends on %d charts, want on all %d others", got, want)
	}
}

// TestChartsStandAlone checks that each object of the umbrella chart is of one module and names no other, so that a disabled module
// leaves nothing. The chart of a module renders the same objects alone.
func TestChartsStandAlone(t *testing.T) {
	t.Parallel()
	own := map[string][]*unstructured.Unstructured{}
	for _, o := range render(t, umbrella, enable(modules)) {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		for chart, of := range groups {
			if o.GetLabels()["app.kubernetes.io/name"] == chart || group == of {
				own[chart] = append(own[chart], o)
			}
		}
	}
	// Every module gets the names of all modules that could be installed.
	var flags []string
	for _, f := range moduleFlags(t) {
		flags = append(flags, f, "")
	}
	all := 0
	for chart := range groups {
		all += len(own[chart])
		alone := render(t, chart, nil)
		if len(alone) == 0 {
			t.Errorf("%s renders nothing alone", chart)
		}
		if diff := cmp.Diff(names(own[chart]), names(alone)); diff != "" {
			t.Errorf("%s: -in the umbrella, +alone:\n%s", chart, diff)
		}
		for _, o := range own[chart] {
			raw, err := o.MarshalJSON()
			must(t, err)
			text := strings.NewReplacer(flags...).Replace(string(raw))
			for _, other := range modules {
				if other != chart && strings.Contains(text, other) {
					t.Errorf("%s of %s names %s", name(o), chart, other)
				}
			}
		}
	}
	if want := len(render(t, umbrella, enable(modules))); all != want {
		t.Errorf("%d objects are of the modules, want each of the %d objects once", all, want)
	}
	if diff := cmp.Diff(names(own["crds"]), names(render(t, umbrella, nil))); diff != "" {
		t.Errorf("without a module there are the CRDs that all share, and nothing else: -want, +got:\n%s", diff)
	}
}
