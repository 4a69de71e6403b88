package emulator

import (
	"cmp"
	"slices"
	"time"
)

type listSecretsInput struct {
	Filters                []filter
	IncludePlannedDeletion bool
	MaxResults             *int
	NextToken              string
	SortBy                 string
	SortOrder              string
}

func (in *listSecretsInput) secretIDs() []string { return nil }

// secretEntry describes a secret without its value. ListSecrets and DescribeSecret use different names for the
// map of labels.
type secretEntry struct {
	ARN                    string
	Name                   string
	Type                   string              `json:",omitempty"`
	Description            string              `json:",omitempty"`
	KmsKeyID               string              `json:"KmsKeyId,omitempty"`
	CreatedDate            *epoch              `json:",omitempty"`
	LastChangedDate        *epoch              `json:",omitempty"`
	LastAccessedDate       *epoch              `json:",omitempty"`
	DeletedDate            *epoch              `json:",omitempty"`
	Tags                   []tag               `json:",omitempty"`
	SecretVersionsToStages map[string][]string `json:",omitempty"`
	VersionIDsToStages     map[string][]string `json:"VersionIdsToStages,omitempty"`
	ReplicationStatus      []replica           `json:",omitempty"`

	at position
}

func newSecretEntry(s *secret) *secretEntry {
	return &secretEntry{
		ARN: s.arn, Name: s.name, Type: s.kind, Description: s.description, KmsKeyID: s.kmsKeyID,
		CreatedDate: date(s.created), LastChangedDate: date(s.changed), LastAccessedDate: date(s.lastAccess()),
		DeletedDate: date(s.deleteAt), Tags: slices.Clone(s.tags),
	}
}

type describeSecretInput struct{ secretRef }

func (e *Emulator) describeSecret(q *request, in *describeSecretInput) (any, error) {
	if err := e.allow(q, "DescribeSecret", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.findAny(in.SecretID)
	if err != nil {
		return nil, err
	}
	out := newSecretEntry(s)
	out.VersionIDsToStages, out.ReplicationStatus = s.labels(), slices.Clone(s.replicas)
	return out, nil
}

type listSecretsOutput struct {
	SecretList []*secretEntry
	NextToken  string `json:",omitempty"`

	query string
	start position
}

func (o *listSecretsOutput) cut(how PageFault, keep int) {
	all := o.SecretList
	o.SecretList, o.NextToken = cutEntries(all, how, keep, func(i int) string {
		if i == 0 {
			return encodeToken(o.query, o.start)
		}
		return encodeToken(o.query, all[i-1].at)
	})
}

func (e *Emulator) listSecrets(q *request, in *listSecretsInput) (any, error) {
	limit, err := pageSize(in.MaxResults, 100)
	if err != nil {
		return nil, err
	}
	matches, err := compileFilters(in.Filters)
	if err != nil {
		return nil, err
	}
	if err := e.allow(q, "ListSecrets", ""); err != nil {
		return nil, err
	}
	query := *in
	query.NextToken, query.MaxResults = "", nil // a token is valid for any page size
	out := &listSecretsOutput{SecretList: []*secretEntry{}, query: "list" + fingerprint(query)}
	if err := decodeToken(in.NextToken, out.query, &out.start); err != nil {
		return nil, err
	}

	e.mu.RLock()
	defer e.mu.RUnlock()
	found := e.sorted(in, matches)
	i := 0
	if out.start != (position{}) {
		i = in.behind(found, out.start)
	}
	for ; i < len(found) && len(out.SecretList) < limit; i++ {
		entry := newSecretEntry(found[i])
		entry.SecretVersionsToStages = found[i].labels()
		entry.at = positionOf(found[i], in.SortBy)
		out.SecretList = append(out.SecretList, entry)
	}
	if i < len(found) {
		out.NextToken = encodeToken(out.query, out.SecretList[limit-1].at)
	}
	return out, nil
}

// A position is a place in a sorted list. It stays valid if other secrets are created or deleted between two
// pages.
type position struct {
	Name string    `json:"n,omitempty"`
	Time time.Time `json:"t,omitzero"`
	Seq  uint64    `json:"s"`
}

func positionOf(s *secret, sortBy string) position {
	p := position{Seq: s.seq}
	switch sortBy {
	case "name":
		p.Name = s.name
	case "last-changed-date":
		p.Time = s.changed
	case "last-accessed-date":
		p.Time = s.lastAccess()
	}
	return p
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.Name, o.Name), p.Time.Compare(o.Time), cmp.Compare(p.Seq, o.Seq))
}

func (in *listSecretsInput) compare(a, b position) int {
	if in.SortOrder == "desc" {
		return b.compare(a)
	}
	return a.compare(b)
}

// sorted returns the secrets of a list in the requested order. They are stored in order of creation, which is
// the default.
func (e *Emulator) sorted(in *listSecretsInput, matches matcher) []*secret {
	now := e.now()
	found := make([]*secret, 0, len(e.order))
	for _, s := range e.order {
		if s.deleted(now) || s.scheduled() && !in.IncludePlannedDeletion || !matches(s) {
			continue
		}
		found = append(found, s)
	}
	if in.SortBy != "" || in.SortOrder == "desc" {
		slices.SortFunc(found, func(a, b *secret) int {
			return in.compare(positionOf(a, in.SortBy), positionOf(b, in.SortBy))
		})
	}
	return found
}

// behind returns the index of the first secret after a position.
func (in *listSecretsInput) behind(found []*secret, p position) int {
	i, exact := slices.BinarySearchFunc(found, p, func(s *secret, p position) int {
		return in.compare(positionOf(s, in.SortBy), p)
	})
	if exact {
		i++
	}
	return i
}
