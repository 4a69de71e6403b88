package charts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestEvents checks the Service for events, and that replicas of a module can forward requests to each other.
func TestEvents(t *testing.T) {
	t.Parallel()
	const (
		metrics = "metrics from []"
		dns     = "53 53 to []"
		own     = "app.kubernetes.io/instance=direct-secrets,app.kubernetes.io/name=provider-aws"
		enabled = `global.eventReceiver.enabled=true`
		from    = `global.eventReceiver.from=[{"podSelector":{"matchLabels":{"app":"ingress"}}}]`
		policy  = `global.networkPolicy={"enabled":true}`
		egress  = `global.networkPolicy={"enabled":true,"egress":[{"ports":[{"port":443}]}]}`
	)
	service := []string{"events 8082 to events of " + own}
	cases := map[string]struct {
		reason                   string
		sets                     []string
		service, ingress, egress []string
	}{
		"Off":    {reason: "without receivers there is no port", sets: []string{egress, from}, ingress: []string{metrics}, egress: []string{dns, "443 to []"}},
		"Open":   {reason: "all pods can send requests", sets: []string{enabled, policy}, service: service, ingress: []string{metrics, "events from []"}},
		"Egress": {reason: "the pods of the module are further peers, and can be reached", sets: []string{enabled, egress, from}, service: service, ingress: []string{metrics, "events from [" + own + " app=ingress]"}, egress: []string{dns, "8082 to [" + own + "]", "443 to []"}},
	}
	peers := func(of []networkingv1.NetworkPolicyPeer) (all []string) {
		for _, p := range of {
			all = append(all, labels.FormatLabels(p.PodSelector.MatchLabels))
		}
		return all
	}
	ports := func(of []networkingv1.NetworkPolicyPort) (all string) {
		for _, p := range of {
			all += p.Port.String() + " "
		}
		return all
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, umbrella, enable([]string{"provider-aws"}, append(tc.sets, noCRDs)...))
			var service, ingress, egress []string
			for _, o := range of(objects, "Service") {
				if s := decode[corev1.Service](t, o); s.Name == "direct-secrets-provider-aws-events" {
					p := s.Spec.Ports[0]
					service = append(service, fmt.Sprintf("%s %d to %s of %s", p.Name, p.Port, p.TargetPort.String(), labels.FormatLabels(s.Spec.Selector)))
				}
			}
			p := decode[networkingv1.NetworkPolicy](t, of(objects, "NetworkPolicy")[0])
			for _, r := range p.Spec.Ingress {
				ingress = append(ingress, fmt.Sprint(ports(r.Ports), "from ", peers(r.From)))
			}
			for _, r := range p.Spec.Egress {
				egress = append(egress, fmt.Sprint(ports(r.Ports), "to ", peers(r.To)))
			}
			if diff := cmp.Diff([][]string{tc.service, tc.ingress, tc.egress}, [][]string{service, ingress, egress}); diff != "" {
				t.Errorf("%s\nService, ingress, egress: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
