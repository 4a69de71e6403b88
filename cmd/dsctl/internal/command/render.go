package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/offline"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// rendered is a rendered Secret or ConfigMap without its values.
type rendered struct {
	ExternalSecret string            `json:"externalSecret"`
	Namespace      string            `json:"namespace,omitempty"`
	Secret         string            `json:"secret,omitempty"`
	ConfigMap      string            `json:"configMap,omitempty"`
	Type           corev1.SecretType `json:"type,omitempty"`
	// Absent is set if deletionPolicy means that there is no Secret or ConfigMap.
	Absent      bool     `json:"absent,omitempty"`
	Data        []datum  `json:"data,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// A datum is a key with the size of its value, or with the placeholder of a value that is not known.
type datum struct {
	Key         string `json:"key"`
	Bytes       *int   `json:"bytes,omitempty"`
	Placeholder string `json:"placeholder,omitempty"`
}

func newRender(o *options) *cobra.Command {
	manifest, values, show := "", "", false
	c := &cobra.Command{
		Use:   "render -f FILE [--values FILE]",
		Short: "Render an ExternalSecret with values from a file, without a cluster",
		Long: `render shows which Secret or ConfigMap an ExternalSecret yields, with the values of a file in place of those of stores. It needs no cluster.
It prints the names and sizes of keys. With --show-values it prints the Secret or ConfigMap. Without --values a placeholder takes the place of each value: it names the remote
key and property.

The file of values is YAML:

  remote:                          # remote secrets by key, of any store; what is not a string becomes JSON
    shop/db: {user: shop, password: example}
  stores:                          # remote secrets of one store
    VaultKV/kv: {shop/token: example}
  generators:
    Password/db: {password: example}
  templates:                       # contents of ConfigMaps and Secrets that templateFrom names
    ConfigMap/app: {config.yaml: "password: {{ .password }}"}
  metadata:                        # metadata such as tags, for find.tags and metadataPolicy: Fetch
    shop/db: {team: shop}`,
		Example: `  dsctl render -f externalsecret.yaml
  dsctl render -f externalsecret.yaml --values values.yaml
  dsctl render -f externalsecret.yaml --values values.yaml --show-values`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.render(manifest, values, show) },
	}
	o.addOutput(c, "json", "yaml")
	addManifest(c, &manifest)
	addValues(c, &values)
	_ = c.MarkFlagRequired("filename") // The flag exists.
	c.Flags().BoolVar(&show, "show-values", false, "Print the Secret or ConfigMap with its values.")
	return c
}

func addManifest(c *cobra.Command, to *string) {
	c.Flags().StringVarP(to, "filename", "f", "", "Manifest with ExternalSecrets; - is standard input.")
}

func addValues(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "values", "", "File with the values of stores and generators.")
}

func (o *options) render(manifest, values string, show bool) error {
	all, err := o.readManifest(manifest, *o.config.Namespace)
	if err != nil {
		return err
	}
	source, err := o.sourceOf(values)
	if err != nil {
		return err
	}
	results, objects := []rendered{}, []client.Object{}
	var failed error
	for _, es := range all {
		s, err := source(es)
		var object client.Object
		if err == nil && s != nil {
			object, err = inspect.Manifest(es, s)
		}
		if err != nil {
			o.errs.Error(fmt.Errorf("ExternalSecret %s: %w", es.Name, err))
			failed = exitCode(ExitFailed)
			continue
		}
		results = append(results, newRendered(es, s, values == ""))
		if object != nil {
			objects = append(objects, object)
		}
	}
	if len(results) > 0 || o.format == "json" {
		err = o.printRendered(results, objects, show)
	}
	if err != nil {
		return err
	}
	return failed
}

// sourceOf returns what renders an ExternalSecret: with the values of a file, or with placeholders without one.
func (o *options) sourceOf(values string) (func(*v1alpha1.ExternalSecret) (*corev1.Secret, error), error) {
	if values != "" {
		remote, err := o.readValues(values)
		return func(es *v1alpha1.ExternalSecret) (*corev1.Secret, error) { return inspect.Render(es, remote) }, err
	}
	_ = o.errs.Line("note: all values are placeholders, so a template that decodes or checks a value can fail: use --values")
	return func(es *v1alpha1.ExternalSecret) (*corev1.Secret, error) {
		if _, complete := offline.Named(es); !complete {
			_ = o.errs.Line("note: ExternalSecret %s: dataFrom and templateFrom can add keys that depend on values: use --values", es.Name)
		}
		return inspect.RenderPlaceholders(es)
	}, nil
}

func (o *options) printRendered(results []rendered, objects []client.Object, show bool) error {
	switch {
	case show && o.format == "json":
		return o.out.JSON(objects)
	case show:
		return output.YAML(o.out, objects)
	case o.format == "json":
		return o.out.JSON(results)
	case o.format == "yaml":
		return output.YAML(o.out, results)
	}
	for _, r := range results {
		if err := o.out.Lines(r.lines()); err != nil {
			return err
		}
	}
	return nil
}

func newRendered(es *v1alpha1.ExternalSecret, s *corev1.Secret, placeholders bool) rendered {
	r := rendered{ExternalSecret: es.Name, Namespace: es.Namespace, Absent: s == nil}
	kind, name := inspect.TargetOf(es)
	if kind == v1alpha1.TargetConfigMap {
		r.ConfigMap = name
	} else {
		r.Secret = name
	}
	if s == nil {
		return r
	}
	if kind == v1alpha1.TargetSecret {
		r.Type = s.Type
	}
	r.Labels, r.Annotations = slices.Sorted(maps.Keys(s.Labels)), slices.Sorted(maps.Keys(s.Annotations))
	for _, k := range slices.Sorted(maps.Keys(s.Data)) {
		d := datum{Key: k}
		if placeholders {
			d.Placeholder = string(s.Data[k])
		} else {
			d.Bytes = ptr.To(len(s.Data[k]))
		}
		r.Data = append(r.Data, d)
	}
	return r
}

func (r rendered) lines() output.Lines {
	var b output.Lines
	name := "Secret " + prefixOf(r.Namespace) + r.Secret
	if r.ConfigMap != "" {
		name = "ConfigMap " + prefixOf(r.Namespace) + r.ConfigMap
	}
	switch {
	case r.Absent:
		b.Add("%s: none, because of spec.target.deletionPolicy", name)
	case r.Type != "":
		b.Add("%s of type %s", name, r.Type)
	default:
		b.Add("%s", name)
	}
	for _, d := range r.Data {
		if d.Bytes == nil {
			b.Add("  %s: %s", d.Key, d.Placeholder)
			continue
		}
		b.Add("  %s: %d bytes", d.Key, *d.Bytes)
	}
	for _, l := range []struct {
		what  string
		names []string
	}{{"labels", r.Labels}, {"annotations", r.Annotations}} {
		if len(l.names) > 0 {
			b.Add("  %s: %s", l.what, strings.Join(l.names, ", "))
		}
	}
	return b
}
