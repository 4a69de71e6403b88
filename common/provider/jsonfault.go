package provider

import (
	"regexp"
	"strings"
)

// mismatch matches the text of an error about a JSON value of a wrong type. The types of sigs.k8s.io/json for it are internal.
var mismatch = regexp.MustCompile(`cannot unmarshal (\w+).* into Go (?:struct field [^.]*\.(\S+)|value) of type (\S+)`)

// jsonTypes are JSON values as users know them, by the names of Go's JSON package and by Go types.
var jsonTypes = map[string]string{
	"string": "a text", "bool": "true or false", "number": "a number", "array": "a list", "object": "an object",
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "float64": "a number",
}

// JSONFault returns what is wrong with JSON that could not be decoded, and the path of the field; "" for the value as a whole. It
// says so in terms of the document: errors of Go's JSON packages name Go types.
func JSONFault(err error) (path, fault string) {
	m := mismatch.FindStringSubmatch(err.Error())
	if m == nil {
		text := err.Error()
		if _, after, found := strings.Cut(text, "json: "); found {
			text = after
		}
		return "", text
	}
	return fieldOf(m[2]), "is " + jsonTypes[m[1]] + expected(m[3])
}

// fieldOf returns a path without the names of embedded Go types, which begin with a capital letter.
func fieldOf(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		if name != "" && !strings.ContainsAny(name[:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

func expected(goType string) string {
	goType = strings.TrimLeft(goType, "*")
	want := jsonTypes[goType]
	switch {
	case strings.HasPrefix(goType, "[]"):
		want = "a list"
	case strings.HasPrefix(goType, "map["):
		want = "an object"
	case want == "":
		return ", which is not allowed here"
	}
	return ", and must be " + want
}
