package awsconfig

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// ToAllow adds the missing action to an error of class Denied if AWS does not name it.
func ToAllow(err error, action string) error {
	var e *provider.Error
	if !errors.As(err, &e) || e.Class != provider.Denied {
		return err
	}
	withAction := *e
	if strings.HasSuffix(withAction.Message, denied) {
		withAction.Message += "; allow " + action + " in a policy"
	}
	withAction.Message = strings.Replace(withAction.Message, "allow kms:Decrypt in", "allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in", 1)
	return &withAction
}

// secretLocks are those of the secrets that are being written. The operator orders the writes of one place, but the account behind a
// custom endpoint is not proven, so each store there is a place of its own.
var secretLocks provider.Locks[place]

// place identifies a secret across all stores of the process. It includes the endpoint, because any server can
// answer with any ARN.
type place struct{ endpoint, arn string }

// LockSecret waits until no other caller in this process writes the secret with this ARN. AWS reports concurrent
// writes too late, or stores an extra version, and most concurrent writers are in one operator. The caller must
// then read the secret again, and call unlock when done. A name is not enough: other accounts and regions can
// have the same name.
func (c *Config) LockSecret(ctx context.Context, arn string) (unlock func(), err error) {
	return secretLocks.Lock(ctx, place{aws.ToString(c.Endpoint), arn})
}
