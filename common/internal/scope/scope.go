// Package scope decides which namespaces can use a store of a cluster Kind, and for which keys. Its functions are
// pure. A refusal comes before any call to a provider.
package scope

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/pattern"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Rules are the conditions of a store, ready for use.
type Rules struct {
	entries []entry
}

type entry struct {
	// everyone is true if the entry has no rule for namespaces.
	everyone bool
	selector labels.Selector
	names    []string
	regexes  []*regexp.Regexp
	// keys are the patterns of allowedKeys. Without any pattern, all keys are allowed.
	keys     []string
	readOnly bool
}

// New returns the Rules of a store. An error has class Invalid and names the field.
func New(spec *v1alpha1.ClusterStoreSpec) (*Rules, error) {
	r := &Rules{}
	for i, c := range spec.Conditions {
		e := entry{
			everyone: c.NamespaceSelector == nil && len(c.Namespaces) == 0 && len(c.NamespaceRegexes) == 0,
			names:    c.Namespaces, keys: c.AllowedKeys, readOnly: c.Access == v1alpha1.AccessReadOnly,
		}
		if c.NamespaceSelector != nil {
			s, err := metav1.LabelSelectorAsSelector(c.NamespaceSelector)
			if err != nil {
				return nil, provider.NewError(provider.Invalid, "spec.conditions[%d].namespaceSelector: invalid label selector; correct its keys, operators and values", i)
			}
			e.selector = s
		}
		for j, expr := range c.NamespaceRegexes {
			re, err := pattern.Compile("^(?:" + expr + ")$")
			if err != nil {
				return nil, provider.NewError(provider.Invalid, "spec.conditions[%d].namespaceRegexes[%d]: %s", i, j, err)
			}
			e.regexes = append(e.regexes, re)
		}
		if slices.Contains(c.AllowedKeys, "") {
			return nil, provider.NewError(provider.Invalid, "spec.conditions[%d].allowedKeys: an empty pattern matches no key; remove it, or write *", i)
		}
		r.entries = append(r.entries, e)
	}
	return r, nil
}

// ByLabels reports whether the rules use the labels of a namespace.
func (r *Rules) ByLabels() bool {
	return slices.ContainsFunc(r.entries, func(e entry) bool { return e.selector != nil })
}

// Grant returns what a namespace is allowed to do; false if it cannot use the store.
func (r *Rules) Grant(namespace string, of map[string]string) (Grant, bool) {
	if len(r.entries) == 0 {
		return Grant{permissions: []right{{}}}, true
	}
	var g Grant
	for _, e := range r.entries {
		if !e.admits(namespace, of) {
			continue
		}
		keys := make([]string, len(e.keys))
		for i, k := range e.keys {
			keys[i] = strings.ReplaceAll(k, "${namespace}", namespace)
		}
		g.permissions = append(g.permissions, right{keys: keys, readOnly: e.readOnly})
	}
	return g, len(g.permissions) > 0
}

func (e entry) admits(namespace string, of map[string]string) bool {
	return e.everyone ||
		slices.Contains(e.names, namespace) ||
		e.selector != nil && e.selector.Matches(labels.Set(of)) ||
		slices.ContainsFunc(e.regexes, func(re *regexp.Regexp) bool { return re.MatchString(namespace) })
}

// A Grant is what a namespace can do with a store: all that the entries that admit it allow.
type Grant struct {
	permissions []right
}

type right struct {
	// keys are patterns. Without any pattern, all keys are allowed.
	keys     []string
	readOnly bool
}

// Reads returns the reason why a read is not allowed; nil if it is.
func (g Grant) Reads(r provider.Read) error {
	if r.Search != (provider.Search{}) {
		return g.finds(r.Search.Path)
	}
	return g.key(r.Ref.Key, func(right) bool { return true })
}

// Writes returns the reason why a write of a key is not allowed; nil if it is.
func (g Grant) Writes(key string) error {
	return g.key(key, func(r right) bool { return !r.readOnly })
}

// key checks a key against those entries of the Grant for which counts is true.
func (g Grant) key(key string, counts func(right) bool) error {
	odd := evades(key)
	for _, r := range g.permissions {
		if !counts(r) {
			continue
		}
		if len(r.keys) == 0 || odd == "" && slices.ContainsFunc(r.keys, func(p string) bool { return matches(p, key) }) {
			return nil
		}
	}
	if odd != "" {
		return fmt.Errorf("key %.256q is not allowed: %s, and the store limits the keys of this namespace", key, odd)
	}
	return fmt.Errorf("key %.256q is not allowed in this namespace by spec.conditions of the store; %s", key, g.advice(counts))
}

// mostPatterns is the maximum number of patterns in a message.
const mostPatterns = 5

// advice says which keys are allowed.
func (g Grant) advice(counts func(right) bool) string {
	var keys []string
	for _, r := range g.permissions {
		if counts(r) {
			keys = append(keys, r.keys...)
		}
	}
	more := ""
	switch {
	case len(keys) == 0:
		return "no key is"
	case len(keys) > mostPatterns:
		keys, more = keys[:mostPatterns], " and others"
	}
	return fmt.Sprintf("use a key that matches %.64q%s, or have the owner of the store add one to allowedKeys", keys, more)
}

// finds checks a search: every key that it can return must be allowed.
func (g Grant) finds(path string) error {
	odd := evades(strings.TrimSuffix(path, "/"))
	for _, r := range g.permissions {
		if len(r.keys) == 0 || odd == "" && slices.ContainsFunc(r.keys, func(p string) bool { return covers(p, path) }) {
			return nil
		}
	}
	return fmt.Errorf("find with path %.256q is not allowed: it can return keys that spec.conditions of the store does not allow in this namespace; set find.path to the part of an allowed pattern before its *", path)
}

// evades returns why a provider might interpret a key as another one; empty if it does not.
func evades(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\' || r == '%' || r == '?' || r == '#' || r == '\uFFFD'
	}) {
		return `it has a control character, or one of \ % ? #`
	}
	for i, segment := range strings.Split(key, "/") {
		if segment == "." || segment == ".." || segment == "" && i > 0 {
			return `it has ".", ".." or nothing between two slashes`
		}
	}
	return ""
}

// absolute are prefixes of keys that name a secret anywhere, regardless of the prefix that the store adds to its
// keys. A pattern allows such a key only if it starts with the same prefix.
var absolute = []string{"arn:", "projects/"}

// matches reports whether a pattern, in which * stands for any characters, matches all of a key.
func matches(p, key string) bool {
	parts := strings.Split(p, "*")
	for _, a := range absolute {
		if len(key) >= len(a) && strings.EqualFold(key[:len(a)], a) && !strings.HasPrefix(parts[0], a) {
			return false
		}
	}
	if len(parts) == 1 {
		return p == key
	}
	rest, ok := strings.CutPrefix(key, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// covers reports whether a pattern matches every key that starts with path. That is certain only if its only * is its
// last character.
func covers(p, path string) bool {
	prefix, ok := strings.CutSuffix(p, "*")
	return ok && !strings.Contains(prefix, "*") && strings.HasPrefix(path, prefix)
}
