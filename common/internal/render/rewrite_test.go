package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// pair is a KeyValue as text.
type pair struct{ Key, Value string }

func keyValues(pairs []pair) (kvs []KeyValue) {
	for _, p := range pairs {
		kvs = append(kvs, KeyValue{Key: p.Key, Value: []byte(p.Value)})
	}
	return kvs
}

func pairsOf(kvs []KeyValue) (pairs []pair) {
	for _, kv := range kvs {
		pairs = append(pairs, pair{kv.Key, string(kv.Value)})
	}
	return pairs
}

func TestRewrite(t *testing.T) {
	type (
		kvs   = []pair
		steps = []v1alpha1.Rewrite
		merge = v1alpha1.RewriteMerge
	)
	cases := map[string]struct {
		reason string
		kvs    kvs
		steps  steps
		want   kvs
	}{
		"None":    {"Without a step nothing changes.", kvs{{"b", "1"}, {"a", "2"}}, nil, kvs{{"b", "1"}, {"a", "2"}}},
		"Nothing": {"An empty list stays empty.", nil, steps{regexpStep("a", "b"), mergeStep(merge{})}, nil},

		"Prefix":    {"A prefix is removed; values and order do not change.", kvs{{"shop/b", "1"}, {"shop/a", "2"}}, steps{regexpStep("^shop/", "")}, kvs{{"b", "1"}, {"a", "2"}}},
		"Unmatched": {"A key that does not match does not change.", kvs{{"shop/a", "1"}, {"b", "2"}}, steps{regexpStep("^shop/", "")}, kvs{{"a", "1"}, {"b", "2"}}},
		"Every":     {"Every match is replaced.", kvs{{"a/b/c", "1"}}, steps{regexpStep("/", "-")}, kvs{{"a-b-c", "1"}}},
		"Groups":    {"Groups are inserted by number or name; $$ is a dollar.", kvs{{"shop/db", "1"}}, steps{regexpStep("^(.*)/(?P<name>.*)$", "${name}_$1$$")}, kvs{{"db_shop$", "1"}}},
		"Boundary":  {"A group name is as long as possible, as in Go.", kvs{{"db", "1"}}, steps{regexpStep("(.*)b", "x$1y-${1}y")}, kvs{{"x-dy", "1"}}},
		"Empty":     {"An empty expression matches between all characters.", kvs{{"aä", "1"}}, steps{regexpStep("", "-")}, kvs{{"-a-ä-", "1"}}},
		"CanBeAny":  {"A step does not check whether the result is a valid key.", kvs{{"a", "1"}}, steps{regexpStep("a", "/ä")}, kvs{{"/ä", "1"}}},
		"Values":    {"Values are not rewritten.", kvs{{"a", "aaa"}}, steps{regexpStep("a", "b")}, kvs{{"b", "aaa"}}},
		"Stacked":   {"Each step processes the result of the one before.", kvs{{"a/b", "1"}}, steps{regexpStep("/", "_"), regexpStep("^a_", "c_"), regexpStep("c_b", "d")}, kvs{{"d", "1"}}},
		"Swap":      {"Keys can be swapped: only the result must be unique.", kvs{{"a", "1"}, {"aa", "2"}}, steps{regexpStep("^a", "")}, kvs{{"", "1"}, {"a", "2"}}},

		"Extract": {
			"The members of all objects become separate keys, in their order.",
			kvs{{"one", `{"b":"x","a":1}`}, {"two", `{"c":{"d": [1, 2]},"e":true,"f":1.50,"g":12345678901234567890}`}}, steps{mergeStep(merge{})},
			kvs{{"a", "1"}, {"b", "x"}, {"c", `{"d": [1, 2]}`}, {"e", "true"}, {"f", "1.50"}, {"g", "12345678901234567890"}},
		},
		"ExtractNamed": {"Extract can be set explicitly, and needs no into.", kvs{{"one", `{"a":"1"}`}}, steps{mergeStep(merge{Strategy: "Extract", Into: "x"})}, kvs{{"a", "1"}}},
		"ExtractNull":  {"null is an empty value, as in extract.", kvs{{"one", `{"a":null,"b":""}`}}, steps{mergeStep(merge{})}, kvs{{"a", ""}, {"b", ""}}},
		"ExtractText":  {"Escapes in strings are resolved.", kvs{{"one", `{"\u0061":"\u003c\n\"ä"}`}}, steps{mergeStep(merge{})}, kvs{{"a", "<\n\"ä"}}},
		"ExtractSpace": {"White space around members is ignored.", kvs{{"one", "\n{ \"a\" : 1 , \"b\" : \"x\" }\n"}}, steps{mergeStep(merge{})}, kvs{{"a", "1"}, {"b", "x"}}},
		"ExtractNone":  {"Empty objects have no members.", kvs{{"one", "{}"}, {"two", "{}"}}, steps{mergeStep(merge{})}, nil},
		"ExtractTwice": {"A merged object can be merged again.", kvs{{"one", `{"a":{"b":"x"}}`}}, steps{mergeStep(merge{}), mergeStep(merge{})}, kvs{{"b", "x"}}},

		"JSON": {
			"The merged object gets its own key, the others stay; numbers keep their digits.",
			kvs{{"two", `{"b": {"c": [1, 2]}}`}, {"one", `{"a":12345678901234567890,"d":null,"e":1.50}`}}, steps{mergeStep(merge{Strategy: "JSON", Into: "all"})},
			kvs{{"two", `{"b": {"c": [1, 2]}}`}, {"one", `{"a":12345678901234567890,"d":null,"e":1.50}`}, {"all", `{"a":12345678901234567890,"b":{"c":[1,2]},"d":null,"e":1.50}`}},
		},
		"JSONOverwrites": {
			"An existing key is overwritten.",
			kvs{{"one", `{"a":"1"}`}, {"two", `{"b":"2"}`}}, steps{mergeStep(merge{Strategy: "JSON", Into: "one"})},
			kvs{{"two", `{"b":"2"}`}, {"one", `{"a":"1","b":"2"}`}},
		},
		"JSONHTML": {
			"HTML characters are not escaped, in keys and in values.",
			kvs{{"one", `{"<&>":"<a href='x'>&amp;</a>"}`}}, steps{mergeStep(merge{Strategy: "JSON", Into: "one"})},
			kvs{{"one", `{"<&>":"<a href='x'>&amp;</a>"}`}},
		},
		"JSONNone":    {"The merge of empty objects is an empty object.", kvs{{"one", "{}"}}, steps{mergeStep(merge{Strategy: "JSON", Into: "one"})}, kvs{{"one", "{}"}}},
		"JSONNothing": {"The merge of no objects is an empty object.", nil, steps{mergeStep(merge{Strategy: "JSON", Into: "all"})}, kvs{{"all", "{}"}}},

		"ByName": {
			"The last value by key wins, not the last in the list.",
			kvs{{"c", `{"k":"c"}`}, {"a", `{"k":"a"}`}, {"b", `{"k":"b"}`}}, steps{mergeStep(merge{ConflictPolicy: "Ignore"})}, kvs{{"k", "c"}},
		},
		"Priority": {
			"A value in priority wins over all others, and the last one in priority wins over all.",
			kvs{{"a", `{"k":"a","l":"a","m":"a"}`}, {"b", `{"k":"b","l":"b","m":"b"}`}, {"c", `{"k":"c"}`}, {"d", `{"k":"d","l":"d"}`}}, steps{mergeStep(merge{ConflictPolicy: "Ignore", Priority: []string{"b", "a"}})},
			kvs{{"k", "a"}, {"l", "a"}, {"m", "a"}},
		},
		"PriorityOne": {
			"A value in priority wins over a value with a later key.",
			kvs{{"a", `{"k":"a"}`}, {"b", `{"k":"b","l":"b"}`}}, steps{mergeStep(merge{ConflictPolicy: "Ignore", Priority: []string{"a"}, PriorityPolicy: "Strict"})},
			kvs{{"k", "a"}, {"l", "b"}},
		},
		"PriorityMissing": {
			"With IgnoreNotFound a missing key in priority is ignored.",
			kvs{{"a", `{"k":"a"}`}, {"b", `{"k":"b"}`}}, steps{mergeStep(merge{ConflictPolicy: "Ignore", PriorityPolicy: "IgnoreNotFound", Priority: []string{"a", "gone"}})},
			kvs{{"k", "a"}},
		},
		"RenameThenMerge": {
			"The keys in priority are those after the step before.",
			kvs{{"shop/a", `{"k":"a"}`}, {"shop/b", `{"k":"b"}`}}, steps{regexpStep("^shop/", ""), mergeStep(merge{ConflictPolicy: "Ignore", Priority: []string{"a"}}), regexpStep("^", "p-")},
			kvs{{"p-k", "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := keyValues(tc.kvs)
			for range 2 { // The second pass must have the same result: the input is not changed.
				got, err := Rewrite(in, tc.steps, "spec.dataFrom[0]")
				if err != nil {
					t.Fatalf("\n%s\nRewrite(): %v", tc.reason, err)
				}
				if diff := cmp.Diff([]pair(tc.want), pairsOf(got)); diff != "" {
					t.Errorf("\n%s\nRewrite(): -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestRewriteErrors(t *testing.T) {
	type (
		kvs   = []pair
		steps = []v1alpha1.Rewrite
		merge = v1alpha1.RewriteMerge
	)
	const hidden = `{"k":"` + canary + `"}`
	long := strings.Repeat("k", 2049)
	var many kvs
	for i := range 2000 {
		many = append(many, pair{fmt.Sprintf("%s%d", strings.Repeat("k", 600), i), canary})
	}
	cases := map[string]struct {
		reason string
		kvs    kvs
		steps  steps
		// want are parts of the message, its start first.
		want []string
	}{
		"Collision":      {"Two keys that become equal are an error, because a value would be lost.", kvs{{"a/k", hidden}, {"b/k", hidden}}, steps{regexpStep("^./", "")}, []string{"f.rewrite[0]: ", `"a/k"`, `"b/k"`, `both become "k"`}},
		"CollisionStays": {"A key that becomes equal to an unchanged one is an error.", kvs{{"k", hidden}, {"b/k", hidden}}, steps{regexpStep("^./", "")}, []string{"f.rewrite[0]: ", `"k"`, `"b/k"`}},
		"CollisionLater": {"The error names the step, and the keys before it.", kvs{{"a/k", hidden}, {"b/k", hidden}}, steps{regexpStep("/", "-"), regexpStep("^.-", "")}, []string{"f.rewrite[1]: ", `"a-k"`, `"b-k"`}},
		"AlreadyTwice":   {"A key that occurs twice is an error in any step.", kvs{{"k", hidden}, {"k", hidden}}, steps{regexpStep("x", "")}, []string{"f.rewrite[0]: ", `both become "k"`}},
		"BadRegexp":      {"An invalid expression is refused.", kvs{{"a", hidden}}, steps{regexpStep("(", "")}, []string{"f.rewrite[0].regexp.source: ", "missing closing )"}},
		"LongTarget":     {"A long target is refused.", kvs{{"a", hidden}}, steps{regexpStep("", strings.Repeat("a", 513))}, []string{"f.rewrite[0].regexp.target ", "shorten it"}},
		"LongKey":        {"A long key is refused, because the time grows with its square; the message cuts the key.", kvs{{long, hidden}}, steps{regexpStep("a", "")}, []string{"f.rewrite[0]: ", "2049 bytes", "at most 2048"}},
		"Many":           {"Many long keys are refused.", many, steps{regexpStep("a", "")}, []string{"f.rewrite[0]: ", "1048576 bytes in total"}},
		"Growing":        {"Keys that become long are refused, whatever their number.", many[:300], steps{regexpStep("k", strings.Repeat("a", 512))}, []string{"f.rewrite[0]: ", "1048576 bytes in total", "shorten regexp.target"}},
		"GrowingSteps":   {"Many steps that each grow a key a little are refused.", kvs{{"k", hidden}}, slices.Repeat(steps{regexpStep("", "aaa")}, 50), []string{"f.rewrite[", "at most 2048 can be rewritten"}},

		"NotJSON":          {"A value that is not JSON cannot be merged.", kvs{{"a", "{}"}, {"b", canary}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"b"`, "not a JSON object"}},
		"Array":            {"An array has no members.", kvs{{"a", `["` + canary + `"]`}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"a"`, "not a JSON object"}},
		"String":           {"A string has no members.", kvs{{"a", `"` + canary + `"`}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"a"`, "not a JSON object"}},
		"Null":             {"null has no members.", kvs{{"a", `null`}}, steps{mergeStep(merge{Strategy: "JSON", Into: "x"})}, []string{"f.rewrite[0].merge: ", `"a"`, "not a JSON object"}},
		"Empty":            {"An empty value is not JSON.", kvs{{"a", ""}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"a"`, "not a JSON object"}},
		"Truncated":        {"A truncated object is not JSON, and none of its members count.", kvs{{"a", `{"k":"` + canary + `","l`}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", "not a JSON object"}},
		"TwoDocuments":     {"Two objects in one value are not an object.", kvs{{"a", hidden + hidden}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", "not a JSON object"}},
		"Endless":          {"Endless nesting is refused before it exhausts the stack.", kvs{{"a", strings.Repeat(`{"a":`, 500000)}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", "not a JSON object"}},
		"Conflict":         {"Two objects with the same key are an error.", kvs{{"a", hidden}, {"b", hidden}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"k" is in "a" and in "b"`, "conflictPolicy: Ignore"}},
		"ConflictNamed":    {"conflictPolicy Error can be set explicitly; a priority does not resolve the conflict.", kvs{{"a", hidden}, {"b", hidden}}, steps{mergeStep(merge{ConflictPolicy: "Error", Priority: []string{"a"}})}, []string{"f.rewrite[0].merge: ", `"k" is in "b" and in "a"`}},
		"ConflictJSON":     {"Two objects with the same key are an error with strategy JSON, too.", kvs{{"a", hidden}, {"b", hidden}}, steps{mergeStep(merge{Strategy: "JSON", Into: "x"})}, []string{"f.rewrite[0].merge: ", `"k" is in "a" and in "b"`}},
		"PriorityMissing":  {"A missing key in priority is an error.", kvs{{"a", hidden}}, steps{mergeStep(merge{Priority: []string{"a", "gone"}})}, []string{"f.rewrite[0].merge.priority[1]: ", `"gone"`, "priorityPolicy: IgnoreNotFound"}},
		"PriorityStrict":   {"priorityPolicy Strict can be set explicitly.", kvs{{"a", hidden}}, steps{mergeStep(merge{Priority: []string{"gone"}, PriorityPolicy: "Strict"})}, []string{"f.rewrite[0].merge.priority[0]: ", `"gone"`}},
		"MergeTwice":       {"A member that occurs twice in one object is refused.", kvs{{"a", `{"m":"` + canary + `","m":2}`}}, steps{mergeStep(merge{})}, []string{"f.rewrite[0].merge: ", `"a"`, `"m" occurs twice`}},
		"MergeAfterRename": {"The error names the step.", kvs{{"a", canary}}, steps{regexpStep("a", "b"), mergeStep(merge{})}, []string{"f.rewrite[1].merge: ", `"b"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Rewrite(keyValues(tc.kvs), tc.steps, "f")
			if class(err) != provider.Invalid || got != nil {
				t.Fatalf("\n%s\nRewrite(): %d keys, %v; want none and an error of class Invalid", tc.reason, len(got), err)
			}
			msg := err.Error()
			if !strings.HasPrefix(msg, tc.want[0]) {
				t.Errorf("\n%s\nRewrite(): %q does not start with %q", tc.reason, msg, tc.want[0])
			}
			for _, w := range tc.want {
				if !strings.Contains(msg, w) {
					t.Errorf("\n%s\nRewrite(): %q does not contain %q", tc.reason, msg, w)
				}
			}
			if strings.Contains(msg, canary) || len(msg) > 400 {
				t.Errorf("\n%s\nRewrite(): a message of %d bytes that shows a value or too much: %.400q", tc.reason, len(msg), msg)
			}
		})
	}
}

// TestRewriteEnds makes rewrites that would take seconds or hundreds of megabytes without limits.
func TestRewriteEnds(t *testing.T) {
	type steps = []v1alpha1.Rewrite
	var long, objects, members []KeyValue
	for i := range 500 {
		long = append(long, KeyValue{Key: fmt.Sprintf("%s%d", strings.Repeat("a", 2000), i)})
	}
	for i := range 15 {
		objects = append(objects, KeyValue{Key: fmt.Sprint(i), Value: fmt.Appendf(nil, `{"%d":"%s"}`, i, strings.Repeat("x", 1<<20-20))})
		var b bytes.Buffer
		for j := range 80_000 {
			fmt.Fprintf(&b, `,"%d":1`, 80_000*i+j)
		}
		b.Bytes()[0] = '{'
		members = append(members, KeyValue{Key: fmt.Sprint(i), Value: append(b.Bytes(), '}')})
	}
	into := func(n int, strategy string) (all steps) {
		for i := range n {
			all = append(all, mergeStep(v1alpha1.RewriteMerge{Strategy: strategy, Into: fmt.Sprintf("all%d", i), ConflictPolicy: "Ignore"}))
		}
		return all
	}
	cases := map[string]struct {
		reason string
		kvs    []KeyValue
		steps  steps
		want   []string
	}{
		"Keys":      {"An expression that takes the square of each key's length is refused.", long, slices.Repeat(steps{regexpStep("(a*b)?", "$0")}, 50), []string{"f.rewrite[", "].regexp: ", "too much work"}},
		"OneKey":    {"Such an expression is refused for one key, too.", []KeyValue{{Key: "x" + strings.Repeat("a", 2047)}}, steps{regexpStep("a(?:(?:a?){30}a*){10}b|a", "b")}, []string{"f.rewrite[0].regexp: ", "too much work", "simpler regular expressions"}},
		"Into":      {"Each merge adds an object as large as all others.", objects, into(20, "JSON"), []string{"f.rewrite[0].merge.into: ", "bytes, at most 16777216 are allowed"}},
		"IntoSmall": {"Many merges make a small object large.", objects[:1], into(50, "JSON"), []string{"f.rewrite[", "too much work"}},
		"Members":   {"Each member has a cost, whatever its size.", members[:3], into(1, ""), []string{"f.rewrite[0].merge: ", "more than 200000 members"}},
		"Same":      {"Repeated merges have a cost.", members[:2], into(20, "JSON"), []string{"f.rewrite[", "too much work"}},
		"Priority":  {"A long list of priorities has a cost.", objects[:1], slices.Repeat(steps{mergeStep(v1alpha1.RewriteMerge{Strategy: "JSON", Into: "all", ConflictPolicy: "Ignore", PriorityPolicy: "IgnoreNotFound", Priority: make([]string, 100_000)})}, 50), []string{"f.rewrite[", "too much work"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			took, memory := cost(t, maxSpent, func() { _, err = Rewrite(tc.kvs, tc.steps, "f") })
			wantError(t, tc.reason, err, provider.Invalid, tc.want...)
			if took > maxSpent || memory > 512<<20 {
				t.Errorf("\n%s\nRewrite() took %v of a processor and %d MiB in all, want at most %v and 512 MiB", tc.reason, took, memory>>20, maxSpent)
			}
			t.Logf("%v, %d MiB", took.Round(time.Millisecond), memory>>20)
		})
	}
}

// TestRewriteMany renames as many keys as a find can have, and merges objects of the maximum size.
func TestRewriteMany(t *testing.T) {
	var keys, objects []KeyValue
	for i := range 10_000 {
		keys = append(keys, KeyValue{Key: fmt.Sprintf("production/team-%d/%s", i, strings.Repeat("k", 80))})
	}
	for i := range 1000 {
		objects = append(objects, KeyValue{Key: fmt.Sprint(i), Value: fmt.Appendf(nil, `{"user-%d":"x","password-%d":"%s"}`, i, i, strings.Repeat("x", 16_000))})
	}
	renamed := []v1alpha1.Rewrite{regexpStep("^production/", ""), regexpStep("^([^/]*)/(.*)$", "$2-$1"), regexpStep("k+", "k"), regexpStep("-", "_")}
	got, err := Rewrite(keys, renamed, "f")
	if err != nil || len(got) != len(keys) || got[7].Key != "k_team_7" {
		t.Errorf("Rewrite(): %d keys, %v; want all renamed", len(got), err)
	}
	got, err = Rewrite(objects, []v1alpha1.Rewrite{mergeStep(v1alpha1.RewriteMerge{})}, "f")
	if err != nil || len(got) != 2*len(objects) {
		t.Errorf("Rewrite(): %d members, %v; want all", len(got), err)
	}
}

// FuzzRewrite applies an expression and a merge, in either order, to the members of a JSON object.
func FuzzRewrite(f *testing.F) {
	const nested = `{"shop/a":{"k":"x","l":null},"shop/b":{"k":1},"c":"{\"m\":\"<&>\"}"}`
	for _, source := range []string{"^shop/", "", "(.*)/(.*)", "[a-z]", "(a|aa)+$", "$"} {
		for flags := range byte(16) {
			f.Add([]byte(nested), source, "$2-${1}x", "all", "shop/a", flags)
		}
	}
	f.Add([]byte(`{"":{},"\ud800":{"":""},"ä":{"ä":1}}`), "ä", "", "\xff", "", byte(3))
	f.Add([]byte(`{"a":{"a":1,"a":2},"b":{"\ud800":1,"\udc00":2}}`), "", "", "", "a", byte(7))
	f.Fuzz(func(t *testing.T, data []byte, source, target, into, priority string, flags byte) {
		kvs, err := Extract(data)
		steps := fuzzSteps(source, target, into, priority, flags)
		if err != nil || slices.ContainsFunc(steps, func(w v1alpha1.Rewrite) bool { return checkRewrite(w) != nil }) {
			return // It is refused before any rewrite.
		}
		if len(kvs) > 0 && !strings.Contains(string(data)+source+target+into+priority, canary) {
			kvs[0].Value = append([]byte(`{"k":"`+canary+`","more":`), append(kvs[0].Value, '}')...)
		}
		before := pairsOf(kvs)
		got, err := Rewrite(kvs, steps, "f")
		if diff := cmp.Diff(before, pairsOf(kvs)); diff != "" {
			t.Errorf("Rewrite() changes its input:\n%s", diff)
		}
		if err != nil {
			if got != nil || class(err) != provider.Invalid || strings.Contains(err.Error(), canary) || !strings.HasPrefix(err.Error(), "f.rewrite[") {
				t.Errorf("Rewrite(%q): %d keys, class %s: %v", before, len(got), class(err), err)
			}
			return
		}
		checkRewritten(t, got, steps[1])
		again, err := Rewrite(kvs, steps, "f")
		if diff := cmp.Diff(pairsOf(got), pairsOf(again)); diff != "" || err != nil {
			t.Errorf("Rewrite(), twice: %v\n-first, +second:\n%s", err, diff)
		}
	})
}

// fuzzSteps returns an expression and a merge. The bits of flags set the fields of the merge and the order.
func fuzzSteps(source, target, into, priority string, flags byte) []v1alpha1.Rewrite {
	m := v1alpha1.RewriteMerge{Into: into, Priority: []string{priority}, PriorityPolicy: "IgnoreNotFound"}
	if flags&1 > 0 {
		m.Strategy = "JSON"
	}
	if flags&2 > 0 {
		m.ConflictPolicy = "Ignore"
	}
	if flags&4 > 0 {
		m.PriorityPolicy = "Strict"
	}
	steps := []v1alpha1.Rewrite{regexpStep(source, target), mergeStep(m)}
	if flags&8 > 0 {
		slices.Reverse(steps)
	}
	return steps
}

// checkRewritten fails the test for invalid keys after the last step.
func checkRewritten(t *testing.T, got []KeyValue, last v1alpha1.Rewrite) {
	t.Helper()
	seen := map[string]bool{}
	for _, kv := range got {
		if seen[kv.Key] {
			t.Errorf("%q occurs twice", kv.Key)
		}
		seen[kv.Key] = true
		if m := last.Merge; m != nil && m.Strategy == "JSON" && kv.Key == m.Into && !json.Valid(kv.Value) {
			t.Errorf("%q, the merged object, is not JSON: %q", kv.Key, kv.Value)
		}
	}
}
