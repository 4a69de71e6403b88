package render

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// canary is a value that must not appear in any message.
const canary = "c4n4ry-v4lue"

// remote is the content of the stores. Its keys are store/key@version for values, store/key# for metadata, and
// store?path for searches.
type remote map[string]provider.Answer

func (r remote) values(s Source) provider.Answer {
	name := s.Store.Name + "/" + s.Ref.Key
	if s.Search != (provider.Search{}) {
		name = s.Store.Name + "?" + s.Search.Path
	}
	if s.Ref.Version != "" {
		name += "@" + s.Ref.Version
	}
	if s.Ref.Metadata {
		name += "#"
	}
	if a, ok := r[name]; ok {
		return a
	}
	return provider.Answer{Err: provider.NewError(provider.NotFound, "it does not exist")}
}

func value(data, version string) provider.Answer {
	return provider.Answer{Value: provider.Value{Data: []byte(data), Version: version}}
}

func failure(c provider.Class) provider.Answer {
	return provider.Answer{Err: provider.NewError(c, "the provider says no")}
}

// Render calls Read and Shape.
func Render(es *v1alpha1.ExternalSecret, p Plan, values Values, templateSources TemplateSources) (Output, error) {
	out, err := Read(es, p, values)
	if err != nil {
		return Output{}, err
	}
	return Shape(es, p, out, templateSources)
}

func TestRender(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	type want struct {
		Data    map[string]string
		Sources []v1alpha1.SourceStatus
	}
	optional := func(secretKey, key, property string) v1alpha1.DataEntry {
		e := entry(secretKey, key, property)
		e.Optional = true
		return e
	}
	cases := map[string]struct {
		reason string
		change func(*spec)
		remote remote
		want   want
	}{
		"Whole": {
			"Without a property the value is the provider's, byte for byte.",
			func(*spec) {},
			remote{"prod/shop/db": value("\xff\x00 {", "v1")},
			want{map[string]string{"password": "\xff\x00 {"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"EmptyValue": {
			"An empty value is a value.",
			func(*spec) {},
			remote{"prod/shop/db": value("", "v1")},
			want{map[string]string{"password": ""}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"Properties": {
			"Each entry extracts its own property.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{entry("u", "shop/db", "user"), entry("p", "shop/db", "pass.word")}
			},
			remote{"prod/shop/db": value(`{"user":"ann","pass":{"word":"x"}}`, "v1")},
			want{map[string]string{"u": "ann", "p": "x"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"Versions": {
			"A version needs its own read.",
			func(s *spec) { s.Data[0].RemoteRef.Version = "old" },
			remote{"prod/shop/db": value("new", "v2"), "prod/shop/db@old": value("old", "v1")},
			want{map[string]string{"password": "old"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"OwnStore": {
			"An entry is read from its own store.",
			func(s *spec) { s.Data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *fakeStore("second")} },
			remote{"prod/shop/db": value("wrong", "v2"), "second/shop/db": value("right", "v1")},
			want{map[string]string{"password": "right"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"Extract": {
			"All members become keys, with converted names.",
			func(s *spec) { s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{extract("a")} },
			remote{"prod/a": value(`{"user":"ann","a/b":{"c":1}}`, "v1")},
			want{map[string]string{"user": "ann", "a_b": `{"c":1}`}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "a", Version: "v1"}}},
		},
		"ExtractProperty": {
			"A property of the secret can contain the object.",
			func(s *spec) {
				s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{extract("a")}
				s.DataFrom[0].Extract.Property = "db"
			},
			remote{"prod/a": value(`{"db":{"user":"ann"}}`, "v1")},
			want{map[string]string{"user": "ann"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "a", Version: "v1"}}},
		},
		"Precedence": {
			"A later dataFrom entry wins over an earlier one, and data over both.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{entry("c", "three", "")}
				s.DataFrom = []v1alpha1.DataFromEntry{extract("one"), extract("two")}
			},
			remote{"prod/one": value(`{"a":"1","b":"1","c":"1"}`, "v1"), "prod/two": value(`{"b":"2","c":"2"}`, "v2"), "prod/three": value("3", "v3")},
			want{map[string]string{"a": "1", "b": "2", "c": "3"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "one", Version: "v1"}, {Kind: v1alpha1.SourceRemoteSecret, Key: "two", Version: "v2"}, {Kind: v1alpha1.SourceRemoteSecret, Key: "three", Version: "v3"}}},
		},
		"OptionalSecret": {
			"An optional entry is left out when its secret does not exist.",
			func(s *spec) { s.Data = append(s.Data, optional("o", "gone", "")) },
			remote{"prod/shop/db": value("x", "v1")},
			want{map[string]string{"password": "x"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"OptionalProperty": {
			"An optional entry is left out when its property does not exist.",
			func(s *spec) { s.Data = append(s.Data, optional("o", "shop/db", "gone")) },
			remote{"prod/shop/db": value("{}", "v1")},
			want{map[string]string{"password": "{}"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"OptionalExtract": {
			"An optional entry of dataFrom is left out when its secret or property does not exist.",
			func(s *spec) {
				missing, lacking := extract("gone"), extract("shop/db")
				lacking.Extract.Property, missing.Optional, lacking.Optional = "gone", true, true
				s.DataFrom = []v1alpha1.DataFromEntry{missing, lacking}
			},
			remote{"prod/shop/db": value("{}", "v1")},
			want{map[string]string{"password": "{}"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"OptionalFind": {
			"An optional search without a match is left out.",
			func(s *spec) {
				nothing := find(v1alpha1.Find{Path: "all/"})
				nothing.Optional = true
				s.DataFrom = []v1alpha1.DataFromEntry{nothing}
			},
			remote{"prod/shop/db": value("x", "v1"), "prod?all/": found()},
			want{map[string]string{"password": "x"}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}}},
		},
		"OptionalOnly": {
			"Optional entries can leave no value at all.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{optional("o", "gone", "")} },
			nil,
			want{},
		},
		"FullSecret": {
			"A Secret can have 1 MiB of values; its keys do not count.",
			func(s *spec) { s.Data = append(s.Data, entry("second", "half", "")) },
			remote{"prod/shop/db": value(strings.Repeat("x", corev1.MaxSecretSize/2), "v1"), "prod/half": value(strings.Repeat("y", corev1.MaxSecretSize/2), "v1")},
			want{map[string]string{"password": strings.Repeat("x", corev1.MaxSecretSize/2), "second": strings.Repeat("y", corev1.MaxSecretSize/2)}, []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}, {Kind: v1alpha1.SourceRemoteSecret, Key: "half", Version: "v1"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(tc.change)
			p, err := NewPlan(es)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Render(es, p, tc.remote.values, nil)
			if err != nil {
				t.Fatalf("\n%s\nRender(): %v", tc.reason, err)
			}
			got := want{Sources: out.Sources}
			for k, v := range out.Data {
				if got.Data == nil {
					got.Data = map[string]string{}
				}
				got.Data[k] = string(v)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRender(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRenderErrors(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	type want struct {
		Class      provider.Class
		RetryAfter time.Duration
		// Begins is the start of the message, Messages are further parts of it.
		Begins   string
		Messages []string
	}
	two := func(s *spec) { s.Data = append(s.Data, entry("second", "other", "")) }
	one := func(s *spec) { s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{extract("shop/db")} }
	const here = `"shop/db" in FakeStore "prod": `
	cases := map[string]struct {
		reason string
		change func(*spec)
		remote remote
		want   want
	}{
		"NotFound": {
			"The message names class, key and store.",
			func(*spec) {}, nil,
			want{Class: provider.NotFound, Begins: here + "it does not exist"},
		},
		"NotFoundVersion": {
			"The message names the requested version.",
			func(s *spec) { s.Data[0].RemoteRef.Version = "v7" }, nil,
			want{Class: provider.NotFound, Begins: `"shop/db" version "v7" in FakeStore "prod": `},
		},
		"Denied":      {"The error keeps its class.", func(*spec) {}, remote{"prod/shop/db": failure(provider.Denied)}, want{Class: provider.Denied, Begins: here}},
		"Unavailable": {"The error keeps its class.", func(*spec) {}, remote{"prod/shop/db": failure(provider.Unavailable)}, want{Class: provider.Unavailable, Begins: here}},
		"Throttled": {
			"The error keeps its time to wait.",
			func(*spec) {}, remote{"prod/shop/db": {Err: &provider.Error{Class: provider.Throttled, Message: "slow down", RetryAfter: time.Minute}}},
			want{Class: provider.Throttled, RetryAfter: time.Minute, Begins: here + "slow down"},
		},
		"Unknown": {
			"The text of an unknown error is not shown.",
			func(*spec) {}, remote{"prod/shop/db": {Err: errors.New("request with password=" + canary + " failed")}},
			want{Class: provider.Unavailable, Begins: here},
		},
		"Deadline": {
			"The message of a timeout says so.",
			func(*spec) {}, remote{"prod/shop/db": {Err: context.DeadlineExceeded}},
			want{Class: provider.Unavailable, Begins: here + "the provider did not answer in time"},
		},
		"DoubtFirst": {
			"An unreadable secret is reported before a missing one: only a definite answer can remove a key.",
			two, remote{"prod/other": failure(provider.Denied)},
			want{Class: provider.Denied, Begins: `"other" in FakeStore "prod": `, Messages: []string{"(and 1 more)"}},
		},
		"FirstOfMany": {
			"The first of several errors is reported, with the number of the others.",
			func(s *spec) { two(s); s.DataFrom = []v1alpha1.DataFromEntry{extract("from")} }, nil,
			want{Class: provider.NotFound, Begins: `"from" in FakeStore "prod": `, Messages: []string{"(and 2 more)"}},
		},
		"OptionalDenied": {
			"An unreadable secret is an error, even if it is optional.",
			func(s *spec) { s.Data[0].Optional = true }, remote{"prod/shop/db": failure(provider.Denied)},
			want{Class: provider.Denied, Begins: here},
		},
		"OptionalFromDenied": {
			"An unreadable secret of dataFrom is an error, even if it is optional.",
			func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{extract("from")}; s.DataFrom[0].Optional = true }, remote{"prod/shop/db": value("x", "v1"), "prod/from": failure(provider.Denied)},
			want{Class: provider.Denied, Begins: `"from" in FakeStore "prod": `},
		},
		"OptionalNotJSON": {
			"An invalid value is an error, even if it is optional.",
			func(s *spec) { s.Data[0].Optional, s.Data[0].RemoteRef.Property = true, "a" }, remote{"prod/shop/db": value(canary, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{"not JSON"}},
		},
		"NotJSON": {
			"A property needs a value that is JSON.",
			func(s *spec) { s.Data[0].RemoteRef.Property = "a.b" }, remote{"prod/shop/db": value(canary, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{"not JSON", `"a.b"`, "remove the property, or store JSON"}},
		},
		"PropertyMissing": {
			"A missing property is NotFound.",
			func(s *spec) { s.Data[0].RemoteRef.Property = "a.b" }, remote{"prod/shop/db": value(`{"a":"`+canary+`"}`, "")},
			want{Class: provider.NotFound, Begins: here, Messages: []string{`"a.b"`}},
		},
		"ExtractNotJSON":   {"extract needs a JSON object.", one, remote{"prod/shop/db": value(canary, "")}, want{Class: provider.Invalid, Begins: here, Messages: []string{"not JSON"}}},
		"ExtractNotObject": {"extract needs a JSON object.", one, remote{"prod/shop/db": value(`["`+canary+`"]`, "")}, want{Class: provider.Invalid, Begins: here, Messages: []string{"not an object"}}},
		"ExtractMissing":   {"A missing object is NotFound.", one, nil, want{Class: provider.NotFound, Begins: here}},
		"ExtractCollision": {
			"Two keys with the same conversion are an error.",
			one, remote{"prod/shop/db": value(`{"a/b":"`+canary+`","a:b":"`+canary+`"}`, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{"spec.dataFrom[0]", `"a/b"`, `"a:b"`, `"a_b"`}},
		},
		"ExtractEmptyKey": {"A key must not be empty.", one, remote{"prod/shop/db": value(`{"":"`+canary+`"}`, "")}, want{Class: provider.Invalid, Begins: here, Messages: []string{"spec.dataFrom[0]", "cannot be a key"}}},
		"RewrittenEmptyKey": {
			"The key before the rewrite is named.",
			func(s *spec) {
				one(s)
				s.DataFrom[0].Rewrite = []v1alpha1.Rewrite{regexpStep("^user$", "")}
			}, remote{"prod/shop/db": value(`{"user":"`+canary+`"}`, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{`the remote key "" (before: "user") cannot be a key`, "correct or add a rewrite"}},
		},
		"ExtractReservedKey": {"A key must not start with two dots, which the kubelet reserves.", one, remote{"prod/shop/db": value(`{"..data":"`+canary+`"}`, "")}, want{Class: provider.Invalid, Begins: here, Messages: []string{`"..data"`, "cannot be a key"}}},
		"ExtractLongKey": {
			"A key has at most 253 characters, and the message cuts a longer one.",
			one, remote{"prod/shop/db": value(`{"`+strings.Repeat("k", 254)+`":"`+canary+`"}`, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{`"` + strings.Repeat("k", 64) + `"`, "cannot be a key"}},
		},
		"BigValue": {
			"A value above 1 MiB does not fit into a Secret.",
			func(*spec) {}, remote{"prod/shop/db": value(strings.Repeat("x", corev1.MaxSecretSize+1), "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{"1048577 bytes", "at most 1048576"}},
		},
		"BigValueOfProperty": {
			"A value above 1 MiB is not parsed, even if only a property of it is needed.",
			func(s *spec) { s.Data[0].RemoteRef.Property = "a" }, remote{"prod/shop/db": value(`{"a":"`+strings.Repeat("x", 2<<20)+`"}`, "")},
			want{Class: provider.Invalid, Begins: here, Messages: []string{"at most 1048576"}},
		},
		"BigTotal": {
			"Values above 1 MiB in total do not fit into a Secret.",
			two, remote{"prod/shop/db": value(strings.Repeat("x", corev1.MaxSecretSize), ""), "prod/other": value("x", "")},
			want{Class: provider.Invalid, Begins: `the values of Secret "db" have 1048577 bytes in total`, Messages: []string{"at most 1048576", "read fewer or smaller values"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(tc.change)
			p, err := NewPlan(es)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Render(es, p, tc.remote.values, nil)
			if tc.want.Class == provider.NotFound && err == nil && out.NotFound != nil {
				err, out.NotFound = out.NotFound, nil // The policies decide about that; here no value is left.
				if len(out.Data) == 0 {
					out.Data = nil
				}
			}
			if tc.want.Class == provider.NotFound {
				out.Sources = nil // The sources are listed even if a property is missing.
			}
			if diff := cmp.Diff(Output{}, out); diff != "" {
				t.Errorf("\n%s\nRender(): output with an error:\n%s", tc.reason, diff)
			}
			if err == nil {
				t.Fatalf("\n%s\nRender(): no error", tc.reason)
			}
			got := want{Class: class(err), RetryAfter: provider.RetryAfter(err), Begins: tc.want.Begins, Messages: tc.want.Messages}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRender(): -want, +got:\n%s", tc.reason, diff)
			}
			msg := err.Error()
			if !strings.HasPrefix(msg, tc.want.Begins) {
				t.Errorf("\n%s\nRender(): %q does not start with %q", tc.reason, msg, tc.want.Begins)
			}
			for _, w := range tc.want.Messages {
				if !strings.Contains(msg, w) {
					t.Errorf("\n%s\nRender(): %q does not contain %q", tc.reason, msg, w)
				}
			}
			if strings.Contains(msg, canary) || len(msg) > 600 {
				t.Errorf("\n%s\nRender(): a message of %d bytes that shows a value or too much: %.600q", tc.reason, len(msg), msg)
			}
		})
	}
}

// TestRenderNotFound has one of two values missing: the other is returned, and the policies decide what happens.
func TestRenderNotFound(t *testing.T) {
	es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Data = append(s.Data, entry("second", "other", "")) })
	p, err := NewPlan(es)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Render(es, p, remote{"prod/shop/db": value("x", "v1")}.values, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Output{
		Values:   1,
		Data:     map[string][]byte{es.Spec.Data[0].SecretKey: []byte("x")},
		Sources:  []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "shop/db", Version: "v1"}},
		NotFound: &provider.Error{Class: provider.NotFound, Message: `"other" in FakeStore "prod": it does not exist`},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("Render(): -want, +got:\n%s", diff)
	}
}

// TestRenderLeavesTheProvidersError renders the same answers twice: the text that the first pass adds to a message
// must not appear in the second.
func TestRenderLeavesTheProvidersError(t *testing.T) {
	es := external(func(s *v1alpha1.ExternalSecretSpec) {
		for i := range 3 {
			s.Data = append(s.Data, entry(fmt.Sprintf("k%d", i), "shop/db", ""))
		}
	})
	p, err := NewPlan(es)
	if err != nil {
		t.Fatal(err)
	}
	r := remote{"prod/shop/db": failure(provider.Denied)}
	_, first := Render(es, p, r.values, nil)
	_, second := Render(es, p, r.values, nil)
	if diff := cmp.Diff(first.Error(), second.Error()); diff != "" {
		t.Errorf("Render(), twice: -first, +second:\n%s", diff)
	}
	if diff := cmp.Diff("the provider says no", r["prod/shop/db"].Err.Error()); diff != "" {
		t.Errorf("the provider's error: -want, +got:\n%s", diff)
	}
}
