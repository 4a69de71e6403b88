// Command aws-emulator serves an in-memory AWS Secrets Manager, Parameter Store
// and STS on one port, for tests and demos. It prints its URL and runs until it is stopped.
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
	address := flags.String("address", "127.0.0.1:4566", "the loopback `address` to listen on")
	latency := flags.Duration("latency", 0, "delay every call by this `duration`")
	var secrets, parameters values
	flags.Var(&secrets, "secret", "serve a secret, given as `name=value`; may be repeated")
	flags.Var(&parameters, "parameter", "serve a parameter, given as `name=value`; may be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	srv, err := emulator.Start(emulator.WithAddress(*address), emulator.WithLatency(*latency))
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	if err := errors.Join(
		secrets.each("secret", func(name, value string) { srv.Put(name, []byte(value)) }),
		parameters.each("parameter", func(name, value string) { srv.PutParameter(name, value) }),
	); err != nil {
		return errors.Join(err, srv.Close())
	}
	if _, err := fmt.Fprintln(out, srv.URL()); err != nil {
		return errors.Join(fmt.Errorf("cannot print the URL: %w", err), srv.Close())
	}
	<-ctx.Done()
	return srv.Close()
}

// values collects the values of a flag that can be repeated.
type values []string

func (v *values) String() string { return "" }

func (v *values) Set(s string) error {
	*v = append(*v, s)
	return nil
}

// each calls put for each name=value. The error does not show an invalid text, because it can be a secret.
func (v *values) each(flag string, put func(name, value string)) error {
	for i, s := range *v {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("--%s number %d is not name=value", flag, i+1)
		}
		put(name, value)
	}
	return nil
}
