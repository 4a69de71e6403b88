package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/internal/exactjson"
	member "github.com/direct-secrets/direct-secrets/common/internal/property"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Limits of a property that is a path.
const (
	// maxPath limits its length.
	maxPath = member.MaxLength
	// maxOperators limits its modifiers and queries. Each of them processes the whole result of the one before, and
	// can make it larger by some bytes for each element.
	maxOperators = 8
	// maxPathSteps limits the work of one path. At this size the work takes at most 100 MiB of memory.
	maxPathSteps = 512 << 10
)

// growing matches the syntax of gjson by which a short path over a small secret can have gigabytes as its result:
// modifiers that repeat or escape their input, documents built from several paths, and literals. A property is one
// value; use a template to combine values.
var growing = regexp.MustCompile(`@(tostr|pretty|group|dig)|(^|[.|(\[])\s*[\[{]|(^|[.|])!`)

// Property extracts one value from a secret that contains JSON. A top-level key equal to the property wins; otherwise
// the property is a path in gjson syntax. A string is returned without quotes, null as an empty value, and everything
// else as its JSON text.
func Property(data []byte, property string) ([]byte, error) {
	d := &jsonValue{properties: []string{property}}
	d.parse(data)
	return d.property(property, newWork())
}

// A jsonValue is a secret of which properties are extracted. It is validated and scanned only once.
type jsonValue struct {
	// properties are the extracted properties, possibly with duplicates.
	properties []string

	parsed, valid bool
	// why is why the value is not JSON, and fix what to do.
	why, fix string
	size     int
	root     gjson.Result
	// members has, for each property that equals a top-level key, the index of its value in found.
	members map[string]int
	found   []gjson.Result
	// twice are the properties that equal two top-level keys.
	twice map[string]bool
	// unique returns an error if a member anywhere occurs twice. It is computed once.
	unique func() error
}

func (d *jsonValue) parse(data []byte) {
	d.parsed, d.valid, d.size = true, valid(data), len(data)
	if !d.valid {
		d.why, d.fix = notJSON(data)
		return
	}
	d.root = gjson.ParseBytes(data)
	d.unique = sync.OnceValue(func() error { return exact(data) })
	if !d.root.IsObject() {
		return
	}
	const none = -1
	d.members = make(map[string]int, len(d.properties))
	for _, p := range d.properties {
		d.members[p] = none
	}
	d.root.ForEach(func(k, v gjson.Result) bool {
		switch i, asked := d.members[k.Str]; {
		case !asked:
		case i == none:
			d.members[k.Str] = len(d.found)
			d.found = append(d.found, v)
		case d.twice == nil:
			d.twice = map[string]bool{k.Str: true}
		default:
			d.twice[k.Str] = true
		}
		return true
	})
	maps.DeleteFunc(d.members, func(_ string, i int) bool { return i == none })
}

// property returns one of the properties of a parsed value.
func (d *jsonValue) property(property string, work *template.Budget) ([]byte, error) {
	if !d.valid {
		return nil, provider.NewError(provider.Invalid, "its value is not JSON%s, so it has no property %.64q; remove the property, or %s", d.why, property, d.fix)
	}
	if d.twice[property] {
		return nil, member.Twice(property)
	}
	if i, ok := d.members[property]; ok {
		return exactText(property, d.found[i])
	}
	v, err := d.path(property, work)
	if err != nil {
		return nil, err
	}
	if !v.Exists() {
		return nil, provider.NewError(provider.NotFound, "it has no property %.64q; correct the property, or add it to the remote secret", property)
	}
	return exactText(property, v)
}

// path returns the value at a path, which does not exist if there is none.
func (d *jsonValue) path(property string, work *template.Budget) (v gjson.Result, err error) {
	names, query := member.Split(property)
	if !query && len(property) <= maxPath {
		if err := d.spend(property, len(names)*d.size/64, work); err != nil {
			return v, err
		}
		var list bool
		if v, list, err = member.Walk(d.root, names); err != nil || !list {
			return v, err
		}
	}
	if len(property) > maxPath || growing.MatchString(property) || operators(property) > maxOperators {
		return v, provider.NewError(provider.Invalid, "the property %.64q is not supported: use at most %d characters and at most %d modifiers (@) and queries (#); do not use @tostr, @pretty, @group or @dig, and do not combine documents", property, maxPath, maxOperators)
	}
	if err := d.spend(property, pathSteps(property, d.size)+jsonSteps(d.size), work); err != nil {
		return v, err
	}
	if err := d.unique(); err != nil {
		return v, err
	}
	return d.root.Get(property), nil
}

// spend takes the steps of a path from the work that is left.
func (d *jsonValue) spend(property string, steps int, work *template.Budget) error {
	if steps > maxPathSteps {
		return provider.NewError(provider.Invalid, "the property %.64q takes too much work for a secret of %d bytes; use fewer modifiers (@), queries (#) and wildcards (*), or a smaller secret", property, d.size)
	}
	if !work.Spend(steps) {
		return errWork
	}
	return nil
}

func operators(path string) int { return strings.Count(path, "@") + strings.Count(path, "#") }

// pathSteps returns the measured cost of a path. Each of its parts scans the whole document, at 4 ns for each byte. A
// query takes sixteen times as long, and a modifier up to 64 times.
func pathSteps(path string, size int) int {
	parts := 1 + strings.Count(path, ".") + strings.Count(path, "|")
	units := parts + 16*strings.Count(path, "#") + 64*strings.Count(path, "@")
	// The first and the last wildcard are tried once for each character. Each one between them is tried for each
	// match of the one before, up to a limit of gjson.
	tries := 1
	for range strings.Count(path, "*") - 2 {
		tries = min(tries*max(size, 1), 10_000)
	}
	if tries > 1 {
		units += 8 * parts * tries
	}
	return size * units / 64
}

// jsonSteps returns the cost of validating a document and scanning its members.
func jsonSteps(size int) int { return 1 + size/16 }

// exact returns an error of class Invalid if a valid document can be read in more than one way.
func exact(data []byte) error {
	var twice *exactjson.DuplicateError
	switch err := exactjson.Check(data); {
	case errors.As(err, &twice):
		return member.Twice(twice.Name)
	case err != nil:
		return provider.NewError(provider.Invalid, "%s; correct it at the provider", err)
	}
	return nil
}

// exactText is Text, and refuses a string that gjson would change.
func exactText(name string, v gjson.Result) ([]byte, error) {
	if v.Type == gjson.String && exactjson.HalfSurrogate(v.Raw) {
		return nil, provider.NewError(provider.Invalid, "the property %.64q has half of a surrogate pair, such as \\ud800, which is not text; correct it at the provider", name)
	}
	return Text(v), nil
}

// valid reports whether data is JSON. Unlike gjson's own check it limits the depth, because endless nesting would
// exhaust the stack.
func valid(data []byte) bool { return json.Valid(data) }

// notJSON returns why data is not JSON, as part of a sentence, if its encoding shows that; and the fix. Editors and shells of
// Windows write such text.
func notJSON(data []byte) (why, fix string) {
	const utf8 = "store JSON as UTF-8 without a byte order mark"
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return ", because it begins with a byte order mark", utf8
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")), len(data) > 1 && (data[0] == 0) != (data[1] == 0):
		return ", because it is UTF-16 text", utf8
	}
	return "", "store JSON"
}

// A KeyValue is one member of a JSON object.
type KeyValue struct {
	Key   string
	Value []byte
}

// Extract returns the members of a secret that contains a JSON object, in their order.
func Extract(data []byte) ([]KeyValue, error) {
	if !valid(data) {
		why, fix := notJSON(data)
		return nil, provider.NewError(provider.Invalid, "its value is not JSON%s; %s, because extract needs a JSON object", why, fix)
	}
	doc := gjson.ParseBytes(data)
	if !doc.IsObject() {
		return nil, provider.NewError(provider.Invalid, "its value is JSON but not an object; extract needs a JSON object")
	}
	var kvs []KeyValue
	var err error
	doc.ForEach(func(k, v gjson.Result) bool {
		kv := KeyValue{Key: k.String()}
		kv.Value, err = exactText(kv.Key, v)
		kvs = append(kvs, kv)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(kvs))
	for _, kv := range kvs {
		if seen[kv.Key] {
			return nil, member.Twice(kv.Key)
		}
		seen[kv.Key] = true
	}
	return kvs, nil
}

// Text returns a JSON value as the value of a Secret. null is an empty value, as in External Secrets Operator.
func Text(v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return []byte(v.Str)
	case v.Type == gjson.Null:
		return []byte{}
	case v.Raw == "":
		return []byte(v.String()) // A count, as in hosts.#, has no text of its own.
	}
	return []byte(v.Raw)
}
