// Package command implements the commands of dsctl, their flags and their output.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// These are the exit codes.
const (
	// ExitFailed means that the command failed.
	ExitFailed = 1
	// ExitFound means that the command succeeded and found an error or a difference.
	ExitFound = 2
)

// errFound ends a command that succeeded and has printed what it found.
var errFound = errors.New("found")

// Demo shows how an ExternalSecret becomes a Secret, in the given cluster or, if that is nil, on its own
// control plane. With rotation, it shows how a change reaches the pods.
type Demo func(ctx context.Context, cluster *rest.Config, rotation bool, streams genericiooptions.IOStreams) error

// Run runs dsctl and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, version string, demo Demo) int {
	root := New(streams, version, demo)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFound):
		return ExitFound
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	output.New(streams.ErrOut).Error(err)
	return ExitFailed
}

// options are the settings that commands share.
type options struct {
	in io.Reader
	// out and errs clean what they print.
	out, errs *output.Printer
	// progress shows on a terminal what is being read.
	progress func(string)

	// program is the name with which the user calls dsctl.
	program           string
	config            *genericclioptions.ConfigFlags
	operatorNamespace string
	allNamespaces     bool
	format            string
}

// New returns the command dsctl.
func New(streams genericiooptions.IOStreams, version string, demo Demo) *cobra.Command {
	o := &options{
		in: streams.In, out: output.New(streams.Out), errs: output.New(streams.ErrOut), progress: progress(streams.ErrOut),
		program: "dsctl", config: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50),
	}
	root := &cobra.Command{
		Use:   "dsctl",
		Short: "Find out what is wrong with synced secrets, and fix it",
		Long: `dsctl reports on the objects of direct-secrets in a cluster. It prints no value of a secret unless --show-values is given.

Exit codes: 0 nothing is wrong or different, 1 the command failed, 2 doctor found an error or diff a difference.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{},
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		o.program = "kubectl direct-secrets"
		root.Annotations[cobra.CommandDisplayNameAnnotation] = o.program
	}
	root.SetIn(streams.In)
	root.SetOut(output.Writer(streams.Out))
	root.SetErr(output.Writer(streams.ErrOut))
	o.config.AddFlags(root.PersistentFlags())
	root.AddCommand(newDoctor(o), newGet(o), newTree(o), newRefresh(o), newSuspend(o, true), newSuspend(o, false), newRender(o), newDiff(o), newMigrate(o), newDemo(o, demo, streams), newVersion(o, version))
	for _, c := range root.Commands() {
		c.Example = strings.ReplaceAll(c.Example, "  dsctl ", "  "+o.program+" ")
	}
	return root
}

// addOutput adds the flag --output with the formats that a command has in addition to text.
func (o *options) addOutput(c *cobra.Command, formats ...string) {
	c.Flags().StringVarP(&o.format, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+". Default: text.")
	c.PreRunE = func(*cobra.Command, []string) error {
		for _, f := range append(formats, "") {
			if o.format == f {
				return nil
			}
		}
		return fmt.Errorf("--output: %q is not supported; use one of %s", o.format, strings.Join(formats, ", "))
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

// addNamespaces adds the flag --all-namespaces.
func (o *options) addNamespaces(c *cobra.Command) {
	c.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Use all namespaces.")
}
