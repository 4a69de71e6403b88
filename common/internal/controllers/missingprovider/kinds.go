package missingprovider

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A kind is a Kind of objects that refer to stores.
type kind struct {
	name  string
	kind  string
	empty func() client.Object
	list  func() client.ObjectList
	// leading returns the reference whose module writes Ready. It needs only fields that the cache has.
	leading func(client.Object) *v1alpha1.StoreRef
	// unnamed is the message for an object that names no store, so that no module claims it.
	unnamed string
	// stateOf returns the state of an object that was read live.
	stateOf func(client.Object) objectState
}

// objectState is the state of an object.
type objectState struct {
	suspended  bool
	conditions []metav1.Condition
	// observed is the generation that a module has observed; negative for none, which is the default in the CRDs.
	observed int64
	// attempted is the refresh request that was answered.
	attempted string
	// inSync is true if the object needs nothing before due; a zero due means never.
	inSync bool
	due    time.Time
	// stalls is true if the controller of the Kind can remove a Stalled condition of this controller. The controller
	// of PushSecrets cannot: it applies its conditions, and an apply does not remove fields of another manager.
	stalls bool
}

func externalSecrets() kind {
	return kind{
		name:  "externalsecret",
		kind:  "ExternalSecret",
		empty: func() client.Object { return &v1alpha1.ExternalSecret{} },
		list:  func() client.ObjectList { return &v1alpha1.ExternalSecretList{} },
		leading: func(o client.Object) *v1alpha1.StoreRef {
			return o.(*v1alpha1.ExternalSecret).LeadingStore()
		},
		unnamed: "the spec names no store; set spec.storeRef, or sourceRef in each entry of spec.data and spec.dataFrom",
		stateOf: func(o client.Object) objectState {
			es := o.(*v1alpha1.ExternalSecret)
			s := objectState{
				suspended: es.Spec.Suspend, conditions: es.Status.Conditions, observed: es.Status.ObservedGeneration, stalls: true,
				attempted: es.Status.AttemptedRefreshRequest,
				inSync: es.Status.ObservedGeneration == es.Generation && isReady(es.Status.Conditions, es.Generation) &&
					es.Status.ObservedRefreshRequest == es.Annotations[v1alpha1.RefreshRequestAnnotation],
			}
			if next := es.Status.NextRefreshTime; next != nil {
				s.due = next.Time
			}
			return s
		},
	}
}

func pushSecrets() kind {
	leading := func(o client.Object) *v1alpha1.StoreRef {
		refs := o.(*v1alpha1.PushSecret).Spec.StoreRefs
		if len(refs) == 0 {
			return nil
		}
		return &v1alpha1.StoreRef{APIVersion: refs[0].APIVersion, Kind: refs[0].Kind, Name: refs[0].Name}
	}
	return kind{
		name:    "pushsecret",
		kind:    "PushSecret",
		empty:   func() client.Object { return &v1alpha1.PushSecret{} },
		list:    func() client.ObjectList { return &v1alpha1.PushSecretList{} },
		leading: leading,
		unnamed: "the spec names no store; set spec.storeRefs",
		stateOf: func(o client.Object) objectState {
			ps := o.(*v1alpha1.PushSecret)
			s := objectState{
				suspended: ps.Spec.Suspend, conditions: ps.Status.Conditions, observed: ps.Status.ObservedGeneration, attempted: ps.Status.AttemptedRefreshRequest,
				inSync: ps.Status.ObservedGeneration == ps.Generation && isReady(ps.Status.Conditions, ps.Generation),
			}
			for _, of := range ps.Status.Stores {
				gv, err := schema.ParseGroupVersion(of.APIVersion)
				if err != nil || !leading(ps).Matches(gv.WithKind(of.Kind).GroupKind()) {
					continue // Other modules handle their own stores.
				}
				s.inSync = s.inSync && of.ObservedRefreshRequest == ps.Annotations[v1alpha1.RefreshRequestAnnotation]
				if next := of.NextRefreshTime; next != nil && (s.due.IsZero() || next.Time.Before(s.due)) {
					s.due = next.Time
				}
			}
			return s
		},
	}
}

func isReady(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
