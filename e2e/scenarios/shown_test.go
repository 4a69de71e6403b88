package scenarios

import (
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// withTemplate renders one key with a template.
func withTemplate(text string) specChange {
	return func(es *v1alpha1.ExternalSecretSpec) {
		es.Target.Template = &v1alpha1.Template{Data: map[string]string{"password": text}}
	}
}

// fails are objects that cannot be synced, each in a way in which an error could contain the value.
var fails = map[string]specChange{
	"fail":  withTemplate(`{{ fail .password }}`),
	"field": withTemplate(`{{ .password.field }}`),
	"json":  withTemplate(`{{ (.password | fromJson).field }}`),
	"index": withTemplate(`{{ slice .password 9999 }}`),
	"regex": withTemplate(`{{ mustRegexFind (printf "(%s" .password) "x" }}`),
	"url":   withTemplate(`{{ urlParse (printf ":%s" .password) }}`),
	"label": func(es *v1alpha1.ExternalSecretSpec) { // The value is too long for a label.
		es.Target.Template = &v1alpha1.Template{Metadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"example.com/x": "{{ .password }}"}}}
	},
	"key": func(es *v1alpha1.ExternalSecretSpec) { // The value is too long for a key.
		text := "{{ .password }}: x"
		es.Target.Template = &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{{Literal: &text}}}
	},
	"map": func(es *v1alpha1.ExternalSecretSpec) {
		text := "{{ .password }}"
		es.Target.Template = &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{{Literal: &text}}}
	},
	"registry": func(es *v1alpha1.ExternalSecretSpec) { // The API server validates the values of these types.
		es.Target.Template = &v1alpha1.Template{Type: string(corev1.SecretTypeDockerConfigJson), Data: map[string]string{corev1.DockerConfigJsonKey: "{{ .password }}"}}
	},
	"none": func(es *v1alpha1.ExternalSecretSpec) {
		es.DataFrom[0].Rewrite = []v1alpha1.Rewrite{{Transform: &v1alpha1.RewriteTransform{Template: "{{ fail .value }}"}}}
	},
}

// TestNothingShown generates, rotates, stores, shapes and pushes passwords, and makes objects fail with them.
// It then searches for every password in everything that the two processes print and write, except in the data
// of Secrets.
func TestNothingShown(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "shown")
	h := passwords(t, ns, func(p *passwordv1.Password) {
		none := int32(0)
		p.Spec.Length, p.Spec.Symbols, p.Spec.AllowRepeat, p.Spec.KeepPrevious = 300, &none, true, true
	})
	processes := map[string]*stack.Process{}
	run := func(which string) {
		for _, module := range []string{stack.ProviderAWS, stack.GeneratorPassword} {
			processes[module+" "+which] = startModule(t, module, ns, "--audit-log")
		}
	}
	run("first")
	produce(t, ns)
	for _, p := range processes {
		must(t, p.Kill())
	}
	run("second")
	refused := shared.AWS.Inject(emulator.Fault{Key: "shown/*", Code: "AccessDeniedException", Message: "not authorized"})
	push(t, ns)
	for name := range fails {
		wantFailed(t, &v1alpha1.ExternalSecret{}, ns, name)
	}
	wantFailed(t, &v1alpha1.PushSecret{}, ns, "values")
	wantFailed(t, &v1alpha1.PushSecret{}, ns, "secret")
	wantFailed(t, &v1alpha1.PushSecret{}, ns, "broken")
	refused()
	waitUntilHandled(t, ns, "plain", "salted")
	wantPushed(t, ns, "values")

	password := &passwordv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pw.Name}}
	set := func(spec string) {
		must(t, shared.Admin.Patch(t.Context(), password, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
	}
	set(`{"length":12,"digits":12}`) // This has too few bits.
	wantFailed(t, &passwordv1.Password{}, ns, pw.Name)
	refresh(t, ns, "plain", "1")
	wantReady(t, ns, "plain", v1alpha1.ReasonStoreNotReady)
	set(`{"length":301,"digits":null}`)
	waitUntilHandled(t, ns, "plain", "salted")
	wantPushed(t, ns, "values")
	must(t, shared.Admin.Delete(t.Context(), getSecret(t, ns, "plain")))
	waitUntilHandled(t, ns, "plain")

	search(t, ns, processes, h.needles(), "plain", partName("plain"))
	audited := regexp.MustCompile(`"logger":"audit","action":"added","key":"[^"]+","namespace":"` + ns + `","secret":"plain"`)
	if !slices.ContainsFunc(slices.Collect(maps.Values(processes)), func(p *stack.Process) bool { return audited.MatchString(p.Log()) }) {
		t.Error("no operator logs which keys it has added")
	}
}

// search searches for values in everything that is visible. Secrets that contain some prove that the search
// works.
func search(t *testing.T, ns string, processes map[string]*stack.Process, needles []string, holders ...string) {
	t.Helper()
	found := func(text string) bool {
		return slices.ContainsFunc(needles, func(n string) bool { return strings.Contains(text, n) })
	}
	for where, text := range shown(t, ns, processes) {
		if text == "" {
			t.Errorf("%s is empty, so it proves nothing", where)
		}
		if found(text) {
			t.Errorf("%s: shows a value", where)
		}
	}
	for _, name := range holders {
		text, err := yaml.Marshal(getSecret(t, ns, name))
		must(t, err)
		if !found(string(text)) {
			t.Errorf("Secret %s: the search does not find what it holds", name)
		}
	}
}

// produce creates the objects that succeed and those that fail.
func produce(t *testing.T, ns string) {
	t.Helper()
	all := maps.Clone(fails)
	all["plain"], all["salted"] = func(*v1alpha1.ExternalSecretSpec) {}, salted
	for name, change := range all {
		must(t, shared.Admin.Create(t.Context(), generated(ns, name, change)))
	}
	waitUntilHandled(t, ns, "plain", "salted")
}

// push creates the PushSecrets: of a generator, of a generated Secret, and one that never succeeds.
func push(t *testing.T, ns string) {
	t.Helper()
	for name, change := range map[string]func(*v1alpha1.PushSecretSpec){
		"values": func(ps *v1alpha1.PushSecretSpec) { ps.Selector.GeneratorRef = &pw },
		"secret": func(ps *v1alpha1.PushSecretSpec) { ps.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "plain"} },
		"broken": func(ps *v1alpha1.PushSecretSpec) {
			ps.Selector.GeneratorRef = &pw
			ps.Template = &v1alpha1.Template{Data: map[string]string{"password": "{{ fail .password }}"}}
		},
	} {
		ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: "store"}}
		ps.Spec.Data = []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "password", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "shown/" + name}}}}
		change(&ps.Spec)
		must(t, shared.Admin.Create(t.Context(), ps))
	}
}

// wantFailed waits until an object reports that it is not ready.
func wantFailed(t *testing.T, o client.Object, ns, name string) {
	t.Helper()
	eventually(t, func() string {
		must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o))
		var all []metav1.Condition
		switch o := o.(type) {
		case *v1alpha1.ExternalSecret:
			all = o.Status.Conditions
		case *v1alpha1.PushSecret:
			all = o.Status.Conditions
		case *passwordv1.Password:
			all = o.Status.Conditions
		}
		c := meta.FindStatusCondition(all, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Sprintf("%T %s is %+v", o, name, c)
		}
		if len(c.Message) < 20 {
			t.Errorf("%T %s does not report the error: %+v", o, name, c)
		}
		return ""
	})
}

// needles returns a piece of each value that a Secret ever had, as text and in base64.
func (h *history) needles() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	values := map[string]bool{}
	for _, versions := range h.secrets {
		for _, v := range versions {
			data := v.Data
			if kept := valuesOf(data); len(kept.Current) > 0 {
				data = map[string]string{}
				for k, value := range kept.All() {
					data[k] = string(value)
				}
			}
			for _, value := range data {
				values[value] = true
			}
		}
	}
	return needlesOf(maps.Keys(values))
}

// needlesOf does the same for values of any origin.
func needlesOf(values iter.Seq[string]) []string {
	var all []string
	for value := range values {
		if len(value) < 2*piece {
			continue // These are the credentials of the store, which are common words.
		}
		all = append(all, value[:piece])
		for _, once := range encodings(value[:piece]) {
			all = append(all, once)
			all = append(all, encodings(once[:piece])...) // In a part all data is encoded once more.
		}
	}
	return all
}

// piece is the length of a text that cannot occur by chance. In base64 it contains complete groups wherever
// they start.
const piece = 12

// encodings returns the visible part of a text in base64, for each position at which a group can start.
func encodings(text string) []string {
	var all []string
	for i := range 3 {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(text[i:i+piece-3])))
	}
	return all
}

// shown returns everything in a namespace that is visible without a permission to read Secrets.
func shown(t *testing.T, ns string, processes map[string]*stack.Process) map[string]string {
	t.Helper()
	audit, err := os.ReadFile(shared.AuditLog())
	must(t, err)
	all := map[string]string{"audit log": string(audit)}
	for name, p := range processes {
		all["log of "+name] = p.Log()
		if !strings.HasSuffix(name, "first") { // That process was killed.
			page, err := p.Metrics()
			must(t, err)
			all["metrics of "+name] = page
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("ExternalSecretList"), v1alpha1.GroupVersion.WithKind("PushSecretList"),
		passwordv1.GroupVersion.WithKind("PasswordList"), awsv1.GroupVersion.WithKind("AWSSecretsManagerList"),
		eventsv1.SchemeGroupVersion.WithKind("EventList"), coordinationv1.SchemeGroupVersion.WithKind("LeaseList"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		must(t, shared.Admin.List(t.Context(), list, client.InNamespace(ns)))
		text, err := yaml.Marshal(list.Items)
		must(t, err)
		all[gvk.Kind] = string(text)
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	must(t, shared.Admin.List(t.Context(), secrets, client.InNamespace(ns)))
	text, err := yaml.Marshal(secrets.Items)
	must(t, err)
	all["metadata of Secrets"] = string(text)
	return all
}
