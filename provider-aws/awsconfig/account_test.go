package awsconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

func TestAnnotatedRole(t *testing.T) {
	const (
		annotation = "spec.auth.serviceAccountRef: annotation eks.amazonaws.com/role-arn"
		notValid   = annotation + " of ServiceAccount shop is not valid; set it to the ARN of the IAM role that trusts the ServiceAccount"
	)
	of := func(role string) map[string]string { return map[string]string{roleAnnotation: role} }
	other := of(second)
	cases := map[string]struct {
		reason      string
		spec        v1alpha1.AWSSpec
		annotations map[string]string
		roles       []string // of the sessions
		want        error
	}{
		"Annotated":  {"The annotation names the role.", v1alpha1.AWSSpec{}, of(first), []string{first}, nil},
		"Spec":       {"The role of the spec takes precedence.", v1alpha1.AWSSpec{Role: first}, other, []string{first}, nil},
		"Chain":      {"The first role of the spec takes precedence, too.", v1alpha1.AWSSpec{AdditionalRoles: []string{first}, Role: second}, other, []string{first, second}, nil},
		"Unread":     {"A ServiceAccount is not read if the spec sets a role.", v1alpha1.AWSSpec{Role: first}, nil, []string{first}, nil},
		"NoAccount":  {"A missing ServiceAccount names the field.", v1alpha1.AWSSpec{}, nil, nil, provider.NewError(provider.Invalid, "spec.auth.serviceAccountRef: ServiceAccount shop/shop does not exist")},
		"None":       {"A missing role names the field, the ServiceAccount and the annotation.", v1alpha1.AWSSpec{}, of(""), nil, provider.NewError(provider.Invalid, "spec.role: is not set, and ServiceAccount shop has no annotation eks.amazonaws.com/role-arn; set one of them to the ARN of the IAM role that trusts the ServiceAccount")},
		"Name":       {"A name without the ARN is refused.", v1alpha1.AWSSpec{}, of("shop"), nil, provider.NewError(provider.Invalid, notValid)},
		"User":       {"The ARN of a user is refused.", v1alpha1.AWSSpec{}, of(user), nil, provider.NewError(provider.Invalid, notValid)},
		"Line":       {"A role with a line break is refused.", v1alpha1.AWSSpec{}, of(first + "\n"), nil, provider.NewError(provider.Invalid, notValid)},
		"Before":     {"Text before the ARN is refused.", v1alpha1.AWSSpec{}, of("x " + first), nil, provider.NewError(provider.Invalid, notValid)},
		"ExternalID": {"An external id needs the role in the spec.", v1alpha1.AWSSpec{ExternalID: "x"}, of(first), nil, provider.NewError(provider.Invalid, "spec.role: required with additionalRoles, externalID, sessionTags, sessionTagsPolicy or transitiveTagKeys")},
		"Untrusting": {"A role that does not trust the ServiceAccount names the annotation.", v1alpha1.AWSSpec{}, other, nil, provider.NewError(provider.Denied, annotation+": cannot assume role %s: %s", second, deniedToken)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := startSTS(t)
			k := good()
			k.annotations = tc.annotations
			tc.spec.Region, tc.spec.Auth = "us-east-1", byToken()
			before := tc.spec.DeepCopy()
			c, err := load(t, tc.spec, k)
			if err == nil {
				if _, err = c.AWS.Credentials.Retrieve(t.Context()); err != nil {
					err = c.Explain(err, "", nil)
				}
			}
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nerror: -want, +got:\n%s", tc.reason, diff)
			}
			var roles []string
			for _, s := range srv.Sessions() {
				roles = append(roles, s.RoleARN)
			}
			if diff := cmp.Diff(tc.roles, roles); diff != "" {
				t.Errorf("%s\nroles of the sessions: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, &tc.spec); diff != "" {
				t.Errorf("%s\nThe spec changed: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}
