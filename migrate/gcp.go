package migrate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

var gcpStore = rules{
	"spec.provider.gcpsm.projectID": scalar("spec.projectID"),
	"spec.provider.gcpsm.location":  scalar("spec.location"),
	"spec.provider.gcpsm.secretVersionSelectionPolicy": func(f *field) {
		if f.node.Value != "LatestOrFail" {
			f.unsupported("an older version is never read in place of one that is disabled or destroyed", "name the version in the ExternalSecrets, or enable the latest one")
			return
		}
		f.dropped("it is always so")
	},
}.with(gcpAuth("spec.provider.gcpsm.auth"))

const emailAnnotation = "iam.gke.io/gcp-service-account"

// gcpAuth are the rules for a login at Google. Of several methods External Secrets Operator uses the first one of
// secretRef, workloadIdentity and workloadIdentityFederation.
func gcpAuth(from string) rules {
	all := rules{
		from + ".workloadIdentity": unless(1, "secretRef", workloadIdentity),
	}
	federation := rules{
		".audience":               federatedAudience,
		".serviceAccountRef":      federatedAccount,
		".gcpServiceAccountEmail": scalar("spec.auth.workloadIdentity.serviceAccountEmail"),
		".credConfig":             never("credentials are not configured by a ConfigMap", "use serviceAccountRef and audience"),
		".awsSecurityCredentials": never("Google is not logged in to with credentials of AWS", "use serviceAccountRef and audience"),
		".externalTokenEndpoint":  drop("it is of credConfig"),
	}
	for path, then := range federation {
		all[from+".workloadIdentityFederation"+path] = unless(2, "secretRef", unless(2, "workloadIdentity", then))
	}
	return all.with(rules{from + ".secretRef.secretAccessKeySecretRef": secretKey("spec.auth.secretRef.secretAccessKeySecretRef", "")})
}

func federatedAudience(f *field) {
	if !strings.HasPrefix(f.node.Value, "//iam.googleapis.com/") {
		f.unsupported("the audience is not that of a workload identity pool", "write the store by hand")
		return
	}
	f.exact("spec.auth.workloadIdentity.audience")
}

// federatedAccount moves the ServiceAccount whose token Google exchanges.
func federatedAccount(f *field) {
	const to = "spec.auth.workloadIdentity.serviceAccountRef"
	serviceAccount(to)(f)
	if child(f.node, "audiences") == nil {
		f.add(Finding{Field: f.String() + ".audiences", To: to + ".audiences", Verdict: Changed, Reason: "without audiences the token is for the provider of the pool, and in External Secrets Operator for the Kubernetes API", Todo: "check that the provider of the pool allows its own name as audience, or name the audiences"})
	}
}

// workloadIdentity moves the login of a ServiceAccount of a GKE cluster. It names the cluster and the account of Google, which
// External Secrets Operator reads from the machine and from the ServiceAccount.
func workloadIdentity(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	if !f.only("serviceAccountRef", "clusterLocation", "clusterName", "clusterProjectID") {
		return
	}
	project := text(f.node, "clusterProjectID")
	ofStore := project == ""
	if n := f.sibling(2, "projectID"); ofStore && n != nil {
		project = n.Value
	}
	location, cluster := text(f.node, "clusterLocation"), text(f.node, "clusterName")
	ref := child(f.node, "serviceAccountRef")
	switch {
	case location == "" || cluster == "" || project == "":
		f.unsupported("External Secrets Operator asks the machine that it runs on for the cluster", "set clusterLocation, clusterName and clusterProjectID, and convert it again")
		return
	case text(ref, "name") == "":
		f.invalid("complete")
		return
	}
	if ofStore {
		f.add(Finding{Field: f.String() + ".clusterProjectID", To: "spec.auth.workloadIdentity.audience", Verdict: Changed, Reason: "External Secrets Operator asks the machine that it runs on for the project of the cluster, and the result names projectID", Todo: "check that the cluster is in the project " + project + ", or set clusterProjectID"})
	}
	email, known := f.googleAccount(ref)
	if !known {
		return
	}
	pool := project + ".svc.id.goog"
	serviceAccount("spec.auth.workloadIdentity.serviceAccountRef", pool)(f.below(nil, ref, "serviceAccountRef"))
	f.out.set(fmt.Sprintf("identitynamespace:%s:https://container.googleapis.com/v1/projects/%s/locations/%s/clusters/%s", pool, project, location, cluster), "spec", "auth", "workloadIdentity", "audience")
	f.add(Finding{Field: f.String(), To: "spec.auth.workloadIdentity.audience", Verdict: Exact})
	if email != "" {
		f.out.set(email, "spec", "auth", "workloadIdentity", "serviceAccountEmail")
		f.add(Finding{To: "spec.auth.workloadIdentity.serviceAccountEmail", Verdict: Exact, Reason: "External Secrets Operator reads it from the annotation " + emailAnnotation})
	}
}

// googleAccount returns the account of Google that a ServiceAccount works as; "" if it works as itself.
func (f *field) googleAccount(ref *yaml.Node) (email string, known bool) {
	if f.referent(ref) {
		f.unsupported("the account of Google may be in the annotation "+emailAnnotation+" of a ServiceAccount of each namespace", "make a store or generator per namespace, or name the namespace")
		return "", false
	}
	namespace, name := f.accountOf(ref), text(ref, "name")
	if !f.inputs.knows(namespace, name) {
		f.unsupported(fmt.Sprintf("the account of Google may be in the annotation %s of the ServiceAccount %s/%s, which is not in the input", emailAnnotation, namespace, name), "add its manifest, or use --cluster")
		return "", false
	}
	email, _, twice := f.annotation(namespace, name, emailAnnotation)
	if twice != "" {
		f.unsupported(twice, "convert the folder of each by itself")
		return "", false
	}
	return email, true
}
