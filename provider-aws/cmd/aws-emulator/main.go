// Command aws-emulator serves an in-memory AWS Secrets Manager and STS on one
// port, for tests and demos. It prints its URL and runs until it is stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "aws-emulator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("aws-emulator", flag.ContinueOnError)
	address := flags.String("address", "127.0.0.1:4566", "the `address` to listen on")
	latency := flags.Duration("latency", 0, "delay every call by this `duration`")
	var secrets []string
	flags.Func("secret", "serve a secret, given as `name=value`; may be repeated", func(s string) error {
		secrets = append(secrets, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	srv, err := emulator.Start(emulator.WithAddress(*address), emulator.WithLatency(*latency))
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	for i, s := range secrets {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			// The text itself may be a secret, so it is not shown.
			return errors.Join(fmt.Errorf("--secret number %d is not name=value", i+1), srv.Close())
		}
		srv.Put(name, []byte(value))
	}
	if _, err := fmt.Fprintln(out, srv.URL()); err != nil {
		return errors.Join(fmt.Errorf("cannot print the URL: %w", err), srv.Close())
	}
	<-ctx.Done()
	return srv.Close()
}
