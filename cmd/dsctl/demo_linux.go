package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/internal/demo"
)

func runDemo(ctx context.Context, cluster *rest.Config, rotation bool, s genericiooptions.IOStreams) error {
	return demo.Run(ctx, demo.Options{Cluster: cluster, Rotation: rotation}, os.Stdin, s.Out)
}
