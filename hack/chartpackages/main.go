// Command chartpackages packages the charts of this tree into the folder in its argument. All files in the
// packages have the time SOURCE_DATE_EPOCH (default 0), so that the same tree yields the same bytes.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/direct-secrets/direct-secrets/e2e/helm"
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs each chart behind a symbolic link.
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chartpackages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the folder for the packages, got %d arguments", len(args))
	}
	seconds := int64(0)
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		var err error
		if seconds, err = strconv.ParseInt(epoch, 10, 64); err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
	}
	if err := os.RemoveAll(args[0]); err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	if err := helm.PackageAll("charts", args[0], time.Unix(seconds, 0)); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(args[0], "*.tgz"))
	for _, p := range packages {
		fmt.Println(p)
	}
	return err
}
