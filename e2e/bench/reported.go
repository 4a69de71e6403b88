package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	gcpemulator "github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

const (
	// reported is the namespace of this scenario.
	reported = "reported"
	// reportedObjects is the number of objects of each store, and reportedChanges that of changes one after another.
	reportedObjects, reportedChanges = 1000, 500
	// restarts is the number of workloads that are restarted.
	restarts = 100
	// receiverKey signs requests to an EventReceiver.
	receiverKey = "0123456789abcdef0123456789abcdef"
)

// A route is a way by which a change of a remote secret is reported.
type route struct {
	name, module, group string
	store               v1alpha1.StoreRef
	// property is the one of each secret that is read; empty for the whole secret.
	property string
	// put changes a remote secret. report reports the change; nil if the store does.
	put    func(key, value string) error
	report func(key string) error
}

// Reported measures how long a change takes on each route but that of Events, from the write of the remote secret to that of the Secret.
// It also measures the time to the restart of a workload, and the memory of modules with an event source.
func Reported(ctx context.Context, r *Report) error {
	gcp, err := gcpemulator.Start()
	if err != nil {
		return err
	}
	defer func() { _ = gcp.Close() }()
	v, err := startVault()
	if err != nil {
		return err
	}
	defer v.stop()
	_, err = onStack(ctx, func(s *stack.Stack) (struct{}, error) { return struct{}{}, reportAll(ctx, s, r, gcp, v) })
	return err
}

func reportAll(ctx context.Context, s *stack.Stack, r *Report, gcp *gcpemulator.Server, v *vault) error {
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return err
	}
	receiver := "127.0.0.1:" + ports[0]
	sources, err := eventSources(ctx, s, gcp, v)
	if err != nil {
		return err
	}
	for module, flags := range map[string][]string{
		stack.ProviderAWS: {"--workload-restarts"}, stack.ProviderGCP: nil, stack.ProviderVault: {"--event-receiver-bind-address=" + receiver},
	} {
		p, err := s.StartModule(ctx, module, flags...)
		if err != nil {
			return err
		}
		defer func() { _ = p.Kill() }()
		if err := until(ctx, func() (bool, error) {
			o := sources[module]
			err := s.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)
			return meta.IsStatusConditionTrue(o.StoreStatus().Conditions, v1alpha1.ConditionReady), err
		}); err != nil {
			return fmt.Errorf("event source of %s: %w\n%s", module, err, p.Log())
		}
		mb, err := p.ResidentMB()
		if err != nil {
			return err
		}
		r.Add(Row{Scenario: reported, What: "memory idle, with an event source: " + module, Value: mb, Unit: "MB", Bound: atMost(70)})
	}
	routes := []route{
		{"AWS Parameter Store by SQS", stack.ProviderAWS, awsv1.Group, v1alpha1.StoreRef{Kind: "AWSParameterStore", Name: "parameters"}, "", func(key, value string) error {
			s.AWS.PutParameter(key, value)
			return nil
		}, nil},
		{"Google Secret Manager by Pub/Sub", stack.ProviderGCP, gcpv1.Group, v1alpha1.StoreRef{Kind: "GCPSecretManager", Name: "gcp"}, "", func(key, value string) error {
			gcp.Put(key, []byte(value))
			return nil
		}, nil},
		{"Vault by HTTP", stack.ProviderVault, vaultv1.Group, v1alpha1.StoreRef{Kind: "VaultKV", Name: "vault"}, "value", func(key, value string) error {
			return v.post("secret/data/"+key, fmt.Sprintf(`{"data":{"value":%q}}`, value))
		}, func(key string) error { return sendRequest(ctx, "http://"+receiver+"/events/"+reported+"/http", key) }},
	}
	for i, route := range routes {
		if err := route.measure(ctx, s, r, i); err != nil {
			return fmt.Errorf("%s: %w", route.name, err)
		}
	}
	return rotations(ctx, s, r, routes[0])
}

// eventSources creates stores, and an event source for each module.
func eventSources(ctx context.Context, s *stack.Stack, gcp *gcpemulator.Server, v *vault) (map[string]provider.EventSourceObject, error) {
	var aws awsv1.AWSSecretsManager
	var google gcpv1.GCPSecretManager
	for _, f := range []func() error{
		func() error { return s.CreateNamespace(ctx, reported) },
		func() error { return permit(ctx, s) },
		func() error { return v.post("sys/mounts/secret", `{"type":"kv","options":{"version":"2"}}`) },
		func() error { return s.AWSStore(ctx, reported, "aws") },
		func() error { return s.VaultStore(ctx, reported, "vault", v.Address, "secret", v.RootToken) },
		func() error {
			return s.GCPStore(ctx, reported, "gcp", gcp.URL(), gcpemulator.DefaultProject, gcp.Key("reader@test-project.iam.gserviceaccount.com"))
		},
		func() error { return s.Admin.Get(ctx, client.ObjectKey{Namespace: reported, Name: "aws"}, &aws) },
		func() error { return s.Admin.Get(ctx, client.ObjectKey{Namespace: reported, Name: "gcp"}, &google) },
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: reported, Name: name} }
	signatures := &corev1.Secret{ObjectMeta: at("signatures"), StringData: map[string]string{"key": receiverKey}}
	parameters := &awsv1.AWSParameterStore{ObjectMeta: at("parameters")}
	parameters.Spec.AWSSpec = aws.Spec.AWSSpec
	sqs := &awsv1.AWSEventSource{ObjectMeta: at("sqs")}
	sqs.Spec.AWSSpec, sqs.Spec.SQS.QueueURL = aws.Spec.AWSSpec, s.AWS.AddQueue(reported).URL
	pubSub := &gcpv1.GCPEventSource{ObjectMeta: at("pubsub")}
	pubSub.Spec.ProjectID, pubSub.Spec.Endpoint, pubSub.Spec.Auth = google.Spec.ProjectID, google.Spec.Endpoint, google.Spec.Auth
	pubSub.Spec.PubSub.Subscription = gcp.AddSubscription(reported).Name
	requests := &v1alpha1.EventReceiver{ObjectMeta: at("http")}
	requests.Spec.SecretRef = v1alpha1.SecretKeySelector{Name: signatures.Name, Key: "key"}
	requests.Spec.Stores = []v1alpha1.EventStoreRef{{Kind: "VaultKV", Name: "vault"}}
	for _, o := range []client.Object{signatures, parameters, sqs, pubSub, requests} {
		if err := s.Admin.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	return map[string]provider.EventSourceObject{stack.ProviderAWS: sqs, stack.ProviderGCP: pubSub, stack.ProviderVault: requests}, nil
}

// permit gives the modules the permissions that the chart gives for receivers and restarts.
func permit(ctx context.Context, s *stack.Stack) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reported}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"eventreceivers", "clustereventreceivers"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"eventreceivers/status", "clustereventreceivers/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: []string{"list", "patch"}},
		{APIGroups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: []string{"list", "patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reported},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + stack.Namespace}},
	}
	return errors.Join(s.Admin.Create(ctx, role), s.Admin.Create(ctx, binding))
}

// sendRequest sends a signed request to an EventReceiver.
func sendRequest(ctx context.Context, url string, keys ...string) error {
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(receiverKey))
	_, _ = mac.Write(append([]byte(at+"."), body...))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Direct-Secrets-Timestamp", at)
	req.Header.Set("X-Direct-Secrets-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the receiver answers %s", resp.Status)
	}
	return nil
}

// create creates objects that read one secret each, and waits for their Secrets.
func (o route) create(ctx context.Context, s *stack.Stack, prefix string, n int, change ...change) ([]Object, error) {
	objects := make([]Object, n)
	for i := range objects {
		name := fmt.Sprintf("%s-%04d", prefix, i)
		objects[i] = Object{NamespacedName: types.NamespacedName{Namespace: reported, Name: name}, Key: name}
	}
	if err := each(objects, clients, func(at Object) error {
		if err := o.put(at.Key, "first"); err != nil {
			return err
		}
		es := externalSecret(at, append(change, seldom)...)
		es.Spec.StoreRef, es.Spec.Data = &o.store, []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: at.Key, Property: o.property}}}
		return s.Admin.Create(ctx, es)
	}); err != nil {
		return nil, err
	}
	return objects, allSynced(ctx, s, objects)
}

// measure changes secrets one after another.
func (o route) measure(ctx context.Context, s *stack.Stack, r *Report, i int) error {
	objects, err := o.create(ctx, s, fmt.Sprintf("route%d", i), reportedObjects)
	if err != nil {
		return err
	}
	seen, err := watchSecretsWith(ctx, s, o.group+"/managed")
	if err != nil {
		return err
	}
	defer seen.stop()
	var waits []time.Duration
	ticks := time.NewTicker(time.Second / 20) // A receiver accepts no more from one sender.
	defer ticks.Stop()
	for n := range reportedChanges {
		<-ticks.C
		object := objects[n%len(objects)]
		seen.forget()
		start := time.Now()
		if err := o.put(object.Key, fmt.Sprintf("changed-%d", n)); err != nil {
			return err
		}
		if o.report != nil {
			if err := o.report(object.Key); err != nil {
				return err
			}
		}
		at, err := seen.wait(ctx, []Object{object})
		if err != nil {
			return err
		}
		waits = append(waits, at.Sub(start))
	}
	r.Add(Row{Scenario: reported, What: o.name + ": p50", Value: percentile(waits, 50), Unit: "s", Bound: atMost(0.5)})
	r.Add(Row{Scenario: reported, What: fmt.Sprintf("%s: p99 of %d", o.name, len(waits)), Value: percentile(waits, 99), Unit: "s", Bound: atMost(2)})
	return nil
}

// rotations changes the secret of one workload each second, and measures when the pod templates change. At most five workloads of a
// namespace roll at a time.
func rotations(ctx context.Context, s *stack.Stack, r *Report, of route) error {
	objects, err := of.create(ctx, s, "workload", restarts, func(es *v1alpha1.ExternalSecret) {
		es.Spec.Target.Restart = &v1alpha1.Restart{Auto: true, Window: "5s"}
	})
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := s.Admin.Create(ctx, stack.Deployment(o.Namespace, o.Name)); err != nil {
			return err
		}
	}
	starts, waits := map[string]time.Time{}, map[string]time.Duration{}
	begin := time.Now()
	for len(waits) < len(objects) {
		if n := len(starts); n < len(objects) && time.Since(begin) > time.Duration(n)*time.Second {
			starts[objects[n].Name] = time.Now()
			if err := of.put(objects[n].Key, "rotated"); err != nil {
				return err
			}
		}
		var all appsv1.DeploymentList
		if err := s.Admin.List(ctx, &all, client.InNamespace(reported)); err != nil {
			return err
		}
		for i := range all.Items {
			d := &all.Items[i]
			if err := s.RollOut(ctx, d); err != nil {
				return err
			}
			_, restarted := d.Spec.Template.Annotations[v1alpha1.RestartAnnotationPrefix+d.Name]
			if _, done := waits[d.Name]; restarted && !done {
				waits[d.Name] = time.Since(starts[d.Name])
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	r.Add(Row{
		Scenario: reported, What: fmt.Sprintf("rotation to the pod template, window 5s: p99 of %d", len(waits)),
		Value: percentile(slices.Collect(maps.Values(waits)), 99), Unit: "s", Bound: atMost(10),
	})
	return nil
}
