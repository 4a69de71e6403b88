package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

const (
	// startTimeout limits the start of one server. It is long, for machines that run several control planes on few
	// cores.
	startTimeout = 2 * time.Minute

	pollInterval = 50 * time.Millisecond

	// tailSize is how much of a server's output an error shows, in bytes.
	tailSize = 4096
)

// A process is a server that this package has started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // It is closed when the process has ended.
}

// startProcess runs the binary and writes its output to a file in dir, and to extra if that is not nil. The process
// is killed when this one ends in any way.
func startProcess(binary, dir string, extra io.Writer, args ...string) (*process, error) {
	name := filepath.Base(binary)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	p.cmd = exec.Command(binary, args...)
	p.cmd.Stdout = out
	if extra != nil {
		p.cmd.Stdout = io.MultiWriter(out, extra)
	}
	p.cmd.Stderr = p.cmd.Stdout
	p.cmd.SysProcAttr = childAttributes()

	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the thread that started the process ends, so that thread is kept
		// while the process runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // The output shows how it ended.
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	return p, nil
}

// waitFor calls ready until it returns nil, the process ends, or the timeout expires.
func (p *process) waitFor(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended early; its output ends:\n%s", p.name, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w; its output ends:\n%s", p.name, err, p.tail())
		case <-ticker.C:
		}
	}
}

// kill kills the process and waits for its end. An orderly shutdown is not needed, because its data is deleted, too.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // An error means that it has ended already.
	<-p.done
}

func (p *process) tail() []byte {
	out, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(out[max(0, len(out)-tailSize):])
}
