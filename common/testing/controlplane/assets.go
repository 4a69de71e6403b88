package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Version names the folder that `make controlplane` builds into. `make verify` fails
// when it differs from what the go.mod files of the servers pin.
const Version = "v1.37.0-etcd3.6.8"

// The binaries of a control plane.
const (
	etcdBinary              = "etcd"
	apiServerBinary         = "kube-apiserver"
	controllerManagerBinary = "kube-controller-manager"
)

// findAssets returns the paths of binaries by their names. Each is looked for in $KUBEBUILDER_ASSETS, where that is set, and
// then in the cache folder of `make controlplane`: envtest's folder, for example, lacks kube-controller-manager. Those that
// are missing are an error, but for the optional ones.
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

// cacheFolder is where hack/controlplane.sh puts what it builds. It is not
// os.UserCacheDir, which the script could not follow on every system.
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
