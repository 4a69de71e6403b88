package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/offline"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

func newDiff(o *options) *cobra.Command {
	manifest, values := "", ""
	c := &cobra.Command{
		Use:   "diff {NAME ... | -f FILE} [--values FILE]",
		Short: "Show what an ExternalSecret would change in its Secret, by names only",
		Long: `diff compares the Secret that an ExternalSecret yields with the one in the cluster. It prints names of keys, labels and
annotations, and never a value. It changes nothing, and reads no store.

For an object with creationPolicy None it prints what the operator has compared, values included.
For others, without --values, it knows the keys that the spec names, and reads of the Secret only its metadata.
With --values, a file as for render, it compares values, too, and needs the permission to get the Secret.

Exit codes: 0 nothing would change, 1 the command failed, 2 something would change, or the Secret would be refused.`,
		Example: `  dsctl diff -f externalsecret.yaml -n shop
  dsctl diff db -n shop --values values.yaml`,
		ValidArgsFunction: o.completeObjects(func(k snapshot.Kind) bool { return k.Kind == snapshot.ExternalSecret }),
		RunE:              func(c *cobra.Command, args []string) error { return o.diff(c.Context(), args, manifest, values) },
	}
	o.addOutput(c, "json")
	addManifest(c, &manifest)
	addValues(c, &values)
	return c
}

func (o *options) diff(ctx context.Context, args []string, manifest, values string) error {
	if (len(args) > 0) == (manifest != "") {
		return errors.New("name ExternalSecrets, or use -f")
	}
	s, err := o.connect()
	if err != nil {
		return err
	}
	all, err := o.externalSecrets(ctx, s, args, manifest)
	if err != nil {
		return err
	}
	var remote *inspect.Remote
	if values != "" {
		r, err := o.readValues(values)
		if err != nil {
			return err
		}
		remote = &r
	}
	differences, differs := []offline.Difference{}, false
	for _, es := range all {
		d, err := compare(ctx, s, es, remote)
		if err != nil {
			return fmt.Errorf("ExternalSecret %s: %w", es.Name, err)
		}
		differs = differs || d.Action != offline.Unchanged
		differences = append(differences, d)
	}
	if o.output == "json" {
		err = printJSON(o.Out, differences)
	} else {
		err = printDifferences(o.Out, differences)
	}
	if err == nil && differs {
		return errFound
	}
	return err
}

func (o *options) externalSecrets(ctx context.Context, s *session, args []string, manifest string) ([]*v1alpha1.ExternalSecret, error) {
	if manifest != "" {
		return o.readManifest(manifest, s.namespace)
	}
	var all []*v1alpha1.ExternalSecret
	for _, name := range args {
		es := &v1alpha1.ExternalSecret{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, es); err != nil {
			return nil, err
		}
		all = append(all, es)
	}
	return all, nil
}

// compare compares the result of an ExternalSecret with its Secret. Without values it reads only the metadata
// of the Secret.
func compare(ctx context.Context, s *session, es *v1alpha1.ExternalSecret, remote *inspect.Remote) (offline.Difference, error) {
	key := types.NamespacedName{Namespace: es.Namespace, Name: es.TargetName()}
	if remote == nil {
		if d, found := offline.Reported(es); found {
			return d, nil
		}
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		live := offline.Live{}
		if err := s.Client.Get(ctx, key, m); client.IgnoreNotFound(err) != nil {
			return offline.Difference{}, err
		} else if err == nil {
			live.Secret = &corev1.Secret{ObjectMeta: m.ObjectMeta}
		}
		want, complete := offline.Named(es)
		return offline.Compare(es, want, complete, live), nil
	}
	want, err := inspect.Render(es, *remote)
	if err != nil {
		return offline.Difference{}, err
	}
	live := offline.Live{Secret: &corev1.Secret{}, Values: true}
	if err := s.Client.Get(ctx, key, live.Secret); client.IgnoreNotFound(err) != nil {
		return offline.Difference{}, err
	} else if err != nil {
		live.Secret = nil
	}
	return offline.Compare(es, want, true, live), nil
}

func printDifferences(w io.Writer, all []offline.Difference) error {
	var b strings.Builder
	for _, d := range all {
		prefix := ""
		if d.Namespace != "" {
			prefix = d.Namespace + "/"
		}
		fmt.Fprintf(&b, "ExternalSecret %s%s, Secret %[1]s%[3]s: %[4]s\n", prefix, d.ExternalSecret, d.Secret, d.Action)
		for _, n := range []struct {
			what string
			offline.Names
		}{{"data", d.Data}, {"labels", d.Labels}, {"annotations", d.Annotations}} {
			for _, c := range []struct {
				sign  string
				names []string
			}{{"+", n.Added}, {"~", n.Changed}, {"-", n.Removed}} {
				for _, name := range c.names {
					fmt.Fprintf(&b, "  %s %s %s\n", c.sign, n.what, name)
				}
			}
		}
		for _, p := range d.Problems {
			fmt.Fprintf(&b, "  problem: %s\n", line(p))
		}
		for _, n := range d.Notes {
			fmt.Fprintf(&b, "  note: %s\n", line(n))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
