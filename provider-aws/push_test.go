package main

import (
	"strings"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// TestDeletionCRD checks the API server's validation of spec.deletion.
func TestDeletionCRD(t *testing.T) {
	cases := map[string]struct {
		reason   string
		deletion v1alpha1.AWSSecretsManagerDeletion
		want     string // part of the error
	}{
		"Force":    {"Secrets can be deleted without a recovery window.", v1alpha1.AWSSecretsManagerDeletion{ForceDeleteWithoutRecovery: true}, ""},
		"Week":     {"AWS's minimum of seven days is accepted.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 7}, ""},
		"Month":    {"AWS's maximum of thirty days is accepted.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 30}, ""},
		"Short":    {"Less than seven days is rejected.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 6}, "greater than or equal to 7"},
		"Long":     {"More than thirty days is rejected.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 31}, "less than or equal to 30"},
		"Both":     {"A recovery window is rejected for deletion without recovery.", v1alpha1.AWSSecretsManagerDeletion{ForceDeleteWithoutRecovery: true, RecoveryWindowInDays: 7}, "set either forceDeleteWithoutRecovery or recoveryWindowInDays"},
		"Untitled": {"An empty deletion is valid.", v1alpha1.AWSSecretsManagerDeletion{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore("default", "deletion-"+strings.ToLower(name), v1alpha1.AWSSpec{})
			s.Spec.Deletion = &tc.deletion
			suite.Accepts(t, tc.reason, s, tc.want)
		})
	}
	former := newStore("default", "deletion-former", v1alpha1.AWSSpec{})
	former.Spec.SecretsManager = &common.Renamed{}
	suite.Accepts(t, "The error for a former field names the present one.", former, "secretsManager is not supported: use deletion")
}
