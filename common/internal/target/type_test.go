package target_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestAnyType checks that a Secret of another writer keeps its type if the spec names none.
func TestAnyType(t *testing.T) {
	const basic = corev1.SecretTypeBasicAuth
	cases := map[string]struct {
		reason string
		before func(e *env)
	}{
		"Posted": {"A tool posted it.", func(e *env) {
			e.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "db"}, Type: basic, Data: bytesOf("username", "x"),
			})
		}},
		"Applied": {"A tool applied it.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
		}},
		"ManagedFieldsReset": {"Its creator is unknown.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
			e.resetsManagedFields("db")
		}},
		"ManagedFieldsResetThenApplied": {"managedFields have only entries for other fields.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
			e.resetsManagedFields("db")
			e.mustApply("db", "flux", data("username", "x"))
		}},
		"AnotherExternalSecret": {"Another ExternalSecret created it.", func(e *env) {
			d := e.object("x").wants("db", "username", "x")
			d.Type = basic
			d.Seal()
			e.writes(d)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			wants := func(pairs ...string) target.Desired {
				d := o.wants("db", pairs...)
				d.Type = ""
				d.Seal()
				return d
			}
			tc.before(e)
			for _, step := range []struct {
				what string
				do   func()
				want map[string]string
			}{
				{"Apply", func() { e.writes(wants("a", "1")) }, map[string]string{"username": "x", "a": "1"}},
				{"another Apply", func() { e.writes(wants("a", "2", "b", "1")) }, map[string]string{"username": "x", "a": "2", "b": "1"}},
				{"Own", func() { e.owns(owned(wants(), o.reference(true))) }, map[string]string{"username": "x", "a": "2", "b": "1"}},
				{"Apply of fewer keys", func() { e.writes(wants("b", "1")) }, map[string]string{"username": "x", "b": "1"}},
				{"Release", func() { e.releases(wants()) }, map[string]string{"username": "x"}},
			} {
				step.do()
				s := e.wantData("db", step.want)
				if s.Type != basic {
					t.Errorf("\n%s\ntype after %s: got %q, want %q", tc.reason, step.what, s.Type, basic)
				}
				for _, entry := range s.ManagedFields {
					if entry.Manager == o.manager() && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:type"`) {
						t.Errorf("\n%s\nwe hold the type after %s", tc.reason, step.what)
					}
				}
				if step.what != "Release" && !observe(s, "db").Intact {
					t.Errorf("\n%s\nnot intact after %s", tc.reason, step.what)
				}
			}
		})
	}
}

// TestAnyTypeCreated checks that a Secret without a type in the spec is created as Opaque, and stays so.
func TestAnyTypeCreated(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := o.wants("db", "a", "1")
	d.Type = ""
	d.Seal()
	for _, write := range []func(target.Desired) *corev1.Secret{
		func(d target.Desired) *corev1.Secret { return e.writes(d) },
		func(d target.Desired) *corev1.Secret { return e.writes(d) },
		func(d target.Desired) *corev1.Secret { return e.owns(owned(d, o.reference(true))) },
	} {
		if s := write(d); s.Type != corev1.SecretTypeOpaque || !observe(s, "db").Intact {
			t.Errorf("type is %q", s.Type)
		}
	}
}

func TestTypeWithdrawn(t *testing.T) {
	const custom = "example.com/custom"
	writes := map[string]func(e *env, d target.Desired) error{
		"Apply": func(e *env, d target.Desired) error {
			_, _, err := e.w.Apply(e.ctx, e.secret("db"), d, target.Others{})
			return err
		},
		"Own": func(e *env, d target.Desired) error {
			_, err := e.w.Own(e.ctx, e.secret("db"), d, target.Others{})
			return err
		},
		"Release": func(e *env, d target.Desired) error { return e.w.Release(e.ctx, e.secret("db"), d) },
	}
	for verb, write := range writes {
		for _, applied := range []bool{false, true} {
			t.Run(verb+map[bool]string{false: "AfterCreate", true: "AfterApply"}[applied], func(t *testing.T) {
				e := newEnv(t)
				d := e.object("db").wants("db", "a", "1")
				d.Type = custom
				d.Seal()
				e.writes(d)
				if applied {
					e.writes(d)
				}
				d.Type = ""
				d.Seal()
				if err := write(e, d); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				if s := e.secret("db"); s.Type != custom {
					t.Errorf("type after %s: got %q, want %q", verb, s.Type, custom)
				}
			})
		}
	}
}
