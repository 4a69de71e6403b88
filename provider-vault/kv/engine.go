package kv

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// An engine implements the differences between the versions of the KV secrets engine.
type engine interface {
	// version is that of the engine, as in Vault's list of mounts.
	version() string
	// read returns the path of a secret at Vault, list that of a folder.
	read(mount, key string) string
	list(mount, folder string) string
	// query selects a version of a secret.
	query(version string) (url.Values, error)
	// value returns the Value of an answer. An answer without a value is Unavailable.
	value(ref provider.Ref, a session.Answer) (provider.Value, error)
	// isDeleted reports whether an answer with status 404 means that the secret is deleted.
	isDeleted(a session.Answer) bool

	writing
}

func engineOf(v v1alpha1.KVVersion) (engine, error) {
	switch v {
	case "", v1alpha1.KVv2:
		return kv2{}, nil
	case v1alpha1.KVv1:
		return kv1{}, nil
	}
	return nil, provider.NewError(provider.Invalid, "spec.version: %q is not valid; write v1 or v2", string(v))
}

// onlyVersion is the name of the only version that KV v1 stores.
const onlyVersion = "current"

// kv1 implements https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v1.
type kv1 struct{}

func (kv1) version() string                  { return "1" }
func (kv1) read(mount, key string) string    { return mount + "/" + key }
func (kv1) list(mount, folder string) string { return mount + "/" + folder }
func (kv1) isDeleted(session.Answer) bool    { return false }

func (kv1) query(version string) (url.Values, error) {
	if version != "" && version != onlyVersion {
		return nil, provider.NewError(provider.Invalid, "version %q: KV v1 has no versions; remove it", session.Shortened(version))
	}
	return nil, nil
}

func (kv1) value(ref provider.Ref, a session.Answer) (provider.Value, error) {
	data, err := session.Data[json.RawMessage](a)
	if err != nil {
		return provider.Value{}, lacking(ref)
	}
	return provider.Value{Key: ref.Key, Data: data, Version: onlyVersion}, objectIn(ref, data)
}

// kv2 implements https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2.
type kv2 struct{}

func (kv2) version() string                  { return "2" }
func (kv2) read(mount, key string) string    { return mount + "/data/" + key }
func (kv2) list(mount, folder string) string { return mount + "/metadata/" + folder }

var versionNumber = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)

func (kv2) query(version string) (url.Values, error) {
	switch {
	case version == "":
		return nil, nil
	case !versionNumber.MatchString(version):
		return nil, provider.NewError(provider.Invalid, "version %q: is not a version of KV v2; write a number such as 3", session.Shortened(version))
	}
	return url.Values{"version": {version}}, nil
}

// kv2Data is the data of an answer.
type kv2Data struct {
	Data     json.RawMessage `json:"data"`
	Metadata struct {
		Version  int64             `json:"version"`
		Deleted  string            `json:"deletion_time"`
		Destroy  bool              `json:"destroyed"`
		Metadata map[string]string `json:"custom_metadata"`
	} `json:"metadata"`
}

func (kv2) value(ref provider.Ref, a session.Answer) (provider.Value, error) {
	d, err := session.Data[kv2Data](a)
	if err != nil || d.Metadata.Version == 0 {
		return provider.Value{}, lacking(ref)
	}
	v := provider.Value{Key: ref.Key, Data: d.Data, Version: strconv.FormatInt(d.Metadata.Version, 10)}
	if ref.Metadata {
		v.Metadata = map[string]string{}
		for k, s := range d.Metadata.Metadata {
			v.Metadata[k] = s
		}
	}
	return v, objectIn(ref, d.Data)
}

func (kv2) isDeleted(a session.Answer) bool {
	d, err := session.Data[kv2Data](a)
	return err == nil && d.Metadata.Version > 0 && (d.Metadata.Deleted != "" || d.Metadata.Destroy)
}

// objectIn returns an error unless data is a JSON object.
func objectIn(ref provider.Ref, data json.RawMessage) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return lacking(ref)
	}
	return nil
}

func lacking(ref provider.Ref) error {
	return provider.NewError(provider.Unavailable, "%s: the response of Vault has no value", about(ref))
}

// notThere reports whether a 404 means that the object does not exist.
func notThere(r *session.Refusal) bool { return r.Status == http.StatusNotFound && r.Definite }
