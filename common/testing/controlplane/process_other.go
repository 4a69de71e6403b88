//go:build !linux

package controlplane

import "syscall"

// childAttributes returns nil: only Linux can tie a process to its parent, so here a
// server outlives a parent that ends without calling Stop.
func childAttributes() *syscall.SysProcAttr { return nil }
