package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// rotationManifest has an event source, the ExternalSecret with an interval of a day, and a Deployment that uses the Secret.
//
//go:embed rotation.yaml
var rotationManifest []byte

// These are the event source and the Deployment of rotation.yaml.
var (
	eventSource = types.NamespacedName{Namespace: example.Namespace, Name: "changes"}
	workload    = types.NamespacedName{Namespace: example.Namespace, Name: "shop"}
)

// receiveEvents applies rotation.yaml, and waits until the event source receives and the Deployment has the data of the Secret.
func (d *demo) receiveEvents(ctx context.Context) error {
	d.printStep("Applying an event source, a refreshInterval of a day, and a Deployment that restarts:")
	manifest := bytes.ReplaceAll(rotationManifest, []byte("QUEUE_URL"), []byte(d.stack.AWS.AddQueue("secrets").URL))
	d.print(string(manifest))
	if err := d.stack.Apply(ctx, manifest); err != nil {
		return err
	}
	source := &awsv1.AWSEventSource{}
	if err := d.poll(ctx, "the event source", func(ctx context.Context) (bool, error) {
		err := d.stack.Admin.Get(ctx, eventSource, source)
		return meta.IsStatusConditionTrue(source.Status.Conditions, v1alpha1.ConditionReady), err
	}); err != nil {
		return err
	}
	_, err := d.waitConditions(ctx, v1alpha1.ConditionReady, v1alpha1.ConditionWorkloadsRestarted)
	return err
}

// rotateInSeconds changes the value in AWS, and measures when it reaches the Secret and the pod template.
func (d *demo) rotateInSeconds(ctx context.Context) error {
	d.printStep("Rotating shop/db in AWS. Nothing polls; EventBridge sends an event to the queue.")
	started := time.Now()
	d.stack.AWS.Put("shop/db", []byte(`{"password":"second-password"}`))
	if _, err := d.wait(ctx, func(s *corev1.Secret) bool { return string(s.Data["password"]) == "second-password" }); err != nil {
		return err
	}
	written := time.Since(started)
	deployment, hash := &appsv1.Deployment{}, ""
	if err := d.poll(ctx, "the Deployment", func(ctx context.Context) (bool, error) {
		err := d.stack.Admin.Get(ctx, workload, deployment)
		hash = deployment.Spec.Template.Annotations[v1alpha1.RestartAnnotationPrefix+example.Name]
		return hash != "", err
	}); err != nil {
		return err
	}
	restarted := time.Since(started)
	d.printStep("The timeline, in seconds:")
	for _, row := range []struct {
		at   time.Duration
		what string
	}{
		{0, "the password of shop/db changes in AWS"},
		{written, "the Secret db has the new password"},
		{restarted, "the pod template of the Deployment shop changes, so Kubernetes replaces its pods"},
	} {
		d.print(fmt.Sprintf("%6.2f  %s\n", row.at.Seconds(), row.what))
	}
	d.printStep("The restart waits for the window of target.restart, here up to one second. The changed pod template has this annotation:")
	d.print(v1alpha1.RestartAnnotationPrefix + example.Name + ": " + hash + "\n")
	return nil
}
