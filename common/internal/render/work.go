package render

import (
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Bounds of what is done to the values of one Secret before any template. The work is counted for all entries
// together, and not by a clock, so that a loaded machine breaks no good spec.
const (
	// maxWork is how many steps of about a quarter of a microsecond properties, merges and expressions take: about
	// a second.
	maxWork = 4_000_000
	// maxEntry bounds the values of one entry after each step of its rewrite, in bytes: what a find yields.
	maxEntry = 16 << 20
	// maxHeld bounds what all entries together yield, keys and values, in bytes. A Secret holds less; a template may
	// take a part of it.
	maxHeld = 32 << 20
)

func newWork() *template.Budget { return template.NewBudgetOf(maxWork, 0) }

// errWork says that the work of a Secret is spent. Whoever returns it names the field.
var errWork = provider.NewError(provider.Invalid, "the values of this ExternalSecret take too much work; take fewer properties, make regular expressions simpler, merge less, or read smaller secrets")

// in returns an error of class Invalid that names the field; others are as they are.
func in(field string, err error) error {
	if provider.ClassOf(err) != provider.Invalid {
		return err
	}
	return provider.NewError(provider.Invalid, "%s: %s", field, provider.Safe(err).Message)
}
