package gcpconfig

import (
	"context"
	"net/http"
	"time"

	"cloud.google.com/go/compute/metadata"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const authField = "spec.auth"

// ambient logs in with the operator's own identity: GOOGLE_APPLICATION_CREDENTIALS, gcloud's file, or the
// metadata server.
type ambient struct {
	client *http.Client
	scopes []string
}

// login returns when ctx ends, which Google's library ignores.
func (a ambient) login(ctx context.Context) (provider.Token, error) {
	type answer struct {
		provider.Token
		err error
	}
	given := make(chan answer, 1)
	go func() {
		t, err := asker(a).guarded(ctx)
		given <- answer{t, err}
	}()
	select {
	case <-ctx.Done():
		return provider.Token{}, explainAmbient(ctx.Err())
	case got := <-given:
		return got.Token, got.err
	}
}

// An asker logs in with Google's library.
type asker ambient

// guarded logs in on a separate goroutine, where a panic would stop the operator and print its value.
func (a asker) guarded(ctx context.Context) (got provider.Token, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = provider.NewError(provider.Unavailable, "cannot log in: the provider's code failed (%T)", r)
		}
	}()
	return a.login(ctx)
}

// login gets a new token: the library caches a token in its source, and this is a new source.
func (a asker) login(ctx context.Context) (provider.Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, a.client)
	creds, err := googleauth.FindDefaultCredentials(ctx, a.scopes...)
	if err != nil {
		return provider.Token{}, provider.NewError(provider.Denied, "spec.auth: not set, and the operator has no Google identity of its own; set spec.auth, or give the operator one")
	}
	t, err := creds.TokenSource.Token()
	if err != nil {
		return provider.Token{}, explainAmbient(err)
	}
	return provider.Token{Value: t.AccessToken, Since: time.Now(), Expiry: t.Expiry}, nil
}

var ambientRefusals = refusals{"invalid_scope": badScope}

func explainAmbient(err error) error {
	r := refusalOf(err)
	if r == nil {
		return refusals{}.explain(authField, err)
	}
	_, known := ambientRefusals[r.code]
	if known || r.status >= http.StatusInternalServerError || r.status == http.StatusTooManyRequests {
		return ambientRefusals.explain(authField, r)
	}
	return provider.NewError(provider.Denied, "spec.auth: not set, and Google does not accept the operator's own identity; set spec.auth, or correct the operator's identity")
}

// refusalOf returns the answer to a login by Google's library, or nil if there was none.
func refusalOf(err error) *refusal {
	var r *oauth2.RetrieveError
	var m *metadata.Error
	var none metadata.NotDefinedError
	switch {
	case errors.As(err, &r) && r.Response != nil:
		return newRefusal(r.Response, r.Body)
	case errors.As(err, &m):
		return &refusal{status: m.Code}
	case errors.As(err, &none):
		return &refusal{status: http.StatusNotFound}
	}
	return nil
}
