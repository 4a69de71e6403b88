package target_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// canary is a value that no error may show.
const canary = "c4nary-v4lue"

// kindOf returns the kind of an error, and the message that a user sees.
func kindOf(err error) (kind, message string) {
	var invalid *target.InvalidError
	var forbidden *target.ForbiddenError
	switch {
	case err == nil:
		return "none", ""
	case errors.Is(err, target.ErrNamespaceTerminating):
		return "NamespaceTerminating", ""
	case errors.As(err, &forbidden):
		return "Forbidden", forbidden.Message
	case errors.As(err, &invalid):
		return "Invalid", invalid.Message
	}
	return fmt.Sprintf("%T", err), err.Error()
}

func wantNoCanary(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e)} {
			for _, c := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), canary[:8]} {
				if strings.Contains(text, c) {
					t.Errorf("the error shows a value: %s", text)
				}
			}
		}
	}
}

// refusal is one way for a write to fail.
type refusal struct {
	reason string
	// before prepares the refused write; it may replace the Writer of e.
	before func(e *env, o object)
	// want returns what is wanted.
	want func(o object) target.Desired
	own  bool
	kind string
	// fix is a part of the message.
	fix string
}

func TestRefused(t *testing.T) {
	plain := func(o object) target.Desired { return o.wants("db", "a", canary) }
	ours := func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", canary)) }
	immutable := func(e *env, o object) {
		ours(e, o)
		e.updates("db", "kubectl", func(s *corev1.Secret) { yes := true; s.Immutable = &yes })
	}
	big := strings.Repeat(canary, 1+(1<<20)/len(canary))
	cases := map[string]refusal{
		"OtherType": {
			reason: "The type of a Secret cannot change.",
			before: ours,
			want: func(o object) target.Desired {
				d := plain(o)
				d.Type = corev1.SecretTypeBasicAuth
				return d
			},
			kind: "Invalid", fix: `has type "Opaque", which cannot change to "kubernetes.io/basic-auth"; delete the Secret`,
		},
		"ImmutableOtherValue": {
			reason: "An immutable Secret keeps its values.", before: immutable,
			want: func(o object) target.Desired { return o.wants("db", "a", canary, "b", canary) },
			kind: "Invalid", fix: "immutable; delete it",
		},
		"ImmutableFewerKeys": {
			reason: "An immutable Secret loses no key.", before: immutable,
			want: func(o object) target.Desired { return o.wants("db", "b", canary) },
			kind: "Invalid", fix: "immutable; delete it",
		},
		"TooBigToCreate": {
			reason: "A Secret holds at most 1 MiB.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a", big) },
			kind: "Invalid", fix: "1048576; use fewer or smaller keys",
		},
		"TooBigTogether": {
			reason: "The limit includes the keys of others.",
			before: func(e *env, _ object) { e.posted("db", "kubectl", "theirs", big[:1<<19]) },
			want:   func(o object) target.Desired { return o.wants("db", "a", big[:1<<19+1]) },
			kind:   "Invalid", fix: "would have 1048577 bytes",
		},
		"FarTooBig": {
			reason: "The API server would not even read such a request.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a", strings.Repeat(big, 5)) },
			kind: "Invalid", fix: "use fewer or smaller keys",
		},
		"BadKeyCreate": {
			reason: "A key has a restricted alphabet.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a b", canary) },
			kind: "Invalid", fix: "data[a b]",
		},
		"BadContent": {
			reason: "Some types require certain keys; the message names only these.", before: func(*env, object) {},
			want: func(o object) target.Desired {
				d := o.wants("db", ".dockerconfigjson", canary)
				d.Type = corev1.SecretTypeDockerConfigJson
				return d
			},
			kind: "Invalid", fix: "data[.dockerconfigjson]",
		},
		"Quota": {
			reason: "A quota error is no error of the object.", before: func(e *env, _ object) { e.quota() }, want: plain,
			kind: "Forbidden", fix: "ResourceQuota of the namespace allows no more Secrets; raise it",
		},
		"NamespaceTerminating": {
			reason: "In a terminating namespace nothing can be created, and no error is reported.",
			before: func(e *env, _ object) { e.terminatingNamespace() }, want: plain,
			kind: "NamespaceTerminating",
		},
		"DeniedCreate": {
			reason: "Without the permission the write is forbidden.",
			before: func(e *env, _ object) { e.w = target.NewWriter(e.unprivilegedClient(), nil) }, want: plain,
			kind: "Forbidden", fix: "no permission to write Secrets",
		},
		"DeniedOwn": {
			reason: "A change of the owner without the permission is forbidden.",
			before: func(e *env, o object) { ours(e, o); e.w = target.NewWriter(e.unprivilegedClient(), nil) }, want: plain, own: true,
			kind: "Forbidden", fix: "no permission to write Secrets",
		},
		"SecondController": {
			reason: "A Secret cannot have two controllers.",
			before: func(e *env, o object) {
				ours(e, o)
				other := e.object("other")
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{other.reference(true)} })
			},
			want: plain, own: true,
			kind: "Invalid", fix: "metadata.ownerReferences",
		},
	}
	for _, reason := range []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge} {
		kind, fix := "Invalid", "API server rejects the Secret"
		if reason == metav1.StatusReasonForbidden {
			kind, fix = "Forbidden", "admission policy"
		}
		cases["PolicyThatQuotes"+string(reason)] = refusal{
			reason: "An admission policy may quote the Secret in its message; our error must not.",
			before: func(e *env, _ object) { e.quotingPolicy(reason) }, want: plain,
			kind: kind, fix: fix,
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			was := e.secretAsAdmin("db")
			var err error
			switch {
			case was == nil:
				_, err = e.w.Create(e.ctx, tc.want(o))
			case tc.own:
				_, err = e.w.Own(e.ctx, was, owned(tc.want(o), o.reference(true)), target.Others{})
			default:
				_, _, err = e.w.Apply(e.ctx, was, tc.want(o), target.Others{})
			}
			kind, message := kindOf(err)
			if kind != tc.kind || !strings.Contains(message, tc.fix) {
				t.Errorf("\n%s\ngot %s: %.300s\nwant %s: …%s…", tc.reason, kind, message, tc.kind, tc.fix)
			}
			wantNoCanary(t, err)
			// The fold before a refused apply may have changed managedFields, but nothing else.
			if diff := cmp.Diff(plainOf(was), plainOf(e.secretAsAdmin("db"))); diff != "" {
				t.Errorf("\n%s\nthe Secret: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// plainOf returns a Secret without its version and managedFields.
func plainOf(s *corev1.Secret) *corev1.Secret {
	if s == nil {
		return nil
	}
	s = s.DeepCopy()
	s.ResourceVersion, s.ManagedFields = "", nil
	return s
}

// secretAsAdmin is secret for a test whose Writer has no permissions.
func (e *env) secretAsAdmin(name string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{}
	err := api.Get(e.ctx, e.key(name), s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		e.Fatal(err)
	}
	return s
}

// TestAnswers checks answers that a test cannot get from a real API server, such as those of an admission webhook.
func TestAnswers(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		reason string
		answer error
		kind   string
		show   string
	}{
		"Internal":     {"A webhook may fail with any message.", kerrors.NewInternalError(errors.New(canary)), "other", "InternalError"},
		"Unauthorized": {"A webhook may refuse with any code.", kerrors.NewUnauthorized(canary), "other", "Unauthorized"},
		"Throttled":    {"A busy API server is asked again.", kerrors.NewTooManyRequests(canary, 1), "other", "TooManyRequests"},
		"Timeout":      {"A slow API server is asked again.", kerrors.NewServerTimeout(secrets, canary, 1), "other", "ServerTimeout"},
		"Teapot":       {"An unknown code has no reason.", kerrors.NewGenericServerResponse(418, "POST", secrets, "db", canary, 0, true), "other", "code 418"},
		"BadRequest":   {"A request that it cannot read is invalid.", kerrors.NewBadRequest(canary), "Invalid", "BadRequest"},
		"Forbidden":    {"A refusal may have other reasons than permissions.", kerrors.NewForbidden(secrets, "db", errors.New(canary)), "Forbidden", "admission policy"},
		"QuotaUnknown": {"A quota without a count yet refuses all writes.", kerrors.NewForbidden(secrets, "db", errors.New("status unknown for quota: "+canary)), "Forbidden", "ResourceQuota"},
		"Network":      {"A network error holds no value.", errors.New("connection refused"), "other", "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			e.writes(o.wants("db", "a", "1"))
			live := e.secret("db")
			w := target.NewWriter(e.intercepted(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.answer },
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.answer
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return tc.answer },
			}), nil)
			d := owned(o.wants("db", "a", canary), o.reference(true))
			_, created := w.Create(e.ctx, d)
			_, _, applied := w.Apply(e.ctx, live, d, target.Others{})
			_, owns := w.Own(e.ctx, live, d, target.Others{})
			for verb, err := range map[string]error{
				"Create": created, "Apply": applied, "Own": owns, "Release": w.Release(e.ctx, live, d), "Delete": w.Delete(e.ctx, live),
			} {
				kind, message := kindOf(err)
				if tc.kind == "other" && err != nil {
					kind = "other"
				}
				if kind != tc.kind || !strings.Contains(message, tc.show) {
					t.Errorf("\n%s\n%s: got %s: %s, want %s: …%s…", tc.reason, verb, kind, message, tc.kind, tc.show)
				}
				wantNoCanary(t, err)
			}
		})
	}
}

// quota forbids further Secrets in the namespace, and waits until that has an effect.
func (e *env) quota() {
	e.Helper()
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceSecrets: resource.MustParse("0")}},
	}
	e.create(q)
	e.eventually(func() string {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(q), q); err != nil {
			return err.Error()
		}
		if _, ok := q.Status.Used[corev1.ResourceSecrets]; !ok {
			return "the quota was not counted yet"
		}
		return ""
	})
	e.eventually(func() string {
		err := api.Create(e.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "probe"}}, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Sprintf("the quota has no effect yet: %v", err)
		}
		return ""
	})
}

// terminatingNamespace deletes the namespace, in which a finalizer delays the deletion.
func (e *env) terminatingNamespace() {
	e.Helper()
	e.terminating("held")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	if err := api.Delete(e.ctx, ns); err != nil {
		e.Fatal(err)
	}
	e.eventually(func() string {
		err := api.Create(e.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "probe"}}, client.DryRunAll)
		if !kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Sprintf("the namespace still accepts objects: %v", err)
		}
		return ""
	})
}

// unprivilegedClient returns a client of a new ServiceAccount without permissions.
func (e *env) unprivilegedClient() client.Client {
	e.Helper()
	raw, err := cluster.ServiceAccountKubeconfig(e.ctx, e.ns, "stranger")
	if err != nil {
		e.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		e.Fatal(err)
	}
	cfg.QPS = -1
	return e.clientOf(cfg)
}

// quotingPolicy refuses Secrets with a message that quotes their data, and waits until the policy has an effect.
func (e *env) quotingPolicy(reason metav1.StatusReason) {
	e.Helper()
	fail := admissionv1.Fail
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: e.ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.ns}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.OperationAll},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: "false", MessageExpression: "'the data is ' + string(object.data['a'])", Reason: &reason,
			}},
		},
	}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: e.ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	e.create(p)
	e.create(b)
	e.eventually(func() string {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "probe"}, Data: bytesOf("a", canary)}
		err := api.Create(e.ctx, s, client.DryRunAll)
		if err == nil || (!strings.Contains(err.Error(), canary) && !strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(canary)))) {
			return fmt.Sprintf("the policy does not quote the Secret yet: %v", err)
		}
		return ""
	})
}
