package emulator

import "slices"

// A ParameterOption sets other properties of a parameter than its value.
type ParameterOption func(*parameter)

// Secure makes a parameter a SecureString.
func Secure() ParameterOption { return func(p *parameter) { p.kind = typeSecureString } }

// List makes a parameter a StringList.
func List() ParameterOption { return func(p *parameter) { p.kind = typeStringList } }

// ParameterTags sets tags of the parameter; other tags stay.
func ParameterTags(tags map[string]string) ParameterOption {
	return func(p *parameter) { p.tags = withTags(p.tags, tagsOf(tags)) }
}

// PutParameter adds a version to a parameter and returns the version's number. It creates the parameter if
// necessary. It is not counted as a call, and has no size limit. Queues get the event of a call.
func (e *Emulator) PutParameter(name, value string, opts ...ParameterOption) (version int64) {
	defer e.parameterChange(name, "Update")
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parameters[name]
	if p == nil {
		p = &parameter{name: name, kind: typeString, tier: tierStandard, dataType: "text"}
		e.parameters[name] = p
	}
	for _, o := range opts {
		o(p)
	}
	p.put(value, e.now())
	return p.last
}

// LabelParameter moves a label to the current version of a parameter that PutParameter has created.
func (e *Emulator) LabelParameter(name, label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parameters[name]
	for _, v := range p.versions {
		v.labels = slices.DeleteFunc(v.labels, func(l string) bool { return l == label })
	}
	p.current().labels = append(p.current().labels, label)
}

// DeleteParameter deletes a parameter with all its versions.
func (e *Emulator) DeleteParameter(name string) { e.dropParameter(name) }
