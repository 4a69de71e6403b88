package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// HoldersOf returns the field managers that hold a key of data, except manager.
func HoldersOf(entries []metav1.ManagedFieldsEntry, key, manager string) []string {
	path := fieldpath.MakePathOrDie("data", key)
	var holders []string
	for _, e := range entries {
		if e.Manager != manager && decode(e).Has(path) {
			holders = append(holders, e.Manager)
		}
	}
	return holders
}
