package main

import (
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// TestDeletionCRD checks what the API server says of the ways to delete a secret.
func TestDeletionCRD(t *testing.T) {
	cases := map[string]struct {
		reason   string
		deletion v1alpha1.AWSSecretsManagerDeletion
		want     string // part of the rejection
	}{
		"Force":    {"A secret may be gone at once.", v1alpha1.AWSSecretsManagerDeletion{ForceDeleteWithoutRecovery: true}, ""},
		"Week":     {"AWS takes seven days.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 7}, ""},
		"Month":    {"AWS takes thirty days.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 30}, ""},
		"Short":    {"AWS takes no less.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 6}, "greater than or equal to 7"},
		"Long":     {"AWS takes no more.", v1alpha1.AWSSecretsManagerDeletion{RecoveryWindowInDays: 31}, "less than or equal to 30"},
		"Both":     {"What is gone at once has no window.", v1alpha1.AWSSecretsManagerDeletion{ForceDeleteWithoutRecovery: true, RecoveryWindowInDays: 7}, "set either forceDeleteWithoutRecovery or recoveryWindowInDays"},
		"Untitled": {"Nothing said is nothing wrong.", v1alpha1.AWSSecretsManagerDeletion{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore("default", "deletion-"+strings.ToLower(name), v1alpha1.AWSSpec{})
			s.Spec.SecretsManager = &tc.deletion
			suite.Accepts(t, tc.reason, s, tc.want)
		})
	}
}
