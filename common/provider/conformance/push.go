package conformance

import "github.com/direct-secrets/direct-secrets/common/internal/push"

// A Pusher pushes values through a Writer as the operator does, for tests of what happens to a provider meanwhile.
type Pusher = push.Pusher

// PushPolicies are the policies of the PushSecret that a Pusher works for.
type PushPolicies = push.Policies

// A PushValue is a value to push, whole or as a property.
type PushValue = push.Value
