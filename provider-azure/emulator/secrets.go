package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A version is one version of a secret.
type version struct {
	id          string
	value       string
	pem         string         // what an archive is converted to
	key         map[string]any // the JWK of a key
	contentType string
	tags        map[string]string
	enabled     bool
	notBefore   *time.Time
	expires     *time.Time
	created     time.Time
	updated     time.Time
}

type secret struct {
	name      string
	versions  []*version // the last one is current
	managed   bool
	deleted   *time.Time
	recovered *time.Time
}

// A vault has the secrets.
type vault struct {
	config

	mu      sync.Mutex
	secrets map[string]*secret // by name in lower case
	keys    map[string]*secret // likewise
	serial  int                // counts all created versions
}

var (
	secretName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)
	versionID  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// attributes are the attributes of a version in Key Vault's format. Times are in seconds.
type attributes struct {
	Enabled       *bool  `json:"enabled,omitempty"`
	NotBefore     *int64 `json:"nbf,omitempty"`
	Expires       *int64 `json:"exp,omitempty"`
	Created       *int64 `json:"created,omitempty"`
	Updated       *int64 `json:"updated,omitempty"`
	RecoveryLevel string `json:"recoveryLevel,omitempty"`
	RecoverDays   int    `json:"recoverableDays,omitempty"`
}

// A bundle is a secret with its value.
type bundle struct {
	Value       *string           `json:"value,omitempty"`
	ID          string            `json:"id"`
	ContentType string            `json:"contentType,omitempty"`
	Attributes  attributes        `json:"attributes"`
	Tags        map[string]string `json:"tags,omitempty"`
	Managed     bool              `json:"managed,omitempty"`
	RecoveryID  string            `json:"recoveryId,omitempty"`
	DeletedDate *int64            `json:"deletedDate,omitempty"`
	PurgeDate   *int64            `json:"scheduledPurgeDate,omitempty"`
}

// change is the body of a write.
type change struct {
	Value       *string            `json:"value"`
	ContentType *string            `json:"contentType"`
	Attributes  attributes         `json:"attributes"`
	Tags        *map[string]string `json:"tags"`
}

func unix(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.Unix()
	return &n
}

func fromUnix(n *int64) *time.Time {
	if n == nil {
		return nil
	}
	t := time.Unix(*n, 0)
	return &t
}

// bundle returns a version without its value. A list names no version.
func (s *vault) bundle(r *http.Request, of *secret, v *version, withVersion bool) *bundle {
	id := "https://" + strings.TrimSuffix(r.Host, defaultPort) + "/secrets/" + of.name
	if withVersion {
		id += "/" + v.id
	}
	level := "Recoverable+Purgeable"
	if s.purgeProtection {
		level = "Recoverable"
	}
	return &bundle{
		ID: id, ContentType: v.contentType, Tags: v.tags, Managed: of.managed,
		Attributes: attributes{
			Enabled: &v.enabled, NotBefore: unix(v.notBefore), Expires: unix(v.expires), Created: unix(&v.created), Updated: unix(&v.updated),
			RecoveryLevel: level, RecoverDays: 90,
		},
	}
}

// live reports whether a secret can be read.
func (of *secret) live(now time.Time) bool {
	return of != nil && of.deleted == nil && (of.recovered == nil || !now.Before(of.recovered.Add(RecoveryTime)))
}

// liveLocked returns a secret that can be read.
func (s *vault) liveLocked(name string) (*secret, *failure) {
	of := s.secrets[strings.ToLower(name)]
	if !of.live(s.now()) {
		return nil, notFound(name)
	}
	return of, nil
}

func (s *vault) versionLocked(r *http.Request) (*secret, *version, *failure) {
	of, failed := s.liveLocked(r.PathValue("name"))
	if failed != nil {
		return nil, nil, failed
	}
	v, failed := of.requested(r, notFound)
	return of, v, failed
}

// requested returns the version that a request names, or the current one.
func (of *secret) requested(r *http.Request, missing func(name string) *failure) (*version, *failure) {
	id := r.PathValue("version")
	if id == "" {
		return of.versions[len(of.versions)-1], nil
	}
	if !versionID.MatchString(id) {
		return nil, badParameter("The request URI contains an invalid version: " + id)
	}
	i := slices.IndexFunc(of.versions, func(v *version) bool { return v.id == id })
	if i < 0 {
		return nil, missing(of.name + "/" + id)
	}
	return of.versions[i], nil
}

func (s *vault) get(r *http.Request) (any, *failure) {
	if r.URL.Query().Has("outContentType") && s.convert != nil {
		s.convert()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, v, failed := s.versionLocked(r)
	if failed != nil {
		return nil, failed
	}
	if !v.enabled {
		return nil, &failure{status: http.StatusForbidden, code: "Forbidden", inner: "SecretDisabled", message: "Operation get is not allowed on a disabled secret."}
	}
	b := s.bundle(r, of, v, true)
	b.Value = &v.value
	switch to := r.URL.Query().Get("outContentType"); {
	case to == "":
	case to != TypePEM || v.contentType != TypeArchive:
		return nil, badParameter("The content cannot be converted to " + to)
	default:
		b.Value, b.ContentType = &v.pem, TypePEM
	}
	return b, nil
}

func (s *vault) list(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*bundle
	for _, key := range slices.Sorted(maps.Keys(s.secrets)) {
		if of := s.secrets[key]; of.live(s.now()) {
			all = append(all, s.bundle(r, of, of.versions[len(of.versions)-1], false))
		}
	}
	return s.paged(r, all)
}

// versions lists the versions of a secret. Like Key Vault it has an empty list for a secret that does not exist.
func (s *vault) versions(r *http.Request) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*bundle
	if of, failed := s.liveLocked(r.PathValue("name")); failed == nil {
		for _, v := range of.versions {
			all = append(all, s.bundle(r, of, v, true))
		}
	}
	return s.paged(r, all)
}

// A PutOption changes a Put.
type PutOption func(*secret, *version)

// Tags sets the tags of the version. Without this option it has those of the version before.
func Tags(tags map[string]string) PutOption {
	return func(_ *secret, v *version) { v.tags = maps.Clone(tags) }
}

// Disabled disables the version.
func Disabled() PutOption { return func(_ *secret, v *version) { v.enabled = false } }

// Expires sets the expiry of the version.
func Expires(at time.Time) PutOption { return func(_ *secret, v *version) { v.expires = &at } }

// NotBefore sets the activation of the version.
func NotBefore(at time.Time) PutOption { return func(_ *secret, v *version) { v.notBefore = &at } }

// Managed marks the secret as that of a certificate.
func Managed() PutOption { return func(s *secret, _ *version) { s.managed = true } }

// Put stores a value as the current version of a secret, and returns the ID of the version. It returns an error for a name or a value
// that Key Vault does not have. A deleted secret is replaced.
func (s *vault) Put(name string, data []byte, opts ...PutOption) (id string, err error) {
	switch {
	case !secretName.MatchString(name):
		return "", errors.Errorf("%q is not the name of a secret", name)
	case !utf8.Valid(data):
		return "", errors.New("Key Vault has only text")
	case len(data) > MaxValue:
		return "", errors.Errorf("a value of %d bytes is too large", len(data))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(s.secrets, name, string(data), opts).id, nil
}

// putLocked adds a version to an object, which it creates if it does not exist.
func (s *vault) putLocked(to map[string]*secret, name, value string, opts []PutOption) *version {
	of := to[strings.ToLower(name)]
	if of == nil || of.deleted != nil {
		of = &secret{name: name}
		to[strings.ToLower(name)] = of
	}
	v := s.addLocked(of, value)
	if n := len(of.versions); n > 1 {
		v.tags = of.versions[n-2].tags
	}
	for _, o := range opts {
		o(of, v)
	}
	return v
}

// addLocked adds an enabled version.
func (s *vault) addLocked(of *secret, value string) *version {
	s.serial++
	v := &version{id: fmt.Sprintf("%032x", s.serial), value: value, enabled: true, created: s.now(), updated: s.now()}
	of.versions = append(of.versions, v)
	return v
}

// Delete deletes a secret for good, if it exists.
func (s *vault) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.secrets, strings.ToLower(name))
}

func decode(r *http.Request) (change, *failure) {
	var c change
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(&c); err != nil {
		return c, badParameter("The body is not valid")
	}
	return c, nil
}
