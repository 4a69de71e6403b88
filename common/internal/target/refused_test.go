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

// kindOf names the kind of an error, and its message where a person will read it.
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
	// before makes what is refused; the Writer of e may be replaced.
	before func(e *env, o object)
	// write returns what is wanted.
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
			kind: "Invalid", fix: `has type "Opaque" and cannot get type "kubernetes.io/basic-auth"; delete the Secret`,
		},
		"ImmutableOtherValue": {
			reason: "An immutable Secret keeps its values.", before: immutable,
			want: func(o object) target.Desired { return o.wants("db", "a", canary, "b", canary) },
			kind: "Invalid", fix: "immutable; delete it",
		},
		"ImmutableMoreKeys": {
			reason: "And gets no further key.", before: immutable,
			want: func(o object) target.Desired { return o.wants("db", "a", "1", "b", canary, "c", canary) },
			kind: "Invalid", fix: "immutable; delete it",
		},
		"ImmutableFewerKeys": {
			reason: "And loses none.", before: immutable,
			want: func(o object) target.Desired { return o.wants("db", "b", canary) },
			kind: "Invalid", fix: "immutable; delete it",
		},
		"TooBigToCreate": {
			reason: "A Secret holds 1 MiB.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a", big) },
			kind: "Invalid", fix: "1048576; ask for fewer or smaller keys",
		},
		"TooBigToApply": {
			reason: "However it is written.", before: ours,
			want: func(o object) target.Desired { return o.wants("db", "a", big) },
			kind: "Invalid", fix: "1048576; ask for fewer or smaller keys",
		},
		"TooBigTogether": {
			reason: "With the keys of others.",
			before: func(e *env, _ object) { e.posted("db", "kubectl", "theirs", big[:1<<19]) },
			want:   func(o object) target.Desired { return o.wants("db", "a", big[:1<<19+1]) },
			kind:   "Invalid", fix: "would hold 1048577 bytes",
		},
		"FarTooBig": {
			reason: "The API server would not even read it.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a", strings.Repeat(big, 5)) },
			kind: "Invalid", fix: "ask for fewer or smaller keys",
		},
		"BadKeyCreate": {
			reason: "A key has a narrow alphabet.", before: func(*env, object) {},
			want: func(o object) target.Desired { return o.wants("db", "a b", canary) },
			kind: "Invalid", fix: "data[a b]",
		},
		"BadKeyApply": {
			reason: "However it is written.", before: ours,
			want: func(o object) target.Desired { return o.wants("db", "a/b", canary) },
			kind: "Invalid", fix: "data[a/b]",
		},
		"BadContent": {
			reason: "Some types ask for certain keys; the message names them and nothing else.", before: func(*env, object) {},
			want: func(o object) target.Desired {
				d := o.wants("db", ".dockerconfigjson", canary)
				d.Type = corev1.SecretTypeDockerConfigJson
				return d
			},
			kind: "Invalid", fix: "data[.dockerconfigjson]",
		},
		"Quota": {
			reason: "A quota is no defect of the object.", before: func(e *env, _ object) { e.quota() }, want: plain,
			kind: "Forbidden", fix: "ResourceQuota of the namespace allows no further Secret; raise it",
		},
		"NamespaceTerminating": {
			reason: "In a namespace that goes nothing can be created, and nobody needs to know.",
			before: func(e *env, _ object) { e.terminatingNamespace() }, want: plain,
			kind: "NamespaceTerminating",
		},
		"MayNotCreate": {
			reason: "Without the right it is forbidden.",
			before: func(e *env, _ object) { e.w = target.NewWriter(e.stranger()) }, want: plain,
			kind: "Forbidden", fix: "may not write Secrets",
		},
		"MayNotApply": {
			reason: "However it is written.",
			before: func(e *env, o object) { ours(e, o); e.w = target.NewWriter(e.stranger()) }, want: plain,
			kind: "Forbidden", fix: "may not write Secrets",
		},
		"MayNotOwn": {
			reason: "Also of the owner alone.",
			before: func(e *env, o object) { ours(e, o); e.w = target.NewWriter(e.stranger()) }, want: plain, own: true,
			kind: "Forbidden", fix: "may not write Secrets",
		},
		"SecondController": {
			reason: "Two controllers cannot own one Secret.",
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
			reason: "An admission policy may quote the Secret in its message; we do not.",
			before: func(e *env, _ object) { e.tellTalePolicy(reason) }, want: plain,
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
				_, err = e.w.Own(e.ctx, was, owned(tc.want(o), o.reference(true)), target.Contest{})
			default:
				_, _, err = e.w.Apply(e.ctx, was, tc.want(o), target.Contest{})
			}
			kind, message := kindOf(err)
			if kind != tc.kind || !strings.Contains(message, tc.fix) {
				t.Errorf("\n%s\ngot %s: %.300s\nwant %s: …%s…", tc.reason, kind, message, tc.kind, tc.fix)
			}
			wantNoCanary(t, err)
			// The fold before an apply that is refused may have moved ownership, nothing else.
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

// secretAsAdmin is secret where the Writer has no rights.
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

// Answers that no test can get from an API server at will, such as those of an admission webhook.
func TestAnswers(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		reason string
		answer error
		kind   string
		show   string
	}{
		"Internal":     {"A webhook may fail with any message.", kerrors.NewInternalError(errors.New(canary)), "other", "InternalError"},
		"Unauthorized": {"Or refuse with any code.", kerrors.NewUnauthorized(canary), "other", "Unauthorized"},
		"Throttled":    {"A busy API server is asked again.", kerrors.NewTooManyRequests(canary, 1), "other", "TooManyRequests"},
		"Timeout":      {"So is a slow one.", kerrors.NewServerTimeout(secrets, canary, 1), "other", "ServerTimeout"},
		"Teapot":       {"An unknown code has no reason.", kerrors.NewGenericServerResponse(418, "POST", secrets, "db", canary, 0, true), "other", "code 418"},
		"BadRequest":   {"What it cannot read is invalid.", kerrors.NewBadRequest(canary), "Invalid", "BadRequest"},
		"Forbidden":    {"A refusal need not be about rights.", kerrors.NewForbidden(secrets, "db", errors.New(canary)), "Forbidden", "admission policy"},
		"QuotaUnknown": {"A quota that was not counted yet holds everything back.", kerrors.NewForbidden(secrets, "db", errors.New("status unknown for quota: "+canary)), "Forbidden", "ResourceQuota"},
		"Network":      {"What the API server did not say holds no value.", errors.New("connection refused"), "other", "connection refused"},
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
			}))
			d := owned(o.wants("db", "a", canary), o.reference(true))
			_, created := w.Create(e.ctx, d)
			_, _, applied := w.Apply(e.ctx, live, d, target.Contest{})
			_, owns := w.Own(e.ctx, live, d, target.Contest{})
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

// quota lets no further Secret into the namespace, and waits until that is in force.
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
			return fmt.Sprintf("the quota is not in force: %v", err)
		}
		return ""
	})
}

// terminatingNamespace deletes the namespace, which a finalizer in it holds up.
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
			return fmt.Sprintf("the namespace still takes objects: %v", err)
		}
		return ""
	})
}

// stranger returns a client with the rights of a fresh ServiceAccount: none.
func (e *env) stranger() client.Client {
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

// tellTalePolicy refuses Secrets with a message that quotes their data, and waits until it is in
// force.
func (e *env) tellTalePolicy(reason metav1.StatusReason) {
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
