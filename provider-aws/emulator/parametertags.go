package emulator

// A resourceRef names the resource that is tagged. For a parameter it is the name, not the ARN.
type resourceRef struct {
	ResourceID   string `json:"ResourceId"`
	ResourceType string
}

func (r *resourceRef) secretIDs() []string { return []string{r.ResourceID} }

// tagged returns the parameter that is tagged. The caller holds the lock.
func (e *Emulator) tagged(r resourceRef) (*parameter, error) {
	if p := e.parameters[r.ResourceID]; p != nil && r.ResourceType == "Parameter" {
		return p, nil
	}
	return nil, badRequest("InvalidResourceId", "The resource ID is not valid.")
}

type listTagsForResourceInput struct{ resourceRef }

type listTagsForResourceOutput struct{ TagList []tag }

func (e *Emulator) listTagsForResource(_ *request, in *listTagsForResourceInput) (any, error) {
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

func (e *Emulator) addTagsToResource(_ *request, in *addTagsToResourceInput) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.tagged(in.resourceRef)
	if err != nil {
		return nil, err
	}
	tags := withTags(p.tags, in.Tags)
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	p.tags = tags
	return nothing{}, nil
}
