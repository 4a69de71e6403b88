package emulator

import (
	"errors"
	"strings"
)

const (
	batchOperation = "BatchGetSecretValue"
	maxBatch       = 20
)

// batchGetSecretValueInput lists secrets. Filters are not emulated.
type batchGetSecretValueInput struct {
	SecretIDList []string `json:"SecretIdList"`
	NextToken    string
}

func (in *batchGetSecretValueInput) secretIDs() []string { return in.SecretIDList }

type batchError struct {
	SecretID  string `json:"SecretId"`
	ErrorCode string
	Message   string
}

type batchGetSecretValueOutput struct {
	Errors       []batchError
	SecretValues []*secretValue
	NextToken    string `json:",omitempty"`

	token func(int) string
}

func (o *batchGetSecretValueOutput) cut(how PageFault, keep int) {
	o.SecretValues, o.NextToken = cutEntries(o.SecretValues, how, keep, o.token)
}

// batchGetSecretValue reads the secrets from a position on, until all are read or the answer is large enough. A secret that cannot
// be read adds an error to the answer. The permission to call it is that for no secret; reading each one needs its own.
func (e *Emulator) batchGetSecretValue(q *request, in *batchGetSecretValueInput) (any, error) {
	ids := in.SecretIDList
	if len(ids) > maxBatch {
		return nil, badRequest("ValidationException", "1 validation error detected: Value '[%s]' at 'secretIdList' "+
			"failed to satisfy constraint: Member must have length less than or equal to %d", strings.Join(ids, ", "), maxBatch)
	}
	if len(ids) == 0 {
		return nil, invalidParameter("Either 'SecretIdList' or 'Filters' must be provided, but not both.")
	}
	query := "batch" + fingerprint(ids)
	next, err := decodeToken[int](in.NextToken, query)
	if err != nil {
		return nil, err
	}
	out := &batchGetSecretValueOutput{Errors: []batchError{}, SecretValues: []*secretValue{}}
	var at []int // the position of each value in the list
	for size := 0; next < len(ids) && (size == 0 || size < e.maxBatchBytes); next++ {
		id := ids[next]
		v, err := e.batchEntry(q, id)
		if errors.Is(err, errDropped) {
			continue
		}
		if err != nil {
			api := asAPIError(err)
			out.Errors = append(out.Errors, batchError{SecretID: id, ErrorCode: api.Code, Message: api.Message})
			continue
		}
		size += v.size()
		out.SecretValues, at = append(out.SecretValues, v), append(at, next)
	}
	at = append(at, next)
	out.token = func(i int) string { return encodeToken(query, at[i]) }
	if next < len(ids) {
		out.NextToken = encodeToken(query, next)
	}
	return out, nil
}

func (e *Emulator) batchEntry(q *request, id string) (*secretValue, error) {
	if err := e.entryFault(id); err != nil {
		return nil, err
	}
	if err := e.allow(q, "GetSecretValue", id); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.value(id, "", "")
}

func (v *secretValue) size() int {
	if v.SecretString != nil {
		return len(*v.SecretString)
	}
	return len(v.SecretBinary)
}
