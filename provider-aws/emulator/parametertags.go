package emulator

import (
	"slices"
	"strconv"
	"strings"
)

type labelParameterVersionInput struct {
	parameterRef

	Labels           []string
	ParameterVersion int64
}

type labelParameterVersionOutput struct {
	InvalidLabels    []string
	ParameterVersion int64
}

// labelParameterVersion moves labels to a version. The answer lists invalid labels, which is not an error.
func (e *Emulator) labelParameterVersion(q *request, in *labelParameterVersionInput) (any, error) {
	if err := checkLength("labels", len(in.Labels), 1, maxParameterLabels); err != nil {
		return nil, err
	}
	if err := e.allow(q, "LabelParameterVersion", in.Name); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parameters[in.Name]
	if p == nil {
		return nil, badRequest("ParameterNotFound", "")
	}
	v := p.current()
	if in.ParameterVersion != 0 {
		if v = p.pick(strconv.FormatInt(in.ParameterVersion, 10)); v == nil {
			return nil, badRequest("ParameterVersionNotFound", "Systems Manager could not find version %d of %s. Verify the version and try again.", in.ParameterVersion, p.name)
		}
	}
	out := &labelParameterVersionOutput{InvalidLabels: []string{}, ParameterVersion: v.number}
	fresh := 0
	for _, l := range in.Labels {
		if !slices.Contains(v.labels, l) {
			fresh++
		}
	}
	if len(v.labels)+fresh > maxParameterLabels {
		return nil, badRequest("ParameterVersionLabelLimitExceeded", "A parameter version can have a maximum of %d labels.", maxParameterLabels)
	}
	for _, l := range in.Labels {
		lower := strings.ToLower(l)
		if !parameterLabel.MatchString(l) || strings.HasPrefix(lower, "aws") || strings.HasPrefix(lower, "ssm") {
			out.InvalidLabels = append(out.InvalidLabels, l)
			continue
		}
		p.label(l, v)
	}
	return out, nil
}

// label moves a label from the version that has it to another.
func (p *parameter) label(label string, to *parameterVersion) {
	for _, v := range p.versions {
		v.labels = slices.DeleteFunc(v.labels, func(l string) bool { return l == label })
	}
	to.labels = append(to.labels, label)
}

// A resourceRef names the resource that is tagged. For a parameter it is the name, not the ARN.
type resourceRef struct {
	ResourceID   string `json:"ResourceId"`
	ResourceType string
}

func (r *resourceRef) secretIDs() []string { return []string{r.ResourceID} }

// tagged returns the parameter that is tagged. The caller holds the lock.
func (e *Emulator) tagged(r resourceRef) (*parameter, error) {
	if r.ResourceType != "Parameter" {
		return nil, badRequest("InvalidResourceType", "The resource type is not valid.")
	}
	if p := e.parameters[r.ResourceID]; p != nil {
		return p, nil
	}
	return nil, badRequest("InvalidResourceId", "The resource ID is not valid.")
}

type listTagsForResourceInput struct{ resourceRef }

type listTagsForResourceOutput struct{ TagList []tag }

func (e *Emulator) listTagsForResource(q *request, in *listTagsForResourceInput) (any, error) {
	if err := e.allow(q, "ListTagsForResource", in.ResourceID); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.tagged(in.resourceRef)
	if err != nil {
		return nil, err
	}
	return &listTagsForResourceOutput{append([]tag{}, p.tags...)}, nil
}

type addTagsToResourceInput struct {
	resourceRef

	Tags []tag
}

func (e *Emulator) addTagsToResource(q *request, in *addTagsToResourceInput) (any, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := e.allow(q, "AddTagsToResource", in.ResourceID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.tagged(in.resourceRef)
	if err != nil {
		return nil, err
	}
	tags := withTags(p.tags, in.Tags)
	if len(tags) > maxTags {
		return nil, badRequest("TooManyTagsError", "The number of tags on a parameter can't be more than %d.", maxTags)
	}
	p.tags = tags
	return struct{}{}, nil
}

type removeTagsFromResourceInput struct {
	resourceRef

	TagKeys []string
}

func (e *Emulator) removeTagsFromResource(q *request, in *removeTagsFromResourceInput) (any, error) {
	if err := e.allow(q, "RemoveTagsFromResource", in.ResourceID); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.tagged(in.resourceRef)
	if err != nil {
		return nil, err
	}
	p.tags = slices.DeleteFunc(slices.Clone(p.tags), func(t tag) bool { return slices.Contains(in.TagKeys, t.Key) })
	return struct{}{}, nil
}
