package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// emulators run programs of an architecture on another one.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// runImages pulls the image that the Deployment of a module names. It runs the binary of this machine's architecture as it is
// deployed, and prints the help of the others.
func runImages(ctx context.Context, s *stack.Stack, work, module string) error {
	var d appsv1.Deployment
	if err := s.Admin.Get(ctx, types.NamespacedName{Namespace: stack.Namespace, Name: "direct-secrets-" + module}, &d); err != nil {
		return err
	}
	var err error
	image := d.Spec.Template.Spec.Containers[0].Image
	for arch, emulator := range emulators {
		binary := filepath.Join(work, module+"-"+arch)
		if err := pull(ctx, image, arch, binary); err != nil {
			return err
		}
		if arch == runtime.GOARCH {
			_, err = s.Release("direct-secrets", stack.Namespace).StartBinary(ctx, binary, module)
		} else {
			var out []byte
			if out, err = exec.CommandContext(ctx, emulator, binary, "--help").CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		fmt.Println("ran", image, arch)
	}
	return nil
}

// pull writes the program of an image for an architecture to a file.
func pull(ctx context.Context, from, arch, to string) error {
	folder := to + ".oci"
	if err := command(ctx, nil, "oras", "cp", "--no-tty", "--to-oci-layout", "--platform", "linux/"+arch, from, folder+":pulled"); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if config.Architecture != arch {
		return fmt.Errorf("the image is for %s", config.Architecture)
	}
	want := strings.TrimPrefix(config.Config.Entrypoint[0], "/")
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("the image has no file %s: %w", want, err)
		}
		if header.Name != want {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, files) //nolint:gosec // The image was built here.
		return errors.Join(err, out.Close())
	}
}

const generated = `
apiVersion: generator.direct-secrets.io/v1alpha1
kind: Password
metadata: {name: password, namespace: rehearsal}
---
apiVersion: direct-secrets.io/v1alpha1
kind: ExternalSecret
metadata: {name: password, namespace: rehearsal}
spec:
  dataFrom:
  - sourceRef:
      generatorRef: {apiVersion: generator.direct-secrets.io/v1alpha1, kind: Password, name: password}
`

// synced waits until the installed modules have made a Secret.
func synced(ctx context.Context, s *stack.Stack) error {
	if err := errors.Join(s.CreateNamespace(ctx, "rehearsal"), s.Apply(ctx, []byte(generated))); err != nil {
		return err
	}
	var secret corev1.Secret
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.Admin.Get(ctx, types.NamespacedName{Namespace: "rehearsal", Name: "password"}, &secret) == nil, nil
	})
	if err == nil {
		fmt.Println("Secret rehearsal/password is in sync")
	}
	return err
}
