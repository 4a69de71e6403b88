// Command dsctl is the command-line tool of direct-secrets. As kubectl-direct_secrets it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/command"
)

// The linker sets version in a release.
var version = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, version, runDemo)
	stop()
	os.Exit(code)
}
