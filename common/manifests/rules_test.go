package manifests_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

var (
	cluster *controlplane.ControlPlane
	api     client.Client
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) (err error) {
		cluster = c
		api, err = client.New(c.Config(), client.Options{})
		return err
	}, controlplane.WithCRDs(controlplane.Manifests(fake.CRDs, manifests.CRDs)...))
}

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

// A refusal is a spec that the API server refuses, with the message.
type refusal struct {
	reason string
	kind   string
	spec   string
	want   string // It is empty if the spec is accepted.
}

const (
	pushes = "storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a}}"
	reads  = "storeRef: {kind: FakeStore, name: a}"
)

var refusals = map[string]refusal{
	"name-line":       {"A name with a line break is refused.", "ExternalSecret", `{storeRef: {kind: FakeStore, name: "a\nb"}}`, "storeRef.name"},
	"name-line-end":   {"So is one at the end.", "ExternalSecret", `{storeRef: {kind: FakeStore, name: "a\n"}}`, "storeRef.name"},
	"name-escape":     {"An escape sequence of a terminal is refused.", "ExternalSecret", `{storeRef: {kind: FakeStore, name: "a\e[2J"}}`, "storeRef.name"},
	"name-empty":      {"A name is required.", "ExternalSecret", `{storeRef: {kind: FakeStore, name: ''}}`, "storeRef.name"},
	"name-dots":       {"A name of an object can have dots and digits.", "ExternalSecret", `{storeRef: {apiVersion: a-b.direct-secrets.io/v1alpha1, kind: FakeStore, name: 1.a-b.c}}`, ""},
	"name-kind":       {"A Kind has letters and digits.", "ExternalSecret", `{storeRef: {kind: "Fake\eStore", name: a}}`, "storeRef.kind"},
	"name-group":      {"So has a group.", "ExternalSecret", `{storeRef: {apiVersion: "a\nb/v1", kind: FakeStore, name: a}}`, "storeRef.apiVersion"},
	"name-entry":      {"A reference of an entry has the same rules.", "ExternalSecret", `{data: [{secretKey: a, remoteRef: {key: a}, sourceRef: {storeRef: {kind: FakeStore, name: "a\nb"}}}]}`, "storeRef.name"},
	"name-generator":  {"So has one to a generator.", "ExternalSecret", `{dataFrom: [{sourceRef: {generatorRef: {kind: "A\nB", name: a}}}]}`, "generatorRef.kind"},
	"name-template":   {"So has one to a template.", "ExternalSecret", `{` + reads + `, target: {template: {templateFrom: [{configMap: {name: "a\nb", items: [{key: a}]}}]}}}`, "configMap.name"},
	"name-restart":    {"So has one to a workload.", "ExternalSecret", `{` + reads + `, target: {restart: {workloads: [{kind: Deployment, name: "a\nb"}]}}}`, "workloads[0].name"},
	"name-push":       {"So has one to a store of a push.", "PushSecret", `{storeRefs: [{kind: FakeStore, name: "a\nb"}], selector: {secret: {name: a}}}`, "storeRefs[0].name"},
	"name-push-kind":  {"So has its Kind.", "PushSecret", `{storeRefs: [{kind: "Fake\nStore", name: a}], selector: {secret: {name: a}}}`, "storeRefs[0].kind"},
	"name-push-group": {"So has its group.", "PushSecret", `{storeRefs: [{apiVersion: "a\eb/v1", kind: FakeStore, name: a}], selector: {secret: {name: a}}}`, "storeRefs[0].apiVersion"},
	"name-pushed":     {"So has one to a pushed Secret.", "PushSecret", `{storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: "a\nb"}}}`, "secret.name"},
	"name-receiver":   {"So has one to a store of a receiver.", "EventReceiver", `{secretRef: {name: a, key: b}, stores: [{kind: FakeStore, name: "a\nb"}]}`, "stores[0].name"},
	"name-key":        {"So has one to the key of a receiver.", "EventReceiver", `{secretRef: {name: "a\nb", key: b}, stores: [{kind: FakeStore, name: a}]}`, "secretRef.name"},
	"name-namespace":  {"So has its namespace.", "ClusterEventReceiver", `{secretRef: {name: a, key: b, namespace: "a\nb"}, stores: [{kind: FakeStore, name: a}]}`, "secretRef.namespace"},

	"interval-shortest":   {"The minimum interval is accepted.", "ExternalSecret", "{refreshInterval: 1s, " + reads + "}", ""},
	"interval-zero":       {"Zero is accepted, because it has a special meaning.", "ExternalSecret", "{refreshInterval: '0', " + reads + "}", ""},
	"interval-empty":      {"An empty interval counts as unset.", "ExternalSecret", "{refreshInterval: '', " + reads + "}", ""},
	"interval":            {"An interval of a millisecond is refused.", "ExternalSecret", "{refreshInterval: 1ms, " + reads + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-below":      {"An interval just below the minimum is refused.", "ExternalSecret", "{refreshInterval: 999ms, " + reads + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-push":       {"The minimum applies to pushes.", "PushSecret", "{refreshInterval: 1ms, " + pushes + "}", "refreshInterval must be 0 or at least 1s"},
	"interval-push-never": {"A push accepts zero, which means never to compare.", "PushSecret", "{refreshInterval: 0s, " + pushes + "}", ""},
	"interval-fan-out":    {"The minimum applies to each object of a fan-out.", "ClusterExternalSecret", "{externalSecretSpec: {refreshInterval: 1ms, " + reads + "}}", "refreshInterval must be 0 or at least 1s"},
	"interval-store":      {"The minimum applies to the validation of stores.", "FakeStore", "{backend: a, validationInterval: 1ms}", "validationInterval must be at least 1s"},
	"interval-generator":  {"The minimum applies to the validation of generators.", "FakeGenerator", "{backend: a, validationInterval: 1ms}", "validationInterval must be at least 1s"},
	"interval-store-zero": {"Zero is refused: a store cannot be validated never, or without a pause.", "FakeStore", "{backend: a, validationInterval: '0'}", "validationInterval must be at least 1s"},
	"rotation":            {"The minimum applies to the rotation of credentials.", "FakeGenerator", "{backend: a, rotationInterval: 1ms}", "rotationInterval must be 0 or at least 1s"},

	"template-push":             {"A PushSecret accepts a template of data.", "PushSecret", "{" + pushes + ", template: {type: '', metadata: {}, data: {a: b}, templateFrom: [{literal: a}, {literal: a, target: Data}]}}", ""},
	"template-push-type":        {"A PushSecret refuses a type, because a remote secret has none.", "PushSecret", "{" + pushes + ", template: {type: Opaque}}", "template.type has no effect"},
	"template-push-labels":      {"A PushSecret refuses labels of a Secret.", "PushSecret", "{" + pushes + ", template: {metadata: {labels: {a: b}}}}", "template.metadata has no effect"},
	"template-push-annotations": {"A PushSecret refuses annotations of a Secret.", "PushSecret", "{" + pushes + ", template: {metadata: {annotations: {a: b}}}}", "template.metadata has no effect"},
	"template-push-from":        {"A PushSecret refuses labels and annotations from a text.", "PushSecret", "{" + pushes + ", template: {templateFrom: [{literal: a, target: Labels}]}}", "template.templateFrom.target must be Data"},
	"template-push-fan-out":     {"A ClusterPushSecret refuses them as well.", "ClusterPushSecret", "{pushSecretSpec: {" + pushes + ", template: {type: Opaque}}}", "template.type has no effect"},
	"template":                  {"An ExternalSecret accepts type, labels and annotations.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {template: {type: Opaque, metadata: {labels: {a: b}}, templateFrom: [{literal: a, target: Labels}]}}}", ""},

	"store-none":         {"An object that names no store is refused.", "ExternalSecret", "{dataFrom: [{extract: {key: a}}]}", "set storeRef, or sourceRef in each entry of data and dataFrom"},
	"merge-json":         {"A merge to JSON needs a key.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: JSON, into: a}}]}]}", ""},
	"store-none-entry":   {"So is one with an entry that names none.", "ExternalSecret", "{data: [{secretKey: a, remoteRef: {key: a}, sourceRef: {storeRef: {kind: FakeStore, name: s}}}, {secretKey: b, remoteRef: {key: b}}]}", "set storeRef, or sourceRef in each entry of data and dataFrom"},
	"store-entry":        {"A store in each entry is enough.", "ExternalSecret", "{data: [{secretKey: a, remoteRef: {key: a}, sourceRef: {storeRef: {kind: FakeStore, name: s}}}]}", ""},
	"merge-extract":      {"A merge with Extract needs no key.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: Extract, into: ''}}]}]}", ""},
	"merge-extract-into": {"A merge with Extract refuses a key.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{merge: {strategy: Extract, into: a}}]}]}", "merge.into has no effect"},
	"merge-into":         {"A merge with the default strategy, Extract, refuses a key.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{merge: {into: a}}]}]}", "merge.into has no effect"},
	"merge-into-push":    {"A PushSecret has the same rules for merges.", "PushSecret", "{" + pushes + ", dataTo: [{rewrite: [{merge: {into: a}}]}]}", "merge.into has no effect"},

	"cleanup":        {"cleanupPolicy is refused for a Secret that is not owned.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: Orphan, cleanupPolicy: Never}}", "cleanupPolicy needs creationPolicy Owner"},
	"delete-shared":  {"deletionPolicy Delete is refused for a shared Secret.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: Merge, deletionPolicy: Delete}}", "deletionPolicy Delete needs creationPolicy Owner or Orphan"},
	"delete-either":  {"It is refused for one that may be shared.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: CreateOrMerge, deletionPolicy: Delete}}", "deletionPolicy Delete needs creationPolicy Owner or Orphan"},
	"delete-none":    {"It is refused without a Secret.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: None, deletionPolicy: Delete}}", "deletionPolicy Delete needs creationPolicy Owner or Orphan"},
	"delete-orphan":  {"All policies are accepted for a Secret that is created.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: Orphan, deletionPolicy: Delete, immutable: true}}", ""},
	"delete-owner":   {"So is a cleanupPolicy if it is owned.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: Owner, deletionPolicy: Delete, cleanupPolicy: Never, immutable: true}}", ""},
	"merge-none":     {"deletionPolicy Merge is refused without a Secret.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: None, deletionPolicy: Merge}}", "deletionPolicy Merge needs a creationPolicy that writes a Secret"},
	"freeze-shared":  {"immutable is refused for a shared Secret.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {creationPolicy: Merge, immutable: true}}", "immutable needs creationPolicy Owner or Orphan"},
	"restart-both":   {"Workloads are listed or found, not both.", "ExternalSecret", "{target: {restart: {auto: true, workloads: [{kind: Deployment, name: a}]}}, " + reads + "}", "set either auto: true or workloads"},
	"restart-none":   {"A restart needs workloads.", "ExternalSecret", "{target: {restart: {window: 5s}}, " + reads + "}", "set either auto: true or workloads"},
	"restart-window": {"The window has a maximum.", "ExternalSecret", "{target: {restart: {auto: true, window: 61m}}, " + reads + "}", "window must be at most 1h"},
	"restart-read":   {"Without a Secret nothing restarts.", "ExternalSecret", "{target: {creationPolicy: None, restart: {auto: true}}, " + reads + "}", "restart needs a creationPolicy that writes a Secret"},
	"restart":        {"Each Kind of workloads is accepted, also for many namespaces.", "ClusterExternalSecret", "{externalSecretSpec: {target: {restart: {window: 1h, workloads: [{kind: Deployment, name: a}, {kind: StatefulSet, name: a}, {kind: DaemonSet, name: a}, {kind: Rollout, name: a}]}}, " + reads + "}}", ""},
	"duration":       {"A duration needs a unit.", "ExternalSecret", "{refreshInterval: '15', " + reads + "}", "must be a duration such as 30s, 15m or 1h"},
	"duration-below": {"A negative duration is refused.", "ExternalSecret", "{refreshInterval: -1m, " + reads + "}", "not negative"},
	"duration-odd":   {"A duration in Go's format is accepted.", "ExternalSecret", "{refreshInterval: 1h2m3.5s, " + reads + "}", ""},
	"stores-both":    {"A name together with a selector of stores is refused.", "PushSecret", "{storeRefs: [{kind: FakeStore, name: a, labelSelector: {}}], selector: {secret: {name: a}}}", "set either name or labelSelector"},
	"stores-none":    {"A store reference needs a name or a selector.", "PushSecret", "{storeRefs: [{kind: FakeStore}], selector: {secret: {name: a}}}", "set either name or labelSelector"},
	"sources-both":   {"A Secret together with a generator is refused.", "PushSecret", "{storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a}, generatorRef: {kind: FakeGenerator, name: a}}}", "set either secret or generatorRef"},
	"secrets-both":   {"A Secret's name together with a selector is refused.", "PushSecret", "{storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a, selector: {}}}}", "set either name or selector"},

	"template-from":      {"Each entry has one source of templates.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {template: {templateFrom: [{literal: a}, {configMap: {name: a, items: [{key: a}]}}]}}}", ""},
	"template-from-both": {"An entry with two sources of templates is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {template: {templateFrom: [{literal: a, secret: {name: a, items: [{key: a}]}}]}}}", "set exactly one of configMap, secret and literal"},
	"template-from-none": {"An entry without a source of templates is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, target: {template: {templateFrom: [{target: Data}]}}}", "set exactly one of configMap, secret and literal"},
	"rewrite":            {"Each step of a rewrite has one change.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{regexp: {source: a, target: b}}, {transform: {template: a}}]}]}", ""},
	"rewrite-both":       {"A step with two changes is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{regexp: {source: a, target: b}, transform: {template: a}}]}]}", "set exactly one of regexp, transform and merge"},
	"rewrite-none":       {"A step without a change is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, rewrite: [{}]}]}", "set exactly one of regexp, transform and merge"},
	"from-generator":     {"A generator needs no further field.", "ExternalSecret", "{dataFrom: [{sourceRef: {generatorRef: {kind: FakeGenerator, name: a}}}]}", ""},
	"from-none":          {"A store without extract or find is refused.", "ExternalSecret", "{dataFrom: [{sourceRef: {storeRef: {kind: FakeStore, name: a}}}]}", "set exactly one of extract, find and sourceRef.generatorRef"},
	"from-both":          {"extract together with find is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, find: {path: a}}]}", "set exactly one of extract, find and sourceRef.generatorRef"},
	"from-generated":     {"extract together with a generator is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, sourceRef: {generatorRef: {kind: FakeGenerator, name: a}}}]}", "set exactly one of extract, find and sourceRef.generatorRef"},
	"from-optional":      {"optional is accepted for extract and find.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a}, optional: true}, {find: {path: a}, optional: true}]}", ""},
	"from-always":        {"optional is refused for a generator.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{sourceRef: {generatorRef: {kind: FakeGenerator, name: a}}, optional: true}]}", "optional has no effect with a generator"},
	"source-both":        {"A store together with a generator is refused.", "ExternalSecret", "{dataFrom: [{sourceRef: {storeRef: {kind: FakeStore, name: a}, generatorRef: {kind: FakeGenerator, name: a}}}]}", "set either storeRef or generatorRef"},
	"find-none":          {"A find without conditions is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{find: {decodingStrategy: Base64}}]}", "set path, name or tags"},
	"find-tags":          {"A find by tags is accepted.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{find: {tags: {a: b}}}]}", ""},

	"windows":              {"All fields of sync windows are accepted.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: deny, windows: [{schedule: '0 2 * * MON-FRI', duration: 1h30m, timeZone: Europe/Berlin}, {kind: allow, schedule: '@daily', duration: 24h, timeZone: Etc/GMT+1}, {kind: '', schedule: '@weekly', duration: 1m, timeZone: ''}]}}", ""},
	"windows-zone":         {"A time zone in the schedule is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: 'TZ=UTC 0 2 * * *', duration: 1h}]}}", "schedule cannot have a time zone: set timeZone"},
	"windows-every":        {"An interval has no fixed times.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: '@every 6h', duration: 1h}]}}", "@every has no fixed times"},
	"windows-short":        {"A window is open for at least a minute.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: '@daily', duration: 59s}]}}", "duration must be at least 1m"},
	"windows-push":         {"A PushSecret has the same rules.", "PushSecret", "{storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a}}, syncWindows: {kind: allow, windows: [{schedule: '@daily', duration: '0'}]}}", "duration must be at least 1m"},
	"windows-fan-out":      {"So has each object of a fan-out.", "ClusterExternalSecret", "{externalSecretSpec: {storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: '@daily', duration: 1s}]}}}", "duration must be at least 1m"},
	"windows-fan-out-push": {"So has each push of a fan-out.", "ClusterPushSecret", "{pushSecretSpec: {storeRefs: [{kind: FakeStore, name: a}], selector: {secret: {name: a}}, syncWindows: {kind: allow, windows: [{schedule: '@every 1h', duration: 1h}]}}}", "@every has no fixed times"},
	"windows-kind-empty":   {"The kind is required.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: '', windows: [{schedule: '@daily', duration: 1h}]}}", "syncWindows.kind: Invalid value"},
	"windows-duration":     {"A duration is required.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: '@daily', duration: ''}]}}", "duration: Invalid value"},
	"windows-zone-path":    {"A time zone is not a path.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, syncWindows: {kind: allow, windows: [{schedule: '@daily', duration: 1h, timeZone: ../Berlin}]}}", "timeZone: Invalid value"},

	"target-config-map": {"A ConfigMap is accepted.", "ExternalSecret", "{" + reads + ", target: {kind: ConfigMap}}", ""},
	"target-type":       {"A ConfigMap has no type.", "ExternalSecret", "{" + reads + ", target: {kind: ConfigMap, template: {type: a}}}", "a ConfigMap has no type: remove template.type"},
	"target-generated":  {"Generated values are secret.", "ExternalSecret", "{target: {kind: ConfigMap}, dataFrom: [{sourceRef: {generatorRef: {kind: FakeGenerator, name: a}}}]}", "generated values are secret: write them to a Secret"},

	"target-name":       {"The name of a Secret is accepted.", "ExternalSecret", "{" + reads + ", target: {name: a-b.c}}", ""},
	"target-name-empty": {"An empty name counts as unset.", "ExternalSecret", "{" + reads + ", target: {name: ''}}", ""},
	"target-name-upper": {"Upper case letters are refused.", "ExternalSecret", "{" + reads + ", target: {name: Db}}", "must be the name of a Secret"},
	"target-name-dots":  {"Two dots in a row are refused.", "ExternalSecret", "{" + reads + ", target: {name: a..b}}", "must be the name of a Secret"},
	"push-key":          {"A key that no Secret can have is refused.", "PushSecret", "{" + pushes + ", data: [{match: {secretKey: a/b, remoteRef: {remoteKey: a}}}]}", "spec.data[0].match.secretKey: Invalid value"},
	"target-name-path":  {"A slash is refused.", "ClusterExternalSecret", "{externalSecretSpec: {" + reads + ", target: {name: a/b}}}", "must be the name of a Secret"},
	"store-name-empty":  {"A reference without a name is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: ''}}", "spec.storeRef.name: Invalid value"},
	"store-kind-empty":  {"A reference without a Kind is refused.", "PushSecret", "{storeRefs: [{kind: '', name: a}], selector: {secret: {name: a}}}", "spec.storeRefs[0].kind: Invalid value"},

	"secret-key":       {"All characters that a Secret accepts are accepted.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a-Z_0.9, remoteRef: {key: a}}, {secretKey: .env, remoteRef: {key: a}}]}", ""},
	"secret-key-slash": {"A slash is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a/b, remoteRef: {key: a}}]}", "secretKey must have letters"},
	"secret-key-up":    {"Two leading dots are refused: they would lead out of a volume.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: ..a, remoteRef: {key: a}}]}", "must not be '.' and must not begin with '..'"},
	"secret-key-dot":   {"A single dot is refused: it cannot be a file of a volume.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: ., remoteRef: {key: a}}]}", "must not be '.'"},
	"secret-key-empty": {"An empty key is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: '', remoteRef: {key: a}}]}", "secretKey: Invalid value"},
	"secret-key-long":  {"A key of more than 253 characters is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: " + strings.Repeat("a", 254) + ", remoteRef: {key: a}}]}", "may not be more than 253"},
	"key-empty":        {"An empty remote key is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a, remoteRef: {key: ''}}]}", "key: Invalid value"},
	"key-long":         {"A remote key of more than 2048 characters is refused.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a, remoteRef: {key: " + strings.Repeat("a", 2049) + "}}]}", "may not be more than 2048"},

	"conversion":         {"conversionStrategy is refused for an entry with a secretKey.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a, remoteRef: {key: a, conversionStrategy: Unicode}}]}", "conversionStrategy Unicode has no effect in data"},
	"conversion-default": {"The default conversionStrategy is accepted, because tools write it.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, data: [{secretKey: a, remoteRef: {key: a, conversionStrategy: Default}}]}", ""},
	"conversion-extract": {"conversionStrategy is accepted for extracted keys.", "ExternalSecret", "{storeRef: {kind: FakeStore, name: s}, dataFrom: [{extract: {key: a, conversionStrategy: Unicode}}]}", ""},
}

func (r refusal) object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	group := "direct-secrets.io/v1alpha1"
	if strings.Contains(r.kind, "Fake") {
		group = "fake." + group
	}
	o := &unstructured.Unstructured{}
	text := "{apiVersion: " + group + ", kind: " + r.kind + ", metadata: {name: " + name + "}, spec: " + r.spec + "}"
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !strings.HasPrefix(r.kind, "Cluster") {
		o.SetNamespace("default")
	}
	return o
}

// TestRules sends each spec to the API server.
func TestRules(t *testing.T) {
	var answers []string
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			err := api.Create(t.Context(), tc.object(t, name), client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: the API server has refused it: %v", tc.reason, err)
			case tc.want != "" && (!kerrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: the API server returned %v, want %q", tc.reason, err, tc.want)
			case tc.want != "":
				answers = append(answers, err.Error())
				t.Logf("%s %s\n%s", tc.kind, tc.spec, err)
			}
		})
	}
	for from, to := range map[string]string{"ConfigMap": "Secret", "Secret": "ConfigMap"} {
		t.Run("target-kind-of-"+strings.ToLower(from), func(t *testing.T) {
			o := refusal{kind: "ExternalSecret", spec: "{" + reads + ", target: {kind: " + from + "}}"}.object(t, "from-"+strings.ToLower(from))
			if err := api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			err := api.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"target":{"kind":"`+to+`"}}}`)), client.DryRunAll)
			if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "target.kind cannot be changed") {
				t.Fatalf("a %s becomes a %s: %v", from, to, err)
			}
			answers = append(answers, err.Error())
		})
	}
	all, err := operatortest.Rules(manifests.CRDs, fake.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range operatortest.Unshown(all, answers) {
		t.Errorf("no example breaks the rule %q", rule)
	}
}

// withoutRules returns CRDs without their rules.
func withoutRules(t *testing.T, crds [][]byte) (old [][]byte) {
	t.Helper()
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, rule := range []string{"x-kubernetes-validations", "minLength", "maxLength", "pattern", "maxProperties"} {
				delete(v, rule)
			}
			for _, child := range v {
				strip(child)
			}
		case []any:
			for _, child := range v {
				strip(child)
			}
		}
	}
	for _, crd := range crds {
		var v map[string]any
		if err := yaml.Unmarshal(crd, &v); err != nil {
			t.Fatal(err)
		}
		strip(v)
		raw, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, raw)
	}
	return old
}

// TestRulesOfUpgrades stores objects that break the rules, before the CRDs have rules. After the upgrade it can still
// write the status of each object, remove its finalizer, and delete it. Only a field with a rule cannot be changed to
// another invalid value.
func TestRulesOfUpgrades(t *testing.T) {
	crds := controlplane.Manifests(fake.CRDs, manifests.CRDs)
	install := func(crds [][]byte) {
		t.Helper()
		if err := cluster.InstallCRDs(context.Background(), crds...); err != nil {
			t.Fatal(err)
		}
	}
	merge := func(body string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(body))
	}
	t.Cleanup(func() { install(crds) })
	install(withoutRules(t, crds))
	stored := map[string]*unstructured.Unstructured{}
	for name, tc := range refusals {
		if tc.want == "" {
			continue
		}
		o := tc.object(t, name)
		o.SetFinalizers([]string{"direct-secrets.io/test"})
		// The API server needs a moment until it uses a changed CRD.
		controlplane.Eventually(t, func() string {
			if err := api.Create(t.Context(), o); err != nil && !kerrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		stored[name] = o
	}
	install(crds)
	for name, tc := range refusals {
		if tc.want == "" {
			continue
		}
		controlplane.Eventually(t, func() string {
			if api.Create(t.Context(), tc.object(t, name+"-new"), client.DryRunAll) == nil {
				return name + ": the rule is not in force"
			}
			return ""
		})
	}
	for name, o := range stored {
		t.Run(name, func(t *testing.T) {
			if err := api.Status().Patch(t.Context(), o, merge(`{"status":{"observedGeneration":1}}`)); err != nil {
				t.Errorf("its status: %v", err)
			}
			if err := api.Patch(t.Context(), o, merge(`{"metadata":{"labels":{"a":"b"}}}`)); err != nil {
				t.Errorf("its labels: %v", err)
			}
			whole := o.DeepCopy()
			if err := api.Update(t.Context(), whole); err != nil {
				t.Errorf("the whole object, unchanged: %v", err)
			}
			if err := api.Delete(t.Context(), o); err != nil {
				t.Errorf("its deletion: %v", err)
			}
			if err := api.Patch(t.Context(), o, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
				t.Errorf("its finalizer: %v", err)
			}
		})
	}
}

// TestRulesAreServed checks that withoutRules removes something; otherwise TestRulesOfUpgrades would prove nothing.
func TestRulesAreServed(t *testing.T) {
	for _, crd := range controlplane.Manifests(manifests.CRDs) {
		if !bytes.Contains(crd, []byte("x-kubernetes-validations")) {
			t.Errorf("a CRD has no rule: %.80s", crd)
		}
	}
}
