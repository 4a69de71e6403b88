package eventreceiver

import (
	"net/http"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const (
	// atOnce limits the requests whose signature is not yet checked, of one network, and to the receivers of one namespace.
	//limit:events Requests of one network of senders, or to the EventReceivers of one namespace, before the signature is checked | metric=directsecrets_event_requests_refused_total | The request is refused with status 429. A body of 64 KiB counts like four more. One network has at most half of this at one namespace, if each has more than 32. All together have four times as many; the last third is for those that have less than half of this.
	atOnce = 256
	// waiting limits the requests to one namespace that wait for their refreshes.
	//limit:events Requests to the EventReceivers of one namespace that wait for their refreshes | The request is answered with status 202 at once. All namespaces together have four times as many; the last third is for those that have less than half of this.
	waiting = 128

	// perRequest and perWaiting are the bytes for which each counts, so that a tenant of a quota has as many.
	perRequest, perWaiting = quota.Own / atOnce, quota.Own / waiting
)

// enter counts a request with a body of n bytes at most until release, for the network of its sender and for the receivers that its path
// names. It returns false if that has no room. Nothing counts for a tenant of the operator, because anyone can send the request.
func (h *Handler) enter(r *http.Request, n int64) (release func(), ok bool) {
	from, endFrom := h.senders.TryHold(network(r.RemoteAddr), perRequest+n)
	to, endTo := h.receivers.TryHold(namespaceOf(r.URL.Path), perRequest+n)
	release = func() { endFrom(); endTo() }
	if from == nil || to == nil {
		return release, false
	}
	// Half of a namespace is for networks that hold little, and half of a network for such namespaces: all senders behind one proxy have
	// the same address.
	a, b := from.Used(), to.Used()
	return release, max(a, b) <= quota.Own/2 || min(a, b) <= quota.Own/8
}

// namespaceOf returns the folder of a path, which the receivers of one namespace share, or the path of a cluster-scoped receiver. It need not
// exist, so that limits do not show which receivers do.
func namespaceOf(path string) string {
	if folder := path[:strings.LastIndexByte(path, '/')+1]; folder != "/events/" {
		return folder
	}
	return path
}
