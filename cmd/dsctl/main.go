// Command dsctl is the command-line tool of direct-secrets.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/direct-secrets/direct-secrets/internal/demo"
)

const usage = `dsctl is the command-line tool of direct-secrets.

Usage:
  dsctl demo    start a control plane, an emulator of AWS and provider-aws, and show
                a secret become a Kubernetes Secret
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dsctl:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("want one command, got %d", len(args))
	}
	switch args[0] {
	case "demo":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return demo.Run(ctx, os.Stdin, os.Stdout)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", args[0])
}
