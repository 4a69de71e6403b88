package operator

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Reviews are bounded, so that a client without a valid token cannot make the operator flood the API server.
const (
	// maxReviews is how many tokens are reviewed at a time.
	maxReviews = 4
	// maxReviewed is how many answers are kept, and reviewAge for how long: the delay of a revoked permission.
	maxReviewed = 1000
	reviewAge   = time.Minute
	// reviewTimeout is the timeout of a review.
	reviewTimeout = 10 * time.Second
)

// reviewed returns a filter for the metrics endpoint. It serves those whose bearer token the API server accepts, and who
// are allowed to get the path as a non-resource URL. The filter of controller-runtime does the same, and makes the binary 8 MB
// larger.
func reviewed(cfg *rest.Config, http *http.Client) (metricsserver.Filter, error) {
	tokens, err := authentication.NewForConfigAndClient(cfg, http)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create the client for TokenReviews")
	}
	access, err := authorization.NewForConfigAndClient(cfg, http)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create the client for SubjectAccessReviews")
	}
	r := &reviewer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), answers: cache.NewLRUExpireCache(maxReviewed), slots: make(chan struct{}, maxReviews)}
	return r.filter, nil
}

// A reviewer asks the API server who can read metrics.
type reviewer struct {
	tokens  authentication.TokenReviewInterface
	access  authorization.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
	slots   chan struct{}
}

func (r *reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status, err := r.review(req)
		if err != nil {
			log.Error(err, "cannot review a request for metrics")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, req)
	}), nil
}

// review returns the status for a request: OK, Unauthorized, Forbidden, or an error of the API server.
func (r *reviewer) review(req *http.Request) (int, error) {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(token + "\n" + req.URL.Path))
	if status, known := r.answers.Get(key); known {
		return status.(int), nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), reviewTimeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable, nil
	}
	status, err := r.ask(ctx, token, req.URL.Path)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	r.answers.Add(key, status, reviewAge)
	return status, nil
}

// ask asks the API server about a token and a path.
func (r *reviewer) ask(ctx context.Context, token, path string) (int, error) {
	review, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, errors.Wrap(err, "cannot review a token")
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range review.Status.User.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, errors.Wrap(err, "cannot review the access of a user")
	case !may.Status.Allowed:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
