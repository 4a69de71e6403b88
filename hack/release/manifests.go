package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

const (
	manifestsHead     = "# Made by `make generate`: the umbrella chart with this module and its default values, without CRDs.\n"
	kustomizationHead = "# Made by `make generate`. docs/operate/static-manifests.md describes its use.\n" +
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
)

// writeManifests writes a kustomization into each chart that has CRDs: with these, and with the objects of the module.
func writeManifests(root string) error {
	client, err := helm.Offline("v1.33.0")
	if err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(root, "charts", "*", "files", "crds"))
	if err != nil {
		return err
	}
	// Helm uses the .helmignore of the outermost chart only.
	ignored := "charts/*/.helmignore\ncharts/*/kustomization.yaml\ncharts/*/manifests.yaml\n"
	if err := os.WriteFile(filepath.Join(root, "charts", umbrella, ".helmignore"), []byte(ignored), 0o644); err != nil {
		return err
	}
	for _, folder := range folders {
		chart := filepath.Join(folder, "..", "..")
		crds, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return err
		}
		kustomization := bytes.NewBufferString(kustomizationHead)
		for _, crd := range crds {
			fmt.Fprintf(kustomization, "  - files/crds/%s\n", filepath.Base(crd))
		}
		files := map[string][]byte{".helmignore": []byte("/kustomization.yaml\n/manifests.yaml\n")}
		if module := filepath.Base(chart); module != "crds" {
			kustomization.WriteString("  - manifests.yaml\n")
			if files["manifests.yaml"], err = manifestsOf(client, root, module); err != nil {
				return fmt.Errorf("cannot render %s: %w", module, err)
			}
		}
		files["kustomization.yaml"] = kustomization.Bytes()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(chart, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// manifestsOf returns what the umbrella chart renders for one module, without CRDs.
func manifestsOf(client *helm.Client, root, module string) ([]byte, error) {
	values := map[string]any{module: map[string]any{"enabled": true}}
	out, err := client.Template(helm.Release{Name: umbrella, Namespace: umbrella, Chart: filepath.Join(root, "charts", umbrella), Values: values})
	if err != nil {
		return nil, err
	}
	all := []byte(manifestsHead)
	for _, text := range strings.Split("\n"+out, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			return nil, err
		}
		if len(o) == 0 || o["kind"] == "CustomResourceDefinition" {
			continue
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), raw...)
	}
	return all, nil
}
