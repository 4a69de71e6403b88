package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// findAssets returns the folder that holds the binaries: dir where it is set, else
// $KUBEBUILDER_ASSETS, else the cache folder of `make controlplane`.
func findAssets(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("KUBEBUILDER_ASSETS")
	}
	if dir == "" {
		cache, err := cacheFolder()
		if err != nil {
			return "", err
		}
		dir = cache
	}

	var missing []string
	for _, name := range []string{etcdBinary, apiServerBinary, controllerManagerBinary} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("no %s in %s: run `make controlplane`, or set KUBEBUILDER_ASSETS to the folder that has them",
			strings.Join(missing, ", "), dir)
	}
	return dir, nil
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
