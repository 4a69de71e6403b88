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
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Reads describes what an operator has read for an object that another one claims.
type Reads struct {
	// Version is another for other content.
	Version string `json:"version"`
	// Hash of the content, keyed with the uid of the object.
	Hash string `json:"hash"`
	// Entries hold, by SourceID, the version that was read, Found or NotFound.
	Entries map[string]string `json:"entries"`
	// Request is the refresh request that was served last, Metadata the hash of the spec, labels and annotations then.
	Request  string `json:"request,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Labels are those that the Secret bears for the stores that were read.
	Labels []string `json:"labels,omitempty"`
	// At is when the provider was read last, at most policy.Heartbeat behind; Next when it is read again.
	At   time.Time `json:"at"`
	Next time.Time `json:"next,omitzero"`
}

// Same reports whether both describe the same content, read for the same wish.
func (r Reads) Same(o Reads) bool {
	return r.Hash == o.Hash && maps.Equal(r.Entries, o.Entries) && r.Request == o.Request && r.Metadata == o.Metadata &&
		slices.Equal(r.Labels, o.Labels)
}

// What an entry says of a source without a version.
const (
	Found    = "found"
	NotFound = "NotFound"
)

// SourceID names one read of one store. It is the same in every version: two modules must agree on it.
func SourceID(ref v1alpha1.StoreRef, r provider.Read) string {
	return Hash(ref.APIVersion, ref.Kind, ref.Name, r.Ref.Key, r.Ref.Version, strconv.FormatBool(r.Ref.Metadata),
		r.Search.Path, r.Search.Name, r.Search.Tags)
}

// ServesRead reports whether a part has what an object wants of a source now: it was read for it, and after the
// refresh that it asks for.
func (r Record) ServesRead(uid types.UID, id, request string) bool {
	if r.Reads == nil || r.UID != uid || request != "" && r.Reads.Request != request {
		return false
	}
	_, ok := r.Reads.Entries[id]
	return ok
}

// value is a provider.Value as a part keeps it.
type value struct {
	Key      string            `json:"key,omitempty"`
	Data     []byte            `json:"data,omitempty"`
	Version  string            `json:"version,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// answer is a provider.Answer as a part keeps it. Only a definite "does not exist" is kept of errors.
type answer struct {
	Value    value   `json:"value,omitzero"`
	Found    []value `json:"found,omitempty"`
	NotFound string  `json:"notFound,omitempty"`
}

// A Read is what is kept of one source.
type Read struct {
	ID string
	// Entry is what Reads.Entries says of it.
	Entry string
	data  []byte
}

// maxEntry bounds what an annotation says of the version of one source.
const maxEntry = 64

// NewRead returns what is kept of the answer to a read: a value, or that there is none. Any other error is no
// answer.
func NewRead(ref v1alpha1.StoreRef, r provider.Read, a provider.Answer) (Read, error) {
	kept, entry := answer{Value: value(a.Value)}, a.Value.Version
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
		return Read{}, a.Err
	case r.Search != provider.Search{} && len(a.Found) == 0:
		entry = NotFound // Nothing is to be found, but the answer is complete.
	case entry == "" || len(entry) > maxEntry:
		entry = Found
	}
	// The order of a provider means nothing, and may change.
	slices.SortStableFunc(kept.Found, func(a, b value) int { return cmp.Compare(a.Key, b.Key) })
	raw, err := json.Marshal(kept)
	return Read{ID: SourceID(ref, r), Entry: entry, data: raw}, errors.Wrap(err, "cannot encode what was read")
}

// Pack returns the data of a part that keeps reads, and what its Reads say of them. There may be too much for
// one Secret.
func Pack(reads []Read) (data map[string][]byte, entries map[string]string, err error) {
	data, entries = map[string][]byte{}, map[string]string{}
	size := 0
	for _, r := range reads {
		data[r.ID], entries[r.ID] = r.data, r.Entry
		size += len(r.ID)*2 + len(r.data)
	}
	if most := corev1.MaxSecretSize - recordRoom; size > most {
		return nil, nil, provider.NewError(provider.Invalid,
			"what is read for another module is %d bytes in all as it is handed over, and a Secret holds %d; read fewer or smaller secrets there, or make two ExternalSecrets of it", size, most)
	}
	return data, entries, nil
}

// recordRoom is left for the Record in a part.
const recordRoom = 64 << 10

// Content returns what a hash of the content of a part is made of.
func Content(data map[string][]byte) [][]byte {
	var all [][]byte
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if k != recordKey {
			all = append(all, []byte(k), data[k])
		}
	}
	return all
}

// AnswerOf returns what a part keeps of a source; false if there is nothing that can be read.
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
