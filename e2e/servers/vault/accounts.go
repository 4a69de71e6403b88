package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/vault/sdk/framework"
	"github.com/hashicorp/vault/sdk/logical"
)

// accounts is a secrets engine whose credentials have leases, like those for databases and clouds, but which
// needs no other server: an account is an entry in its own storage. It has roles/NAME (how long accounts are
// valid), creds/NAME (creates one), and accounts/ (the existing ones). Vault itself manages all leases.
func accounts(ctx context.Context, conf *logical.BackendConfig) (logical.Backend, error) {
	b := &framework.Backend{BackendType: logical.TypeLogical}
	name := &framework.FieldSchema{Type: framework.TypeString}
	seconds := &framework.FieldSchema{Type: framework.TypeDurationSecond}
	yes := &framework.FieldSchema{Type: framework.TypeBool}
	role := map[string]*framework.FieldSchema{"name": name, "ttl": seconds, "max_ttl": seconds, "fixed": yes, "stuck": yes, "leaseless": yes}
	b.Paths = []*framework.Path{
		operations("roles/"+framework.GenericNameRegex("name"), role, saveRole, logical.UpdateOperation),
		operations("creds/"+framework.GenericNameRegex("name"), map[string]*framework.FieldSchema{
			"name": name, "prefix": {Type: framework.TypeString, Query: true}, "groups": {Type: framework.TypeCommaStringSlice, Query: true},
		}, func(ctx context.Context, req *logical.Request, d *framework.FieldData) (*logical.Response, error) {
			return create(ctx, b, req, d)
		}, logical.ReadOperation, logical.UpdateOperation),
		operations("accounts/?$", nil, list, logical.ListOperation),
	}
	b.Secrets = []*framework.Secret{{Type: "account", Renew: extend, Revoke: remove}}
	return b, b.Setup(ctx, conf)
}

func operations(pattern string, fields map[string]*framework.FieldSchema, do framework.OperationFunc, on ...logical.Operation) *framework.Path {
	p := &framework.Path{Pattern: pattern, Fields: fields, Operations: map[logical.Operation]framework.OperationHandler{}}
	for _, o := range on {
		p.Operations[o] = &framework.PathOperation{Callback: do}
	}
	return p
}

// A role holds the settings of its accounts.
type role struct {
	TTL, MaxTTL time.Duration
	// Fixed accounts cannot be renewed, stuck ones cannot be revoked, and leaseless ones have no lease.
	Fixed, Stuck, Leaseless bool
}

func saveRole(ctx context.Context, req *logical.Request, d *framework.FieldData) (*logical.Response, error) {
	seconds := func(field string) time.Duration { return time.Duration(d.Get(field).(int)) * time.Second }
	entry, err := logical.StorageEntryJSON("role/"+d.Get("name").(string), role{
		TTL: seconds("ttl"), MaxTTL: seconds("max_ttl"),
		Fixed: d.Get("fixed").(bool), Stuck: d.Get("stuck").(bool), Leaseless: d.Get("leaseless").(bool),
	})
	if err != nil {
		return nil, err
	}
	return nil, req.Storage.Put(ctx, entry)
}

func roleOf(ctx context.Context, s logical.Storage, name string) (*role, error) {
	entry, err := s.Get(ctx, "role/"+name)
	if err != nil || entry == nil {
		return nil, err
	}
	var r role
	return &r, entry.DecodeJSON(&r)
}

func create(ctx context.Context, b *framework.Backend, req *logical.Request, d *framework.FieldData) (*logical.Response, error) {
	name := d.Get("name").(string)
	r, err := roleOf(ctx, req.Storage, name)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return logical.ErrorResponse("unknown role: %s", name), nil
	}
	user := d.Get("prefix").(string) + strings.ToLower(rand.Text())
	if err := req.Storage.Put(ctx, &logical.StorageEntry{Key: "account/" + user}); err != nil {
		return nil, err
	}
	data := map[string]any{"username": user, "password": rand.Text(), "limits": map[string]any{"role": name}, "groups": d.Get("groups"), "note": nil}
	if r.Leaseless {
		return &logical.Response{Data: data}, nil
	}
	resp := b.Secret("account").Response(data, map[string]any{"user": user, "role": name})
	resp.Secret.TTL, resp.Secret.MaxTTL, resp.Secret.Renewable = r.TTL, r.MaxTTL, !r.Fixed
	return resp, nil
}

// extend renews an account for the time of its role. Vault itself limits it to its maximum.
func extend(ctx context.Context, req *logical.Request, _ *framework.FieldData) (*logical.Response, error) {
	r, err := roleOf(ctx, req.Storage, req.Secret.InternalData["role"].(string))
	if err != nil || r == nil {
		return nil, errors.Join(errors.New("the role does not exist"), err)
	}
	resp := &logical.Response{Secret: req.Secret}
	resp.Secret.TTL, resp.Secret.MaxTTL = r.TTL, r.MaxTTL
	return resp, nil
}

func remove(ctx context.Context, req *logical.Request, _ *framework.FieldData) (*logical.Response, error) {
	r, err := roleOf(ctx, req.Storage, req.Secret.InternalData["role"].(string))
	if err != nil {
		return nil, err
	}
	if r != nil && r.Stuck {
		return nil, errors.New("the account cannot be removed")
	}
	return nil, req.Storage.Delete(ctx, "account/"+req.Secret.InternalData["user"].(string))
}

func list(ctx context.Context, req *logical.Request, _ *framework.FieldData) (*logical.Response, error) {
	users, err := req.Storage.List(ctx, "account/")
	if err != nil {
		return nil, err
	}
	return logical.ListResponse(users), nil
}
