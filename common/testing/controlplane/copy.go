package controlplane

import (
	"errors"
	"os"
	"path/filepath"
)

// WithDataOf starts the control plane with a copy of the objects that another one has at that moment, with the same uids,
// as a restored backup or a cloned cluster has them. The other one must be started by this package, and goes on.
func WithDataOf(of *ControlPlane) Option {
	return func(s *settings) { s.dataOf = of }
}

// copyData copies etcd's data. etcd is paused meanwhile: its files are then as after a crash, from which it recovers.
func (c *ControlPlane) copyData(of *ControlPlane) (err error) {
	if of.attached() {
		return errors.New("cannot copy the data of a cluster that this package did not start")
	}
	if err := pause(of.etcd.cmd.Process); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resume(of.etcd.cmd.Process)) }()
	return os.CopyFS(filepath.Join(c.dir, etcdData), os.DirFS(filepath.Join(of.dir, etcdData)))
}
