package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	appsv1 "k8s.io/api/apps/v1"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/commands"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A pageShell runs the commands of pages like a reader's shell, on a stack. kubectl and helm are the real
// programs.
type pageShell struct {
	t        *testing.T
	stack    *stack.Stack
	programs *commands.Shell
	// standIns replace programs that need more than a cluster, in blocks with a comment.
	standIns map[string]func(ctx context.Context, args []string, stdout io.Writer) error
	// after is called after each command of kubectl and helm.
	after   func(ctx context.Context, args []string) error
	started map[string]bool
	// built are further programs, by the names in the pages.
	built map[string]string

	mu  sync.Mutex
	ran []ranCommand
}

// A ranCommand is a command that was run on the cluster.
type ranCommand struct {
	args       []string
	from, to   time.Time
	exitStatus int
}

// newPageShell returns a pageShell for the admin of a stack. A nil stack means a shell without a cluster.
func newPageShell(t *testing.T, s *stack.Stack) *pageShell {
	t.Helper()
	p := &pageShell{t: t, stack: s, started: map[string]bool{}}
	p.standIns = map[string]func(context.Context, []string, io.Writer) error{"make": dryMake}
	p.after = func(context.Context, []string) error { return nil }
	if s == nil {
		return p
	}
	kubeconfig, err := s.AdminKubeconfig()
	must(t, err)
	p.programs = commands.NewShell(t, kubeconfig)
	p.standIns["aws"] = awsCommand(s.AWS.URL())
	return p
}

// plain are common programs that pages can use.
var plain = []string{"base64", "cat", "date", "grep", "jq", "sort", "uniq"}

// standIn is the prefix of the comment before a block that needs more than a cluster. The reason follows.
const standIn = "stand-in: "

// run runs a block of a page and returns its output. It stops at the first command that fails.
func (p *pageShell) run(ctx context.Context, b block) (string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(b.text), "")
	if err != nil {
		return "", err
	}
	reason, marked := strings.CutPrefix(b.comment, standIn)
	if marked && reason == "" {
		return "", errors.New("a block with a stand-in says why it needs one")
	}
	folder := p.t.TempDir()
	if p.programs != nil {
		folder = p.programs.Folder
	}
	var out output
	runner, err := interp.New(
		interp.StdIO(nil, &out, &out), interp.Dir(folder), interp.Params("-e", "-u", "-o", "pipefail"),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, args []string) error { return p.exec(ctx, marked, args) }
		}),
	)
	if err != nil {
		return "", err
	}
	err = runner.Run(ctx, file)
	return out.String(), err
}

// output is the output of programs, some of which run concurrently.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String implements fmt.Stringer.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// exec runs one command of a block.
func (p *pageShell) exec(ctx context.Context, marked bool, args []string) error {
	h := interp.HandlerCtx(ctx)
	replacement, needsMark := p.standIns[args[0]]
	switch {
	case args[0] == commands.Kubectl || args[0] == commands.Helm || p.built[args[0]] != "":
		return p.onCluster(ctx, h, args)
	case needsMark && marked:
		return replacement(ctx, args[1:], h.Stdout)
	case needsMark:
		return fmt.Errorf("%s needs a comment above the block: <!-- %sREASON -->", args[0], standIn)
	case slices.Contains(plain, args[0]):
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = h.Dir
		return runIn(h, cmd)
	}
	return fmt.Errorf("the program %q is unknown", args[0])
}

// onCluster runs a program that uses the cluster.
func (p *pageShell) onCluster(ctx context.Context, h interp.HandlerContext, args []string) error {
	local, err := localCharts(args, p.t.TempDir)
	if err != nil {
		return err
	}
	program := commands.Kubectl
	if local[0] == commands.Helm {
		program = commands.Helm
	}
	cmd, err := p.programs.Command(ctx, program, local[1:]...)
	if err != nil {
		return err
	}
	if path := p.built[local[0]]; path != "" {
		cmd.Path, cmd.Args = path, local
	}
	from := time.Now()
	err = runIn(h, cmd)
	p.mu.Lock()
	p.ran = append(p.ran, ranCommand{args, from, time.Now(), cmd.ProcessState.ExitCode()})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.after(ctx, args)
}

// runIn runs a program with the streams of the shell.
func runIn(h interp.HandlerContext, cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = h.Stdin, h.Stdout, h.Stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return interp.ExitStatus(uint8(ended.ExitCode())) //nolint:gosec // It is one byte.
	}
	return err
}

// published is the address of the released charts.
const published = "oci://ghcr.io/direct-secrets/charts/"

// localCharts replaces a published chart by a package of the checkout's chart, created in a new folder. It must
// have the version in the command.
func localCharts(args []string, newFolder func() string) ([]string, error) {
	at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, published) })
	if at < 0 {
		return args, nil
	}
	folder, err := filepath.Abs(filepath.Join(repository, "charts", strings.TrimPrefix(args[at], published)))
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return nil, err
	}
	if named := slices.Index(args, "--version"); named < 0 || named+1 == len(args) || args[named+1] != chart.Version {
		return nil, fmt.Errorf("the command names no version, or another than %s, which is that of the chart", chart.Version)
	}
	to := newFolder()
	if err := helm.PackageAll(filepath.Dir(folder), to, time.Now()); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s.tgz", filepath.Base(folder), chart.Version)
	return slices.Concat(args[:at], []string{filepath.Join(to, name)}, args[at+1:]), nil
}

// startModules starts the modules of the existing Deployments, as a node would after a release is installed.
// AWS is the emulator.
func (p *pageShell) startModules(ctx context.Context, _ []string) error {
	if err := p.stack.ServeCRDs(ctx); err != nil { // A module that starts before ends, and its node starts it again.
		return err
	}
	var list appsv1.DeploymentList
	if err := p.stack.Admin.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/part-of": "direct-secrets"}); err != nil {
		return err
	}
	for _, d := range list.Items {
		module, release := d.Labels["app.kubernetes.io/name"], d.Labels["app.kubernetes.io/instance"]
		if p.started[d.Namespace+"/"+d.Name] {
			continue
		}
		p.started[d.Namespace+"/"+d.Name] = true
		binary, err := stack.Binary(module)
		if err != nil {
			return err
		}
		script := fmt.Sprintf("#!/bin/sh\nAWS_EC2_METADATA_DISABLED=true AWS_ENDPOINT_URL_STS=%[1]s AWS_ENDPOINT_URL_SECRETS_MANAGER=%[1]s exec %[2]s \"$@\"\n", p.stack.AWS.URL(), binary)
		path := filepath.Join(p.programs.Folder, module)
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // It is a program.
			return err
		}
		process, err := p.stack.Release(release, d.Namespace).StartBinary(p.t.Context(), path, module, patient...)
		if err != nil {
			return err
		}
		p.t.Cleanup(func() {
			must(p.t, process.Stop())
			if p.t.Failed() {
				p.t.Log(process.Log())
			}
		})
	}
	return nil
}

// dryMake makes make print the commands that it would run in the checkout.
func dryMake(ctx context.Context, args []string, _ io.Writer) error {
	out, err := exec.CommandContext(ctx, "make", append([]string{"--dry-run", "--no-print-directory", "-C", repository}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// awsCommand returns a function that makes the calls of the aws command to an emulator. The services,
// operations and flags are those of the SDK in another spelling.
func awsCommand(url string) func(context.Context, []string, io.Writer) error {
	services := map[string]func(region string) any{
		"secretsmanager": func(region string) any {
			return secretsmanager.New(secretsmanager.Options{
				Region: region, BaseEndpoint: aws.String(url),
				Credentials: credentials.NewStaticCredentialsProvider(stack.AccessKeyID, stack.SecretAccessKey, ""),
			})
		},
	}
	return func(ctx context.Context, args []string, stdout io.Writer) error {
		if len(args) < 2 || services[args[0]] == nil {
			return fmt.Errorf("the service in %q is unknown", args)
		}
		flags, err := flagsOf(args[2:])
		if err != nil {
			return err
		}
		region := flags["region"]
		if delete(flags, "region"); region == "" {
			return errors.New("the command depends on the reader's default region: name one")
		}
		call := reflect.ValueOf(services[args[0]](region)).MethodByName(camel(args[1]))
		if !call.IsValid() {
			return fmt.Errorf("%s has no operation %s", args[0], args[1])
		}
		input := reflect.New(call.Type().In(1).Elem())
		for name, text := range flags {
			if err := setField(input.Elem().FieldByName(camel(name)), text); err != nil {
				return fmt.Errorf("--%s of %s %s: %w", name, args[0], args[1], err)
			}
		}
		answer := call.Call([]reflect.Value{reflect.ValueOf(ctx), input})
		if err, failed := answer[1].Interface().(error); failed {
			return err
		}
		return json.NewEncoder(stdout).Encode(answer[0].Interface())
	}
}

// setField sets a field of an SDK's input to the value of a flag: text, or otherwise JSON.
func setField(field reflect.Value, text string) error {
	switch {
	case !field.IsValid():
		return errors.New("there is no such flag")
	case field.Type() == reflect.TypeFor[*string]():
		field.Set(reflect.ValueOf(&text))
		return nil
	}
	return json.Unmarshal([]byte(text), field.Addr().Interface())
}

// flagsOf parses flags that are followed by their values.
func flagsOf(args []string) (map[string]string, error) {
	flags := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag || i+1 == len(args) {
			return nil, fmt.Errorf("%q is no flag with a value", args[i])
		}
		flags[name] = args[i+1]
	}
	return flags, nil
}

// camel converts create-secret to CreateSecret.
func camel(kebab string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(kebab, "-") {
		b.WriteString(strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):])
	}
	return b.String()
}
