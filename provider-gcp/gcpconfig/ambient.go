package gcpconfig

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// ambient is the operator's own identity: GOOGLE_APPLICATION_CREDENTIALS, gcloud's file, or the
// metadata server.
type ambient struct{ client *http.Client }

func (a ambient) login(ctx context.Context) (token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, a.client)
	creds, err := googleauth.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return token{}, store.NewError(store.Denied, "spec.auth: not set, and the operator has no Google identity of its own; set spec.auth, or give the operator one")
	}
	t, err := creds.TokenSource.Token()
	if err != nil {
		return token{}, explainAmbient(err)
	}
	if t.Expiry.IsZero() {
		t.Expiry = time.Now().Add(time.Hour)
	}
	return token{value: t.AccessToken, since: time.Now(), expiry: t.Expiry}, nil
}

func explainAmbient(err error) error {
	var r *oauth2.RetrieveError
	const field = "spec.auth"
	if !errors.As(err, &r) || r.Response == nil {
		return refusals{}.explain(field, err)
	}
	if r.Response.StatusCode >= http.StatusInternalServerError || r.Response.StatusCode == http.StatusTooManyRequests {
		return refusals{}.explain(field, &refusal{status: r.Response.StatusCode})
	}
	return store.NewError(store.Denied, "spec.auth: not set, and Google does not accept the operator's own identity; set spec.auth, or mend the operator's")
}
