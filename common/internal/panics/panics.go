// Package panics makes errors of recovered panics. It shows where a panic happened, but never its value or the
// arguments of a call: they may hold a secret.
package panics

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
)

// maxFrames bounds the calls that are logged of one panic.
const maxFrames = 64

// Error logs the calls that led to a panic, and returns an error that names the type of v, the value that was
// recovered. The deferred function that has recovered it calls Error.
func Error(log logr.Logger, v any) error {
	err := errors.Errorf("panic of type %T", v)
	log.Error(err, "Recovered from a panic", "stack", stack())
	return err
}

// stack returns the calls, the last one first. debug.Stack would show the arguments, too.
func stack() string {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var b strings.Builder
	for {
		f, more := frames.Next()
		_, _ = fmt.Fprintf(&b, "%s %s:%d\n", f.Function, f.File, f.Line) // A Builder takes all.
		if !more {
			return b.String()
		}
	}
}
