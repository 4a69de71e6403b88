package pushsecret

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// generatedValues are the values that a generator made for an object. They are stored in a part, a Secret that the
// status records.
type generatedValues struct {
	client    client.Reader
	object    *v1alpha1.PushSecret
	generator v1alpha1.StoreRef
	memory    *sourceMemory
	now       time.Time
}

func (g *generatedValues) readVersions(ctx context.Context, to *versions) error {
	for _, s := range g.object.Status.Parts {
		if s.Name == "" {
			continue
		}
		ref, m := watch.SecretRef(g.object.Namespace, s.Name), resolve.SecretMetadata()
		if err := g.client.Get(ctx, ref.NamespacedName, m); client.IgnoreNotFound(err) != nil {
			return errors.Wrap(err, "cannot read the Secret of a contribution")
		}
		v := version{known: m.ResourceVersion}
		if rec, ok := handoff.Of(m.Annotations); ok && m.UID == s.UID && g.current(rec) {
			v.pushed = rec.Entries[handoff.ID(g.generator)].Version
		}
		to.refs[ref] = v
	}
	return nil
}

// current reports whether a part has the values that the object now wants of its generator. Under IfNotExists a part
// keeps its values, whatever refresh is requested.
func (g *generatedValues) current(rec handoff.Record) bool {
	request := g.valueRequest().Request
	if g.object.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists {
		request = ""
	}
	return rec.Serves(g.object.UID, g.generator, request)
}

func (g *generatedValues) valueRequest() kit.Attempt {
	return kit.Attempt{Generation: g.object.Generation, Request: g.object.Annotations[v1alpha1.RefreshRequestAnnotation]}
}

// gracePeriod is how long a request for values may be unanswered before that counts as a failure.
const gracePeriod = 30 * time.Second

// errNotMade means that a generator has not yet made values that were requested recently.
var errNotMade = provider.NewError(provider.Unavailable, "no values were generated yet")

// noRemoteChanges means that the operator of the generator makes no values now.
var noRemoteChanges = provider.Safe(provider.ErrNoRemoteChanges)

func (g *generatedValues) room() int64 { return room.One }

// read returns the values in the form of a Secret with the name of the object.
func (g *generatedValues) read(ctx context.Context, held *room.Held, is refs) ([]corev1.Secret, string, error) {
	missing := errNotMade
	if g.now.Sub(g.memory.since(g.valueRequest(), g.now)) > gracePeriod {
		missing = provider.NewError(provider.Unavailable, "%s %q: no values were generated yet; check that its module runs", g.generator.Kind, g.generator.Name)
	}
	if g.object.Spec.DryRun {
		missing = provider.NewError(provider.NotFound, "%s %q: there are no values to compare, and none are generated while spec.dryRun is true; set it to false to generate and push them", g.generator.Kind, g.generator.Name)
	}
	for _, s := range g.object.Status.Parts {
		if s.Message != "" {
			missing = &provider.Error{Class: provider.Class(s.ErrorClass), Message: s.Message}
		}
		if s.Reason == v1alpha1.ReasonNoRemoteChanges {
			missing = noRemoteChanges
		}
		part, err := handoff.Open(ctx, held, g.object, s)
		if err != nil {
			return nil, "", err
		}
		if !g.current(part.Record) {
			continue
		}
		a, ok := handoff.Answer(part.Secret, g.generator)
		if !ok {
			continue
		}
		is[watch.SecretRef(g.object.Namespace, s.Name)] = version{part.Secret.ResourceVersion, a.Value.Version}
		out := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.object.Namespace, Name: g.object.Name}, Data: map[string][]byte{}}
		for _, v := range a.Found {
			out.Data[v.Key] = v.Data
		}
		return []corev1.Secret{out}, a.Value.Version, nil
	}
	return nil, "", missing
}
