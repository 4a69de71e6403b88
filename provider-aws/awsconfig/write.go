package awsconfig

import (
	"context"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// ToAllow adds to an error of class Denied which action is missing, where AWS does not say it.
func ToAllow(err error, action string) error {
	var e *provider.Error
	if !errors.As(err, &e) || e.Class != provider.Denied {
		return err
	}
	said := *e
	if strings.HasSuffix(said.Message, denied) {
		said.Message += "; allow " + action + " in a policy"
	}
	said.Message = strings.Replace(said.Message, "allow kms:Decrypt in", "allow kms:Decrypt, kms:Encrypt and kms:GenerateDataKey in", 1)
	return &said
}

// Moved makes a Conflict of what says that a secret is gone that was there before.
func Moved(err error) error {
	if !provider.IsNotFound(err) {
		return err
	}
	return provider.NewError(provider.Conflict, "%s", err)
}

// turns are the secrets that are being written.
var turns = struct {
	sync.Mutex
	taken map[place]*turn
}{taken: map[place]*turn{}}

// place is a secret as the whole process knows it. The endpoint is part of it, since a server can answer with any ARN.
type place struct{ endpoint, arn string }

type turn struct {
	free chan struct{}
	// users have the turn, or wait for it.
	users int
}

// Turn waits until nobody else in this process writes the secret with an ARN. AWS finds out too late, or at the cost
// of a version, that two write at the same time; most who do sit in one operator. The caller looks at the
// secret again, and calls leave in the end. A name is no ARN: other accounts and regions have it, too.
func (c *Config) Turn(ctx context.Context, arn string) (leave func(), err error) {
	id := place{aws.ToString(c.Endpoint), arn}
	turns.Lock()
	t := turns.taken[id]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		turns.taken[id] = t
	}
	t.users++
	turns.Unlock()

	forget := func() {
		turns.Lock()
		defer turns.Unlock()
		if t.users--; t.users == 0 {
			delete(turns.taken, id)
		}
	}
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, provider.NewError(provider.Unavailable, "another write of the same secret did not end in time")
	}
}
