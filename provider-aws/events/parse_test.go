package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

const (
	arn     = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop/db-AbCdEf"
	partial = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop/db"
	version = "0a1b2c3d-0000-4000-8000-000000000001"
)

// call returns the event of a call of Secrets Manager.
func call(name, detail string) string {
	return `{"version":"0","source":"aws.secretsmanager","detail-type":"AWS API Call via CloudTrail","region":"eu-west-1","detail":{"eventName":"` + name + `"` + detail + `}}`
}

func TestParse(t *testing.T) {
	changed := func(version string, names ...string) provider.Message {
		return provider.Message{Events: []provider.Event{{Kind: "AWSSecretsManager", Place: "eu-west-1", Names: names, Version: version}}}
	}
	cases := map[string]struct {
		reason, body string
		want         provider.Message
	}{
		"Put":       {"The response has the ARN and the version.", call("PutSecretValue", `,"requestParameters":{"secretId":"shop/db"},"responseElements":{"arn":"`+arn+`","versionId":"`+version+`"}`), changed(version, arn, "shop/db")},
		"OtherCase": {"Some calls spell it aRN.", call("RestoreSecret", `,"responseElements":{"aRN":"`+arn+`"}`), changed("", arn)},
		"NoAnswer":  {"Some calls have no response.", call("DeleteSecret", `,"requestParameters":{"secretId":"`+arn+`"},"responseElements":null`), changed("", arn)},
		"Created":   {"A new secret is named, not identified.", call("CreateSecret", `,"requestParameters":{"name":"shop/db"}`), changed("", "shop/db")},
		"Rotated":   {"A rotation is an event of the service.", `{"source":"aws.secretsmanager","detail-type":"AWS Service Event via CloudTrail","region":"eu-west-1","detail":{"eventName":"RotationSucceeded","additionalEventData":{"SecretId":"` + arn + `"}}}`, changed("", arn)},
		"Managed":   {"The rotation of a managed secret names it in another field.", `{"source":"aws.secretsmanager","detail-type":"AWS Service Event via CloudTrail","region":"eu-west-1","detail":{"eventName":"RotationSucceeded","serviceEventDetails":{"secretId":"` + arn + `"}}}`, changed("", arn)},
		"Token":     {"The token of the request is the ID of the version.", call("PutSecretValue", `,"requestParameters":{"secretId":"`+arn+`","clientRequestToken":"`+version+`"},"responseElements":{"arn":"`+arn+`"}`), changed(version, arn)},
		"Moved":     {"The token of a call that moves labels names no version.", call("UpdateSecretVersionStage", `,"requestParameters":{"secretId":"`+arn+`","clientRequestToken":"`+version+`"}`), changed("", arn)},
		"Labels":    {"Moved labels may make an old version current.", call("UpdateSecretVersionStage", `,"requestParameters":{"secretId":"`+arn+`"},"responseElements":{"arn":"`+arn+`","versionId":"`+version+`"}`), changed("", arn)},
		"Parameter": {"Parameter Store sends events of its own.", `{"source":"aws.ssm","detail-type":"Parameter Store Change","region":"eu-west-1","resources":["arn:aws:ssm:eu-west-1:111122223333:parameter/a/b"],"detail":{"name":"/a/b","operation":"Update"}}`,
			provider.Message{Events: []provider.Event{{Kind: "AWSParameterStore", Place: "eu-west-1", Names: []string{"/a/b", "arn:aws:ssm:eu-west-1:111122223333:parameter/a/b"}}}}},
		"BySNS":        {"A topic can pass events on.", `{"Type":"Notification","Message":"` + strings.ReplaceAll(call("CreateSecret", `,"requestParameters":{"name":"shop/db"}`), `"`, `\"`) + `"}`, changed("", "shop/db")},
		"Refused":      {"A call that failed changes nothing.", call("PutSecretValue", `,"errorCode":"AccessDenied","requestParameters":{"secretId":"shop/db"}`), provider.Message{}},
		"Read":         {"A read changes nothing.", call("GetSecretValue", `,"requestParameters":{"secretId":"shop/db"}`), provider.Message{}},
		"OtherService": {"A rule can select more.", `{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{}}`, provider.Message{}},
		"Unnamed":      {"An event without a secret is of no use.", call("PutSecretValue", ``), provider.Message{Malformed: "it names no secret"}},
		"NoParameter":  {"An event without a parameter is of no use.", `{"source":"aws.ssm","detail-type":"Parameter Store Change","detail":{}}`, provider.Message{Malformed: "it names no parameter"}},
		"BadDetail":    {"The detail has another type.", `{"source":"aws.secretsmanager","detail-type":"AWS API Call via CloudTrail","detail":[]}`, provider.Message{Malformed: "the detail is not that of an event of CloudTrail"}},
		"NoEvent":      {"A message can be anything.", `{"hello":"world"}`, provider.Message{Malformed: "it is no event of EventBridge"}},
		"NoJSON":       {"A message can be anything.", "hunter2", provider.Message{Malformed: "it is no event of EventBridge"}},
		"Empty":        {"A message can be empty.", "", provider.Message{Malformed: "it is no event of EventBridge"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parse([]byte(tc.body))); diff != "" {
				t.Errorf("%s\nparse(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(call("PutSecretValue", `,"requestParameters":{"secretId":"shop/db"}`)))
	f.Add([]byte(`{"Type":"Notification","Message":"{}"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m := parse(body)
		if (m.Malformed != "") && len(m.Events) > 0 {
			t.Errorf("%q is malformed, and has events", body)
		}
		for _, e := range m.Events {
			if len(e.Names) == 0 {
				t.Errorf("%q has an event without a name", body)
			}
			Keys(&v1alpha1.AWSSecretsManager{}, e)
		}
	})
}

func TestKeys(t *testing.T) {
	store := func(region, prefix string) *v1alpha1.AWSSecretsManager {
		s := &v1alpha1.AWSSecretsManager{}
		s.Spec.Region, s.Spec.Prefix = region, prefix
		return s
	}
	event := provider.Event{Kind: secretKind, Place: "eu-west-1", Names: []string{arn, "shop/db"}}
	cases := map[string]struct {
		reason string
		store  provider.Object
		event  provider.Event
		want   []string
	}{
		"Plain":       {"The key is the name, or an ARN with or without its end.", store("eu-west-1", ""), event, []string{"shop/db", arn, partial}},
		"Prefix":      {"The store adds a prefix to names.", store("eu-west-1", "shop/"), event, []string{"db", arn, partial}},
		"OtherPrefix": {"A name without the prefix is not one of the store.", store("eu-west-1", "bank/"), event, []string{arn, partial}},
		"Whole":       {"A prefix is not a name.", store("eu-west-1", "shop/db"), event, []string{arn, partial}},
		"OtherRegion": {"Each region has its own secrets.", store("us-east-1", ""), event, nil},
		"AnyRegion":   {"The region of a store without one is not known.", store("", ""), event, []string{"shop/db", arn, partial}},
		"NameOnly":    {"An ARN cannot be made of a name.", store("", ""), provider.Event{Kind: secretKind, Names: []string{"shop/db"}}, []string{"shop/db"}},
		"ShortARN":    {"An ARN can have been cut.", store("", ""), provider.Event{Kind: secretKind, Names: []string{"arn:aws:secretsmanager"}}, []string{"arn:aws:secretsmanager"}},
		"Parameter":   {"The ARN of a parameter has no random end.", &v1alpha1.AWSParameterStore{}, provider.Event{Kind: parameterKind, Names: []string{"/a/b", "arn:aws:ssm:eu-west-1:1:parameter/a/b"}}, []string{"/a/b", "arn:aws:ssm:eu-west-1:1:parameter/a/b"}},
		"OtherObject": {"A generator has no secrets.", &v1alpha1.ECRAuthorizationToken{}, event, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Keys(tc.store, tc.event)); diff != "" {
				t.Errorf("%s\nKeys(): -want, +got:\n%s", tc.reason, diff)
			}
			for _, other := range cases {
				if diff := cmp.Diff(tc.want, Keys(other.store, tc.event)); diff != "" && Scope(other.store) == Scope(tc.store) {
					t.Errorf("a store with the same Scope has other keys:\n%s", diff)
				}
			}
		})
	}
}
