package fanout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// wish is what a ClusterExternalSecret wants.
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
		panic(err) // It is made here.
	}
	return want
}

// shaped is a child after it was given what a parent wants.
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

// later gives a wish a field that only a later version knows.
func later(want desired, value string) desired {
	want.raw["later"] = value
	return want
}

// made is a child as the API server gives it back, with what others put on it.
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
		"Same": {"What was made is as wanted.", wish(), made(t, wish()), true},
		"Bare": {"Also without labels and annotations.", wish(bare), made(t, wish(bare)), true},
		"Empty": {
			"An empty list of the parent is none in the child.",
			wish(func(s *v1alpha1.ClusterExternalSecretSpec) {
				s.ExternalSecretSpec.DataFrom = []v1alpha1.DataFromEntry{}
			}), made(t, wish()), true,
		},
		"Later": {
			"A field that this version does not know counts.", later(wish(), "1"), made(t, wish()), false,
		},
		"LaterSame": {
			"It may be the same.", later(wish(), "1"), made(t, later(wish(), "1")), true,
		},
		"LaterOther": {
			"Or have changed.", later(wish(), "2"), made(t, later(wish(), "1")), false,
		},
		"Foreign": {
			"What others put on it does not count.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["more"], es.Annotations["more"] = "1", "1" }), true,
		},
		"Status": {
			"Nor does its status.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Status.ObservedGeneration = 5 }), true,
		},
		"Spec": {
			"An edit of the spec does.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true }), false,
		},
		"LabelChanged": {
			"A label that was given must keep its value.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), false,
		},
		"LabelGone": {
			"And be there.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Labels, "team") }), false,
		},
		"AnnotationGone": {
			"So must an annotation.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, "owner") }), false,
		},
		"NoteGone": {
			"Without the note nobody knows what was given.", wish(),
			made(t, wish(), func(es *v1alpha1.ExternalSecret) { delete(es.Annotations, v1alpha1.FanOutAnnotation) }), false,
		},
		"NoteDamaged": {
			"Nor with a damaged one.", wish(bare),
			made(t, wish(bare), func(es *v1alpha1.ExternalSecret) { es.Annotations[v1alpha1.FanOutAnnotation] = "{" }), false,
		},
		"Wished": {"A new wish of the parent does.", wish(bare), made(t, wish()), false},
		"More":   {"In either direction.", wish(), made(t, wish(bare)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := digestOf(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if got := digest(tc.has, &tc.has.Spec) == d; got != tc.inStep {
				t.Errorf("\n%s\nin step: %t, want %t", tc.reason, got, tc.inStep)
			}
			once, twice := &v1alpha1.ExternalSecret{}, &v1alpha1.ExternalSecret{}
			Reduce(tc.has, once)
			Reduce(once, twice) // An informer may transform twice.
			k := externalSecrets()
			if got := k.inStep(parent("parent", 1), twice, d); got != tc.inStep {
				t.Errorf("\n%s\nin step, as seen of the reduced object: %t, want %t", tc.reason, got, tc.inStep)
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
			"An object that somebody else made costs nothing more.",
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}, &v1alpha1.ExternalSecret{},
		},
		"OtherOwner": {
			"Nor does that of another Kind.",
			&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "example.org/v1", Kind: "ClusterExternalSecret", Name: "db", UID: "u", Controller: &yes,
			}}}}, &v1alpha1.ExternalSecret{},
		},
		"Deleted": {
			"Of a child its owner stays, a digest, and that it is on its way out.",
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

// TestShape puts children right, from whatever they had become.
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
			"A new child gets what is given, and a note of that.", &v1alpha1.ExternalSecret{}, wish(),
			metadata{map[string]string{"team": "shop", "tier": "1"}, map[string]string{"owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Foreign": {
			"What others put on it stays.", made(t, wish(), func(es *v1alpha1.ExternalSecret) { es.Labels["team"] = "bank" }), wish(),
			metadata{map[string]string{"theirs": "1", "team": "shop", "tier": "1"}, map[string]string{"theirs": "1", "owner": "me", v1alpha1.FanOutAnnotation: all}},
		},
		"Less": {
			"What is not wanted any more goes.", made(t, wish()),
			wish(fewer),
			metadata{map[string]string{"theirs": "1", "tier": "2"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note(`,"labels":["tier"]`)}},
		},
		"Nothing": {
			"And with the last of it the names in the note.", made(t, wish()), wish(bare),
			metadata{map[string]string{"theirs": "1"}, map[string]string{"theirs": "1", v1alpha1.FanOutAnnotation: note("")}},
		},
		"Forged": {
			"A note that somebody damaged takes nothing away.",
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
				t.Error("what was put right is not in step")
			}
		})
	}
}
