package presence

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// MissingFieldsAnnotation is on the Lease of a Member whose cluster has an older CRD: it names the fields that the CRD does
// not have, by Kind. The API server drops these fields, so objects are served as if they were not set.
const MissingFieldsAnnotation = v1alpha1.Group + "/missing-fields"

// schemaPath is the schema of our API; see https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3.
const schemaPath = "/openapi/v3/apis/" + v1alpha1.Group + "/v1alpha1"

// holdingFields are the fields that hold an object back.
var holdingFields = []string{"ExternalSecret spec.suspend", "ExternalSecret spec.syncWindows", "PushSecret spec.dryRun", "PushSecret spec.suspend", "PushSecret spec.syncWindows"}

// A fieldCheck knows which of holdingFields the served schema does not have. It is safe for concurrent use.
type fieldCheck struct {
	// read returns the schema.
	read     func(ctx context.Context) ([]byte, error)
	interval time.Duration
	log      logr.Logger

	mu      sync.Mutex
	missing string
	// known is true after the first read.
	known bool
}

// addFieldCheck adds a fieldCheck to a manager.
func addFieldCheck(mgr manager.Manager, interval time.Duration) (*fieldCheck, error) {
	clients, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a discovery client")
	}
	f := &fieldCheck{interval: interval, log: mgr.GetLogger(), read: func(ctx context.Context) ([]byte, error) {
		return clients.RESTClient().Get().AbsPath(schemaPath).SetHeader("Accept", "application/json").DoRaw(ctx)
	}}
	return f, errors.Wrap(mgr.Add(f), "cannot add the check of the CRDs")
}

// NeedLeaderElection is false: each replica knows the schema.
func (f *fieldCheck) NeedLeaderElection() bool { return false }

// Start checks the schema until ctx ends. After an error, the last result stays.
func (f *fieldCheck) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := f.check(ctx); err != nil && ctx.Err() == nil {
			f.log.Error(err, "cannot check whether the CRDs have the fields that hold objects back")
		}
	}, f.interval)
	return nil
}

// check reads the schema once, and logs a change of the result.
func (f *fieldCheck) check(ctx context.Context) error {
	raw, err := f.read(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot read the schema of "+v1alpha1.Group)
	}
	missing, err := missingFields(raw)
	if err != nil {
		return err
	}
	f.mu.Lock()
	before := f.missing
	f.missing, f.known = missing, true
	f.mu.Unlock()
	if missing != "" && missing != before {
		f.log.Info("the CRDs are older than this module, so the API server drops these fields and their objects are not held back; upgrade the CRDs", "fields", missing)
	}
	return nil
}

// result returns the missing fields; before the first read, those that the Lease names.
func (f *fieldCheck) result(lease string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known {
		return lease
	}
	return f.missing
}

// missingFields returns those of holdingFields that a schema in OpenAPI's form does not have. A Kind that is not served
// is not missing a field.
func missingFields(raw []byte) (string, error) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Kinds []struct {
					Kind string `json:"kind"`
				} `json:"x-kubernetes-group-version-kind"`
				Properties map[string]struct {
					Properties map[string]json.RawMessage `json:"properties"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return "", errors.Wrap(err, "cannot decode the schema of "+v1alpha1.Group)
	}
	var missing []string
	for _, s := range doc.Components.Schemas {
		for _, f := range holdingFields {
			kind, name, _ := strings.Cut(f, " spec.")
			is := len(s.Kinds) == 1 && s.Kinds[0].Kind == kind
			if _, has := s.Properties["spec"].Properties[name]; is && !has {
				missing = append(missing, f)
			}
		}
	}
	slices.Sort(missing)
	return strings.Join(missing, ", "), nil
}
