package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Self is what an ExternalSecret brings to the decision about its target.
type Self struct {
	UID        types.UID
	Generation int64
	// Creation and Deletion are the policies of the spec; empty means Owner and Retain.
	Creation v1alpha1.CreationPolicy
	Deletion v1alpha1.DeletionPolicy
	// Owns is true if the target shall carry an ownerReference to the object.
	Owns bool
	// Immutable is spec.target.immutable.
	Immutable bool
	// Absent is true while the Secret is missing on purpose: the provider had nothing to put into it.
	Absent bool
	// Yields is true while all keys that it wants are still held by other ExternalSecrets.
	Yields bool
	// Due says why the provider is to be read, whatever the target looks like.
	Due Why
}

func (s Self) creation() v1alpha1.CreationPolicy {
	if s.Creation == "" {
		return v1alpha1.CreateOwner
	}
	return s.Creation
}

// Target is what is known of a Secret, from a cache or from a live read.
type Target struct {
	Exists      bool
	Terminating bool
	// Crowded is true if the Secret carries as many marks of others as there may be, or more; then none is known.
	Crowded bool
	// Foreign is an ownerReference by which the Secret is somebody else's.
	Foreign *metav1.OwnerReference
	// Owned is true if an ownerReference names this object as controller.
	Owned bool
	// Mark is this object's mark, by name; zero if there is none.
	Mark Mark
	// Rival is the name of another ExternalSecret that has left its mark and still writes here.
	Rival string
	// Intact is true if this object's fields are those that its mark records.
	Intact bool
	// Watched is true if the Secret carries the label by which this module watches it.
	Watched bool
	// Holds is true if this object holds keys of data.
	Holds bool
	// Sealed is true if this object, or the one of that name before it, made the Secret immutable.
	Sealed bool
	// Others is true if the Secret has keys that this object does not hold alone. Only a live read
	// tells; a cache says false.
	Others bool
	// Fixed is true if keys cannot be dropped freely: the Secret is immutable, or of a type that may
	// demand them. Only a live read tells.
	Fixed bool
}

// Mark is what an ExternalSecret notes on a Secret that it writes.
type Mark struct {
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Module is the API group of the module that wrote.
	Module string `json:"module"`
	// Policy is the creationPolicy under which it wrote; empty means Owner.
	Policy v1alpha1.CreationPolicy `json:"policy,omitempty"`
	// Created is true if an ExternalSecret of that name created the Secret.
	Created bool `json:"created,omitempty"`
	// Hash covers keys and values, and is keyed with the uid.
	Hash string `json:"hash"`
	// Inputs covers what the values were rendered from, keyed likewise.
	Inputs string `json:"inputs,omitempty"`
	// Fields covers the names of the fields that the object owns.
	Fields string `json:"fields"`
	// Yields are the fields that it left to other ExternalSecrets.
	Yields []string `json:"yields,omitempty"`
}

func (m Mark) policy() v1alpha1.CreationPolicy { return Self{Creation: m.Policy}.creation() }

// Action is what is to be done to the target.
type Action string

// The actions.
const (
	// Nothing: the target is as it shall be.
	Nothing Action = "Nothing"
	// Read: the provider's answer is needed to say more.
	Read Action = "Read"
	// Create the Secret with a POST.
	Create Action = "Create"
	// Apply all keys; those that are no longer wanted go.
	Apply Action = "Apply"
	// Own brings ownerReference and mark in line and leaves the data.
	Own Action = "Own"
	// Release drops what this object wrote and leaves the rest.
	Release Action = "Release"
	// Delete the Secret.
	Delete Action = "Delete"
	// Keep the Secret as it is, and report why.
	Keep Action = "Keep"
	// Refuse: the spec asks for what no write can do; the message says what can.
	Refuse Action = "Refuse"
	// Yield: somebody else's Secret; write nothing.
	Yield Action = "Yield"
	// Missing: the Secret is awaited, and not for this object to create.
	Missing Action = "Missing"
	// Wait until the Secret that is being deleted is gone.
	Wait Action = "Wait"
)

// Decision is an action with what must hold before it, and why.
type Decision struct {
	Action Action
	// Fence asks for a live read of the ExternalSecret after the Secret was read: it writes only if
	// that shows the same uid and generation.
	Fence bool
	// Absent is true if the Secret shall not be there, since the provider has nothing to put into it.
	Absent bool
	// Unwatched is true if it is too costly to be told when the Secret changes, since it is large.
	Unwatched bool
	// Message says why, where a person should know.
	Message string
}

// Reading is what the provider answered, and what comes of it.
type Reading struct {
	// Failed is true if any answer was neither a value nor a definite "does not exist".
	Failed bool
	// Gone is true if the provider says of something that the spec names, and that is not optional,
	// that it does not exist.
	Gone bool
	// Values is the number of keys that the answer yields; Keys is the number of those that no other
	// ExternalSecret holds.
	Values, Keys int
	// Hash and Fields are those that the mark would get.
	Hash   string
	Fields string
	// Same is true if the values would be made from the same as those in the Secret, and so were not made.
	Same bool
}

// Decide says what to do to the target of an ExternalSecret. It is asked twice: without a reading to
// learn whether the provider must be read, and with it to act.
func Decide(self Self, t Target, reading *Reading) Decision {
	if self.creation() == v1alpha1.CreateNone {
		return none(self, reading)
	}
	if t.Exists {
		return existing(self, t, reading)
	}
	return absent(self, reading)
}

// none reads, so that errors show, and writes nothing.
func none(self Self, reading *Reading) Decision {
	switch {
	case reading == nil && self.Due != NotDue:
		return Decision{Action: Read}
	case reading != nil && (reading.Failed || reading.Gone):
		return Decision{Action: Keep}
	}
	return Decision{Action: Nothing}
}

// absent decides while there is no Secret.
func absent(self Self, reading *Reading) Decision {
	switch {
	case self.creation() == v1alpha1.CreateMerge:
		return Decision{Action: Missing, Message: "the Secret does not exist, and creationPolicy Merge waits until somebody creates it"}
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

// existing decides about a Secret that is there.
func existing(self Self, t Target, reading *Reading) Decision {
	if message := foreign(self, t); message != "" {
		return Decision{Action: Yield, Message: message}
	}
	switch {
	case t.Terminating:
		return Decision{Action: Wait, Message: "the Secret is being deleted"}
	case t.Crowded:
		return Decision{Action: Refuse, Unwatched: true, Message: "the Secret carries the marks of 100 other ExternalSecrets, and no more may write it; remove the annotations direct-secrets.io/es.* of those that do not exist, or choose another spec.target.name"}
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

// sealed decides about a Secret that was made immutable, and so is never rewritten. What is taken over
// from an object that is gone gets the mark of this one.
func sealed(self Self, t Target) Decision {
	switch {
	case !self.Immutable:
		return Decision{Action: Refuse, Message: "the Secret was made immutable and cannot become mutable again, as spec.target.immutable asks; delete the Secret, it is created again"}
	case !self.wrote(t) || self.moved(t) || !t.Watched:
		return Decision{Action: Own, Fence: true}
	}
	return Decision{Action: Nothing}
}

// unanswered decides whether the provider must be read.
func unanswered(self Self, t Target) Decision {
	// A Secret that is missing on purpose may have been brought back by an operator that was late.
	drifted := !self.wrote(t) || !t.Intact || self.Absent
	// Where nothing of ours is, and that is as it shall be, nothing can have been lost.
	if (self.Yields || self.Absent) && t.Mark.UID == "" && !t.Owned && !t.Holds {
		drifted = false
	}
	if self.creation() == v1alpha1.CreateOrphan {
		drifted = false // It waits for the next refresh.
	}
	if drifted || self.Due != NotDue {
		return Decision{Action: Read, Message: "own fields of the Secret are missing or were changed"}
	}
	return Decision{Action: Nothing}
}

// filled brings a Secret to the keys that were read, or to none if it shall stay without.
func filled(self Self, t Target, reading *Reading) Decision {
	switch {
	case t.Mark.UID == "" && !t.Holds && reading.Values > 0 && reading.Keys == 0 && self.creation() != v1alpha1.CreateOwner:
		return Decision{Action: Nothing} // Others hold all that this object wants.
	case !self.wrote(t) || !t.Intact || t.Mark.Hash != reading.Hash || t.Mark.Fields != reading.Fields:
		return Decision{Action: Apply, Fence: self.doubts(t)}
	case t.Mark.Generation < self.Generation && !reading.Same:
		return Decision{Action: Apply, Fence: self.doubts(t)}
	case t.Mark.Generation < self.Generation, self.moved(t):
		// Without a trace of this generation, who is late with an earlier one would write.
		return Decision{Action: Own, Fence: true}
	}
	return Decision{Action: Nothing}
}

// empty decides under deletionPolicy Delete about a Secret for which the provider has nothing more:
// it goes if this object created or owns it and nobody else has put anything into it.
func empty(self Self, t Target, reading *Reading) Decision {
	switch {
	case t.Mark.UID == "" && !t.Owned && !t.Holds:
		return Decision{Action: Nothing, Absent: true} // It was never ours.
	case t.Others || (!t.Owned && !self.Owns && !t.Mark.Created):
		return filled(self, t, reading)
	}
	return Decision{Action: Delete, Fence: true, Absent: true}
}

// wrote reports whether the mark is that of this object, and not of one before it.
func (s Self) wrote(t Target) bool { return t.Mark.UID == s.UID }

// moved reports whether the ownerReference, or what the mark says of the creationPolicy, is to change.
func (s Self) moved(t Target) bool {
	return t.Owned != s.Owns || t.Mark.policy() != s.creation()
}

// doubts reports whether another incarnation or a later generation of the object may be at work: always
// but where this generation has written before. What is to go with the object is in doubt, too.
func (s Self) doubts(t Target) bool {
	return !s.wrote(t) || t.Mark.Generation != s.Generation || s.Owns && !t.Owned
}

// Leave says what becomes of a Secret that this object wrote before its spec named another: what
// would become of it if the object was deleted.
func Leave(self Self, t Target) Decision {
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

// kept reports whether what was read forbids any change.
func kept(self Self, r Reading) bool {
	return r.Failed || OnGone(self.Deletion, r.Gone, r.Values) == KeepAll
}

// emptied reports whether the Secret shall not be there.
func emptied(self Self, r Reading) bool {
	return OnGone(self.Deletion, r.Gone, r.Values) == DropSecret
}

// foreign says whose Secret it is if it is somebody else's, and what to do about it. Merge adds to
// the Secrets of others by design.
func foreign(self Self, t Target) string {
	const fix = "choose another spec.target.name"
	switch {
	case self.creation() == v1alpha1.CreateMerge:
		return ""
	case t.Foreign != nil && t.Foreign.Controller != nil && *t.Foreign.Controller:
		return fmt.Sprintf("the Secret is controlled by %s %q; %s or remove that owner", t.Foreign.Kind, t.Foreign.Name, fix)
	case t.Foreign != nil:
		return fmt.Sprintf("the Secret is owned by %s %q; %s or remove that owner", t.Foreign.Kind, t.Foreign.Name, fix)
	case t.Rival != "" && self.creation() == v1alpha1.CreateOwner && (t.Mark.UID == "" || t.Mark.policy() != v1alpha1.CreateOwner):
		return fmt.Sprintf("the Secret is written by ExternalSecret %q; %s", t.Rival, fix)
	}
	return ""
}
