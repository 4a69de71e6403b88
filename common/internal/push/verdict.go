package push

import "time"

// Near is how long a removal waits for objects of its own namespace, and for uses that are not certain. Far is how long it waits for
// objects of other namespaces. Both begin when the removal is due, or when the operator starts.
const (
	Near = time.Minute
	Far  = 8 * time.Second
)

// Behind are the objects which may push to the place of a removal, and of whose present spec that is not known yet.
type Behind struct {
	// Waited is how long the removal has been due for this process.
	Waited time.Duration
	// Near is true for an object of the namespace of the removal, Far for one of another namespace.
	Near, Far bool
}

// Again returns how long to wait until a postponed removal is decided again.
func (b Behind) Again() time.Duration {
	wait := time.Second + b.Waited/2
	for _, limit := range []time.Duration{Far, Near} {
		if left := limit - b.Waited; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// Facts are what a removal of something that an object no longer wants depends on.
type Facts struct {
	// Behind is that of the secret.
	Behind Behind
	// Used is true if another object pushes there, Unproven if that is not certain yet.
	Used, Unproven bool
	// Owned is true if mark and ID prove that the object owns it, and Intact if it is as the object left it.
	Owned, Intact bool
}

// Verdict is what becomes of something that an object no longer wants.
type Verdict string

// The verdicts, as the documentation lists them.
const (
	Postpone Verdict = "decides again"
	Ignore   Verdict = "leaves it"
	Release  Verdict = "keeps it, see [hand-over](#hand-over)"
	Keep     Verdict = "leaves it; the Event `LeftBehind` names it"
	Remove   Verdict = "removes it"
)

// verdicts are the rules, of which the first that holds decides. The documentation is made from them.
var verdicts = []struct {
	when  string
	holds func(Facts) bool
	is    Verdict
}{
	{"the object does not own it", func(f Facts) bool { return !f.Owned }, Ignore},
	{"for up to 8 seconds: the status of a PushSecret of another namespace is behind", func(f Facts) bool { return f.Behind.Far && f.Behind.Waited < Far }, Postpone},
	{"for up to a minute: the status of a PushSecret of its namespace is behind", func(f Facts) bool { return f.Behind.Near && f.Behind.Waited < Near }, Postpone},
	{"for up to a minute: a use by another PushSecret is not certain", func(f Facts) bool { return f.Unproven && f.Behind.Waited < Near }, Postpone},
	{"another PushSecret uses it, or may do so after that minute", func(f Facts) bool { return f.Used || f.Behind.Near }, Release},
	{"another program has changed it since", func(f Facts) bool { return !f.Intact }, Keep},
	{"otherwise", func(Facts) bool { return true }, Remove},
}

// Verdict returns what becomes of it.
func (f Facts) Verdict() Verdict {
	for _, v := range verdicts {
		if v.holds(f) {
			return v.is
		}
	}
	return Postpone
}
