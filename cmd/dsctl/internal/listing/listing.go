// Package listing creates the table of `dsctl get` from a snapshot.
package listing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Row is one object of any Kind.
type Row struct {
	snapshot.Ref

	// Store is the first store or generator that the object refers to, as Kind/name.
	Store string `json:"store,omitempty"`
	// Ready is the status of the condition Ready: True, False or Unknown.
	Ready     string `json:"ready"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Refreshed is the time of the last success, for ExternalSecrets and PushSecrets.
	Refreshed *metav1.Time `json:"refreshed,omitempty"`
	Created   metav1.Time  `json:"created"`
}

// Rows returns a row for each object for which keep is true.
func Rows(s *snapshot.Snapshot, keep func(*Row) bool) []Row {
	rows := []Row{}
	for i := range s.Objects {
		if r := row(&s.Objects[i]); keep(&r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func row(o *snapshot.Object) Row {
	r := Row{Ref: o.Ref(), Ready: string(metav1.ConditionUnknown), Suspended: o.Suspended, Created: o.Meta.CreationTimestamp}
	if c := o.Ready(); c != nil {
		r.Ready, r.Reason, r.Message = string(c.Status), c.Reason, c.Message
	}
	if uses := o.Uses(); len(uses) > 0 {
		r.Store = uses[0].Kind + "/" + uses[0].Name
		if uses[0].Selector != nil {
			r.Store = uses[0].Kind + "/" + metav1.FormatLabelSelector(uses[0].Selector)
		}
	}
	switch {
	case o.ExternalSecret != nil:
		r.Refreshed = o.ExternalSecret.Status.RefreshTime
	case o.PushSecret != nil:
		r.Refreshed = oldest(o.PushSecret.Status.Stores)
	}
	return r
}

// oldest returns the oldest of the stores' last successes, or nil if a store has had none.
func oldest(stores []v1alpha1.PushStoreStatus) *metav1.Time {
	var at *metav1.Time
	for _, s := range stores {
		if s.RefreshTime == nil {
			return nil
		}
		if at == nil || s.RefreshTime.Before(at) {
			at = s.RefreshTime
		}
	}
	return at
}

// Table returns the rows as columns of text, with a header. namespaces and wide add columns.
func Table(rows []Row, now time.Time, namespaces, wide bool) [][]string {
	header := []string{"KIND", "NAME", "STORE", "READY", "REASON", "REFRESHED", "AGE"}
	if namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if wide {
		header = append(header, "MESSAGE")
	}
	table := [][]string{header}
	for _, r := range rows {
		refreshed := ""
		if r.Refreshed != nil {
			refreshed = duration.HumanDuration(now.Sub(r.Refreshed.Time))
		}
		cells := []string{r.Kind, r.Name, r.Store, r.Ready, r.Reason, refreshed, duration.HumanDuration(now.Sub(r.Created.Time))}
		if namespaces {
			cells = append([]string{r.Namespace}, cells...)
		}
		if wide {
			cells = append(cells, r.Message)
		}
		table = append(table, cells)
	}
	return table
}
