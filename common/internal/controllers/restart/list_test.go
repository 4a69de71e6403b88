package restart

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/internal/restart"
)

// TestAll lists workloads of a server. A list that was not read to its end does not count.
func TestAll(t *testing.T) {
	t.Parallel()
	list := func(next string, names ...string) string {
		var items []string
		for _, n := range names {
			items = append(items, fmt.Sprintf(`{"metadata": {"name": %q}}`, n))
		}
		return fmt.Sprintf(`{"metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ","))
	}
	none := list("")
	failure := func(reason string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q}`, reason)
	}
	type answer struct {
		code int
		text string
	}
	const second = "deployments?continue=x"
	cases := map[string]struct {
		reason string
		// answers are those of the server, by the end of the request; the others are empty lists.
		answers map[string]answer
		want    []string
		fails   func(error) bool
	}{
		"Pages":      {"A list can have several pages.", map[string]answer{"deployments": {200, list("x", "a", "b")}, second: {200, list("", "c")}, "daemonsets": {200, list("", "d")}}, []string{"Deployment a", "Deployment b", "Deployment c", "DaemonSet d"}, nil},
		"NoRollouts": {"The Kind Rollout need not be installed.", map[string]answer{"deployments": {200, list("", "a")}, "rollouts": {404, "404 page not found"}}, []string{"Deployment a"}, nil},
		"Forbidden":  {"The operator is not allowed to list workloads.", map[string]answer{"deployments": {403, failure("Forbidden")}}, nil, kerrors.IsForbidden},
		"Expired":    {"The second page is no longer there.", map[string]answer{"deployments": {200, list("x", "a")}, second: {410, failure("Expired")}}, nil, kerrors.IsResourceExpired},
		"Cut":        {"A connection ends within a list.", map[string]answer{"deployments": {200, list("", "a")}, "statefulsets": {200, list("", "b", "c")[:60]}}, nil, func(err error) bool { return err != nil }},
		"CutSecond":  {"A connection ends within the second page.", map[string]answer{"deployments": {200, list("x", "a")}, second: {200, list("", "b")[:40]}}, nil, func(err error) bool { return err != nil }},
		"Broken":     {"The server fails.", map[string]answer{"daemonsets": {500, failure("InternalError")}}, nil, kerrors.IsInternalError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				key := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				if next := r.URL.Query().Get("continue"); next != "" {
					key += "?continue=" + next
				}
				a, ok := tc.answers[key]
				if !ok {
					a = answer{200, none}
				}
				if !strings.Contains(r.URL.Path, "/namespaces/shop/") || r.URL.Query().Get("limit") != "250" {
					t.Errorf("the request is %s, want a page of 250 of a namespace", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(a.code)
				_, _ = w.Write([]byte(a.text))
			}))
			t.Cleanup(server.Close)
			l, err := newLister(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			all, bytes, err := l.all(t.Context(), "shop", restart.Targets{})
			var got []string
			for _, w := range all {
				got = append(got, string(w.Kind)+" "+w.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.fails != nil) || err != nil && !tc.fails(err) {
				t.Errorf("%s The error is %v. -want, +got:\n%s", tc.reason, err, diff)
			}
			if err == nil && bytes < int64(len(none)*3) {
				t.Errorf("%d bytes were counted, want those of at least three lists", bytes)
			}
		})
	}
}

// TestPause lists the workloads of namespaces of two sizes.
func TestPause(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Reconciler{nextList: map[string]time.Time{}}
	r.listed("small", now, 1<<20)
	r.listed("large", now, 144<<20)
	type waits struct{ Small, Large, Other time.Duration }
	at := func(after time.Duration) waits {
		return waits{r.wait("small", now.Add(after)), r.wait("large", now.Add(after)), r.wait("other", now.Add(after))}
	}
	want := []waits{{1250 * time.Millisecond, 37 * time.Second, 0}, {0, 34 * time.Second, 0}, {0, 0, 0}}
	if diff := cmp.Diff(want, []waits{at(0), at(poll), at(time.Minute)}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if r.listed("other", now.Add(time.Minute), 0); len(r.nextList) != 1 {
		t.Errorf("%v is recorded, want no namespace whose pause is over", r.nextList)
	}
}
