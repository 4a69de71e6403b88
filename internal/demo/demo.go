// Package demo shows how an ExternalSecret becomes a Secret, with real components: a kube-apiserver,
// provider-aws as a separate process, with the unmodified AWS SDK, and an emulator of AWS.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// timeout is the timeout of each step.
const timeout = time.Minute

// example is the namespace and name of the example's ExternalSecret and Secret.
var example = types.NamespacedName{Namespace: "shop", Name: "db"}

// Options are the settings of the demo.
type Options struct {
	// Cluster is an existing cluster; nil: the demo starts its own control plane.
	Cluster *rest.Config
	// Rotation shows how a change in AWS reaches the pods within seconds, instead of a refresh by time.
	Rotation bool
}

// Run shows the demo. If stdin is a terminal, everything keeps running until ctx ends. Run deletes what it has created in an
// existing cluster.
func Run(ctx context.Context, o Options, stdin *os.File, out io.Writer) (err error) {
	ctrl.SetLogger(logr.Discard())
	d := &demo{out: out, rotation: o.Rotation}
	cluster := o.Cluster
	if cluster == nil {
		d.printStep("Starting a control plane and an emulator of AWS.")
	} else {
		d.printStep("Using the cluster at %s, and starting an emulator of AWS.", cluster.Host)
	}
	d.stack, err = stack.Start(ctx, stack.Options{
		Modules: []string{stack.ProviderAWS}, Cluster: cluster, Namespaces: []string{example.Namespace},
		ControlPlane: []controlplane.Option{controlplane.WithOptionalControllerManager()},
	})
	if err != nil {
		return err
	}
	defer func() {
		if cluster != nil {
			d.printStep("Deleting all that the demo has created in the cluster.")
		}
		err = errors.Join(err, d.stack.Stop())
	}()
	if !d.stack.HasControllerManager() {
		d.printStep("There is no kube-controller-manager. The demo does not need it, but nothing is garbage-collected.")
	}
	d.printStep("Starting provider-aws as a process of its own, with the permissions of its ServiceAccount.")
	p, err := d.stack.StartModule(ctx, stack.ProviderAWS, fmt.Sprintf("--workload-restarts=%t", o.Rotation))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()

	steps := []func(context.Context) error{d.create, d.rotate, d.delete}
	if o.Rotation {
		steps = []func(context.Context) error{d.create, d.receiveEvents, d.rotateInSeconds}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, p.Log())
		}
	}
	if !term.IsTerminal(int(stdin.Fd())) {
		d.printStep("Done. In a terminal the demo stays up, and prints what to try next.")
		return nil
	}
	return d.stay(ctx)
}

type demo struct {
	stack    *stack.Stack
	out      io.Writer
	rotation bool
}

// create stores secrets in AWS, applies the example and shows the result.
func (d *demo) create(ctx context.Context) error {
	d.printStep("Creating the secrets shop/db and shop/db-connection in AWS Secrets Manager.")
	d.stack.AWS.Put("shop/db", []byte(`{"password":"first-password"}`))
	d.stack.AWS.Put("shop/db-connection", []byte(`{"host":"db.example","port":5432}`))
	example, err := manifests.Examples.ReadFile("examples/secretsmanager.yaml")
	if err != nil {
		return err
	}
	d.printStep("Applying provider-aws/manifests/examples/secretsmanager.yaml:")
	d.print(string(example))
	if err := d.stack.Apply(ctx, example); err != nil {
		return err
	}
	started := time.Now()
	s, err := d.wait(ctx, func(s *corev1.Secret) bool { return string(s.Data["password"]) == "first-password" })
	if err != nil {
		return err
	}
	d.printStep("The Secret is there after %s. The ExternalSecret:", time.Since(started).Round(time.Millisecond))
	es, err := d.waitConditions(ctx, v1alpha1.ConditionReady)
	if err != nil {
		return err
	}
	if err := d.printYAML(es); err != nil {
		return err
	}
	d.printStep("The Secret. Kubernetes deletes it with the ExternalSecret, which owns it:")
	return d.printYAML(s)
}

// rotate changes the value in AWS and waits until the Secret has it.
func (d *demo) rotate(ctx context.Context) error {
	d.printStep("Rotating shop/db in AWS. The ExternalSecret is refreshed every five seconds.")
	d.stack.AWS.Put("shop/db", []byte(`{"password":"second-password"}`))
	if _, err := d.wait(ctx, func(s *corev1.Secret) bool { return string(s.Data["password"]) == "second-password" }); err != nil {
		return err
	}
	d.printStep("The Secret has the new password.")
	return nil
}

// delete deletes the Secret and waits until it is created again.
func (d *demo) delete(ctx context.Context) error {
	d.printStep("Deleting the Secret by hand.")
	s, err := d.wait(ctx, func(*corev1.Secret) bool { return true })
	if err != nil {
		return err
	}
	started := time.Now()
	if err := d.stack.Admin.Delete(ctx, s); err != nil {
		return err
	}
	if _, err := d.wait(ctx, func(now *corev1.Secret) bool { return now.UID != s.UID && len(now.Data) == len(s.Data) }); err != nil {
		return err
	}
	d.printStep("It is back after %s.", time.Since(started).Round(time.Millisecond))
	return nil
}

// stay keeps everything running, so that the user can try it.
func (d *demo) stay(ctx context.Context) error {
	raw, err := d.stack.AdminKubeconfig()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "direct-secrets-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return err
	}
	dsctl, err := os.Executable()
	if err != nil {
		return err
	}
	kinds := "externalsecrets.direct-secrets.io,awssecretsmanagers.aws.direct-secrets.io,secrets"
	if d.rotation {
		kinds += ",awseventsources.aws.direct-secrets.io,deployments"
	}
	d.printStep("Everything stays up until you press Ctrl-C. In another terminal, look at the objects, find errors, and change the value in AWS:")
	d.print("export KUBECONFIG=" + path + "\n" +
		"kubectl get " + kinds + " -n shop\n" +
		dsctl + " doctor -n shop\n" +
		dsctl + " get -n shop -o wide\n" +
		"curl -X PUT --data '{\"password\":\"third\"}' " + d.stack.AWS.URL() + "/_control/secrets/shop/db\n")
	<-ctx.Done()
	return nil
}

// wait waits for the Secret until ok returns true, and returns it.
func (d *demo) wait(ctx context.Context, ok func(*corev1.Secret) bool) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := d.poll(ctx, "the Secret", func(ctx context.Context) (bool, error) {
		err := d.stack.Admin.Get(ctx, example, s)
		if kerrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && ok(s), err
	})
	return s, err
}

// waitConditions waits for the ExternalSecret until these conditions are True for its present spec, and returns it.
func (d *demo) waitConditions(ctx context.Context, conditions ...string) (*v1alpha1.ExternalSecret, error) {
	es := &v1alpha1.ExternalSecret{}
	err := d.poll(ctx, "the ExternalSecret", func(ctx context.Context) (bool, error) {
		err := d.stack.Admin.Get(ctx, example, es)
		return !slices.ContainsFunc(conditions, func(name string) bool {
			c := meta.FindStatusCondition(es.Status.Conditions, name)
			return c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != es.Generation
		}), err
	})
	return es, err
}

func (d *demo) poll(ctx context.Context, what string, f func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f(ctx)
		if err != nil || ok {
			return client.IgnoreNotFound(err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become as expected: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
