package render

import (
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Limits of the processing of one Secret's values before any template. Work is counted in steps for all entries
// together, and not by a clock, so that a loaded machine does not refuse a good spec.
const (
	// maxWork limits the steps of properties, merges and expressions. A step takes about a quarter of a microsecond,
	// so this is about a second.
	maxWork = 4_000_000
	// maxEntry limits the values of one entry after each step of its rewrite, in bytes: the size of a find's result.
	maxEntry = 16 << 20
	// maxHeld limits the keys and values of all entries together, in bytes. A Secret holds less, but a template can
	// use a part of the values.
	maxHeld = 32 << 20
)

func newWork() *template.Budget { return template.NewBudgetOf(maxWork, 0) }

// errWork is the error when the work limit of a Secret is reached. The caller adds the field.
var errWork = provider.NewError(provider.Invalid, "the values of this ExternalSecret take too much work; use fewer properties, simpler regular expressions, fewer merges or smaller secrets")

// in adds the field to an error of class Invalid; other errors are returned unchanged.
func in(field string, err error) error {
	if provider.ClassOf(err) != provider.Invalid {
		return err
	}
	return provider.NewError(provider.Invalid, "%s: %s", field, provider.Safe(err).Message)
}
