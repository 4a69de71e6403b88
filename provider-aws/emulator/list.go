package emulator

import "slices"

type listSecretsInput struct {
	nameless

	Filters                []filter
	IncludePlannedDeletion bool
	MaxResults             *int
	NextToken              string
}

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

	seq uint64
}

func newSecretEntry(s *secret) *secretEntry {
	return &secretEntry{
		ARN: s.arn, Name: s.name, Type: s.kind, Description: s.description, KmsKeyID: s.kmsKeyID,
		CreatedDate: date(s.created), LastChangedDate: date(s.changed), LastAccessedDate: date(s.lastAccess()),
		DeletedDate: date(s.deleteAt), Tags: slices.Clone(s.tags), seq: s.seq,
	}
}

type describeSecretInput struct{ secretRef }

func (*Emulator) describeSecret(s *secret, _ *describeSecretInput) (any, error) {
	out := newSecretEntry(s)
	out.VersionIDsToStages, out.ReplicationStatus = s.labels(), slices.Clone(s.replicas)
	return out, nil
}

type listSecretsOutput struct {
	SecretList []*secretEntry
	NextToken  string `json:",omitempty"`

	token func(int) string
}

func (o *listSecretsOutput) cut(how PageFault, keep int) {
	o.SecretList, o.NextToken = cutEntries(o.SecretList, how, keep, o.token)
}

// listSecrets lists secrets in order of creation. A page stays valid if secrets are created or deleted before the next one.
func (e *Emulator) listSecrets(_ *request, in *listSecretsInput) (any, error) {
	limit, err := pageSize(in.MaxResults, 100)
	if err != nil {
		return nil, err
	}
	for _, f := range in.Filters {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	query := "list" + fingerprint([]any{in.Filters, in.IncludePlannedDeletion}) // a token is valid for any page size
	start, err := decodeToken[uint64](in.NextToken, query)
	if err != nil {
		return nil, err
	}
	out := &listSecretsOutput{SecretList: []*secretEntry{}}
	all := out.SecretList
	out.token = func(i int) string {
		if i == 0 {
			return encodeToken(query, start)
		}
		return encodeToken(query, all[i-1].seq)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	now := e.now()
	for _, s := range e.order {
		unmatched := func(f filter) bool { return !f.matches(s) }
		if s.seq <= start || s.deleted(now) || s.scheduled() && !in.IncludePlannedDeletion || slices.ContainsFunc(in.Filters, unmatched) {
			continue
		}
		if len(all) == limit {
			out.NextToken = out.token(limit)
			break
		}
		entry := newSecretEntry(s)
		entry.SecretVersionsToStages = s.labels()
		all = append(all, entry)
	}
	out.SecretList = all
	return out, nil
}
