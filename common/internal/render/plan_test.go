package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func fakeStore(name string) *v1alpha1.StoreRef {
	return &v1alpha1.StoreRef{Kind: "FakeStore", Name: name}
}

func entry(secretKey, key, property string) v1alpha1.DataEntry {
	return v1alpha1.DataEntry{SecretKey: secretKey, RemoteRef: v1alpha1.RemoteRef{Key: key, Property: property}}
}

func extract(key string) v1alpha1.DataFromEntry {
	return v1alpha1.DataFromEntry{Extract: &v1alpha1.RemoteRef{Key: key}}
}

func find(f v1alpha1.Find, steps ...v1alpha1.Rewrite) v1alpha1.DataFromEntry {
	return v1alpha1.DataFromEntry{Find: &f, Rewrite: steps}
}

func regexpStep(source, target string) v1alpha1.Rewrite {
	return v1alpha1.Rewrite{Regexp: &v1alpha1.RewriteRegexp{Source: source, Target: target}}
}

func mergeStep(m v1alpha1.RewriteMerge) v1alpha1.Rewrite { return v1alpha1.Rewrite{Merge: &m} }

// rewriting returns a change that makes a spec rewrite the keys of an extracted object.
func rewriting(steps ...v1alpha1.Rewrite) func(*v1alpha1.ExternalSecretSpec) {
	return func(s *v1alpha1.ExternalSecretSpec) {
		s.DataFrom = []v1alpha1.DataFromEntry{extract("a")}
		s.DataFrom[0].Rewrite = steps
	}
}

func readOf(key string) provider.Read { return provider.Read{Ref: provider.Ref{Key: key}} }

// external returns an ExternalSecret that reads one secret, with changes.
func external(change ...func(*v1alpha1.ExternalSecretSpec)) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec:       v1alpha1.ExternalSecretSpec{StoreRef: fakeStore("prod"), Data: []v1alpha1.DataEntry{entry("password", "shop/db", "")}},
	}
	for _, c := range change {
		c(&es.Spec)
	}
	return es
}

func TestNewPlan(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	source := func(storeName, key, version string) Source {
		return Source{Store: *fakeStore(storeName), Read: provider.Read{Ref: provider.Ref{Key: key, Version: version}}}
	}
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   Plan
	}{
		"Defaults": {
			"By default the Secret has the name of the object and is refreshed every hour.",
			func(*spec) {},
			Plan{Sources: []Source{source("prod", "shop/db", "")}, Interval: time.Hour, Target: "db"},
		},
		"Named": {
			"The values of the spec override the defaults.",
			func(s *spec) { s.Target.Name, s.RefreshInterval = "other", "90s" },
			Plan{Sources: []Source{source("prod", "shop/db", "")}, Interval: 90 * time.Second, Target: "other"},
		},
		"ZeroInterval": {
			"An interval of 0 is not the default.",
			func(s *spec) { s.RefreshInterval = "0" },
			Plan{Sources: []Source{source("prod", "shop/db", "")}, Target: "db"},
		},
		"TenProperties": {
			"Ten properties of one secret are one read.",
			func(s *spec) {
				s.Data = nil
				for i := range 10 {
					s.Data = append(s.Data, entry(fmt.Sprintf("k%d", i), "shop/db", fmt.Sprintf("p%d", i)))
				}
				s.DataFrom = []v1alpha1.DataFromEntry{extract("shop/db")}
			},
			Plan{Sources: []Source{source("prod", "shop/db", "")}, Interval: time.Hour, Target: "db"},
		},
		"Versions": {
			"Each version of a secret needs its own read.",
			func(s *spec) {
				s.Data = append(s.Data, v1alpha1.DataEntry{SecretKey: "old", RemoteRef: v1alpha1.RemoteRef{Key: "shop/db", Version: "1"}})
			},
			Plan{Sources: []Source{source("prod", "shop/db", ""), source("prod", "shop/db", "1")}, Interval: time.Hour, Target: "db"},
		},
		"OwnStores": {
			"An entry with a store of its own is read there.",
			func(s *spec) {
				s.Data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *fakeStore("second")}
				s.DataFrom = []v1alpha1.DataFromEntry{extract("shop/db"), extract("shop/db")}
				s.DataFrom[1].SourceRef = &v1alpha1.SourceRef{StoreRef: fakeStore("third")}
			},
			Plan{Sources: []Source{source("prod", "shop/db", ""), source("third", "shop/db", ""), source("second", "shop/db", "")}, Interval: time.Hour, Target: "db"},
		},
		"Metadata": {
			"The metadata of a secret need another read than its value.",
			func(s *spec) {
				s.Data = append(s.Data, entry("tags", "shop/db", ""), entry("team", "shop/db", "team"))
				s.Data[1].RemoteRef.MetadataPolicy, s.Data[2].RemoteRef.MetadataPolicy = "Fetch", "Fetch"
			},
			Plan{Sources: []Source{source("prod", "shop/db", ""), {Store: *fakeStore("prod"), Read: provider.Read{Ref: provider.Ref{Key: "shop/db", Metadata: true}}}}, Interval: time.Hour, Target: "db"},
		},
		"Find": {
			"Equal searches are one read, whatever their rewrites and the order of their tags.",
			func(s *spec) {
				s.Data = nil
				all := v1alpha1.Find{Path: "shop/", Name: &v1alpha1.FindName{RegExp: "^s"}, Tags: map[string]string{"a": "1", "b": "2"}}
				decoded := *all.DeepCopy()
				decoded.DecodingStrategy, decoded.ConversionStrategy = "Base64", "Unicode"
				s.DataFrom = []v1alpha1.DataFromEntry{find(all), find(decoded, regexpStep("^shop/", "")), find(v1alpha1.Find{Path: "shop/"})}
			},
			Plan{Sources: []Source{
				{Store: *fakeStore("prod"), Read: provider.Read{Search: provider.Search{Path: "shop/", Name: "^s", Tags: `{"a":"1","b":"2"}`}}},
				{Store: *fakeStore("prod"), Read: provider.Read{Search: provider.Search{Path: "shop/"}}},
			}, Interval: time.Hour, Target: "db"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NewPlan(external(tc.change))
			if err != nil {
				t.Fatalf("\n%s\nNewPlan(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nNewPlan(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStores(t *testing.T) {
	p := Plan{Sources: []Source{
		{Store: *fakeStore("b"), Read: readOf("1")}, {Store: *fakeStore("a"), Read: readOf("1")}, {Store: *fakeStore("b"), Read: readOf("2")},
	}}
	if diff := cmp.Diff([]v1alpha1.StoreRef{*fakeStore("b"), *fakeStore("a")}, p.Stores()); diff != "" {
		t.Errorf("Stores(): -want, +got:\n%s", diff)
	}
}

func TestNewPlanErrors(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	cases := map[string]struct {
		reason string
		change func(*spec)
		// want are parts of the error: the field and the fix.
		want []string
	}{
		"EmptyKey":          {"A remote key must not be empty.", func(s *spec) { s.Data[0].RemoteRef.Key = "" }, []string{"spec.data[0]: remoteRef.key", "name the remote secret"}},
		"BlankKey":          {"A remote key must not be blank.", func(s *spec) { s.Data[0].RemoteRef.Key = " \t" }, []string{"spec.data[0]: remoteRef.key", "name the remote secret"}},
		"EmptyExtractKey":   {"A remote key of extract must not be empty.", func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{extract("a"), extract("")} }, []string{"spec.dataFrom[1]: extract.key", "name the remote secret"}},
		"NoStore":           {"An entry needs a store.", func(s *spec) { s.StoreRef = nil }, []string{"spec.data[0]", "set spec.storeRef or sourceRef.storeRef"}},
		"NoStoreExtract":    {"An entry of dataFrom needs a store.", func(s *spec) { s.StoreRef, s.Data, s.DataFrom = nil, nil, []v1alpha1.DataFromEntry{extract("a")} }, []string{"spec.dataFrom[0]", "set spec.storeRef or sourceRef.storeRef"}},
		"NoStoreKind":       {"A store reference needs a kind.", func(s *spec) { s.StoreRef.Kind = "" }, []string{"spec.data[0]: storeRef: kind", "set both"}},
		"NoStoreName":       {"A store reference needs a name.", func(s *spec) { s.StoreRef.Name = "" }, []string{"spec.data[0]: storeRef: kind or name", "set both"}},
		"IllegalSecretKey":  {"A key of a Secret must have valid characters.", func(s *spec) { s.Data[0].SecretKey = "a/b" }, []string{"spec.data[0].secretKey", `"a/b"`, "use letters"}},
		"EmptySecretKey":    {"A key of a Secret must not be empty.", func(s *spec) { s.Data[0].SecretKey = "" }, []string{"spec.data[0].secretKey", "use letters"}},
		"ReservedSecretKey": {"A key must not start with two dots, which the kubelet reserves.", func(s *spec) { s.Data[0].SecretKey = "..data" }, []string{"spec.data[0].secretKey", `"..data"`}},
		"DuplicateKey":      {"A key must not have two sources.", func(s *spec) { s.Data = append(s.Data, entry("b", "x", ""), entry("password", "y", "")) }, []string{"spec.data[2].secretKey", "spec.data[0]", "remove one"}},
		"NothingToRead":     {"An object must read something.", func(s *spec) { s.Data = nil }, []string{"spec", "nothing to read", "data or dataFrom"}},
		"EmptyDataFrom":     {"An entry must read something.", func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{{}} }, []string{"spec.dataFrom[0]", "nothing to read", "set extract"}},
		"BadTarget":         {"The name of a Secret must be a DNS name.", func(s *spec) { s.Target.Name = "Not_a_name" }, []string{"spec.target.name", `"Not_a_name"`}},
		"BadInterval":       {"A duration needs a unit.", func(s *spec) { s.RefreshInterval = "1 day" }, []string{"spec.refreshInterval", `"1 day"`, "write it as"}},
		"NegativeInterval":  {"A duration must not be negative.", func(s *spec) { s.RefreshInterval = "-1s" }, []string{"spec.refreshInterval", `"-1s"`, "write it as"}},
		"TokenType":         {"A type of Secrets that grants permissions is refused.", func(s *spec) { s.Target.Template = &v1alpha1.Template{Type: "kubernetes.io/service-account-token"} }, []string{"spec.target.template.type", "kubernetes.io/service-account-token", "refused"}},
		"BootstrapType":     {"A type of Secrets that grants permissions is refused.", func(s *spec) { s.Target.Template = &v1alpha1.Template{Type: "bootstrap.kubernetes.io/token"} }, []string{"spec.target.template.type", "bootstrap.kubernetes.io/token", "refused"}},
		"DecodingWithType": {"A valid template does not hide an invalid entry.", func(s *spec) {
			s.Target.Template = &v1alpha1.Template{Type: "Opaque"}
			s.Data[0].RemoteRef.DecodingStrategy = "Base32"
		}, []string{"spec.data[0].remoteRef", "decodingStrategy: Base32", "not supported yet"}},
		"FindNothing": {"A search without conditions would read the whole store, so it is refused.", func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{})} }, []string{"spec.dataFrom[0]: find", "set path, name or tags"}},
		"FindEmpty": {"Empty conditions count as none.", func(s *spec) {
			s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Name: &v1alpha1.FindName{}, Tags: map[string]string{}})}
		}, []string{"spec.dataFrom[0]: find", "set path, name or tags"}},
		"FindBadRegexp": {"An invalid expression is refused before any read.", func(s *spec) {
			s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Name: &v1alpha1.FindName{RegExp: "a("}})}
		}, []string{"spec.dataFrom[0]: find: name.regexp", `"a("`, "missing closing )"}},
		"FindNoStore": {"A search needs a store.", func(s *spec) {
			s.StoreRef, s.Data, s.DataFrom = nil, nil, []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "a"})}
		}, []string{"spec.dataFrom[0]", "set spec.storeRef or sourceRef.storeRef"}},
		"FindAndExtract": {"An entry must not have two sources.", func(s *spec) {
			s.DataFrom = []v1alpha1.DataFromEntry{extract("a")}
			s.DataFrom[0].Find = &v1alpha1.Find{Path: "a"}
		}, []string{"spec.dataFrom[0]", "split the entry in two"}},
		"Windows": {"Sync windows are refused before any read.", func(s *spec) {
			s.SyncWindows = &v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: "0 2 * * *", Duration: "4h", TimeZone: "Berlin"}}}
		}, []string{"spec.syncWindows: windows[0]: timeZone", `"Berlin"`, "Europe/Berlin"}},
		"RewriteNothing": {"An empty step is refused.", rewriting(v1alpha1.Rewrite{}), []string{"spec.dataFrom[0]: rewrite[0]", "0 of regexp, transform and merge", "set exactly one"}},
		"RewriteTwice": {"A step with two changes is refused, because their order is undefined.", rewriting(v1alpha1.Rewrite{Regexp: &v1alpha1.RewriteRegexp{}, Merge: &v1alpha1.RewriteMerge{}}),
			[]string{"spec.dataFrom[0]: rewrite[0]", "2 of regexp, transform and merge", "set exactly one"}},
		"RewriteBadRegexp":  {"An invalid expression is refused before any read.", rewriting(regexpStep("a", "b"), regexpStep("a(", "b")), []string{"spec.dataFrom[0]: rewrite[1]: regexp.source", `"a("`, "missing closing )"}},
		"RewriteLongTarget": {"A long target is refused: it might replace every character.", rewriting(regexpStep("", strings.Repeat("a", 513))), []string{"spec.dataFrom[0]: rewrite[0]: regexp.target", "513", "shorten it"}},
		"MergeNowhere":      {"A merge to JSON needs the key of its result.", rewriting(mergeStep(v1alpha1.RewriteMerge{Strategy: "JSON"})), []string{"spec.dataFrom[0]: rewrite[0]: merge: into", "needs the key"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(external(tc.change))
			if err == nil {
				t.Fatalf("\n%s\nNewPlan(): no error", tc.reason)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("\n%s\nNewPlan(): %q does not contain %q", tc.reason, err, w)
				}
			}
			if diff := cmp.Diff(Plan{}, p); diff != "" {
				t.Errorf("\n%s\nNewPlan(): a plan with an error:\n%s", tc.reason, diff)
			}
		})
	}
}

// fields lists for every field of the spec whether it is served. Values after "refused" are tried; without any, each
// value but the zero value must be refused. All fields below a refused field are refused.
var fields = map[string]string{
	"storeRef.apiVersion":                              "served",
	"storeRef.kind":                                    "served",
	"storeRef.name":                                    "served",
	"suspend":                                          "served",
	"refreshPolicy":                                    "served Periodic OnChange CreatedOnce; refused Hourly",
	"refreshInterval":                                  "served 1h",
	"syncWindows.kind":                                 "served allow deny; refused Later",
	"syncWindows.windows.kind":                         "served allow deny; refused Later",
	"syncWindows.windows.schedule":                     "served @daily",
	"syncWindows.windows.duration":                     "served 1h",
	"syncWindows.windows.timeZone":                     "served Europe/Berlin",
	"target.kind":                                      "served Secret ConfigMap; refused Later",
	"target.name":                                      "served",
	"target.creationPolicy":                            "served Owner Orphan Merge CreateOrMerge None; refused Later",
	"target.deletionPolicy":                            "served Retain Delete Merge; refused Later",
	"target.cleanupPolicy":                             "served OnDelete Never; refused Later",
	"target.immutable":                                 "served",
	"target.restart.auto":                              "served true",
	"target.restart.workloads.kind":                    "served Deployment",
	"target.restart.workloads.name":                    "served",
	"target.restart.window":                            "served 30s",
	"target.template.type":                             "served Opaque kubernetes.io/tls",
	"target.template.data":                             "served",
	"target.template.mergePolicy":                      "served Replace Merge; refused Later",
	"target.template.metadata.labels":                  "served",
	"target.template.metadata.annotations":             "served",
	"target.template.templateFrom.configMap.name":      "served",
	"target.template.templateFrom.configMap.items.key": "served",
	"target.template.templateFrom.configMap.items.templateAs": "served Values KeysAndValues; refused Later",
	"target.template.templateFrom.secret.name":                "served",
	"target.template.templateFrom.secret.items.key":           "served",
	"target.template.templateFrom.secret.items.templateAs":    "served Values KeysAndValues; refused Later",
	"target.template.templateFrom.literal":                    "served",
	"target.template.templateFrom.target":                     "served Data Labels Annotations; refused Later",
	"target.template.templateFrom.valuesDecodingStrategy":     "served None Base64 Base64URL Auto; refused Later",
	"data.secretKey":                             "served",
	"data.optional":                              "served",
	"data.remoteRef.key":                         "served",
	"data.remoteRef.property":                    "served",
	"data.remoteRef.version":                     "served",
	"data.remoteRef.metadataPolicy":              "served None Fetch; refused Later",
	"data.remoteRef.nullBytePolicy":              "served Ignore Fail; refused Later",
	"data.remoteRef.decodingStrategy":            "served None Base64 Base64URL Auto; refused Later",
	"data.remoteRef.conversionStrategy":          "served Default Unicode; refused Later",
	"data.sourceRef.storeRef.apiVersion":         "served",
	"data.sourceRef.storeRef.kind":               "served",
	"data.sourceRef.storeRef.name":               "served",
	"dataFrom.extract.key":                       "served",
	"dataFrom.extract.property":                  "served",
	"dataFrom.extract.version":                   "served",
	"dataFrom.extract.metadataPolicy":            "served None Fetch; refused Later",
	"dataFrom.extract.nullBytePolicy":            "served Ignore Fail; refused Later",
	"dataFrom.extract.decodingStrategy":          "served None Base64 Base64URL Auto; refused Later",
	"dataFrom.extract.conversionStrategy":        "served Default Unicode; refused Later",
	"dataFrom.find.path":                         "served",
	"dataFrom.find.name.regexp":                  "served",
	"dataFrom.find.tags":                         "served",
	"dataFrom.find.nullBytePolicy":               "served Ignore Fail; refused Later",
	"dataFrom.find.decodingStrategy":             "served None Base64 Base64URL Auto; refused Later",
	"dataFrom.find.conversionStrategy":           "served Default Unicode; refused Later",
	"dataFrom.rewrite.regexp.source":             "served",
	"dataFrom.rewrite.regexp.target":             "served",
	"dataFrom.rewrite.merge.into":                "served",
	"dataFrom.rewrite.merge.strategy":            "served Extract JSON; refused Later",
	"dataFrom.rewrite.merge.priority":            "served",
	"dataFrom.rewrite.merge.priorityPolicy":      "served Strict IgnoreNotFound; refused Later",
	"dataFrom.rewrite.merge.conflictPolicy":      "served Error Ignore; refused Later",
	"dataFrom.rewrite.transform.template":        "served",
	"dataFrom.optional":                          "served",
	"dataFrom.sourceRef.storeRef.apiVersion":     "served",
	"dataFrom.sourceRef.storeRef.kind":           "served",
	"dataFrom.sourceRef.storeRef.name":           "served",
	"dataFrom.sourceRef.generatorRef.apiVersion": "served",
	"dataFrom.sourceRef.generatorRef.kind":       "served",
	"dataFrom.sourceRef.generatorRef.name":       "served",
}

// TestEveryField fails for each field of the API that neither the plan nor unsupported handles.
func TestEveryField(t *testing.T) {
	var walk func(path []string, typ reflect.Type)
	seen := map[string]bool{}
	walk = func(path []string, typ reflect.Type) {
		name := strings.Join(path, ".")
		if rule, ok := fields[name]; ok {
			seen[name] = true
			for _, part := range strings.Split(rule, "; ") {
				words := strings.Fields(part)
				values := words[1:]
				if len(values) == 0 {
					values = []string{"x"}
				}
				for _, v := range values {
					t.Run(strings.Join([]string{name, words[0], v}, "/"), func(t *testing.T) { tryField(t, path, v, words[0] == "served") })
				}
			}
			return
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(path, typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
				walk(append(slices.Clone(path), key), typ.Field(i).Type)
			}
		default:
			t.Errorf("%s: a field that is neither served nor refused; say which here, and refuse it in unsupported until it is served", name)
		}
	}
	walk(nil, reflect.TypeFor[v1alpha1.ExternalSecretSpec]())
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !seen[name] {
			t.Errorf("%s: the API has no such field", name)
		}
	}
}

// tryField sets one field of a valid spec, and calls NewPlan.
func tryField(t *testing.T, path []string, value string, served bool) {
	es := external(func(s *v1alpha1.ExternalSecretSpec) {
		s.Data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *fakeStore("second")}
		s.DataFrom = []v1alpha1.DataFromEntry{extract("shop/db")}
		s.DataFrom[0].SourceRef = &v1alpha1.SourceRef{StoreRef: fakeStore("third")}
		switch strings.Join(path[:min(len(path), 3)], ".") {
		case "syncWindows.kind", "syncWindows.windows.kind", "syncWindows.windows.schedule", "syncWindows.windows.duration", "syncWindows.windows.timeZone":
			s.SyncWindows = &v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: "0 2 * * *", Duration: "4h"}}}
		case "dataFrom.sourceRef.generatorRef":
			s.DataFrom[0].Extract = nil
			s.DataFrom[0].SourceRef = &v1alpha1.SourceRef{GeneratorRef: fakeStore("fourth")}
		case "dataFrom.find.path", "dataFrom.find.name", "dataFrom.find.tags":
			s.DataFrom[0].Extract = nil
		case "dataFrom.find.decodingStrategy", "dataFrom.find.conversionStrategy", "dataFrom.find.nullBytePolicy":
			s.DataFrom[0].Extract, s.DataFrom[0].Find = nil, &v1alpha1.Find{Path: "shop/"}
		case "target.template.templateFrom":
			src := &v1alpha1.TemplateSource{Name: "templates", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}
			f := v1alpha1.TemplateFrom{ConfigMap: src}
			switch path[3] {
			case "secret":
				f = v1alpha1.TemplateFrom{Secret: src}
			case "literal":
				f = v1alpha1.TemplateFrom{}
			}
			s.Target.Template = &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{f}}
		case "dataFrom.rewrite.merge":
			s.DataFrom[0].Rewrite = []v1alpha1.Rewrite{mergeStep(v1alpha1.RewriteMerge{Into: "all"})}
		}
	})
	set(t, reflect.ValueOf(&es.Spec).Elem(), path, value)
	_, err := NewPlan(es)
	switch {
	case served && err != nil:
		t.Errorf("NewPlan(): %v, want it to be served", err)
	case !served && err == nil:
		t.Error("NewPlan(): no error, want it to be refused: nothing is ignored in silence")
	case !served && !strings.Contains(err.Error(), "not supported yet; remove it"):
		t.Errorf("NewPlan(): %q, want the text that this is not supported yet", err)
	}
}

// set sets a field, named by its path, to a value that is not zero.
func set(t *testing.T, v reflect.Value, path []string, value string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		set(t, v.Elem(), path, value)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		if len(path) > 0 {
			set(t, v.Index(0), path, value)
		}
	case reflect.Struct:
		if len(path) == 0 {
			return
		}
		for i := range v.NumField() {
			if key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); key == path[0] {
				set(t, v.Field(i), path[1:], value)
				return
			}
		}
		t.Fatalf("no field %q", path[0])
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": value}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(value)
	default:
		t.Fatalf("no value for a %s", v.Kind())
	}
}
