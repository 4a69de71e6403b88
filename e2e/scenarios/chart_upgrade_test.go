//go:build long

package scenarios

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/helm"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// previous is the commit of the release before this one; hack/release-check.sh holds it to the last tag of the chart.
const previous = "061f58668a4a446ea23a8f8818500d744b88768d"

// content is what must not change of a Secret.
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

// synced waits until live objects are in step. A step asks them for a refresh first, so that whoever runs now reads
// and judges them; but not those with a password, which it would replace.
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
				return fmt.Sprintf("ExternalSecret %s is not in step after %q: %s", name, step, p.says(name))
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

// A release of the chart is a version of it, with the binaries that belong to it.
type release struct {
	chart    string
	binaries map[string]string
}

// before builds the release before this one, which must be another.
func before(t *testing.T) release {
	t.Helper()
	tree := checkout(t, previous)
	for _, of := range [][]string{{"charts"}, append(stack.Modules(), "common")} {
		diff := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join("..", ".."), "diff", "--quiet", previous, "--"}, of...)...)
		if err := diff.Run(); err == nil {
			t.Fatalf("%v is as it was at commit %s: there is no upgrade to test", of, previous)
		}
	}
	r := release{chart: filepath.Join(tree, "charts", "direct-secrets"), binaries: map[string]string{}}
	for _, module := range stack.Modules() {
		r.binaries[module] = filepath.Join(tree, module+".bin")
		must(t, buildIn(filepath.Join(tree, module), r.binaries[module]))
	}
	return r
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

// TestChartUpgrade upgrades the chart from the version before, with the binaries to match, and rolls it back, with 200
// objects of all modules: no byte of a Secret changes, no Secret is made anew, and new values arrive after each step.
func TestChartUpgrade(t *testing.T) {
	const objects = 200
	s, err := stack.Start(t.Context(), stack.Options{Bare: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := newPlace(t, s, "upgraded")
	old, current := before(t), now(t)

	i, err := upgradeTo(t.Context(), s, old.chart, "direct-secrets", stack.Namespace)
	must(t, err)
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
		for _, module := range stack.Modules() {
			p, err := i.StartBinary(t.Context(), r.binaries[module], module)
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
	settled := func(step string) {
		t.Helper()
		p.synced(names, step)
		if diff := cmp.Diff(was, p.secrets()); diff != "" {
			t.Errorf("after %s: -before, +after:\n%s", step, diff)
		}
		probe++ // And the modules that run now do their work.
		p.put(probe)
		p.refresh("sm", fmt.Sprint(probe))
		p.wantData("sm", map[string]string{"value": p.value("sm", probe)})
		was = p.secrets()
	}
	_, err = upgradeTo(t.Context(), s, current.chart, "direct-secrets", stack.Namespace)
	must(t, err)
	stop()
	start(current)
	settled("the upgrade")
	helmClient, err := helm.New(s.Config())
	must(t, err)
	must(t, helmClient.Rollback("direct-secrets", stack.Namespace))
	stop()
	start(old)
	settled("the rollback")
}
