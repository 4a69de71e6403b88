package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/internal/demo"
)

func runDemo(ctx context.Context, cluster *rest.Config, s genericiooptions.IOStreams) error {
	return demo.Run(ctx, cluster, os.Stdin, s.Out)
}
