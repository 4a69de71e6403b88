package fanout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// wish returns the wanted child of a ClusterExternalSecret.
func wish(change ...func(*v1alpha1.ClusterExternalSecretSpec)) desired {
	p := &v1alpha1.ClusterExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "parent"}, Spec: v1alpha1.ClusterExternalSecretSpec{
		ExternalSecretSpec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "store"},
			Data:     []v1alpha1.DataEntry{{SecretKey: "password", RemoteRef: v1alpha1.RemoteRef{Key: "db"}}},
		},
		ExternalSecretMetadata: v1alpha1.TemplateMetadata{
			Labels: map[string]string{"team": "shop", "tier": "1"}, Annotations: map[string]string{"owner": "me"},
		},
	}}
	for _, f := range change {
		f(&p.Spec)
	}
	want := externalSecrets().wants(p)
	var err error
	if want.raw, err = runtime.DefaultUnstructuredConverter.ToUnstructured(want.spec); err != nil {
		panic(err) // The object is built above, so this cannot fail.
	}
	return want
}

// shaped returns a child after shape has set what a parent wants.
func shaped(t *testing.T, es *v1alpha1.ExternalSecret, want desired) *v1alpha1.ExternalSecret {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(es)
	if err != nil {
		t.Fatal(err)
	}
	full := &unstructured.Unstructured{Object: object}
	if err := shape(full, want); err != nil {
		t.Fatal(err)
	}
	k := externalSecrets()
	child, err := k.typed(full)
	if err != nil {
		t.Fatal(err)
	}
	return child.(*v1alpha1.ExternalSecret)
}

// later adds a field that only a later version knows.
func later(want desired, value string) desired {
	want.raw["later"] = value
	return want
}

// made returns a child as the API server returns it, with labels and annotations of other clients.
func made(t *testing.T, want desired, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	t.Helper()
	yes := true
	es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "child", Labels: map[string]string{"theirs": "1"}, Annotations: map[string]string{"theirs": "1"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"},
			{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterExternalSecret", Name: "db", UID: "parent", Controller: &yes},
		},
	}}
	es = shaped(t, es, want)
	for _, f := range change {
		f(es)
	}
	return es
}

func TestDigest(t *testing.T) {
	bare := func(s *v1alpha1.ClusterExternalSecretSpec) { s.ExternalSecretMetadata = v1alpha1.TemplateMetadata{} }
	cases := map[string]struct {
		reason string
		want   desired
		has    *v1alpha1.ExternalSecret
		inStep bool
	}{
		"Same": {"A new child is as wanted.", wish(), made(t, wish()), true},
		"Bare": {"A new child without labels and annotations is as wanted.", wish(bare), made(t, wish(bare)), true},
		"Empty": {
			"An empty list in the parent equals a missing one in the child.",
			wish(func(s *v1alpha1.ClusterExternalSecretSpec) {
				s.ExternalSecretSpec.DataFrom = []v1alpha1.DataFromEntry{}
			}), made(t, wish()), true,
		},
		"Later": {
			"A field that this version does not know counts.", later(wish(), "1"), made(t, wish()), false,
		},
		"LaterSame": {
			"An unknown field with the same value is as wanted.", later(wish(), "1"), made(t, later(wish(), "1")), true,
		},
		"LaterOther": {
			"An unknown field with another value is not as wanted.", later(wish(), "2"), made(t, later(wish(), "1")), false,
		},
		"Foreign": {
			"Labels and annotations of other clients do not count.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["more"], es.Annotations["more"] = "1", "1" }), true,
		},
		"Status": {
			"The status does not count.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Status.ObservedGeneration = 5 }), true,
		},
		"Spec": {
			"An edit of the spec counts.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }), false,
		},
		"LabelChanged": {
			"A changed label counts.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), false,
		},
		"LabelGone": {
			"A removed label counts.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Labels, "team") }), false,
		},
		"AnnotationGone": {
			"A removed annotation counts.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, "owner") }), false,
		},
		"NoteGone": {
			"A removed note counts.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, v1alpha1.FanOutAnnotation) }), false,
		},
		"NoteDamaged": {
			"A damaged note counts.", wish(bare),
			made(t, wish(bare), func(es *v1alpha1.ExternalSecret) { es.Annotations[v1alpha1.FanOutAnnotation] = "{" }), false,
		},
		"Wished": {"Labels that the parent no longer wants count.", wish(bare), made(t, wish()), false},
		"More":   {"New labels of the parent count.", wish(), made(t, wish(bare)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := digestOf(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if got := digest(tc.has, &tc.has.Spec) == d; got != tc.inStep {
				t.Errorf("\n%s\nin sync: %t, want %t", tc.reason, got, tc.inStep)
			}
			once, twice := &v1alpha1.ExternalSecret{}, &v1alpha1.ExternalSecret{}
			Reduce(tc.has, once)
			Reduce(once, twice) // An informer may transform twice.
			k := externalSecrets()
			if got := k.inStep(parent("parent", 1), twice, d); got != tc.inStep {
				t.Errorf("\n%s\nin sync, according to the reduced object: %t, want %t", tc.reason, got, tc.inStep)
			}
		})
	}
}

func TestReduce(t *testing.T) {
	now := metav1.Now()
	yes := true
	cases := map[string]struct {
		reason string
		from   *v1alpha1.ExternalSecret
		want   *v1alpha1.ExternalSecret
	}{
		"NoOwner": {
			"Nothing is kept of an object without a parent.",
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}, &v1alpha1.ExternalSecret{},
		},
		"OtherOwner": {
			"Nothing is kept of an object with an owner of another group.",
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "example.org/v1", Kind: "ClusterExternalSecret", Name: "db", UID: "u", Controller: &yes,
			}}}}, &v1alpha1.ExternalSecret{},
		},
		"Deleted": {
			"The owner, a digest and the deletionTimestamp of a child are kept.",
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.DeletionTimestamp = &now }),
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &now, Annotations: map[string]string{digestKey: mustDigest(t, wish())},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterExternalSecret", Name: "db", UID: "parent", Controller: &yes,
				}},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := &v1alpha1.ExternalSecret{}
			Reduce(tc.from, got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReduce(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func mustDigest(t *testing.T, want desired) string {
	t.Helper()
	d, err := digestOf(want)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestShape restores children from different states.
func TestShape(t *testing.T) {
	type metadata struct{ Labels, Annotations map[string]string }
	fewer := func(s *v1alpha1.ClusterExternalSecretSpec) {
		s.ExternalSecretMetadata = v1alpha1.TemplateMetadata{Labels: map[string]string{"tier": "2"}}
	}
	bare := func(s *v1alpha1.ClusterExternalSecretSpec) { s.ExternalSecretMetadata = v1alpha1.TemplateMetadata{} }
	note := func(names string) string {
		d, err := content{Spec: wish().raw}.digest()
		if err != nil {
			t.Fatal(err)
		}
		return `{"spec":"` + d + `"` + names + `}`
	}
	all := note(`,"labels":["team","tier"],"annotations":["owner"]`)
	cases := map[string]struct {
		reason string
		has    *v1alpha1.ExternalSecret
		wish   desired
		want   metadata
	}{
		"New": {
			"A new child gets the labels and annotations, and a note of their names.", &v1alpha1.ExternalSecret{}, wish(),
			metadata{map[string]string{"team": "shop", "tier": "1"}, map[string]string{"owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Foreign": {
			"Labels and annotations of other clients stay.", made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), wish(),
			metadata{map[string]string{"theirs": "1", "team": "shop", "tier": "1"}, map[string]string{"theirs": "1", "owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Less": {
			"Labels and annotations that are no longer wanted are removed.", made(t, wish()),
			wish(fewer),
			metadata{map[string]string{"theirs": "1", "tier": "2"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note(`,"labels":["tier"]`)}},
		},
		"Nothing": {
			"Without labels and annotations the note has no names.", made(t, wish()), wish(bare),
			metadata{map[string]string{"theirs": "1"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note("")}},
		},
		"Forged": {
			"A damaged note removes nothing.",
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Annotations[v1alpha1.FanOutAnnotation] = `["theirs"]` }), wish(),
			metadata{map[string]string{"theirs": "1", "team": "shop", "tier": "1"}, map[string]string{"theirs": "1", "owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.has.Spec.Suspend = true
			is := shaped(t, tc.has, tc.wish)
			if diff := cmp.Diff(tc.want, metadata{is.Labels, is.Annotations}); diff != "" {
				t.Errorf("\n%s\nshape(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.wish.spec, any(&is.Spec)); diff != "" {
				t.Errorf("\n%s\nspec: -want, +got:\n%s", tc.reason, diff)
			}
			if digest(is, &is.Spec) != mustDigest(t, tc.wish) {
				t.Error("the restored child is not in sync")
			}
		})
	}
}
