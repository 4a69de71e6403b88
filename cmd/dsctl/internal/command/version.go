package command

import (
	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/migrate/output"
)

func newVersion(o *options, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of dsctl",
		Long:  "version prints the version of dsctl, as --version does. It makes no request. The versions of the modules are in dsctl doctor.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var b output.Lines
			b.Add("%s version %s", o.program, version)
			return o.out.Lines(b)
		},
	}
}
