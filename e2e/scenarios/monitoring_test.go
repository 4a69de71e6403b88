//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	alertsFile    = "../../charts/direct-secrets/files/alerts.yaml"
	dashboardFile = "../../charts/direct-secrets/files/dashboard.json"
	operatorPage  = "../../docs/operate/operator.md"
)

type alertRules struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"rules"`
}

func readAlerts(t *testing.T) alertRules {
	t.Helper()
	raw, err := os.ReadFile(alertsFile)
	must(t, err)
	var rules alertRules
	must(t, yaml.UnmarshalStrict(raw, &rules))
	return rules
}

// quick replaces parts of the rules by shorter times, so that an alert takes only seconds.
var quick = []struct{ as, in string }{
	{"directsecrets_out_of_step_seconds) > 900", "directsecrets_out_of_step_seconds) > 5"},
	{"directsecrets_failing_since_timestamp_seconds) > 900", "directsecrets_failing_since_timestamp_seconds) > 5"},
	{"directsecrets_deletion_pending_seconds) > 900", "directsecrets_deletion_pending_seconds) > 5"},
	{"directsecrets_queue_oldest_waiting_seconds) > 120", "directsecrets_queue_oldest_waiting_seconds) > 5"},
	{"calls_total{result=\"Throttled\"}[5m]", "calls_total{result=\"Throttled\"}[20s]"},
	{"calls_total[5m]", "calls_total[20s]"},
	{"build_info[1h]", "build_info[1m]"},
	{"directsecrets_events_received_total[1d]", "directsecrets_events_received_total[20s]"},
	{"directsecrets_changes_found_total{cause=\"Polling\"}[1d]", "directsecrets_changes_found_total{cause=\"Polling\"}[20s]"},
	{"directsecrets_event_lag_seconds_bucket{le=~\"60|60[.]0\"}[15m]", "directsecrets_event_lag_seconds_bucket{le=\"1.0\"}[20s]"},
	{"directsecrets_event_lag_seconds_count[15m]", "directsecrets_event_lag_seconds_count[20s]"},
}

// TestMonitoring scrapes running modules into Prometheus' own storage, and evaluates the alerts of the chart.
// Without a problem no alert fires. Each alert fires for a real cause, and stops when it is fixed. Every query
// of the alerts and of the dashboard has a result, the page on metrics lists all metrics, and no label contains
// a secret. TestAlerts of the charts tests how long a condition must last before an alert.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	m := newMonitoring(t)
	defer m.explain()
	m.healthy()
	m.quiet()
	for _, alertCase := range []struct {
		alert     string
		alertCase func(alert string)
	}{
		{"DirectSecretsStoreFailing", m.denied},
		{"DirectSecretsProviderThrottled", m.throttled},
		{"DirectSecretsStoreFailing", m.absentClass},
		{"DirectSecretsEventsSilent", m.silent},
		{"DirectSecretsEventsLate", m.late},
		{"DirectSecretsModuleNotRunning", m.absentModule},
		{"DirectSecretsDeletionStuck", m.lingering},
		{"DirectSecretsRestartsFailing", m.unrestarted},
		{"DirectSecretsSharedDutiesNotHeld", m.undone},
		{"DirectSecretsNoLeader", m.noLeader},
		{"DirectSecretsQueueStuck", m.stuck},
		{"DirectSecretsOperatorAbsent", m.stopped},
	} {
		t.Run(alertCase.alert, func(t *testing.T) {
			m.T = t
			alertCase.alertCase(alertCase.alert)
		})
		m.T = t
	}
	if diff := cmp.Diff(m.alerts, m.fired); diff != "" {
		t.Errorf("alerts that have fired: -want, +got:\n%s", diff)
	}
	m.queries()
	m.documented()
	m.showsNoSecret()
}

// planted are texts that no label may contain.
const (
	plantedNamespace = "planted-namespace"
	plantedObject    = "planted-object"
	plantedStore     = "planted-store"
	plantedRemote    = "planted/remote"
	plantedKey       = "planted-secret-key"
	plantedValue     = "planted-value"
)

// operatorsOf returns the namespace of the operators that serve a namespace. Metrics can contain it, as a
// ServiceMonitor adds it.
func operatorsOf(namespace string) string {
	return strings.Replace(namespace, plantedNamespace, "watched-operators", 1)
}

type monitoring struct {
	*testing.T
	// whole is the whole test: processes that a case starts keep running.
	whole      *testing.T
	aws        *emulator.Server
	prometheus *prometheus
	scraped    map[string]*stack.Process
	scrapedAt  time.Time
	// alerts are the names of all alerts, fired of those that have fired, critical of those that page the
	// on-call engineer.
	alerts, fired, critical map[string]bool
	// rules are the expressions of the alerts, with shorter times.
	rules map[string]string
	// pages are the metrics pages that modules have served, by module.
	pages map[string]string
}

func newMonitoring(t *testing.T) *monitoring {
	t.Helper()
	m := &monitoring{
		T: t, whole: t, prometheus: newPrometheus(t), scraped: map[string]*stack.Process{}, rules: map[string]string{},
		alerts: map[string]bool{}, fired: map[string]bool{}, critical: map[string]bool{}, pages: map[string]string{},
	}
	var err error
	m.aws, err = emulator.Start(emulator.WithRegion(stack.Region))
	must(t, err)
	t.Cleanup(func() { must(t, m.aws.Close()) })
	for _, ns := range []string{plantedNamespace, plantedNamespace + "-stuck", plantedNamespace + "-leader", plantedNamespace + "-restart"} {
		must(t, shared.CreateNamespace(t.Context(), ns))
		must(t, shared.CreateNamespace(t.Context(), operatorsOf(ns)))
		must(t, shared.AWSStore(t.Context(), ns, plantedStore, func(s *awsv1.AWSSecretsManager) {
			retries := int32(0)
			s.Spec.RetrySettings = &v1alpha1.RetrySettings{MaxRetries: &retries}
			s.Spec.ValidationInterval, s.Spec.Endpoint = "1s", m.aws.URL()
		}))
	}
	m.shorten()
	return m
}

// explain prints the modules' logs if the test has failed.
func (m *monitoring) explain() {
	if !m.whole.Failed() {
		return
	}
	for name, p := range m.scraped {
		page, err := p.Metrics()
		m.whole.Logf("%s: %v", name, err)
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "directsecrets_") && !strings.Contains(line, "_bucket") {
				m.whole.Log(strings.TrimSpace(line))
			}
		}
	}
}

// shorten reads the rules and shortens their times.
func (m *monitoring) shorten() {
	m.Helper()
	used := map[string]bool{}
	for _, g := range readAlerts(m.T).Groups {
		for _, r := range g.Rules {
			m.alerts[r.Alert], m.critical[r.Alert] = true, r.Labels["severity"] == "critical"
			for _, q := range quick {
				used[q.as] = used[q.as] || strings.Contains(r.Expr, q.as)
				r.Expr = strings.ReplaceAll(r.Expr, q.as, q.in)
			}
			m.rules[r.Alert] = r.Expr
		}
	}
	if len(used) != len(quick) || slices.Contains(slices.Collect(maps.Values(used)), false) {
		m.Fatalf("the rules have changed: correct quick, of which they have %v", used)
	}
}

// scrape adds a sample of the running processes, with the labels that a ServiceMonitor adds, unless the last
// sample is too recent.
func (m *monitoring) scrape() {
	m.Helper()
	if time.Since(m.scrapedAt) < 250*time.Millisecond {
		return
	}
	m.scrapedAt = time.Now()
	pages := []scrapedPage{}
	for name, p := range m.scraped {
		namespace, module, _ := strings.Cut(name, "/")
		text, err := p.Metrics()
		if err != nil {
			continue // It does not serve metrics yet.
		}
		pages = append(pages, scrapedPage{job: "direct-secrets-" + module + "-metrics", namespace: operatorsOf(namespace), text: text})
	}
	must(m.T, m.prometheus.append(pages))
}

// run starts a module for a namespace.
func (m *monitoring) run(module, namespace string, flags ...string) *stack.Process {
	m.Helper()
	p := startModule(m.whole, module, namespace, append([]string{"--presence-namespace=" + operatorsOf(namespace)}, flags...)...)
	m.scraped[namespace+"/"+module] = p
	return p
}

// end stops a process. Its last metrics page is kept.
func (m *monitoring) end(module, namespace string, stop func() error) {
	m.Helper()
	m.keepPages()
	must(m.T, stop())
	delete(m.scraped, namespace+"/"+module)
}

func (m *monitoring) keepPages() {
	m.Helper()
	for name, p := range m.scraped {
		page, err := p.Metrics()
		must(m.T, err)
		m.pages[name] += page
	}
}

// active scrapes, and returns the alerts that fire with the shorter times.
func (m *monitoring) active() (map[string]bool, error) {
	m.Helper()
	m.scrape()
	names := map[string]bool{}
	for name, expr := range m.rules {
		n, err := m.prometheus.query(m.Context(), expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if n > 0 {
			names[name], m.fired[name] = true, true
		}
	}
	return names, nil
}

func (m *monitoring) fires(alerts ...string) {
	m.Helper()
	eventually(m.T, func() string {
		now, err := m.active()
		for _, a := range alerts {
			if !now[a] {
				return fmt.Sprintf("%s does not fire: %v %v", a, now, err)
			}
		}
		return ""
	})
}

// quiet waits until no alert fires, twice in a row.
func (m *monitoring) quiet() {
	m.Helper()
	quiet := 0
	eventually(m.T, func() string {
		quiet++
		if now, err := m.active(); err != nil || len(now) > 0 {
			quiet = 0
			return fmt.Sprintf("alerts fire: %v %v", now, err)
		}
		if quiet < 2 {
			return "no alert has fired yet"
		}
		return ""
	})
}

// object creates an object that reads a planted secret every two seconds.
func (m *monitoring) object(namespace, name, kind string) *v1alpha1.ExternalSecret {
	return &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ExternalSecretSpec{
			RefreshInterval: "2s", StoreRef: &v1alpha1.StoreRef{Kind: kind, Name: plantedStore},
			Data: []v1alpha1.DataEntry{{SecretKey: plantedKey, RemoteRef: v1alpha1.RemoteRef{Key: plantedRemote}}},
		},
	}
}

// healthy runs two modules with objects of several Kinds that are in sync.
func (m *monitoring) healthy() {
	m.Helper()
	m.aws.Put(plantedRemote, []byte(plantedValue))
	m.run(stack.ProviderAWS, plantedNamespace, "--metrics-per-object")
	m.run(stack.GeneratorPassword, plantedNamespace)
	for i := range 5 {
		must(m.T, shared.Admin.Create(m.Context(), m.object(plantedNamespace, fmt.Sprintf("%s-%d", plantedObject, i), "AWSSecretsManager")))
	}
	wantValue(m.T, plantedNamespace, plantedObject+"-0", plantedKey, plantedValue)
	must(m.T, shared.Admin.Create(m.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: plantedNamespace, Name: plantedObject + "-source"},
		StringData: map[string]string{plantedKey: plantedValue},
	}))
	must(m.T, shared.Admin.Create(m.Context(), &v1alpha1.PushSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: plantedNamespace, Name: plantedObject},
		Spec: v1alpha1.PushSecretSpec{
			RefreshInterval: "2s",
			StoreRefs:       []v1alpha1.PushStoreRef{{Kind: "AWSSecretsManager", Name: plantedStore}},
			Selector:        v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: plantedObject + "-source"}},
			Data:            []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: plantedKey, RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: plantedRemote + "-copy"}}}},
		},
	}))
	m.wantSamples(`directsecrets_objects{kind="ExternalSecret",status="True",reason="SecretSynced"} == 5`)
	m.wantSamples(`directsecrets_objects{kind="PushSecret",status="True",reason="SecretSynced"} == 1`)
	// An age beyond the interval would mean that it is not that of the last successful sync.
	m.wantSamples(`max_over_time(directsecrets_oldest_sync_age_seconds{kind="ExternalSecret"}[5s]) < 5 and count_over_time(directsecrets_oldest_sync_age_seconds[5s]) >= 4`)
	m.aws.Put(plantedRemote, []byte(plantedValue+"-2"))
	m.wantSamples(`directsecrets_change_to_secret_seconds_count{cause="Object"} >= 5`)
	m.wantSamples(`directsecrets_change_to_secret_seconds_count{cause="Provider"} >= 5`)
	m.wantSamples(`histogram_quantile(0.5, sum by (le) (directsecrets_change_to_secret_seconds_bucket{cause="Object"})) < 60`)
}

func (m *monitoring) wantSamples(query string) {
	m.Helper()
	eventually(m.T, func() string {
		m.scrape()
		if n, err := m.prometheus.query(m.Context(), query); n == 0 || err != nil {
			return fmt.Sprintf("%s has no result: %v", query, err)
		}
		return ""
	})
}

// denied gives a store unknown credentials. The store fails, and all of its objects do.
func (m *monitoring) denied(alert string) {
	login := func(id string) {
		must(m.T, shared.Admin.Patch(m.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plantedNamespace, Name: plantedStore + "-credentials"}},
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"id":%q}}`, id))))
	}
	login("AKIANOBODY")
	m.fires(alert, "DirectSecretsObjectsStale", "DirectSecretsManyObjectsFailing", "DirectSecretsObjectFailing")
	m.wantSamples(fmt.Sprintf(`%s{object_namespace=%q,kind="ExternalSecret",name="%s-0",reason="StoreNotReady"}`, failingSince, plantedNamespace, plantedObject))
	m.wantSamples(fmt.Sprintf(`%s{object_namespace=%q,kind="AWSSecretsManager",name=%q,reason="AuthFailed"}`, failingSince, plantedNamespace, plantedStore))
	m.wantSamples(`directsecrets_stores{kind="AWSSecretsManager",status="False",reason="AuthFailed"} == 1`)
	m.keepPages()
	login(stack.AccessKeyID)
	m.quiet()
}

// throttled makes AWS answer every call with throttling.
func (m *monitoring) throttled(alert string) {
	m.Cleanup(m.aws.ClearFaults)
	m.aws.Inject(emulator.Throttled())
	m.fires(alert)
	m.aws.ClearFaults()
	m.quiet()
}

// absentClass creates a store with a class that no operator serves. The store reports that.
func (m *monitoring) absentClass(alert string) {
	name := plantedStore + "-of-absent-class"
	must(m.T, shared.AWSStore(m.Context(), plantedNamespace, name, func(s *awsv1.AWSSecretsManager) { s.Spec.Controller = "absent" }))
	m.fires(alert)
	m.wantSamples(`directsecrets_stores{kind="AWSSecretsManager",status="False",reason="ProviderNotRunning"} == 1`)
	s := &awsv1.AWSSecretsManager{}
	must(m.T, shared.Admin.Get(m.Context(), types.NamespacedName{Namespace: plantedNamespace, Name: name}, s))
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonProviderNotRunning {
		m.Errorf("a store of a class that no operator serves has conditions %v", s.Status.Conditions)
	}
	must(m.T, shared.Admin.Delete(m.Context(), s))
	m.quiet()
}

// silent creates an event source whose queue gets no events. Polling finds the changes.
func (m *monitoring) silent(alert string) {
	queue := m.aws.AddQueue("monitoring")
	queue.Unfeed(true)
	var store awsv1.AWSSecretsManager
	must(m.T, shared.Admin.Get(m.Context(), types.NamespacedName{Namespace: plantedNamespace, Name: plantedStore}, &store))
	source := &awsv1.AWSEventSource{ObjectMeta: metav1.ObjectMeta{Namespace: plantedNamespace, Name: "changes"}}
	source.Spec.AWSSpec = store.Spec.AWSSpec
	source.Spec.SQS.QueueURL = queue.URL
	must(m.T, shared.Admin.Create(m.Context(), source))
	m.wantSamples(`directsecrets_events_received_total{kind="AWSEventSource"} == 0`)
	m.aws.Put(plantedRemote, []byte(plantedValue+"-3"))
	m.fires(alert)
	queue.Unfeed(false)
	m.aws.Put(plantedRemote, []byte(plantedValue+"-4"))
	m.quiet()
	m.wantSamples(`directsecrets_changes_found_total{cause="Event"} > 0`)
}

// late delays the delivery of events.
func (m *monitoring) late(alert string) {
	m.Cleanup(m.aws.ClearFaults)
	m.aws.Inject(emulator.Fault{Call: "ReceiveMessage", Latency: 3 * time.Second})
	n, queue := 4, m.aws.AddQueue("monitoring")
	eventually(m.T, func() string {
		if queue.Left() == 0 {
			n++
			m.aws.Put(plantedRemote, fmt.Appendf(nil, "%s-%d", plantedValue, n))
		}
		if now, err := m.active(); !now[alert] {
			return fmt.Sprintf("%s does not fire: %v %v", alert, now, err)
		}
		return ""
	})
	m.aws.ClearFaults()
	m.aws.Put(plantedRemote, []byte(plantedValue+"-2"))
	m.quiet()
}

// absentModule creates references to stores of a module that is not running, and of a misspelt Kind. Any user
// who can create an object in a namespace can cause this, so it must not page the on-call engineer.
func (m *monitoring) absentModule(alert string) {
	for _, kind := range []string{"VaultKV", "AWSSecretManager"} {
		es := m.object(plantedNamespace, plantedObject+"-of-"+strings.ToLower(kind), kind)
		must(m.T, shared.Admin.Create(m.Context(), es))
		m.fires(alert)
		now, err := m.active()
		must(m.T, err)
		for a := range now {
			if m.critical[a] {
				m.Errorf("one object that refers to %s fires %s, which is critical", kind, a)
			}
		}
		must(m.T, shared.Admin.Delete(m.Context(), es))
		m.quiet()
	}
}

// lingering deletes an object of a module that is not running, another one, and a store. A finalizer blocks
// each deletion.
func (m *monitoring) lingering(alert string) {
	store := &awsv1.AWSSecretsManager{}
	store.Spec.Region = stack.Region
	for kind, o := range map[string]client.Object{
		"AWSSecretsManager": store,
		"ExternalSecret":    m.object("", "", "VaultKV"),
		"PushSecret": &v1alpha1.PushSecret{Spec: v1alpha1.PushSecretSpec{
			StoreRefs: []v1alpha1.PushStoreRef{{Kind: "VaultKV", Name: plantedStore}},
			Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: plantedObject + "-source"}},
		}},
	} {
		o.SetNamespace(plantedNamespace)
		o.SetName(plantedObject + "-held")
		o.SetFinalizers([]string{"vault.direct-secrets.io/pushsecret"})
		must(m.T, shared.Admin.Create(m.Context(), o))
		must(m.T, shared.Admin.Delete(m.Context(), o))
		m.fires(alert)
		m.wantSamples(fmt.Sprintf(`directsecrets_deletion_pending_seconds{kind=%q} > 5`, kind))
		must(m.T, shared.Admin.Patch(m.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		m.quiet()
	}
}

// unrestarted lists a workload to restart that does not exist. The module of the case has the permission to restart workloads.
func (m *monitoring) unrestarted(alert string) {
	ns := plantedNamespace + "-restart"
	i, err := upgrade(m.Context(), shared, "direct-secrets", "restarting-operators", stack.Values{"global": stack.Values{
		"scope": stack.Values{"namespaces": []string{ns}}, "presenceNamespace": operatorsOf(ns), "workloadRestarts": stack.Values{"enabled": true},
		"crds": stack.Values{"enabled": false}, "leaderElection": stack.Values{"enabled": false},
	}})
	must(m.T, err)
	scoped.Lock()
	scoped.releases[ns+"/"+operatorsOf(ns)] = i
	scoped.Unlock()
	m.run(stack.ProviderAWS, ns)
	es := m.object(ns, plantedObject, "AWSSecretsManager")
	es.Spec.Target.Restart = &v1alpha1.Restart{Workloads: []v1alpha1.WorkloadRef{{Kind: v1alpha1.WorkloadDeployment, Name: plantedObject}}}
	must(m.T, shared.Admin.Create(m.Context(), es))
	m.fires(alert)
	m.wantSamples(`sum(directsecrets_restarts{reason="WorkloadNotFound"}) == 1`)
	must(m.T, shared.Admin.Patch(m.Context(), es, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"target":{"restart":{"workloads":null,"auto":true}}}}`))))
	m.quiet()
	m.wantSamples(`sum(directsecrets_restarts{reason="UpToDate"}) == 1`)
}

// undone gives the Lease of the shared duties to a holder that does nothing.
func (m *monitoring) undone(alert string) {
	var leases coordinationv1.LeaseList
	must(m.T, shared.Admin.List(m.Context(), &leases, client.InNamespace(operatorsOf(plantedNamespace))))
	i := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return strings.HasPrefix(l.Name, "shared-duties.") })
	if i < 0 {
		m.Fatalf("there is no Lease of shared duties among %d", len(leases.Items))
	}
	lease := &leases.Items[i]
	held := fmt.Sprintf(`max(directsecrets_shared_duties{lease="%s/%s"})`, lease.Namespace, lease.Name)
	m.wantSamples(held + " == 1")
	must(m.T, shared.Admin.Patch(m.Context(), lease, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"spec":{"holderIdentity":"other","leaseDurationSeconds":3600,"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro)))))
	m.fires(alert)
	m.wantSamples(held + " == 0")
	must(m.T, shared.Admin.Delete(m.Context(), lease))
	m.quiet()
	m.wantSamples(held + " == 1")
}

// noLeader runs a replica while another holder has its Lease.
func (m *monitoring) noLeader(alert string) {
	ns := plantedNamespace + "-leader"
	must(m.T, shared.Admin.Create(m.Context(), m.object(ns, plantedObject, "AWSSecretsManager")))
	holder, seconds, now := "other", int32(3600), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorsOf(ns), Name: "direct-secrets.provider-aws.direct-secrets.io"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
	must(m.T, shared.Admin.Create(m.Context(), lease))
	p := m.run(stack.ProviderAWS, ns, "--leader-elect=true", "--leader-election-namespace="+operatorsOf(ns))
	m.fires(alert)
	wantReplica(m.T, p)
	must(m.T, shared.Admin.Delete(m.Context(), lease))
	wantValue(m.T, ns, plantedObject, plantedKey, plantedValue+"-2")
	m.quiet()
}

// stuck blocks the only worker of a controller in a write that the API server never answers.
func (m *monitoring) stuck(alert string) {
	ns := plantedNamespace + "-stuck"
	proxy, err := shared.StartProxy(nil)
	must(m.T, err)
	defer func() { must(m.T, proxy.Stop()) }()
	kubeconfig, err := installFor(m.whole, ns, operatorsOf(ns)).Kubeconfig(m.Context(), stack.ProviderAWS, proxy)
	must(m.T, err)
	caught := proxy.Hold(false, func(r *http.Request, _ []byte) bool {
		return strings.Contains(r.URL.Path, "/externalsecrets/"+plantedObject) && strings.HasSuffix(r.URL.Path, "/status")
	})
	p := m.run(stack.ProviderAWS, ns, "--kubeconfig="+kubeconfig, "--concurrency=1")
	m.Cleanup(m.aws.ClearFaults)
	m.aws.Inject(emulator.Fault{Key: plantedRemote + "-late-*", Hang: true})
	for _, name := range []string{"-late-1", "-late-2"} { // Both wait for AWS, and the second then for the slot of the first.
		m.aws.Put(plantedRemote+name, []byte(plantedValue))
		o := m.object(ns, plantedObject+name, "AWSSecretsManager")
		o.Spec.Data[0].RemoteRef.Key = plantedRemote + name
		must(m.T, shared.Admin.Create(m.Context(), o))
		eventually(m.T, func() string {
			for _, c := range m.aws.Calls() {
				if slices.Contains(c.SecretIDs, plantedRemote+name) {
					return ""
				}
			}
			return plantedObject + name + " does not wait for AWS"
		})
	}
	m.aws.ClearFaults()
	select {
	case <-caught:
	case <-time.After(time.Minute):
		m.Fatal("no worker is blocked")
	}
	must(m.T, shared.Admin.Create(m.Context(), m.object(ns, plantedObject+"-behind", "AWSSecretsManager")))
	m.fires(alert, "DirectSecretsShareUsedUp")
	m.end(stack.ProviderAWS, ns, p.Kill)
	m.fires("DirectSecretsOperatorAbsent") // This alert ends when the operator is forgotten.
	m.quiet()
}

// stopped stops the only replica of a module.
func (m *monitoring) stopped(alert string) {
	m.end(stack.GeneratorPassword, plantedNamespace, m.scraped[plantedNamespace+"/"+stack.GeneratorPassword].Stop)
	m.fires(alert)
	m.run(stack.GeneratorPassword, plantedNamespace)
	m.quiet()
}

// metricNames matches the metrics that queries can use.
var metricNames = regexp.MustCompile(`\b(directsecrets|leader_election|workqueue|process)_\w+\b`)

// queries runs every query of the dashboard and of the alerts. By now every panel has data.
func (m *monitoring) queries() {
	m.Helper()
	m.keepPages()
	there := map[string]bool{}
	for _, page := range m.pages {
		for _, f := range families(page) {
			there[f] = true
		}
	}
	check := func(what, query string, shows bool) {
		names := metricNames.FindAllString(query, -1)
		for _, n := range names {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(n, "_bucket"), "_sum"), "_count")
			if !there[n] && !there[base] {
				m.Errorf("%s: no module has %s", what, n)
			}
		}
		if n, err := m.prometheus.query(m.Context(), query); err != nil || len(names) == 0 || shows && n == 0 {
			m.Errorf("%s: %s has %d results of %d metrics: %v", what, query, n, len(names), err)
		}
	}
	for _, g := range readAlerts(m.T).Groups {
		for _, r := range g.Rules {
			check(r.Alert, r.Expr, false)
		}
	}
	m.dashboard(check)
}

// dashboard calls check for the queries of the dashboard.
func (m *monitoring) dashboard(check func(what, query string, shows bool)) {
	m.Helper()
	raw, err := os.ReadFile(dashboardFile)
	must(m.T, err)
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	must(m.T, json.Unmarshal(raw, &dashboard))
	variables := strings.NewReplacer("$namespace", ".*", "$job", ".*", "$__rate_interval", "2m")
	seen := 0
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			m.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			seen++
			query := variables.Replace(target.Expr)
			if strings.Contains(query, "$") {
				m.Errorf("panel %q: %s: the query uses an unknown variable", p.Title, query)
			}
			check("panel "+p.Title, query, !strings.Contains(query, failingSince)) // Nothing fails any longer.
		}
	}
	if seen < 20 {
		m.Errorf("the dashboard has %d queries, want more", seen)
	}
	labelValues := regexp.MustCompile(`^label_values\((.+), \w+\)$`)
	for _, v := range dashboard.Templating.List {
		if v.Type != "query" {
			continue
		}
		q := labelValues.FindStringSubmatch(v.Definition)
		if q == nil {
			m.Errorf("variable %s: %s is not a label_values query", v.Name, v.Definition)
			continue
		}
		check("variable "+v.Name, variables.Replace(q[1]), true)
	}
}

// families returns the names of the metrics of a page.
func families(page string) []string {
	var names []string
	for line := range strings.Lines(page) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == "#" && f[1] == "TYPE" {
			names = append(names, f[2])
		}
	}
	return names
}

// documented compares the table of the page on metrics with the metrics that modules have served.
func (m *monitoring) documented() {
	m.Helper()
	want := map[string]bool{}
	for _, page := range m.pages {
		for _, f := range families(page) {
			if strings.HasPrefix(f, "directsecrets_") {
				want[f] = true
			}
		}
	}
	raw, err := os.ReadFile(operatorPage)
	must(m.T, err)
	_, section, _ := strings.Cut(string(raw), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	got := map[string]bool{}
	for _, name := range regexp.MustCompile("`(directsecrets_\\w+)[`{]").FindAllStringSubmatch(section, -1) {
		got[name[1]] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("metrics that docs/operate/operator.md lists: -want, +got:\n%s", diff)
	}
}

// failingSince is the prefix of the optional series that name objects.
const failingSince = "directsecrets_failing_since_timestamp_seconds"

// showsNoSecret searches for the planted texts in all metrics. If series of objects are enabled, they name the
// failing ones.
func (m *monitoring) showsNoSecret() {
	m.Helper()
	perObject := regexp.MustCompile(`(?m)^` + failingSince + `\{kind="\w+",name="[^"]+",object_namespace="[^"]*",reason="\w+"\} .*$`)
	for name, page := range m.pages {
		if name == plantedNamespace+"/"+stack.ProviderAWS {
			page = perObject.ReplaceAllString(page, "")
		}
		for _, planted := range []string{plantedNamespace, plantedObject, plantedStore, plantedRemote, plantedKey, plantedValue} {
			if i := strings.Index(page, planted); i >= 0 {
				m.Errorf("%s: its metrics contain %q: ...%s...", name, planted, page[max(0, i-100):min(len(page), i+100)])
			}
		}
	}
}
