package controlplane

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestServersDieWithTheirParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentFolder+"="+dir)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	answers := func(context.Context) bool {
		conn, err := net.Dial("tcp", strings.TrimSpace(address))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}
	eventually(t, "etcd listens", answers)

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // The error is the signal.
	eventually(t, "etcd has ended", func(ctx context.Context) bool { return !answers(ctx) })
	if _, err := os.Stat(filepath.Join(dir, "etcd.log")); err != nil {
		t.Error(err)
	}
}
