package presence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// twin is the prefix of cluster Kinds.
const twin = "Cluster"

// A Catalog maps the Kinds of modules that can be installed to the modules. The chart sets it. It is used only for
// messages: modules and Kinds that are not in it work as well. It is a flag.Value.
type Catalog map[schema.GroupKind]string

// Set adds a module and its Kinds: MODULE=KIND.GROUP,KIND.GROUP. Cluster twins need not be listed.
func (c *Catalog) Set(text string) error {
	module, kinds, ok := strings.Cut(text, "=")
	if !ok || module == "" || kinds == "" {
		return errors.New("must be MODULE=KIND.GROUP,KIND.GROUP")
	}
	all := maps.Clone(*c)
	if all == nil {
		all = Catalog{}
	}
	for k := range strings.SplitSeq(kinds, ",") {
		gk := schema.ParseGroupKind(k)
		if gk.Kind == "" || gk.Group == "" {
			return errors.Errorf("%q must be KIND.GROUP, such as AWSSecretsManager.aws.direct-secrets.io", k)
		}
		gk.Kind = strings.TrimPrefix(gk.Kind, twin)
		all[gk] = module
	}
	*c = all
	return nil
}

// String returns the Kinds with their modules.
func (c *Catalog) String() string {
	if c == nil {
		return ""
	}
	var all []string
	for _, k := range c.kinds() {
		all = append(all, (*c)[k]+"="+k.String())
	}
	return strings.Join(all, " ")
}

// kinds returns the Kinds in a fixed order, so that messages do not change.
func (c Catalog) kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(c), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// hint returns a message that no running module serves a reference, with a fix.
func (c Catalog) hint(ref *v1alpha1.StoreRef) string {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	kind, ofGroup := strings.TrimPrefix(ref.Kind, twin), ""
	for _, k := range c.kinds() {
		module := c[k]
		switch {
		case group != "" && group != k.Group:
		case k.Kind == kind:
			return fmt.Sprintf("no running module serves %s; set %s.enabled=true in the chart", ref.Kind, module)
		case group != "":
			ofGroup = module
		}
	}
	cluster, similar, meant := strings.TrimSuffix(ref.Kind, kind), c.similar(kind), c.misspelt(ref)
	switch {
	case group != "" && len(meant) > 0:
		return fmt.Sprintf("no running module serves %s of %s; did you mean %s? Otherwise install a version of %s that has this Kind", ref.Kind, group, cluster+strings.Join(meant, " or "+cluster), ofGroup)
	case ofGroup != "":
		return fmt.Sprintf("no running module serves %s of %s; correct the kind, or install a version of %s that has it", ref.Kind, group, ofGroup)
	case group != "":
		return fmt.Sprintf("no running module serves %s of %s; correct apiVersion and kind, or install the module that has this Kind", ref.Kind, group)
	case kind == "SecretStore":
		return ref.Kind + " is a Kind of External Secrets Operator; name the Kind of the store itself, such as AWSSecretsManager, or convert the manifests with dsctl migrate"
	case len(similar) > 0:
		return fmt.Sprintf("no running module serves %s; did you mean %s? Otherwise install the module that has this Kind", ref.Kind, cluster+strings.Join(similar, " or "+cluster))
	}
	return fmt.Sprintf("no running module serves %s; correct the kind, or install the module that has this Kind", ref.Kind)
}

// misspelt returns the Kinds of the catalog from which the Kind of a reference differs in one letter, in case or in a plural; none if
// the catalog has that Kind.
func (c Catalog) misspelt(ref *v1alpha1.StoreRef) (all []string) {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	kind := strings.TrimPrefix(ref.Kind, twin)
	for _, k := range c.kinds() {
		a, b := fold(kind), fold(k.Kind)
		switch {
		case group != "" && group != k.Group || len(a) <= minFold:
		case k.Kind == kind:
			return nil
		case a == b || near(a, b):
			all = append(all, k.Kind)
		}
	}
	return all
}

// minFold is the length of a folded Kind that has no similar ones.
const minFold = 3

// similar returns the Kinds that a misspelt Kind may mean: they differ in case, in a plural, in one letter, or one contains the other.
func (c Catalog) similar(kind string) (all []string) {
	for _, k := range c.kinds() {
		a, b := fold(kind), fold(k.Kind)
		if len(a) > minFold && (strings.Contains(a, b) || strings.Contains(b, a) || near(a, b)) {
			all = append(all, k.Kind)
		}
	}
	return all
}

// fold returns a Kind without differences in case and in plurals.
func fold(kind string) string { return strings.ReplaceAll(strings.ToLower(kind), "s", "") }

// near reports whether two texts differ in one letter: another one, one too many, or two that are exchanged.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch x, y := a[i:], b[i:]; {
	case len(y)-len(x) == 1:
		return x == y[1:]
	case len(x) != len(y) || x == "":
		return false
	default:
		return x[1:] == y[1:] || len(x) > 1 && x[0] == y[1] && x[1] == y[0] && x[2:] == y[2:]
	}
}
