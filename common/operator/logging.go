package operator

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// levels are the values of --log-level.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logger returns the operator's own logger.
func (l *logs) logger(to io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: levels[l.LogLevel]}
	if l.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(to, opts))
	}
	return slog.New(slog.NewJSONHandler(to, opts))
}

// audit returns the logger for keys of Secrets that are written, whatever the log level is; nil without --audit-log.
func (l *logs) audit(to io.Writer) *slog.Logger {
	if !l.AuditLog {
		return nil
	}
	always := logs{LogFormat: l.LogFormat, LogLevel: "info"}
	return always.logger(to).With("logger", "audit")
}

// forLibraries returns the logger of controller-runtime and client-go. Their information is logged as debug; errors
// stay errors. logr converts a verbosity to a level of slog by negation; see logr.FromSlogHandler.
func (l *logs) forLibraries(to io.Writer) logr.Logger {
	return logr.FromSlogHandler(l.logger(to).Handler()).V(-int(slog.LevelDebug))
}

// logged is a recorder that also logs each event: an API server deletes events after an hour, and refuses them in a
// terminating namespace.
type logged struct {
	recorder.EventRecorder

	scheme *runtime.Scheme
	log    *slog.Logger
}

// Eventf implements events.EventRecorder.
func (l logged) Eventf(regarding, related runtime.Object, sort, reason, action, note string, args ...any) {
	level := slog.LevelInfo
	if sort == corev1.EventTypeWarning {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("reason", reason), slog.String("action", action)}
	if ref, err := reference.GetReference(l.scheme, regarding); err == nil {
		attrs = append(attrs, slog.String("kind", ref.Kind), slog.String("namespace", ref.Namespace), slog.String("name", ref.Name))
	}
	l.log.LogAttrs(context.Background(), level, fmt.Sprintf(note, args...), attrs...)
	l.EventRecorder.Eventf(regarding, related, sort, reason, action, note, args...)
}
