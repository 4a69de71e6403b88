package client

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A change is a part of a JSON patch, as Connect accepts it: "add" with the path /fields appends a field, and fields have their ID as
// index.
type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// A newField is a field without an ID.
type newField struct {
	Type    string `json:"type"`
	Purpose string `json:"purpose,omitempty"`
	Label   string `json:"label"`
	Value   string `json:"value"`
}

// fieldOf returns a field that the apps hide, or the note of the item.
func fieldOf(label, text string) newField {
	if label == notesLabel {
		return newField{"STRING", purposeNotes, label, text}
	}
	return newField{typeConcealed, "", label, text}
}

// membersOf returns the members of a value, all of which must be text.
func membersOf(data []byte) (map[string]string, error) {
	if len(data) > corev1.MaxSecretSize {
		return nil, provider.NewError(provider.Invalid, "the value has %d bytes, and an item is read up to %d; push less", len(data), corev1.MaxSecretSize)
	}
	members, ok := provider.DecodeStrings(data)
	if !ok {
		return nil, provider.NewError(provider.Invalid, "the value is not a JSON object of strings, which the fields of an item are; write a dot in a label as \\., such as tls\\.crt, set property, or push the whole Secret")
	}
	return members, nil
}

// newFields returns the fields for a value.
func newFields(key string, data []byte) ([]newField, error) {
	members, err := membersOf(data)
	if err != nil {
		return nil, named(key, err)
	}
	fields := []newField{}
	for _, label := range slices.Sorted(maps.Keys(members)) {
		if err := checkNew(label, members[label]); err != nil {
			return nil, named(key, err)
		}
		fields = append(fields, fieldOf(label, members[label]))
	}
	return fields, nil
}

// checkNew returns an error for a label and a text with which a field cannot be created.
func checkNew(label, text string) error {
	if label == notesLabel && text == "" {
		return emptyNote(label)
	}
	if !isText(label) || strings.HasSuffix(label, otpSuffix) {
		return provider.NewError(provider.Invalid, "property %s: is not the label of a new field; use at most %d bytes of text, without control characters and spaces at an end, and without %s", provider.Quoted(label), maxText, otpSuffix)
	}
	return nil
}

// emptyNote is the error for an empty text that the note of an item would get: an empty note is no property, so the next compare would
// not find it, and write again.
func emptyNote(name string) error {
	return provider.NewError(provider.Invalid, "property %s: is the note of the item, and a note without text counts as missing; push a text, or remove the property", provider.Quoted(name))
}

// changesOf returns the changes that give an item a value; nil keeps its own. The value has each property by its first own name, as in
// valueOf. Properties without an own name stay.
func changesOf(i *item, contents map[string][]byte, data []byte) (all []change, err error) {
	if data == nil {
		return nil, nil
	}
	members, err := membersOf(data)
	if err != nil {
		return nil, err
	}
	properties := propertiesOf(i, contents)
	x := indexOf(properties)
	for _, p := range properties {
		name := x.member(p)
		if name == "" {
			continue
		}
		text, keep := members[name]
		delete(members, name)
		if keep && text == string(p.data) {
			continue
		}
		if err := x.checkWrite(p, name, text, keep); err != nil {
			return nil, err
		}
		path := "/fields/" + pointer.Replace(p.id)
		if keep || p.note { // The note of an item stays, without text.
			all = append(all, change{"add", path + "/value", text})
		} else {
			all = append(all, change{Op: "remove", Path: path})
		}
	}
	for _, f := range i.Fields {
		if text, ok := members[f.Label]; ok && text != "" && isEmptyNote(f) && x.owners(f.Label) == nil {
			delete(members, f.Label)
			all = append(all, change{"add", "/fields/" + pointer.Replace(f.ID) + "/value", text})
		}
	}
	for _, label := range slices.Sorted(maps.Keys(members)) {
		if some := x.owners(label); len(some) > 0 {
			return nil, provider.NewError(provider.Invalid, "property %s: is also a name of other fields or files; use another name, or one of: %s", provider.Quoted(label), list(x.best(some)))
		}
		if err := checkNew(label, members[label]); err != nil {
			return nil, err
		}
		all = append(all, change{"add", "/fields", fieldOf(label, members[label])})
	}
	return all, nil
}

// checkWrite returns an error for a property that cannot get a text, or be removed if keep is false.
func (x index) checkWrite(p *property, name, text string, keep bool) error {
	switch {
	case p.file:
		return provider.NewError(provider.Invalid, "property %s: is a file, and Connect cannot write files; push to another property", provider.Quoted(name))
	case len(x.ids[p.id]) > 1: // The path of the change would name both.
		return provider.NewError(provider.Invalid, "property %s: another field of the item has the same ID, so Connect cannot change only one; replace the field by a new one in 1Password", provider.Quoted(name))
	case keep && p.note && text == "":
		return emptyNote(name)
	}
	return nil
}

// pointer escapes a part of a JSON pointer (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")
