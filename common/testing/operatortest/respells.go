package operatortest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Spellings are several keys and properties for one place in a store.
type Spellings struct {
	// Keys returns all keys of the secret with a name and the ID that the status records. Unset: only the name.
	Keys func(name, id string) []string
	// Properties are spellings of one property; the empty one is the whole secret. The first one creates it.
	Properties []string
}

// Respells pushes a value, and then changes only the spelling of its key and property, the policies, the store and the object, in
// random order. Each comparison must find the same version of the same secret, owned by the object that pushes it. stores lead to one place.
func (s *Suite) Respells(t *testing.T, namespace string, stores []provider.Object, places map[string]Spellings) {
	t.Helper()
	c := s.For(t).In(namespace)
	c.Source("respelled", map[string]string{"tls.crt": "one"})
	for _, o := range stores {
		c.Create(o)
	}
	for name, at := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &respelled{Client: s.For(t).In(namespace), stores: stores, at: at, name: name, random: rand.New(rand.NewPCG(1, uint64(len(name))))}
			r.keys = []string{name}
			r.ps = r.object(0)
			r.store = stores[0]
			r.respell(&r.ps.Spec, name, at.Properties[0])
			r.Create(r.ps)
			r.compared(false)
			if at.Keys != nil {
				r.keys = at.Keys(name, r.want.ID)
			}
			for range respellings {
				r.step()
			}
		})
	}
}

// respelled is an object whose spec changes.
type respelled struct {
	*Client
	stores []provider.Object
	at     Spellings
	name   string
	random *rand.Rand

	keys  []string
	ps    *v1alpha1.PushSecret
	store provider.Object
	steps int
	want  v1alpha1.PushEntryStatus
}

func (r *respelled) object(n int) *v1alpha1.PushSecret {
	return &v1alpha1.PushSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.NS, Name: fmt.Sprintf("%s-%d", r.name, n)},
		Spec: v1alpha1.PushSecretSpec{
			Selector: v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "respelled"}}, DeletionPolicy: v1alpha1.PushDeletionDelete,
		},
	}
}

func pick[T any](r *respelled, of []T) T { return of[r.random.IntN(len(of))] }

// respell makes a spec push to a key and a property through the present store.
func (r *respelled) respell(spec *v1alpha1.PushSecretSpec, key, property string) {
	spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: r.Kind(r.store), Name: r.store.GetName()}}
	spec.DataTo, spec.Data = nil, []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "tls.crt", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: key, Property: property}}}}
	if property == `tls\.crt` && r.random.IntN(2) == 0 {
		spec.Data, spec.DataTo = nil, []v1alpha1.PushDataTo{{RemoteKey: key}}
	}
}

// step changes something that must change nothing at the provider.
func (r *respelled) step() {
	r.Helper()
	r.steps++
	if r.random.IntN(8) == 0 {
		r.replace()
		return
	}
	key, property := pick(r, r.keys), pick(r, r.at.Properties)
	if property == "" && r.random.IntN(4) == 0 { // The new store does not know who created a property.
		r.store = pick(r, r.stores)
	}
	r.Update(r.ps, func() {
		r.respell(&r.ps.Spec, key, property)
		r.ps.Spec.UpdatePolicy = pick(r, []v1alpha1.PushUpdatePolicy{"", v1alpha1.UpdateReplace, v1alpha1.UpdateIfNotExists})
		r.ps.Spec.AdoptionPolicy = pick(r, []v1alpha1.PushAdoptionPolicy{"", v1alpha1.AdoptionAdopt, v1alpha1.AdoptionOwn, v1alpha1.AdoptionRefuse})
	})
	r.compared(true)
}

// replace lets another object push the same, and deletes the first one.
func (r *respelled) replace() {
	r.Helper()
	former := r.ps
	r.ps = r.object(r.steps)
	r.respell(&r.ps.Spec, pick(r, r.keys), pick(r, r.at.Properties))
	r.Create(r.ps)
	r.compared(false)
	r.Delete(former)
	r.Eventually(func() string {
		if err := r.API.Get(r.Ctx, client.ObjectKeyFromObject(former), former); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("step %d: the former object still exists: %v, %+v", r.steps, err, former.Status.Conditions)
		}
		return ""
	})
	r.compared(true)
}

// compared has the store compared with the Secret, and checks what the status records.
func (r *respelled) compared(owned bool) {
	r.Helper()
	request := fmt.Sprint(r.steps)
	r.Eventually(func() string {
		r.Update(r.ps, func() {
			if r.ps.Annotations == nil {
				r.ps.Annotations = map[string]string{}
			}
			r.ps.Annotations[v1alpha1.RefreshRequestAnnotation] = request
		})
		i := slices.IndexFunc(r.ps.Status.Stores, func(s v1alpha1.PushStoreStatus) bool { return s.Name == r.store.GetName() && s.Kind == r.Kind(r.store) })
		if i < 0 || r.ps.Status.Stores[i].ObservedGeneration != r.ps.Generation || r.ps.Status.Stores[i].ObservedRefreshRequest != request {
			return fmt.Sprintf("the store was not compared: %+v", r.ps.Status)
		}
		entries := r.ps.Status.Stores[i].Entries
		if len(entries) != 1 {
			return fmt.Sprintf("step %d: entries %+v, want one", r.steps, entries)
		}
		if is := entries[0]; r.want.ID == "" {
			r.want = is
		} else if is.ID != r.want.ID || is.Version != r.want.Version {
			r.Fatalf("step %d, %+v: the secret was written: version %q of %q, then %q of %q", r.steps, r.ps.Spec, r.want.Version, r.want.ID, is.Version, is.ID)
		} else if owned && !is.Created {
			request += "+" // It takes the secret over at its next comparison.
			return fmt.Sprintf("step %d: the object does not own the secret: %+v", r.steps, is)
		}
		return ""
	})
}
