package migrate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// onePasswordStore are the rules for a store of items that a Connect server returns.
var onePasswordStore = rules{
	"spec.provider.onepassword.connectHost":                          connectHost,
	"spec.provider.onepassword.vaults":                               vaultsInOrder,
	"spec.provider.onepassword.auth.secretRef.connectTokenSecretRef": secretKey("spec.auth.secretRef.connectTokenSecretRef", ""),
}

// connectHost moves the address of a Connect server.
func connectHost(f *field) {
	const to = "spec.connectHost"
	if f.node.Kind != yaml.ScalarNode || !isPlainHTTP(f.node.Value) {
		scalar(to)(f)
		return
	}
	f.changed(to, "the traffic is not encrypted, so allowPlainHTTP is set, and the condition Ready says so", "serve Connect with TLS, or check that a service mesh protects the traffic")
	f.out.put(f.at("spec.allowPlainHTTP"), nil, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
}

// vaultsInOrder moves the vaults, which External Secrets Operator searches in the order of their numbers.
func vaultsInOrder(f *field) {
	const to = "spec.vaults"
	if f.byAction(to) {
		return
	}
	if f.node.Kind != yaml.MappingNode || len(f.node.Content) == 0 {
		f.invalid("a mapping of vaults to numbers")
		return
	}
	type vault struct {
		node  *yaml.Node
		order int
	}
	var vaults []vault
	for name, number := range pairs(f.node) {
		order, err := strconv.Atoi(number.Value)
		if err != nil || number.Kind != yaml.ScalarNode {
			f.below(name, number, name.Value).unsupported("the order of the vaults is not known, because the value is not a number", "set the number, and convert it again")
			return
		}
		if slices.ContainsFunc(vaults, func(v vault) bool { return v.order == order }) {
			f.below(name, number, name.Value).unsupported("External Secrets Operator refuses two vaults with one number", "give each vault a number of its own, and convert it again")
			return
		}
		n := scalarNode(name.Value, name)
		n.LineComment, n.FootComment = cmp.Or(number.LineComment, name.LineComment), cmp.Or(number.FootComment, name.FootComment)
		vaults = append(vaults, vault{n, order})
	}
	slices.SortFunc(vaults, func(a, b vault) int { return cmp.Compare(a.order, b.order) })
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: f.node.Style, HeadComment: f.node.HeadComment, LineComment: f.node.LineComment, FootComment: f.node.FootComment}
	for _, v := range vaults {
		list.Content = append(list.Content, v.node)
	}
	f.node = list
	f.move(to, Finding{Verdict: Exact, Reason: "the vaults are in the order of their numbers"})
}

// finishOnePasswordStore reports what differs when items are found by name.
func finishOnePasswordStore(o *object, at []string) {
	o.add(Finding{Field: strings.Join(at, "."), Verdict: Changed, Reason: "titles are case-sensitive, and the ID of an item or field takes precedence over a title or label; External Secrets Operator ignores the case of titles, and knows no IDs", Todo: "check that each key is written as the title of its item"})
}

// itemKey moves the title of an item. Without a property, External Secrets Operator reads one field of it.
func (f *field) itemKey(to string) {
	scalar(to)(f)
	if !slices.Contains(f.path, "remoteRef") {
		f.add(Finding{Field: f.String(), To: (&field{path: f.at(to)}).String(), Verdict: Changed, Reason: "the fields and the files of the item become keys; External Secrets Operator has the files of a document, and the fields of another item", Todo: "check the keys of the Secret"})
		return
	}
	if n := f.sibling(1, "property"); n == nil || n.Value == "" {
		at := f.at(strings.TrimSuffix(to, "key") + "property")
		f.out.set("password", at...)
		f.add(Finding{To: (&field{path: at}).String(), Verdict: Changed, Reason: "without a property, External Secrets Operator reads the field password, or the first file of a document", Todo: "set property to the name of the file, if the item is a document"})
	}
}

// itemProperty moves the label of a field or the name of a file.
func (f *field) itemProperty(to string) {
	of, name, prefixed := strings.Cut(f.node.Value, "/")
	switch {
	case f.node.Kind != yaml.ScalarNode:
		f.invalid("a single value")
	case !slices.Contains(f.path, "remoteRef") && f.node.Value != "":
		f.unsupported("a property of extract is a JSON object here, and in External Secrets Operator the only key of the Secret", "read it as an entry of data")
	case f.node.Value == "":
		f.dropped("it is empty")
	case prefixed && (of == "field" || of == "file"):
		f.node = scalarNode(name, f.node)
		f.move(to, Finding{Verdict: Exact, Reason: "a name without " + of + "/ is that of a field or a file, and a name of several is refused"})
	default:
		f.exact(to)
	}
}

// itemVersion reports the version of an item.
func (f *field) itemVersion() {
	if f.node.Value == "" {
		f.dropped("it is empty")
		return
	}
	f.unsupported("External Secrets Operator refuses a version in 1Password", "remove it")
}

// findFields returns the rules for a search in 1Password; nil if it cannot be converted. External Secrets Operator makes a key of each
// field of the items that have a title, and this is an extract.
func (f *field) findFields() rules {
	const at, to = "spec.dataFrom[].find", "spec.dataFrom[].extract"
	tags, name := child(f.node, "tags"), text(f.node, "name", "regexp")
	switch {
	case tags != nil && !isNull(tags):
		f.below(nil, tags, "tags").unsupported("each item that is found is a key with a JSON object here, and in External Secrets Operator each field of it is a key", "name the items in extract")
		return nil
	case !slices.Contains([]string{"", ".*", "^.*$"}, name):
		f.below(nil, nil, "name.regexp").unsupported("the names of fields are not searched", "name the fields in data")
		return nil
	case text(f.node, "path") == "":
		f.unsupported("each item that is found is a key with a JSON object here, and in External Secrets Operator each field of it is a key", "name the items in extract")
		return nil
	}
	all := drop("all fields are read")
	return rules{
		at + ".path": func(f *field) {
			f.changed(to+".key", "the title is that of one item, which is extracted; External Secrets Operator reads all items with this title, of all vaults", "check the keys of the Secret")
		},
		at + ".name": all, at + ".name.regexp": all,
		at + ".conversionStrategy": oneOf(to+".conversionStrategy", conversions...),
		at + ".nullBytePolicy":     oneOf(to+".nullBytePolicy", "Ignore", "Fail"),
		at + ".decodingStrategy":   oneOf(to+".decodingStrategy", decodings...),
	}
}

// finishItemPush makes the property explicit that External Secrets Operator writes by default. i is the index of the entry, and kinds
// the number of Kinds of stores.
func (f *field) finishItemPush(entry *yaml.Node, i, kinds int) {
	path := append(strings.Split(f.specPath("spec.data"), "."), index(i), "match", "remoteRef", "property")
	to := (&field{path: path}).String()
	switch {
	case text(entry, "match", "secretKey") == "":
		f.refuse((&field{path: append(slices.Clone(path[:len(path)-2]), "secretKey")}).String(), "it is missing, and External Secrets Operator pushes no whole Secret to 1Password")
	case text(entry, "match", "remoteRef", "property") != "":
	case kinds > 1:
		f.add(Finding{Field: to, Verdict: Unsupported, Reason: "without a property, External Secrets Operator writes the field password in 1Password, and the whole value in other stores", Todo: "make a PushSecret for each provider"})
	default:
		f.out.set("password", path...)
		f.add(Finding{To: to, Verdict: Exact, Reason: "without a property, External Secrets Operator writes the field password"})
	}
}

// finishItemPushes reports what differs for all Secrets that are pushed to 1Password.
func (f *field) finishItemPushes() {
	f.add(Finding{Verdict: Changed, Reason: "titles and labels are case-sensitive, and a label of several fields is refused", Todo: "check that each key is written as the title of its item"})
	path := strings.Split(f.specPath("spec.dataTo"), ".")
	if to := child(f.object.node, path...); length(to) > 0 {
		f.add(Finding{Field: strings.Join(path, "."), Verdict: Unsupported, Reason: "an entry of dataTo names no property, and the value of an item is a JSON object of its fields", Todo: "name each key in data, with property: password"})
	}
}

// onePassword converts the settings of an item.
func (s *settings) onePassword(name string, value *yaml.Node) {
	if name != "tags" || value.Kind != yaml.SequenceNode {
		s.unknown(name, value)
		return
	}
	tags := &yaml.Node{Kind: yaml.MappingNode}
	for _, n := range value.Content {
		tag, text, _ := strings.Cut(n.Value, "=")
		if child(tags, tag) != nil {
			s.at(name, value).unsupported("a tag with a value replaces others of the same name", "name each tag once")
			return
		}
		to := scalarNode(text, n)
		to.Style = yaml.DoubleQuotedStyle
		tags.Content = append(tags.Content, scalarNode(tag, &yaml.Node{}), to)
	}
	s.tags(tags)
}
