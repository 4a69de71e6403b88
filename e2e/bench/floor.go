package bench

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// floor does the work that no operator can avoid, with requests of the same kind and size: each object through
// its CRD, its Secret with labels, mark and owner, and its status. It returns the time from the first write to
// the last.
func floor(ctx context.Context, s *stack.Stack, objects []Object) (time.Duration, error) {
	start := time.Now()
	err := each(objects, clients, func(o Object) error {
		es := externalSecret(o)
		if err := s.Admin.Create(ctx, es); err != nil {
			return err
		}
		if err := s.Admin.Create(ctx, floorSecret(o, es), client.FieldOwner(inspect.FieldManager(es.Name))); err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": es.ResourceVersion},
			"status":   floorStatus(o),
		})
		if err != nil {
			return err
		}
		return s.Admin.Status().Patch(ctx, es, client.RawPatch(types.MergePatchType, body))
	})
	return time.Since(start), err
}

// changeFloor changes Secrets with the writes that no operator can avoid: a value by server-side apply, and the status. No operator
// must run.
func changeFloor(ctx context.Context, s *stack.Stack, objects []Object) (time.Duration, error) {
	start := time.Now()
	err := each(objects, clients, func(o Object) error {
		secret := corev1ac.Secret(o.Name, o.Namespace).WithData(map[string][]byte{"username": []byte("u"), "password": []byte("floor of " + o.Name)})
		if err := s.Admin.Apply(ctx, secret, client.ForceOwnership, client.FieldOwner(inspect.FieldManager(o.Name))); err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{"status": floorStatus(o)})
		if err != nil {
			return err
		}
		es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		return s.Admin.Status().Patch(ctx, es, client.RawPatch(types.MergePatchType, body))
	})
	return time.Since(start), err
}

func floorSecret(o Object, es *v1alpha1.ExternalSecret) *corev1.Secret {
	yes, no := true, false
	mark, err := json.Marshal(inspect.Mark{
		Name: es.Name, UID: es.UID, Generation: 1, Module: awsv1.Group,
		Hash: "0123456789abcdef0123456789abcdef", Fields: "0123456789abcdef",
	})
	if err != nil {
		panic(err) // A struct of strings and a number can always be encoded.
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name,
			Labels: map[string]string{
				managed: "true",
				inspect.StoreLabel(awsv1.Group, "AWSSecretsManager", o.Namespace, "store"): "true",
			},
			Annotations: map[string]string{inspect.MarkKey(es.Name): string(mark)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret", Name: es.Name, UID: es.UID,
				Controller: &yes, BlockOwnerDeletion: &no,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			"username": []byte("user-of-" + o.Name),
			"password": []byte("0123456789abcdef0123456789abcdef"),
		},
	}
}

func floorStatus(o Object) v1alpha1.ExternalSecretStatus {
	now := metav1.Now()
	return v1alpha1.ExternalSecretStatus{
		RefreshTime: &now, NextRefreshTime: &now, ObservedGeneration: 1, ObservedMetadataHash: "0123456789abcdef",
		Binding: &v1alpha1.Binding{Name: o.Name},
		Sources: []v1alpha1.SourceStatus{{Key: o.Key, Version: "01234567-89ab-cdef-0123-456789abcdef"}},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSecretSynced,
			Message: "the Secret is in sync", ObservedGeneration: 1, LastTransitionTime: now,
		}},
	}
}
