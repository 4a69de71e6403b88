package client

import (
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// otpSuffix is the end of the name of the current one-time password of a field, as in the secret references of 1Password.
const otpSuffix = "?attribute=otp"

// severalHaveName is why a name of several properties is refused. A read of the whole item is refused with it, too.
const severalHaveName = "several fields or files have this name; read them in data by property: %s; for extract and the whole item, rename all but one in 1Password"

const (
	// typeOTP is the type of a field with the URI of a one-time password.
	typeOTP = "OTP"
	// typeConcealed is the type of a field that the apps hide.
	typeConcealed = "CONCEALED"
	// purposeNotes is the purpose of the note of an item.
	purposeNotes = "NOTES"
	// notesLabel is the label of the note.
	notesLabel = "notesPlain"
)

// tooLarge returns why a file is not read; empty if it is. The files before it count, too, so that one item is one answer.
func tooLarge(i *item, f entry) string {
	if f.Size > corev1.MaxSecretSize {
		return fmt.Sprintf("the file has %d bytes, and a Secret holds at most %d; store a smaller file", f.Size, corev1.MaxSecretSize)
	}
	var all int64
	for _, o := range i.Files {
		if o.Size <= corev1.MaxSecretSize {
			all += o.Size
		}
		if o.ID == f.ID && all > provider.MaxAnswer {
			return fmt.Sprintf("the item has more than %d bytes of files; store them in several items", provider.MaxAnswer)
		}
	}
	return ""
}

// A property is a field or a file of an item.
type property struct {
	id, label, section string
	data               []byte
	// file and note report whether it is a file, or the note of the item.
	file, note bool
	// otp is the current one-time password.
	otp string
	// refused is why it cannot be read.
	refused string
}

// names returns the names of a property, the best first.
func (p *property) names() []string {
	var all []string
	if p.label != "" {
		all = append(all, p.label)
	}
	if p.label != "" && p.section != "" {
		all = append(all, p.section+"."+p.label)
	}
	return append(all, p.id)
}

// propertiesOf returns the fields and the files of an item. contents are those of the files, by ID. An empty note is no property,
// because 1Password adds one to each item.
func propertiesOf(i *item, contents map[string][]byte) []*property {
	labels := map[string]string{}
	for _, s := range i.Sections {
		labels[s.ID] = s.Label
	}
	sectionOf := func(s *section) string {
		if s == nil {
			return ""
		}
		if s.Label != "" {
			return s.Label
		}
		return labels[s.ID]
	}
	var all []*property
	for _, f := range i.Fields {
		if isEmptyNote(f) {
			continue
		}
		p := &property{id: f.ID, label: f.Label, section: sectionOf(f.Section), data: []byte(f.Value), note: f.Purpose == purposeNotes}
		if f.Type == typeOTP {
			p.otp = f.TOTP
		}
		all = append(all, p)
	}
	for _, f := range i.Files {
		all = append(all, &property{id: f.ID, label: f.Name, section: sectionOf(f.Section), data: contents[f.ID], file: true, refused: tooLarge(i, f)})
	}
	return all
}

func isEmptyNote(f entry) bool { return f.Purpose == purposeNotes && f.Value == "" }

// An index finds properties by their names.
type index struct{ ids, labels, sections map[string][]*property }

func indexOf(all []*property) index {
	x := index{map[string][]*property{}, map[string][]*property{}, map[string][]*property{}}
	for _, p := range all {
		x.ids[p.id] = append(x.ids[p.id], p)
		x.labels[p.label] = append(x.labels[p.label], p)
		if p.section != "" {
			name := p.section + "." + p.label
			x.sections[name] = append(x.sections[name], p)
		}
	}
	return x
}

// owners returns the properties that have a name: that whose ID it is, or else those whose label it is, or else those whose section
// and label it is.
func (x index) owners(name string) []*property {
	for _, by := range []map[string][]*property{x.ids, x.labels, x.sections} {
		if some := by[name]; len(some) > 0 {
			return some
		}
	}
	return nil
}

// own returns the names that only one property has, and those that several have.
func (x index) own(p *property) (own, shared []string) {
	for _, name := range p.names() {
		switch some := x.owners(name); {
		case len(some) > 1:
			shared = append(shared, name)
		case some[0] == p && !slices.Contains(own, name):
			own = append(own, name)
		}
	}
	return own, shared
}

// best returns the best own name of each of some properties; the ID of one without.
func (x index) best(some []*property) (names []string) {
	for _, p := range some {
		own, _ := x.own(p)
		names = append(names, append(own, p.id)[0])
	}
	slices.Sort(names)
	return names
}

// member returns the name of a property in the JSON object of the item; empty if it is not in there.
func (x index) member(p *property) string {
	own, _ := x.own(p)
	if len(own) == 0 || p.refused != "" || !utf8.Valid(p.data) {
		return ""
	}
	return own[0]
}

// valueOf returns the value of an item. Each property is a member by the first of its names that no other one has, and has the
// others as further names. A name of several properties is refused.
func valueOf(key string, i *item, contents map[string][]byte) provider.Value {
	v := provider.Value{Key: key, Version: versionOf(i, contents), Binary: map[string][]byte{}, Further: map[string]provider.Further{}}
	text := map[string]string{}
	all := propertiesOf(i, contents)
	x := indexOf(all)
	for _, p := range all {
		own, shared := x.own(p)
		for _, name := range shared {
			if _, done := v.Further[name]; !done {
				v.Further[name] = provider.Further{Refused: fmt.Sprintf(severalHaveName, list(x.best(x.owners(name))))}
			}
		}
		for n, name := range own {
			switch {
			case p.refused != "":
				v.Further[name] = provider.Further{Refused: p.refused}
			case n > 0:
				v.Further[name] = provider.Further{Data: p.data}
			case utf8.Valid(p.data):
				text[name] = string(p.data)
			default:
				v.Binary[name] = p.data
			}
			if otp := name + otpSuffix; p.otp != "" && x.owners(otp) == nil {
				v.Further[otp] = provider.Further{Data: []byte(p.otp)}
			}
		}
	}
	v.Data = provider.EncodeJSON(text)
	return v
}

// versionOf returns a version of the values alone, unlike the version of 1Password, which changes with each tag. The hash also covers
// the IDs of all fields: a spec can name the item by its ID.
func versionOf(i *item, contents map[string][]byte) string {
	type part struct {
		ID, Section, Label string
		Value              []byte
	}
	var parts []part
	for _, p := range propertiesOf(i, contents) {
		parts = append(parts, part{p.id, p.section, p.label, p.data})
	}
	return provider.Fingerprint(i.Vault.ID+i.ID, parts)
}

// idOf returns a hash of the ID of an item, which is part of the key of versions.
func idOf(i *item) string { return provider.HashedID(i.ID) }

func idsOf(some []*property) []string {
	var ids []string
	for _, p := range some {
		ids = append(ids, p.id)
	}
	slices.Sort(ids)
	return ids
}
