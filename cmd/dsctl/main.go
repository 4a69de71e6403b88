// Command dsctl is the command-line tool of direct-secrets. As kubectl-direct_secrets it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/command"
	"github.com/direct-secrets/direct-secrets/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := command.Run(ctx, os.Args[1:], streams, func(ctx context.Context, cluster *rest.Config, s genericiooptions.IOStreams) error {
		return demo.Run(ctx, cluster, os.Stdin, s.Out)
	})
	stop()
	os.Exit(code)
}
