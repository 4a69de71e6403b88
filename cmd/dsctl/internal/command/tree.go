package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/change"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/tree"
)

func newTree(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "tree [[KIND/]NAME]",
		Short: "Follow secrets from their stores to the workloads that read them",
		Long: `tree shows each store and generator, the objects that use it, their Secrets or ConfigMaps, and the workloads that read these.
It reads names only. With KIND/NAME, or the NAME of an ExternalSecret, it shows the trees of that object.`,
		Example: `  dsctl tree -n shop
  dsctl tree db -n shop
  dsctl tree clusterawssecretsmanager/prod -A`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeObjects(func(snapshot.Kind) bool { return true }),
		RunE:              func(c *cobra.Command, args []string) error { return o.tree(c.Context(), args) },
	}
	o.addNamespaces(c)
	o.addOutput(c, "json")
	return c
}

func (o *options) tree(ctx context.Context, args []string) error {
	s, err := o.connect()
	if err != nil {
		return err
	}
	snap, err := s.Read(ctx, s.namespace)
	if err != nil {
		return err
	}
	in, err := s.Tree(ctx, snap)
	if err != nil {
		return err
	}
	roots := tree.Build(in)
	if len(args) > 0 {
		t, err := change.ParseTarget(snap.Kinds, args[0], func(snapshot.Kind) bool { return true })
		if err != nil {
			return err
		}
		roots = tree.Of(roots, func(r snapshot.Ref) bool {
			return r.Group == t.Kind.Group && r.Kind == t.Kind.Kind && r.Name == t.Name
		})
	}
	o.warnRefused(snap)
	if len(args) > 0 && len(roots) == 0 && len(snap.Refused) == 0 {
		return fmt.Errorf("%s: no such object, and nothing uses it; check the name and -n", args[0])
	}
	if o.format == "json" {
		return o.out.JSON(append([]tree.Node{}, roots...))
	}
	if len(roots) == 0 {
		return o.errs.Line("No objects found.")
	}
	return o.out.Lines(tree.Text(roots))
}

// warnRefused prints what is missing in the output because the user is not allowed to read it.
func (o *options) warnRefused(s *snapshot.Snapshot) {
	for _, r := range s.Refused {
		if r.Resource != "leases.coordination.k8s.io" {
			_ = o.errs.Line("warning: you are not allowed to %s %s", r.Verb, r.Resource)
		}
	}
}
