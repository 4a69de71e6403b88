package policy

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Self is the ExternalSecret in the decision about its target.
type Self struct {
	UID        types.UID
	Generation int64
	// Creation and Deletion are the policies of the spec; empty means Owner and Retain.
	Creation v1alpha1.CreationPolicy
	Deletion v1alpha1.DeletionPolicy
	// Owns is true if the target must have an ownerReference to the object.
	Owns bool
	// Immutable is spec.target.immutable.
	Immutable bool
	// Absent is true while the Secret is intentionally missing: the provider had no value for it.
	Absent bool
	// Blocked is true while other ExternalSecrets still hold all keys that it wants.
	Blocked bool
	// Due is why the provider must be read, regardless of the target.
	Due Why
}

// SelfOf returns an ExternalSecret as input of decisions about its target, as far as its spec shows it. cleanup is the
// cleanupPolicy of objects that leave theirs unset.
func SelfOf(es *v1alpha1.ExternalSecret, cleanup v1alpha1.CleanupPolicy) Self {
	t := es.Spec.Target
	return Self{
		UID: es.UID, Generation: es.Generation,
		Creation: t.CreationPolicy, Deletion: t.DeletionPolicy,
		Owns: OwnsTarget(t, cleanup), Immutable: t.Immutable,
	}
}

// OwnsTarget reports whether a target must have an ownerReference to its ExternalSecret. cleanup is the cleanupPolicy of
// objects that leave theirs unset.
func OwnsTarget(t v1alpha1.Target, cleanup v1alpha1.CleanupPolicy) bool {
	if t.CreationPolicy != "" && t.CreationPolicy != v1alpha1.CreateOwner {
		return false
	}
	return cmp.Or(t.CleanupPolicy, cleanup) != v1alpha1.CleanupNever
}

func (s Self) creation() v1alpha1.CreationPolicy {
	if s.Creation == "" {
		return v1alpha1.CreateOwner
	}
	return s.Creation
}

// Target is the state of a Secret, from a cache or from a live read.
type Target struct {
	Exists      bool
	Terminating bool
	// Crowded is true if the Secret has no room for another mark: it has the maximum number of marks of others, or
	// more. Above the maximum, none of them is known.
	Crowded bool
	// Foreign is an ownerReference of another owner.
	Foreign *metav1.OwnerReference
	// Owned is true if an ownerReference names this object as controller.
	Owned bool
	// Mark is the mark with this object's name; zero if there is none.
	Mark Mark
	// OtherWriter is the name of another ExternalSecret that has a mark and still writes to this Secret.
	OtherWriter string
	// Intact is true if this object's fields match its mark.
	Intact bool
	// Watched is true if the Secret has the label by which this module watches it.
	Watched bool
	// Holds is true if this object holds keys of data.
	Holds bool
	// Sealed is true if this object, or a former one with its name, made the Secret immutable.
	Sealed bool
	// Others is true if the Secret has keys that this object does not hold alone. Only a live read shows that; from a
	// cache it is false.
	Others bool
	// Fixed is true if keys cannot be dropped freely: the Secret is immutable, or its type may require them. Only a
	// live read shows that.
	Fixed bool
}

// Mark is the annotation that an ExternalSecret leaves on a Secret that it writes.
type Mark struct {
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Module is the API group of the module that wrote the Secret.
	Module string `json:"module"`
	// Policy is the creationPolicy at that time; empty means Owner.
	Policy v1alpha1.CreationPolicy `json:"policy,omitempty"`
	// Created is true if an ExternalSecret with that name created the Secret.
	Created bool `json:"created,omitempty"`
	// Hash is a hash of keys and values, keyed with the uid.
	Hash string `json:"hash"`
	// Inputs is a hash of everything that the values were rendered from, keyed with the uid.
	Inputs string `json:"inputs,omitempty"`
	// Fields is a hash of the names of the fields that the object owns.
	Fields string `json:"fields"`
	// Blocked are the fields that it left to other ExternalSecrets.
	Blocked []string `json:"yields,omitempty"`
}

func (m Mark) policy() v1alpha1.CreationPolicy { return Self{Creation: m.Policy}.creation() }

// Action is the action for the target.
type Action string

// The actions.
const (
	// Nothing is needed: the target is as specified.
	Nothing Action = "Nothing"
	// Read the provider first: its answer is needed for the decision.
	Read Action = "Read"
	// Create the Secret with a POST.
	Create Action = "Create"
	// Apply all keys; those that are no longer wanted are removed.
	Apply Action = "Apply"
	// Own updates ownerReference and mark, and leaves the data unchanged.
	Own Action = "Own"
	// Release removes what this object wrote and leaves the rest.
	Release Action = "Release"
	// Delete the Secret.
	Delete Action = "Delete"
	// Keep the Secret unchanged, and report why.
	Keep Action = "Keep"
	// Refuse a spec that no write can satisfy; the message names a fix.
	Refuse Action = "Refuse"
	// Conflict means that the Secret has another owner: write nothing.
	Conflict Action = "Yield"
	// Missing means that the Secret does not exist, and this object waits until another writer creates it.
	Missing Action = "Missing"
	// Wait until the Secret is deleted.
	Wait Action = "Wait"
)

// Decision is an action with its conditions and its reason.
type Decision struct {
	Action Action
	// Fence requires a live read of the ExternalSecret after the Secret was read. The action is allowed only if that
	// shows the same uid and generation.
	Fence bool
	// Absent is true if the Secret must not exist, because the provider has no value for it.
	Absent bool
	// Unwatched is true if the Secret must not be watched, because it is too large.
	Unwatched bool
	// Message is the reason, if a user should know it.
	Message string
}

// Reading is the answer of the provider, and what was rendered from it.
type Reading struct {
	// Failed is true if any answer was neither a value nor a definite "does not exist".
	Failed bool
	// NotFound is true if the provider reports that something does not exist that the spec names and that is not optional.
	NotFound bool
	// Values is the number of keys in the answer; Keys is the number of those that no other ExternalSecret holds.
	Values, Keys int
	// Hash and Fields are the hashes for the mark.
	Hash   string
	Fields string
	// Same is true if the inputs of the values are unchanged, so that rendering was skipped.
	Same bool
}

// Decide returns the action for the target of an ExternalSecret. It is called twice: without a reading to find out
// whether the provider must be read, and then with the reading.
func Decide(self Self, t Target, reading *Reading) Decision {
	if self.creation() == v1alpha1.CreateNone {
		return none(self, reading)
	}
	if t.Exists {
		return existing(self, t, reading)
	}
	return absent(self, reading)
}

// none decides for creationPolicy None: it reads, so that errors are reported, and writes nothing.
func none(self Self, reading *Reading) Decision {
	switch {
	case reading == nil && self.Due != NotDue:
		return Decision{Action: Read}
	case reading != nil && (reading.Failed || reading.NotFound):
		return Decision{Action: Keep}
	}
	return Decision{Action: Nothing}
}

// absent decides while the Secret does not exist.
func absent(self Self, reading *Reading) Decision {
	switch {
	case self.creation() == v1alpha1.CreateMerge:
		return Decision{Action: Missing, Message: "the Secret does not exist, and creationPolicy Merge does not create it; create it, or set creationPolicy: CreateOrMerge"}
	case reading == nil:
		atOnce := self.creation() != v1alpha1.CreateOrphan && !self.Absent
		if atOnce || self.Due != NotDue {
			return Decision{Action: Read, Message: "the Secret does not exist"}
		}
		return Decision{Action: Nothing}
	case kept(self, *reading):
		return Decision{Action: Keep}
	case emptied(self, *reading):
		return Decision{Action: Nothing, Absent: true}
	}
	return Decision{Action: Create, Fence: true}
}

// existing decides about an existing Secret.
func existing(self Self, t Target, reading *Reading) Decision {
	if message := foreign(self, t); message != "" {
		return Decision{Action: Conflict, Message: message}
	}
	switch {
	case t.Terminating:
		return Decision{Action: Wait, Message: "the Secret is being deleted"}
	case t.Crowded:
		return Decision{Action: Refuse, Unwatched: true, Message: "100 other ExternalSecrets have annotated the Secret, and no more are allowed; remove the annotations direct-secrets.io/es.* of those that do not exist, or choose another spec.target.name"}
	case reading == nil && self.wrote(t) && self.moved(t):
		return Decision{Action: Own, Fence: true}
	case t.Sealed:
		return sealed(self, t)
	case reading == nil:
		return unanswered(self, t)
	case kept(self, *reading):
		return Decision{Action: Keep}
	case emptied(self, *reading):
		return empty(self, t, reading)
	}
	return filled(self, t, reading)
}

// sealed decides about a Secret that was made immutable and is never rewritten. A Secret taken over from a deleted
// object gets the mark of this one.
func sealed(self Self, t Target) Decision {
	switch {
	case !self.Immutable:
		return Decision{Action: Refuse, Message: "the Secret is immutable, but spec.target.immutable is not true any more; delete the Secret, it is created again"}
	case !self.wrote(t) || self.moved(t) || !t.Watched:
		return Decision{Action: Own, Fence: true}
	}
	return Decision{Action: Nothing}
}

// unanswered decides whether the provider must be read.
func unanswered(self Self, t Target) Decision {
	// A Secret that is intentionally missing may have been created again by a delayed operator.
	drifted := !self.wrote(t) || !t.Intact || self.Absent
	// Without own fields, mark or ownerReference, nothing can be lost if that is as specified.
	if (self.Blocked || self.Absent) && t.Mark.UID == "" && !t.Owned && !t.Holds {
		drifted = false
	}
	if self.creation() == v1alpha1.CreateOrphan {
		drifted = false // Drift is reverted at the next refresh.
	}
	if drifted || self.Due != NotDue {
		return Decision{Action: Read, Message: "fields that this object writes are missing or were changed"}
	}
	return Decision{Action: Nothing}
}

// filled brings a Secret to the keys that were read, or to none if it must have none.
func filled(self Self, t Target, reading *Reading) Decision {
	switch {
	case t.Mark.UID == "" && !t.Holds && reading.Values > 0 && reading.Keys == 0 && self.creation() != v1alpha1.CreateOwner:
		return Decision{Action: Nothing} // Others hold all keys that this object wants.
	case !self.wrote(t) || !t.Intact || t.Mark.Hash != reading.Hash || t.Mark.Fields != reading.Fields:
		return Decision{Action: Apply, Fence: self.needsFence(t)}
	case t.Mark.Generation < self.Generation && !reading.Same:
		return Decision{Action: Apply, Fence: self.needsFence(t)}
	case t.Mark.Generation < self.Generation, self.moved(t):
		// Without a mark of this generation, an operator delayed with an earlier generation would write.
		return Decision{Action: Own, Fence: true}
	}
	return Decision{Action: Nothing}
}

// empty decides under deletionPolicy Delete about a Secret for which the provider has no more values. The Secret is
// deleted if this object created or owns it, and it has no keys of others.
func empty(self Self, t Target, reading *Reading) Decision {
	switch {
	case t.Mark.UID == "" && !t.Owned && !t.Holds:
		return Decision{Action: Nothing, Absent: true} // It was never written by this object.
	case t.Others || (!t.Owned && !self.Owns && !t.Mark.Created):
		return filled(self, t, reading)
	}
	return Decision{Action: Delete, Fence: true, Absent: true}
}

// wrote reports whether the mark is from this object, and not from a former one with its name.
func (s Self) wrote(t Target) bool { return t.Mark.UID == s.UID }

// moved reports whether the ownerReference, or the creationPolicy in the mark, must change.
func (s Self) moved(t Target) bool {
	return t.Owned != s.Owns || t.Mark.policy() != s.creation()
}

// needsFence reports whether another object with this name, or a later generation of this one, may be active. That is
// excluded only if this generation has written before. A new ownerReference is also in doubt.
func (s Self) needsFence(t Target) bool {
	return !s.wrote(t) || t.Mark.Generation != s.Generation || s.Owns && !t.Owned
}

// DecideOldTarget returns the action for a former target, after the spec names another one. It gets the same treatment as on
// deletion of the object.
func DecideOldTarget(self Self, t Target) Decision {
	switch {
	case !t.Exists, t.Terminating, !t.Owned, self.creation() == v1alpha1.CreateNone:
		return Decision{Action: Nothing}
	case !self.Owns, t.Others && (t.Sealed || t.Fixed): // The keys cannot be dropped.
		return Decision{Action: Own, Fence: true}
	case t.Others:
		return Decision{Action: Release, Fence: true}
	}
	return Decision{Action: Delete, Fence: true}
}

// kept reports whether the reading forbids any change.
func kept(self Self, r Reading) bool {
	return r.Failed || OnNotFound(self.Deletion, r.NotFound, r.Values) == KeepAll
}

// emptied reports whether the Secret must not exist.
func emptied(self Self, r Reading) bool {
	return OnNotFound(self.Deletion, r.NotFound, r.Values) == DropSecret
}

// foreign returns a message with the owner and a fix if the Secret has another owner, otherwise "". Merge is allowed to
// add to Secrets of other owners.
func foreign(self Self, t Target) string {
	const fix = "choose another spec.target.name"
	switch {
	case self.creation() == v1alpha1.CreateMerge:
		return ""
	case t.Foreign != nil && t.Foreign.Controller != nil && *t.Foreign.Controller:
		return fmt.Sprintf("the Secret is controlled by %s %q; %s or remove that owner", t.Foreign.Kind, t.Foreign.Name, fix)
	case t.Foreign != nil:
		return fmt.Sprintf("the Secret is owned by %s %q; %s or remove that owner", t.Foreign.Kind, t.Foreign.Name, fix)
	case t.OtherWriter != "" && self.creation() == v1alpha1.CreateOwner && (t.Mark.UID == "" || t.Mark.policy() != v1alpha1.CreateOwner):
		return fmt.Sprintf("the Secret is written by ExternalSecret %q; %s", t.OtherWriter, fix)
	}
	return ""
}
