package events

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/secretsmanager"
)

// The Kinds whose secrets events report.
const secretKind, parameterKind = "AWSSecretsManager", "AWSParameterStore"

// An event is what EventBridge sends, as described at
// https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html.
type event struct {
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Region     string          `json:"region"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// A trail is the detail of an event of CloudTrail. The fields are those of
// https://docs.aws.amazon.com/secretsmanager/latest/userguide/cloudtrail_log_entries.html; which of them name the secret depends on
// the call.
type trail struct {
	EventName         string `json:"eventName"`
	ErrorCode         string `json:"errorCode"`
	RequestParameters struct {
		SecretID string `json:"secretId"`
		Name     string `json:"name"`
		Token    string `json:"clientRequestToken"` // It becomes the ID of the new version.
	} `json:"requestParameters"`
	ResponseElements struct {
		ARN       string `json:"arn"` // The decoder also accepts aRN and ARN.
		Name      string `json:"name"`
		VersionID string `json:"versionId"`
	} `json:"responseElements"`
	AdditionalEventData struct {
		SecretID string `json:"SecretId"`
	} `json:"additionalEventData"`
	ServiceEventDetails struct {
		SecretID string `json:"secretId"`
	} `json:"serviceEventDetails"` // of a secret that another service manages, such as RDS
}

// changes are the calls and events of Secrets Manager after which a secret may have another value, or not exist.
var changes = []string{
	"CreateSecret", "DeleteSecret", "PutSecretValue", "RestoreSecret", "RotationSucceeded", "UpdateSecret", "UpdateSecretVersionStage",
}

// parse returns the events of a message. It is malformed if it is not from EventBridge; one that is, and reports no change, has no
// events.
func parse(body []byte) provider.Message {
	var notification struct{ Type, Message string }
	if json.Unmarshal(body, &notification) == nil && notification.Type == "Notification" { // SNS has passed it on.
		body = []byte(notification.Message)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil || e.DetailType == "" {
		return provider.Message{Malformed: "it is no event of EventBridge"}
	}
	switch {
	case e.Source == "aws.secretsmanager" && strings.HasSuffix(e.DetailType, "via CloudTrail"):
		return parseTrail(e)
	case e.Source == "aws.ssm" && e.DetailType == "Parameter Store Change":
		return parseParameter(e)
	}
	return provider.Message{}
}

func parseTrail(e event) provider.Message {
	var t trail
	if json.Unmarshal(e.Detail, &t) != nil {
		return provider.Message{Malformed: "the detail is not that of an event of CloudTrail"}
	}
	if t.ErrorCode != "" || !slices.Contains(changes, t.EventName) {
		return provider.Message{}
	}
	out := provider.Event{Kind: secretKind, Place: e.Region}
	for _, name := range []string{
		t.ResponseElements.ARN, t.RequestParameters.SecretID, t.AdditionalEventData.SecretID, t.ServiceEventDetails.SecretID,
		t.ResponseElements.Name, t.RequestParameters.Name,
	} {
		if name != "" && !slices.Contains(out.Names, name) {
			out.Names = append(out.Names, name)
		}
	}
	if len(out.Names) == 0 {
		return provider.Message{Malformed: "it names no secret"}
	}
	if t.EventName != "UpdateSecretVersionStage" { // It moves labels between versions.
		out.Version = secretsmanager.VersionName(cmp.Or(t.ResponseElements.VersionID, t.RequestParameters.Token))
	}
	return provider.Message{Events: []provider.Event{out}}
}

// maxResources is the maximum number of resources of an event. A change of a parameter has one, and Keys compares them with each other.
const maxResources = 10

func parseParameter(e event) provider.Message {
	var d struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(e.Detail, &d) != nil || d.Name == "" {
		return provider.Message{Malformed: "it names no parameter"}
	}
	names := append([]string{d.Name}, e.Resources[:min(len(e.Resources), maxResources)]...)
	return provider.Message{Events: []provider.Event{{Kind: parameterKind, Place: e.Region, Names: names}}}
}

// A store is a store Kind of AWS.
type store interface {
	AWS() *v1alpha1.AWSSpec
	KeySpec() *v1alpha1.KeySpec
}

// suffix is the length of the random text at the end of a secret's ARN, with its hyphen.
const suffix = 7

// Scope returns the settings of a store by which Keys differs; see provider.Kind.Scope.
func Scope(o provider.Object) any {
	if s, ok := o.(store); ok {
		return [2]string{s.AWS().Region, s.KeySpec().Prefix}
	}
	return nil
}

// Keys returns the keys by which objects that use a store can name the secret or parameter of an event; see provider.Kind.Keys. A
// store without a region may be in any.
func Keys(o provider.Object, e provider.Event) []string {
	s, ok := o.(store)
	if !ok || e.Place != "" && s.AWS().Region != "" && e.Place != s.AWS().Region {
		return nil
	}
	var names, arns []string
	for _, name := range e.Names {
		if !awsconfig.IsARN(name) {
			names = append(names, name)
			continue
		}
		arns = append(arns, name)
		parts := strings.SplitN(name, ":", 7)
		if e.Kind == secretKind && len(parts) == 7 && len(parts[6]) > suffix {
			arns = append(arns, name[:len(name)-suffix]) // Objects can leave out the random text.
			names = append(names, parts[6][:len(parts[6])-suffix])
		}
	}
	var keys []string
	for _, name := range names {
		if key, ok := strings.CutPrefix(name, s.KeySpec().Prefix); ok && key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return append(keys, arns...)
}
