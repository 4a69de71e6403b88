package parameterstore

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/fetch"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// TestCallsPerSync counts the calls of objects that are due together, through the layer by which the
// operator reads.
func TestCallsPerSync(t *testing.T) {
	var hundred [][]string
	for i := range 100 {
		hundred = append(hundred, []string{fmt.Sprintf("/p/%03d", i)})
	}
	var same [][]string
	for range 100 {
		same = append(same, []string{"/p/000"})
	}
	properties := []string{"/p/000", "/p/000", "/p/000", "/p/000", "/p/000", "/p/000", "/p/000", "/p/000", "/p/000", "/p/000"}
	cases := map[string]struct {
		reason  string
		objects [][]string // the keys of each object
		calls   map[string]int
	}{
		"Hundred":    {"A hundred parameters that are due together are ten calls.", hundred, map[string]int{"GetParameters": 10}},
		"Properties": {"Ten properties of one parameter are one call.", [][]string{properties}, map[string]int{"GetParameter": 1}},
		"Shared":     {"A hundred objects over one parameter are one call.", same, map[string]int{"GetParameter": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			for i, keys := range hundred {
				srv.PutParameter(keys[0], fmt.Sprint(i))
			}
			l := fetch.NewLoader("AWSParameterStore", func(context.Context) (store.Client, error) { return client(t, srv), nil }, fetch.Options{})
			defer l.Retire()
			var answered sync.WaitGroup
			var tickets []*fetch.Ticket
			answered.Add(len(tc.objects))
			for _, keys := range tc.objects {
				var reads []store.Read
				for _, k := range keys {
					reads = append(reads, store.Read{Ref: store.Ref{Key: k}})
				}
				tickets = append(tickets, l.Request(reads, fetch.New, answered.Done))
			}
			answered.Wait()
			for i, ticket := range tickets {
				got, ok := ticket.Take()
				answer := got[store.Read{Ref: store.Ref{Key: tc.objects[i][0]}}]
				if !ok || answer.Err != nil || string(answer.Value.Data) == "" {
					t.Errorf("object %d: answer %+v", i, answer)
				}
			}
			if diff := cmp.Diff(tc.calls, srv.CallCounts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
