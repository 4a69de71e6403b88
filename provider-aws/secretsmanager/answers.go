package secretsmanager

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
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

// is reports whether two entries are about the same version of the same secret.
func (e entry) is(other entry) bool {
	return e.id == other.id && e.arn == other.arn && aws.ToString(e.version) == aws.ToString(other.version)
}

// answers holds the ids that a batch requests, and the results for them.
type answers struct {
	ids []string
	// full holds the entries by name and ARN, cut by ARN without its suffix. An id can have several entries: a secret
	// of another account can have the same name.
	full, cut map[string][]entry
	// failures are the entries with a failure that name an ARN.
	failures []entry
}

func newAnswers() *answers {
	return &answers{full: map[string][]entry{}, cut: map[string][]entry{}}
}

// ask adds an id if it is not there yet.
func (a *answers) ask(id string) {
	if !slices.Contains(a.ids, id) {
		a.ids = append(a.ids, id)
	}
}

// arnSuffix matches the random characters that AWS appends to the name in an ARN. A request can omit them.
var arnSuffix = regexp.MustCompile(`-[A-Za-z0-9]{6}$`)

// add stores an entry under all ids by which its secret could have been requested.
func (a *answers) add(e entry) {
	if e.failure != nil && awsconfig.IsARN(e.id) {
		e.arn = e.id
		a.failures = append(a.failures, e)
	}
	add(a.full, e.id, e)
	if e.arn == "" {
		return
	}
	if e.arn != e.id {
		add(a.full, e.arn, e)
	}
	if cut := arnSuffix.ReplaceAllString(e.arn, ""); cut != e.arn {
		add(a.cut, cut, e)
	}
}

// add adds an entry, unless it is there.
func add(to map[string][]entry, id string, e entry) {
	if !slices.ContainsFunc(to[id], e.is) {
		to[id] = append(to[id], e)
	}
}

// complete reports whether there is a result for every id.
func (a *answers) complete() bool {
	return !slices.ContainsFunc(a.ids, func(id string) bool { return len(a.direct(id)) == 0 })
}

// find returns the entries that fit an id.
func (a *answers) find(id string) []entry {
	if all := a.direct(id); len(all) > 0 {
		return all
	}
	return a.named(id)
}

// direct returns the entries with an id. A full ARN or name takes precedence over an ARN without its suffix.
func (a *answers) direct(id string) []entry {
	if all := a.full[id]; len(all) > 0 {
		return all
	}
	return a.cut[id]
}

// named returns the failures of an ARN that a request by name can have. One counts once for each request that can have it, so that
// an unclear one is not taken for the answer.
func (a *answers) named(id string) (found []entry) {
	for _, e := range a.failures {
		asked := func(other string) bool { return other == e.arn || other == arnSuffix.ReplaceAllString(e.arn, "") }
		if slices.ContainsFunc(a.ids, asked) || !hasName(e.arn, id) {
			continue
		}
		for _, other := range a.ids {
			if hasName(e.arn, other) {
				found = append(found, e)
			}
		}
	}
	return found
}

// hasName reports whether an ARN can be that of a name.
func hasName(arn, name string) bool {
	_, full, _ := strings.Cut(arn, ":secret:")
	return name == full || name == arnSuffix.ReplaceAllString(full, "")
}
