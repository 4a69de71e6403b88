package charts

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	alertsFile    = umbrella + "/files/alerts.yaml"
	dashboardFile = umbrella + "/files/dashboard.json"
	runbookURL    = "https://github.com/direct-secrets/direct-secrets/blob/main/docs/operate/runbook.md#"
)

var promParser = parser.NewParser(promqltest.TestParserOpts)

// alerts returns the rules by the names of their alerts, as parsed by Prometheus.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, promParser, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if _, twice := all[r.Alert]; twice || r.Alert == "" {
				t.Errorf("a rule has no name, or that of another rule: %q", r.Alert)
			}
			all[r.Alert] = r
		}
	}
	return all
}

// TestAlertRules checks that the rules load, and that each has a severity and links to the runbook.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	for name, r := range alerts(t) {
		for field, ok := range map[string]bool{
			"for":                     r.For > 0,
			"labels.severity":         slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]),
			"annotations.summary":     r.Annotations["summary"] != "",
			"annotations.description": r.Annotations["description"] != "",
			"annotations.runbook_url": r.Annotations["runbook_url"] == runbookURL+strings.ToLower(name),
		} {
			if !ok {
				t.Errorf("alert %s: %s is missing or wrong", name, field)
			}
		}
	}
}

// TestAlerts evaluates each rule at the end of one hour of module metrics, with one sample per minute, and
// checks whether it fires. TestMonitoring of the scenarios checks that modules have such metrics.
func TestAlerts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, alert string
		series        []string
		// want are the label sets of the firing alerts.
		want []string
	}{
		"InSync": {
			reason: "no object has been out of sync for long", alert: "DirectSecretsObjectsStale",
			series: []string{`directsecrets_out_of_step_seconds{namespace="ns",kind="ExternalSecret"} 900x60`},
		},
		"OutOfSync": {
			reason: "the worst object of each kind determines the alert", alert: "DirectSecretsObjectsStale",
			series: []string{`directsecrets_out_of_step_seconds{namespace="ns",kind="ExternalSecret",pod="a"} 0+60x60`, `directsecrets_out_of_step_seconds{namespace="ns",kind="PushSecret"} 0x60`},
			want:   []string{`{kind="ExternalSecret", namespace="ns"}`},
		},
		"OutOfSyncShortly": {
			reason: "a short delay does not fire", alert: "DirectSecretsObjectsStale",
			series: []string{`directsecrets_out_of_step_seconds{namespace="ns",kind="ExternalSecret"} 0x57 901x3`},
		},
		"ObjectFailing": {
			reason: "a failing object is named, once for all replicas, with its own namespace", alert: "DirectSecretsObjectFailing",
			series: []string{`directsecrets_failing_since_timestamp_seconds{namespace="ns",object_namespace="shop",kind="ExternalSecret",name="db",reason="StoreNotReady",pod="a"} 0x60`, `directsecrets_failing_since_timestamp_seconds{namespace="ns",object_namespace="shop",kind="ExternalSecret",name="db",reason="StoreNotReady",pod="b"} 0x60`},
			want:   []string{`{kind="ExternalSecret", name="db", namespace="shop", object_namespace="shop", reason="StoreNotReady"}`},
		},
		"ClusterStoreFailing": {
			reason: "a cluster store has no namespace, so the alert has that of the operator", alert: "DirectSecretsObjectFailing",
			series: []string{`directsecrets_failing_since_timestamp_seconds{namespace="ns",object_namespace="",kind="ClusterVaultKV",name="db",reason="AuthFailed"} 0x60`},
			want:   []string{`{kind="ClusterVaultKV", name="db", namespace="ns", reason="AuthFailed"}`},
		},
		"ObjectFailingShortly": {
			reason: "an object that has just started to fail can recover by itself", alert: "DirectSecretsObjectFailing",
			series: []string{`directsecrets_failing_since_timestamp_seconds{namespace="ns",object_namespace="shop",kind="ExternalSecret",name="db",reason="StoreNotReady"} 3000x60`},
		},
		"FewFailing": {
			reason: "a quarter of failing objects does not fire", alert: "DirectSecretsManyObjectsFailing",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="True",reason="SecretSynced"} 15x60`, `directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="StoreNotReady"} 5x60`},
		},
		"ManyFailing": {
			reason: "more than a quarter of failing objects fires, whatever the reasons", alert: "DirectSecretsManyObjectsFailing",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="True",reason="SecretSynced"} 14x60`, `directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="StoreNotReady"} 3x60`, `directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="SecretSyncedError"} 2x60`},
			want:   []string{`{kind="ExternalSecret", namespace="ns"}`},
		},
		"AllOfFour": {
			reason: "four failing objects are too few for a critical alert", alert: "DirectSecretsManyObjectsFailing",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="StoreNotReady"} 4x60`},
		},
		"Suspended": {
			reason: "a suspended object does not count as failing", alert: "DirectSecretsManyObjectsFailing",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="Suspended"} 10x60`},
		},
		"StoresValid": {
			reason: "without a failing store nothing fires", alert: "DirectSecretsStoreFailing",
			series: []string{`directsecrets_stores{namespace="ns",kind="VaultKV",status="True",reason="Valid"} 3x60`, `directsecrets_stores{namespace="ns",kind="VaultKV",status="False",reason="AuthFailed"} 0x60`},
		},
		"StoreFailing": {
			reason: "one failing store is enough", alert: "DirectSecretsStoreFailing",
			series: []string{`directsecrets_stores{namespace="ns",kind="VaultKV",status="True",reason="Valid"} 3x60`, `directsecrets_stores{namespace="ns",kind="VaultKV",status="False",reason="AuthFailed"} 1x60`},
			want:   []string{`{kind="VaultKV", namespace="ns", reason="AuthFailed"}`},
		},
		"RarelyThrottled": {
			reason: "one failing call in twenty does not fire", alert: "DirectSecretsProviderThrottled",
			series: []string{`directsecrets_provider_calls_total{namespace="ns",kind="VaultKV",result="OK"} 0+95x60`, `directsecrets_provider_calls_total{namespace="ns",kind="VaultKV",result="Throttled"} 0+5x60`},
		},
		"Throttled": {
			reason: "more than one failing call in twenty fires", alert: "DirectSecretsProviderThrottled",
			series: []string{`directsecrets_provider_calls_total{namespace="ns",kind="VaultKV",result="OK"} 0+90x60`, `directsecrets_provider_calls_total{namespace="ns",kind="VaultKV",result="Throttled"} 0+10x60`},
			want:   []string{`{kind="VaultKV", namespace="ns"}`},
		},
		"QueueMoves": {
			reason: "a wait of two minutes does not fire", alert: "DirectSecretsQueueStuck",
			series: []string{`directsecrets_queue_oldest_waiting_seconds{namespace="ns",job="aws",controller="externalsecret"} 120x60`},
		},
		"QueueStuck": {
			reason: "the oldest object keeps waiting", alert: "DirectSecretsQueueStuck",
			series: []string{`directsecrets_queue_oldest_waiting_seconds{namespace="ns",job="aws",controller="externalsecret"} 0+60x60`},
			want:   []string{`{controller="externalsecret", job="aws", namespace="ns"}`},
		},
		"ShareUsedUpShortly": {
			reason: "many objects that are created at once wait for a while", alert: "DirectSecretsShareUsedUp",
			series: []string{`directsecrets_share_waiting{namespace="ns",job="aws",tenant="",resource="calls"} 0x50 7x10`},
		},
		"ShareUsedUp": {
			reason: "callers keep waiting, and the series of the tenant does not count again", alert: "DirectSecretsShareUsedUp",
			series: []string{`directsecrets_share_waiting{namespace="ns",job="aws",tenant="",resource="calls"} 7x60`, `directsecrets_share_waiting{namespace="ns",job="aws",tenant="shop",resource="calls"} 7x60`},
			want:   []string{`{job="aws", namespace="ns", resource="calls"}`},
		},
		"ModuleNotRunning": {
			reason: "an object waits for the missing module", alert: "DirectSecretsModuleNotRunning",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="ProviderNotRunning"} 1x60`},
			want:   []string{`{kind="ExternalSecret", namespace="ns"}`},
		},
		"ModulesRunning": {
			reason: "no object waits for a missing module", alert: "DirectSecretsModuleNotRunning",
			series: []string{`directsecrets_objects{namespace="ns",kind="ExternalSecret",status="False",reason="ProviderNotRunning"} 0x60`},
		},
		"DeletionPending": {
			reason: "a deletion can take 15 minutes", alert: "DirectSecretsDeletionStuck",
			series: []string{`directsecrets_deletion_pending_seconds{namespace="ns",kind="PushSecret"} 900x60`},
		},
		"DeletionStuck": {
			reason: "a longer deletion fires, once for all modules that see the object", alert: "DirectSecretsDeletionStuck",
			series: []string{`directsecrets_deletion_pending_seconds{namespace="ns",kind="PushSecret",job="aws"} 0+60x60`, `directsecrets_deletion_pending_seconds{namespace="ns",kind="PushSecret",job="vault"} 0+60x60`},
			want:   []string{`{kind="PushSecret", namespace="ns"}`},
		},
		"Restarting": {
			reason: "a restart that waits or proceeds does not fire", alert: "DirectSecretsRestartsFailing",
			series: []string{`directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="False",reason="Restarting"} 3x60`, `directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="False",reason="RestartPending"} 3x60`, `directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="True",reason="UpToDate"} 3x60`},
		},
		"RestartBlocked": {
			reason: "one workload that stops the others is enough, and reasons are separate", alert: "DirectSecretsRestartsFailing",
			series: []string{`directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="False",reason="WorkloadNotAvailable",job="aws"} 2x60`, `directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="False",reason="WorkloadNotFound",job="aws"} 1x60`},
			want:   []string{`{kind="ExternalSecret", namespace="ns", reason="WorkloadNotAvailable"}`, `{kind="ExternalSecret", namespace="ns", reason="WorkloadNotFound"}`},
		},
		"RestartBlockedShortly": {
			reason: "a workload that is created a little later does not fire", alert: "DirectSecretsRestartsFailing",
			series: []string{`directsecrets_restarts{namespace="ns",kind="ExternalSecret",status="False",reason="WorkloadNotFound"} 0x55 1x5`},
		},
		"OneReplicaGone": {
			reason: "another replica of the module is running", alert: "DirectSecretsOperatorAbsent",
			series: []string{`directsecrets_build_info{namespace="ns",module="aws",class="",pod="a"} 1x30 stale`, `directsecrets_build_info{namespace="ns",module="aws",class="",pod="b"} 1x60`},
		},
		"ModuleGone": {
			reason: "no replica of the module is running", alert: "DirectSecretsOperatorAbsent",
			series: []string{`directsecrets_build_info{namespace="ns",module="aws",class="",pod="a"} 1x30 stale`, `directsecrets_build_info{namespace="ns",module="vault",class="",pod="b"} 1x60`},
			want:   []string{`{module="aws", namespace="ns"}`},
		},
		"NothingScraped": {
			reason: "an operator that was never scraped is absent, too", alert: "DirectSecretsOperatorAbsent",
			series: []string{`up{namespace="ns"} 1x60`},
			want:   []string{`{}`},
		},
		"OneLeads": {
			reason: "one replica is the leader, and the others are standby replicas", alert: "DirectSecretsNoLeader",
			series: []string{`leader_election_master_status{namespace="ns",name="provider-aws.direct-secrets.io",pod="a"} 0x60`, `leader_election_master_status{namespace="ns",name="provider-aws.direct-secrets.io",pod="b"} 1x60`},
		},
		"NoneLeads": {
			reason: "no replica is the leader, and Leases of other projects do not count", alert: "DirectSecretsNoLeader",
			series: []string{`leader_election_master_status{namespace="ns",name="provider-aws.direct-secrets.io",pod="a"} 0x60`, `leader_election_master_status{namespace="ns",name="other",pod="b"} 0x60`},
			want:   []string{`{name="provider-aws.direct-secrets.io", namespace="ns"}`},
		},
		"DutiesHeld": {
			reason: "a module in another namespace holds the shared duties", alert: "DirectSecretsSharedDutiesNotHeld",
			series: []string{`directsecrets_shared_duties{namespace="a",lease="ns/shared"} 0x60`, `directsecrets_shared_duties{namespace="b",lease="ns/shared"} 1x60`},
		},
		"DutiesNotHeld": {
			reason: "the alert fires in each namespace that shares the Lease", alert: "DirectSecretsSharedDutiesNotHeld",
			series: []string{`directsecrets_shared_duties{namespace="a",lease="ns/shared"} 0x60`, `directsecrets_shared_duties{namespace="b",lease="ns/shared"} 0x60`},
			want:   []string{`{lease="ns/shared", namespace="a"}`, `{lease="ns/shared", namespace="b"}`},
		},
		"EventsSilent": {
			reason: "polling finds changes, and no event comes", alert: "DirectSecretsEventsSilent",
			series: []string{`directsecrets_events_received_total{namespace="ns",job="aws",kind="AWSEventSource"} 7x60`, `directsecrets_changes_found_total{namespace="ns",job="aws",cause="Polling"} 0x50 1x10`},
			want:   []string{`{job="aws", kind="AWSEventSource", namespace="ns"}`},
		},
		"EventsReceived": {
			reason: "an event source of the module works, and others are those of other modules", alert: "DirectSecretsEventsSilent",
			series: []string{`directsecrets_events_received_total{namespace="ns",job="aws",kind="AWSEventSource"} 0x20 1x40`, `directsecrets_events_received_total{namespace="ns",job="gcp",kind="GCPEventSource"} 0x60`, `directsecrets_changes_found_total{namespace="ns",job="aws",cause="Polling"} 0x50 1x10`},
		},
		"EventsNotNeeded": {
			reason: "nothing has changed", alert: "DirectSecretsEventsSilent",
			series: []string{`directsecrets_events_received_total{namespace="ns",job="aws",kind="AWSEventSource"} 0x60`, `directsecrets_changes_found_total{namespace="ns",job="aws",cause="Polling"} 3x60`},
		},
		"EventsLate": {
			reason: "a fifth of the events takes longer than a minute", alert: "DirectSecretsEventsLate",
			series: []string{`directsecrets_event_lag_seconds_bucket{namespace="ns",job="aws",kind="AWSEventSource",le="60.0"} 0+8x60`, `directsecrets_event_lag_seconds_count{namespace="ns",job="aws",kind="AWSEventSource"} 0+10x60`},
			want:   []string{`{job="aws", kind="AWSEventSource", namespace="ns"}`},
		},
		"EventsInTime": {
			reason: "a few late events do not fire", alert: "DirectSecretsEventsLate",
			series: []string{`directsecrets_event_lag_seconds_bucket{namespace="ns",job="aws",kind="AWSEventSource",le="60"} 0+19x60`, `directsecrets_event_lag_seconds_count{namespace="ns",job="aws",kind="AWSEventSource"} 0+20x60`},
		},
		"NoEvents": {
			reason: "without events none is late", alert: "DirectSecretsEventsLate",
			series: []string{`directsecrets_event_lag_seconds_bucket{namespace="ns",job="aws",kind="AWSEventSource",le="60"} 8x60`, `directsecrets_event_lag_seconds_count{namespace="ns",job="aws",kind="AWSEventSource"} 10x60`},
		},
	}
	rules, fires := alerts(t), map[string]bool{}
	for name, tc := range cases {
		fires[tc.alert] = fires[tc.alert] || len(tc.want) > 0
		t.Run(name, func(t *testing.T) {
			rule, ok := rules[tc.alert]
			if !ok {
				t.Fatalf("there is no alert %s", tc.alert)
			}
			if diff := cmp.Diff(tc.want, firing(t, rule, tc.series)); diff != "" {
				t.Errorf("%s: what fires: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for name := range rules {
		if !fires[name] {
			t.Errorf("no case has %s fire", name)
		}
	}
}

// firing returns the labels for which the rule is true at the end of the series, for as long as it requires.
func firing(t *testing.T, rule rulefmt.Rule, series []string) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  ")+"\n")
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	end := time.Unix(0, 0).Add(time.Hour)
	held := map[string]int{}
	steps := 0
	for at := end.Add(-time.Duration(rule.For)); !at.After(end); at = at.Add(time.Minute) {
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, at)
		must(t, err)
		result := query.Exec(t.Context())
		must(t, result.Err)
		vector, err := result.Vector()
		must(t, err)
		for _, sample := range vector {
			held[sample.Metric.String()]++
		}
		steps++
		query.Close()
	}
	var out []string
	for labels, n := range held {
		if n == steps {
			out = append(out, labels)
		}
	}
	slices.Sort(out)
	return out
}

// metricNames matches the modules' metrics in a query.
var metricNames = regexp.MustCompile(`\b(directsecrets|leader_election|workqueue|process)_\w+\b`)

// TestQueries checks that every query of the alerts and of the dashboard is valid. Its metrics must be listed
// in docs/operate/operator.md or come from a library of every module. TestMonitoring of the scenarios compares
// that page with running modules.
func TestQueries(t *testing.T) {
	t.Parallel()
	queries := map[string]string{}
	for name, r := range alerts(t) {
		queries["alert "+name] = r.Expr
	}
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal([]byte(read(t, dashboardFile)), &dashboard))
	variables := strings.NewReplacer("$namespace", ".*", "$job", ".*", "$__rate_interval", "2m")
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries["panel "+p.Title+": "+target.Expr] = variables.Replace(target.Expr)
		}
	}
	if len(queries) < 30 {
		t.Errorf("only %d queries were found", len(queries))
	}
	operatorPage := read(t, "../docs/operate/operator.md")
	for what, query := range queries {
		if _, err := promParser.ParseExpr(query); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		names := metricNames.FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s: %s uses no metric of the modules", what, query)
		}
		for _, n := range names {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(n, "")
			if strings.HasPrefix(n, "directsecrets_") && !strings.Contains(operatorPage, "`"+base+"`") {
				t.Errorf("%s: docs/operate/operator.md does not list %s", what, base)
			}
		}
	}
}
