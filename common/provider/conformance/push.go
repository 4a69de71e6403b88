package conformance

import "github.com/direct-secrets/direct-secrets/common/internal/push"

// A Pusher pushes values through a Writer like the operator, for tests of a provider during pushes.
type Pusher = push.Pusher

// PushPolicies are the policies of a Pusher's PushSecret.
type PushPolicies = push.Policies

// A PushValue is a value to push, as a whole or as a property.
type PushValue = push.Value
