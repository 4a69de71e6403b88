package emulator

import (
	"maps"
	"slices"
	"strings"
)

const (
	maxByPath    = 10
	maxDescribed = 50
)

// A parameterFilter selects parameters as documented at
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_ParameterStringFilter.html. Every filter
// must match, and for each one of its values.
type parameterFilter struct {
	Key    string
	Option string
	Values []string
}

// check rejects a filter that the emulator does not have.
func (f parameterFilter) check() error {
	key, _, _ := strings.Cut(f.Key, ":")
	options := map[string][]string{"tag": {"", "Equals", "BeginsWith"}, "Name": {"", "Equals", "BeginsWith", "Contains"}, "Path": {"", "Recursive", "OneLevel"}}
	if len(f.Values) == 0 || !slices.Contains(options[key], f.Option) {
		return badRequest("InvalidFilterKey", "The following filter key is not valid: %s. Verify the key and try again.", f.Key)
	}
	return nil
}

func (f parameterFilter) matches(p *parameter) bool {
	return slices.ContainsFunc(f.Values, func(v string) bool {
		if f.Key == "Path" {
			return below(p.name, v, f.Option == "Recursive")
		}
		return slices.ContainsFunc(f.values(p), func(text string) bool {
			switch f.Option {
			case "BeginsWith":
				return strings.HasPrefix(text, v)
			case "Contains":
				return strings.Contains(text, v)
			}
			return text == v
		})
	})
}

// values returns the texts of a parameter that a filter compares.
func (f parameterFilter) values(p *parameter) []string {
	if f.Key == "Name" {
		return []string{p.name}
	}
	var values []string
	for _, t := range p.tags {
		if "tag:"+t.Key == f.Key {
			values = append(values, t.Value)
		}
	}
	return values
}

// below reports whether a name is in a hierarchy. If recursive is set, it can be at any level.
func below(name, path string, recursive bool) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(path, "/")+"/")
	return ok && (recursive || !strings.Contains(rest, "/"))
}

// parameterQuery holds the fields that requests for lists of parameters share.
type parameterQuery struct {
	MaxResults       *int
	NextToken        string
	ParameterFilters []parameterFilter
}

// page returns the parameters of one page, and a function for the token of the page after the nth of them; 0 is
// the start of this page. The caller holds the lock.
func (e *Emulator) page(in parameterQuery, query any, atMost int, also func(*parameter) bool) (found []*parameter, more bool, token func(n int) string, err error) {
	limit, err := pageSize(in.MaxResults, atMost)
	if err != nil {
		return nil, false, nil, err
	}
	for _, f := range in.ParameterFilters {
		if err := f.check(); err != nil {
			return nil, false, nil, err
		}
	}
	bound := fingerprint(query)
	after, err := decodeToken[string](in.NextToken, bound)
	if err != nil {
		return nil, false, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(e.parameters)) {
		p := e.parameters[name]
		if name <= after || !also(p) || slices.ContainsFunc(in.ParameterFilters, func(f parameterFilter) bool { return !f.matches(p) }) {
			continue
		}
		if more = len(found) == limit; more {
			break
		}
		found = append(found, p)
	}
	return found, more, func(n int) string {
		if n == 0 {
			return encodeToken(bound, after)
		}
		return encodeToken(bound, found[n-1].name)
	}, nil
}

type getParametersByPathInput struct {
	parameterQuery

	Path           string
	Recursive      bool
	WithDecryption bool
}

func (in *getParametersByPathInput) secretIDs() []string { return []string{in.Path} }

type getParametersByPathOutput struct {
	Parameters []*parameterValue
	NextToken  string `json:",omitempty"`

	token func(int) string
}

func (o *getParametersByPathOutput) cut(how PageFault, keep int) {
	o.Parameters, o.NextToken = cutEntries(o.Parameters, how, keep, o.token)
}

func (e *Emulator) getParametersByPath(_ *request, in *getParametersByPathInput) (any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	found, more, token, err := e.page(in.parameterQuery, []any{in.Path, in.Recursive, in.ParameterFilters}, maxByPath, func(p *parameter) bool {
		return below(p.name, in.Path, in.Recursive)
	})
	if err != nil {
		return nil, err
	}
	out := &getParametersByPathOutput{Parameters: []*parameterValue{}, token: token}
	for _, p := range found {
		out.Parameters = append(out.Parameters, e.valueOf(p, p.current(), "", in.WithDecryption))
	}
	if more {
		out.NextToken = token(len(found))
	}
	return out, nil
}

type describeParametersInput struct {
	nameless
	parameterQuery
}

// parameterEntry describes a parameter without its value and tags.
type parameterEntry struct {
	ARN              string
	AllowedPattern   string `json:",omitempty"`
	DataType         string
	Description      string `json:",omitempty"`
	KeyID            string `json:"KeyId,omitempty"`
	LastModifiedDate *epoch
	Name             string
	Tier             string
	Type             string
	Version          int64
}

type describeParametersOutput struct {
	Parameters []*parameterEntry
	NextToken  string `json:",omitempty"`

	token func(int) string
}

func (o *describeParametersOutput) cut(how PageFault, keep int) {
	o.Parameters, o.NextToken = cutEntries(o.Parameters, how, keep, o.token)
}

func (e *Emulator) describeParameters(_ *request, in *describeParametersInput) (any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	found, more, token, err := e.page(in.parameterQuery, []any{"describe", in.ParameterFilters}, maxDescribed, func(*parameter) bool { return true })
	if err != nil {
		return nil, err
	}
	out := &describeParametersOutput{Parameters: []*parameterEntry{}, token: token}
	for _, p := range found {
		out.Parameters = append(out.Parameters, &parameterEntry{
			ARN: e.parameterARN(p.name), AllowedPattern: p.pattern, DataType: p.dataType, Description: p.description, KeyID: p.keyID,
			LastModifiedDate: date(p.current().modified), Name: p.name, Tier: p.tier, Type: p.kind, Version: p.last,
		})
	}
	if more {
		out.NextToken = token(len(found))
	}
	return out, nil
}
