package render

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// nameOf names the secret of a remoteRef in errors.
func nameOf(rr v1alpha1.RemoteRef) string {
	what := fmt.Sprintf("%q", rr.Key)
	if rr.Version != "" {
		what += fmt.Sprintf(" version %q", rr.Version)
	}
	return what
}

// nameOfSearch names the field of a search, and its conditions, shortened if they are long.
func nameOfSearch(f string, s provider.Search) string {
	var by []string
	if s.Path != "" {
		by = append(by, fmt.Sprintf("path %.64q", s.Path))
	}
	if s.Name != "" {
		by = append(by, fmt.Sprintf("name %.64q", s.Name))
	}
	if s.Tags != "" {
		by = append(by, fmt.Sprintf("tags %.64s", s.Tags))
	}
	return fmt.Sprintf("%s (%s)", f, strings.Join(by, ", "))
}

func (r *renderer) fail(ref *v1alpha1.StoreRef, what string, err error) {
	e := unread(ref, what, err)
	if e.Class == provider.NotFound {
		r.notFound = append(r.notFound, e)
		return
	}
	r.errs = append(r.errs, e)
}

// unread returns the error of a read. Its message names what was read and the store.
func unread(ref *v1alpha1.StoreRef, what string, err error) *provider.Error {
	safe := provider.Safe(err)
	return &provider.Error{
		Class:      safe.Class,
		Message:    fmt.Sprintf("%s in %s %q: %s", what, ref.Kind, ref.Name, safe.Message),
		RetryAfter: safe.RetryAfter,
	}
}

// Failure returns the first error among the answers to sources, with the message that Read would return; nil if there
// is none. A secret that definitely does not exist is not an error.
func Failure(sources []Source, values Values) error {
	var errs []*provider.Error
	for _, s := range sources {
		err := values(s).Err
		switch {
		case err == nil, provider.IsNotFound(err):
		case s.Search != provider.Search{}:
			errs = append(errs, unread(&s.Store, nameOfSearch("find", s.Search), err))
		default:
			errs = append(errs, unread(&s.Store, nameOf(v1alpha1.RemoteRef{Key: s.Ref.Key, Version: s.Ref.Version}), err))
		}
	}
	if err := verdict(errs, 0); err != nil {
		return err
	}
	return nil
}

// verdict returns the first of several errors, with the number of all the others in its message; nil if there is
// none.
func verdict(errs []*provider.Error, others int) *provider.Error {
	if len(errs) == 0 {
		return nil
	}
	first := errs[0]
	if more := len(errs) - 1 + others; more > 0 {
		first.Message += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}
