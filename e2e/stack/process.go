package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Process is a running module.
type Process struct {
	cmd     *exec.Cmd
	metrics string
	probe   string
	pprof   string
	log     *os.File
	ended   chan struct{}
	err     error
	asked   bool // set if the process was asked to stop
}

// startProcess starts a module on its own addresses, and returns when the process answers its health probe and
// serves its metrics.
func (s *Stack) startProcess(ctx context.Context, binary, module string, args, env []string) (*Process, error) {
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	p := &Process{metrics: addresses[0], probe: addresses[1], pprof: addresses[2], ended: make(chan struct{})}
	if p.log, err = os.CreateTemp(s.dir, module+"-*.log"); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(binary, slices.Concat(args, []string{ //nolint:noctx // It outlives the call; Stop and Kill end it.
		"--metrics-bind-address=" + addresses[0], "--health-probe-bind-address=" + addresses[1], "--pprof-bind-address=" + addresses[2],
	})...)
	// The caller's own AWS settings must not reach the module.
	p.cmd.Env = append([]string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, p.waitHealthy(ctx)
}

// BinEnv is the environment variable with the folder of the modules' binaries. The default is the folder to
// which `make build` writes.
const BinEnv = "DIRECT_SECRETS_BIN"

// Binary returns the path of a module's binary: in the folder of BinEnv, in the folder of this program, or in
// bin/ of the checkout of the working directory.
func Binary(name string) (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		return filepath.Join(dir, name), nil
	}
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), name); exists(path) {
			return path, nil
		}
	}
	path, err := find(filepath.Join("bin", name))
	if err != nil {
		return "", fmt.Errorf("%w; run make build", err)
	}
	return path, nil
}

// find returns the path of a file in the checkout of the working directory.
func find(path string) (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if found := filepath.Join(dir, path); exists(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("cannot find %s", path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Profile profiles the processor time of the process for some time, in pprof's format.
func (p *Process) Profile(during time.Duration) ([]byte, error) {
	var b bytes.Buffer
	err := get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", p.pprof, int(during.Seconds())), &b)
	return b.Bytes(), err
}

func (p *Process) waitHealthy(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// The servers of the probe and of the metrics start one after the other.
		if get("http://"+p.probe+"/healthz", io.Discard) == nil && get("http://"+p.metrics+"/metrics", io.Discard) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Kill())
		case <-p.ended:
			return fmt.Errorf("%s ended: %w\n%s", p.cmd.Path, p.err, p.Log())
		case <-tick.C:
		}
	}
}

// Stop stops the process with SIGTERM, and waits until it has ended. It is an error if the process had ended
// before.
func (p *Process) Stop() error { return p.signal(syscall.SIGTERM) }

// Kill kills the process. It is an error if the process had ended before.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

func (p *Process) signal(s syscall.Signal) error {
	select {
	case <-p.ended:
		if p.asked {
			return nil
		}
		return fmt.Errorf("%s had ended by itself, %s:\n%s", p.cmd.Path, p.cmd.ProcessState, p.Log())
	default:
	}
	p.asked = true
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the output of the process.
func (p *Process) Log() string {
	raw, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Metrics returns the metrics page.
func (p *Process) Metrics() (string, error) {
	var page strings.Builder
	err := get("http://"+p.metrics+"/metrics", &page)
	return page.String(), err
}

// Metric returns the value of a metric, or zero if it is missing. The labels are spelled as on the metrics
// page, for example `name{label="x"}`.
func (p *Process) Metric(name string) (float64, error) {
	page, err := p.Metrics()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, nil
}

// Ready reports whether the process is ready, by the probe that the kubelet uses.
func (p *Process) Ready() bool { return get("http://"+p.probe+"/readyz", io.Discard) == nil }

// IsLeader reports whether the process is the leader.
func (p *Process) IsLeader() (bool, error) {
	page, err := p.Metrics()
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "leader_election_master_status{") && strings.HasSuffix(strings.TrimSpace(line), " 1") {
			return true, nil
		}
	}
	return false, nil
}

// ResidentMB returns the resident memory of the process in MB, including mapped files.
func (p *Process) ResidentMB() (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, errors.New("no VmRSS")
}

// CPU returns the processor time that the process has used.
func (p *Process) CPU() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	f := strings.Fields(rest)
	user, err := strconv.Atoi(f[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(f[12])
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux.
	return time.Duration(user+system) * tick, err
}

func get(url string, to io.Writer) error {
	resp, err := http.Get(url) //nolint:noctx,gosec // A loopback address that this package chose.
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

func freeAddresses(n int) ([]string, error) {
	ports, err := controlplane.FreePorts(n)
	if err != nil {
		return nil, err
	}
	for i, p := range ports {
		ports[i] = net.JoinHostPort("127.0.0.1", p)
	}
	return ports, nil
}
