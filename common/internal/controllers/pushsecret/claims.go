package pushsecret

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
)

// Claims implements push.Others. An entry with a source claims its value. An entry whose place is unknown now claims nothing, because
// an object that names a secret of others could block them.
func (o *others) Claims(key, id string) (all []push.Claim) {
	if o.unknown != nil {
		return nil
	}
	self := o.self.seen.Load()
	for _, u := range o.uses(key, id) {
		if self == nil || !u.sure || !claimsValues(u.ps) || u.entry.Source == "" {
			continue
		}
		c := push.Claim{Property: u.entry.Property, Mark: string(u.ps.UID), By: "PushSecret " + u.String(), First: older(u.ps, self)}
		switch {
		case u.ps.UID == o.self.uid:
			c.By, c.First = fmt.Sprintf("the same object by %s %q", u.store.kind, u.store.name), byStore(u.store, o.unit.store) < 0
		case siblings(u.ps, self): // A parent replaces the older one by the younger one.
			if c.First = older(self, u.ps); !c.First {
				continue
			}
		}
		all = append(all, c)
	}
	return all
}

// claimsValues reports whether an object replaces other values at its places.
func claimsValues(ps *v1alpha1.PushSecret) bool {
	return ps.Spec.UpdatePolicy != v1alpha1.UpdateIfNotExists && !ps.Spec.Suspend && !ps.Spec.DryRun
}

// older reports whether a was created before b.
func older(a, b *v1alpha1.PushSecret) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// siblings reports whether two objects of a namespace have the same parent.
func siblings(a, b *v1alpha1.PushSecret) bool {
	parent := func(ps *v1alpha1.PushSecret) types.UID {
		if ref := metav1.GetControllerOf(ps); ref != nil {
			return ref.UID
		}
		return ""
	}
	return a.Namespace == b.Namespace && parent(a) != "" && parent(a) == parent(b)
}
