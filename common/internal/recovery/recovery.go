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

// maxFrames bounds the calls that are logged of one panic.
const maxFrames = 64

// ToError is deferred by a function that returns *err. It turns a panic into an error, and logs where it happened. The
// value of the panic and the arguments of calls are not shown: they may hold a secret.
func ToError(ctx context.Context, err *error) {
	if v := recover(); v != nil {
		*err = errors.Errorf("panic of type %T", v)
		log.FromContext(ctx).Error(*err, "Recovered from a panic", "stack", stack())
	}
}

// stack returns the calls, the last one first. debug.Stack would show their arguments, too.
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
