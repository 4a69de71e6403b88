// Command bench measures the figures that the project promises, and writes them as a table and as JSON. It
// exits with an error if a figure exceeds its bound.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/direct-secrets/direct-secrets/e2e/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		objects    = flag.Int("objects", 1000, "ExternalSecrets of the main workload")
		namespaces = flag.Int("namespaces", 50, "namespaces that they are spread over")
		steady     = flag.Int("steady", 3000, "ExternalSecrets in steady refresh")
		rounds     = flag.Int("rounds", 3, "rounds of floor and operator; the median counts")
		kills      = flag.Int("kills", 8, "times that the operator is killed while it syncs")
		soak       = flag.Duration("soak", 0, "run only the soak, for this long")
		attack     = flag.Duration("attack", 5*time.Minute, "time that the hostile tenants of the scenario tenants have, all at once")
		only       = flag.String("only", "", "scenarios to run, separated by commas: create, together, template, restart, steady, faults, kill, push, fanout, mixed, modules, tenants, paths, replicas, events, reported; default: all")
		out        = flag.String("json", "bench.json", "file for the figures as JSON")
	)
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	r := bench.NewReport(os.Stdout)
	size := bench.Size{Objects: *objects, Namespaces: *namespaces, Rounds: *rounds}
	many := bench.Size{Objects: *steady, Namespaces: *namespaces}
	scenarios := []struct {
		name  string
		limit time.Duration
		run   func(context.Context) error
	}{
		{"create", 15 * time.Minute, func(ctx context.Context) error { return bench.Create(ctx, r, size) }},
		{"together", 5 * time.Minute, func(ctx context.Context) error { return bench.Together(ctx, r) }},
		{"template", 5 * time.Minute, func(ctx context.Context) error { return bench.Template(ctx, r, size) }},
		{"restart", 5 * time.Minute, func(ctx context.Context) error { return bench.Restart(ctx, r, size) }},
		{"steady", 10 * time.Minute, func(ctx context.Context) error { return bench.Steady(ctx, r, many) }},
		{"faults", 5 * time.Minute, func(ctx context.Context) error { return bench.Faults(ctx, r, bench.Size{Objects: 500}) }},
		{"kill", 5 * time.Minute, func(ctx context.Context) error { return bench.Kill(ctx, r, size, *kills) }},
		{"push", 10 * time.Minute, func(ctx context.Context) error { return bench.Push(ctx, r) }},
		{"fanout", 5 * time.Minute, func(ctx context.Context) error { return bench.FanOut(ctx, r, *rounds) }},
		{"mixed", 5 * time.Minute, func(ctx context.Context) error { return bench.Mixed(ctx, r) }},
		{"modules", 10 * time.Minute, func(ctx context.Context) error { return bench.Modules(ctx, r) }},
		{"tenants", 20*time.Minute + *attack, func(ctx context.Context) error { return bench.Tenants(ctx, r, *attack) }},
		{"paths", 10 * time.Minute, func(ctx context.Context) error { return bench.Paths(ctx, r) }},
		{"replicas", 5 * time.Minute, func(ctx context.Context) error { return bench.Replicas(ctx, r) }},
		{"events", 10 * time.Minute, func(ctx context.Context) error {
			return bench.Events(ctx, r, bench.Size{Objects: 10 * *objects, Namespaces: *namespaces})
		}},
		{"reported", 10 * time.Minute, func(ctx context.Context) error { return bench.Reported(ctx, r) }},
	}
	if *soak > 0 {
		scenarios = scenarios[:1]
		scenarios[0].name, *only, scenarios[0].limit = "soak", "soak", *soak+10*time.Minute
		scenarios[0].run = func(ctx context.Context) error { return bench.Soak(ctx, r, many, *soak) }
	}
	for _, s := range scenarios {
		if *only != "" && !strings.Contains(","+*only+",", ","+s.name+",") {
			continue
		}
		if err := within(ctx, s.limit, s.run); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	r.Print()
	if err := r.Write(*out); err != nil {
		return err
	}
	if n := r.Missed(); n > 0 {
		return fmt.Errorf("%d figures miss their bound", n)
	}
	return nil
}

func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}
