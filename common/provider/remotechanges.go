package provider

// ErrNoRemoteChanges is the error of each call that would change something at a service, of a Kind that is
// WithoutRemoteChanges.
var ErrNoRemoteChanges error = NewError(Denied,
	"the operator runs with --no-remote-changes, so nothing is changed at the provider; to allow changes, set global.remoteChanges: true in the chart")

// ReadOnly returns the Kind of a generator whose Generate changes nothing at the service: it computes values, or gets a
// token as a login does, which the service does not list and cannot revoke alone.
func (k Kind) ReadOnly() Kind {
	k.readOnly = true
	return k
}

// WithoutRemoteChanges returns the Kind for an operator that changes nothing outside the cluster: each call that would
// is refused with ErrNoRemoteChanges, before the provider's code is called.
func (k Kind) WithoutRemoteChanges() Kind {
	k.noRemoteChanges = true
	return k
}

// HoldsBack reports whether the Kind refuses to generate values.
func (k Kind) HoldsBack() bool { return k.noRemoteChanges && !k.readOnly }
