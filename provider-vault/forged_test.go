package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
)

// TestForgedRecord is an attack by a tenant that can edit the Secrets of one namespace. A cluster generator serves it and
// another tenant, by one login. The record of the tenant's part shows the accessor of that login. If the operator
// revoked its own token, Vault would revoke the leases of all tenants.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	const hostile, targeted = "hostile", "victim"
	srv := accounts(t)
	suite.For(t).Namespace(hostile, nil)
	suite.For(t).Namespace(targeted, nil)
	login := appRole(t, srv, targeted, "shop", "maker")
	login.AppRole.RoleRef.Namespace, login.AppRole.SecretRef.Namespace = targeted, targeted
	s := asks(srv, "accounts/creds/app", login)
	s.RevocationDelay = "0s"
	suite.For(t).Create(newClusterDynamic("shared", s))
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	objects := map[string]*common.ExternalSecret{}
	users := map[string]string{}
	for _, ns := range []string{hostile, targeted} {
		objects[ns] = operatortest.Generated(ns, "db", "ClusterVaultDynamicSecret", "shared")
		suite.For(t).Create(objects[ns])
		users[ns] = suite.For(t).Synced(objects[ns])["username"]
	}
	own, other := entryOf(t, objects[hostile]), entryOf(t, objects[targeted])
	var state struct{ Creator, Lease string }
	if err := json.Unmarshal([]byte(own["state"].(string)), &state); err != nil || state.Creator == "" || !srv.IsTokenValid(state.Creator) {
		t.Fatalf("the record has no accessor of the login: %v, %+v", err, own)
	}

	attacks := map[string]map[string]any{
		"the operator's own token": {"state": fmt.Sprintf(`{"token":%q}`, state.Creator)},
		"the same with a proof":    {"state": fmt.Sprintf(`{"token":%q}`, state.Creator), "proof": own["proof"]},
		"the lease of the victim":  {"state": other["state"], "proof": other["proof"]},
		"all leases of the role":   {"state": fmt.Sprintf(`{"lease":%q}`, state.Lease[:strings.LastIndexByte(state.Lease, '/')]), "proof": own["proof"]},
	}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		retired := attacks[name]
		retired["generator"], retired["version"] = own["generator"], "forged"
		forge(t, objects[hostile], func(record map[string]any) { record["retired"] = []any{retired} })
		controlplane.Eventually(t, func() string {
			if record := recordOf(t, &suite.For(t).Parts(objects[hostile])[0]); record["retired"] != nil {
				return name + ": the operator has not handled the forged entry"
			}
			return ""
		})
		wantAccounts(t, srv, users[hostile], users[targeted])
		if !srv.IsTokenValid(state.Creator) {
			t.Fatalf("%s: the token of the operator was revoked", name)
		}
	}
	suite.For(t).End(objects[hostile]) // The operator still revokes what it made.
	wantAccounts(t, srv, users[targeted])
	events := &corev1.EventList{}
	if err := suite.API.List(t.Context(), events, client.InNamespace(hostile)); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "LeftBehind" }) {
		t.Error("no event reports the forged entries")
	}
}

// recordOf returns the record of a part.
func recordOf(t *testing.T, part metav1.Object) map[string]any {
	t.Helper()
	record := map[string]any{}
	if err := json.Unmarshal([]byte(part.GetAnnotations()[common.PartAnnotation]), &record); err != nil {
		t.Fatal(err)
	}
	return record
}

// entryOf returns the entry of an object's one generator in the record of its part.
func entryOf(t *testing.T, es *common.ExternalSecret) map[string]any {
	t.Helper()
	for _, entry := range recordOf(t, &suite.For(t).Parts(es)[0])["entries"].(map[string]any) {
		return entry.(map[string]any)
	}
	t.Fatal("the record has no entry")
	return nil
}

// forge edits both copies of the record of an object's part.
func forge(t *testing.T, es *common.ExternalSecret, change func(record map[string]any)) {
	t.Helper()
	part := suite.For(t).Parts(es)[0]
	before := part.DeepCopy()
	record := recordOf(t, &part)
	change(record)
	raw, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	part.Annotations[common.PartAnnotation], part.Data["record"] = string(raw), raw
	if err := suite.API.Patch(t.Context(), &part, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
