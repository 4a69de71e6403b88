package credentials

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// accountPrefix begins the user names of ServiceAccounts: https://kubernetes.io/docs/reference/access-authn-authz/authentication/.
const accountPrefix = "system:serviceaccount:"

// OwnToken implements provider.OwnAccount.
func (r *Reader) OwnToken(ctx context.Context, audience string) (string, error) {
	switch {
	case !r.fence.Cluster:
		return "", provider.NewError(provider.Invalid, "auth: a namespaced store is not allowed to log in as the operator's own ServiceAccount; name a ServiceAccount of the namespace, or use the cluster Kind")
	case r.Ambient() != nil:
		return "", provider.NewError(provider.Invalid, "auth: --ambient-credentials=none refuses the operator's own ServiceAccount; log in in another way")
	case audience == "":
		// Without an audience the token is for the API server.
		return "", provider.NewError(provider.Invalid, "auth: set audience: a token of the operator's own ServiceAccount needs one that the API server does not accept")
	}
	namespace, name, err := r.self(ctx)
	if err != nil {
		return "", err
	}
	token, err := r.token(ctx, namespace, name, []string{audience})
	if err != nil {
		return "", err
	}
	// The operator cannot read which audiences the API server has, so it asks with the token itself.
	switch accepted, err := r.fence.Accepts(ctx, token); {
	case err != nil:
		return "", provider.NewError(provider.Unavailable, "auth: cannot check whether the API server accepts a token for audience %q: %s", audience, kerrors.ReasonForError(err))
	case accepted:
		return "", provider.NewError(provider.Invalid, "auth: the API server accepts tokens for audience %q, so the server of the store could act as the operator; name another audience", audience)
	}
	return token, nil
}

// self returns the operator's own ServiceAccount.
func (r *Reader) self(ctx context.Context) (namespace, name string, err error) {
	review := &authenticationv1.SelfSubjectReview{}
	switch err := r.client.Create(ctx, review); {
	case kerrors.IsForbidden(err):
		return "", "", provider.NewError(provider.Denied, "auth: the operator has no permission to ask for its own name; grant it create on selfsubjectreviews, as the ClusterRole system:basic-user does")
	case err != nil:
		return "", "", provider.NewError(provider.Unavailable, "auth: cannot ask the API server for the operator's own name: %s", kerrors.ReasonForError(err))
	}
	account, isAccount := strings.CutPrefix(review.Status.UserInfo.Username, accountPrefix)
	namespace, name, isPair := strings.Cut(account, ":")
	if !isAccount || !isPair {
		return "", "", provider.NewError(provider.Invalid, "auth: the operator does not run as a ServiceAccount; log in in another way")
	}
	return namespace, name, nil
}

// AcceptsAt returns a function that reports whether an API server accepts a token. An answer that is not a clear refusal of the token
// counts as accepted, or is an error.
func AcceptsAt(cfg *rest.Config) func(ctx context.Context, token string) (bool, error) {
	return func(ctx context.Context, token string) (bool, error) {
		asked := rest.AnonymousClientConfig(cfg)
		asked.BearerToken = token
		c, err := authentication.NewForConfig(asked)
		if err != nil {
			return false, err
		}
		_, err = c.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		switch {
		case kerrors.IsUnauthorized(err):
			return false, nil
		case err == nil, kerrors.IsForbidden(err):
			return true, nil
		}
		return false, err
	}
}
