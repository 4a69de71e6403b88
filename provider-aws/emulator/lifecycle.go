package emulator

import (
	"slices"
	"strings"
	"time"
)

const (
	defaultRecoveryDays = 30
	minRecoveryDays     = 7
)

type deleteSecretInput struct {
	secretRef

	RecoveryWindowInDays       *int
	ForceDeleteWithoutRecovery bool
}

func (in *deleteSecretInput) window() (time.Duration, error) {
	const day = 24 * time.Hour
	days := in.RecoveryWindowInDays
	if days == nil {
		return defaultRecoveryDays * day, nil
	}
	if in.ForceDeleteWithoutRecovery {
		return 0, invalidParameter("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	}
	if *days < minRecoveryDays || *days > defaultRecoveryDays {
		return 0, invalidParameter("The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).")
	}
	return time.Duration(*days) * day, nil
}

func (e *Emulator) deleteSecret(q *request, in *deleteSecretInput) (any, error) {
	window, err := in.window()
	if err != nil {
		return nil, err
	}
	if err := e.allow(q, "DeleteSecret", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if in.ForceDeleteWithoutRecovery {
		return e.forceDelete(in.SecretID, now)
	}
	s, err := e.findAny(in.SecretID)
	if err != nil {
		return nil, err
	}
	if s.scheduled() {
		return nil, invalidRequest("You can't perform this operation on the secret because it was already scheduled for deletion.")
	}
	if len(s.replicas) > 0 {
		return nil, stillReplicated(s)
	}
	s.deleteAt = now.Add(window)
	return &secretName{ARN: s.arn, Name: s.name, DeletionDate: date(s.deleteAt)}, nil
}

// forceDelete also succeeds for a secret that does not exist, as documented for DeleteSecret.
func (e *Emulator) forceDelete(id string, now time.Time) (any, error) {
	s, err := e.findAny(id)
	if err != nil {
		if id == "" || !nameChars.MatchString(id) && !strings.HasPrefix(id, "arn:") {
			return nil, err
		}
		return &secretName{ARN: e.arnPrefix() + id + arnSuffix(), Name: id, DeletionDate: date(now)}, nil
	}
	if len(s.replicas) > 0 {
		return nil, stillReplicated(s)
	}
	e.remove(s)
	return &secretName{ARN: s.arn, Name: s.name, DeletionDate: date(now)}, nil
}

type restoreSecretInput struct{ secretRef }

func (e *Emulator) restoreSecret(q *request, in *restoreSecretInput) (any, error) {
	if err := e.allow(q, "RestoreSecret", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.findAny(in.SecretID)
	if err != nil {
		return nil, err
	}
	s.deleteAt = time.Time{}
	return &secretName{ARN: s.arn, Name: s.name}, nil
}

type tagResourceInput struct {
	secretRef

	Tags []tag
}

// nothing is the empty answer of operations that return nothing.
type nothing struct{}

func (e *Emulator) tagResource(q *request, in *tagResourceInput) (any, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := e.allow(q, "TagResource", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	before := slices.Clone(s.tags)
	for _, t := range in.Tags {
		s.setTag(t)
	}
	if len(s.tags) > maxTags {
		s.tags = before
		return nil, invalidParameter("The number of tags on a secret can't be more than %d.", maxTags)
	}
	s.changed = e.now()
	return nothing{}, nil
}

type untagResourceInput struct {
	secretRef

	TagKeys []string
}

func (e *Emulator) untagResource(q *request, in *untagResourceInput) (any, error) {
	if err := e.allow(q, "UntagResource", in.SecretID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.find(in.SecretID)
	if err != nil {
		return nil, err
	}
	s.tags = slices.DeleteFunc(s.tags, func(t tag) bool { return slices.Contains(in.TagKeys, t.Key) })
	s.changed = e.now()
	return nothing{}, nil
}
