package kv

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// markKey is the key of the custom metadata with the mark of a provider.Writer.
const markKey = provider.Reserved + "/created-by"

// The limits of custom metadata follow
// https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2#create-update-metadata. The operator needs one
// key.
const (
	maxCustom      = 63
	maxCustomKey   = 128
	maxCustomValue = 512
)

// settings is the decoded metadata of a provider.Target. A field that is nil, or missing, leaves the secret's
// setting unchanged.
type settings struct {
	Custom      map[string]string `json:"customMetadata"`
	MaxVersions *int64            `json:"maxVersions"`
	CASRequired *bool             `json:"casRequired"`
	DeleteAfter *duration         `json:"deleteVersionAfter"`
}

// duration is a time in whole seconds, because Vault drops the rest.
type duration time.Duration

// UnmarshalJSON decodes durations such as 720h.
func (d *duration) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 || v%time.Second != 0 {
		return fmt.Errorf("deleteVersionAfter: %.64q is not a duration in whole seconds; write it as 720h or 90m", s)
	}
	*d = duration(v)
	return nil
}

func (kv1) settings(raw []byte) (settings, error) {
	if raw == nil {
		return settings{}, nil
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // Only an object has field names to report.
	return settings{}, provider.NewError(provider.Invalid, "metadata: KV v1 has no metadata; remove %.200q, or use a secrets engine of KV v2", slices.Sorted(maps.Keys(fields)))
}

// settings decodes metadata strictly, so that no unknown field is silently ignored.
func (kv2) settings(raw []byte) (settings, error) {
	var s settings
	if err := provider.DecodeMetadata(raw, &s, "customMetadata (a map of strings), maxVersions, casRequired and deleteVersionAfter"); err != nil {
		return settings{}, err
	}
	return s, s.check()
}

// check rejects metadata that Vault would reject, or that could be confused with a mark.
func (s settings) check() error {
	if n := len(s.Custom); n > maxCustom {
		return provider.NewError(provider.Invalid, "metadata.customMetadata: has %d keys, at most %d are allowed; remove some", n, maxCustom)
	}
	err := provider.CheckSettings("customMetadata", s.Custom, func(key, value string) (wrong string) {
		switch {
		case key == "" || len(key) > maxCustomKey || !readable(key):
			return fmt.Sprintf("must have 1 to %d bytes, all of them printable", maxCustomKey)
		case value == "" || len(value) > maxCustomValue || !readable(value):
			return fmt.Sprintf("must have a value of 1 to %d bytes, all of them printable", maxCustomValue)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if n := s.MaxVersions; n != nil && (*n < 0 || *n > math.MaxInt32) {
		return provider.NewError(provider.Invalid, "metadata.maxVersions: %d is not valid; write 0 for the default of the secrets engine, or a greater number", *n)
	}
	return nil
}

func readable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// drift returns the names of the settings that differ from those of a secret.
func (s settings) drift(has settings) (drift []string) {
	drift = provider.Differing("customMetadata", s.Custom, has.Custom)
	if differs(s.MaxVersions, has.MaxVersions) {
		drift = append(drift, "maxVersions")
	}
	if differs(s.CASRequired, has.CASRequired) {
		drift = append(drift, "casRequired")
	}
	if differs(s.DeleteAfter, has.DeleteAfter) {
		drift = append(drift, "deleteVersionAfter")
	}
	return drift
}

func differs[T comparable](want, has *T) bool {
	return want != nil && (has == nil || *want != *has)
}

// drifted returns only the settings that have drifted and need an update.
func (s settings) drifted(drift []string) settings {
	s.Custom = maps.Clone(s.Custom)
	maps.DeleteFunc(s.Custom, func(k, _ string) bool { return !slices.Contains(drift, "customMetadata."+k) })
	if !slices.Contains(drift, "maxVersions") {
		s.MaxVersions = nil
	}
	if !slices.Contains(drift, "casRequired") {
		s.CASRequired = nil
	}
	if !slices.Contains(drift, "deleteVersionAfter") {
		s.DeleteAfter = nil
	}
	return s
}

func (s settings) empty() bool {
	return len(s.Custom) == 0 && s.MaxVersions == nil && s.CASRequired == nil && s.DeleteAfter == nil
}

// marked returns the settings of a new secret, with the mark.
func (s settings) marked(mark string) settings {
	s.Custom = provider.Merged(map[string]string{markKey: mark}, s.Custom)
	return s
}

// body returns the settings in Vault's format. Custom metadata is added to the present entries, which are nil for a patch.
func (s settings) body(there map[string]string) map[string]any {
	body := map[string]any{}
	if len(s.Custom) > 0 {
		custom := map[string]any{}
		for _, from := range []map[string]string{there, s.Custom} {
			for k, v := range from {
				custom[k] = v
			}
		}
		switch { // Vault accepts no empty mark. null removes it from a patch.
		case custom[markKey] == "" && there == nil:
			custom[markKey] = nil
		case custom[markKey] == "":
			delete(custom, markKey)
		}
		body["custom_metadata"] = custom
	}
	if s.MaxVersions != nil {
		body["max_versions"] = *s.MaxVersions
	}
	if s.CASRequired != nil {
		body["cas_required"] = *s.CASRequired
	}
	if s.DeleteAfter != nil {
		body["delete_version_after"] = time.Duration(*s.DeleteAfter).String()
	}
	return body
}

// kv2Metadata is the metadata that KV v2 stores for a secret, without its values.
type kv2Metadata struct {
	Created     string                `json:"created_time"`
	Current     int64                 `json:"current_version"`
	Versions    map[string]kv2Version `json:"versions"`
	Custom      map[string]string     `json:"custom_metadata"`
	MaxVersions int64                 `json:"max_versions"`
	CASRequired bool                  `json:"cas_required"`
	DeleteAfter string                `json:"delete_version_after"`
}

type kv2Version struct {
	Created   string `json:"created_time"`
	Deleted   string `json:"deletion_time"`
	Destroyed bool   `json:"destroyed"`
}

func (m kv2Metadata) version() kv2Version { return m.Versions[strconv.FormatInt(m.Current, 10)] }

// token returns a text that changes whenever the current value changes. The time of a deletion can be in the
// future.
func (m kv2Metadata) token() string {
	v := m.version()
	return fmt.Sprintf("%d %s %s %t", m.Current, v.Created, v.Deleted, v.Destroyed)
}

// has reports whether a version that was read is the current one of this secret.
func (m kv2Metadata) has(a session.Answer) bool {
	d, err := session.Data[struct {
		Metadata kv2Version `json:"metadata"`
	}](a)
	return err == nil && d.Metadata == m.version()
}

func (m kv2Metadata) settings(key string) (settings, error) {
	after, err := time.ParseDuration(m.DeleteAfter)
	if err != nil {
		return settings{}, provider.NewError(provider.Unavailable, "%s: the response of Vault has no metadata", about(provider.Ref{Key: key}))
	}
	return settings{m.Custom, &m.MaxVersions, &m.CASRequired, (*duration)(&after)}, nil
}
