package render

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Bounds of a property that is read as a path.
const (
	// maxPath is its length.
	maxPath = 512
	// maxOperators is how many modifiers and queries it has. Each of them goes over all that the one before has
	// left, and may make it larger by some bytes for each element.
	maxOperators = 8
	// maxPathSteps is what one path may take. At this size its work takes 100 MiB of memory at worst.
	maxPathSteps = 512 << 10
)

// growing matches the syntax of gjson by which a short path over a small secret yields gigabytes:
// modifiers that repeat or escape what they are given, documents put together from several paths,
// and literals. One property is one value; putting values together is a template's work.
var growing = regexp.MustCompile(`@(tostr|pretty|group|dig)|(^|[.|(\[])\s*[\[{]|(^|[.|])!`)

// Property takes one value out of a secret that holds JSON. A top-level key that is spelled exactly
// like the property wins; otherwise the property is a path in gjson syntax. Strings come without
// quotes, null as nothing, everything else as the JSON text that it is.
func Property(data []byte, property string) ([]byte, error) {
	d := &jsonValue{properties: []string{property}}
	d.parse(data)
	return d.property(property, newWork())
}

// A jsonValue is a secret of which properties are taken. It is checked and gone through once, however many.
type jsonValue struct {
	// properties are all that are taken of it; one may come twice.
	properties []string

	parsed, valid bool
	size          int
	root          gjson.Result
	// members are those of properties that are spelled like a top-level key, by their place in found.
	members map[string]int
	found   []gjson.Result
}

func (d *jsonValue) parse(data []byte) {
	d.parsed, d.valid, d.size = true, valid(data), len(data)
	if !d.valid {
		return
	}
	d.root = gjson.ParseBytes(data)
	if !d.root.IsObject() {
		return
	}
	const none = -1
	d.members = make(map[string]int, len(d.properties))
	for _, p := range d.properties {
		d.members[p] = none
	}
	d.root.ForEach(func(k, v gjson.Result) bool {
		if i, asked := d.members[k.Str]; asked && i == none { // Of two equal keys the first counts.
			d.members[k.Str] = len(d.found)
			d.found = append(d.found, v)
		}
		return len(d.found) < len(d.members)
	})
	maps.DeleteFunc(d.members, func(_ string, i int) bool { return i == none })
}

// property returns one of the properties, once the value is parsed.
func (d *jsonValue) property(property string, work *template.Budget) ([]byte, error) {
	if !d.valid {
		return nil, provider.NewError(provider.Invalid, "its value is not JSON, so it has no property %.64q; remove the property or store JSON", property)
	}
	if i, ok := d.members[property]; ok {
		return text(d.found[i]), nil
	}
	if len(property) > maxPath || growing.MatchString(property) || operators(property) > maxOperators {
		return nil, provider.NewError(provider.Invalid, "the property %.64q is not served: a path has at most %d characters, at most %d modifiers (@) and queries (#), none of the modifiers @tostr, @pretty, @group and @dig, and puts no documents together; name one value", property, maxPath, maxOperators)
	}
	steps := pathSteps(property, d.size)
	if steps > maxPathSteps {
		return nil, provider.NewError(provider.Invalid, "the property %.64q takes too much work over %d bytes; use fewer modifiers (@), queries (#) and wildcards (*), or a smaller secret", property, d.size)
	}
	if !work.Spend(steps) {
		return nil, errWork
	}
	v := d.root.Get(property)
	if !v.Exists() {
		return nil, provider.NewError(provider.NotFound, "it has no property %.64q", property)
	}
	return text(v), nil
}

func operators(path string) int { return strings.Count(path, "@") + strings.Count(path, "#") }

// pathSteps is what a path costs, as measured: each part of it goes over all of the document, by 4 ns for a
// byte; a query takes sixteen times as long, and a modifier up to 64 times.
func pathSteps(path string, size int) int {
	parts := 1 + strings.Count(path, ".") + strings.Count(path, "|")
	units := parts + 16*strings.Count(path, "#") + 64*strings.Count(path, "@")
	// A first and a last wildcard are tried once for each character. Each one between them is tried anew for
	// each place of the one before, up to a bound of gjson.
	tries := 1
	for range strings.Count(path, "*") - 2 {
		tries = min(tries*max(size, 1), 10_000)
	}
	if tries > 1 {
		units += 8 * parts * tries
	}
	return size * units / 64
}

// jsonSteps is what it costs to check a document and to go through its members.
func jsonSteps(size int) int { return 1 + size/16 }

// valid reports whether data is JSON. Unlike gjson's own check it bounds the depth, because what is
// nested without end eats the stack.
func valid(data []byte) bool { return json.Valid(data) }

// A KeyValue is one member of a JSON object.
type KeyValue struct {
	Key   string
	Value []byte
}

// Extract returns the members of a secret that holds a JSON object, in their order.
func Extract(data []byte) ([]KeyValue, error) {
	if !valid(data) {
		return nil, provider.NewError(provider.Invalid, "its value is not JSON; extract needs a JSON object")
	}
	doc := gjson.ParseBytes(data)
	if !doc.IsObject() {
		return nil, provider.NewError(provider.Invalid, "its value is JSON but not an object; extract needs a JSON object")
	}
	var kvs []KeyValue
	doc.ForEach(func(k, v gjson.Result) bool {
		kvs = append(kvs, KeyValue{Key: k.String(), Value: text(v)})
		return true
	})
	return kvs, nil
}

// text is what a value is in a Secret. null is an empty value, as in External Secrets Operator.
func text(v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return []byte(v.Str)
	case v.Type == gjson.Null:
		return []byte{}
	case v.Raw == "":
		return []byte(v.String()) // A count, as in hosts.#, stands nowhere in the text.
	}
	return []byte(v.Raw)
}
