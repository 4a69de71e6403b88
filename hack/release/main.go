// Command release plans releases. Each module has its own version; so has the umbrella chart, with which dsctl and the chart
// of the shared CRDs are released. A tag such as provider-aws/v0.2.0, or v0.2.0 for the umbrella, marks a release. The plan
// names each unit that has changed since its last tag:
//
//	release plan      prints the plan
//	release write     also writes the versions, the lock of the umbrella chart and the changelogs of the plan
//	release check     fails unless everything that is due can be tagged as the tree is, and prints it as JSON
//	release publish   releases until nothing is due, in a copy of the repository, with the command in further arguments instead
//	                  of the workflow "release"
//	release rehearse  releases until nothing is due, in a copy, and then a change of each sort. It runs the jobs of the
//	                  workflow with stand-ins for the network. The command in further arguments must pass on each commit
//	                  that CI tests
//	release lock      makes the umbrella chart pin the charts below it, and static manifests and pages have its versions, as
//	                  `make generate` does
//
// A change of common is released before the modules that are built with it, which then move to it with one change of
// Renovate. docs/reference/versions.md has the rules.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs each chart behind a symbolic link.
	if err := run(os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, root string, out io.Writer) error {
	if len(args) == 0 || len(args) > 1 && args[0] != "rehearse" && args[0] != "publish" {
		return errors.New("want one of plan, write, check, publish, rehearse, lock")
	}
	repository := repo{root}
	switch args[0] {
	case "publish":
		return publishDue(repository, args[1:], out)
	case "rehearse":
		return rehearse(repository, args[1:], out)
	case "lock":
		return lock(root)
	}
	p, err := read(repository)
	if err != nil {
		return err
	}
	switch args[0] {
	case "plan":
		_, err = io.WriteString(out, p.String())
		return err
	case "write":
		if err := p.refusal(); err != nil {
			return err
		}
		if _, err := io.WriteString(out, p.String()); err != nil {
			return err
		}
		return write(root, p)
	case "check":
		if err := check(p); err != nil {
			return err
		}
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(append([]release{}, p.Releases...)) // An empty list if nothing is due.
	}
	return fmt.Errorf("%q is none of plan, write, check, publish, rehearse, lock", args[0])
}

// check returns an error unless the whole plan can be tagged.
func check(p plan) error {
	if err := p.refusal(); err != nil {
		return err
	}
	for _, r := range p.Releases {
		if !r.Written {
			return fmt.Errorf("%s %s is due, and the tree does not have that version: run `go run ./hack/release write` and merge the result", r.Unit, r.To)
		}
	}
	return nil
}
