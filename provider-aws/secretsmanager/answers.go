package secretsmanager

import (
	"regexp"
	"slices"
)

// An entry is the result for one secret in the answer to a batch.
type entry struct {
	// id is the id from the request, or the name of the secret.
	id, arn string

	failure error
	text    *string
	binary  []byte
	version *string
}

// answers holds the ids that a batch requests, and the results for them.
type answers struct {
	ids     []string
	entries map[string]entry
}

func newAnswers() *answers { return &answers{entries: map[string]entry{}} }

// ask adds an id if it is not there yet.
func (a *answers) ask(id string) {
	if !slices.Contains(a.ids, id) {
		a.ids = append(a.ids, id)
	}
}

// arnSuffix matches the random characters that AWS appends to the name in an ARN. A request can omit them.
var arnSuffix = regexp.MustCompile(`-[A-Za-z0-9]{6}$`)

// add stores an entry under all ids by which its secret could have been requested. A full ARN or name takes
// precedence over an ARN without its suffix.
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

// complete reports whether there is a result for every id.
func (a *answers) complete() bool {
	return !slices.ContainsFunc(a.ids, func(id string) bool { _, ok := a.entries[id]; return !ok })
}

func (a *answers) find(id string) (entry, bool) {
	e, ok := a.entries[id]
	return e, ok
}
