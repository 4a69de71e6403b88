package emulator_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestSecretsManager makes calls that no client of the provider makes. The tests of the clients show the others.
func TestSecretsManager(t *testing.T) {
	const create, get, put, update, move = "secretsmanager.CreateSecret", "secretsmanager.GetSecretValue", "secretsmanager.PutSecretValue", "secretsmanager.UpdateSecret", "secretsmanager.UpdateSecretVersionStage"
	const remove, batch, list, versions = "secretsmanager.DeleteSecret", "secretsmanager.BatchGetSecretValue", "secretsmanager.ListSecrets", "secretsmanager.ListSecretVersionIds"
	for name, steps := range map[string][]step{
		"Versions": {
			{call: create, body: `{"Name":"db","SecretString":"one","ClientRequestToken":"$1"}`, want: "200"},
			{call: put, body: `{"SecretId":"db","SecretString":"two","ClientRequestToken":"$2"}`, want: `"VersionStages":["AWSCURRENT"]`},
			{call: put, body: `{"SecretId":"db","SecretString":"one","ClientRequestToken":"$1"}`, want: `"VersionStages":["AWSPREVIOUS"]`},
			{call: put, body: `{"SecretId":"db","SecretString":"other","ClientRequestToken":"$1"}`, want: "ResourceExistsException"},
			{call: get, body: `{"SecretId":"db","VersionId":"$1","VersionStage":"AWSCURRENT"}`, want: "InvalidRequestException"},
			{call: update, body: `{"SecretId":"db","SecretString":"three","ClientRequestToken":"$3"}`, want: version(3)},
			{call: get, body: `{"SecretId":"db"}`, want: `"SecretString":"three"`},
			{call: versions, body: `{"SecretId":"db","MaxResults":2}`, want: version(3)},
			{call: versions, body: `{"SecretId":"db","MaxResults":2,"IncludeDeprecated":true}`, want: `"NextToken":"`},
			{call: move, body: `{"SecretId":"db","VersionStage":"AWSCURRENT","MoveToVersionId":"$1"}`, want: "can't be empty"},
			{call: move, body: `{"SecretId":"db","VersionStage":"AWSCURRENT","RemoveFromVersionId":"$3"}`, want: "can't be completely removed"},
			{call: move, body: `{"SecretId":"db","VersionStage":"AWSCURRENT","MoveToVersionId":"$9","RemoveFromVersionId":"$3"}`, want: "ResourceNotFoundException"},
			{call: move, body: `{"SecretId":"db","VersionStage":"BLUE"}`, want: "InvalidParameterException"},
		},
		"Input": {
			{call: create, body: `{"Name":"a name","SecretString":"x","ClientRequestToken":"$1"}`, want: "Invalid name."},
			{call: create, body: `{"Name":"a","SecretString":"x"}`, want: "must provide a ClientRequestToken"},
			{call: create, body: `{"Name":"a","SecretString":"x","ClientRequestToken":"short"}`, want: "32-64 characters"},
			{call: create, body: `{"Name":"a","SecretString":"` + strings.Repeat("x", 65536) + `","ClientRequestToken":"$1"}`, want: "200"},
			{call: create, body: `{"Name":"b","SecretString":"` + strings.Repeat("x", 65537) + `","ClientRequestToken":"$1"}`, want: "less than or equal to 65536"},
			{call: put, body: `{"SecretId":"a","SecretString":"x","SecretBinary":"eA==","ClientRequestToken":"$1"}`, want: "both a binary secret value and a string"},
			{call: put, body: `{"SecretId":"a","ClientRequestToken":"$1"}`, want: "either SecretString or SecretBinary"},
			{call: get, body: `{"SecretId":""}`, want: "'secretId' failed to satisfy constraint"},
			{call: "secretsmanager.RotateSecret", body: `{}`, want: "UnknownOperationException"},
			{call: put, body: `{"SecretString":"canary`, want: `400 {"Message":"The request is not valid JSON for PutSecretValue.","__type":"SerializationException"}`},
		},
		"Deletion": {
			{call: create, body: `{"Name":"db","SecretString":"v","ClientRequestToken":"$1"}`, want: "200"},
			{call: remove, body: `{"SecretId":"db","RecoveryWindowInDays":6}`, want: "between 7 and 30 days"},
			{call: remove, body: `{"SecretId":"db","RecoveryWindowInDays":7,"ForceDeleteWithoutRecovery":true}`, want: "in conjunction with RecoveryWindowInDays"},
			{call: remove, body: `{"SecretId":"none"}`, want: "ResourceNotFoundException"},
			{call: remove, body: `{"SecretId":"none","ForceDeleteWithoutRecovery":true}`, want: `"Name":"none"`},
			{call: "secretsmanager.RestoreSecret", body: `{"SecretId":"none"}`, want: "ResourceNotFoundException"},
		},
		"Pages": {
			{call: create, body: `{"Name":"s1","SecretString":"v","ClientRequestToken":"$1","Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}`, want: "200"},
			{call: create, body: `{"Name":"s2","SecretString":"v","ClientRequestToken":"$1"}`, want: "200"},
			{call: "secretsmanager.UntagResource", body: `{"SecretId":"s1","TagKeys":["a"]}`, want: "200"},
			{call: "secretsmanager.DescribeSecret", body: `{"SecretId":"s1"}`, want: `"Tags":[{"Key":"b","Value":"2"}]`},
			{call: batch, body: `{"Filters":[{"Key":"name","Values":["s"]}],"MaxResults":1}`, want: `"NextToken":"`},
			{call: batch, body: `{"Filters":[{"Key":"tag-key","Values":["b"]}]}`, want: `"Name":"s1"`},
			{call: batch, body: `{}`, want: "but not both"},
			{call: batch, body: `{"SecretIdList":["s1"],"MaxResults":1}`, want: "'Filters' not specified"},
			{call: batch, body: `{"SecretIdList":["` + strings.Repeat(`s","`, 20) + `s"]}`, want: "less than or equal to 20"},
			{call: list, body: `{"MaxResults":0}`, want: "greater than or equal to 1"},
			{call: list, body: `{"MaxResults":101}`, want: "less than or equal to 100"},
			{call: list, body: `{"NextToken":"x"}`, want: "InvalidNextTokenException"},
			{call: list, body: `{"Filters":[{"Key":"color","Values":["red"]}]}`, want: "enum value set"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, start(t), steps)
		})
	}
}

func TestFilters(t *testing.T) {
	srv := start(t)
	srv.Put("shop/db", []byte("v"), emulator.Tags(map[string]string{"team": "shop", "Env": "prod"}), emulator.Description("The main database"))
	srv.Put("shop/api", []byte("v"), emulator.Tags(map[string]string{"team": "web"}))
	srv.Put("credsDatabase892", []byte("v"))
	names := regexp.MustCompile(`"Name":"([^"]*)"`)
	for _, tc := range []struct{ request, want string }{
		{`{}`, "shop/db shop/api credsDatabase892"},
		{`{"SortOrder":"desc"}`, "credsDatabase892 shop/api shop/db"},
		{`{"SortBy":"name"}`, "credsDatabase892 shop/api shop/db"},
		{`{"Filters":[{"Key":"name","Values":["!shop/"]}]}`, "credsDatabase892"},
		{`{"Filters":[{"Key":"name","Values":["shop/","!shop/api"]}]}`, "shop/db"},
		{`{"Filters":[{"Key":"tag-key","Values":["team"]},{"Key":"tag-value","Values":["web"]}]}`, "shop/api"},
		{`{"Filters":[{"Key":"description","Values":["the MAIN"]}]}`, "shop/db"},
		{`{"Filters":[{"Key":"all","Values":["DATABASE"]}]}`, "shop/db credsDatabase892"},
		{`{"Filters":[{"Key":"all","Values":["892"]}]}`, "credsDatabase892"},
		{`{"Filters":[{"Key":"all","Values":["web_prod"]}]}`, "shop/db shop/api"},
		{`{"Filters":[{"Key":"owning-service","Values":["rds"]}]}`, ""},
	} {
		var got []string
		for _, m := range names.FindAllStringSubmatch(step{call: "secretsmanager.ListSecrets", body: tc.request}.ask(t, srv), -1) {
			got = append(got, m[1])
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", tc.request, diff)
		}
	}
}

// TestOptions shows options that only other programs have use for.
func TestOptions(t *testing.T) {
	srv := start(t, emulator.WithMaxValueBytes(1))
	run(t, srv, []step{{call: "secretsmanager.CreateSecret", body: `{"Name":"a","SecretString":"xx","ClientRequestToken":"$1"}`, want: "less than or equal to 1"}})
	srv.Put("db", []byte("one"))
	srv.Put("db", []byte("two"), emulator.Stages("NEXT"))
	srv.Put("binary", []byte("A"), emulator.Binary())
	run(t, srv, []step{
		{call: "secretsmanager.GetSecretValue", body: `{"SecretId":"db"}`, want: `"SecretString":"one"`},
		{call: "secretsmanager.GetSecretValue", body: `{"SecretId":"db","VersionStage":"NEXT"}`, want: `"SecretString":"two"`},
		{call: "secretsmanager.GetSecretValue", body: `{"SecretId":"binary"}`, want: `"SecretBinary":"QQ=="`},
	})
}
