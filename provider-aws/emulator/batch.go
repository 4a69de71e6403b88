package emulator

import (
	"errors"
	"fmt"
	"strings"
)

const maxBatch = 20

type batchGetSecretValueInput struct {
	SecretIDList []string `json:"SecretIdList"`
	Filters      []filter
	MaxResults   *int
	NextToken    string
}

func (in *batchGetSecretValueInput) secretIDs() []string { return in.SecretIDList }

func (in *batchGetSecretValueInput) check() error {
	if len(in.SecretIDList) > maxBatch {
		return badRequest("ValidationException", "1 validation error detected: Value '[%s]' at 'secretIdList' "+
			"failed to satisfy constraint: Member must have length less than or equal to %d",
			strings.Join(in.SecretIDList, ", "), maxBatch)
	}
	if (len(in.SecretIDList) == 0) == (len(in.Filters) == 0) {
		return invalidParameter("Either 'SecretIdList' or 'Filters' must be provided, but not both.")
	}
	if in.MaxResults != nil && len(in.Filters) == 0 {
		return invalidParameter("'Filters' not specified. 'Filters' must also be specified when 'MaxResults' is provided.")
	}
	return nil
}

type batchError struct {
	SecretID  string `json:"SecretId"`
	ErrorCode string
	Message   string
}

type batchGetSecretValueOutput struct {
	Errors       []batchError
	SecretValues []*secretValue
	NextToken    string `json:",omitempty"`

	query string
	at    []int // the position of each value in the list
	end   int
}

func (o *batchGetSecretValueOutput) cut(how PageFault, keep int) {
	o.SecretValues, o.NextToken = cutEntries(o.SecretValues, how, keep, func(i int) string {
		if i < len(o.at) {
			return encodeToken(o.query, o.at[i])
		}
		return encodeToken(o.query, o.end)
	})
}

func (e *Emulator) batchGetSecretValue(q *request, in *batchGetSecretValueInput) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := e.allow(q, "BatchGetSecretValue", ""); err != nil {
		return nil, err
	}
	if len(in.Filters) > 0 {
		return e.batchByFilters(q, in)
	}
	out := &batchGetSecretValueOutput{query: "batch" + fingerprint(in.SecretIDList)}
	at := 0
	if err := decodeToken(in.NextToken, out.query, &at); err != nil {
		return nil, err
	}
	e.fill(q, out, in.SecretIDList, max(at, 0))
	if out.end < len(in.SecretIDList) {
		out.NextToken = encodeToken(out.query, out.end)
	}
	return out, nil
}

// batchByFilters returns one page of the secrets that ListSecrets would find.
func (e *Emulator) batchByFilters(q *request, in *batchGetSecretValueInput) (any, error) {
	limit, err := pageSize(in.MaxResults, maxBatch)
	if err != nil {
		return nil, err
	}
	if err := e.allow(q, "ListSecrets", ""); err != nil {
		return nil, err
	}
	matches, err := compileFilters(in.Filters)
	if err != nil {
		return nil, err
	}
	out := &batchGetSecretValueOutput{query: "batch" + fingerprint(in.Filters)}
	at := 0
	if err := decodeToken(in.NextToken, out.query, &at); err != nil {
		return nil, err
	}
	names, seqs := e.namesAfter(at, limit+1, matches)
	e.fill(q, out, names[:min(limit, len(names))], 0)
	// From here on, positions refer to all secrets instead of this page.
	for i, n := range out.at {
		out.at[i] = seqs[n] - 1
	}
	done := out.end
	out.end = at
	if done > 0 {
		out.end = seqs[done-1]
	}
	if done < len(names) {
		out.NextToken = encodeToken(out.query, out.end)
	}
	return out, nil
}

// namesAfter returns the names and positions of up to limit matching secrets after a position, in order of
// creation.
func (e *Emulator) namesAfter(at, limit int, matches matcher) (names []string, seqs []int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	now := e.now()
	for _, s := range e.order {
		if len(names) == limit {
			break
		}
		if int(s.seq) <= at || s.deleted(now) || s.scheduled() || !matches(s) {
			continue
		}
		names, seqs = append(names, s.name), append(seqs, int(s.seq))
	}
	return names, seqs
}

// fill reads the ids from a position on, until all are read or the answer is large enough. A secret that cannot
// be read adds an error to the answer.
func (e *Emulator) fill(q *request, out *batchGetSecretValueOutput, ids []string, from int) {
	out.Errors, out.SecretValues = []batchError{}, []*secretValue{}
	size := 0
	for out.end = from; out.end < len(ids) && (size == 0 || size < e.maxBatchBytes); out.end++ {
		id := ids[out.end]
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
		out.SecretValues = append(out.SecretValues, v)
		out.at = append(out.at, out.end)
	}
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

// String omits the value, so that no printed answer shows it.
func (v *secretValue) String() string { return fmt.Sprintf("%s (%s)", v.ARN, v.VersionID) }
