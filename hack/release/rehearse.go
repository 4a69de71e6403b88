package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/semver"
)

// rehearse releases what is due in a copy of a repository, until nothing is. It tags what the workflow would publish, and
// moves modules to a new common as Renovate does. Before each tag it runs a command in the copy, if there is one.
func rehearse(of repo, command []string, out io.Writer) error {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source, err := filepath.Abs(of.root)
	if err != nil {
		return err
	}
	r := repo{filepath.Join(folder, "copy")}
	if _, err := of.git("clone", "--quiet", source, r.root); err != nil {
		return err
	}
	for step := 1; ; step++ {
		p, err := read(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "Step %d\n%s", step, p); err != nil {
			return err
		}
		if err := p.refusal(); err != nil {
			return err
		}
		if len(p.Releases) == 0 {
			return nil
		}
		if err := write(r.root, p); err != nil {
			return err
		}
		if err := r.commit("Release"); err != nil {
			return err
		}
		// The workflow tags what its check names.
		if p, err = read(r); err != nil {
			return err
		}
		if err := check(p); err != nil {
			return err
		}
		if len(command) > 0 {
			publish := exec.Command(command[0], command[1:]...)
			publish.Dir, publish.Stdout, publish.Stderr = r.root, out, os.Stderr
			if err := publish.Run(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		for _, release := range p.Releases {
			if _, err := r.git("tag", release.Tag); err != nil {
				return err
			}
			if release.Unit == "common" {
				if err := r.move(release.To); err != nil {
					return err
				}
			}
		}
	}
}

// move makes all modules require a version of common.
func (r repo) move(common string) error {
	units, err := r.units()
	if err != nil {
		return err
	}
	for _, u := range units[1 : len(units)-1] {
		is, err := r.requires(u, "HEAD")
		if err != nil {
			return err
		}
		if semver.Compare(is, common) == 0 {
			continue
		}
		if err := replace(filepath.Join(r.root, u.Folders[0], "go.mod"), `(`+commonPath+` )v\S+`, "${1}"+common); err != nil {
			return err
		}
	}
	return r.commit("Move to common " + common)
}

// commit commits all changes, if there are any.
func (r repo) commit(subject string) error {
	if _, err := r.git("add", "--all"); err != nil {
		return err
	}
	if _, err := r.git("diff", "--cached", "--quiet"); err == nil {
		return nil
	}
	_, err := r.git("-c", "user.name=release", "-c", "user.email=release@example.com", "commit", "--quiet", "--message", subject)
	return err
}
