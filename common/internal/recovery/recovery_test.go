package recovery

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const canary = "c4n4ry"

// TestToError panics with a value that must not show, with a secret on the stack.
func TestToError(t *testing.T) {
	var logged strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{}))
	err := fails(ctx, canary)
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("error %v, want one without the value of the panic", err)
	}
	if text := logged.String(); !strings.Contains(text, "recovery.fails") || strings.Contains(text, canary) {
		t.Errorf("the log has %q, want the function that panicked, and not its value", text)
	}
	if err := works(ctx); err != nil {
		t.Errorf("without a panic: %v", err)
	}
}

//go:noinline
func fails(ctx context.Context, secret string) (err error) {
	defer ToError(ctx, &err)
	panic("the value is " + secret)
}

func works(ctx context.Context) (err error) {
	defer ToError(ctx, &err)
	return nil
}
