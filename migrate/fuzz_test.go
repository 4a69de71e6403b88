package migrate

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzConvert gives any text to Convert. It must not panic, and each document must be in the result, or be reported as
// converted.
func FuzzConvert(f *testing.F) {
	for _, path := range corpus(f) {
		raw, err := corpusFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, s := range []string{
		"", "---", "--- |\n a\n--- >\n b", "a: &a [*a]", "a: &a {b: *a, <<: *a}", "<<: 1", "? {a: b}\n: c", "%YAML 1.1\n---\na", "...\n...", "\xef\xbb\xbfa: b\n---\nc: d",
		"kind: List\nitems: [1, null, [a], {apiVersion: external-secrets.io/v1, kind: ExternalSecret}]",
		"{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: a, annotations: {'0': a, '1': b}, labels: {'0': a}}, spec: {data: [{secretKey: a}]}}",
		"{\"apiVersion\": \"external-secrets.io/v1\", \"kind\": \"List\", \"items\": [{\"a\": 1e400}]}",
		"{apiVersion: secrets.hashicorp.com/v1beta1, metadata: {name: a}}", "{apiVersion: secrets-store.csi.x-k8s.io/v1, kind: SecretProviderClass, metadata: {name: a}, spec: {provider: aws, parameters: {objects: '- &a [*a]'}}}",
		"{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: a, ownerReferences: [{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, name: a}]}}\n---\n{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultStaticSecret, metadata: {name: a}, spec: {vaultAuthRef: a, mount: a, type: kv-v2, path: a, destination: {name: a}}}",
		"a: 1\r\n---\r\nb: 2\r\n", "{apiVersion: generators.external-secrets.io/v1alpha1, kind: Password, metadata: {name: a}}\r---\rb: 2\r", "a: " + strings.Repeat("[", 200), "a: " + strings.Repeat("9", 400),
		"apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: a}\nspec: {refreshInterval: " + strings.Repeat("9", 100) + ", provider: {vault: {server: 'http://[::1', path: /}}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 64<<10 {
			t.Skip("long inputs find nothing more")
		}
		r, err := Convert([]Source{{Name: "a", Content: raw}}, Options{Namespace: "default"})
		if err != nil {
			t.Fatalf("cannot convert: %v", err)
		}
		nothingLost(t, raw, r)
	})
}

// nothingLost compares the documents of the input with those of the result.
func nothingLost(t *testing.T, raw []byte, r Result) {
	t.Helper()
	out := r.Files[0].Content
	verdicts := map[string][]Verdict{}
	edited, omitted, added := map[int]bool{}, 0, 0
	for _, o := range r.Report.Objects {
		verdicts[o.Kind+"/"+o.Name.Name] = append(verdicts[o.Kind+"/"+o.Name.Name], o.Verdict)
		if !Knows(groupOf(o.APIVersion)) {
			edited[o.Line] = len(o.To) > 0 // A workload, or an ExternalSecret that restarts it.
			continue
		}
		if o.Verdict != Unsupported && len(o.To) == 0 {
			omitted++
		}
		added += max(0, len(o.To)-1)
	}
	lists := false
	for _, d := range splitText(Source{Content: raw}, nil) {
		if d.items != nil || (d.isJSON() && added > 0) {
			lists = true // Several results of a document in JSON become a List.
			continue
		}
		name := text(d.node, "kind") + "/" + text(d.node, "metadata", "name")
		known := d.node != nil && Knows(groupOf(text(d.node, "apiVersion")))
		if known && len(verdicts[name]) == 0 {
			t.Errorf("%s is not in the report", name)
		}
		if !known && !edited[d.line] && !bytes.Contains(out, bytes.TrimSpace(d.raw)) {
			t.Errorf("the document is lost:\n%s", d.raw)
		}
	}
	before, ok := count(raw)
	if !ok || lists {
		return
	}
	if after, ok := count(out); !ok || after != before-omitted+added {
		t.Errorf("%d documents became %d (it can be read: %t), and %d are left out and %d added on purpose", before, after, ok, omitted, added)
	}
}

// count returns how many documents a stream has that hold something; false if it cannot be read.
func count(raw []byte) (int, bool) {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	for n := 0; ; {
		var node yaml.Node
		switch err := d.Decode(&node); {
		case errors.Is(err, io.EOF):
			return n, true
		case err != nil:
			return 0, false
		case len(node.Content) > 0 && !isNull(node.Content[0]):
			n++
		}
	}
}
