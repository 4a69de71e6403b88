package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/migrate"
)

// workloadKinds are those whose annotations of Stakater's Reloader migrate reads.
var workloadKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
}

// workloadSource reads the workloads of a cluster, or of a namespace. It warns about Kinds that the user is not allowed to list.
func (o *options) workloadSource(ctx context.Context, c client.Client, namespace string) (migrate.Source, error) {
	var all [][]byte
	var forbidden []string
	for _, k := range workloadKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k)
		err := c.List(ctx, list, client.InNamespace(namespace))
		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, k.Kind+"s")
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // The cluster has no such Kind.
		case err != nil:
			return migrate.Source{}, fmt.Errorf("cannot list %s: %w", k.Kind, err)
		}
		for _, item := range list.Items {
			raw, err := yamlOf(manifestOf(item.Object))
			if err != nil {
				return migrate.Source{}, err
			}
			all = append(all, raw)
		}
	}
	if len(forbidden) > 0 {
		_ = o.errs.Line("warning: you are not allowed to list %s, so their annotations of Reloader are not read", strings.Join(forbidden, ", "))
	}
	return migrate.Source{Name: "cluster", Content: bytes.Join(all, []byte("---\n"))}, nil
}
