package emulator

import (
	"net/http"
	"strings"
	"time"
)

func conflict(inner, text string) *failure {
	return &failure{status: http.StatusConflict, code: "Conflict", inner: inner, message: text}
}

// taken returns why a name cannot be written; nil if it can.
func (of *secret) taken(now time.Time) *failure {
	switch {
	case of == nil:
		return nil
	case of.deleted != nil && now.Before(of.deleted.Add(DeletionTime)):
		return conflict("ObjectIsBeingDeleted", "Secret "+of.name+" is currently being deleted and cannot be re-created; retry later.")
	case of.deleted != nil:
		return conflict("ObjectIsDeletedButRecoverable", "Secret "+of.name+" is currently in a deleted but recoverable state, and its name cannot be reused.")
	case of.recovered != nil && now.Before(of.recovered.Add(SettlingTime)):
		return conflict("ObjectIsBeingRecovered", "Secret "+of.name+" is currently being recovered and cannot be re-created; retry later.")
	}
	return nil
}

// set adds a version. Settings that the request omits are unset, not those of the version before.
func (s *vault) set(r *http.Request) (any, *failure) {
	name := r.PathValue("name")
	c, failed := decode(r)
	switch {
	case failed != nil:
		return nil, failed
	case !secretName.MatchString(name):
		return nil, badParameter("The request URI contains an invalid name: " + name)
	case c.Value == nil:
		return nil, badParameter("The request has no value")
	case len(*c.Value) > MaxValue:
		return nil, badParameter("The value is too long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.secrets[strings.ToLower(name)]
	if failed := of.taken(s.now()); failed != nil {
		return nil, failed
	}
	if of == nil {
		of = &secret{name: name}
		s.secrets[strings.ToLower(name)] = of
	}
	v := s.addLocked(of, *c.Value)
	v.apply(c)
	b := s.bundle(r, of, v, true)
	b.Value = &v.value
	return b, nil
}

// apply changes the settings that the request has.
func (v *version) apply(c change) {
	if c.ContentType != nil {
		v.contentType = *c.ContentType
	}
	if c.Tags != nil {
		v.tags = *c.Tags
	}
	if c.Attributes.Enabled != nil {
		v.enabled = *c.Attributes.Enabled
	}
	if c.Attributes.NotBefore != nil {
		v.notBefore = fromUnix(c.Attributes.NotBefore)
	}
	if c.Attributes.Expires != nil {
		v.expires = fromUnix(c.Attributes.Expires)
	}
}

func (s *vault) update(r *http.Request) (any, *failure) {
	c, failed := decode(r)
	if failed != nil {
		return nil, failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, v, failed := s.versionLocked(r)
	if failed != nil {
		return nil, failed
	}
	if s.keepsType && c.ContentType != nil && *c.ContentType == "" {
		c.ContentType = nil
	}
	v.apply(c)
	v.updated = s.now()
	return s.bundle(r, of, v, true), nil
}

func (s *vault) remove(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, failed := s.liveLocked(r.PathValue("name"))
	if failed != nil {
		return nil, failed
	}
	now := s.now()
	of.deleted = &now
	return s.deletedBundle(r, of), nil
}

func (s *vault) deletedBundle(r *http.Request, of *secret) *bundle {
	b := s.bundle(r, of, of.versions[len(of.versions)-1], true)
	purge := of.deleted.AddDate(0, 0, b.Attributes.RecoverDays)
	b.PurgeDate = unix(&purge)
	b.RecoveryID, b.DeletedDate = "https://"+strings.TrimSuffix(r.Host, defaultPort)+"/deletedsecrets/"+of.name, unix(of.deleted)
	return b
}

// deletedLocked returns a secret that is deleted and can be recovered.
func (s *vault) deletedLocked(name string) (*secret, *failure) {
	of := s.secrets[strings.ToLower(name)]
	if of == nil || of.deleted == nil || s.now().Before(of.deleted.Add(DeletionTime)) {
		return nil, &failure{status: http.StatusNotFound, code: "SecretNotFound", message: "Deleted Secret not found: " + name}
	}
	return of, nil
}

func (s *vault) deleted(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, failed := s.deletedLocked(r.PathValue("name"))
	if failed != nil {
		return nil, failed
	}
	return s.deletedBundle(r, of), nil
}

func (s *vault) recover(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, failed := s.deletedLocked(r.PathValue("name"))
	if failed != nil {
		return nil, notFound(r.PathValue("name"))
	}
	now := s.now()
	of.deleted, of.recovered = nil, &now
	return s.bundle(r, of, of.versions[len(of.versions)-1], true), nil
}

func (s *vault) purge(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, failed := s.deletedLocked(r.PathValue("name"))
	switch {
	case failed != nil:
		return nil, failed
	case s.purgeProtection:
		return nil, &failure{status: http.StatusForbidden, code: "Forbidden", inner: "ForbiddenByPolicy", message: "Operation purge is not allowed because purge protection is enabled for this vault."}
	}
	delete(s.secrets, strings.ToLower(of.name))
	return nil, nil
}
