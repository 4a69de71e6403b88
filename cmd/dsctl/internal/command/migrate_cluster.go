package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/migrate"
	"github.com/direct-secrets/direct-secrets/migrate/cutover"
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// clusterSource reads the objects of a cluster that migrate converts, and the annotations of ServiceAccounts. If a namespace is
// given, those of others and those of the cluster are in others. It returns the objects, too. Those that a cut-over has changed are in
// the sources as they were before.
func clusterSource(ctx context.Context, s *session, options cutover.Options, namespace string, knows func(group string) bool) (source, others migrate.Source, all []unstructured.Unstructured, err error) {
	var own, rest [][]byte
	add := func(in string, object any) error {
		raw, err := yamlOf(object)
		if namespace == "" || in == namespace {
			own = append(own, raw)
		} else {
			rest = append(rest, raw)
		}
		return err
	}
	kinds, err := convertedKinds(s, knows)
	if err != nil {
		return source, others, nil, err
	}
	moved, err := (&cutover.Cutover{Client: s.Client, Options: options}).Originals(ctx)
	if err != nil {
		return source, others, nil, err
	}
	originals := map[id]*unstructured.Unstructured{}
	for _, o := range moved {
		originals[idOf(o)] = o
	}
	for _, k := range kinds {
		s.Progress(k.Kind)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k)
		if err := s.Client.List(ctx, list, client.InNamespace("")); err != nil {
			return source, others, nil, fmt.Errorf("cannot list %s: %w", k.Kind, err)
		}
		all = append(all, list.Items...)
		for _, item := range list.Items {
			object := item.Object
			object = manifestOf(object)
			if original := originals[idOf(&item)]; original != nil {
				object["spec"] = original.Object["spec"]
			}
			if err := add(item.GetNamespace(), object); err != nil {
				return source, others, nil, err
			}
		}
	}
	accounts := &metav1.PartialObjectMetadataList{}
	accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	s.Progress("ServiceAccount")
	if err := s.Client.List(ctx, accounts); err != nil {
		return source, others, nil, fmt.Errorf("cannot list ServiceAccounts: %w", err)
	}
	s.Progress("")
	for _, a := range accounts.Items {
		err := add(a.Namespace, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"name": a.Name, "namespace": a.Namespace, "annotations": a.Annotations,
		}})
		if err != nil {
			return source, others, nil, err
		}
	}
	between := []byte("---\n")
	source, others = migrate.Source{Name: "cluster", Content: bytes.Join(own, between)}, migrate.Source{Name: "cluster", Content: bytes.Join(rest, between)}
	return source, others, all, nil
}

// yamlOf returns an object as YAML. The library refuses some control characters, which would end the command for all objects,
// and changes line separators. An object with such or with invisible characters becomes JSON, which is YAML, with escapes.
func yamlOf(object any) ([]byte, error) {
	raw, err := yaml.Marshal(object)
	if text := strings.ReplaceAll(string(raw), "\n", " "); err == nil && output.Clean(text) == text {
		return raw, nil
	}
	raw, err = json.MarshalIndent(object, "", "  ")
	return bytes.Join(escapes(raw), nil), err
}

// escapes splits JSON into characters, and escapes those that output cleans. YAML has no escapes of two halves of a character.
func escapes(raw []byte) [][]byte {
	all := bytes.Split(raw, nil)
	for i, c := range all {
		if r, _ := utf8.DecodeRune(c); r != '\n' && r <= 0xffff && output.Clean(string(r)) != string(r) {
			all[i] = fmt.Appendf(nil, `\u%04x`, r)
		}
	}
	return append(all, []byte("\n"))
}

// manifestOf returns an object without what the API server sets, which no manifest has. The report would list each field.
func manifestOf(object map[string]any) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		delete(metadata, field)
	}
	object["metadata"] = metadata
	return object
}

// convertedKinds returns the Kinds of the tools that migrate knows which the cluster serves, each in its preferred version.
func convertedKinds(s *session, knows func(group string) bool) ([]schema.GroupVersionKind, error) {
	groups, err := s.Discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("cannot list the API groups: %w", err)
	}
	var all []schema.GroupVersionKind
	for _, g := range groups.Groups {
		if !knows(g.Name) {
			continue
		}
		seen := map[string]bool{}
		versions := slices.Clone(g.Versions)
		at := slices.IndexFunc(versions, func(v metav1.GroupVersionForDiscovery) bool { return v.Version == g.PreferredVersion.Version })
		if at > 0 {
			versions[0], versions[at] = versions[at], versions[0]
		}
		for _, v := range versions {
			resources, err := s.Discovery.ServerResourcesForGroupVersion(v.GroupVersion)
			if err != nil {
				return nil, fmt.Errorf("cannot list the Kinds of %s: %w", v.GroupVersion, err)
			}
			for _, r := range resources.APIResources {
				if seen[r.Kind] || !slices.Contains(r.Verbs, "list") {
					continue
				}
				seen[r.Kind] = true
				all = append(all, schema.FromAPIVersionAndKind(v.GroupVersion, r.Kind))
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the cluster has no Kind that migrate converts; choose another cluster: --context")
	}
	return all, nil
}
