package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

const (
	// callsOfOne is the maximum number of calls a second that the servers of one tenant get.
	callsOfOne = 512
	// listsOfOne is the maximum number of lists a second that the operators make in the namespace of one tenant.
	listsOfOne = 20
)

// An attack is a running set of hostile tenants and what they attack.
type attack struct {
	*stack.Stack
	vault    *vault
	receiver string
	// ordinary are objects of ordinary tenants.
	ordinary []Object
	// accepted is the number of events that hostile tenants have sent.
	accepted atomic.Int64
	wg       sync.WaitGroup
}

// A hostility is what one hostile tenant does.
type hostility struct {
	what string
	// serve is the tenant's server; nil if it needs none.
	serve http.HandlerFunc
	// start begins the work of the tenant in a namespace. Its repeated work ends with ctx.
	start func(ctx context.Context, a *attack, ns, server string) error
}

// hostilities are all that a tenant with the role edit can do at its worst.
func hostilities() []hostility {
	return []hostility{
		{"a queue repeats one receipt handle, and a find hangs", repeatedReceipt(), repeats},
		{"a server trickles answers of 1.25 MiB", trickle, trickles},
		{"60 stores with 250 KiB of annotations, selected ten times", empty, selectsStores},
		{"120 Deployments of 1.2 MB that restart", changing(), restartsLarge},
		{"200 RSA keys of 4,096 bits each second", nil, rotates},
		{"20 sync windows, and five edited labels a second", nil, edits},
		{"four event sources and four finds, answered at once without end", endless(), polls},
		{"events that name keys of others, for a store that hangs", hang, reportsOthers},
		{"events for 500 finds in other namespaces", empty, findsElsewhere},
		{"pushes of 200,000 properties, and removals", nil, pushesMany},
	}
}

// repeat runs f again and again until ctx ends.
func (a *attack) repeat(ctx context.Context, every time.Duration, f func(i int) error) {
	a.wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			_ = f(i) // A refused attempt is one, too.
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// attackAll measures ordinary tenants of three modules, first alone and then next to all hostile tenants.
func attackAll(ctx context.Context, r *Report, lasts time.Duration) error {
	_, err := onStack(ctx, func(s *stack.Stack) (struct{}, error) {
		v, err := startVault()
		if err != nil {
			return struct{}{}, err
		}
		defer v.stop()
		return struct{}{}, (&attack{Stack: s, vault: v}).run(ctx, r, lasts)
	}, stack.Options{Audit: true})
	return err
}

func (a *attack) run(ctx context.Context, r *Report, lasts time.Duration) error {
	processes, err := a.startModules(ctx)
	if err != nil {
		return err
	}
	kill := func() {
		for _, p := range processes {
			_ = p.Kill()
		}
	}
	defer kill()
	figures, stop, err := a.figures(ctx)
	if err != nil {
		return err
	}
	defer stop()
	alone := observe(ctx, processes, figures, max(lasts/5, 10*time.Second))

	hostile, end := context.WithCancel(ctx)
	defer a.wg.Wait()
	defer end()
	peaks := watchAll(processes)
	calls := map[string]*atomic.Int64{}
	for i, h := range hostilities() {
		start := time.Now()
		ns, server := fmt.Sprintf("hostile-%d", i+1), ""
		if h.serve != nil {
			calls[h.what] = &atomic.Int64{}
			served := httptest.NewServer(counted(calls[h.what], h.serve))
			defer served.Close()
			defer served.CloseClientConnections()
			server = served.URL
		}
		if err := h.start(hostile, a, ns, server); err != nil {
			return fmt.Errorf("%s: %w", h.what, err)
		}
		r.Progress("hostile-%d: %s, after %.1f s", i+1, h.what, time.Since(start).Seconds())
	}
	defer kill() // A server cannot close while it is asked.
	begin, before := time.Now(), map[string]int64{}
	for what, n := range calls {
		before[what] = n.Load()
	}
	under := observe(ctx, processes, figures, lasts)
	seconds := time.Since(begin).Seconds()
	for name, mb := range peaks() {
		under.memory[name] = max(under.memory[name], mb)
	}
	under.report(r, alone)
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		r.Add(Row{Scenario: "tenants", What: "calls a second: " + what, Value: float64(calls[what].Load()-before[what]) / seconds, Unit: "calls", Bound: atMost(callsOfOne)})
	}
	err = errors.Join(a.effects(ctx, r), a.lists(r, begin, seconds), ctx.Err())
	for _, p := range processes {
		err = errors.Join(err, p.Kill()) // It is an error if a process has ended by itself.
	}
	return err
}

// effects prints what the hostile objects have reached: the conditions of each tenant's objects, and the number of pushed entries.
func (a *attack) effects(ctx context.Context, r *Report) error {
	var reads v1alpha1.ExternalSecretList
	var pushes v1alpha1.PushSecretList
	var sources awsv1.AWSEventSourceList
	var workloads appsv1.DeploymentList
	if err := errors.Join(a.Admin.List(ctx, &reads), a.Admin.List(ctx, &pushes), a.Admin.List(ctx, &sources), a.Admin.List(ctx, &workloads)); err != nil {
		return err
	}
	counts, messages, entries := map[string]int{}, map[string]string{}, 0
	count := func(ns, kind string, conditions []metav1.Condition) {
		reason, message := "none", ""
		if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
			reason, message = c.Reason, c.Message
		}
		key := ns + ": " + kind + " " + reason
		counts[key]++
		messages[key] = message
	}
	for _, o := range reads.Items {
		count(o.Namespace, "ExternalSecrets", o.Status.Conditions)
	}
	for _, o := range pushes.Items {
		count(o.Namespace, "PushSecrets", o.Status.Conditions)
		for _, st := range o.Status.Stores {
			entries += len(st.Entries)
		}
	}
	for _, o := range sources.Items {
		count(o.Namespace, "AWSEventSources", o.Status.Conditions)
	}
	for _, o := range workloads.Items {
		for name := range o.Spec.Template.Annotations {
			if strings.HasPrefix(name, v1alpha1.RestartAnnotationPrefix) {
				counts[o.Namespace+": restarted Deployments"]++
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if strings.HasPrefix(what, "hostile-") {
			r.Progress("%s: %d, such as: %.120s", what, counts[what], messages[what])
		}
	}
	r.Progress("entries of pushes: %d, accepted requests with events: %d", entries, a.accepted.Load())
	return nil
}

// counted counts requests. It reads their bodies, because only then the context of a request ends with its connection.
func counted(n *atomic.Int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		next.ServeHTTP(w, r)
	})
}

// lists reports how often the operators have listed something, for each hostile tenant.
func (a *attack) lists(r *Report, since time.Time, seconds float64) error {
	events, err := a.ReadAuditLog(since)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, e := range events {
		if e.Verb == "list" && strings.HasPrefix(e.User.Username, "system:serviceaccount:"+stack.Namespace+":") {
			counts[tenantOf(e.ObjectRef.Namespace)]++
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(counts)) {
		row := Row{Scenario: "tenants", What: "lists a second in namespaces of " + tenant, Value: float64(counts[tenant]) / seconds, Unit: "lists", Bound: atMost(listsOfOne)}
		if tenant == "" {
			row.What = "lists a second of all namespaces"
		}
		r.Add(row)
	}
	return nil
}

// tenantOf returns the tenant of a namespace. A hostile one can have several, of which each begins with the name of the tenant.
func tenantOf(ns string) string {
	parts := strings.Split(ns, "-")
	switch {
	case parts[0] == "hostile":
		return strings.Join(parts[:2], "-")
	case ns == "":
		return ""
	}
	return "ordinary tenants"
}

// startModules starts the modules and creates what ordinary tenants have.
func (a *attack) startModules(ctx context.Context) (map[string]*stack.Process, error) {
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return nil, err
	}
	a.receiver = "127.0.0.1:" + ports[0]
	a.ordinary = workload("ordinary", 100, 20)
	if err := errors.Join(permit(ctx, a.Stack), a.vault.post("sys/mounts/secret", `{"type":"kv","options":{"version":"2"}}`)); err != nil {
		return nil, err
	}
	processes := map[string]*stack.Process{}
	for module, flags := range map[string][]string{
		stack.ProviderVault: {"--workload-restarts", "--event-receiver-bind-address=" + a.receiver}, stack.ProviderAWS: nil, stack.GeneratorKeys: nil,
	} {
		if processes[module], err = a.StartModule(ctx, module, flags...); err != nil {
			return processes, err
		}
	}
	if err := tenantStores(ctx, a.Stack, a.vault, a.ordinary); err != nil {
		return processes, err
	}
	if err := each(a.ordinary, clients, func(o Object) error { return a.Admin.Create(ctx, ofVault(o, seldom)) }); err != nil {
		return processes, err
	}
	return processes, allSynced(ctx, a.Stack, a.ordinary)
}
