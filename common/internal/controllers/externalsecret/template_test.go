package externalsecret_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// templated sets the template.
func templated(t v1alpha1.Template) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Template = &t }
}

// from returns a template of a ConfigMap or Secret.
func from(kind, name, key, as, target string) v1alpha1.TemplateFrom {
	src := &v1alpha1.TemplateSource{Name: name, Items: []v1alpha1.TemplateSourceItem{{Key: key, TemplateAs: as}}}
	if kind == "Secret" {
		return v1alpha1.TemplateFrom{Secret: src, Target: target}
	}
	return v1alpha1.TemplateFrom{ConfigMap: src, Target: target}
}

func literal(text, target string) v1alpha1.TemplateFrom {
	return v1alpha1.TemplateFrom{Literal: &text, Target: target}
}

// foreignTo returns the labels or annotations that are not the operator's own.
func foreignTo(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(k, _ string) bool { return strings.Contains(k, v1alpha1.Group) })
	return m
}

// TestTemplate renders templates of the spec, a ConfigMap and a Secret, and then removes the template.
func TestTemplate(t *testing.T) {
	t.Parallel()
	type shape struct {
		Data, Labels, Annotations map[string]string
		Type                      corev1.SecretType
	}
	cases := map[string]struct {
		reason   string
		template v1alpha1.Template
		want     shape
	}{
		"MetadataOnly": {
			"a template without data keeps the values",
			v1alpha1.Template{Metadata: v1alpha1.TemplateMetadata{
				Labels:      map[string]string{"example.com/user": "{{ .user }}"},
				Annotations: map[string]string{"example.com/note": "for {{ .user }}"},
			}},
			shape{
				Data: holds("user", "admin", "password", "p&w"), Labels: holds("example.com/user", "admin"),
				Annotations: holds("example.com/note", "for admin"),
			},
		},
		"Elsewhere": {
			"templates of all sources; spec.target.template.data comes last",
			v1alpha1.Template{
				TemplateFrom: []v1alpha1.TemplateFrom{
					from("ConfigMap", "templates", "one", "", ""), from("ConfigMap", "templates", "many", "KeysAndValues", "Data"),
					from("Secret", "templates", "one", "Values", ""), literal(`lit: "{{ .user }}"`, ""),
					literal("example.com/l: x", "Labels"), literal("example.com/a: {{ .user }}", "Annotations"),
				},
				Data: map[string]string{"b": "spec"},
			},
			shape{
				Data:   holds("one", "secret admin", "a", "admin", "b", "spec", "lit", "admin"),
				Labels: holds("example.com/l", "x"), Annotations: holds("example.com/a", "admin"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte(`{"user":"admin","password":"p&w"}`))
			e.Create(&corev1.ConfigMap{ObjectMeta: e.Meta("templates"), Data: map[string]string{"one": "map {{ .user }}", "many": "a: '{{ .user }}'\nb: other"}})
			e.Create(&corev1.Secret{ObjectMeta: e.Meta("templates"), StringData: map[string]string{"one": "secret {{ .user }}"}})
			all := func(es *v1alpha1.ExternalSecret) {
				es.Spec.Data, es.Spec.DataFrom = nil, []v1alpha1.DataFromEntry{{Extract: &v1alpha1.RemoteRef{Key: "db"}}}
			}
			e.synced("db", all, templated(tc.template))
			want := func(want shape) {
				t.Helper()
				e.Eventually(func() string {
					s := e.Secret("db")
					if s == nil {
						return "there is no Secret"
					}
					got := shape{Data: e.dataOf("db"), Labels: foreignTo(s.Labels), Annotations: foreignTo(s.Annotations), Type: s.Type}
					for _, m := range []*map[string]string{&got.Labels, &got.Annotations} {
						if len(*m) == 0 {
							*m = nil
						}
					}
					if want.Type == "" {
						want.Type = corev1.SecretTypeOpaque
					}
					return cmp.Diff(want, got)
				})
			}
			want(tc.want)
			if tc.template.Type != "" {
				return // The type of a Secret cannot change.
			}
			testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Template = nil })
			want(shape{Data: holds("user", "admin", "password", "p&w")})
		})
	}
}

// TestTemplateStays renders templates with random output. The output changes only when an input changes.
func TestTemplateStays(t *testing.T) {
	e := newIdleEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.Create(&corev1.ConfigMap{ObjectMeta: e.Meta("templates"), Data: map[string]string{"t": "{{ randAlphaNum 20 }} {{ .value }}", "other": "x"}})
	clock := newStepping()
	start := func() { e.Serve(e.Server.Kinds(), operator.WithClock(clock.time)) }
	start()
	e.synced("db", every("1h"), templated(v1alpha1.Template{
		Data:         map[string]string{"spec": "{{ uuidv4 }}", "value": "{{ .value }}"},
		TemplateFrom: []v1alpha1.TemplateFrom{from("ConfigMap", "templates", "t", "", "")},
	}))
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	last := e.dataOf("db")
	served := "0"
	refreshed := func() {
		t.Helper()
		served += "0"
		testenv.Update(e.Client, e.Get("db"), testenv.Request(served))
		e.Eventually(func() string { return cmp.Diff(served, e.Get("db").Status.ObservedRefreshRequest) })
	}
	stays := func(what string, provoke func()) {
		t.Helper()
		provoke()
		e.WantReady("db", v1alpha1.ReasonSecretSynced)
		e.WaitForEvents()
		if diff := cmp.Diff(last, e.dataOf("db")); diff != "" {
			t.Fatalf("%s: the Secret has changed: -was, +is:\n%s", what, diff)
		}
	}
	changes := func(what string, provoke func()) {
		t.Helper()
		provoke()
		e.Eventually(func() string {
			if now := e.dataOf("db"); now["t"] == last["t"] || now["spec"] == last["spec"] {
				return what + ": the Secret has not changed"
			}
			return ""
		})
		e.WantReady("db", v1alpha1.ReasonSecretSynced)
		last = e.dataOf("db")
	}
	stays("a refresh", refreshed)
	stays("a periodic refresh", func() { clock.step(2 * time.Hour); e.triggerReconcile("db") })
	stays("a label", func() {
		testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
	})
	stays("another interval", func() { testenv.Update(e.Client, e.Get("db"), every("2h")) })
	stays("cleanupPolicy", func() {
		testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever })
	})
	stays("a restart", func() { e.Stop(); start() })
	stays("the status is lost", func() {
		e.Stop()
		es := e.Get("db")
		es.Status = v1alpha1.ExternalSecretStatus{}
		if err := e.API.Status().Update(e.Ctx, es); err != nil {
			t.Fatal(err)
		}
		start()
	})
	stays("a foreign label", func() { e.triggerReconcile("db") })
	stays("another key of the ConfigMap", func() {
		testenv.Update(e.Client, &corev1.ConfigMap{ObjectMeta: e.Meta("templates")}, func(c *corev1.ConfigMap) { c.Data["other"] = "y" })
	})
	changes("the value", func() { e.Backend.Put("db", []byte("two")); refreshed() })
	changes("the ConfigMap", func() {
		testenv.Update(e.Client, &corev1.ConfigMap{ObjectMeta: e.Meta("templates")}, func(c *corev1.ConfigMap) { c.Data["t"] += "!" })
	})
	changes("the ConfigMap, changed during a restart", func() {
		e.Stop()
		testenv.Update(e.Client, &corev1.ConfigMap{ObjectMeta: e.Meta("templates")}, func(c *corev1.ConfigMap) { c.Data["t"] += "!" })
		start()
	})
	changes("the template of the spec", func() {
		testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Template.Data["spec"] += "!" })
	})
}

// TestTemplateSource changes a ConfigMap that many objects use as template. All objects render again at once, with
// one read at most.
func TestTemplateSource(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("shared", []byte("x"))
	e.Backend.Inject(fake.Fault{Latency: 300 * time.Millisecond}) // So that the reads overlap.
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		e.Create(e.ExternalSecret(name, testenv.Fills("value", "shared"), templated(v1alpha1.Template{
			TemplateFrom: []v1alpha1.TemplateFrom{from("ConfigMap", "templates", "t", "", "")},
		})))
		c := e.WantReady(name, v1alpha1.ReasonSecretSyncedError)
		if !strings.HasPrefix(c.Message, "Template: ") || !strings.Contains(c.Message, `ConfigMap "templates" does not exist`) {
			t.Errorf("the message of Ready is %q", c.Message)
		}
	}
	all := func(want string) {
		t.Helper()
		for _, name := range names {
			e.wantData(name, holds("t", want))
			e.WantReady(name, v1alpha1.ReasonSecretSynced)
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: e.Meta("templates"), Data: map[string]string{"t": "1 {{ .value }}"}}
	e.Create(cm)
	all("1 x")
	before := e.Backend.ReadsOf("shared")
	testenv.Update(e.Client, cm, func(c *corev1.ConfigMap) { c.Data["t"] = "2 {{ .value }}" })
	all("2 x")
	// A walk that has just ended may still hold the answer of less than a second ago. Then there is no other read.
	if n := e.Backend.ReadsOf("shared") - before; n > 1 {
		t.Errorf("the secret was read %d times for one change of the ConfigMap, want once at most", n)
	}
	e.Delete(cm)
	for _, name := range names {
		e.WantReady(name, v1alpha1.ReasonSecretSyncedError)
		e.wantData(name, holds("t", "2 x"))
	}
}

// TestTemplateErrors has a Secret in sync, and then a template or value that fails. The Secret stays, and the
// condition names the template and the line, without a value.
func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-v4lue"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.Template
		want   []string
	}{
		"Parse":       {"a brace is missing", v1alpha1.Template{Data: map[string]string{"k": "a\n{{ .value }"}}, []string{"Template: ", "spec.target.template.data[k]", "line 2"}},
		"Function":    {"there is no such function", v1alpha1.Template{Data: map[string]string{"k": `{{ env "HOME" }}`}}, []string{"spec.target.template.data[k]", "line 1", `"env"`}},
		"MissingKey":  {"the template uses a key that was not read", v1alpha1.Template{Data: map[string]string{"k": "\n\n{{ .missing }}"}}, []string{"spec.target.template.data[k]", "line 3", `"missing"`}},
		"OwnLabel":    {"the template sets a label of the operator", v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("fake.direct-secrets.io/managed: no", "Labels")}}, []string{"spec.target.template.templateFrom[0]", "is reserved for the operator"}},
		"Type":        {"the value does not fit the type", v1alpha1.Template{Type: string(corev1.SecretTypeDockerConfigJson), Data: map[string]string{".dockerconfigjson": "{{ .value }}"}}, []string{"Invalid: ", "kubernetes.io/dockerconfigjson", "not a JSON object"}},
		"MissingItem": {"the ConfigMap lacks the key", v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{from("ConfigMap", "templates", "no", "", "")}}, []string{"spec.target.template.templateFrom[0]", `"templates"`, `"no"`, "no such key"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte(canary))
			e.Create(&corev1.ConfigMap{ObjectMeta: e.Meta("templates")})
			e.synced("db")
			before := e.Secret("db")
			testenv.Update(e.Client, e.Get("db"), templated(tc.spec))
			c := e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
			for _, w := range tc.want {
				if !strings.Contains(c.Message, w) {
					t.Errorf("%s: the message of Ready is %q, want it to contain %q", tc.reason, c.Message, w)
				}
			}
			if strings.Contains(c.Message, canary) {
				t.Errorf("%s: Ready shows the value: %q", tc.reason, c.Message)
			}
			e.wantUnchanged(before)
		})
	}
}

// TestFind reads secrets that match by name and tags, renames their keys, and follows new and deleted secrets.
func TestFind(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("shop/db/user", []byte("admin"), fake.Tags(map[string]string{"team": "shop"}))
	e.Backend.Put("shop/db/password", []byte("x"), fake.Tags(map[string]string{"team": "shop"}))
	e.Backend.Put("shop/other", []byte("no"))
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{
			Find: &v1alpha1.Find{Path: "shop/", Name: &v1alpha1.FindName{RegExp: "^shop/db/"}, Tags: map[string]string{"team": "shop"}},
			Rewrite: []v1alpha1.Rewrite{
				{Regexp: &v1alpha1.RewriteRegexp{Source: "^shop/db/(.*)$", Target: "db_$1"}},
				{Transform: &v1alpha1.RewriteTransform{Template: "{{ .value | upper }}"}},
			},
		}}
	}))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.wantData("db", holds("DB_USER", "admin", "DB_PASSWORD", "x"))
	e.Backend.Delete("shop/db/user")
	e.Backend.Put("shop/db/host", []byte("h"), fake.Tags(map[string]string{"team": "shop"}))
	testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
	e.wantData("db", holds("DB_HOST", "h", "DB_PASSWORD", "x"))

	// An error in the middle of a list does not end it, and an empty list keeps the present keys.
	before := e.Secret("db")
	repair := e.Backend.Inject(fake.Fault{Key: "shop/db/password", Call: fake.CallFind, Err: errBoom})
	testenv.Update(e.Client, e.Get("db"), testenv.Request("2"))
	e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
	e.wantUnchanged(before)
	repair()
	e.Backend.Delete("shop/db/host")
	e.Backend.Delete("shop/db/password")
	testenv.Update(e.Client, e.Get("db"), testenv.Request("3"))
	e.Eventually(func() string {
		if c := e.WantReady("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(c.Message, "NotFound: ") {
			return c.Message
		}
		return ""
	})
	e.wantUnchanged(before)
	testenv.Update(e.Client, e.Get("db"), deletes(v1alpha1.DeletionDelete))
	e.WantReady("db", v1alpha1.ReasonSecretDeleted)
	e.wantData("db", nil)
}

// TestTemplateMerge has two templates that want the same key, label and annotation of one Secret. The first object
// keeps them. The second reports a conflict, and renders nothing again before they are free.
func TestTemplateMerge(t *testing.T) {
	e := newEnv(t)
	e.plain("shared", "foreign", "keep")
	shares := func(name, own string, more bool) spec {
		p := v1alpha1.Template{Data: map[string]string{own: "{{ uuidv4 }}"}}
		if more {
			p.Data["x"] = name
			p.Metadata = v1alpha1.TemplateMetadata{Labels: map[string]string{"team": name}, Annotations: map[string]string{"team": name}}
		}
		return func(es *v1alpha1.ExternalSecret) {
			es.Spec.Target = v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateMerge, Template: &p}
		}
	}
	e.Backend.Put("first", []byte("1"))
	e.Backend.Put("second", []byte("2"))
	e.synced("first", shares("first", "a", true))
	e.Create(e.ExternalSecret("second", shares("second", "b", true)))
	conflict := func() {
		t.Helper()
		c := e.WantReady("second", v1alpha1.ReasonConflict)
		if want := `["annotations/team" "labels/team" "x"]`; !strings.Contains(c.Message, want) {
			t.Errorf("the message of Ready is %q, want it to name %s", c.Message, want)
		}
	}
	conflict()
	e.WantReady("first", v1alpha1.ReasonSecretSynced)
	s := e.Secret("shared")
	if s.Labels["team"] != "first" || s.Annotations["team"] != "first" || string(s.Data["x"]) != "first" || len(s.Data["b"]) == 0 {
		t.Fatalf("the Secret has labels %v, annotations %v and keys %v", s.Labels, s.Annotations, e.dataOf("shared"))
	}
	e.refresh("second")
	e.wantUnchanged(s)
	e.refresh("second")
	conflict()
	e.refresh("first")
	e.WantReady("first", v1alpha1.ReasonSecretSynced)
	e.wantUnchanged(s)

	testenv.Update(e.Client, e.Get("first"), shares("first", "a", false))
	e.Eventually(func() string {
		s := e.Secret("shared")
		if s.Labels["team"] != "second" || s.Annotations["team"] != "second" || string(s.Data["x"]) != "second" {
			return "the Secret does not have the values of the second object"
		}
		return ""
	})
	e.WantReady("second", v1alpha1.ReasonSecretSynced)
	e.WantReady("first", v1alpha1.ReasonSecretSynced)
}

// TestTemplateSourceFixed has a ConfigMap with a template that fails. A fix of the ConfigMap takes effect at once,
// whatever the back-off. The same holds for a source that the spec names again.
func TestTemplateSourceFixed(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	cm := func(name, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: e.Meta(name), Data: map[string]string{"t": text}}
	}
	one, two := cm("one", "1 {{ .value }}"), cm("two", "2 {{ .value }}")
	e.Create(one)
	e.Create(two)
	sources := func(names ...string) spec {
		p := v1alpha1.Template{}
		for _, n := range names {
			p.TemplateFrom = append(p.TemplateFrom, from("ConfigMap", n, "t", "", ""))
		}
		return templated(p)
	}
	e.synced("db", sources("one", "two"))
	e.wantData("db", holds("t", "2 x"))
	testenv.Update(e.Client, two, func(c *corev1.ConfigMap) { c.Data["t"] = "{{ .nothing }}" })
	e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
	e.wantData("db", holds("t", "2 x"))
	testenv.Update(e.Client, two, func(c *corev1.ConfigMap) { c.Data["t"] = "2a {{ .value }}" })
	e.wantData("db", holds("t", "2a x"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)

	testenv.Update(e.Client, e.Get("db"), sources("one"))
	e.wantData("db", holds("t", "1 x"))
	testenv.Update(e.Client, e.Get("db"), sources("one", "two"))
	e.wantData("db", holds("t", "2a x"))
	testenv.Update(e.Client, two, func(c *corev1.ConfigMap) { c.Data["t"] = "2b {{ .value }}" })
	e.wantData("db", holds("t", "2b x"))

	// The watches are those of the present object of this name.
	es := e.Get("db")
	e.Delete(es)
	e.Create(e.ExternalSecret("db", sources("one")))
	e.wantData("db", holds("t", "1 x"))
	testenv.Update(e.Client, one, func(c *corev1.ConfigMap) { c.Data["t"] = "1a {{ .value }}" })
	e.wantData("db", holds("t", "1a x"))
}
