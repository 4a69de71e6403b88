// Package previous finds the release from which an upgrade to the present tree is tested.
package previous

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// BeforeReleases is the commit from which the upgrade is tested until a release differs from the tree.
const BeforeReleases = "061f58668a4a446ea23a8f8818500d744b88768d"

// upgraded are the files that an upgrade replaces, without tests and pages.
var upgraded = []string{"charts", "common", "provider-*", "generator-*", ":(exclude)*.md", ":(exclude)*_test.go"}

// Release returns the tag of the last release of the umbrella chart that the present commit contains and that differs from
// it, or BeforeReleases. The commit of a release is tested with the release before.
func Release(root string) (string, error) {
	tags, err := git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort", "-version:refname")
	if err != nil {
		return "", err
	}
	for _, tag := range strings.Fields(tags) {
		changed, err := git(root, append([]string{"diff", "--name-only", tag, "HEAD", "--"}, upgraded...)...)
		if err != nil {
			return "", err
		}
		if changed != "" {
			return tag, nil
		}
	}
	return BeforeReleases, nil
}

var required = regexp.MustCompile(`direct-secrets/common (v\S+)`)

// Common returns the version of common that the modules of a commit require.
func Common(root, commit string) (string, error) {
	mod, err := git(root, "show", commit+":e2e/go.mod")
	if err != nil {
		return "", err
	}
	found := required.FindStringSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("e2e/go.mod of %s does not require common", commit)
	}
	return found[1], nil
}

func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...) //nolint:noctx // It ends by itself.
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
