package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

// pw names the Password that scenarios use.
var pw = v1alpha1.StoreRef{Kind: "Password", Name: "pw"}

// passwords creates a namespace with the Password, and returns its history.
func passwords(t *testing.T, ns string, change ...func(*passwordv1.Password)) *history {
	t.Helper()
	must(t, shared.CreateNamespace(t.Context(), ns))
	p := &passwordv1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pw.Name}}
	for _, f := range change {
		f(p)
	}
	must(t, shared.Admin.Create(t.Context(), p))
	return record(t, ns)
}

// generated returns an object that reads the Password.
func generated(ns, name string, change ...specChange) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &pw}}}
	for _, f := range change {
		f(&es.Spec)
	}
	return es
}

// shaped adds a template with the password.
func shaped(es *v1alpha1.ExternalSecretSpec) {
	es.Target.Template = &v1alpha1.Template{Data: map[string]string{"password": "{{ .password }}", "url": "db://app:{{ .password | urlquery }}@db"}}
}

// salted adds a template whose result differs with each rendering.
func salted(es *v1alpha1.ExternalSecretSpec) {
	shaped(es)
	es.Target.Template.Data["salt"] = "{{ randAlphaNum 16 }} {{ uuidv4 }}"
}

func partName(name string) string { return generatedPasswords.PartName("ExternalSecret", name) }

// delivered waits until an object is in sync with its part, and the part has both owners.
func delivered(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, func() string {
		es := &v1alpha1.ExternalSecret{}
		must(t, shared.Admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, es))
		kept, target := getSecret(t, ns, partName(name)), getSecret(t, ns, name)
		if kept == nil || target == nil {
			return name + " has no part or no Secret"
		}
		rec, _ := inspect.RecordOf(kept.Annotations)
		e := rec.Entries[inspect.GeneratorID(pw)]
		ready := meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) && es.Status.ObservedGeneration == es.Generation
		reported := slices.ContainsFunc(es.Status.Parts, func(s v1alpha1.PartStatus) bool { return s.UID == kept.UID && s.Message == "" })
		held := slices.ContainsFunc(es.Status.Sources, func(s v1alpha1.SourceStatus) bool { return s.Version == e.Version })
		owned := slices.ContainsFunc(kept.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == target.UID })
		asked := e.Request == es.Annotations[v1alpha1.RefreshRequestAnnotation]
		if !ready || !reported || !held || !owned || !asked || rec.UID != es.UID {
			return fmt.Sprintf("%s: ready %v, reported %v, stored %v, owned %v, requested %v: %+v", name, ready, reported, held, owned, asked, es.Status)
		}
		return ""
	})
}

// waitUntilHandled waits until all previous changes of objects have been handled: it changes each once more, and waits
// until it is in sync.
func waitUntilHandled(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		es := &v1alpha1.ExternalSecret{}
		key := types.NamespacedName{Namespace: ns, Name: name}
		must(t, shared.Admin.Get(t.Context(), key, es))
		before := es.Status.ObservedMetadataHash
		patch := fmt.Sprintf(`{"metadata":{"labels":{"settle":"%d"}}}`, time.Now().UnixNano())
		must(t, shared.Admin.Patch(t.Context(), es, client.RawPatch(types.MergePatchType, []byte(patch))))
		eventually(t, func() string {
			must(t, shared.Admin.Get(t.Context(), key, es))
			if is := es.Status.ObservedMetadataHash; is == "" || is == before {
				return name + ": the label has not been handled"
			}
			return ""
		})
		delivered(t, ns, name)
	}
}

// valuesOf returns the passwords in the data of a part, if there are any.
func valuesOf(data map[string]string) inspect.Generated {
	v, _ := inspect.GeneratedValues(map[string][]byte{inspect.GeneratorID(pw): []byte(data[inspect.GeneratorID(pw)])}, inspect.GeneratorID(pw))
	return v
}

// generatedPasswords is generator-password in its role as a contributor to other modules' objects.
var generatedPasswords = inspect.Contributor{Group: passwordv1.Group, Purpose: v1alpha1.PartGenerated}

type specChange func(*v1alpha1.ExternalSecretSpec)
