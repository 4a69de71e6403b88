// Command dsctl is the command-line tool of direct-secrets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/direct-secrets/direct-secrets/internal/demo"
)

const usage = `dsctl is the command-line tool of direct-secrets.

Usage:
  dsctl demo [--kubeconfig FILE [--context NAME]]
                Show a secret become a Kubernetes Secret: with a control plane, an emulator of AWS and provider-aws
                on this machine. --kubeconfig uses a cluster that runs already, such as one of kind or k3d, and
                deletes from it what the demo has created.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dsctl:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("want a command")
	}
	switch args[0] {
	case "demo":
		return runDemo(args[1:])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", args[0])
}

func runDemo(args []string) error {
	flags := flag.NewFlagSet("dsctl demo", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	kubeconfig := flags.String("kubeconfig", "", "")
	inContext := flags.String("context", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var cluster *rest.Config
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	case *kubeconfig == "" && *inContext != "":
		return errors.New("--context needs --kubeconfig, the file that has the context")
	case *kubeconfig != "":
		var err error
		cluster, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: *inContext}).ClientConfig()
		if err != nil {
			return fmt.Errorf("--kubeconfig %s: %w", *kubeconfig, err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return demo.Run(ctx, cluster, os.Stdin, os.Stdout)
}
