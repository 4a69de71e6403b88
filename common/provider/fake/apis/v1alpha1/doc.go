// Package v1alpha1 holds the store, generator and event source Kinds of the in-memory provider. They serve tests only; no
// release installs them.
//
// +kubebuilder:object:generate=true
// +groupName=fake.direct-secrets.io
package v1alpha1
