package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// UUID is a generator of random UUIDs, such as the identifier of an installation.
//
// +direct-secrets:generator:shortName=uuid,optional

// UUIDSpec describes the UUIDs, and when they are replaced.
type UUIDSpec struct {
	common.GeneratorSpec `json:",inline"`
}
