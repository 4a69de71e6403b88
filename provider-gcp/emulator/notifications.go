package emulator

import (
	"time"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// stateChanges are the types of the notifications of a version's new state.
var stateChanges = map[pb.SecretVersion_State]string{
	pb.SecretVersion_ENABLED:   "SECRET_VERSION_ENABLE",
	pb.SecretVersion_DISABLED:  "SECRET_VERSION_DISABLE",
	pb.SecretVersion_DESTROYED: "SECRET_VERSION_DESTROY",
}

// notify sends the notification of a change to all subscriptions, as if each secret had their topic. It has the attributes and the
// data of https://cloud.google.com/secret-manager/docs/event-notifications. v is nil if the change is not about a version.
func (e *Emulator) notify(eventType string, s *secret, v *version) {
	attributes := map[string]string{
		"eventType": eventType, "dataFormat": "JSON_API_V1", "secretId": e.secretName(s.name), "timestamp": e.now().UTC().Format(time.RFC3339Nano),
	}
	var resource proto.Message = e.secretProto(s)
	if v != nil {
		attributes["versionId"] = e.versionName(s.name, v.number)
		resource = e.versionProto(s, v)
	}
	data, err := protojson.Marshal(resource)
	if err != nil {
		return // Names and labels are valid text.
	}
	for _, of := range e.subscriptions.all() {
		of.Publish(data, attributes)
	}
}
