package emulator

import (
	"encoding/json"
	"time"
)

// trailed are the calls of Secrets Manager whose events EventBridge sends to queues. The rule of a user would select them.
var trailed = map[string]bool{
	"CreateSecret": true, "DeleteSecret": true, "PutSecretValue": true, "RestoreSecret": true, "UpdateSecret": true, "UpdateSecretVersionStage": true,
}

// parameterChanges are the calls of Parameter Store that send an event, and its operation.
var parameterChanges = map[string]string{"PutParameter": "Update", "DeleteParameter": "Delete", "LabelParameterVersion": "LabelParameterVersion"}

// notify sends the event of a successful call to all queues. It has the fields of the request and of the answer that CloudTrail
// records, which are no values: the answer has only the ARN.
func (e *Emulator) notify(q *request, out any) {
	if !e.hasQueues() {
		return
	}
	var in struct{ SecretID, Name, ClientRequestToken string }
	if json.Unmarshal(q.body, &in) != nil {
		return
	}
	switch {
	case q.service == secretsManager && trailed[q.operation]:
		request := map[string]string{}
		for k, v := range map[string]string{"secretId": in.SecretID, "name": in.Name, "clientRequestToken": in.ClientRequestToken} {
			if v != "" {
				request[k] = v
			}
		}
		response := map[string]string{}
		if name, ok := out.(*secretName); ok {
			response["arn"] = name.ARN
		}
		e.trail(q.operation, request, response)
	case q.service == systemsManager && parameterChanges[q.operation] != "":
		e.parameterChange(in.Name, parameterChanges[q.operation])
	}
}

// trail sends the event of a call of Secrets Manager.
func (e *Emulator) trail(operation string, request, response map[string]string) {
	e.emit("aws.secretsmanager", "AWS API Call via CloudTrail", nil, map[string]any{
		"eventVersion": "1.11", "eventSource": "secretsmanager.amazonaws.com", "eventName": operation, "awsRegion": e.region,
		"eventType": "AwsApiCall", "requestParameters": request, "responseElements": response,
	})
}

// parameterChange sends the event of a changed parameter.
func (e *Emulator) parameterChange(name, operation string) {
	e.emit("aws.ssm", "Parameter Store Change", []string{e.parameterARN(name)}, map[string]any{"name": name, "type": typeSecureString, "operation": operation})
}

func (e *Emulator) emit(source, detailType string, resources []string, detail map[string]any) {
	if resources == nil {
		resources = []string{}
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": newUUID(), "source": source, "detail-type": detailType, "account": e.account, "region": e.region,
		"time": e.now().UTC().Format(time.RFC3339), "resources": resources, "detail": detail,
	})
	if err != nil {
		return // Maps of strings can always be encoded.
	}
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	for _, q := range e.queues {
		if !q.unfed.Load() {
			q.Send(string(body))
		}
	}
}

func (e *Emulator) hasQueues() bool {
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	return len(e.queues) > 0
}
