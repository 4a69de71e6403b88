// Package recovery turns panics of controllers into errors.
package recovery

import (
	"context"
	"runtime/debug"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// ToError is deferred by a function that returns *err. It turns a panic into an error, and logs the stack. The value of
// the panic is not shown, since it may hold a secret; a stack shows addresses only.
func ToError(ctx context.Context, err *error) {
	if v := recover(); v != nil {
		*err = errors.Errorf("panic of type %T", v)
		log.FromContext(ctx).Error(*err, "Recovered from a panic", "stack", string(debug.Stack()))
	}
}
