package diagnosis

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A fix returns the advice for an object.
type fix func(s *snapshot.Snapshot, o *snapshot.Object) string

// fixes maps reasons of conditions, and error classes, to their fixes. The message of a condition often
// contains more precise advice, which takes precedence.
var fixes = map[string]fix{
	v1alpha1.ReasonStoreAuthFailed: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		return fmt.Sprintf("compare the login and its permissions with the page of %s in docs/; a changed credential is used at once", o.Kind.Kind)
	},
	v1alpha1.ReasonStoreUnreachable: fixed("check DNS, NetworkPolicy, proxy and certificates between the operator's namespace and the address of the store"),
	v1alpha1.ReasonInvalidSpec: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		return "correct the field that the message names: kubectl edit " + kubectlName(o)
	},
	v1alpha1.ReasonForbidden: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		return "change the quota, the admission policy, the operator's permissions or the conditions of the cluster store; for details: kubectl describe " + kubectlName(o)
	},
	v1alpha1.ReasonConflict: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		if o.ExternalSecret == nil {
			return "choose another name, or remove the other object"
		}
		kind, name := inspect.TargetOf(o.ExternalSecret)
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			name = "NAME" // A shell could execute other text.
		}
		return fmt.Sprintf("choose another spec.target.name, or remove the other owner; to see it: kubectl get %s -n %s %s -o yaml --show-managed-fields", strings.ToLower(string(kind)), o.Meta.Namespace, name)
	},
	v1alpha1.ReasonSecretMissing: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		if o.ExternalSecret == nil || o.ExternalSecret.Spec.Target.CreationPolicy != v1alpha1.CreateMerge {
			return "remove the finalizers of the Secret if their owner no longer exists"
		}
		kind, name := inspect.TargetOf(o.ExternalSecret)
		return fmt.Sprintf("create %s %s/%s, or set spec.target.creationPolicy: CreateOrMerge", kind, o.Meta.Namespace, name)
	},
	v1alpha1.ReasonVersionSkew:       fixed("upgrade the older of the two modules"),
	v1alpha1.ReasonNoRemoteChanges:   fixed("to allow changes at the provider, set global.remoteChanges: true in the chart, or remove --no-remote-changes"),
	v1alpha1.ReasonStoreNotReady:     fixed("fix the store that the message names"),
	v1alpha1.ReasonPartlyProvisioned: fixed("see status.failedNamespaces"),
	v1alpha1.ReasonRestartFailed:     fixed("allow the operator to list and patch the workload (in the chart: workloadRestarts.enabled), or change the admission policy that refuses it"),
	v1alpha1.ReasonWorkloadNotAvailable: func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		return "fix the workload that the message names, or roll it back; to see why it is not available: kubectl get events -n " + o.Meta.Namespace
	},
	v1alpha1.ReasonWorkloadNotFound: fixed("correct spec.target.restart.workloads"),
	"NotFound":                      fixed(inspect.FixOf(provider.NotFound)),
	"Denied":                        fixed(inspect.FixOf(provider.Denied)),
	"Template":                      fixed(inspect.FixOf(provider.Template)),
	"Throttled":                     fixed("raise refreshInterval, or the quota of the provider; retrying with back-off until then"),
	"Unavailable":                   fixed("check that the provider answers; retrying with back-off until then"),
	"Invalid": func(_ *snapshot.Snapshot, o *snapshot.Object) string {
		return "correct the spec or the remote value that the message names: kubectl edit " + kubectlName(o)
	},
}

func fixed(text string) fix {
	return func(*snapshot.Snapshot, *snapshot.Object) string { return text }
}

// advise returns the cause of a failure and the fix. Messages of the operator have the cause and, after a
// semicolon, the fix.
func advise(s *snapshot.Snapshot, o *snapshot.Object, reason, message string) (why, todo string) {
	class, rest, classed := strings.Cut(message, ": ")
	known := fixes[reason]
	if f := fixes[class]; classed && f != nil && !strings.Contains(class, " ") {
		known = f
	} else {
		rest = message
	}
	todo = inspect.FixIn(rest)
	switch {
	case reason == v1alpha1.ReasonForbidden && strings.Contains(message, "ResourceQuota"):
		todo = "raise the quota: kubectl describe resourcequotas -n " + o.Meta.Namespace
	case reason == v1alpha1.ReasonSecretMissing: // The message does not name the namespace.
		todo = known(s, o)
	case known == nil && todo == "":
		todo = "see the reason in docs/operate/runbook.md, and: kubectl describe " + kubectlName(o)
	case known != nil && todo == "":
		todo = known(s, o)
	}
	return message, todo
}

// kubectlName returns kubectl's arguments for the object.
func kubectlName(o *snapshot.Object) string {
	name := o.Kind.GroupResource() + " " + o.Meta.Name
	if o.Meta.Namespace != "" {
		name += " -n " + o.Meta.Namespace
	}
	return name
}
