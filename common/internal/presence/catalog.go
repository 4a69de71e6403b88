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
	switch {
	case ofGroup != "":
		return fmt.Sprintf("no running module serves %s of %s; correct the kind, or install a version of %s that has it", ref.Kind, group, ofGroup)
	case group != "":
		return fmt.Sprintf("no running module serves %s of %s; correct apiVersion and kind, or install the module that has this Kind", ref.Kind, group)
	}
	return fmt.Sprintf("no running module serves %s; correct the kind, or install the module that has this Kind", ref.Kind)
}
