package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/migrate"
	"github.com/direct-secrets/direct-secrets/migrate/cutover"
)

// cutoverFlags are the flags of migrate that change the cluster.
type cutoverFlags struct {
	execute, revert bool
	selector        string
	cutover.Options
}

func (f *cutoverFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.execute, "execute", false, "With --cluster: move the ExternalSecrets and PushSecrets of a namespace (-n), or of all (-A), to direct-secrets.")
	c.Flags().BoolVar(&f.revert, "revert", false, "With --cluster: give back to External Secrets Operator what --execute moved.")
	c.Flags().StringVar(&f.selector, "selector", "", "With --execute or --revert: labels of the objects. Default: all.")
	c.Flags().BoolVar(&f.AcceptChanges, "accept-changes", false, "With --execute: also move objects of which the report says that something changes.")
	c.Flags().BoolVar(&f.ReconciliationSuspended, "reconciliation-suspended", false, "With --execute or --revert: also change objects that Argo CD or Flux manage. Suspend their reconciliation first.")
	c.Flags().BoolVar(&f.Remove, "remove", false, "With --execute: delete the objects of External Secrets Operator that were moved. Default: they stay, and write nothing.")
	c.Flags().StringVar(&f.JournalNamespace, "journal-namespace", "direct-secrets", "With --cluster: namespace of the journal. Tenants must not be able to write ConfigMaps in it.")
	c.Flags().DurationVar(&f.Timeout, "timeout", 2*time.Minute, "With --execute or --revert: how long each object may take.")
}

// check returns an error if flags do not fit together.
func (f *cutoverFlags) check(o *options, m *migration) error {
	switch {
	case f.execute && f.revert:
		return errors.New("use either --execute or --revert")
	case !m.cluster || len(m.files) > 0:
		return errors.New("--execute and --revert need --cluster, without -f")
	case m.out != "" || m.values != "" || m.report != "":
		return errors.New("--out, --values and --report have no effect with --execute or --revert; run the command without these first")
	case o.format == "markdown":
		return errors.New("--output: with --execute or --revert, use json, or none")
	case !o.allNamespaces && (o.config.Namespace == nil || *o.config.Namespace == ""):
		return errors.New("choose what to change: -n NAMESPACE, or -A for all namespaces")
	case f.Timeout <= 0:
		return errors.New("--timeout must be positive")
	}
	return nil
}

// cutOver moves objects of the cluster, or gives them back.
func (o *options) cutOver(ctx context.Context, m *migration) error {
	if err := m.cutover.check(o, m); err != nil {
		return err
	}
	selector, err := labels.Parse(m.cutover.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	matches := func(l map[string]string) bool { return selector.Matches(labels.Set(l)) }
	s, err := o.connect()
	if err != nil {
		return err
	}
	c := &cutover.Cutover{Client: s.Client, Options: m.cutover.Options, Report: o.printMoved}
	if m.cutover.revert {
		results, err := c.Revert(ctx, s.namespace, matches)
		if err != nil {
			return err
		}
		return o.moved(results)
	}
	units, err := o.units(ctx, s, m, matches)
	if err != nil {
		return err
	}
	// A PushSecret can push what an ExternalSecret writes, so these come first.
	var results []cutover.Result
	for _, k := range []string{"ExternalSecret", "ClusterExternalSecret", "PushSecret"} {
		results = append(results, c.Move(ctx, slices.DeleteFunc(slices.Clone(units), func(u cutover.Unit) bool { return u.From.GetKind() != k }))...)
	}
	return o.moved(results)
}

// units returns the objects to move.
func (o *options) units(ctx context.Context, s *session, m *migration, matches func(map[string]string) bool) ([]cutover.Unit, error) {
	options, err := m.options()
	if err != nil {
		return nil, err
	}
	source, _, found, err := clusterSource(ctx, s, m.cutover.Options, "", migrate.KnowsESO)
	if err != nil {
		return nil, err
	}
	result, err := migrate.Convert([]migrate.Source{source}, options)
	if err != nil {
		return nil, err
	}
	converted := parseConverted(result.Objects)
	var units []cutover.Unit
	for i := range found {
		from := &found[i]
		one := converted[idOf(from)]
		switch {
		case !slices.Contains([]string{"ExternalSecret", "PushSecret", "ClusterExternalSecret"}, from.GetKind()), !matches(from.GetLabels()):
		case s.namespace != "" && from.GetNamespace() != s.namespace:
		case s.namespace == "" && movedWith(one.madeBy, found, matches):
		default:
			u := cutover.Unit{From: from, To: one.object, MadeBy: one.madeBy, Changes: one.changes}
			addStores(&u, converted)
			units = append(units, u)
		}
	}
	return units, nil
}

// movedWith reports whether a ClusterExternalSecret is moved that makes an object.
func movedWith(madeBy string, found []unstructured.Unstructured, matches func(map[string]string) bool) bool {
	return slices.ContainsFunc(found, func(o unstructured.Unstructured) bool {
		return cutover.IsCluster(&o) && madeBy == o.GetKind()+" "+o.GetName() && matches(o.GetLabels())
	})
}

// addStores adds the converted stores and generators to which an object refers. Those of a ClusterExternalSecret are in the namespaces of
// what it makes.
func addStores(u *cutover.Unit, converted map[id]convertedObject) {
	if u.To == nil {
		return
	}
	namespaces := []string{"", u.From.GetNamespace()}
	for of, c := range converted {
		if cutover.IsCluster(u.From) && c.madeBy == u.From.GetKind()+" "+u.From.GetName() {
			namespaces = append(namespaces, of.namespace)
		}
	}
	for _, c := range converted {
		if c.object != nil && c.object.GroupVersionKind().Group != v1alpha1.Group && refersTo(u.To.Object["spec"], c.object) && slices.Contains(namespaces, c.object.GetNamespace()) {
			u.Stores = append(u.Stores, c.object)
			u.Changes += c.changes
		}
	}
}

// convertedObject is what an object became; object is nil if it cannot be converted.
type convertedObject struct {
	object  *unstructured.Unstructured
	madeBy  string
	changes int
}

// id identifies an object of External Secrets Operator. Its version does not matter.
type id struct{ group, kind, namespace, name string }

func idOf(o *unstructured.Unstructured) id {
	return id{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// parseConverted returns what objects became. One that cannot be read does not stop the others.
func parseConverted(all []migrate.Converted) map[id]convertedObject {
	parsed := map[id]convertedObject{}
	for _, c := range all {
		one := convertedObject{madeBy: c.MadeBy, changes: c.Changes}
		if o := (&unstructured.Unstructured{}); o.UnmarshalJSON(c.JSON) == nil {
			one.object = o
		}
		group, _, _ := strings.Cut(c.APIVersion, "/")
		parsed[id{group, c.Kind, c.Namespace, c.Name.Name}] = one
	}
	return parsed
}

// refersTo reports whether a part of an object refers to another object by its Kind, and its name or its labels.
func refersTo(part any, to *unstructured.Unstructured) bool {
	switch p := part.(type) {
	case map[string]any:
		if p["kind"] == to.GetKind() && (p["name"] == to.GetName() || selects(p["labelSelector"], to.GetLabels())) {
			return true
		}
		for _, below := range p {
			if refersTo(below, to) {
				return true
			}
		}
	case []any:
		for _, below := range p {
			if refersTo(below, to) {
				return true
			}
		}
	}
	return false
}

// selects reports whether a label selector, as in a manifest, selects labels.
func selects(selector any, of map[string]string) bool {
	raw, isMap := selector.(map[string]any)
	parsed := metav1.LabelSelector{}
	if !isMap || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &parsed) != nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(&parsed)
	return err == nil && s.Matches(labels.Set(of))
}

// printMoved prints a line for an object that has ended.
func (o *options) printMoved(r cutover.Result) {
	if o.format != "" {
		return
	}
	text := fmt.Sprintf("%-8s  %s %s", r.Outcome, r.Kind, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	_ = o.out.Line("%s", text)
}

// moved prints the totals, and returns the exit code.
func (o *options) moved(results []cutover.Result) error {
	counts := map[cutover.Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
	}
	if o.format == "json" {
		if err := o.out.JSON(results); err != nil {
			return err
		}
	} else {
		_ = o.out.Line("%d moved, %d reverted, %d left, %d failed", counts[cutover.Moved], counts[cutover.Reverted], counts[cutover.Left], counts[cutover.Failed])
	}
	switch {
	case counts[cutover.Failed] > 0:
		return exitCode(exitNotConverted)
	case counts[cutover.Left] > 0:
		return exitCode(exitUnsupported)
	}
	return nil
}
