package controlplane

import (
	"context"
	"fmt"
	"os"
)

// A Runner runs the tests of a package. *testing.M is one.
type Runner interface {
	Run() int
}

// Main is the body of a TestMain. It starts one control plane for the package, passes it to setup, runs the tests,
// stops it and exits.
func Main(m Runner, setup func(*ControlPlane) error, opts ...Option) {
	os.Exit(run(m, setup, opts...))
}

func run(m Runner, setup func(*ControlPlane) error, opts ...Option) (code int) {
	c, err := Start(context.Background(), opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot stop the control plane:", err)
			code = 1
		}
	}()
	if err := setup(c); err != nil {
		fmt.Fprintln(os.Stderr, "cannot set up the control plane:", err)
		return 1
	}
	return m.Run()
}
