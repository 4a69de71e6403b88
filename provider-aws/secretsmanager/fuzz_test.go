package secretsmanager

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// FuzzAnswers passes arbitrary answers of Secrets Manager through the SDK.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"ARN":"arn:aws:secretsmanager:eu-central-1:111122223333:secret:a-AbCdEf","Name":"a","VersionId":"00000000-0000-0000-0000-000000000001","SecretString":"hunter2 x","VersionStages":["AWSCURRENT"]}`,
		`{"SecretBinary":"aHVudGVyMiB4","VersionId":"1"}`, `{"SecretBinary":"%"}`, `{"SecretString":1}`, `{}`, `[]`, `null`, ``, `<html>hunter2 `,
		`{"SecretValues":[{"Name":"a","SecretString":"hunter2 x","VersionId":"1"}],"Errors":[{"SecretId":"b","ErrorCode":"ResourceNotFoundException","Message":"hunter2 "}],"NextToken":"t"}`,
		`{"SecretValues":[{}],"Errors":[{}]}`, `{"SecretList":[{"Name":"a"},{"Name":"b","Tags":[{}]}],"NextToken":"t"}`, `{"SecretList":[null]}`,
		`{"__type":"ResourceNotFoundException","message":"hunter2 x"}`, `{"__type":"com.amazonaws#AccessDeniedException","Message":"hunter2 x"}`, `{"code":"InvalidRequestException","message":"marked for deletion"}`,
	} {
		f.Add(200, "", "", body)
		f.Add(400, "", "7", body)
	}
	f.Add(400, "ResourceNotFoundException:http://x", "", "{}")
	f.Add(503, "ThrottlingException", "9999999999", "hunter2 x")
	f.Fuzz(func(t *testing.T, status int, code, retryAfter, body string) {
		c, err := connectTo(t, "http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		var a *awstest.Answer
		answer := func() {
			a = &awstest.Answer{Status: status, Code: code, RetryAfter: retryAfter, Body: body}
			c.api = secretsmanager.NewFromConfig(c.config.AWS, func(o *secretsmanager.Options) { o.HTTPClient, o.Retryer = a, aws.NopRetryer{} })
		}
		checkAnswer := func(v provider.Value, err error) {
			t.Helper()
			if err == nil && (v.Data == nil || v.Version == "") {
				t.Errorf("%+v yields %+v", a, v)
			}
			a.Check(t, err, "ResourceNotFoundException", "InvalidRequestException")
		}
		answer()
		checkAnswer(c.Get(t.Context(), provider.Ref{Key: "a"}))
		answer()
		for _, r := range c.GetBatch(t.Context(), []provider.Ref{{Key: "a"}, {Key: "b"}}) {
			checkAnswer(r.Value, r.Err)
		}
		answer()
		for v, err := range c.Find(t.Context(), provider.Query{Path: "a"}) {
			checkAnswer(v, err)
		}
		answer()
		a.Check(t, c.Check(t.Context()), "ResourceNotFoundException", "InvalidRequestException")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
