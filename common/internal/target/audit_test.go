package target_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestAudit makes one write after another, and reads the lines that each logs.
func TestAudit(t *testing.T) {
	const canary = "canary-9d1f"
	e := newEnv(t)
	log := &bytes.Buffer{}
	e.w = target.NewWriter(api, slog.New(slog.NewJSONHandler(log, nil)))
	o := e.object("db")
	wants := func(pairs ...string) target.Desired { return o.wants("s", pairs...) }
	var last *corev1.Secret
	for _, step := range []struct {
		reason string
		write  func()
		want   []string
	}{
		{"a created Secret has all of its keys added", func() { last = e.writes(wants("a", canary+"1", "b", canary+"2")) }, []string{"added a", "added b"}},
		{"an equal Secret is written again without a line", func() { last = e.writes(wants("a", canary+"1", "b", canary+"2")) }, nil},
		{"each key is listed", func() { last = e.writes(wants("a", canary+"3", "c", canary+"4")) }, []string{"added c", "changed a", "removed b"}},
		{"a new owner changes no key", func() { last = e.owns(owned(wants("a", canary+"3", "c", canary+"4"), o.reference(true))) }, nil},
		{"a refused write changes no key", func() {
			stale := last.DeepCopy()
			e.updates("s", "kubectl", setData("d", canary+"5"))
			if _, _, err := e.w.Apply(e.ctx, stale, wants("a", canary+"6"), target.Others{}); err == nil {
				t.Error("a stale write succeeded")
			}
		}, nil},
		{"what is released is removed, and the key of another tool stays", func() { e.releases(wants()) }, []string{"removed a", "removed c"}},
		{"a deleted Secret has all of its keys removed", func() {
			if err := e.w.Delete(e.ctx, e.secret("s")); err != nil {
				t.Error(err)
			}
		}, []string{"removed d"}},
	} {
		log.Reset()
		step.write()
		var got []string
		for line := range strings.Lines(log.String()) {
			var l struct{ Action, Key, Namespace, Secret, UID, ExternalSecret string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Action+" "+l.Key)
			if l.Namespace != e.ns || l.Secret != "s" || l.UID != string(last.UID) || (l.ExternalSecret != "db" && !strings.HasPrefix(step.reason, "a deleted")) {
				t.Errorf("%s: the line names another Secret: %s", step.reason, line)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", step.reason, diff)
		}
		if strings.Contains(log.String(), canary) {
			t.Errorf("%s: a line has a value: %s", step.reason, log)
		}
	}
}
