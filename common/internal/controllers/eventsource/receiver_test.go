package eventsource_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const signingKey = "0123456789abcdef0123456789abcdef"

// receiver returns an EventReceiver "ci" for stores of a Kind, and creates its key.
func receiver(e *testenv.Env, stores ...v1alpha1.EventStoreRef) *v1alpha1.EventReceiver {
	e.Helper()
	e.Create(&corev1.Secret{ObjectMeta: e.Meta("ci"), Data: map[string][]byte{"key": []byte(signingKey)}})
	return &v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci"), Spec: v1alpha1.EventReceiverSpec{
		SecretRef: v1alpha1.SecretKeySelector{Name: "ci", Key: "key"}, Stores: stores,
	}}
}

// post sends a signed request, and returns the status of the answer.
func post(ctx context.Context, url, body string) (int, error) {
	status, _, err := exchange(ctx, url, body)
	return status, err
}

// exchange sends a signed request, and returns the status and the content of the answer.
func exchange(ctx context.Context, url, body string) (status int, content string, err error) {
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, []byte(signingKey))
	sum.Write([]byte(stamp + "." + body))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("X-Direct-Secrets-Timestamp", stamp)
	r.Header.Set("X-Direct-Secrets-Signature", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	all, err := io.ReadAll(a.Body)
	return a.StatusCode, string(all), errors.Join(err, a.Body.Close())
}

// wantStatus sends a request with a key, and checks the status of the answer.
func wantStatus(e *testenv.Client, url, key string, want int) {
	e.Helper()
	got, err := post(e.Ctx, url, fmt.Sprintf(`{"keys":[%q]}`, key))
	if err != nil || got != want {
		e.Errorf("POST %s about %s: status %d, %v, want %d", url, key, got, err, want)
	}
}

// TestReceiver sends signed requests about secrets of stores that a receiver names, and of others.
func TestReceiver(t *testing.T) {
	e := testenv.NewServed(t)
	e.Create(e.Store("other", "main"))
	e.Backend.Put("shop/db", []byte("old"))
	for _, store := range []string{"store", "other"} {
		e.Create(e.ExternalSecret(store, seldom, func(es *v1alpha1.ExternalSecret) {
			es.Spec.StoreRef.Name, es.Spec.Data[0].RemoteRef.Key = store, "shop/db"
		}))
		e.WantReady(store, v1alpha1.ReasonSecretSynced)
	}
	e.Create(receiver(e, v1alpha1.EventStoreRef{Kind: "FakeStore", Name: "store"}))
	c := e.Want(&v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")}, v1alpha1.ReasonStoreValid)
	if c.Message != "signed requests are accepted" {
		t.Errorf("the message of Ready is %q", c.Message)
	}
	e.Backend.Put("shop/db", []byte("new"))
	wantStatus(e.Client, e.EventsURL+e.NS+"/ci", "shop/db", http.StatusOK)
	if diff := cmp.Diff([]string{"new", "old"}, []string{e.Data("store")["value"], e.Data("other")["value"]}); diff != "" {
		t.Errorf("at the answer, the objects of the named store only have the new value: -want, +got:\n%s", diff)
	}
	reads := e.Backend.Reads()
	wantStatus(e.Client, e.EventsURL+e.NS+"/ci", "shop/other", http.StatusOK)
	if n := e.Backend.Reads() - reads; n != 0 {
		t.Errorf("a request about a secret that no object reads: %d reads", n)
	}
	if status, err := post(e.Ctx, e.EventsURL+e.NS+"/ci", `{}`); err != nil || status != http.StatusBadRequest {
		t.Errorf("a malformed body: status %d, %v", status, err)
	}
	wantStatus(e.Client, e.EventsURL+e.NS+"/absent", "shop/db", http.StatusUnauthorized)
	e.Eventually(func() string {
		r := &v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")}
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err.Error()
		}
		return cmp.Diff([]int64{3, 1, 1}, []int64{r.Status.ReceivedEvents.ReceivedEvents, r.Status.MatchedEvents, r.Status.MalformedEvents})
	})
	e.Delete(&v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")})
	e.Eventually(func() string {
		if status, err := post(e.Ctx, e.EventsURL+e.NS+"/ci", `{"keys":["shop/db"]}`); err != nil || status != http.StatusUnauthorized {
			return fmt.Sprintf("after the deletion: status %d, %v", status, err)
		}
		return ""
	})
}

// TestReceiverMatches sends requests with keys that objects use, and with others.
func TestReceiverMatches(t *testing.T) {
	e := testenv.NewServed(t)
	e.Create(e.Store("other", "main"))
	for name, store := range map[string]string{"a": "store", "b": "store", "c": "other"} {
		e.Backend.Put(name, []byte("value"))
		e.Create(e.ExternalSecret(name, seldom, func(es *v1alpha1.ExternalSecret) {
			es.Spec.StoreRef.Name, es.Spec.Data[0].RemoteRef.Key = store, name
		}))
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
	}
	e.Create(receiver(e, v1alpha1.EventStoreRef{Kind: "FakeStore", Name: "store"}))
	e.Want(&v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")}, v1alpha1.ReasonStoreValid)
	for _, tc := range []struct{ reason, keys, want string }{
		{"A key that is misspelt is seen.", `"a","typo"`, `{"matched":1,"keys":2}`},
		{"A key counts once.", `"a","b","b"`, `{"matched":2,"keys":2}`},
		{"An object of a store that the receiver does not name is not reached.", `"c"`, `{"matched":0,"keys":1}`},
	} {
		status, content, err := exchange(e.Ctx, e.EventsURL+e.NS+"/ci", `{"keys":[`+tc.keys+`]}`)
		if diff := cmp.Diff(tc.want+"\n", content); diff != "" || status != http.StatusOK || err != nil {
			t.Errorf("%s\nstatus %d, %v; content: -want, +got:\n%s", tc.reason, status, err, diff)
		}
	}
}

// TestReceiverSlow sends a request whose refresh takes longer than the request waits.
func TestReceiverSlow(t *testing.T) {
	set, url := testenv.Receiving(t)
	e := testenv.New(t, set, func(f *operator.Flags) { f.ProviderTimeout = time.Minute })
	e.Backend.Put("db", []byte("old"))
	e.Create(e.ExternalSecret("db", seldom))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Create(receiver(e, v1alpha1.EventStoreRef{Kind: "FakeStore", Name: "store"}))
	e.Want(&v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")}, v1alpha1.ReasonStoreValid)
	resume := e.Backend.Inject(fake.Fault{Hang: true})
	e.Backend.Put("db", []byte("new"))
	wantStatus(e.Client, url+e.NS+"/ci", "db", http.StatusAccepted)
	resume()
	e.WantSecret("db", "value", "new")
}

// TestReceiverKey changes the key of a receiver.
func TestReceiverKey(t *testing.T) {
	e := testenv.NewServed(t)
	e.Create(receiver(e, v1alpha1.EventStoreRef{Kind: "FakeStore", Name: "store"}))
	of := func() client.Object { return &v1alpha1.EventReceiver{ObjectMeta: e.Meta("ci")} }
	e.Want(of(), v1alpha1.ReasonStoreValid)
	change := func(key string) {
		testenv.Update(e.Client, &corev1.Secret{ObjectMeta: e.Meta("ci")}, func(s *corev1.Secret) { s.Data["key"] = []byte(key) })
	}
	eventually := func(want int) {
		t.Helper()
		e.Eventually(func() string {
			if status, err := post(e.Ctx, e.EventsURL+e.NS+"/ci", fmt.Sprintf(`{"keys":["%d"]}`, time.Now().UnixNano())); err != nil || status != want {
				return fmt.Sprintf("status %d, %v, want %d", status, err, want)
			}
			return ""
		})
	}
	change(strings.Repeat("other", 10))
	eventually(http.StatusUnauthorized)
	change(signingKey)
	eventually(http.StatusOK)
	change(signingKey + "\n")
	if c := e.Want(of(), v1alpha1.ReasonStoreInvalidSpec); !strings.Contains(c.Message, "the key ends with a line end") {
		t.Errorf("the message of Ready is %q", c.Message)
	}
	change(signingKey)
	eventually(http.StatusOK)
	change("short")
	if c := e.Want(of(), v1alpha1.ReasonStoreInvalidSpec); !strings.Contains(c.Message, "the key has 5 bytes, and at least 32 are required") {
		t.Errorf("the message of Ready is %q", c.Message)
	}
	eventually(http.StatusUnauthorized)
}

// TestReceiverStores names Kinds of which no receiver can receive events, and a store that does not exist yet.
func TestReceiverStores(t *testing.T) {
	set, _ := testenv.Receiving(t)
	e := testenv.New(t, set)
	cases := map[string]struct{ reason, kind, want string }{
		"absent":    {"A store that does not exist is named.", "FakeStore", `spec.stores[1]: FakeStore "absent" does not exist; create it, or correct the name`},
		"foreign":   {"A receiver is for the stores of one module.", "VaultKV", "spec.stores[1].kind: VaultKV is not a Kind of the module of spec.stores[0]; name the stores of each module in an object of their own"},
		"generator": {"Nothing changes in a generator.", "FakeGenerator", "spec.stores[1].kind: FakeGenerator is not the Kind of a store; name a store"},
		"cluster":   {"A tenant's operator reads no cluster Kinds.", "ClusterFakeStore", "spec.stores[1].kind: ClusterFakeStore is a cluster Kind, and this operator serves selected namespaces only; use the namespaced Kind"},
	}
	r := receiver(e)
	for name, tc := range cases {
		r := r.DeepCopy()
		r.Name, r.Spec.Stores = name, []v1alpha1.EventStoreRef{{Kind: "FakeStore", Name: "store"}, {Kind: tc.kind, Name: name}}
		e.Create(r)
		if diff := cmp.Diff(tc.want, e.Want(r, v1alpha1.ReasonStoreInvalidSpec).Message); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
		}
	}
	e.Create(e.Store("absent", "main"))
	absent := r.DeepCopy()
	absent.Name = "absent"
	e.Want(absent, v1alpha1.ReasonStoreValid)
	other := r.DeepCopy()
	other.Name, other.Spec.Stores = "elsewhere", []v1alpha1.EventStoreRef{{Kind: "VaultKV", Name: "store"}, {Kind: "FakeStore", Name: "store"}}
	e.Create(other)
	r.Spec.Stores = []v1alpha1.EventStoreRef{{Kind: "FakeStore", Name: "store"}}
	e.Create(r)
	e.Want(r, v1alpha1.ReasonStoreValid) // The operator has reconciled the earlier object, too.
	if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(other), other); err != nil || len(other.Status.Conditions) > 0 {
		t.Errorf("the operator reports %v, %v for the object of another module", other.Status.Conditions, err)
	}
}

// TestReceiverNamespaces sends requests about a secret that objects of several namespaces read.
func TestReceiverNamespaces(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	spread(e)
	stores := []v1alpha1.EventStoreRef{{Kind: "FakeStore", Name: "store"}, {Kind: "ClusterFakeStore", Name: e.Name}}
	key := v1alpha1.SecretKeySelector{Name: "ci", Key: "key"}
	own := e.In("own").Meta("ci")
	e.Create(&corev1.Secret{ObjectMeta: own, Data: map[string][]byte{"key": []byte(signingKey)}})
	namespaced := &v1alpha1.EventReceiver{ObjectMeta: own, Spec: v1alpha1.EventReceiverSpec{SecretRef: key, Stores: stores}}
	cluster := &v1alpha1.ClusterEventReceiver{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	cluster.Spec.SecretRef, cluster.Spec.Stores = key, stores
	cluster.Spec.SecretRef.Namespace = own.Namespace
	cluster.Spec.Conditions = []v1alpha1.NamespaceCondition{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"class": "admitted"}}}}
	cases := []struct {
		reason   string
		receiver client.Object
		path     string
		want     map[string]string
	}{
		{"A namespaced receiver reaches its own namespace, whatever store its objects use.", namespaced, own.Namespace + "/ci", map[string]string{"own": "0 0", "admitted": "old old", "refused": "old old"}},
		{"A cluster receiver reaches the namespaces that its conditions admit.", cluster, e.Name, map[string]string{"own": "0 0", "admitted": "1 1", "refused": "old old"}},
	}
	for i, tc := range cases {
		e.Create(tc.receiver)
		e.Want(tc.receiver, v1alpha1.ReasonStoreValid)
		e.Backend.Put(e.Name, []byte(strconv.Itoa(i)))
		wantStatus(e.Client, e.EventsURL+tc.path, e.Name, http.StatusOK)
		if diff := cmp.Diff(tc.want, values(e)); diff != "" {
			t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
		}
		e.Delete(tc.receiver)
	}
}

// TestReceiverStandby sends requests to a standby replica, before and after the leader stops.
func TestReceiverStandby(t *testing.T) {
	elect := func(f *operator.Flags) { f.LeaderElect, f.RetryPeriod = true, 200*time.Millisecond }
	set, url := testenv.Receiving(t)
	leader := testenv.NewIdle(t, elect, set)
	leader.Flags = append(leader.Flags, func(f *operator.Flags) { f.LeaderElectNamespace = leader.NS })
	set, urlOfStandby := testenv.Receiving(t)
	standby := leader.SecondOperator(append(leader.Flags, set)...)
	leader.Start()
	leader.Backend.Put("db", []byte("first"))
	leader.Create(leader.ExternalSecret("db", seldom))
	leader.Create(receiver(leader, v1alpha1.EventStoreRef{Kind: "FakeStore", Name: "store"}))
	leader.WantReady("db", v1alpha1.ReasonSecretSynced)
	leader.Want(&v1alpha1.EventReceiver{ObjectMeta: leader.Meta("ci")}, v1alpha1.ReasonStoreValid)
	standby.Start()
	reported := func(value string) {
		leader.Helper()
		leader.Backend.Put("db", []byte(value))
		leader.Eventually(func() string { // The replica is starting.
			if status, err := post(leader.Ctx, urlOfStandby+leader.NS+"/ci", `{"keys":["db"]}`); err != nil || status != http.StatusOK {
				return fmt.Sprintf("status %d, %v", status, err)
			}
			return ""
		})
		if got := leader.Data("db")["value"]; got != value {
			leader.Errorf("at the answer, the object has the value %q, want %q", got, value)
		}
	}
	reported("second")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leader.NS, Name: "provider-fake." + v1alpha1.Group}}
	if err := leader.API.Get(leader.Ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	if holder := *lease.Spec.HolderIdentity; !strings.Contains(url, strings.Split(holder, "_")[2]+"/") {
		t.Errorf("after the answer of the standby replica, the leader is %s", holder)
	}
	if status, err := post(leader.Ctx, urlOfStandby+leader.NS+"/absent", `{"keys":["db"]}`); err != nil || status != http.StatusUnauthorized {
		t.Errorf("a request to an unknown path: status %d, %v", status, err)
	}
	leader.Stop()
	reported("third")
}
