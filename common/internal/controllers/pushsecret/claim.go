package pushsecret

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// claim determines which parts of an object this operator handles.
type claim struct {
	routes *resolve.Resolver
	// finalizer keeps an object until this operator has removed what it created for it.
	finalizer string
	// manager is the field manager for this operator's fields in the status. Each operator has its own, so that none
	// removes the fields of another.
	manager string
}

const finalizerName = "/pushsecret"

// claimOf returns the claim of the operator of a module and a class of stores.
func claimOf(module, class string, routes *resolve.Resolver) claim {
	if class != "" {
		sum := sha256.Sum256([]byte(class))
		class = "-" + hex.EncodeToString(sum[:4])
	}
	return claim{routes: routes, finalizer: module + finalizerName + class, manager: "direct-secrets-push:" + module + class}
}

// route returns the Kind of a reference, whatever store it names; false if another module serves the Kind.
func (c claim) route(ref v1alpha1.PushStoreRef) (resolve.Route, bool) {
	return c.routes.Serves(&v1alpha1.StoreRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
}

// serves reports whether this module writes to at least one store of an object.
func (c claim) serves(ps *v1alpha1.PushSecret) bool {
	return slices.ContainsFunc(ps.Spec.StoreRefs, func(ref v1alpha1.PushStoreRef) bool {
		_, ok := c.route(ref)
		return ok
	})
}

// claims reports whether this module writes the Ready condition, because it serves the first store.
func (c claim) claims(ps *v1alpha1.PushSecret) bool {
	if len(ps.Spec.StoreRefs) == 0 {
		return false
	}
	_, ok := c.route(ps.Spec.StoreRefs[0])
	return ok
}

// concerns reports whether this module handles an object, or handled it before.
func (c claim) concerns(ps *v1alpha1.PushSecret) bool {
	return c.serves(ps) || slices.Contains(ps.Finalizers, c.finalizer) || ps.DeletionTimestamp != nil && len(c.others(ps)) > 0 ||
		slices.ContainsFunc(ps.Status.Stores, c.ours)
}

// ours reports whether a status entry is of a store Kind that this module serves.
func (c claim) ours(s v1alpha1.PushStoreStatus) bool {
	_, ok := c.routes.Serves(&v1alpha1.StoreRef{APIVersion: s.APIVersion, Kind: s.Kind})
	return ok
}

// foreign returns the status entries that other modules write.
func (c claim) foreign(ps *v1alpha1.PushSecret) []v1alpha1.PushStoreStatus {
	return slices.DeleteFunc(slices.Clone(ps.Status.Stores), c.ours)
}

// others returns the finalizers of other modules.
func (c claim) others(ps *v1alpha1.PushSecret) []string {
	return slices.DeleteFunc(slices.Clone(ps.Finalizers), func(f string) bool {
		return f == c.finalizer || !strings.Contains(f, "."+v1alpha1.Group+finalizerName)
	})
}
