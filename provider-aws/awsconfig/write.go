package awsconfig

import (
	"strings"

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
