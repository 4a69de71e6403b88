package migrate

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// TestVSOTemplate renders what a template of Vault Secrets Operator became.
func TestVSOTemplate(t *testing.T) {
	t.Parallel()
	values := map[string][]byte{"user": []byte("shop"), "my-key": []byte("a b")}
	cases := map[string]struct {
		reason    string
		text      string
		want, why string
	}{
		"Plain":    {reason: "Text without actions stays.", text: "a {b}", want: "a {b}"},
		"Field":    {reason: "A value is a field of the input.", text: "user={{ .Secrets.user }}", want: "user=shop"},
		"Get":      {reason: "The function get reads the input.", text: `{{ get .Secrets "user" }}`, want: "shop"},
		"Index":    {reason: "So does index, with any key.", text: `{{ index .Secrets "my-key" | urlquery }}`, want: "a+b"},
		"Trim":     {reason: "Trim markers keep their effect.", text: "a\n{{- .Secrets.user -}}\nb", want: "ashopb"},
		"Root":     {reason: "$ is the input, also where the dot is not.", text: `{{ range list 1 2 }}{{ $.Secrets.user }}{{ . }}{{ end }}`, want: "shop1shop2"},
		"Range":    {reason: "All values can be listed.", text: `{{ range $k, $v := .Secrets }}{{ $k }}={{ $v }};{{ end }}`, want: "my-key=a b;user=shop;"},
		"With":     {reason: "The dot can be the values.", text: `{{ with .Secrets }}{{ .user }}{{ end }}`, want: "shop"},
		"If":       {reason: "Conditions read values.", text: `{{ if eq .Secrets.user "shop" }}a{{ else }}{{ .Secrets.user }}{{ end }}`, want: "a"},
		"Variable": {reason: "Variables of the template stay.", text: `{{ $u := .Secrets.user }}{{ $u }}`, want: "shop"},
		"Parens":   {reason: "A pipeline can be an argument.", text: `{{ printf "%s" (get .Secrets "user") }}`, want: "shop"},
		"HasKey":   {reason: "The input is no dict.", text: `{{ hasKey .Secrets "a" }}`, why: "the template calls hasKey with .Secrets, which is no dict here"},
		"Piped":    {reason: "Also if it is the last argument.", text: `{{ $.Secrets | keys }}`, why: "the template calls keys with .Secrets, which is no dict here"},
		"JSON":     {reason: "Other functions take it.", text: `{{ .Secrets | toJson }}`, want: `{"my-key":"a b","user":"shop"}`},
		"Metadata": {reason: "There is no metadata.", text: `{{ .Metadata.a }}`, why: "the template reads .Metadata, which does not exist here"},
		"Deep":     {reason: "A value is text.", text: `{{ .Secrets.a.b }}`, why: "the template reads a field of .Secrets.a, which is text here"},
		"Dot":      {reason: "The whole input has another shape.", text: `{{ toJson . }}`, why: "the template reads its whole input, which has another shape"},
		"Else":     {reason: "In else, the dot is the whole input.", text: `{{ with .Secrets.user }}{{ . }}{{ else }}{{ . }}{{ end }}`, why: "the template reads its whole input, which has another shape"},
		"Define":   {reason: "Templates of other keys are not known.", text: `{{ define "a" }}{{ end }}`, why: "the template defines others"},
		"Call":     {reason: "They cannot be called either.", text: `{{ template "a" }}`, why: "the template calls another one"},
		"Broken":   {reason: "It must be a template.", text: `{{ .Secrets.user`, why: "the template cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, why := vsoTemplate(tc.text)
			if why != tc.why {
				t.Fatalf("%s: refused with %q, want %q", tc.reason, why, tc.why)
			}
			if why != "" {
				return
			}
			got, err := inspect.Shape(&v1alpha1.Template{Data: map[string]string{"out": text}}, values)
			if err != nil {
				t.Fatalf("%s: %q became %q: %v", tc.reason, tc.text, text, err)
			}
			if string(got["out"]) != tc.want {
				t.Errorf("%s: %q became %q, which yields %q, want %q", tc.reason, tc.text, text, got["out"], tc.want)
			}
		})
	}
}

// TestReference sees which object a reference of Vault Secrets Operator means.
func TestReference(t *testing.T) {
	t.Parallel()
	const objects = `
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: a, namespace: shop}}
---
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: a, namespace: mail}}
---
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: default, namespace: vso}}
---
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultConnection, metadata: {name: default, namespace: vso}}
---
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultConnection, metadata: {name: default, namespace: shop}}
---
{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: here}}
`
	cases := map[string]struct{ reason, kind, ref, want string }{
		"Own":        {"A name is looked up in the namespace of the object.", "VaultAuth", "a", "shop/a"},
		"Qualified":  {"A namespace can be named.", "VaultAuth", "mail/a", "mail/a"},
		"Namespace":  {"A manifest without a namespace is in that of the command line.", "VaultAuth", "here", "/here"},
		"Default":    {"Without a name it is the default of the operator.", "VaultAuth", "", "vso/default"},
		"Ambiguous":  {"The namespace of the operator is not known.", "VaultConnection", "", ""},
		"Absent":     {"Another name is not found.", "VaultAuth", "b", ""},
		"OtherPlace": {"Neither is one of another namespace.", "VaultAuth", "default", ""},
	}
	in := &inputs{Options: Options{Namespace: "shop"}, accounts: map[string][]account{}, mounts: map[string][]mount{}}
	for _, d := range splitText(Source{Content: []byte(objects)}, nil) {
		in.take(d)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{Name: Name{Namespace: "shop"}, inputs: in}
			got := ""
			if found := o.lookup(tc.kind, tc.ref); found != nil {
				got = found.Namespace + "/" + found.Name.Name
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
