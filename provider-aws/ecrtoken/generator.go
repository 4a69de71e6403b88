// Package ecrtoken generates logins for the container registries of AWS, for the generator Kind
// ECRAuthorizationToken.
package ecrtoken

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Generator generates the logins of one object.
type Generator struct {
	config   *awsconfig.Config
	registry authorizer
	// actions names the permissions that the registry requires.
	actions string
}

// An Object is a generator Kind of registry logins.
type Object interface {
	awsconfig.Object

	// Scope returns the registries that a login is for, private or public.
	Scope() v1alpha1.ECRScope
}

var (
	_ provider.Generator = &Generator{}
	_ provider.Checker   = &Generator{}
)

// Connect returns the Generator of an object, namespaced or not. It does not call AWS.
func Connect[S Object](ctx context.Context, s S, creds provider.Credentials) (provider.Generator, error) {
	r, ok := registries[s.Scope()]
	if !ok {
		return nil, provider.NewError(provider.Invalid, "spec.scope: %.64q is not valid; set private or public", string(s.Scope()))
	}
	c, err := awsconfig.Load(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	return &Generator{config: c, registry: r.connect(c), actions: r.actions}, nil
}

// Close releases connections.
func (g *Generator) Close() error { return g.config.Close() }

// Check generates a login and discards it, because there is no other call that this client needs. It changes
// nothing in AWS.
func (g *Generator) Check(ctx context.Context) error {
	_, err := g.Generate(ctx)
	return err
}

// Generate returns a login that is valid for twelve hours.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	login, err := g.registry.authorize(ctx)
	if err != nil {
		return provider.Generated{}, awsconfig.ToAllow(g.config.Explain(err, "", codes), g.actions)
	}
	user, password, err := login.parts()
	if err != nil {
		return provider.Generated{}, err
	}
	return provider.Generated{Expires: login.expires, Values: map[string][]byte{
		"username":       []byte(user),
		"password":       []byte(password),
		"proxy_endpoint": []byte(login.endpoint),
		"expires_at":     []byte(strconv.FormatInt(login.expires.Unix(), 10)),
	}}, nil
}

// parts returns the user and the password of a login, or an error of class Unavailable if a part is missing.
func (a authorization) parts() (user, password string, err error) {
	token, err := base64.StdEncoding.DecodeString(a.token)
	user, password, ok := strings.Cut(string(token), ":")
	if err != nil || !ok || user == "" || password == "" || a.expires.Unix() <= 0 {
		return "", "", provider.NewError(provider.Unavailable, "the response of AWS has no login; check spec.endpoint")
	}
	return user, password, nil
}
