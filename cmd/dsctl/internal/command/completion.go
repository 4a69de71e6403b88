package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// completeObjects completes KIND/NAME and the names of ExternalSecrets, for the Kinds for which ok is true.
func (o *options) completeObjects(ok func(snapshot.Kind) bool) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := o.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		s.Progress = func(string) {}
		kinds, err := s.Kinds()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		kind, _, ofKind := strings.Cut(prefix, "/")
		var all []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, k := range kinds {
			named := strings.ToLower(k.Kind) + "/"
			switch {
			case !ok(k):
				continue
			case !ofKind && k.Kind != snapshot.ExternalSecret:
				all, directive = append(all, named), directive|cobra.ShellCompDirectiveNoSpace
				continue
			case ofKind && !k.Named(kind):
				continue
			case ofKind:
				named = kind + "/"
			default:
				named = ""
			}
			objects, err := s.List(c.Context(), k, s.namespace)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			for i := range objects {
				all = append(all, named+objects[i].Meta.Name)
			}
		}
		return all, directive
	}
}

// completeKinds completes the names of Kinds.
func (o *options) completeKinds(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	s, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	s.Progress = func(string) {}
	kinds, err := s.Kinds()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return namesOf(kinds), cobra.ShellCompDirectiveNoFileComp
}
