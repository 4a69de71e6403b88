package testenv

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A Spec changes an ExternalSecret.
type Spec = func(*v1alpha1.ExternalSecret)

// Fills replaces the entries. pairs are keys of the Secret, each with its remote secret.
func Fills(pairs ...string) Spec {
	return func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = nil
		for p := range slices.Chunk(pairs, 2) {
			es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: p[0], RemoteRef: v1alpha1.RemoteRef{Key: p[1]}})
		}
	}
}

// Request adds the annotation that requests a refresh.
func Request(value string) Spec {
	return func(es *v1alpha1.ExternalSecret) {
		metav1.SetMetaDataAnnotation(&es.ObjectMeta, v1alpha1.RefreshRequestAnnotation, value)
	}
}

// PushData returns an entry that pushes a key of a Secret to a property of a remote secret.
func PushData(key, remote, property string) v1alpha1.PushData {
	return v1alpha1.PushData{Match: v1alpha1.PushMatch{SecretKey: key, RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: remote, Property: property}}}
}

// PushDeletes makes a PushSecret delete its remote secrets.
func PushDeletes(ps *v1alpha1.PushSecret) { ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete }

// Remote returns the value of a backend's key; empty if there is none.
func Remote(b *fake.Backend, key string) string {
	v, _ := b.Value(key)
	return string(v)
}

// Ahead makes the clock of an operator run ahead by a duration that the test can change.
func Ahead(by *atomic.Int64) operator.Option {
	return operator.WithClock(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
}

// WithAuth makes a store log in with the password in the Secret "credentials" of its namespace.
func WithAuth(s *fakev1.FakeStore) { s.Spec.Auth = auth("") }

// WithClusterAuth makes a cluster store log in with the password in the Secret "credentials" of a namespace.
func WithClusterAuth(namespace string) func(*fakev1.ClusterFakeStore) {
	return func(s *fakev1.ClusterFakeStore) { s.Spec.Auth = auth(namespace) }
}

func auth(namespace string) *fakev1.FakeAuth {
	return &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "credentials", Key: "password", Namespace: namespace}}
}

// Opens returns sync windows that are open for four hours from a minute of each day.
func Opens(at time.Time) *v1alpha1.SyncWindows {
	return &v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{
		Schedule: at.UTC().Format("4 15 * * *"), Duration: "4h",
	}}}
}

// SameTime returns how a time in a status differs from the wanted one; zero stands for none.
func SameTime(want time.Time, is *metav1.Time) string {
	got := time.Time{}
	if is != nil {
		got = is.Time
	}
	if !got.Equal(want) {
		return fmt.Sprintf("the time is %s, want %s", got.UTC(), want.UTC())
	}
	return ""
}
