package migrate

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// groupReloader is the API group of the reloader of External Secrets Operator.
const groupReloader = "reloader.external-secrets.io"

// esoReloader is the reloader of External Secrets Operator. A Config becomes an event source for each of its notification sources.
var esoReloader = &tool{name: "the reloader of External Secrets Operator", groups: map[string]map[string]source{groupReloader: {
	"Config": {v1alpha, 0, reloaderConfig},
}}}

// The Kinds of event sources.
var (
	awsEventSource = kind{"aws", "AWSEventSource", "provider-aws"}
	gcpEventSource = kind{"gcp", "GCPEventSource", "provider-gcp"}
)

// A notification is a type of notification sources.
type notification struct {
	// block is the field that configures it.
	block string
	// kind is the event source that it becomes; its name is empty if there is none.
	kind kind
	// fields are the rules for the block.
	fields rules
	// dropped says why nothing takes its place; reason and todo say why the Config stays.
	dropped, reason, todo string
}

// notificationsPath is where the notification sources of a Config are.
const notificationsPath = "spec.notificationSources[]"

const (
	todoReceiver = "make an EventReceiver that names the stores, let the sender post the keys of changed secrets to it, then remove the entry, and convert the Config again"
	todoSplit    = "move the other entries to a Config of their own, and convert that one"
)

// notifications are the types of notification sources.
var notifications = map[string]notification{
	"AwsSqs":              {block: "awsSqs", kind: awsEventSource.cluster(), fields: sqsFields()},
	"GooglePubSub":        {block: "googlePubSub", kind: gcpEventSource.cluster(), fields: pubSubFields()},
	"AzureEventGrid":      {block: "azureEventGrid", reason: "there is no event source for Azure Event Grid", todo: todoSplit},
	"HashicorpVault":      {block: "hashicorpVault", reason: "the audit log of Vault is not received", todo: todoReceiver},
	"Webhook":             {block: "webhook", reason: "requests are received by an EventReceiver, which has a signature instead of a login and a body of its own", todo: todoReceiver},
	"TCPSocket":           {block: "tcpSocket", reason: "events are not received from a TCP socket", todo: todoReceiver},
	"KubernetesSecret":    {block: "kubernetesSecret", reason: "Secrets of a cluster send no events", todo: "set target.restart on the ExternalSecrets that make these Secrets, or a short refreshInterval on those that read them; then remove the entry, and convert the Config again"},
	"KubernetesConfigMap": {block: "kubernetesConfigMap", reason: "ConfigMaps of a cluster send no events", todo: todoSplit},
	"Mock":                {block: "mock", dropped: "it is for tests of the reloader"},
}

// sqsFields are the rules for a queue of SQS.
func sqsFields() rules {
	const from, ours = notificationsPath + ".awsSqs", "the operator chooses it"
	return rules{
		from + ".queueURL":                                scalar("spec.sqs.queueURL"),
		from + ".numberOfMessages":                        drop(ours),
		from + ".waitTimeSeconds":                         drop(ours),
		from + ".visibilityTimeout":                       drop(ours),
		from + ".auth.region":                             scalar("spec.region"),
		from + ".auth.authMethod":                         oneOfMethods,
		from + ".auth.secretRef.accessKeyIdSecretRef":     withMethod(2, "static", secretKey("spec.auth.secretRef.accessKeyIDSecretRef", "")),
		from + ".auth.secretRef.secretAccessKeySecretRef": withMethod(2, "static", secretKey("spec.auth.secretRef.secretAccessKeySecretRef", "")),
		from + ".auth.serviceAccountRef":                  withMethod(1, "irsa", roleOfAccount),
	}
}

// pubSubFields are the rules for a subscription of Pub/Sub.
func pubSubFields() rules {
	const from = notificationsPath + ".googlePubSub"
	return rules{
		from + ".subscriptionID": scalar("spec.pubSub.subscription"),
		from + ".projectID":      scalar("spec.projectID"),
	}.with(gcpAuth(from + ".auth"))
}

// oneOfMethods drops the name of a login, which the fields of the login say.
func oneOfMethods(f *field) {
	if f.node.Value != "static" && f.node.Value != "irsa" {
		f.invalid("one of static, irsa")
		return
	}
	f.dropped("the fields of the login say so")
}

// withMethod drops a login that authMethod, which is some levels above the field, does not name.
func withMethod(up int, method string, then rule) rule {
	return func(f *field) {
		if n := f.sibling(up, "authMethod"); n == nil || n.Value != method {
			f.dropped("the reloader uses it only with authMethod: " + method)
			return
		}
		then(f)
	}
}

// roleOfAccount moves the ServiceAccount of a login, and makes the role in its annotation explicit.
func roleOfAccount(f *field) {
	ref := copyOf(f.node)
	irsa("spec.auth.serviceAccountRef")(f)
	if arn, known := f.annotatedRole(f.String(), ref); known {
		f.out.set(arn, "spec", "role")
		f.add(Finding{To: "spec.role", Verdict: Exact, Reason: "the reloader reads it from the annotation " + roleAnnotation + " of the ServiceAccount"})
	}
}

// eventSources are those that a Config becomes.
type eventSources struct {
	*object

	all []*tree
	// conditions limit the namespaces; nil if nothing does.
	conditions *yaml.Node
}

// reloaderConfig converts a Config to event sources.
func reloaderConfig(o *object) {
	s := &eventSources{object: o}
	metadata().with(rules{"spec.notificationSources": s.sources, "spec.destinationsToWatch": s.destinations}).walk(&field{object: o, node: o.node})
	for _, list := range []string{"notificationSources", "destinationsToWatch"} {
		if length(child(o.node, "spec", list)) == 0 {
			o.refuse("spec."+list, "it is missing or empty")
		}
	}
	if len(s.all) == 0 {
		o.omitted = true
		return
	}
	last := len(s.all) - 1
	for i, t := range s.all {
		if s.conditions != nil {
			t.put([]string{"spec", "conditions"}, nil, copyOf(s.conditions))
		}
		k := notifications[t.shared].kind
		t.shared = ""
		if i == last {
			o.becomesEventSource(k, t)
			break
		}
		meta := copyOf(child(o.out.root, "metadata"))
		child(meta, "name").Value = fmt.Sprintf("%s-%d", o.Name.Name, i+1)
		t.root.Content = slices.Concat(mapping("apiVersion", plain(k.apiVersion()), "kind", plain(k.name), "metadata", meta).Content, t.root.Content)
		o.before = append(o.before, t)
	}
}

// becomesEventSource makes an event source the result of the object.
func (o *object) becomesEventSource(k kind, t *tree) {
	meta := cut(o.out.root, "metadata")
	o.becomes(k)
	o.out.root.Content = slices.Concat(o.out.root.Content, meta, t.root.Content)
	o.out.comments, o.out.feet = append(o.out.comments, t.comments...), append(o.out.feet, t.feet...)
}

// sources converts the notification sources.
func (s *eventSources) sources(f *field) {
	if f.node.Kind != yaml.SequenceNode {
		f.invalid("a list")
		return
	}
	for i, n := range f.node.Content {
		s.source(f.below(nil, n, index(i)))
	}
}

// source converts a notification source.
func (s *eventSources) source(f *field) {
	of := text(f.node, "type")
	n, known := notifications[of]
	switch {
	case !known:
		f.unsupported(fmt.Sprintf("the type %q is not known", of), "correct it, or leave the Config with the reloader")
		return
	case n.dropped != "":
		f.dropped(n.dropped)
		return
	case n.kind.name == "":
		f.unsupported(n.reason, n.todo)
		return
	case child(f.node, n.block) == nil:
		f.below(nil, nil, n.block).unsupported("it is missing", "correct it, and convert it again")
		return
	}
	s.used.module(n.kind.module)
	part := *s.object
	part.out, part.becomesKind, part.findings, part.scopes = newTree(), &n.kind, nil, nil
	all := n.fields.with(rules{notificationsPath + ".type": drop("the Kind says so")})
	for _, other := range notifications {
		if other.block != n.block {
			all[notificationsPath+"."+other.block] = drop("the type is " + of)
		}
	}
	all.walk(&field{object: &part, node: f.node, path: f.path})
	part.eventLogin(f, n)
	part.out.shared = of
	s.findings, s.all = append(s.findings, part.findings...), append(s.all, part.out)
}

// eventLogin reports a login of an event source that is missing, not complete, or the operator's own.
func (o *object) eventLogin(f *field, n notification) {
	at := f.below(nil, nil, n.block).String() + ".auth"
	switch {
	case o.verdict() == Unsupported:
	case slices.Contains(o.scopes, ""):
		o.refuse(at, "a reference names no namespace")
	case child(o.out.root, "spec", "auth") != nil:
	case n.kind.module == awsEventSource.module:
		o.refuse(at, "it has no login")
	default:
		o.add(Finding{Field: at, Verdict: Changed, Reason: "there is no login, so the operator's own credentials are used", Todo: "give the ServiceAccount of the operator what that of the reloader has"})
	}
}
