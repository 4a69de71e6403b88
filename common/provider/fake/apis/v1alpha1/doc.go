// Package v1alpha1 holds the store, generator and event source Kinds of the in-memory provider. They serve tests only; no
// release installs them.
//
// +kubebuilder:object:generate=true
// +groupName=fake.direct-secrets.io
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Group is the API group of this package.
const Group = "fake." + common.Group

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return common.Register(s, GroupVersion,
		&FakeStore{}, &FakeStoreList{},
		&OtherFakeStore{}, &OtherFakeStoreList{},
		&ClusterFakeStore{}, &ClusterFakeStoreList{},
		&FakeGenerator{}, &FakeGeneratorList{},
		&ClusterFakeGenerator{}, &ClusterFakeGeneratorList{},
		&FakeEventSource{}, &FakeEventSourceList{},
		&ClusterFakeEventSource{}, &ClusterFakeEventSourceList{},
	)
}
