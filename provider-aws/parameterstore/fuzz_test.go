package parameterstore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// FuzzAnswers passes arbitrary answers of Parameter Store through the SDK.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"Parameter":{"Name":"a","Type":"SecureString","Value":"hunter2 x","Version":3,"ARN":"arn:aws:ssm:eu-central-1:111122223333:parameter/a"}}`,
		`{"Parameter":{"Value":1,"Version":"x"}}`, `{"Parameter":null}`, `{}`, `[]`, `null`, ``, `<html>hunter2 `,
		`{"Parameters":[{"Name":"a","Value":"hunter2 x","Version":1}],"InvalidParameters":["b"],"NextToken":"t"}`, `{"Parameters":[null,{}],"InvalidParameters":[null]}`,
		`{"Parameters":[{"Name":"a/b","Value":"hunter2 x","Version":1}]}`, `{"TagList":[{"Key":"a"},{}]}`,
		`{"__type":"ParameterNotFound","message":"hunter2 x"}`, `{"__type":"com.amazonaws#AccessDeniedException","Message":"hunter2 x"}`,
	} {
		f.Add(200, "", "", body)
		f.Add(400, "", "7", body)
	}
	f.Add(400, "ParameterNotFound:http://x", "", "{}")
	f.Add(503, "ThrottlingException", "9999999999", "hunter2 x")
	f.Fuzz(func(t *testing.T, status int, code, retryAfter, body string) {
		connected, err := connectTo(t, "http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		c := connected.(*Client)
		var a *awstest.Answer
		answer := func() {
			a = &awstest.Answer{Status: status, Code: code, RetryAfter: retryAfter, Body: body}
			c.api = ssm.NewFromConfig(c.config.AWS, func(o *ssm.Options) { o.HTTPClient, o.Retryer = a, aws.NopRetryer{} })
		}
		checkAnswer := func(v provider.Value, err error) {
			t.Helper()
			if err == nil && (v.Data == nil || v.Version == "") {
				t.Errorf("%+v yields %+v", a, v)
			}
			a.Check(t, err, "ParameterNotFound", "ParameterVersionNotFound", "InvalidParameters")
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
		a.Check(t, c.Check(t.Context()), "ParameterNotFound", "ParameterVersionNotFound", "InvalidParameters")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
