package controlplane

import "syscall"

// childAttributes ties a server to this process, and keeps the terminal's Ctrl-C from it: Stop stops it after its
// clients.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
