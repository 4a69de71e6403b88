package migrate

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	utilyaml "sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/manifests"
	keys_manifests "github.com/direct-secrets/direct-secrets/generator-keys/manifests"
	password_manifests "github.com/direct-secrets/direct-secrets/generator-password/manifests"
	aws_manifests "github.com/direct-secrets/direct-secrets/provider-aws/manifests"
	azure_manifests "github.com/direct-secrets/direct-secrets/provider-azure/manifests"
	gcp_manifests "github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
	kubernetes_manifests "github.com/direct-secrets/direct-secrets/provider-kubernetes/manifests"
	onepassword_manifests "github.com/direct-secrets/direct-secrets/provider-onepassword/manifests"
	vault_manifests "github.com/direct-secrets/direct-secrets/provider-vault/manifests"
)

// A schema is what an API server checks objects of a Kind by.
type schema struct {
	structural *structuralschema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// schemas are those of the Kinds that were asked for; each is a func() (*schema, error).
var schemas sync.Map

// schemaOf returns the schema of a Kind of direct-secrets.
func schemaOf(kind string) (*schema, error) {
	load, _ := schemas.LoadOrStore(kind, sync.OnceValues(func() (*schema, error) { return loadSchema(kind) }))
	return load.(func() (*schema, error))()
}

func loadSchema(kind string) (*schema, error) {
	suffix := "_" + strings.TrimSuffix(strings.ToLower(kind), "s") + "s.yaml"
	for _, crds := range []embed.FS{manifests.CRDs, aws_manifests.CRDs, vault_manifests.CRDs, gcp_manifests.CRDs, kubernetes_manifests.CRDs, onepassword_manifests.CRDs, azure_manifests.CRDs, password_manifests.CRDs, keys_manifests.CRDs} {
		files, err := crds.ReadDir("crds")
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), suffix) {
				raw, err := crds.ReadFile("crds/" + f.Name())
				if err != nil {
					return nil, err
				}
				return parseSchema(raw)
			}
		}
	}
	return nil, fmt.Errorf("there is no CRD of the Kind %s", kind)
}

func parseSchema(raw []byte) (*schema, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := utilyaml.Unmarshal(bytes.TrimPrefix(raw, []byte("---\n")), &crd); err != nil {
		return nil, fmt.Errorf("cannot read a CRD: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("cannot read the schema of %s: %w", crd.Name, err)
	}
	s := &schema{}
	var err error
	if s.structural, err = structuralschema.NewStructural(&props); err != nil {
		return nil, fmt.Errorf("cannot read the schema of %s: %w", crd.Name, err)
	}
	if s.values, _, err = validation.NewSchemaValidator(&props); err != nil {
		return nil, fmt.Errorf("cannot read the schema of %s: %w", crd.Name, err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// faults returns what an API server would not take of an object.
func (s *schema) faults(object map[string]any) fielderrors.ErrorList {
	var all fielderrors.ErrorList
	unknown := pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		all = append(all, &fielderrors.Error{Type: fielderrors.ErrorTypeForbidden, Field: path, Detail: "there is no such field"})
	}
	all = append(all, validation.ValidateCustomResource(nil, object, s.values)...)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(all) == 0 { // Rules count on the types.
		all, _ = s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	all = slices.DeleteFunc(all, func(e *fielderrors.Error) bool { return notKnown(object, e.Field) })
	slices.SortStableFunc(all, func(a, b *fielderrors.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	return all
}

// notKnown reports whether the value of a field, such as spec.data[0].remoteRef.key, is made when the manifest is applied.
func notKnown(object any, path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch of := object.(type) {
		case map[string]any:
			object = of[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(of) {
				object = of[i]
			}
		}
	}
	text, _ := object.(string)
	return unknown(text)
}

// verify reports what an API server would not take of the result, so that what is written can be applied.
func (o *object) verify() {
	if o.verdict() == Unsupported {
		return
	}
	for _, root := range o.roots() {
		if text(root, "kind") == "" {
			continue // A part of the results of other objects.
		}
		found, err := faults(root)
		if err != nil {
			o.add(Finding{Verdict: Unsupported, Reason: err.Error(), Todo: "convert the object by hand"})
		}
		if root != o.out.root || groupOf(o.APIVersion) == groupCSI {
			o.refuseResult(root, found)
			continue
		}
		o.refuseFaults(found)
	}
}

// refuseResult reports what an API server would not take of a result in front of that of the object.
func (o *object) refuseResult(root *yaml.Node, found fielderrors.ErrorList) {
	for _, f := range found {
		o.add(Finding{To: f.Field, Verdict: Unsupported, Reason: fmt.Sprintf("direct-secrets does not take the %s that it needs: %s", text(root, "kind"), f.Error()), Todo: "correct it, and convert it again"})
	}
}

// refuseFaults reports what an API server would not take.
func (o *object) refuseFaults(found fielderrors.ErrorList) {
	for _, f := range found {
		reason := "direct-secrets does not take the value: " + strings.TrimPrefix(f.Detail, f.Field+" in body ")
		if f.Type == fielderrors.ErrorTypeRequired {
			reason = "it is missing, and direct-secrets requires it"
		}
		o.add(Finding{Field: o.origin(f.Field), To: f.Field, Verdict: Unsupported, Reason: reason, Todo: "correct it, and convert it again"})
	}
}

// faults returns what an API server would not take of a result.
func faults(root *yaml.Node) (fielderrors.ErrorList, error) {
	s, err := schemaOf(text(root, "kind"))
	if err != nil {
		return nil, err
	}
	raw, err := encode(root, "")
	if err != nil {
		return nil, err
	}
	if raw, err = utilyaml.YAMLToJSON(raw); err != nil {
		return nil, fmt.Errorf("cannot read the result: %w", err)
	}
	var result map[string]any
	if err := utiljson.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("cannot read the result: %w", err)
	}
	return s.faults(result), nil
}

// origin returns the field that became a field of the result, or the nearest that holds it. If there is none, the path
// is that of the result, which the original often has, too.
func (o *object) origin(path string) string {
	for to := path; ; {
		at := slices.IndexFunc(o.findings, func(f Finding) bool { return f.To == to && f.Field != "" })
		if at >= 0 {
			return o.findings[at].Field
		}
		end := strings.LastIndexAny(to, ".[")
		if end < 0 {
			return path
		}
		to = to[:end]
	}
}
