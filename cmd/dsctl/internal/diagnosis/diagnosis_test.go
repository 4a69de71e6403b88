package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func kind(group, name, plural string, namespaced bool) snapshot.Kind {
	return snapshot.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: name}, Resource: plural, Namespaced: namespaced}
}

var kinds = []snapshot.Kind{
	kind("direct-secrets.io", "ExternalSecret", "externalsecrets", true),
	kind("direct-secrets.io", "PushSecret", "pushsecrets", true),
	kind("direct-secrets.io", "ClusterExternalSecret", "clusterexternalsecrets", false),
	kind("aws.direct-secrets.io", "AWSSecretsManager", "awssecretsmanagers", true),
	kind("aws.direct-secrets.io", "ClusterAWSSecretsManager", "clusterawssecretsmanagers", false),
	kind("vault.direct-secrets.io", "VaultKV", "vaultkvs", true),
}

// kindsOf returns Kinds as the operator of provider-aws reports them.
func kindsOf(names ...string) []inspect.ServedKind {
	var all []inspect.ServedKind
	for _, n := range names {
		all = append(all, inspect.ServedKind{Group: "aws.direct-secrets.io", Kind: n, Cluster: strings.HasPrefix(n, "Cluster")})
	}
	return all
}

// awsOperator serves the AWS Kinds in all namespaces.
var awsOperator = snapshot.Operator{
	Operator: inspect.Operator{Module: "aws.direct-secrets.io", Name: "provider-aws", Kinds: kindsOf("AWSSecretsManager", "ClusterAWSSecretsManager")},
	Lease:    types.NamespacedName{Namespace: "direct-secrets", Name: "provider-aws"}, Renewed: now,
}

// read returns a snapshot with the objects of a manifest, from a cluster in which provider-aws runs.
func read(t *testing.T, manifest string, change ...func(*snapshot.Snapshot)) *snapshot.Snapshot {
	t.Helper()
	s := &snapshot.Snapshot{Now: now, Program: "dsctl", Namespace: "shop", Kinds: kinds, OperatorsKnown: true, Operators: []snapshot.Operator{awsOperator}}
	for _, doc := range strings.Split(manifest, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.Object == nil {
			continue
		}
		for _, k := range kinds {
			if k.Kind != u.GetKind() {
				continue
			}
			if k.Namespaced {
				u.SetNamespace("shop")
			}
			if _, found, _ := unstructured.NestedString(u.Object, "metadata", "creationTimestamp"); !found {
				must(t, unstructured.SetNestedField(u.Object, "2026-11-23T11:00:00Z", "metadata", "creationTimestamp"))
			}
			o, err := snapshot.NewObject(k, u)
			must(t, err)
			s.Objects = append(s.Objects, o)
		}
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	// using is an ExternalSecret that reads from the store prod. A status can be appended.
	using = `
kind: ExternalSecret
metadata: {name: db}
spec: {storeRef: {kind: AWSSecretsManager, name: prod}, data: [{secretKey: a, remoteRef: {key: shop/db}}]}
`
	prod = `
kind: AWSSecretsManager
metadata: {name: prod}
status: {conditions: [{type: Ready, status: "True", reason: Valid, message: the store answers and accepts the login}]}
`
)

func failed(reason, message string) string {
	return `status: {conditions: [{type: Ready, status: "False", reason: ` + reason + `, message: '` + message + `'}]}`
}

func TestDiagnose(t *testing.T) {
	db := snapshot.Ref{Group: "direct-secrets.io", Kind: "ExternalSecret", Namespace: "shop", Name: "db"}
	store := snapshot.Ref{Group: "aws.direct-secrets.io", Kind: "AWSSecretsManager", Namespace: "shop", Name: "prod"}
	cases := map[string]struct {
		reason   string
		manifest string
		change   func(*snapshot.Snapshot)
		want     []Finding
	}{
		"InSync": {
			reason: "without a problem there is no finding",
			manifest: using + `status: {observedGeneration: 0, conditions: [{type: Ready, status: "True", reason: SecretSynced}]}
---` + prod,
		},
		"StoreDenied": {
			reason: "the failing store is the cause, and the object that uses it is affected",
			manifest: using + failed("StoreNotReady", `AWSSecretsManager "prod" is not ready: AuthFailed: Denied: no`) + "\n---" + `
kind: AWSSecretsManager
metadata: {name: prod}
` + failed("AuthFailed", "Denied: sts:AssumeRole is refused; allow it in the trust policy"),
			want: []Finding{{
				Severity: Error, Object: store, Reason: "AuthFailed", Message: "Denied: sts:AssumeRole is refused; allow it in the trust policy",
				Fix: "allow it in the trust policy", Affects: []snapshot.Ref{db},
			}},
		},
		"StoreAbsent": {
			reason:   "the missing store is named, together with existing ones",
			manifest: using + failed("StoreNotFound", `AWSSecretsManager "prod" does not exist`) + "\n---" + strings.Replace(prod, "name: prod", "name: test", 1),
			want: []Finding{{
				Severity: Error, Object: store, Reason: "StoreNotFound", Message: "AWSSecretsManager shop/prod does not exist",
				Fix: "create AWSSecretsManager shop/prod, or correct the reference; there are AWSSecretsManager shop/test", Affects: []snapshot.Ref{db},
			}},
		},
		"StoreAbsentCluster": {
			reason: "only cluster stores that admit the namespace by its name are named",
			manifest: using + failed("StoreNotFound", `AWSSecretsManager "prod" does not exist`) + `
---
kind: ClusterAWSSecretsManager
metadata: {name: all}
---
kind: ClusterAWSSecretsManager
metadata: {name: named}
spec: {conditions: [{namespaceRegexes: [sh.p]}]}
---
kind: ClusterAWSSecretsManager
metadata: {name: others}
spec: {conditions: [{namespaces: [bank]}]}
---
kind: ClusterAWSSecretsManager
metadata: {name: labelled}
spec: {conditions: [{namespaceSelector: {matchLabels: {team: bank}}}]}
`,
			want: []Finding{{
				Severity: Error, Object: store, Reason: "StoreNotFound", Message: "AWSSecretsManager shop/prod does not exist",
				Fix: "create AWSSecretsManager shop/prod, or correct the reference; there are ClusterAWSSecretsManager all, ClusterAWSSecretsManager named", Affects: []snapshot.Ref{db},
			}},
		},
		"NoOperator": {
			reason:   "a missing operator is found without a condition",
			manifest: strings.ReplaceAll(using, "AWSSecretsManager", "VaultKV"),
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "VaultKV"}, Reason: "ProviderNotRunning", Message: "no running module serves VaultKV",
				Fix:     "enable the module of vault.direct-secrets.io in the chart (NAME.enabled=true); if it is enabled, see: kubectl get pods,leases -A | grep direct-secrets.io",
				Affects: []snapshot.Ref{db},
			}},
		},
		"OperatorsSilent": {
			reason:   "if no operator reports, an object with a status counts as served",
			manifest: using + `status: {conditions: [{type: Ready, status: "True", reason: SecretSynced}]}` + "\n---" + prod,
			change:   func(s *snapshot.Snapshot) { s.Operators = nil },
			want: []Finding{{
				Severity: Warning, Object: snapshot.Ref{Kind: "Lease"}, Reason: ReasonOperatorAbsent,
				Message: "no operator has reported that it runs", Fix: "enable the modules in the chart; modules without --presence-namespace do not report",
			}},
		},
		"UnknownKind": {
			reason:   "a misspelt Kind has another finding than a module that does not run",
			manifest: strings.ReplaceAll(using, "AWSSecretsManager", "AWSSecretManager"),
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "AWSSecretManager"}, Reason: "ProviderNotRunning", Message: "the cluster has no Kind AWSSecretManager",
				Fix: "correct the kind in the reference, or enable the module that has it in the chart", Affects: []snapshot.Ref{db},
			}},
		},
		"KindOfAnotherOperator": {
			reason: "the condition knows more of the Kind than the cluster",
			manifest: strings.ReplaceAll(using, "AWSSecretsManager", "SecretStore") +
				`status: {conditions: [{type: Ready, status: "False", reason: ProviderNotRunning, message: "SecretStore is a Kind of External Secrets Operator; convert the manifests"}]}`,
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "SecretStore"}, Reason: "ProviderNotRunning", Message: "SecretStore is a Kind of External Secrets Operator",
				Fix: "convert the manifests", Affects: []snapshot.Ref{db},
			}},
		},
		"OperatorExpired": {
			reason:   "an operator that stopped is found although the object is still Ready",
			manifest: using + `status: {conditions: [{type: Ready, status: "True", reason: SecretSynced}]}` + "\n---" + prod,
			change: func(s *snapshot.Snapshot) {
				o := awsOperator
				o.Expired = true
				s.Operators = []snapshot.Operator{o}
			},
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "AWSSecretsManager"}, Reason: "ProviderNotRunning",
				Message: "no running module serves AWSSecretsManager: provider-aws last renewed its Lease at 2026-11-23T12:00:00Z",
				Fix:     "enable the module of aws.direct-secrets.io in the chart (NAME.enabled=true); if it is enabled, see: kubectl get pods,leases -A | grep direct-secrets.io",
				Affects: []snapshot.Ref{store, db},
			}, {
				Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "direct-secrets", Name: "provider-aws"}, Reason: ReasonOperatorAbsent,
				Message: "provider-aws last renewed its Lease at 2026-11-23T12:00:00Z",
				Fix:     "see why it does not run: kubectl get pods -n direct-secrets; if it was removed on purpose: kubectl delete lease -n direct-secrets provider-aws",
			}},
		},
		"KeyAbsent": {
			reason:   "the error class determines the fix, unless the message contains one",
			manifest: using + failed("SecretSyncedError", "NotFound: \"shop/db\" does not exist") + "\n---" + prod,
			want: []Finding{{
				Severity: Error, Object: db, Reason: "SecretSyncedError", Message: `NotFound: "shop/db" does not exist`,
				Fix: inspect.FixOf(provider.NotFound),
			}},
		},
		"Suspended": {
			reason:   "a suspended object is a warning, with the command to resume it",
			manifest: strings.Replace(using, "spec: {", "spec: {suspend: true, ", 1) + failed("Suspended", "spec.suspend is true") + "\n---" + prod,
			want: []Finding{{
				Severity: Warning, Object: db, Reason: "Suspended", Message: "spec.suspend is true: nothing is read or written", Fix: "dsctl resume externalsecret/db -n shop",
			}},
		},
		"DryRun": {
			reason: "a dry run is a warning, with the command that shows what a push would do",
			manifest: `
kind: PushSecret
metadata: {name: up}
spec: {dryRun: true, storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: db}}}
status: {conditions: [{type: Ready, status: Unknown, reason: DryRun}]}
---` + prod,
			want: []Finding{{
				Severity: Warning, Object: snapshot.Ref{Group: "direct-secrets.io", Kind: "PushSecret", Namespace: "shop", Name: "up"}, Reason: "DryRun", Message: "spec.dryRun is true: nothing is written", Fix: "see what a push would do with dsctl diff pushsecret/up -n shop, and set spec.dryRun to false",
			}},
		},
		"NoRemoteChangesPush": {
			reason: "a push that --no-remote-changes holds back is a warning, with the fix",
			manifest: `
kind: PushSecret
metadata: {name: up}
spec: {storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: db}}}
status: {conditions: [{type: Ready, status: Unknown, reason: NoRemoteChanges, message: "nothing is written"}]}
---` + prod,
			want: []Finding{{
				Severity: Warning, Object: snapshot.Ref{Group: "direct-secrets.io", Kind: "PushSecret", Namespace: "shop", Name: "up"}, Reason: "NoRemoteChanges", Message: "nothing is written",
				Fix: "to allow changes at the provider, set global.remoteChanges: true in the chart, or remove --no-remote-changes",
			}},
		},
		"NoRemoteChanges": {
			reason:   "a credential that --no-remote-changes holds back is one warning, not a failure",
			manifest: using + `status: {conditions: [{type: Ready, status: "False", reason: NoRemoteChanges, message: "nothing is made"}]}` + "\n---" + prod,
			want: []Finding{{
				Severity: Warning, Object: db, Reason: "NoRemoteChanges", Message: "nothing is made",
				Fix: "to allow changes at the provider, set global.remoteChanges: true in the chart, or remove --no-remote-changes",
			}},
		},
		"Overdue": {
			reason: "a refresh that the operator missed is a warning",
			manifest: using + `status: {nextRefreshTime: "2026-11-23T11:30:00Z", conditions: [{type: Ready, status: "True", reason: SecretSynced}]}` +
				"\n---" + prod,
			want: []Finding{{
				Severity: Warning, Object: db, Reason: ReasonRefreshOverdue, Message: "a refresh was due at 2026-11-23T11:30:00Z",
				Fix: "see the operator's log and the runbook under DirectSecretsQueueStuck; to try again now: dsctl refresh externalsecret/db -n shop",
			}},
		},
		"InWindow": {
			reason: "a refresh that waits for a sync window is not overdue",
			manifest: using + `status: {nextRefreshTime: "2026-11-23T11:30:00Z", nextWindowTime: "2026-11-24T02:00:00Z", conditions: [{type: Ready, status: "True", reason: SecretSynced}]}` +
				"\n---" + prod,
		},
		"Gone": {
			reason:   "an object that is Ready without a Secret is a warning, because its key can be misspelt",
			manifest: using + `status: {conditions: [{type: Ready, status: "True", reason: SecretDeleted, message: nothing there}]}` + "\n---" + prod,
			want: []Finding{{
				Severity: Warning, Object: db, Reason: "SecretDeleted", Message: "nothing there",
				Fix: "if you did not expect it, correct remoteRef.key, or set spec.target.deletionPolicy: Retain while you investigate",
			}},
		},
		"ClassWithoutOperator": {
			reason: "a store with a class that no operator serves is never validated",
			manifest: `
kind: AWSSecretsManager
metadata: {name: prod}
spec: {controller: nightly}`,
			want: []Finding{{
				Severity: Error, Object: store, Reason: "ProviderNotRunning", Message: `no running operator serves controller class "nightly"`,
				Fix: "correct spec.controller, or start an operator with --controller-class=nightly",
			}},
		},
		"ObjectsOfClassWithoutOperator": {
			reason: "the objects of a store with a class that no operator serves are named",
			manifest: using + `status: {conditions: [{type: Ready, status: "False", reason: ProviderNotRunning, message: no operator}]}` + `
---
kind: AWSSecretsManager
metadata: {name: prod}
spec: {controller: nightly}
status: {conditions: [{type: Ready, status: "False", reason: ProviderNotRunning, message: no operator}]}`,
			want: []Finding{{
				Severity: Error, Object: store, Reason: "ProviderNotRunning", Message: `no running operator serves controller class "nightly"`,
				Fix: "correct spec.controller, or start an operator with --controller-class=nightly", Affects: []snapshot.Ref{db},
			}},
		},
		"OtherNamespace": {
			reason:   "an operator with selected namespaces serves no other",
			manifest: prod,
			change:   func(s *snapshot.Snapshot) { s.Operators[0].Namespaces = []string{"other"} },
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "AWSSecretsManager"}, Reason: "ProviderNotRunning", Message: "no running module serves AWSSecretsManager",
				Fix:     "enable the module of aws.direct-secrets.io in the chart (NAME.enabled=true); if it is enabled, see: kubectl get pods,leases -A | grep direct-secrets.io",
				Affects: []snapshot.Ref{store},
			}},
		},
		"Skewed": {
			reason: "modules whose versions differ too much are named",
			change: func(s *snapshot.Snapshot) {
				older := awsOperator
				older.Name, older.Version = "provider-vault", "v0.1.0"
				s.Operators[0].Version = "v0.3.0"
				s.Operators = append(s.Operators, older)
			},
			want: []Finding{{
				Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "direct-secrets", Name: "provider-aws"}, Reason: "VersionSkew",
				Message: "provider-aws is built with common v0.3.0 and provider-vault with common v0.1.0: objects that use both are not synced",
				Fix:     "upgrade the older module, so that their minor versions differ by one at most",
			}},
		},
		"OlderCRDs": {
			reason: "fields that the CRDs do not have are named, because they hold nothing back",
			change: func(s *snapshot.Snapshot) { s.Operators[0].MissingFields = "PushSecret spec.dryRun" },
			want: []Finding{{
				Severity: Warning, Object: snapshot.Ref{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "direct-secrets", Name: "provider-aws"}, Reason: "VersionSkew",
				Message: "the CRDs are older than provider-aws and do not have PushSecret spec.dryRun: objects that set these fields are not held back",
				Fix:     "upgrade the CRDs to the version of the module, and set the fields again",
			}},
		},
		"NotReconciled": {
			reason:   "an object that its operator has not reconciled is reported",
			manifest: using + "---" + prod,
			want: []Finding{{
				Severity: Error, Object: db, Reason: ReasonNotReconciled, Message: "the operator has not reconciled generation 0 of the spec",
				Fix: "see the operator's log and the runbook under DirectSecretsQueueStuck; check that an operator is the leader: kubectl get leases -A | grep direct-secrets.io",
			}},
		},
		"JustCreated": {
			reason:   "a new object is not reported for two minutes",
			manifest: strings.Replace(using, "name: db}", `name: db, creationTimestamp: "2026-11-23T11:59:00Z"}`, 1) + "---" + prod,
		},
		"ForeignClusterStore": {
			reason: "a failing cluster store is not reported if no object of the namespace uses it",
			manifest: `
kind: ClusterAWSSecretsManager
metadata: {name: other}
` + failed("AuthFailed", "Denied: no"),
		},
		"FanOut": {
			reason: "for a cluster Kind only the selected namespace is reported",
			manifest: `
kind: ClusterExternalSecret
metadata: {name: all}
status:
  failedNamespaces:
  - {namespace: shop, message: 'ExternalSecret "db" exists and was not created by this object; delete it or choose another name'}
  - {namespace: other, message: boom}
  conditions: [{type: Ready, status: "False", reason: PartlyProvisioned, message: created in 0 namespaces}]`,
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Group: "direct-secrets.io", Kind: "ClusterExternalSecret", Name: "all"}, Reason: "PartlyProvisioned",
				Message: `in shop: ExternalSecret "db" exists and was not created by this object; delete it or choose another name`,
				Fix:     "delete it or choose another name",
			}},
		},
		"PushToOneStore": {
			reason: "the failing store of a push is named, not the one in sync",
			manifest: `
kind: PushSecret
metadata: {name: up}
spec: {storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: x}}}
status:
  stores:
  - {apiVersion: aws.direct-secrets.io/v1alpha1, kind: AWSSecretsManager, name: prod, conditions: [{type: Synced, status: "False", reason: SecretSyncedError, message: 'Denied: it has access ReadOnly; use another store'}]}
  conditions: [{type: Ready, status: "False", reason: SecretSyncedError, message: all}]
---` + prod,
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Group: "direct-secrets.io", Kind: "PushSecret", Namespace: "shop", Name: "up"}, Reason: "SecretSyncedError",
				Message: "AWSSecretsManager prod: Denied: it has access ReadOnly; use another store", Fix: "use another store",
			}},
		},
		"DeletionStuck": {
			reason: "an object whose deletion is blocked by a finalizer is reported",
			manifest: `
kind: PushSecret
metadata: {name: up, deletionTimestamp: "2026-11-23T11:00:00Z", finalizers: [aws.direct-secrets.io/pushsecret]}
spec: {storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: x}}}
---` + prod,
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Group: "direct-secrets.io", Kind: "PushSecret", Namespace: "shop", Name: "up"}, Reason: ReasonDeletionStuck,
				Message: "deleted 1h0m0s ago and held by the finalizers aws.direct-secrets.io/pushsecret",
				Fix:     "fix the store that the condition Ready names, or set spec.deletionPolicy: None, which keeps the remote secrets",
			}},
		},
		"RestartBlocked": {
			reason: "a Secret in sync whose workloads do not restart is an error",
			manifest: using + `status: {observedGeneration: 0, conditions: [{type: Ready, status: "True", reason: SecretSynced, message: the Secret is in sync}, {type: WorkloadsRestarted, status: "False", reason: WorkloadNotAvailable, message: 'Deployment "app" has not become available after its restart; fix it, or roll it back'}]}
---` + prod,
			want: []Finding{{
				Severity: Error, Object: db, Reason: v1alpha1.ReasonWorkloadNotAvailable,
				Message: `Deployment "app" has not become available after its restart; fix it, or roll it back`, Fix: "fix it, or roll it back",
			}},
		},
		"Restarting": {
			reason: "workloads that restart need no user",
			manifest: using + `status: {observedGeneration: 0, conditions: [{type: Ready, status: "True", reason: SecretSynced, message: the Secret is in sync}, {type: WorkloadsRestarted, status: "False", reason: Restarting, message: 'restarting Deployment "app"'}]}
---` + prod,
		},
		"NotInstalled": {
			reason: "without the CRDs there is only one finding",
			change: func(s *snapshot.Snapshot) { s.Kinds, s.Operators = nil, nil },
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "CustomResourceDefinition", Name: "externalsecrets.direct-secrets.io"}, Reason: ReasonNotInstalled,
				Message: "the cluster has no Kind ExternalSecret of direct-secrets.io", Fix: "install the chart, see docs/start/install.md; or choose another cluster: --context",
			}},
		},
		"NotAllowed": {
			reason: "resources that could not be checked are reported together for each namespace",
			change: func(s *snapshot.Snapshot) {
				s.Refused = []snapshot.Refusal{
					{Verb: "list", Resource: "externalsecrets.direct-secrets.io", Namespace: "shop", Purpose: "to report on them"},
					{Verb: "list", Resource: "clustervaultkvs.vault.direct-secrets.io", Purpose: "to report on them"},
					{Verb: "list", Resource: "vaultkvs.vault.direct-secrets.io", Namespace: "shop", Purpose: "to report on them"},
				}
			},
			want: []Finding{{
				Severity: Error, Object: snapshot.Ref{Kind: "Permission", Namespace: "shop", Name: "list"}, Reason: ReasonNotAllowed,
				Message: "you are not allowed to list externalsecrets.direct-secrets.io, vaultkvs.vault.direct-secrets.io in namespace shop, which is needed to report on them",
				Fix:     "ask for a Role with this permission; to check a permission: kubectl auth can-i list externalsecrets.direct-secrets.io -n shop",
			}, {
				Severity: Warning, Object: snapshot.Ref{Kind: "Permission", Name: "list"}, Reason: ReasonNotAllowed,
				Message: "you are not allowed to list clustervaultkvs.vault.direct-secrets.io in the cluster, which is needed to report on them",
				Fix:     "ask for a Role with this permission; to check a permission: kubectl auth can-i list clustervaultkvs.vault.direct-secrets.io",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := tc.change
			if change == nil {
				change = func(*snapshot.Snapshot) {}
			}
			got := Diagnose(read(t, tc.manifest, change))
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Finding{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryReasonHasAFix checks that each reason of a condition has its own fix.
func TestEveryReasonHasAFix(t *testing.T) {
	t.Parallel()
	s := read(t, using)
	for _, reason := range []string{
		v1alpha1.ReasonStoreAuthFailed, v1alpha1.ReasonStoreInvalidSpec, v1alpha1.ReasonStoreUnreachable, v1alpha1.ReasonSecretMissing, v1alpha1.ReasonStoreNotReady,
		v1alpha1.ReasonVersionSkew, v1alpha1.ReasonConflict, v1alpha1.ReasonForbidden, v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonPartlyProvisioned, v1alpha1.ReasonNoRemoteChanges,
		v1alpha1.ReasonRestartFailed, v1alpha1.ReasonWorkloadNotAvailable, v1alpha1.ReasonWorkloadNotFound,
		"NotFound", "Denied", "Throttled", "Unavailable", "Invalid", "Template", "Conflict",
	} {
		if fixes[reason] == nil || fixes[reason](s, &s.Objects[0]) == "" {
			t.Errorf("%s has no fix", reason)
		}
	}
}
