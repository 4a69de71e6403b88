package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const doc = "// Package v1alpha1 is a test.\n//\n// +groupName=acme.example.com\npackage v1alpha1\n"

func TestGenerate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, doc, types string
		want, wantNot      []string
		err                string
	}{
		{
			reason: "a store gets a cluster twin with conditions for namespaces, and both get the columns, the permissions and the registration",
			types: "// AcmeVault is a store,\n// described in two lines.\n//\n// +direct-secrets:store:shortName=av\n" +
				"// +kubebuilder:printcolumn:name=\"Server\",type=string,JSONPath=`.spec.server`\n\n" +
				"// AcmeVaultSpec describes it.\ntype AcmeVaultSpec struct{}\n",
			want: []string{
				"// AcmeVault is a store,\n// described in two lines.\n//\n// +kubebuilder:object:root",
				"// ClusterAcmeVault is an AcmeVault that serves many namespaces.\n",
				":path=acmevaults,shortName=av,", ":path=clusteracmevaults,scope=Cluster,shortName=cav,",
				"`.status.conditions[?(@.type==\"Ready\")].reason`\n// +kubebuilder:printcolumn:name=\"Server\",type=string,JSONPath=`.spec.server`\n",
				"groups=acme.example.com,resources=acmevaults,verbs=list;watch\n",
				"groups=acme.example.com,resources=clusteracmevaults/status,verbs=patch,roleName=cluster\n",
				"&ClusterAcmeVault{}, &ClusterAcmeVaultList{},", "\tSpec AcmeVaultSpec `json:\"spec\"`\n",
				"type ClusterAcmeVaultSpec struct {\n\tAcmeVaultSpec           `json:\",inline\"`\n\tcommon.ClusterStoreSpec `json:\",inline\"`\n}",
				"return &o.Spec.ClusterStoreSpec\n",
			},
			wantNot: []string{"Last event", "ScopeSpec"},
		},
		{
			reason: "a generator is read before it generates, and its spec is optional only with the option",
			types:  "// Token is a generator.\n//\n// +direct-secrets:generator:optional\n\ntype TokenSpec struct{}\n",
			want: []string{
				"resources=tokens,verbs=get;list;watch\n", "\t// +optional\n\tSpec TokenSpec `json:\"spec,omitzero\"`\n",
				"return o.Spec.AsStore(common.ScopeSpec{})\n",
			},
			wantNot: []string{"shortName"},
		},
		{
			reason: "the cluster twin of a generator that logs in has an authenticationScope",
			types:  "// Token is a generator.\n//\n// +direct-secrets:generator:login\n\ntype TokenSpec struct{}\n",
			want:   []string{"return o.Spec.AsStore(o.Spec.ScopeSpec)\n", "common.ScopeSpec            `json:\",inline\"`\n"},
		},
		{
			reason: "an event source shows its last event; a spec that the package declares is not written",
			types: "// SQSQueue is a queue.\n//\n// +direct-secrets:eventsource\n\ntype SQSQueueSpec struct{}\n\n" +
				"type ClusterSQSQueueSpec struct{}\n",
			want: []string{
				"// ClusterSQSQueue is an SQSQueue for the objects of many namespaces.\n", "name=\"Last event\"",
				"common.EventSourceSubresource", "return o.Spec.AsStore()\n",
			},
			wantNot: []string{"type ClusterSQSQueueSpec"},
		},
		{
			reason:  "two Kinds can have one spec, and a Kind without a cluster twin is alone",
			types:   "// A is one.\n//\n// +direct-secrets:store\n\n// Other is another.\n//\n// +direct-secrets:store:noCluster\n\ntype ASpec struct{}\n",
			want:    []string{"type ClusterA struct", "type Other struct", "Spec ASpec"},
			wantNot: []string{"ClusterOther"},
		},
		{
			reason: "a field of the spec can have a method, on both Kinds; that of an embedded type returns a pointer",
			types: "// A is one.\n//\n// +direct-secrets:store:get=AWS:AWSSpec;Limit\n\n" +
				"type ASpec struct {\n\tAWSSpec\n\tLimit []int\n}\n",
			want: []string{
				"func (o *A) AWS() *AWSSpec { return &o.Spec.AWSSpec }\n", "func (o *ClusterA) AWS() *AWSSpec { return &o.Spec.AWSSpec }\n",
				"func (o *A) Limit() []int { return o.Spec.Limit }\n",
			},
		},
		{
			reason: "a mistyped field is reported", types: "// A is one.\n//\n// +direct-secrets:store:get=Limits\n\ntype ASpec struct{ Limit int }\n",
			err: `get names "Limits"`,
		},
		{reason: "a package without a marker has no generated file", types: "// ASpec is a struct.\ntype ASpec struct{}\n"},
		{
			reason: "a marker in the comment of the spec would name the spec as the Kind",
			types:  "// ASpec is one.\n//\n// +direct-secrets:store\ntype ASpec struct{}\n",
			err:    "types.go:3:1: a marker must be in a comment of its own",
		},
		{reason: "a marker needs a spec", types: "// A is one.\n//\n// +direct-secrets:store\n", err: "above the spec of its Kind"},
		{reason: "a mistyped marker is reported", types: "// A is one.\n//\n// +direct-secrets:stor\n\ntype ASpec struct{}\n", err: `the marker is "stor"`},
		{reason: "a mistyped option is reported", types: "// A is one.\n//\n// +direct-secrets:store:short=a\n\ntype ASpec struct{}\n", err: `option "short"`},
		{
			reason: "permissions and registration need the group", doc: "package v1alpha1\n",
			types: "// A is one.\n//\n// +direct-secrets:store\n\ntype ASpec struct{}\n", err: "no +groupName",
		},
	} {
		dir := t.TempDir()
		if tt.doc == "" {
			tt.doc = doc
		}
		for name, content := range map[string]string{"doc.go": tt.doc, "types.go": "package v1alpha1\n\n" + tt.types, file: "not read"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := generate(dir)
		switch {
		case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error %v, want %q", tt.reason, err, tt.err)
		case tt.want == nil && out != nil:
			t.Errorf("%s: generated\n%s", tt.reason, out)
		}
		for _, want := range tt.want {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s: generated without %q:\n%s", tt.reason, want, out)
			}
		}
		for _, not := range tt.wantNot {
			if bytes.Contains(out, []byte(not)) {
				t.Errorf("%s: generated with %q:\n%s", tt.reason, not, out)
			}
		}
	}
}
