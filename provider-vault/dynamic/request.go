package dynamic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// A request is the request to Vault that creates the credentials.
type request struct {
	path string
	// query is that of a GET.
	query url.Values
	// body is that of any other method.
	body map[string]json.RawMessage
}

func requestOf(spec *v1alpha1.VaultDynamicSecretSpec) (request, error) {
	r := request{path: strings.Trim(spec.Path, "/")}
	if why := session.Unfit(r.path); why != "" {
		return r, provider.NewError(provider.Invalid, "spec.path: %s; write it as database/creds/shop", why)
	}
	if r.path == "v1" || strings.HasPrefix(r.path, "v1/") {
		return r, provider.NewError(provider.Invalid, "spec.path: must not begin with v1; write it as database/creds/shop")
	}
	parameters := map[string]json.RawMessage{}
	if p := spec.Parameters; p != nil && len(p.Raw) > 0 {
		if json.Unmarshal(p.Raw, &parameters) != nil || parameters == nil {
			return r, provider.NewError(provider.Invalid, "spec.parameters: is not a JSON object; write names and values")
		}
	}
	switch spec.Method {
	case "", v1alpha1.MethodGet:
		r.query = queryOf(parameters)
	case v1alpha1.MethodPost, v1alpha1.MethodPut:
		r.body = parameters
	default:
		return r, provider.NewError(provider.Invalid, "spec.method: %q is not valid; write GET, POST or PUT", session.Shortened(string(spec.Method)))
	}
	return r, nil
}

// queryOf returns one query value for each member of a list.
func queryOf(parameters map[string]json.RawMessage) url.Values {
	q := url.Values{}
	for name, value := range parameters {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			list = []json.RawMessage{value}
		}
		for _, v := range list {
			var text string
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			q.Add(name, text)
		}
	}
	return q
}

// send sends the request once. After a lost answer, or an error inside Vault, there may be unknown credentials
// that live until their lease expires. Each retry could create more, so retries are left to the caller, which
// waits longer each time.
func (r request) send(ctx context.Context, s *session.Session) (session.Answer, error) {
	once, err := s.Once()
	if err != nil {
		return session.Answer{}, err
	}
	if r.body == nil {
		return session.Read(ctx, once, r.path, r.query)
	}
	return session.Write(ctx, once, r.path, r.body)
}

// explain turns a failure into an error that names the field to fix.
func (r request) explain(err error) error {
	path := session.Shortened(r.path)
	what := fmt.Sprintf("credentials of %q", path)
	var refusal *session.Refusal
	if !errors.As(err, &refusal) || refusal.Foreign {
		return session.Explain(err, what)
	}
	needs, other := "read", v1alpha1.MethodPost
	if r.body != nil {
		needs, other = "create and update", v1alpha1.MethodGet
	}
	switch refusal.Status {
	case http.StatusBadRequest:
		return provider.NewError(provider.Invalid, "spec.path: Vault rejects the request to %q; check spec.path, such as the role at its end, spec.method and spec.parameters", path)
	case http.StatusForbidden:
		return provider.NewError(provider.Denied, "spec.path: access denied; allow %s on %q in a policy", needs, path)
	case http.StatusNotFound:
		return provider.NewError(provider.Invalid, "spec.path: %q does not exist at Vault; correct it, or spec.namespace", path)
	case http.StatusMethodNotAllowed:
		return provider.NewError(provider.Invalid, "spec.method: Vault does not support it at %q; write %s", path, other)
	}
	return session.Explain(err, what)
}
