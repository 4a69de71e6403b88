package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Version is the name of the folder that `make controlplane` builds into. `make verify` fails if it differs from the
// versions in the go.mod files of the servers.
const Version = "v1.37.0-etcd3.6.8"

// The binaries of a control plane.
const (
	etcdBinary              = "etcd"
	apiServerBinary         = "kube-apiserver"
	controllerManagerBinary = "kube-controller-manager"
)

// findAssets returns the paths of the binaries by their names. It looks for each in $KUBEBUILDER_ASSETS, if that is
// set, and then in the cache folder of `make controlplane`: envtest's folder, for example, has no
// kube-controller-manager. A missing binary is an error, unless it is optional.
func findAssets(optional ...string) (map[string]string, error) {
	folders := []string{}
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		folders = append(folders, dir)
	}
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	folders = append(folders, cache)

	found, missing := map[string]string{}, []string{}
	for _, name := range []string{etcdBinary, apiServerBinary, controllerManagerBinary} {
		for _, dir := range folders {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil && found[name] == "" {
				found[name] = path
			}
		}
		if found[name] == "" && !slices.Contains(optional, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no %s in %s: run `make controlplane`, or set KUBEBUILDER_ASSETS to the folder that has them",
			strings.Join(missing, ", "), strings.Join(folders, " or "))
	}
	return found, nil
}

// cacheFolder returns the folder in which hack/controlplane.sh stores its binaries. It does not use os.UserCacheDir,
// which the script cannot follow on every system.
func cacheFolder() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("cannot find the control plane's binaries: set KUBEBUILDER_ASSETS, XDG_CACHE_HOME or HOME")
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "direct-secrets", "controlplane", Version), nil
}
