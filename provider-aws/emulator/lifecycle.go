package emulator

import "time"

const recoveryWindow = 30 * 24 * time.Hour

type deleteSecretInput struct {
	secretRef

	RecoveryWindowInDays       *int
	ForceDeleteWithoutRecovery bool
}

func (e *Emulator) deleteSecret(s *secret, in *deleteSecretInput) (any, error) {
	now, window := e.now(), recoveryWindow
	if days := in.RecoveryWindowInDays; days != nil {
		window = time.Duration(*days) * 24 * time.Hour
	}
	switch {
	case in.ForceDeleteWithoutRecovery:
		window = 0
	case window < recoveryWindow*7/30 || window > recoveryWindow:
		return nil, invalidParameter("The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).")
	case s.scheduled():
		return nil, invalidRequest("You can't perform this operation on the secret because it was already scheduled for deletion.")
	}
	if len(s.replicas) > 0 {
		return nil, invalidRequest("You can't delete secret %s that still has replica regions.", s.name)
	}
	if in.ForceDeleteWithoutRecovery {
		e.remove(s)
	} else {
		s.deleteAt = now.Add(window)
	}
	return &secretName{ARN: s.arn, Name: s.name, DeletionDate: date(now.Add(window))}, nil
}

type restoreSecretInput struct{ secretRef }

func (*Emulator) restoreSecret(s *secret, _ *restoreSecretInput) (any, error) {
	s.deleteAt = time.Time{}
	return &secretName{ARN: s.arn, Name: s.name}, nil
}

// nothing is the empty answer of operations that return nothing.
type nothing struct{}

type tagResourceInput struct {
	secretRef

	Tags []tag
}

func (e *Emulator) tagResource(s *secret, in *tagResourceInput) (any, error) {
	tags := withTags(s.tags, in.Tags)
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	s.tags, s.changed = tags, e.now()
	return nothing{}, nil
}
