package main

import (
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

// writeManifests writes a kustomization with the CRDs into each module that has a chart. That of the chart adds the objects of
// the module.
func writeManifests(root string) error {
	client, err := helm.Offline("v1.33.0")
	if err != nil {
		return err
	}
	charts, err := filepath.Glob(filepath.Join(root, "charts", "*", "files", "crds"))
	if err != nil {
		return err
	}
	// Helm uses the .helmignore of the outermost chart only.
	files := map[string][]byte{"charts/" + umbrella + "/.helmignore": []byte("charts/*/.helmignore\ncharts/*/kustomization.yaml\ncharts/*/manifests.yaml\n")}
	for _, crds := range charts {
		chart, module := filepath.Base(filepath.Join(crds, "..", "..")), "common"
		resources := []string{}
		if chart != "crds" {
			module = chart
			resources = append(resources, "manifests.yaml")
			if files["charts/"+chart+"/manifests.yaml"], err = manifestsOf(client, root, module); err != nil {
				return fmt.Errorf("cannot render %s: %w", module, err)
			}
		}
		files["charts/"+chart+"/.helmignore"] = []byte("/kustomization.yaml\n/manifests.yaml\n")
		files["charts/"+chart+"/kustomization.yaml"] = kustomization(append(resources, "../../"+module+"/manifests"))
		all, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
		if err != nil {
			return err
		}
		for i := range all {
			all[i] = "crds/" + filepath.Base(all[i])
		}
		files[module+"/manifests/kustomization.yaml"] = kustomization(all)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kustomization returns one with resources.
func kustomization(resources []string) []byte {
	return []byte(kustomizationHead + "  - " + strings.Join(resources, "\n  - ") + "\n")
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
