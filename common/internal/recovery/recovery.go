// Package recovery turns panics of controllers into errors.
package recovery

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// maxFrames limits the logged calls of one panic.
const maxFrames = 64

// ToError is deferred by a function that returns *err. It turns a panic into an error, and logs the calls. It does
// not show the value of the panic or the arguments of the calls: they might hold a secret.
func ToError(ctx context.Context, err *error) {
	if v := recover(); v != nil {
		*err = errors.Errorf("panic of type %T", v)
		log.FromContext(ctx).Error(*err, "Recovered from a panic", "stack", stack())
	}
}

// stack returns the calls, the last one first, without the arguments that debug.Stack would show.
func stack() string {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var b strings.Builder
	for {
		f, more := frames.Next()
		_, _ = fmt.Fprintf(&b, "%s %s:%d\n", f.Function, f.File, f.Line) // Writes to a Builder never fail.
		if !more {
			return b.String()
		}
	}
}
