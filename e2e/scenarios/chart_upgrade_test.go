//go:build long

package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
	"github.com/direct-secrets/direct-secrets/e2e/previous"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// previousRelease returns the release from which upgrades are tested.
func previousRelease(t *testing.T) string {
	t.Helper()
	commit, err := previous.Release(filepath.Join("..", ".."))
	must(t, err)
	return commit
}

// content is the part of a Secret that must not change.
type content struct {
	UID  types.UID
	Type corev1.SecretType
	Data map[string][]byte
}

// secrets returns all Secrets of the place.
func (p *place) secrets() map[string]content {
	p.t.Helper()
	var list corev1.SecretList
	must(p.t, p.stack.Admin.List(p.t.Context(), &list, client.InNamespace(p.ns)))
	all := map[string]content{}
	for _, s := range list.Items {
		all[s.Name] = content{s.UID, s.Type, s.Data}
	}
	return all
}

// synced waits until live objects are in sync. It first requests a refresh, so that the running modules read
// and check them. It does not refresh those with a password, which would be replaced.
func (p *place) synced(names []string, step string) {
	p.t.Helper()
	asked := map[string]string{}
	for n, name := range names {
		if step != "" && n%5 != 4 {
			p.refresh(name, step)
			asked[name] = step
		}
	}
	eventually(p.t, func() string {
		var list v1alpha1.ExternalSecretList
		must(p.t, p.stack.Admin.List(p.t.Context(), &list, client.InNamespace(p.ns)))
		ready := map[string]bool{}
		for _, es := range list.Items {
			ready[es.Name] = meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) &&
				(asked[es.Name] == "" || es.Status.ObservedRefreshRequest == step)
		}
		for _, name := range names {
			if !ready[name] {
				return fmt.Sprintf("ExternalSecret %s is out of sync after %q: %s", name, step, p.condition(name))
			}
		}
		return ""
	})
}

// checkout returns a folder with the tree of a commit.
func checkout(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "-C", filepath.Join("..", ".."), "archive", "--format=tar", "--output="+filepath.Join(dir, "tree.tar"), commit)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("cannot read commit %s; a clone without its history lacks it: %v\n%s", commit, err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf", filepath.Join(dir, "tree.tar")).CombinedOutput(); err != nil {
		t.Fatalf("cannot unpack commit %s: %v\n%s", commit, err, out)
	}
	return dir
}

// A release is a version of the chart, with its binaries.
type release struct {
	chart    string
	binaries map[string]string
}

// before builds the previous release.
func before(t *testing.T, commit string) release {
	t.Helper()
	tree := checkout(t, commit)
	modules := slices.DeleteFunc(stack.Modules(), func(module string) bool { // A new module has no previous version.
		_, err := os.Stat(filepath.Join(tree, module))
		return errors.Is(err, os.ErrNotExist)
	})
	allowKubernetes(t, filepath.Join(tree, "charts"))
	r := release{chart: filepath.Join(tree, "charts", "direct-secrets"), binaries: map[string]string{}}
	for _, module := range modules {
		r.binaries[module] = filepath.Join(tree, module+".bin")
		must(t, buildIn(filepath.Join(tree, module), r.binaries[module]))
	}
	return r
}

// allowKubernetes removes the minimum version of Kubernetes from charts, which was stricter than necessary in
// the previous release.
func allowKubernetes(t *testing.T, charts string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(charts, "*", "Chart.yaml"))
	must(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		must(t, err)
		must(t, os.WriteFile(f, regexp.MustCompile(`(?m)^kubeVersion:.*$`).ReplaceAll(raw, nil), 0o600))
	}
}

// now returns this release.
func now(t *testing.T) release {
	t.Helper()
	chart, err := stack.Chart()
	must(t, err)
	r := release{chart: chart, binaries: map[string]string{}}
	for _, module := range stack.Modules() {
		r.binaries[module], err = stack.Binary(module)
		must(t, err)
	}
	return r
}

// TestChartUpgrade upgrades the chart and its binaries from the previous version, and rolls them back, with 200
// objects of all modules. No Secret changes or is created again, and new values arrive after each step.
func TestChartUpgrade(t *testing.T) {
	const objects = 200
	s, err := stack.Start(t.Context(), stack.Options{Bare: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := newPlace(t, s, "upgraded")
	from := previousRelease(t)
	old, current := before(t, from), now(t)

	helmClient, err := helm.New(s.Config())
	must(t, err)
	values := s.Values()
	if from == previous.BeforeReleases { // Its chart uses another name for this value.
		global := values["global"].(stack.Values) //nolint:forcetypeassert // Values makes it so.
		global["env"] = global["extraEnv"]
		delete(global, "extraEnv")
	}
	maps.DeleteFunc(values, func(key string, _ any) bool { return key != "global" && old.binaries[key] == "" })
	_, err = helmClient.Upgrade(t.Context(), helm.Release{Name: "direct-secrets", Namespace: stack.Namespace, Chart: old.chart, Values: values, CreateNamespace: true})
	must(t, err)
	i := s.Release("direct-secrets", stack.Namespace)
	must(t, s.ServeCRDs(t.Context()))
	var running []*stack.Process
	stop := func() {
		var errs []error
		for _, p := range running {
			errs = append(errs, p.Stop())
		}
		running = nil
		must(t, errors.Join(errs...))
	}
	t.Cleanup(func() { stop() })
	start := func(r release) {
		t.Helper()
		for module, binary := range r.binaries {
			p, err := i.StartBinary(t.Context(), binary, module)
			must(t, err)
			running = append(running, p)
		}
	}
	start(old)
	p.put(1)
	p.apply(false)
	names := make([]string, objects)
	for n := range names {
		names[n] = fmt.Sprintf("live-%03d", n)
		must(t, s.Admin.Create(t.Context(), p.live(names[n], n)))
	}
	p.synced(names, "")
	p.made("password", "password")
	was := p.secrets()
	if len(was) < objects {
		t.Fatalf("%d Secrets, want more than %d", len(was), objects)
	}

	probe := 1
	wantUnchanged := func(step string) {
		t.Helper()
		p.synced(names, step)
		if diff := cmp.Diff(was, p.secrets()); diff != "" {
			t.Errorf("after %s: -before, +after:\n%s", step, diff)
		}
		probe++ // New values show that the running modules work.
		p.put(probe)
		p.refresh("sm", fmt.Sprint(probe))
		p.wantData("sm", map[string]string{"value": p.value("sm", probe)})
		was = p.secrets()
	}
	_, err = upgradeTo(t.Context(), s, current.chart, "direct-secrets", stack.Namespace)
	must(t, err)
	stop()
	start(current)
	wantUnchanged("the upgrade")
	must(t, helmClient.Rollback("direct-secrets", stack.Namespace))
	stop()
	start(old)
	wantUnchanged("the rollback")
}
