package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newDemo(o *options, demo Demo, streams genericiooptions.IOStreams) *cobra.Command {
	var rotation bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show how a remote secret becomes a Kubernetes Secret",
		Long: `demo starts a control plane, an emulator of AWS and provider-aws on this machine, and shows how a remote secret becomes a Kubernetes Secret.
--rotation shows how a change in AWS reaches the Secret and restarts the pods within seconds, by an event instead of polling.
--kubeconfig uses a cluster that runs already, such as one of kind or k3d, and deletes from it what the demo has created.
It needs the binaries that make demo builds.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// Only the flag counts, so that the demo never uses a cluster of the environment by accident.
			if *o.config.KubeConfig == "" {
				if *o.config.Context != "" {
					return errors.New("--context needs --kubeconfig, the file that has the context")
				}
				return demo(c.Context(), nil, rotation, streams)
			}
			cluster, err := o.config.ToRESTConfig()
			if err != nil {
				return fmt.Errorf("--kubeconfig %s: %w", *o.config.KubeConfig, err)
			}
			return demo(c.Context(), cluster, rotation, streams)
		},
	}
	c.Flags().BoolVar(&rotation, "rotation", false, "Show how a change in AWS reaches the pods within seconds, and measure it.")
	return c
}
