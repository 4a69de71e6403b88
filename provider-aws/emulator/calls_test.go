package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := start(t)
	c := secretsClient(t, srv)
	srv.Put("db", []byte("canary-value"))
	srv.Get("db")
	current(ctx, c, "db")
	current(ctx, c, "none")
	put(ctx, c, "db", "canary-value", token(1))
	batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: []string{"db", "none"}})
	whoami(ctx, stsClient(t, srv))

	counts := map[string]int{"GetSecretValue": 2, "PutSecretValue": 1, "BatchGetSecretValue": 1, "GetCallerIdentity": 1}
	if diff := cmp.Diff(counts, srv.Counts()); diff != "" {
		t.Errorf("calls are counted by operation, failed ones too, direct access not: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 0, 5}, []int{srv.Count("GetSecretValue"), srv.Count("ListSecrets"), srv.Count()}); diff != "" {
		t.Errorf("Calls: -want, +got:\n%s", diff)
	}
	call := func(op string, ids ...string) emulator.Call {
		return emulator.Call{Service: "secretsmanager", Operation: op, SecretIDs: ids, AccessKeyID: "test"}
	}
	log := []emulator.Call{
		call("GetSecretValue", "db"), call("GetSecretValue", "none"), call("PutSecretValue", "db"), call("BatchGetSecretValue", "db", "none"),
		{Service: "sts", Operation: "GetCallerIdentity", AccessKeyID: "test"},
	}
	if diff := cmp.Diff(log, srv.Calls(), cmpopts.IgnoreFields(emulator.Call{}, "Time")); diff != "" {
		t.Errorf("the log has ids and access keys: -want, +got:\n%s", diff)
	}
	if strings.Contains(fmt.Sprintf("%+v", srv.Calls()), "canary") {
		t.Error("the log shows a value")
	}
	srv.Reset()
	if diff := cmp.Diff([]int{0, 0}, []int{srv.Count(), len(srv.Calls())}); diff != "" {
		t.Errorf("Reset must clear the calls: -want, +got:\n%s", diff)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := srv.Wait(ctx, 1, "GetSecretValue"); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: want context.Canceled, got %v", err)
	}
}
