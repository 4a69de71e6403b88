package events

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestRecorded(t *testing.T) {
	const url = "https://sqs.us-east-1.amazonaws.com/000000000000/changes"
	call := func(t *testing.T, endpoint string, f conformance.Fact) error {
		o := &v1alpha1.AWSEventSource{}
		o.Spec.SQS.QueueURL = url
		q, err := awstest.Connect(t, o, Connect, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if f.Operation == "DeleteMessageBatch" {
			return q.Ack(t.Context(), []provider.Message{{Receipt: "x"}})
		}
		_, err = q.Receive(t.Context())
		return err
	}
	awstest.RunFacts(t, call, func(_ *testing.T, srv *emulator.Server, state string) {
		switch state {
		case "no such queue":
		case "expired receipt":
			srv.AddQueue("changes")
			srv.Inject(emulator.Fault{Code: "InvalidParameterValueException", Message: "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."})
		default: // The state is the name of an error of KMS.
			srv.Inject(emulator.Fault{Code: state, Message: "KMS refuses the call."})
		}
	})
}
