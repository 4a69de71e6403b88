package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// credentials are the result of initialising a server.
type credentials struct {
	RootToken string `json:"rootToken"`
	UnsealKey []byte `json:"unsealKey"`
}

// start returns an unsealed core, either a new one or one with the data in the folder.
func start(ctx context.Context, folder string, logger hclog.Logger) (*vault.Core, credentials, error) {
	storage, err := storageIn(folder, logger)
	if err != nil {
		return nil, credentials{}, err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		Logger:             logger,
		BuiltinRegistry:    registry{},
		LogicalBackends:    secretsEngines,
		CredentialBackends: authMethods,
		DisableMlock:       true,
		EnableRaw:          false,
	})
	if err != nil {
		return nil, credentials{}, err
	}
	creds, err := credentialsOf(ctx, core, folder)
	if err != nil {
		return nil, credentials{}, err
	}
	if ok, err := core.Unseal(creds.UnsealKey); err != nil || !ok {
		return nil, credentials{}, errors.Join(errors.New("the core stays sealed"), err)
	}
	return core, creds, nil
}

func storageIn(folder string, logger hclog.Logger) (physical.Backend, error) {
	if folder == "" {
		return inmem.NewInmem(nil, logger)
	}
	return file.NewFileBackend(map[string]string{"path": filepath.Join(folder, "data")}, logger)
}

// credentialsOf reads the credentials of an earlier start, or initialises the core.
func credentialsOf(ctx context.Context, core *vault.Core, folder string) (credentials, error) {
	var creds credentials
	path := filepath.Join(folder, "credentials.json")
	initialised, err := core.Initialized(ctx)
	if err != nil {
		return creds, err
	}
	if initialised {
		b, err := os.ReadFile(path)
		if err != nil {
			return creds, err
		}
		return creds, json.Unmarshal(b, &creds)
	}
	res, err := core.Initialize(ctx, &vault.InitParams{
		BarrierConfig:  &vault.SealConfig{SecretShares: 1, SecretThreshold: 1},
		RecoveryConfig: &vault.SealConfig{},
	})
	if err != nil {
		return creds, err
	}
	creds = credentials{RootToken: res.RootToken, UnsealKey: res.SecretShares[0]}
	if folder == "" {
		return creds, nil
	}
	b, err := json.Marshal(creds)
	if err != nil {
		return creds, err
	}
	return creds, os.WriteFile(path, b, 0o600)
}
