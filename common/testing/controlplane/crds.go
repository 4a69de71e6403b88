package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

const fieldManager = "controlplane"

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// InstallCRDs applies CustomResourceDefinitions, each a manifest of YAML documents, and returns when all of them are
// served. If one is new, it restarts the controller manager, because its garbage collector looks for new kinds only
// every thirty seconds; WithCRDs avoids that.
func (c *ControlPlane) InstallCRDs(ctx context.Context, manifests ...[]byte) error {
	fresh, err := c.applyCRDs(ctx, manifests)
	if err != nil || !fresh {
		return err
	}
	c.controllerManager.kill()
	return c.startControllerManager(ctx)
}

// ServeCRDs returns when all CustomResourceDefinitions that others have installed are served. Like InstallCRDs it
// restarts the controller manager.
func (c *ControlPlane) ServeCRDs(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	list, err := client.Resource(crdResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range list.Items {
		if err := waitServed(ctx, client, crd.GetName()); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s is not served: %w", crd.GetName(), err)
		}
	}
	c.controllerManager.kill()
	return c.startControllerManager(ctx)
}

// Manifests returns the files of embedded folders, in the order of their paths.
func Manifests(folders ...fs.FS) [][]byte {
	var all [][]byte
	for _, folder := range folders {
		err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := fs.ReadFile(folder, path)
			all = append(all, raw)
			return err
		})
		if err != nil {
			panic(err) // Embedded files can always be read.
		}
	}
	return all
}

// applyCRDs applies CRDs, waits until they are served, and reports whether one was new.
func (c *ControlPlane) applyCRDs(ctx context.Context, manifests [][]byte) (fresh bool, err error) {
	crds, err := decode(manifests)
	if err != nil {
		return false, err
	}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return false, err
	}
	for _, crd := range crds {
		_, err := client.Resource(crdResource).Get(ctx, crd.GetName(), metav1.GetOptions{})
		fresh = fresh || apierrors.IsNotFound(err)
		_, err = client.Resource(crdResource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return false, fmt.Errorf("cannot apply CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := waitServed(ctx, client, crd.GetName()); err != nil {
			return false, fmt.Errorf("CustomResourceDefinition %s is not served: %w", crd.GetName(), err)
		}
	}
	return fresh, nil
}

func decode(manifests [][]byte) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	for _, m := range manifests {
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(m), 4096)
		for {
			u := &unstructured.Unstructured{}
			err := documents.Decode(u)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read a CustomResourceDefinition: %w", err)
			}
			if len(u.Object) == 0 {
				continue // It is an empty document.
			}
			if u.GetKind() != "CustomResourceDefinition" {
				return nil, fmt.Errorf("%s %q is not a CustomResourceDefinition", u.GetKind(), u.GetName())
			}
			crds = append(crds, u)
		}
	}
	return crds, nil
}

// waitServed returns when the CRD is established and a list of each of its versions works. The condition alone
// becomes true slightly too early.
func waitServed(ctx context.Context, client dynamic.Interface, name string) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		u, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return false, err
		}
		if !established(crd) {
			return false, nil
		}
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
			_, err := client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
