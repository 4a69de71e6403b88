package emulator

import "slices"

type updateSecretVersionStageInput struct {
	secretRef

	VersionStage        string
	RemoveFromVersionID string `json:"RemoveFromVersionId"`
	MoveToVersionID     string `json:"MoveToVersionId"`
}

// updateSecretVersionStage moves a label, or removes it from a version. A label that is in use moves only if the caller names the
// version that has it.
func (e *Emulator) updateSecretVersionStage(s *secret, in *updateSecretVersionStageInput) (any, error) {
	from, to := s.staged(in.VersionStage), (*version)(nil)
	if in.MoveToVersionID != "" {
		if to = s.version(in.MoveToVersionID); to == nil {
			return nil, noSuchValue("VersionId", in.MoveToVersionID)
		}
	}
	if in.RemoveFromVersionID == "" && from != nil && from != to {
		return nil, invalidParameter("The parameter RemoveFromVersionId can't be empty. Staging label %s is currently attached to "+
			"version %s, so you must explicitly reference that version in RemoveFromVersionId.", in.VersionStage, from.id)
	}
	if in.RemoveFromVersionID != "" && (from == nil || from.id != in.RemoveFromVersionID) {
		return nil, invalidParameter("Staging label %s is not attached to version %s.", in.VersionStage, in.RemoveFromVersionID)
	}
	s.move(in.VersionStage, to)
	s.changed = e.now()
	return &secretName{ARN: s.arn, Name: s.name}, nil
}

type listSecretVersionIDsInput struct {
	secretRef

	IncludeDeprecated bool
}

type versionEntry struct {
	VersionID     string   `json:"VersionId"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   *epoch
}

type listSecretVersionIDsOutput struct {
	ARN      string
	Name     string
	Versions []versionEntry
}

// listSecretVersionIDs returns all versions on one page.
func (*Emulator) listSecretVersionIDs(s *secret, in *listSecretVersionIDsInput) (any, error) {
	out := &listSecretVersionIDsOutput{ARN: s.arn, Name: s.name, Versions: []versionEntry{}}
	for _, v := range s.versions {
		if len(v.stages) > 0 || in.IncludeDeprecated {
			out.Versions = append(out.Versions, versionEntry{VersionID: v.id, VersionStages: slices.Clone(v.stages), CreatedDate: date(v.created)})
		}
	}
	return out, nil
}
