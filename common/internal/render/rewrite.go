package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/pattern"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Limits of a rewrite. The cost of an expression grows with the square of the key's length.
const (
	// maxRewrite limits the bytes of all keys of an entry, before and after: 10,000 keys of ordinary length.
	maxRewrite = 1 << 20
	// maxRewriteKey limits the length of a key that is rewritten; a Secret accepts 253 characters.
	maxRewriteKey = 2048
	// maxRewriteTarget limits the text that replaces a match.
	maxRewriteTarget = 512
	// maxMembers limits the members of all objects of a merge. It is more than a Secret can hold.
	maxMembers = 200_000
)

// The strategies and policies of a merge. Unset means the first of each.
const (
	mergeExtract, mergeJSON          = "Extract", "JSON"
	priorityStrict, priorityIgnore   = "Strict", "IgnoreNotFound"
	conflictError, conflictIgnoreAll = "Error", "Ignore"
)

// checkRewrite returns an error with the problem of a rewrite and its fix.
func checkRewrite(w v1alpha1.Rewrite) error {
	set := 0
	for _, is := range []bool{w.Regexp != nil, w.Transform != nil, w.Merge != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.Errorf("%d of regexp, transform and merge are set; set exactly one", set)
	case w.Regexp != nil:
		_, err := compile(*w.Regexp)
		return err
	case w.Merge != nil:
		return errors.Wrap(checkMerge(*w.Merge), "merge")
	}
	return nil // A template is only checked when it is rendered.
}

func checkMerge(m v1alpha1.RewriteMerge) error {
	if err := known(
		enum{"strategy", m.Strategy, []string{mergeExtract, mergeJSON}},
		enum{"priorityPolicy", m.PriorityPolicy, []string{priorityStrict, priorityIgnore}},
		enum{"conflictPolicy", m.ConflictPolicy, []string{conflictError, conflictIgnoreAll}},
	); err != nil {
		return err
	}
	if m.Strategy == mergeJSON && m.Into == "" {
		return errors.New("into is empty; strategy JSON needs the key of the merged object")
	}
	return nil
}

// compile returns the expression of a step. The error names the field and the fix.
func compile(w v1alpha1.RewriteRegexp) (*regexp.Regexp, error) {
	if len(w.Target) > maxRewriteTarget {
		return nil, errors.Errorf("regexp.target has %d characters, at most %d are allowed; shorten it", len(w.Target), maxRewriteTarget)
	}
	re, err := pattern.Compile(w.Source)
	return re, errors.Wrap(err, "regexp.source")
}

// Rewrite changes keys by one step after another. field names the steps in errors, which have class Invalid or
// Template.
func Rewrite(kvs []KeyValue, steps []v1alpha1.Rewrite, field string) ([]KeyValue, error) {
	return rewrite(kvs, steps, field, template.NewBudget(), newWork())
}

// Former returns the text " (before: KEY)" with the key that was renamed to the key at an index; empty if none was, or if a merge
// has made the keys.
func Former(before, after []KeyValue, steps []v1alpha1.Rewrite, i int) string {
	merges := func(w v1alpha1.Rewrite) bool { return w.Merge != nil }
	if len(before) != len(after) || slices.ContainsFunc(steps, merges) || before[i].Key == after[i].Key {
		return ""
	}
	return fmt.Sprintf(" (before: %.64q)", before[i].Key)
}

// rewrite is Rewrite with a budget for templates, and one for everything else.
func rewrite(kvs []KeyValue, steps []v1alpha1.Rewrite, field string, budget, work *template.Budget) ([]KeyValue, error) {
	for i, w := range steps {
		var err error
		at := fmt.Sprintf("%s.rewrite[%d]", field, i)
		switch {
		case w.Regexp != nil:
			kvs, err = rename(kvs, *w.Regexp, at, work)
		case w.Transform != nil:
			kvs, err = transform(kvs, *w.Transform, at, budget)
		case w.Merge != nil:
			kvs, err = merge(kvs, *w.Merge, at+".merge", work)
		}
		if err != nil {
			return nil, err
		}
	}
	return kvs, nil
}

func rename(kvs []KeyValue, w v1alpha1.RewriteRegexp, at string, work *template.Budget) ([]KeyValue, error) {
	re, err := compile(w)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s.%s", at, err)
	}
	replacer, err := template.NewReplacer(re, work)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s.regexp.source: %s", at, err)
	}
	size := 0
	out := make([]KeyValue, len(kvs))
	for i, kv := range kvs {
		if len(kv.Key) > maxRewriteKey {
			return nil, provider.NewError(provider.Invalid, "%s: the key %.64q has %d bytes, and only keys of at most %d can be rewritten", at, kv.Key, len(kv.Key), maxRewriteKey)
		}
		key, err := replacer.Replace(kv.Key, w.Target)
		if err != nil {
			return nil, in(at+".regexp", errWork)
		}
		if size += max(len(kv.Key), len(key)); size > maxRewrite {
			return nil, provider.NewError(provider.Invalid, "%s: the keys have more than %d bytes in total; read fewer secrets or shorten regexp.target", at, maxRewrite)
		}
		out[i] = KeyValue{Key: key, Value: kv.Value}
	}
	return out, unique(kvs, out, at)
}

// transform renders each new key from the old one, which is .value in the template.
func transform(kvs []KeyValue, w v1alpha1.RewriteTransform, at string, budget *template.Budget) ([]KeyValue, error) {
	out := make([]KeyValue, len(kvs))
	for i, kv := range kvs {
		key, err := engine.Execute(at+".transform.template", w.Template, map[string]string{"value": kv.Key}, budget)
		if err != nil {
			return nil, provider.NewError(provider.Template, "%s", err)
		}
		out[i] = KeyValue{Key: string(key), Value: kv.Value}
	}
	return out, unique(kvs, out, at)
}

// unique returns an error that names two keys that have become equal. One of their values would be lost.
func unique(before, after []KeyValue, at string) error {
	from := make(map[string]string, len(after))
	for i, kv := range after {
		if other, twice := from[kv.Key]; twice {
			return provider.NewError(provider.Invalid, "%s: the keys %.64q and %.64q both become %.64q; make the new keys unique", at, other, before[i].Key, kv.Key)
		}
		from[kv.Key] = before[i].Key
	}
	return nil
}

// merge combines the members of all values, which must be JSON objects: as separate keys, or as one object under one
// key. The members of later values win. Values are ordered by key, and those in priority come last, in that order.
func merge(kvs []KeyValue, m v1alpha1.RewriteMerge, at string, work *template.Budget) ([]KeyValue, error) {
	// As measured: 20 ns for a byte, one microsecond for an object, and three for a member.
	if !work.Spend(valueBytes(kvs)/8 + 4*(len(kvs)+len(m.Priority))) {
		return nil, in(at, errWork)
	}
	sorted, err := byPriority(kvs, m, at)
	if err != nil {
		return nil, err
	}
	members, from := map[string]json.RawMessage{}, map[string]string{}
	for _, kv := range sorted {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(kv.Value, &object); err != nil || object == nil {
			return nil, provider.NewError(provider.Invalid, "%s: the value of %.64q is not a JSON object", at, kv.Key)
		}
		if _, err := Extract(kv.Value); err != nil {
			return nil, in(fmt.Sprintf("%s: %.64q", at, kv.Key), err)
		}
		if !work.Spend(12 * len(object)) {
			return nil, in(at, errWork)
		}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			if other, twice := from[k]; twice && m.ConflictPolicy != conflictIgnoreAll {
				return nil, provider.NewError(provider.Invalid, "%s: the member %.64q is in %.64q and in %.64q; set conflictPolicy: Ignore to use the later one", at, k, other, kv.Key)
			}
			members[k], from[k] = object[k], kv.Key
		}
		if len(members) > maxMembers {
			return nil, provider.NewError(provider.Invalid, "%s: the objects have more than %d members in total; merge fewer or smaller secrets", at, maxMembers)
		}
	}
	if m.Strategy == mergeJSON {
		return into(kvs, m.Into, members, at)
	}
	out := make([]KeyValue, 0, len(members))
	for _, k := range slices.Sorted(maps.Keys(members)) {
		out = append(out, KeyValue{Key: k, Value: Text(gjson.ParseBytes(members[k]))})
	}
	return out, nil
}

// byPriority returns the values in their order: later ones win.
func byPriority(kvs []KeyValue, m v1alpha1.RewriteMerge, at string) ([]KeyValue, error) {
	known, place := make(map[string]bool, len(kvs)), map[string]int{}
	for _, kv := range kvs {
		known[kv.Key] = true
	}
	for i, key := range m.Priority {
		if !known[key] {
			if m.PriorityPolicy == priorityIgnore {
				continue
			}
			return nil, provider.NewError(provider.Invalid, "%s.priority[%d]: the key %.64q does not exist; remove it or set priorityPolicy: IgnoreNotFound", at, i, key)
		}
		place[key] = i + 1
	}
	return slices.SortedStableFunc(slices.Values(kvs), func(a, b KeyValue) int {
		return cmp.Or(cmp.Compare(place[a.Key], place[b.Key]), cmp.Compare(a.Key, b.Key))
	}), nil
}

// into returns the keys and values with the merged object under key. It replaces an existing value.
func into(kvs []KeyValue, key string, members map[string]json.RawMessage, at string) ([]KeyValue, error) {
	out := slices.DeleteFunc(slices.Clone(kvs), func(kv KeyValue) bool { return kv.Key == key })
	size := valueBytes(out)
	for k, v := range members {
		size += len(k) + len(v)
	}
	if size > maxEntry {
		return nil, provider.NewError(provider.Invalid, "%s.into: with the merged object the values of the entry have %d bytes, at most %d are allowed; merge fewer or smaller secrets", at, size, maxEntry)
	}
	object, err := Marshal(members)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: the merged object cannot be written as JSON", at)
	}
	return append(out, KeyValue{Key: key, Value: object}), nil
}

func valueBytes(kvs []KeyValue) int {
	n := 0
	for _, kv := range kvs {
		n += len(kv.Value)
	}
	return n
}

// Marshal returns JSON in which <, > and & are not escaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
