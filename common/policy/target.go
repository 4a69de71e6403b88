package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Self is what an ExternalSecret brings to the decision about its target.
type Self struct {
	UID        types.UID
	Generation int64
	// Synced is true once the target was written.
	Synced bool
	// Owns is true if the target shall carry an ownerReference to the object.
	Owns bool
}

// Target is what is known of a Secret, from a cache or from a live read.
type Target struct {
	Exists      bool
	Terminating bool
	// Controller is the ownerReference that controls the Secret, whoever it names.
	Controller *metav1.OwnerReference
	// Owner is an ownerReference of a Secret that carries no mark of this object.
	Owner *metav1.OwnerReference
	// Mark is this object's mark, by name; zero if there is none.
	Mark Mark
	// Rival is the name of another living ExternalSecret whose mark the Secret carries.
	Rival string
	// Intact is true if this object's fields are those that its mark records.
	Intact bool
}

// Mark is what an ExternalSecret notes on a Secret that it writes.
type Mark struct {
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Module is the API group of the module that wrote.
	Module string `json:"module"`
	// Hash covers keys and values, and is keyed with the uid.
	Hash string `json:"hash"`
	// Inputs covers what the values were rendered from, keyed likewise.
	Inputs string `json:"inputs,omitempty"`
	// Fields covers the names of the fields that the object owns.
	Fields string `json:"fields"`
}

// Action is what is to be done to the target.
type Action string

// The actions.
const (
	// Nothing: the target is as it shall be.
	Nothing Action = "Nothing"
	// Render: the values are needed to say more.
	Render Action = "Render"
	// Create the Secret with a POST.
	Create Action = "Create"
	// Apply all keys.
	Apply Action = "Apply"
	// Own adds or removes the ownerReference and leaves the data.
	Own Action = "Own"
	// Yield: somebody else's Secret; write nothing.
	Yield Action = "Yield"
	// Wait until the Secret that is being deleted is gone.
	Wait Action = "Wait"
)

// Decision is an action with what must hold before it, and why.
type Decision struct {
	Action Action
	// Fence asks for a live read of the ExternalSecret after the Secret was read: it writes only if
	// that shows the same uid and generation.
	Fence bool
	// Message says why, where a person should know.
	Message string
}

// Rendered is what the Secret shall hold, as hashes; nil before the values were read.
type Rendered struct {
	Hash   string
	Fields string
}

// Decide says what to do to the target of an ExternalSecret under creationPolicy Owner. It is asked
// twice: without rendered to learn whether the values are needed, and with it to act.
func Decide(self Self, t Target, rendered *Rendered) Decision {
	if !t.Exists {
		if rendered == nil {
			return Decision{Action: Render, Message: "the Secret does not exist"}
		}
		return Decision{Action: Create, Fence: self.Synced}
	}
	if message := foreign(self, t); message != "" {
		return Decision{Action: Yield, Message: message}
	}
	if t.Terminating {
		return Decision{Action: Wait, Message: "the Secret is being deleted"}
	}

	d := Decision{Fence: t.Mark.UID != "" && (t.Mark.UID != self.UID || t.Mark.Generation > self.Generation)}
	owned := t.Controller != nil && t.Controller.UID == self.UID
	switch {
	case t.Mark.UID != self.UID || !t.Intact:
		d.Action, d.Message = Apply, "its own fields are missing or were changed"
	case rendered != nil && (t.Mark.Hash != rendered.Hash || t.Mark.Fields != rendered.Fields):
		d.Action = Apply
	case owned != self.Owns:
		d.Action = Own
	default:
		d.Action = Nothing
	}
	if d.Action == Apply && rendered == nil {
		d.Action = Render
	}
	return d
}

// foreign says whose Secret it is if it is somebody else's, and what to do about it.
func foreign(self Self, t Target) string {
	switch c, o := t.Controller, t.Owner; {
	case c != nil && c.UID != self.UID && c.UID != t.Mark.UID:
		return fmt.Sprintf("the Secret is controlled by %s %q; choose another spec.target.name or remove that owner", c.Kind, c.Name)
	case o != nil && o.UID != self.UID:
		return fmt.Sprintf("the Secret is owned by %s %q; choose another spec.target.name or remove that owner", o.Kind, o.Name)
	case t.Rival != "":
		return fmt.Sprintf("the Secret is written by ExternalSecret %q; choose another spec.target.name", t.Rival)
	}
	return ""
}
