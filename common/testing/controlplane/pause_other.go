//go:build !unix

package controlplane

import (
	"errors"
	"os"
)

func pause(*os.Process) error  { return errors.New("cannot pause a process on this system") }
func resume(*os.Process) error { return nil }
