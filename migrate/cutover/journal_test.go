package cutover

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestParseEntry forges entries of the journal. The way back must create none of their objects.
func TestParseEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*entry)
		ok     bool
	}{
		"Good":           {"an entry of the command", func(*entry) {}, true},
		"OtherObject":    {"the entry of a PushSecret of the same name", func(e *entry) { e.Object.SetKind("PushSecret") }, false},
		"OtherKind":      {"an object of another Kind", func(e *entry) { e.Object.SetKind("ClusterRoleBinding") }, false},
		"OtherGroup":     {"an object of another group", func(e *entry) { e.Object.SetAPIVersion("rbac.authorization.k8s.io/v1") }, false},
		"OtherNamespace": {"an object of another namespace", func(e *entry) { e.Object.SetNamespace("kube-system") }, false},
		"OtherName":      {"the entry of another object", func(e *entry) { e.Object.SetName("other") }, false},
		"NoObject":       {"nothing", func(e *entry) { e.Object = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry{Object: esoObject(map[string]any{})}
			o := Options{JournalNamespace: journalNamespace}
			at, err := o.configMap(e)
			if err != nil {
				t.Fatal(err)
			}
			e.Object = e.Object.DeepCopy()
			tc.change(&e)
			if e.Object == nil {
				at.Data[journalKey] = "{}"
			} else if m, err := o.configMap(e); err != nil {
				t.Fatal(err)
			} else {
				at.Data = m.Data
			}
			if _, err := o.parseEntry(at); (err == nil) != tc.ok {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestForgedJournal has entries that a tenant wrote, who is allowed to write ConfigMaps in a namespace and nothing else.
// They cause no write of the administrator who runs the command.
func TestForgedJournal(t *testing.T) {
	t.Parallel()
	from := esoObject(stoppedSpec())
	other := movedObject(&v1alpha1.ExternalSecret{})
	other.Annotations = nil
	for name, tc := range map[string]struct {
		reason string
		exists []client.Object
		run    func(*Cutover) error
	}{
		"Create":  {reason: "--revert creates no object of External Secrets Operator", run: revertAll},
		"Delete":  {reason: "--revert deletes no ExternalSecret", exists: []client.Object{other}, run: revertAll},
		"Restore": {reason: "--revert changes no object of External Secrets Operator", exists: []client.Object{from}, run: revertAll},
		"Remove": {reason: "--remove deletes no object that was not moved", exists: []client.Object{from}, run: func(c *Cutover) error {
			c.Remove = true
			c.Move(t.Context(), []Unit{{From: from}})
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := movedEntry(t, from)
			entry.Namespace = from.GetNamespace()
			cluster := newRecorder(t, append(tc.exists, entry)...)
			c := &Cutover{Client: cluster, Options: Options{Timeout: time.Second, JournalNamespace: journalNamespace}, Report: func(Result) {}}
			if err := tc.run(c); err != nil {
				t.Fatal(err)
			}
			if len(cluster.writes) > 0 {
				t.Errorf("%s: it made the writes %q", tc.reason, cluster.writes)
			}
		})
	}
}

func revertAll(c *Cutover) error {
	_, err := c.Revert(context.Background(), "", func(map[string]string) bool { return true })
	return err
}
