package command

import (
	"context"
	"errors"
	"fmt"

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
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

func newDiff(o *options) *cobra.Command {
	manifest, values := "", ""
	c := &cobra.Command{
		Use:   "diff {NAME ... | -f FILE} [--values FILE]",
		Short: "Show what an ExternalSecret or a PushSecret would change, by names only",
		Long: `diff compares the Secret or ConfigMap that an ExternalSecret yields with the one in the cluster. It prints names of keys, labels and
annotations, and never a value. It changes nothing, and reads no store.

For an object with creationPolicy None it prints what the operator has compared, values included.
For others, without --values, it knows the keys that the spec names, and reads of the Secret or ConfigMap only its metadata.
With --values, a file as for render, it compares values, too, and needs the permission to get the Secret or ConfigMap.

For a PushSecret (pushsecret/NAME) with spec.dryRun it prints what the operator would do in each store, values compared.

Exit codes: 0 nothing would change, 1 the command failed, 2 something would change, or the Secret would be refused.`,
		Example: `  dsctl diff -f externalsecret.yaml -n shop
  dsctl diff db -n shop --values values.yaml
  dsctl diff pushsecret/db -n shop`,
		ValidArgsFunction: o.completeObjects(differs),
		RunE:              func(c *cobra.Command, args []string) error { return o.diff(c.Context(), args, manifest, values) },
	}
	o.addOutput(c, "json")
	addManifest(c, &manifest)
	addValues(c, &values)
	return c
}

// differs reports whether diff can show what an object of a Kind would change.
func differs(k snapshot.Kind) bool {
	return k.Kind == snapshot.ExternalSecret || k.Kind == snapshot.PushSecret
}

// changeable is an object that diff shows: one of its fields is set.
type changeable struct {
	external *v1alpha1.ExternalSecret
	push     *v1alpha1.PushSecret
}

func (o *options) diff(ctx context.Context, args []string, manifest, values string) error {
	if (len(args) > 0) == (manifest != "") {
		return errors.New("name ExternalSecrets or PushSecrets, or use -f")
	}
	s, err := o.connect()
	if err != nil {
		return err
	}
	all, err := o.changeables(ctx, s, args, manifest)
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
	differences, found := []any{}, false
	var text output.Lines
	for _, c := range all {
		shown, err := c.differences(ctx, s, remote)
		if err != nil {
			return err
		}
		for _, d := range shown {
			found = found || d.action != inspect.Unchanged
			differences = append(differences, d.data)
			text = append(text, d.text...)
		}
	}
	if o.format == "json" {
		err = o.out.JSON(differences)
	} else {
		err = o.out.Lines(text)
	}
	if err == nil && found {
		return errFound
	}
	return err
}

// difference is one difference in the forms in which diff prints it.
type difference struct {
	action inspect.Action
	data   any
	text   output.Lines
}

// differences returns what the object would change.
func (c changeable) differences(ctx context.Context, s *session, remote *inspect.Remote) (all []difference, err error) {
	if c.push == nil {
		d, err := compare(ctx, s, c.external, remote)
		if err != nil {
			return nil, fmt.Errorf("ExternalSecret %s: %w", c.external.Name, err)
		}
		return []difference{{d.Action, d, format(d)}}, nil
	}
	reported, err := offline.ReportedPush(c.push)
	if err != nil {
		return nil, fmt.Errorf("PushSecret %s: %w", c.push.Name, err)
	}
	for _, d := range reported {
		all = append(all, difference{d.Action, d, formatPush(d)})
	}
	return all, nil
}

// changeables returns the objects of a manifest, or of the cluster.
func (o *options) changeables(ctx context.Context, s *session, args []string, manifest string) ([]changeable, error) {
	var all []changeable
	if manifest != "" {
		read, err := o.readManifest(manifest, s.namespace)
		for _, es := range read {
			all = append(all, changeable{external: es})
		}
		return all, err
	}
	objects, err := choose(ctx, s, args, selection{}, differs)
	for i := range objects {
		all = append(all, changeable{objects[i].ExternalSecret, objects[i].PushSecret})
	}
	return all, err
}

// compare compares the result of an ExternalSecret with its Secret. Without values it reads only the metadata
// of the Secret.
func compare(ctx context.Context, s *session, es *v1alpha1.ExternalSecret, remote *inspect.Remote) (offline.Difference, error) {
	key, targets := types.NamespacedName{Namespace: es.Namespace, Name: es.TargetName()}, inspect.Targets(s.Client)
	if remote == nil {
		if d, found := offline.Reported(es); found {
			return d, nil
		}
		if err := inspect.Check(es); err != nil {
			return offline.Difference{}, err
		}
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		live := offline.Live{}
		if err := targets.Get(ctx, key, m); client.IgnoreNotFound(err) != nil {
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
	if err := targets.Get(ctx, key, live.Secret); client.IgnoreNotFound(err) != nil {
		return offline.Difference{}, err
	} else if err != nil {
		live.Secret = nil
	}
	return offline.Compare(es, want, true, live), nil
}

func format(d offline.Difference) output.Lines {
	var b output.Lines
	kind, name := v1alpha1.TargetSecret, d.Secret
	if d.ConfigMap != "" {
		kind, name = v1alpha1.TargetConfigMap, d.ConfigMap
	}
	b.Add("ExternalSecret %s%s, %s %[1]s%[4]s: %[5]s", prefixOf(d.Namespace), d.ExternalSecret, kind, name, d.Action)
	for _, n := range []struct {
		what string
		v1alpha1.NameDifference
	}{{"data", d.Data}, {"labels", d.Labels}, {"annotations", d.Annotations}} {
		for _, c := range []struct {
			sign  string
			names []string
		}{{"+", n.Added}, {"~", n.Changed}, {"-", n.Removed}} {
			for _, name := range c.names {
				b.Add("  %s %s %s", c.sign, n.what, name)
			}
		}
	}
	remarks(&b, d.Problems, d.Notes)
	return b
}

// signs are the first characters of a line about a remote secret, by action.
var signs = map[v1alpha1.PushAction]string{
	v1alpha1.PushCreate: "+", v1alpha1.PushUpdate: "~", v1alpha1.PushUpdateMetadata: "~ metadata of", v1alpha1.PushDelete: "-",
	v1alpha1.PushOwn:  "~ mark of",
	v1alpha1.PushKeep: "= kept:", v1alpha1.PushFail: "! fails:",
}

func formatPush(d offline.PushDifference) output.Lines {
	var b output.Lines
	b.Add("PushSecret %s%s, %s %s: %s", prefixOf(d.Namespace), d.PushSecret, d.StoreKind, d.StoreName, d.Action)
	for _, e := range d.Entries {
		sign, known := signs[e.Action]
		if !known {
			sign = string(e.Action) // A newer operator reports it.
		}
		name := e.RemoteKey
		if e.Property != "" {
			name += " property " + e.Property
		}
		b.Add("  %s %s", sign, name)
	}
	remarks(&b, d.Problems, d.Notes)
	return b
}

// prefixOf returns the prefix of a name in a namespace; empty if the namespace is unknown.
func prefixOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

func remarks(b *output.Lines, problems, notes []string) {
	for _, p := range problems {
		b.Add("  problem: %s", p)
	}
	for _, n := range notes {
		b.Add("  note: %s", n)
	}
}
