package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

const (
	// profiled is how long the operator is profiled. The profile counts processor time, so idle time at the end
	// does not matter.
	profiled = 20 * time.Second
	// templateKeys is the number of keys of each Secret.
	templateKeys = 10
)

// shaping are the functions whose share of the processor time is measured, including the functions that they
// call.
var shaping = []string{"common/internal/render.Shape", "common/internal/render.Inputs", "common/internal/target.HashInputs"}

// Template creates Secrets of ten keys with a template, and measures which share of the operator's processor
// time that takes.
func Template(ctx context.Context, r *Report, size Size) error {
	objects := workload("template", size.Objects, size.Namespaces)
	share, err := onStack(ctx, func(s *stack.Stack) (float64, error) { return shapeShare(ctx, s, objects) })
	if err != nil {
		return err
	}
	r.Add(Row{
		Scenario: "template", What: fmt.Sprintf("%d Secrets of %d keys: share of rendering", size.Objects, templateKeys),
		Value: share * 100, Unit: "%", Bound: atMost(10), Note: "of the operator's processor time, from a profile",
	})
	return nil
}

func shapeShare(ctx context.Context, s *stack.Stack, objects []Object) (float64, error) {
	p, err := s.StartModule(ctx, stack.ProviderAWS)
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Kill() }()
	if err := prepare(ctx, s, objects); err != nil {
		return 0, err
	}
	if err := storesReady(ctx, s); err != nil {
		return 0, err
	}
	seen, err := watchSecrets(ctx, s)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	template := v1alpha1.Template{Data: map[string]string{}}
	for i := range templateKeys {
		template.Data[fmt.Sprintf("key-%d", i)] = fmt.Sprintf(`{{ printf "%d-%%s" .username | quote }}: {{ .password | b64enc }}`, i)
	}

	type result struct {
		raw []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		raw, err := p.Profile(profiled)
		done <- result{raw, err}
	}()
	if err := each(objects, clients, func(o Object) error {
		return s.Admin.Create(ctx, externalSecret(o, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Template = &template }))
	}); err != nil {
		return 0, err
	}
	if _, err := seen.wait(ctx, objects); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, p.Log())
	}
	if err := allSynced(ctx, s, objects); err != nil {
		return 0, err
	}
	res := <-done
	if res.err != nil {
		return 0, res.err
	}
	return shareOf(res.raw, shaping)
}

// shareOf returns the share of a profile's processor time that is spent in functions, and in the functions that
// they call.
func shareOf(raw []byte, functions []string) (float64, error) {
	prof, err := profile.Parse(bytes.NewReader(raw))
	if err != nil {
		return 0, fmt.Errorf("cannot read the profile: %w", err)
	}
	in := func(l *profile.Location) bool {
		return slices.ContainsFunc(l.Line, func(line profile.Line) bool {
			return slices.ContainsFunc(functions, func(f string) bool { return strings.HasSuffix(line.Function.Name, f) })
		})
	}
	var all, part int64
	for _, sample := range prof.Sample {
		v := sample.Value[len(sample.Value)-1] // The last value of a sample is its time.
		all += v
		if slices.ContainsFunc(sample.Location, in) {
			part += v
		}
	}
	if all == 0 || part == 0 {
		return 0, fmt.Errorf("the profile has %d ns in all and %d in %q", all, part, functions)
	}
	return float64(part) / float64(all), nil
}
