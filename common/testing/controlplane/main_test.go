package controlplane

import (
	"fmt"
	"net"
	"os"
	"testing"
)

var cluster *ControlPlane

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentFolder); dir != "" {
		if err := beParent(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	Main(m, func(c *ControlPlane) error { cluster = c; return nil }, WithAuditLog())
}

// parentFolder is the environment variable that makes this test binary start etcd in the named folder, print its
// address, and wait.
const parentFolder = "CONTROLPLANE_TEST_PARENT_FOLDER"

// beParent is the test binary's main function with parentFolder.
func beParent(dir string) error {
	assets, err := findAssets()
	if err != nil {
		return err
	}
	ports, err := FreePorts(2)
	if err != nil {
		return err
	}
	c := &ControlPlane{assets: assets, dir: dir}
	address := net.JoinHostPort(loopback, ports[0])
	if err := c.startEtcd("http://"+address, "http://"+net.JoinHostPort(loopback, ports[1])); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(address + "\n"); err != nil {
		return err
	}
	<-c.etcd.done
	return nil
}
