package emulator

import "slices"

type updateSecretVersionStageInput struct {
	secretRef

	VersionStage        string
	RemoveFromVersionID string `json:"RemoveFromVersionId"`
	MoveToVersionID     string `json:"MoveToVersionId"`
}

// updateSecretVersionStage moves a label. A label that is in use moves only if the caller names the version
// that has it.
func (e *Emulator) updateSecretVersionStage(q *request, in *updateSecretVersionStageInput) (any, error) {
	if err := checkLength("versionStage", len(in.VersionStage), 1, 256); err != nil {
		return nil, err
	}
	if err := e.allow(q, "UpdateSecretVersionStage", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	from, to := s.staged(in.VersionStage), (*version)(nil)
	if in.MoveToVersionID != "" {
		if to = s.version(in.MoveToVersionID); to == nil {
			return nil, noSuchValue("VersionId", in.MoveToVersionID)
		}
	}
	if err := in.check(from, to); err != nil {
		return nil, err
	}
	s.move(in.VersionStage, to)
	s.changed = e.now()
	return &secretName{ARN: s.arn, Name: s.name}, nil
}

func (in *updateSecretVersionStageInput) check(from, to *version) error {
	if to == nil && in.VersionStage == stageCurrent {
		return invalidParameter("You can only move staging label AWSCURRENT to a different secret version. It can't be completely removed.")
	}
	if to == nil && in.RemoveFromVersionID == "" {
		return invalidParameter("You must provide RemoveFromVersionId, MoveToVersionId, or both.")
	}
	if in.RemoveFromVersionID == "" && from != nil && from != to {
		return invalidParameter("The parameter RemoveFromVersionId can't be empty. Staging label %s is currently attached to "+
			"version %s, so you must explicitly reference that version in RemoveFromVersionId.", in.VersionStage, from.id)
	}
	if in.RemoveFromVersionID != "" && (from == nil || from.id != in.RemoveFromVersionID) {
		return invalidParameter("Staging label %s is not attached to version %s.", in.VersionStage, in.RemoveFromVersionID)
	}
	return nil
}

type listSecretVersionIDsInput struct {
	secretRef

	IncludeDeprecated bool
	MaxResults        *int
	NextToken         string
}

type versionEntry struct {
	VersionID     string   `json:"VersionId"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   *epoch
}

type listSecretVersionIDsOutput struct {
	ARN       string
	Name      string
	Versions  []versionEntry
	NextToken string `json:",omitempty"`
}

func (e *Emulator) listSecretVersionIDs(q *request, in *listSecretVersionIDsInput) (any, error) {
	limit, err := pageSize(in.MaxResults, 100)
	if err != nil {
		return nil, err
	}
	var at int
	if err := decodeToken(in.NextToken, "versions", &at); err != nil {
		return nil, err
	}
	if err := e.allow(q, "ListSecretVersionIds", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, err := e.findAny(in.SecretID)
	if err != nil {
		return nil, err
	}
	out := &listSecretVersionIDsOutput{ARN: s.arn, Name: s.name, Versions: []versionEntry{}}
	for i := max(at, 0); i < len(s.versions); i++ {
		v := s.versions[i]
		if len(v.stages) == 0 && !in.IncludeDeprecated {
			continue
		}
		if len(out.Versions) == limit {
			out.NextToken = encodeToken("versions", i)
			break
		}
		out.Versions = append(out.Versions, versionEntry{VersionID: v.id, VersionStages: slices.Clone(v.stages), CreatedDate: date(v.created)})
	}
	return out, nil
}
