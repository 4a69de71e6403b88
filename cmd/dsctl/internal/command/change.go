package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/change"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// A selection determines which objects a command changes.
type selection struct {
	all   bool
	store string
}

// changed is the printed result for one object.
type changed struct {
	snapshot.Ref

	// Changed is false if the object was already in the requested state.
	Changed bool `json:"changed"`
	// Ready, Reason and Message are the object's report after the refresh, if the command has waited for it.
	Ready   string `json:"ready,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Error is why the object could not be changed.
	Error string `json:"error,omitempty"`
}

func (o *options) addSelection(c *cobra.Command, s *selection) {
	o.addNamespaces(c)
	o.addOutput(c, "json")
	c.Flags().BoolVar(&s.all, "all", false, "Choose all ExternalSecrets and PushSecrets of the namespace; with -A those of all namespaces.")
	c.Flags().StringVar(&s.store, "store", "", "Choose the objects that use a store or generator: KIND/NAME.")
}

const arguments = "KIND/NAME, or NAME for an ExternalSecret. KIND is externalsecret, pushsecret, clusterexternalsecret or clusterpushsecret."

func newRefresh(o *options) *cobra.Command {
	var sel selection
	waits, timeout := false, time.Minute
	c := &cobra.Command{
		Use:   "refresh [KIND/]NAME ... | --all | --store KIND/NAME",
		Short: "Refresh objects, so that their values are read or pushed now",
		Long: `refresh asks for a refresh by the annotation direct-secrets.io/refresh-requested-at. It works under every refresh policy.
` + arguments + `

Exit codes: 0 all objects were asked, with --wait all are Ready; 1 the command failed; 2 with --wait, one is not Ready.`,
		Example: `  dsctl refresh db -n shop --wait
  dsctl refresh --store awssecretsmanager/prod -n shop
  dsctl refresh pushsecret/db -n shop`,
		RunE: func(c *cobra.Command, args []string) error {
			request := time.Now().UTC().Format(time.RFC3339Nano)
			after := func(context.Context, *session, *snapshot.Object, *changed) {}
			if waits {
				after = func(ctx context.Context, s *session, obj *snapshot.Object, out *changed) {
					waitForRefresh(ctx, s, obj, request, timeout, out)
				}
			}
			return o.change(c.Context(), args, sel, change.CanRefresh, func(obj *snapshot.Object) ([]byte, error) {
				return change.RefreshPatch(obj, request)
			}, after, "refresh requested")
		},
	}
	c.ValidArgsFunction = o.completeObjects(change.CanRefresh)
	o.addSelection(c, &sel)
	c.Flags().BoolVar(&waits, "wait", false, "Wait until the operators have served the request.")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait for each object.")
	return c
}

func newSuspend(o *options, suspend bool) *cobra.Command {
	var sel selection
	use, short, done := "suspend", "Suspend objects, so that the operators neither read nor write for them", "suspended"
	if !suspend {
		use, short, done = "resume", "Resume suspended objects", "resumed"
	}
	c := &cobra.Command{
		Use:   use + " [KIND/]NAME ... | --all | --store KIND/NAME",
		Short: short,
		Long: use + ` changes spec.suspend; on a cluster Kind, for all objects that it creates. A tool that has the object in its
manifests, such as Argo CD or Flux, may revert that: change the manifest there.
` + arguments,
		Example: fmt.Sprintf("  dsctl %s db -n shop\n  dsctl %[1]s --store awssecretsmanager/prod -n shop", use),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(c.Context(), args, sel, change.CanSuspend, func(obj *snapshot.Object) ([]byte, error) {
				return change.SuspendPatch(obj, suspend)
			}, func(context.Context, *session, *snapshot.Object, *changed) {}, done)
		},
	}
	c.ValidArgsFunction = o.completeObjects(change.CanSuspend)
	o.addSelection(c, &sel)
	return c
}

// change changes the selected objects. An object that cannot be changed does not stop the others.
func (o *options) change(ctx context.Context, args []string, sel selection, ok func(snapshot.Kind) bool,
	patch func(*snapshot.Object) ([]byte, error), after func(context.Context, *session, *snapshot.Object, *changed), done string) error {
	s, err := o.connect()
	if err != nil {
		return err
	}
	objects, err := choose(ctx, s, args, sel, ok)
	if err != nil {
		return err
	}
	results, bad, failed := []changed{}, false, false
	for i := range objects {
		obj := &objects[i]
		s.Progress(fmt.Sprintf("%s (%d of %d)", obj.Ref(), i+1, len(objects)))
		r := changed{Ref: obj.Ref()}
		p, err := patch(obj)
		if err == nil && p != nil {
			r.Changed = true
			err = s.Patch(ctx, obj, p)
		}
		if err != nil {
			r.Changed, r.Error, failed = false, err.Error(), true
		} else {
			after(ctx, s, obj, &r)
			bad = bad || (r.Ready != "" && r.Ready != "True")
		}
		results = append(results, r)
	}
	s.Progress("")
	if err := o.printChanged(results, done); err != nil {
		return err
	}
	switch {
	case failed:
		return errors.New("not all objects could be changed")
	case bad:
		return errFound
	}
	return nil
}

// choose returns the objects that the arguments or flags select.
func choose(ctx context.Context, s *session, args []string, sel selection, ok func(snapshot.Kind) bool) ([]snapshot.Object, error) {
	if ways := btoi(len(args) > 0) + btoi(sel.all) + btoi(sel.store != ""); ways != 1 {
		return nil, errors.New("name objects, or use either --all or --store")
	}
	kinds, err := s.Kinds()
	if err != nil {
		return nil, err
	}
	var objects []snapshot.Object
	if len(args) > 0 {
		if s.namespace == "" {
			return nil, errors.New("-A needs --all or --store, because a name is in one namespace")
		}
		for _, a := range args {
			t, err := change.ParseTarget(kinds, a, ok)
			if err != nil {
				return nil, err
			}
			obj, err := s.Get(ctx, t.Kind, s.namespace, t.Name)
			if err != nil {
				return nil, err
			}
			objects = append(objects, obj)
		}
		return objects, nil
	}
	var store change.Target
	if sel.store != "" {
		if store, err = change.ParseTarget(kinds, sel.store, func(k snapshot.Kind) bool { return k.IsSource() }); err != nil {
			return nil, err
		}
	}
	for _, k := range kinds {
		if !ok(k) || !k.Namespaced {
			continue
		}
		all, err := s.List(ctx, k, s.namespace)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if sel.all || change.UsesStore(&all[i], store) {
				objects = append(objects, all[i])
			}
		}
	}
	return objects, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// waitForRefresh waits until the operators have handled a refresh request, and stores the object's report in out.
func waitForRefresh(ctx context.Context, s *session, obj *snapshot.Object, request string, timeout time.Duration, out *changed) {
	if !obj.Kind.Namespaced {
		return // A cluster Kind has many objects.
	}
	s.Progress("status of " + obj.Ref().String())
	last := *obj
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		now, err := s.Get(ctx, obj.Kind, obj.Meta.Namespace, obj.Meta.Name)
		if err != nil {
			return false, err
		}
		last = now
		return change.Answered(&now, request), nil
	})
	if c := last.Ready(); c != nil {
		out.Ready, out.Reason, out.Message = string(c.Status), c.Reason, c.Message
	}
	if err != nil {
		out.Ready = "Unknown"
		out.Message = strings.TrimPrefix(fmt.Sprintf("%s; the request was not served: %s", out.Message, err), "; ")
	}
}

func (o *options) printChanged(results []changed, done string) error {
	if o.format == "json" {
		return o.out.JSON(results)
	}
	if len(results) == 0 {
		return o.errs.Line("No objects found.")
	}
	for _, r := range results {
		text := done
		switch {
		case r.Error != "":
			text = "error: " + r.Error
		case !r.Changed:
			text = "unchanged"
		case r.Ready != "":
			text += fmt.Sprintf(": Ready is %s: %s: %s", r.Ready, r.Reason, r.Message)
		}
		if err := o.out.Line("%s: %s", r.Ref, text); err != nil {
			return err
		}
	}
	return nil
}
