package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// awsAuth are the rules for a login at AWS. If both are set, External Secrets Operator uses the method that is first.
func awsAuth(from, to, first string) rules {
	all := rules{
		from + ".secretRef.accessKeyIDSecretRef":     secretKey(to+".secretRef.accessKeyIDSecretRef", ""),
		from + ".secretRef.secretAccessKeySecretRef": secretKey(to+".secretRef.secretAccessKeySecretRef", ""),
		from + ".secretRef.sessionTokenSecretRef":    secretKey(to+".secretRef.sessionTokenSecretRef", ""),
		from + ".jwt.serviceAccountRef":              irsa(to + ".serviceAccountRef"),
	}
	for path, then := range all {
		if !strings.HasPrefix(path, from+"."+first+".") {
			all[path] = unless(2, first, then)
		}
	}
	return all
}

var awsStore = rules{
	"spec.provider.aws.service":                                   drop("the Kind says so"),
	"spec.provider.aws.region":                                    scalar("spec.region"),
	"spec.provider.aws.role":                                      scalar("spec.role"),
	"spec.provider.aws.additionalRoles":                           whole("spec.additionalRoles", yaml.SequenceNode),
	"spec.provider.aws.externalID":                                withRole(scalar("spec.externalID")),
	"spec.provider.aws.sessionTags":                               withRole(whole("spec.sessionTags", yaml.SequenceNode)),
	"spec.provider.aws.sessionTagsPolicy":                         sessionTagsPolicy,
	"spec.provider.aws.customSessionTags":                         customSessionTags,
	"spec.provider.aws.transitiveTagKeys":                         withRole(whole("spec.transitiveTagKeys", yaml.SequenceNode)),
	"spec.provider.aws.prefix":                                    scalar("spec.prefix"),
	"spec.provider.aws.secretsManager.forceDeleteWithoutRecovery": deletion("spec.deletion.forceDeleteWithoutRecovery", "false"),
	"spec.provider.aws.secretsManager.recoveryWindowInDays":       deletion("spec.deletion.recoveryWindowInDays", "0"),
}.with(awsAuth("spec.provider.aws.auth", "spec.auth", "jwt"))

// withRole drops what External Secrets Operator passes only when it assumes role.
func withRole(then rule) rule {
	return func(f *field) {
		if role := f.sibling(1, "role"); role == nil || role.Value == "" {
			f.dropped("External Secrets Operator passes it only when it assumes role, and there is none")
			return
		}
		then(f)
	}
}

// sessionTagsPolicy refuses tags that External Secrets Operator makes itself.
func sessionTagsPolicy(f *field) {
	switch f.node.Value {
	case "None":
		f.dropped("it is the default")
	case "Simple", "Custom":
		f.unsupported("the tags that the operator adds to a session have other keys", "add the keys of the operator to the policies of AWS, convert the store without the field, and set sessionTagsPolicy: Simple")
	default:
		f.invalid("one of None, Simple, Custom")
	}
}

// customSessionTags drops tags that have no effect. Otherwise sessionTagsPolicy is refused.
func customSessionTags(f *field) {
	if policy := f.sibling(1, "sessionTagsPolicy"); policy != nil && policy.Value == "Custom" {
		f.unsupported("sessionTags has such tags", "move them to sessionTags")
		return
	}
	f.dropped("External Secrets Operator uses them only with sessionTagsPolicy: Custom")
}

// deletion moves how secrets are deleted; the default is left out.
func deletion(to, missing string) rule {
	return func(f *field) {
		switch {
		case text(f.object.node, "spec", "provider", "aws", "service") != "SecretsManager":
			f.dropped("it is of SecretsManager")
		case f.node.Value == missing:
			f.dropped("it is the default")
		default:
			f.exact(to)
		}
	}
}

// The annotations of a ServiceAccount that has a role of AWS.
const (
	roleAnnotation     = "eks.amazonaws.com/role-arn"
	audienceAnnotation = "eks.amazonaws.com/audience"
	awsAudience        = "sts.amazonaws.com"
)

// irsa moves a login with the token of a ServiceAccount.
func irsa(to string) rule {
	return func(f *field) {
		audience := awsAudience
		if own, found, _ := f.annotation(f.accountOf(f.node), text(f.node, "name"), audienceAnnotation); found && own != "" {
			audience = own
			if child(f.node, "audiences") == nil && f.node.Kind == yaml.MappingNode {
				f.node.Content = append(f.node.Content, scalarNode("audiences", &yaml.Node{}), &yaml.Node{Kind: yaml.SequenceNode})
			}
		}
		serviceAccount(to, audience)(f)
	}
}

// accountOf returns the namespace in which External Secrets Operator looks up a ServiceAccount.
func (o *object) accountOf(ref *yaml.Node) string {
	if n := text(ref, "namespace"); n != "" && o.namesNamespaces() {
		return n
	}
	return o.inputs.namespace(o.Namespace)
}

// referent reports whether a reference is looked up in the namespace of each object that uses the store.
func (o *object) referent(ref *yaml.Node) bool {
	return o.Kind == "ClusterGenerator" || (o.namesNamespaces() && text(ref, "namespace") == "")
}

// namesNamespaces reports whether references of the object name a namespace.
func (o *object) namesNamespaces() bool {
	return o.Kind == "ClusterSecretStore" || groupOf(o.APIVersion) == groupReloader
}

// annotatedRole returns the role in the annotation of a ServiceAccount, or reports why it is not known.
func (o *object) annotatedRole(field string, ref *yaml.Node) (string, bool) {
	if o.referent(ref) {
		o.add(Finding{Field: field, Verdict: Unsupported, Reason: "the role is in the annotation of a ServiceAccount of each namespace", Todo: "make a store or generator per namespace, with the role in it"})
		return "", false
	}
	namespace, name := o.accountOf(ref), text(ref, "name")
	arn, found, twice := o.annotation(namespace, name, roleAnnotation)
	inValues, at := o.inputs.roleOfValues(name)
	switch {
	case twice != "":
		o.add(Finding{Field: field, Verdict: Unsupported, Reason: twice, Todo: "convert the folder of each by itself, or give the role with --role " + namespace + "/" + name + "=ARN"})
	case found && arn != "" && o.inputs.patchedRoles[name] != "":
		o.add(Finding{Field: field, Verdict: Changed, Reason: "a kustomization changes the role in the annotation of the ServiceAccount " + name + ", and the store has the role of the manifest", Todo: "patch spec.role of the store in " + o.inputs.patchedRoles[name] + ", too"})
		return arn, true
	case found && arn != "":
		return arn, true
	case o.inputs.knows(namespace, name):
		o.add(Finding{Field: field, Verdict: Unsupported, Reason: fmt.Sprintf("the ServiceAccount %s/%s has no annotation %s, which %s requires", namespace, name, roleAnnotation, o.from.name), Todo: "annotate it, or give the role with --role " + namespace + "/" + name + "=ARN"})
	case inValues != "":
		o.add(Finding{Field: field, Verdict: Changed, Reason: fmt.Sprintf("the ServiceAccount %s/%s is not in the input, and values of a chart have a role", namespace, name), Todo: fmt.Sprintf("check that %s:%d is for this ServiceAccount", at.File, at.Line)})
		return inValues, true
	default:
		o.add(Finding{Field: field, Verdict: Unsupported, Reason: fmt.Sprintf("the role is in the annotation %s of the ServiceAccount %s/%s, which is not in the input", roleAnnotation, namespace, name), Todo: "add its manifest, use --cluster, or give it with --role " + namespace + "/" + name + "=ARN"})
	}
	return "", false
}

// annotatedAtRunTime reports a login whose only role is in the annotation of a ServiceAccount, where both operators read it. Only
// External Secrets Operator reads the audience there.
func (o *object) annotatedAtRunTime(field string, ref *yaml.Node) {
	namespace, name := o.accountOf(ref), text(ref, "name")
	unknown := ""
	switch {
	case o.referent(ref):
		unknown = "each namespace has a ServiceAccount of its own"
	case !o.inputs.knows(namespace, name):
		unknown = fmt.Sprintf("the ServiceAccount %s/%s is not in the input", namespace, name)
	}
	if unknown != "" {
		o.add(Finding{Field: field, To: "spec.auth.serviceAccountRef.audiences", Verdict: Changed, Reason: unknown + ", and External Secrets Operator reads the audience of the token from its annotation " + audienceAnnotation, Todo: "check that it does not have this annotation, or set audiences"})
		return
	}
	if arn, _, twice := o.annotation(namespace, name, roleAnnotation); arn == "" && twice == "" {
		o.annotatedRole(field, ref) // It reports that there is none.
	}
}

// awsRoles makes explicit which roles are assumed: that of the ServiceAccount, which External Secrets Operator reads from
// its annotation, then additionalRoles, then role. The annotation is enough for the first if there is no other.
func (o *object) awsRoles(at []string) {
	var chain []string
	ref := child(o.node, slices.Concat(at, []string{"auth", "jwt", "serviceAccountRef"})...)
	annotated := ref != nil && child(o.out.root, "spec", "auth", "serviceAccountRef") != nil
	if annotated {
		field := strings.Join(at, ".") + ".auth.jwt.serviceAccountRef"
		_, given := o.inputs.Roles[o.accountOf(ref)+"/"+text(ref, "name")]
		if !given && child(o.out.root, "spec", "additionalRoles") == nil && text(o.out.root, "spec", "role") == "" {
			o.annotatedAtRunTime(field, ref)
			return
		}
		arn, known := o.annotatedRole(field, ref)
		if !known {
			return
		}
		chain = append(chain, arn)
	}
	if additional := child(o.out.root, "spec", "additionalRoles"); additional != nil {
		for _, n := range additional.Content {
			chain = append(chain, n.Value)
		}
	}
	role := text(o.out.root, "spec", "role")
	if role != "" {
		chain = append(chain, role)
	}
	if len(chain) == 0 || (!annotated && role != "") {
		return
	}
	last := len(chain) - 1
	o.out.set(chain[last], "spec", "role")
	if last > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, r := range chain[:last] {
			list.Content = append(list.Content, scalarNode(r, &yaml.Node{}))
		}
		o.out.put([]string{"spec", "additionalRoles"}, nil, list)
	} else {
		o.out.remove("spec", "additionalRoles")
	}
	if annotated {
		o.add(Finding{To: "spec.role", Verdict: Exact, Reason: "External Secrets Operator reads the first role from the annotation " + roleAnnotation + " of the ServiceAccount"})
		return
	}
	o.add(Finding{To: "spec.role", Verdict: Exact, Reason: "the last of additionalRoles is the one that the store works as"})
}
