package fanout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// desiredWith returns the wanted child of a ClusterExternalSecret.
func desiredWith(change ...func(*v1alpha1.ClusterExternalSecretSpec)) desired {
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
		inSync bool
	}{
		"Same": {"A new child is as wanted.", desiredWith(), made(t, desiredWith()), true},
		"Bare": {"A new child without labels and annotations is as wanted.", desiredWith(bare), made(t, desiredWith(bare)), true},
		"Empty": {
			"An empty list in the parent equals a missing one in the child.",
			desiredWith(func(s *v1alpha1.ClusterExternalSecretSpec) {
				s.ExternalSecretSpec.DataFrom = []v1alpha1.DataFromEntry{}
			}), made(t, desiredWith()), true,
		},
		"Later": {
			"A field that this version does not know counts.", later(desiredWith(), "1"), made(t, desiredWith()), false,
		},
		"LaterSame": {
			"An unknown field with the same value is as wanted.", later(desiredWith(), "1"), made(t, later(desiredWith(), "1")), true,
		},
		"LaterOther": {
			"An unknown field with another value is not as wanted.", later(desiredWith(), "2"), made(t, later(desiredWith(), "1")), false,
		},
		"Foreign": {
			"Labels and annotations of other clients do not count.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Labels["more"], es.Annotations["more"] = "1", "1" }), true,
		},
		"Status": {
			"The status does not count.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Status.ObservedGeneration = 5 }), true,
		},
		"Spec": {
			"An edit of the spec counts.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }), false,
		},
		"LabelChanged": {
			"A changed label counts.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), false,
		},
		"LabelGone": {
			"A removed label counts.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { delete(es.Labels, "team") }), false,
		},
		"AnnotationGone": {
			"A removed annotation counts.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, "owner") }), false,
		},
		"NoteGone": {
			"A removed note counts.", desiredWith(),
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, v1alpha1.FanOutAnnotation) }), false,
		},
		"NoteDamaged": {
			"A damaged note counts.", desiredWith(bare),
			made(t, desiredWith(bare), func(es *v1alpha1.ExternalSecret) { es.Annotations[v1alpha1.FanOutAnnotation] = "{" }), false,
		},
		"Wished": {"Labels that the parent no longer wants count.", desiredWith(bare), made(t, desiredWith()), false},
		"More":   {"New labels of the parent count.", desiredWith(), made(t, desiredWith(bare)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := digestOf(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if got := digest(tc.has, &tc.has.Spec) == d; got != tc.inSync {
				t.Errorf("\n%s\nin sync: %t, want %t", tc.reason, got, tc.inSync)
			}
			once, twice := &v1alpha1.ExternalSecret{}, &v1alpha1.ExternalSecret{}
			Reduce(tc.has, once)
			Reduce(once, twice) // An informer may transform twice.
			k := externalSecrets()
			if got := k.inSync(parent("parent", 1), twice, d); got != tc.inSync {
				t.Errorf("\n%s\nin sync, according to the reduced object: %t, want %t", tc.reason, got, tc.inSync)
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
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.DeletionTimestamp = &now }),
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &now, Annotations: map[string]string{digestKey: mustDigest(t, desiredWith())},
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
		d, err := contentDigest(desiredWith().raw, nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		return `{"spec":"` + d + `"` + names + `}`
	}
	all := note(`,"labels":["team","tier"],"annotations":["owner"]`)
	cases := map[string]struct {
		reason string
		has    *v1alpha1.ExternalSecret
		wanted desired
		want   metadata
	}{
		"New": {
			"A new child gets the labels and annotations, and a note of their names.", &v1alpha1.ExternalSecret{}, desiredWith(),
			metadata{map[string]string{"team": "shop", "tier": "1"}, map[string]string{"owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Foreign": {
			"Labels and annotations of other clients stay.", made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), desiredWith(),
			metadata{map[string]string{"theirs": "1", "team": "shop", "tier": "1"}, map[string]string{"theirs": "1", "owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Less": {
			"Labels and annotations that are no longer wanted are removed.", made(t, desiredWith()),
			desiredWith(fewer),
			metadata{map[string]string{"theirs": "1", "tier": "2"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note(`,"labels":["tier"]`)}},
		},
		"Nothing": {
			"Without labels and annotations the note has no names.", made(t, desiredWith()), desiredWith(bare),
			metadata{map[string]string{"theirs": "1"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note("")}},
		},
		"Forged": {
			"A damaged note removes nothing.",
			made(t, desiredWith(), func(es *v1alpha1.ExternalSecret) { es.Annotations[v1alpha1.FanOutAnnotation] = `["theirs"]` }), desiredWith(),
			metadata{map[string]string{"theirs": "1", "team": "shop", "tier": "1"}, map[string]string{"theirs": "1", "owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.has.Spec.Suspend = true
			is := shaped(t, tc.has, tc.wanted)
			if diff := cmp.Diff(tc.want, metadata{is.Labels, is.Annotations}); diff != "" {
				t.Errorf("\n%s\nshape(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.wanted.spec, any(&is.Spec)); diff != "" {
				t.Errorf("\n%s\nspec: -want, +got:\n%s", tc.reason, diff)
			}
			if digest(is, &is.Spec) != mustDigest(t, tc.wanted) {
				t.Error("the restored child is not in sync")
			}
		})
	}
}
