package emulator

import (
	"cmp"
	"errors"
	"maps"
	"slices"
)

// systemsManager is the service with the parameters. Its other operations are not emulated.
var systemsManager = &jsonService{scope: "ssm", target: "AmazonSSM.", operations: map[string]operation{
	"AddTagsToResource":   handle((*Emulator).addTagsToResource),
	"DeleteParameter":     handle((*Emulator).deleteParameter),
	"DescribeParameters":  handle((*Emulator).describeParameters),
	"GetParameter":        handle((*Emulator).getParameter),
	"GetParameters":       handle((*Emulator).getParameters),
	"GetParametersByPath": handle((*Emulator).getParametersByPath),
	"ListTagsForResource": handle((*Emulator).listTagsForResource),
	"PutParameter":        handle((*Emulator).putParameter),
}}

// parameterRef is the field of a request that names one parameter.
type parameterRef struct{ Name string }

func (r *parameterRef) secretIDs() []string { return []string{r.Name} }

// parameterValue is one parameter with its value.
type parameterValue struct {
	ARN              string
	DataType         string
	LastModifiedDate *epoch
	Name             string
	Selector         string `json:",omitempty"`
	Type             string
	Value            string
	Version          int64
}

// valueOf returns a version as an answer. Without decryption the value of a SecureString is unusable.
func (e *Emulator) valueOf(p *parameter, v *parameterVersion, selector string, decrypt bool) *parameterValue {
	out := &parameterValue{
		ARN: e.parameterARN(p.name), DataType: p.dataType, LastModifiedDate: date(v.modified),
		Name: p.name, Type: p.kind, Value: v.value, Version: v.number,
	}
	if selector != "" {
		out.Selector = ":" + selector
	}
	if p.kind == typeSecureString && !decrypt {
		out.Value = "AQICAH" + hashString([]byte(v.value))
	}
	return out
}

// readParameter reads one version for a caller.
func (e *Emulator) readParameter(q *request, id string, decrypt bool) (*parameterValue, error) {
	if err := checkParameterID(id); err != nil {
		return nil, err
	}
	name, selector := e.selected(id)
	e.mu.RLock()
	defer e.mu.RUnlock()
	p := e.parameters[name]
	if p == nil {
		return nil, badRequest("ParameterNotFound", "")
	}
	v := p.pick(selector)
	if v == nil {
		return nil, badRequest("ParameterVersionNotFound",
			"Systems Manager could not find version %s of %s. Verify the version and try again.", selector, p.name)
	}
	if decrypt && p.kind == typeSecureString && q.caller.denies("kms:Decrypt", p.name) {
		return nil, errNoKey
	}
	return e.valueOf(p, v, selector, decrypt), nil
}

// errNoKey is the error for a caller who is not allowed to use the KMS key of a parameter.
var errNoKey = badRequest("AccessDeniedException", "The ciphertext refers to a customer master key that does not exist, "+
	"does not exist in this region, or you are not allowed to access. (Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException)")

type getParameterInput struct {
	parameterRef

	WithDecryption bool
}

type getParameterOutput struct{ Parameter *parameterValue }

func (e *Emulator) getParameter(q *request, in *getParameterInput) (any, error) {
	v, err := e.readParameter(q, in.Name, in.WithDecryption)
	if err != nil {
		return nil, err
	}
	return &getParameterOutput{v}, nil
}

const maxParameterBatch = 10

type getParametersInput struct {
	Names          []string
	WithDecryption bool
}

func (in *getParametersInput) secretIDs() []string { return in.Names }

type getParametersOutput struct {
	InvalidParameters []string
	Parameters        []*parameterValue
}

// getParameters returns the parameters in alphabetical order, once for each parameter and selector. One that
// the caller is not allowed to read fails the whole call. One that does not exist, or cannot be read, is
// invalid.
func (e *Emulator) getParameters(q *request, in *getParametersInput) (any, error) {
	if err := checkLength("names", len(in.Names), 1, maxParameterBatch); err != nil {
		return nil, err
	}
	out := &getParametersOutput{InvalidParameters: []string{}, Parameters: []*parameterValue{}}
	found := map[string]*parameterValue{}
	for _, id := range in.Names {
		v, err := e.parameterEntry(q, id, in.WithDecryption)
		switch {
		case err == nil:
			found[v.Name+v.Selector] = v
		case errors.Is(err, errDropped):
		case errors.Is(err, errNoKey):
			return nil, err
		case !slices.Contains(out.InvalidParameters, id):
			out.InvalidParameters = append(out.InvalidParameters, id)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out.Parameters = append(out.Parameters, found[key])
	}
	return out, nil
}

func (e *Emulator) parameterEntry(q *request, id string, decrypt bool) (*parameterValue, error) {
	if err := e.entryFault(id); err != nil {
		return nil, err
	}
	return e.readParameter(q, id, decrypt)
}

// putParameterInput is the input for a new parameter, or a new version of one.
type putParameterInput struct {
	parameterRef

	AllowedPattern string
	DataType       string
	Description    string
	KeyID          string `json:"KeyId"`
	Overwrite      bool
	Tags           []tag
	Tier           string
	Type           string
	Value          string
}

type putParameterOutput struct {
	Tier    string
	Version int64
}

func (e *Emulator) putParameter(_ *request, in *putParameterInput) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parameters[in.Name]
	if p != nil && !in.Overwrite {
		return nil, badRequest("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
	}
	changed := parameter{name: in.Name, kind: in.Type, dataType: "text", tags: in.Tags}
	if p != nil {
		changed = *p
	}
	if err := in.change(&changed); err != nil {
		return nil, err
	}
	changed.put(in.Value, e.now())
	e.parameters[in.Name] = &changed
	return &putParameterOutput{Tier: changed.tier, Version: changed.last}, nil
}

// change updates everything but the value.
func (in *putParameterInput) change(p *parameter) error {
	if p.kind == "" {
		return badRequest("ValidationException", "A parameter type is required when you create a parameter.")
	}
	if in.Type != "" && in.Type != p.kind {
		return badRequest("HierarchyTypeMismatchException", "Parameter Store doesn't support changing a parameter type in a hierarchy.")
	}
	tier, err := in.tier(p.tier)
	if err != nil {
		return err
	}
	p.tier = tier
	p.dataType, p.description = cmp.Or(in.DataType, p.dataType), cmp.Or(in.Description, p.description)
	p.pattern = cmp.Or(in.AllowedPattern, p.pattern)
	if p.kind == typeSecureString {
		// By the documentation of PutParameter, a call without a key means the default key, also for an
		// existing parameter.
		p.keyID = cmp.Or(in.KeyID, "alias/aws/ssm")
	}
	return nil
}

type deleteParameterInput struct{ parameterRef }

func (e *Emulator) deleteParameter(_ *request, in *deleteParameterInput) (any, error) {
	if !e.dropParameter(in.Name) {
		return nil, badRequest("ParameterNotFound", "")
	}
	return nothing{}, nil
}

func (e *Emulator) dropParameter(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.parameters[name]
	delete(e.parameters, name)
	return ok
}
