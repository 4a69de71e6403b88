package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/listing"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

func newGet(o *options) *cobra.Command {
	notReady := false
	c := &cobra.Command{
		Use:   "get [KIND ...]",
		Short: "List the objects of all Kinds in one table",
		Long: `get lists ExternalSecrets, PushSecrets, their cluster Kinds, stores and generators of all modules.
In a namespace it lists the cluster Kinds, too. KIND chooses Kinds by name, plural or short name.`,
		Example: `  dsctl get -n shop
  dsctl get -A --not-ready -o wide
  dsctl get externalsecret awssecretsmanager -A`,
		ValidArgsFunction: o.completeKinds,
		RunE:              func(c *cobra.Command, args []string) error { return o.get(c.Context(), args, notReady) },
	}
	o.addNamespaces(c)
	o.addOutput(c, "json", "wide")
	c.Flags().BoolVar(&notReady, "not-ready", false, "List only the objects that are not Ready.")
	return c
}

func (o *options) get(ctx context.Context, args []string, notReady bool) error {
	s, err := o.connect()
	if err != nil {
		return err
	}
	snap, err := s.Read(ctx, s.namespace)
	if err != nil {
		return err
	}
	kinds, err := chosen(snap.Kinds, args)
	if err != nil {
		return err
	}
	rows := listing.Rows(snap, func(r *listing.Row) bool {
		return (!notReady || r.Ready != "True") && (len(args) == 0 || slices.Contains(kinds, r.Kind+"."+r.Group))
	})
	o.warnRefused(snap)
	if o.format == "json" {
		return o.out.JSON(rows)
	}
	if len(rows) == 0 {
		return o.errs.Line("No objects found.")
	}
	return o.out.Table(listing.Table(rows, snap.Now, o.allNamespaces, o.format == "wide"))
}

// chosen returns the Kinds that arguments name, as KIND.GROUP.
func chosen(kinds []snapshot.Kind, args []string) ([]string, error) {
	var out []string
	for _, a := range args {
		found := false
		for _, k := range kinds {
			if k.Named(a) {
				out, found = append(out, k.Kind+"."+k.Group), true
			}
		}
		if !found {
			return nil, fmt.Errorf("the cluster has no Kind %q of direct-secrets; it has %s", a, strings.Join(namesOf(kinds), ", "))
		}
	}
	return out, nil
}

func namesOf(kinds []snapshot.Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, strings.ToLower(k.Kind))
	}
	return names
}
