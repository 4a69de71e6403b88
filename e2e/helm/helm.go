// Package helm provides commands of helm to tests with Helm's own packages, so that no program has to be built.
package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartloader "helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A Release holds the arguments of `helm upgrade --install NAME CHART` and `helm template NAME CHART`.
type Release struct {
	Name, Namespace string
	// Chart is the path of a folder or of a package.
	Chart  string
	Values map[string]any
	// CreateNamespace and TakeOwnership are the flags with these names.
	CreateNamespace, TakeOwnership bool
}

// A Client uses one cluster. It is safe for concurrent use.
type Client struct {
	cluster *rest.Config
	version *common.KubeVersion
}

// New returns a Client for a cluster.
func New(cluster *rest.Config) (*Client, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return nil, err
	}
	info, err := discovered.ServerVersion()
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(info.GitVersion)
	if err != nil {
		return nil, err
	}
	return &Client{cluster: cluster, version: version}, nil
}

// Offline returns a Client that only renders, for a version of Kubernetes such as v1.33.0.
func Offline(kubernetes string) (*Client, error) {
	version, err := common.ParseKubeVersion(kubernetes)
	return &Client{cluster: &rest.Config{}, version: version}, err
}

// Template returns the manifests of a release for the cluster's version of Kubernetes, as `helm template` prints them.
func (c *Client) Template(r Release) (string, error) {
	out, err := c.dryRun(r, c.version)
	if err != nil {
		return "", err
	}
	manifests := bytes.NewBufferString(out.Manifest)
	for _, hook := range out.Hooks {
		fmt.Fprintf(manifests, "\n---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return manifests.String(), nil
}

// Notes returns the output of `helm install --dry-run=client` after the manifests, for a version of Kubernetes
// such as v1.33.0.
func (c *Client) Notes(r Release, kubernetes string) (string, error) {
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return "", err
	}
	out, err := c.dryRun(r, version)
	if err != nil {
		return "", err
	}
	return out.Info.Notes, nil
}

func (c *Client) dryRun(r Release, version *common.KubeVersion) (*releasev1.Release, error) {
	cfg, err := c.configuration(r.Namespace)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = r.Name, r.Namespace
	install.DryRunStrategy, install.Replace, install.KubeVersion = action.DryRunClient, true, version
	install.SubNotes = true // The same as --render-subchart-notes.
	return runInstall(context.Background(), install, r)
}

// Upgrade installs a release, or upgrades an existing one, and returns its notes.
func (c *Client) Upgrade(ctx context.Context, r Release) (notes string, err error) {
	cfg, err := c.configuration(r.Namespace)
	if err != nil {
		return "", err
	}
	_, err = action.NewHistory(cfg).Run(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		install := action.NewInstall(cfg)
		install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = r.Name, r.Namespace, kube.HookOnlyStrategy, timeout
		install.CreateNamespace, install.TakeOwnership = r.CreateNamespace, r.TakeOwnership
		out, err := runInstall(ctx, install, r)
		if err != nil {
			return "", fmt.Errorf("cannot install %s: %w", r.Name, err)
		}
		return out.Info.Notes, nil
	}
	if err != nil {
		return "", err
	}
	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.TakeOwnership, upgrade.WaitStrategy = r.Namespace, r.TakeOwnership, kube.HookOnlyStrategy
	upgrade.MaxHistory, upgrade.Timeout = maxHistory, timeout
	chart, values, err := load(r)
	if err != nil {
		return "", err
	}
	out, err := upgrade.RunWithContext(ctx, r.Name, chart, values)
	if err != nil {
		return "", fmt.Errorf("cannot upgrade %s: %w", r.Name, err)
	}
	rel, err := v1(out)
	if err != nil {
		return "", err
	}
	return rel.Info.Notes, nil
}

// These are the defaults of the helm command.
const (
	maxHistory = 10
	timeout    = 5 * time.Minute
)

// Rollback rolls a release back to its previous revision.
func (c *Client) Rollback(name, namespace string) error {
	cfg, err := c.configuration(namespace)
	if err != nil {
		return err
	}
	rollback := action.NewRollback(cfg)
	rollback.WaitStrategy, rollback.MaxHistory, rollback.Timeout = kube.HookOnlyStrategy, maxHistory, timeout
	return rollback.Run(name)
}

// Uninstall uninstalls a release and returns Helm's message.
func (c *Client) Uninstall(name, namespace string) (info string, err error) {
	cfg, err := c.configuration(namespace)
	if err != nil {
		return "", err
	}
	uninstall := action.NewUninstall(cfg)
	uninstall.DeletionPropagation, uninstall.WaitStrategy, uninstall.Timeout = "background", kube.HookOnlyStrategy, timeout
	out, err := uninstall.Run(name)
	if err != nil {
		return "", err
	}
	return out.Info, nil
}

// Lint returns the problems that `helm lint --strict` finds in the chart in a folder.
func Lint(folder string) error {
	lint := action.NewLint()
	lint.Strict = true
	return errors.Join(lint.Run([]string{folder}, nil).Errors...)
}

// PackageAll packages each chart in a folder below root, except libraries, into another folder. The same charts
// and the same time yield the same bytes.
func PackageAll(root, to string, at time.Time) error {
	files, err := filepath.Glob(filepath.Join(root, "*", "Chart.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no charts in %s", root), err)
	}
	for _, f := range files {
		chart, err := chartloader.LoadDir(filepath.Dir(f))
		if err != nil {
			return err
		}
		if chart.Metadata.Type == "library" {
			continue
		}
		order(chart)
		chart.StampModTimes(at)
		if _, err := chartutil.Save(chart, to); err != nil {
			return err
		}
	}
	return nil
}

// order sorts the charts inside a chart, whose order is otherwise random.
func order(chart *chartv2.Chart) {
	inside := slices.SortedFunc(slices.Values(chart.Dependencies()), func(a, b *chartv2.Chart) int { return strings.Compare(a.Name(), b.Name()) })
	chart.SetDependencies(inside...)
	for _, c := range inside {
		order(c)
	}
}

// Set changes values like the flag --set-json: each argument is PATH=JSON.
func Set(values map[string]any, sets ...string) error {
	for _, s := range sets {
		if err := strvals.ParseJSON(s, values); err != nil {
			return fmt.Errorf("cannot set %s: %w", s, err)
		}
	}
	return nil
}

func runInstall(ctx context.Context, install *action.Install, r Release) (*releasev1.Release, error) {
	chart, values, err := load(r)
	if err != nil {
		return nil, err
	}
	out, err := install.RunWithContext(ctx, chart, values)
	if err != nil {
		return nil, err
	}
	return v1(out)
}

// load returns the chart of a release, and its values as Helm reads them from a file.
func load(r Release) (chart.Charter, map[string]any, error) {
	values := map[string]any{}
	raw, err := yaml.Marshal(r.Values)
	if err == nil {
		err = yaml.Unmarshal(raw, &values)
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := loader.Load(r.Chart)
	return c, values, err
}

func v1(r release.Releaser) (*releasev1.Release, error) {
	rel, ok := r.(*releasev1.Release)
	if !ok {
		return nil, fmt.Errorf("helm has returned a release of the type %T", r)
	}
	return rel, nil
}

func (c *Client) configuration(namespace string) (*action.Configuration, error) {
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	return cfg, cfg.Init(&getter{Config: c.cluster, namespace: namespace}, namespace, "secret")
}
