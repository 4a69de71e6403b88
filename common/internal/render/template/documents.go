package template

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/internal/exactjson"
)

// hexDecode decodes hexadecimal digits.
func hexDecode(text string) (string, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not hexadecimal"}
	}
	return string(b), nil
}

func base64Decode(text string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not base64"}
	}
	return string(b), nil
}

func base32Decode(text string) (string, error) {
	b, err := base32.StdEncoding.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not base32"}
	}
	return string(b), nil
}

var errJSON = &failure{"the value cannot be written as JSON"}

// toJSON returns v as JSON, with the keys sorted and <, > and & escaped.
func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", errJSON
	}
	return string(b), nil
}

func toPrettyJSON(v any) (string, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", errJSON
	}
	return string(b), nil
}

func toRawJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", errJSON
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// fromJSON parses a document whose meaning is exact. Its numbers are json.Number.
func fromJSON(text string) (any, error) {
	var twice *exactjson.DuplicateError
	switch err := exactjson.Check([]byte(text)); {
	case errors.As(err, &twice):
		return nil, duplicateKey(twice.Name)
	case errors.Is(err, exactjson.ErrText):
		return nil, notText
	case err != nil:
		return nil, &failure{"the value is not JSON"}
	}
	return decodeJSON(text)
}

func decodeJSON(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, &failure{"the value is not JSON"}
	}
	return v, nil
}

func duplicateKey(name string) error {
	return &failure{fmt.Sprintf("the value has the key %.64q twice; store each key once", name)}
}

// toYAML returns v as YAML without a line end, with the keys sorted.
func toYAML(r *run, v any) (string, error) {
	text, err := toJSON(v)
	if err != nil {
		return "", &failure{"the value cannot be written as YAML"}
	}
	if len(text) > maxValue {
		return "", tooLarge()
	}
	if err := document(r, text, "{[:,"); err != nil {
		return "", err
	}
	if v, err = decodeJSON(text); err != nil {
		return "", err
	}
	// It folds long lines, as it does in External Secrets Operator, but changes the digits of some numbers.
	b, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return "", &failure{"the value cannot be written as YAML"}
	}
	nodes, exact := yamlNodes(v)
	if exact && !endsInBlock(b) {
		return strings.TrimSuffix(string(b), "\n"), nil
	}
	var w strings.Builder
	e := yamlv3.NewEncoder(&w)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if e.Encode(nodes) != nil || e.Close() != nil {
		return "", &failure{"the value cannot be written as YAML"}
	}
	return strings.TrimSuffix(w.String(), "\n"), nil
}

// block matches the header of a block scalar that keeps its last line end.
var block = regexp.MustCompile(`(?m)[|>]\d?\+?$`)

// endsInBlock reports whether the last line end of a document is part of a value.
func endsInBlock(doc []byte) bool {
	if !block.Match(doc) {
		return false
	}
	var with, without any
	_ = yamlv3.Unmarshal(doc, &with) // The document was just written.
	_ = yamlv3.Unmarshal(bytes.TrimSuffix(doc, []byte("\n")), &without)
	return !reflect.DeepEqual(with, without)
}

// yamlNodes replaces the numbers of a decoded document by nodes that are written as they are. Text that ends in a line
// end, or begins with a tab, becomes a node that is quoted: in a block it would change, or could not be read. It reports
// whether sigs.k8s.io/yaml writes each number as it is.
func yamlNodes(v any) (any, bool) {
	exact := true
	replace := func(v any) any {
		n, same := yamlNodes(v)
		exact = exact && same
		return n
	}
	switch v := v.(type) {
	case json.Number:
		i, err := strconv.ParseInt(string(v), 10, 64)
		f, _ := strconv.ParseFloat(string(v), 64)
		same := err == nil && strconv.FormatInt(i, 10) == string(v) || err != nil && strconv.FormatFloat(f, 'g', -1, 64) == string(v)
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: string(v)}, same
	case string:
		if strings.HasSuffix(v, "\n") || strings.HasPrefix(v, "\t") {
			return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Style: yamlv3.DoubleQuotedStyle, Value: v}, true
		}
	case []any:
		for i := range v {
			v[i] = replace(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = replace(v[k])
		}
	}
	return v, exact
}

var errYAML = &failure{"the value is not YAML"}

// fromYAML parses one YAML document. It first measures the document with all aliases resolved, because a few lines of
// aliases can stand for gigabytes.
func fromYAML(r *run, text string) (any, error) {
	if err := document(r, text, "{[:,-\n&*"); err != nil {
		return nil, err
	}
	d := yamlv3.NewDecoder(strings.NewReader(text))
	var n, next yamlv3.Node
	switch err := d.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, errYAML
	}
	for {
		err := d.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errYAML
		}
		if len(next.Content) != 1 || next.Content[0].ShortTag() != "!!null" {
			return nil, &failure{"the value has several YAML documents; store one"}
		}
	}
	m := meter{left: maxValue}
	m.node(&n, 0)
	if m.deep || m.left < 0 {
		return nil, &failure{"the document is too large or too deep once its aliases are followed"}
	}
	if err := r.budget.spend((maxValue-m.left)/16, 8*(maxValue-m.left)); err != nil {
		return nil, err
	}
	return yamlValue(&n)
}

// node measures a YAML node with its aliases resolved.
func (m *meter) node(n *yamlv3.Node, depth int) {
	if depth > maxDepth {
		m.deep = true
		m.left = -1
	}
	if m.left < 0 || n == nil {
		return
	}
	m.left -= scalarSize + len(n.Value)
	m.node(n.Alias, depth+1)
	for _, c := range n.Content {
		if m.left < 0 {
			return
		}
		m.node(c, depth+1)
	}
}
