//go:build !linux

package controlplane

import "syscall"

// childAttributes returns nil: only Linux can tie a process to its parent. On other systems a server survives a
// parent that ends without Stop.
func childAttributes() *syscall.SysProcAttr { return nil }
