//go:build !linux

package main

import (
	"context"
	"errors"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

func runDemo(context.Context, *rest.Config, bool, genericiooptions.IOStreams) error {
	return errors.New("the demo needs Linux: it starts the servers of a control plane")
}
