package secretsmanager

import (
	"regexp"
	"slices"
)

// An entry is what a batch says of one secret.
type entry struct {
	// id as it was asked for, or the name of the secret.
	id, arn string

	failure error
	text    *string
	binary  []byte
	version *string
}

// answers are the ids that a batch asks for, and what it says of them.
type answers struct {
	ids     []string
	entries map[string]entry
}

func newAnswers() *answers { return &answers{entries: map[string]entry{}} }

// ask adds an id once.
func (a *answers) ask(id string) {
	if !slices.Contains(a.ids, id) {
		a.ids = append(a.ids, id)
	}
}

// arnSuffix is what AWS adds to the name in an ARN. ARNs may be given without it.
var arnSuffix = regexp.MustCompile(`-[A-Za-z0-9]{6}$`)

// add files an entry under all spellings by which its secret may have been asked for. A whole ARN
// or name wins over an ARN that was cut.
func (a *answers) add(e entry) {
	a.entries[e.id] = e
	if e.arn == "" {
		return
	}
	a.entries[e.arn] = e
	if cut := arnSuffix.ReplaceAllString(e.arn, ""); cut != e.arn {
		if other, taken := a.entries[cut]; !taken || other.arn != cut {
			a.entries[cut] = e
		}
	}
}

// complete reports whether there is an answer for every id.
func (a *answers) complete() bool {
	return !slices.ContainsFunc(a.ids, func(id string) bool { _, ok := a.entries[id]; return !ok })
}

func (a *answers) find(id string) (entry, bool) {
	e, ok := a.entries[id]
	return e, ok
}
