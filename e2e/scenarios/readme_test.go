package scenarios

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/e2e/commands"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestReadme runs the blocks of the README in order, on its own empty cluster.
func TestReadme(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{Bare: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	runReadme(t, newPageShell(t, s))
}

// runReadme runs the blocks of the README in order, and returns their output. It creates the role that the text
// requires.
func runReadme(t *testing.T, shell *pageShell) string {
	t.Helper()
	shell.stack.AWS.AddRole(emulator.Role{ARN: "arn:aws:iam::111122223333:role/shop-secrets", WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:shop:shop", Audience: "sts.amazonaws.com"},
	}})
	shell.after = shell.startModules
	var prints strings.Builder
	ran := 0
	for _, b := range readPage(t, "README.md").blocks {
		if b.info[0] != "sh" {
			t.Errorf("README.md:%d: no test runs a block of %s", b.line, b.info[0])
			continue
		}
		out, err := shell.run(t.Context(), b)
		t.Logf("README.md:%d %s\n%s--- prints\n%s", b.line, b.comment, b.text, out)
		if err != nil {
			state, _ := shell.programs.Run(t.Context(), commands.Kubectl, "get", "direct-secrets", "-A", "-o", "wide")
			t.Fatalf("README.md:%d: %v\n%s", b.line, err, state)
		}
		prints.WriteString(out)
		ran++
	}
	if ran < 4 {
		t.Errorf("only %d blocks were run", ran)
	}
	got := &corev1.Secret{}
	must(t, shell.stack.Admin.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "db"}, got))
	if diff := cmp.Diff(map[string][]byte{"password": []byte("correct horse")}, got.Data); diff != "" {
		t.Errorf("the Secret that the README ends with: -want, +got:\n%s", diff)
	}
	return prints.String()
}

// TestPageShell checks that wrong blocks fail. For kubectl and helm the error is that of the programs.
func TestPageShell(t *testing.T) {
	t.Parallel()
	aws := emulatorOf(t)
	cases := map[string]struct {
		reason string
		block  block
		out    string
		err    string
	}{
		"Plain":       {reason: "common programs run", block: block{text: "echo b2s= | base64 --decode\n"}, out: "ok"},
		"First":       {reason: "the first error ends a block", block: block{text: "echo YQ | grep nothing\necho after\n"}, err: "exit status 1"},
		"Variable":    {reason: "an unset variable is an error", block: block{text: "echo $nothing\n"}, err: "nothing: unbound variable"},
		"Syntax":      {reason: "a missing quote is an error", block: block{text: "echo 'a\n"}, err: "reached EOF"},
		"Unknown":     {reason: "an unknown program is an error", block: block{text: "gcloud version\n"}, err: `the program "gcloud" is unknown`},
		"Unmarked":    {reason: "make without a comment is an error", block: block{text: "make test\n"}, err: "make needs a comment"},
		"NoReason":    {reason: "a comment without a reason is an error", block: block{comment: standIn, text: "make test\n"}, err: "says why"},
		"Target":      {reason: "an existing target of make is accepted", block: block{comment: standIn + "x", text: "make demo\n"}},
		"NoTarget":    {reason: "a missing target of make is an error", block: block{comment: standIn + "x", text: "make dmeo\n"}, err: "No rule to make target"},
		"Version":     {reason: "another version of the chart is an error", block: block{text: "helm template " + published + "direct-secrets --version 9.9.9\n"}, err: "another than"},
		"NoVersion":   {reason: "a chart without a version is an error", block: block{text: "helm template " + published + "direct-secrets\n"}, err: "names no version"},
		"NoChart":     {reason: "a missing chart is an error", block: block{text: "helm template " + published + "absent --version 0.1.0\n"}, err: "no such file"},
		"AWS":         {reason: "a call of aws reaches the emulator", block: block{comment: standIn + "x", text: "aws secretsmanager create-secret --region eu-central-1 --name a --secret-string b\n"}, out: `"Name":"a"`},
		"AWSFlag":     {reason: "an unknown flag of aws is an error", block: block{comment: standIn + "x", text: "aws secretsmanager create-secret --region eu-central-1 --title a\n"}, err: "--title of secretsmanager create-secret: there is no such flag"},
		"AWSCall":     {reason: "an unknown operation of aws is an error", block: block{comment: standIn + "x", text: "aws secretsmanager make-secret --region eu-central-1 --name a\n"}, err: "no operation make-secret"},
		"AWSRefusal":  {reason: "a call that AWS rejects is an error", block: block{comment: standIn + "x", text: "aws secretsmanager get-secret-value --region eu-central-1 --secret-id absent\n"}, err: "ResourceNotFoundException"},
		"AWSRegion":   {reason: "a call of aws without a region is an error", block: block{comment: standIn + "x", text: "aws secretsmanager create-secret --name a\n"}, err: "name one"},
		"AWSUnmarked": {reason: "aws without a comment is an error", block: block{text: "aws secretsmanager create-secret --name a\n"}, err: "aws needs a comment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := newPageShell(t, nil)
			shell.standIns["aws"] = awsCommand(aws.URL())
			out, err := shell.run(t.Context(), tc.block)
			if !strings.Contains(out, tc.out) || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error()+out, tc.err) {
				t.Errorf("%s: run() = %q, %v; want %q, %q", tc.reason, out, err, tc.out, tc.err)
			}
		})
	}
}

// emulatorOf returns an emulator of AWS that runs until the test ends.
func emulatorOf(t *testing.T) *emulator.Server {
	t.Helper()
	s, err := emulator.Start(emulator.WithRegion(stack.Region))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}
