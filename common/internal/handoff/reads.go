package handoff

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Reads describes what an operator has read for an object that another operator claims.
type Reads struct {
	// Version changes with the content.
	Version string `json:"version"`
	// Hash is the hash of the content, keyed with the uid of the object.
	Hash string `json:"hash"`
	// Entries hold, by SourceID, the version that was read, or Found or NotFound.
	Entries map[string]string `json:"entries"`
	// Request is the refresh request that was served last. Metadata is the hash of the spec, labels and annotations at
	// that time.
	Request  string `json:"request,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Labels are the labels of the Secret for the stores that were read.
	Labels []string `json:"labels,omitempty"`
	// At is the time of the last read of the provider, written at most once per policy.Heartbeat. Next is the time of
	// the next read.
	At   time.Time `json:"at"`
	Next time.Time `json:"next,omitzero"`
}

// Same reports whether both describe the same content, read for the same request.
func (r Reads) Same(o Reads) bool {
	return r.Hash == o.Hash && maps.Equal(r.Entries, o.Entries) && r.Request == o.Request && r.Metadata == o.Metadata &&
		slices.Equal(r.Labels, o.Labels)
}

// The entries for sources without a version.
const (
	Found    = "found"
	NotFound = "NotFound"
)

// SourceID identifies one read of one store. Every version must build the same ID, because two modules use it.
func SourceID(ref v1alpha1.StoreRef, r provider.Read) string {
	return Hash(ref.APIVersion, ref.Kind, ref.Name, r.Ref.Key, r.Ref.Version, strconv.FormatBool(r.Ref.Metadata),
		r.Search.Path, r.Search.Name, r.Search.Tags)
}

// ServesRead reports whether a part has what an object now wants of a source: read for this object, and for the
// requested refresh.
func (r Record) ServesRead(uid types.UID, id, request string) bool {
	if r.Reads == nil || r.UID != uid || request != "" && r.Reads.Request != request {
		return false
	}
	_, ok := r.Reads.Entries[id]
	return ok
}

// value is the encoding of a provider.Value in a part.
type value struct {
	Key      string                      `json:"key,omitempty"`
	Data     []byte                      `json:"data,omitempty"`
	Binary   map[string][]byte           `json:"binary,omitempty"`
	Further  map[string]provider.Further `json:"further,omitempty"`
	Version  string                      `json:"version,omitempty"`
	Metadata map[string]string           `json:"metadata,omitempty"`
}

// answer is the encoding of a provider.Answer in a part. The only error that it stores is a definite "does not exist".
type answer struct {
	Value    value   `json:"value,omitzero"`
	Found    []value `json:"found,omitempty"`
	NotFound string  `json:"notFound,omitempty"`
}

// maxEntry is the maximum length of a source's version in the annotation.
const maxEntry = 64

// encode returns the entry and the data to store for an answer: a value, or "does not exist". Any other error is
// returned.
func encode(r provider.Read, a provider.Answer) (entry string, data []byte, err error) {
	kept := answer{Value: value(a.Value)}
	entry = a.Value.Version
	for _, v := range a.Found {
		kept.Found = append(kept.Found, value(v))
	}
	switch {
	case provider.IsNotFound(a.Err):
		kept, entry = answer{NotFound: provider.Safe(a.Err).Message}, NotFound
		if kept.NotFound == "" {
			kept.NotFound = NotFound
		}
	case a.Err != nil:
		return "", nil, a.Err
	case r.Search != provider.Search{} && len(a.Found) == 0:
		entry = NotFound // Nothing matches, but the answer is complete.
	case entry == "" || len(entry) > maxEntry:
		entry = Found
	}
	// The order in which a provider answers has no meaning, and may change.
	slices.SortStableFunc(kept.Found, func(a, b value) int { return cmp.Compare(a.Key, b.Key) })
	data, err = json.Marshal(kept)
	return entry, data, errors.Wrap(err, "cannot encode the values that were read")
}

// Pack returns the data of a part with what was read of sources, and the entries for its Reads. It returns an error if
// a source has one other than "does not exist", or if the data is too much for one Secret.
func Pack(sources []render.Source, values render.Values) (data map[string][]byte, entries map[string]string, err error) {
	data, entries = map[string][]byte{}, map[string]string{}
	size := 0
	for _, src := range sources {
		id := SourceID(src.Store, src.Read)
		if entries[id], data[id], err = encode(src.Read, values(src)); err != nil {
			return nil, nil, err
		}
		size += len(id)*2 + len(data[id])
	}
	if most := corev1.MaxSecretSize - recordRoom; size > most {
		return nil, nil, provider.NewError(provider.Invalid,
			"the values to hand over to another module have %d bytes in total, and a Secret holds %d; read fewer or smaller secrets, or split the ExternalSecret", size, most)
	}
	return data, entries, nil
}

// recordRoom is the size in bytes reserved for the Record in a part.
const recordRoom = 64 << 10

// Content returns the hash input for the content of a part.
func Content(data map[string][]byte) [][]byte {
	var all [][]byte
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if k != recordKey {
			all = append(all, []byte(k), data[k])
		}
	}
	return all
}

// AnswerOf returns the stored answer of a source in a part; false if it is missing or cannot be decoded.
func AnswerOf(s *corev1.Secret, id string) (provider.Answer, bool) {
	raw, ok := s.Data[id]
	var kept answer
	if !ok || s.Type != Type || json.Unmarshal(raw, &kept) != nil {
		return provider.Answer{}, false
	}
	if kept.NotFound != "" {
		return provider.Answer{Err: provider.NewError(provider.NotFound, "%s", kept.NotFound)}, true
	}
	a := provider.Answer{Value: provider.Value(kept.Value)}
	for _, v := range kept.Found {
		a.Found = append(a.Found, provider.Value(v))
	}
	return a, true
}

// Serves reports whether a part has the values that an object now wants of a generator: made for this object, and for
// the requested refresh.
func (r Record) Serves(uid types.UID, ref v1alpha1.StoreRef, request string) bool {
	e, ok := r.Entries[ID(ref)]
	return ok && r.UID == uid && (request == "" || e.Request == request)
}

// Answer returns the values of a generator in a part, in the form of an answer to a read; false if there are none.
func Answer(s *corev1.Secret, ref v1alpha1.StoreRef) (provider.Answer, bool) {
	rec, ok := Of(s.Annotations)
	if !ok || s.Type != Type {
		return provider.Answer{}, false
	}
	v, ok := Decode(s.Data, ID(ref))
	if !ok {
		return provider.Answer{}, false
	}
	a := provider.Answer{Value: provider.Value{Version: rec.Entries[ID(ref)].Version}}
	all := v.All()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		a.Found = append(a.Found, provider.Value{Key: k, Data: all[k]})
	}
	return a, true
}
