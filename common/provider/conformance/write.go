package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// mark is the mark of the suite's object; other is that of another object.
const (
	mark  = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"
	other = "7d4d5f5c-2f57-4ad4-8a4e-15b3a9a1c2d3"
)

var writeChecks = []check{
	{"write/create", provider.CapabilityWrite, "A created secret exists, with its mark and its version.", writeCreate},
	{"write/create-exists", provider.CapabilityWrite, "Create never overwrites.", writeCreateExists},
	{"write/create-again", provider.CapabilityWrite, "After a deletion the name can be used again.", writeCreateAgain},
	{"write/id", provider.CapabilityWrite, "A later secret with the same name and number of versions has another ID.", writeID},
	{"write/update", provider.CapabilityWrite, "An update writes the new value as a new version, and keeps the mark.", writeUpdate},
	{"write/update-same", provider.CapabilityWrite, "An update with the same value creates no version.", writeUpdateSame},
	{"write/update-moved", provider.CapabilityWrite, "A concurrent write by another writer causes a Conflict, or its value is returned as lost.", writeUpdateMoved},
	{"write/update-gone", provider.CapabilityWrite, "An update does not create a deleted secret again.", writeUpdateDeleted},
	{"write/mark", provider.CapabilityWrite, "A secret that is taken over has the mark of its new owner, is otherwise unchanged, and can be deleted with that mark.", writeMark},
	{"write/mark-moved", provider.CapabilityWrite, "A secret that another writer has changed or marked in the meantime is not taken over.", writeMarkMoved},
	{"write/delete", provider.CapabilityWrite, "A deleted secret does not exist, and a second deletion is not an error.", writeDelete},
	{"write/delete-moved", provider.CapabilityWrite, "A secret that another writer has changed in the meantime is not deleted.", writeDeleteMoved},
	{"write/unmarked", provider.CapabilityWrite, "A secret of another writer has no mark, and an update does not add one.", writeUnmarked},
	{"write/metadata", provider.CapabilityWrite, "Settings are compared and corrected without a new version.", writeMetadata},
	{"write/metadata-unknown", provider.CapabilityWrite, "An unknown setting is an error that names it.", writeMetadataUnknown},
	{"write/values", provider.CapabilityWrite, "A value is stored byte for byte, or refused.", writeValues},
	{"write/too-large", provider.CapabilityWrite, "A value above the provider's limit is refused, and nothing changes.", writeTooLarge},
	{"write/failure", provider.CapabilityWrite, "A failed call has the class of its error, and has changed nothing.", writeFailure},
	{"write/hang", provider.CapabilityWrite, "A write ends with its context.", writeHang},
	{"write/create-race", provider.CapabilityWrite, "Only one of several concurrent calls of Create succeeds.", writeCreateRace},
	{"write/update-race", provider.CapabilityWrite, "Of several concurrent updates none loses its value unnoticed.", writeUpdateRace},
}

func (e *env) writer() provider.Writer { return e.linked }

func (e *env) target(leaf string) provider.Target { return provider.Target{Key: e.key(leaf)} }

// creates creates a secret with the client. The suite deletes it afterwards.
func (e *env) creates(ctx context.Context, leaf, as string) (provider.Observed, error) {
	t := e.target(leaf)
	e.deleteAtEnd(t.Key)
	w, err := e.writer().Create(ctx, t, value(leaf), as)
	if err != nil {
		return provider.Observed{}, errors.Wrapf(err, "Create %q", t.Key)
	}
	o, err := e.observes(ctx, t)
	if err == nil && (o.Version != w.Version || o.ID != w.ID) {
		err = errors.Errorf("Create returned version %q and ID %q, Observe %q and %q", w.Version, w.ID, o.Version, o.ID)
	}
	return o, err
}

// deleteAtEnd registers a key that must be deleted at the end.
func (e *env) deleteAtEnd(key string) {
	if e.puts == nil {
		e.puts = map[string]bool{}
	}
	e.puts[key] = true
}

func (e *env) observes(ctx context.Context, t provider.Target) (provider.Observed, error) {
	o, err := e.writer().Observe(ctx, t)
	if err == nil && (o.Version == "") != (o.Data == nil) {
		err = errors.Errorf("it has version %q and %d bytes: one without the other", o.Version, len(o.Data))
	}
	return o, errors.Wrapf(err, "Observe %q", t.Key)
}

// holds checks a stored secret.
func (e *env) holds(ctx context.Context, t provider.Target, data []byte, as string) error {
	o, err := e.observes(ctx, t)
	if err != nil {
		return err
	}
	if !e.writer().Features().Exclusive {
		as = ""
	}
	if o.Mark != as {
		return errors.Errorf("%q has mark %q, want %q", t.Key, o.Mark, as)
	}
	return errors.Join(
		errors.Wrap(e.same(provider.Ref{Key: t.Key}, data, provider.Value{Key: t.Key, Data: o.Data, Version: o.Version}), "Observe"),
		e.wants(ctx, provider.Ref{Key: t.Key}, data),
		e.wants(ctx, provider.Ref{Key: t.Key, Version: o.Version}, data),
	)
}

func (e *env) absent(ctx context.Context, t provider.Target) error {
	_, err := e.writer().Observe(ctx, t)
	return errors.Wrapf(hasClass(err, provider.NotFound), "Observe %q", t.Key)
}

func writeCreate(ctx context.Context, e *env) error {
	t := e.target("new")
	if err := e.absent(ctx, t); err != nil {
		return err
	}
	if _, err := e.creates(ctx, "new", mark); err != nil {
		return err
	}
	return e.holds(ctx, t, value("new"), mark)
}

func writeCreateExists(ctx context.Context, e *env) error {
	if !e.writer().Features().Exclusive {
		return nil
	}
	if _, err := e.creates(ctx, "ours", mark); err != nil {
		return err
	}
	if _, err := e.put(ctx, "theirs"); err != nil {
		return err
	}
	var errs []error
	for leaf, as := range map[string]string{"ours": mark, "theirs": ""} {
		_, err := e.writer().Create(ctx, e.target(leaf), value("again"), other)
		errs = append(errs,
			errors.Wrapf(hasClass(err, provider.Conflict), "Create of %q, which exists", leaf),
			e.holds(ctx, e.target(leaf), value(leaf), as))
	}
	return errors.Join(errs...)
}

func writeCreateAgain(ctx context.Context, e *env) error {
	o, err := e.creates(ctx, "again", mark)
	if err != nil {
		return err
	}
	if err := e.writer().Delete(ctx, e.target("again"), o); err != nil {
		return errors.Wrap(err, "Delete")
	}
	if _, err := e.creates(ctx, "again", mark); err != nil {
		return err
	}
	return e.holds(ctx, e.target("again"), value("again"), mark)
}

func writeID(ctx context.Context, e *env) error {
	t := e.target("a")
	if !e.writer().Features().Exclusive {
		return nil // No secret counts as created, so the ID is not used.
	}
	ids := map[string]bool{}
	for range 2 {
		o, err := e.creates(ctx, "a", mark)
		if err != nil {
			return err
		}
		again, err := e.observes(ctx, t)
		if err != nil || o.ID == "" || again.ID != o.ID || ids[o.ID] {
			return errors.Errorf("ID %q, then %q, and before %v; error %v", o.ID, again.ID, ids, err)
		}
		ids[o.ID] = true
		w, err := e.writer().Update(ctx, t, o, value("b"))
		if err != nil {
			return errors.Wrap(err, "Update")
		}
		if again, err = e.observes(ctx, t); err != nil || w.ID != again.ID {
			return errors.Errorf("Update returned ID %q, Observe %q; error %v", w.ID, again.ID, err)
		}
		ids[w.ID] = true
		if err := e.delete(ctx, t.Key); err != nil {
			return err
		}
	}
	return nil
}

func writeUpdate(ctx context.Context, e *env) error {
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	for _, next := range []string{"second", "third"} {
		w, err := e.writer().Update(ctx, t, o, value(next))
		if err != nil {
			return errors.Wrap(err, "Update")
		}
		was := o.Version
		if o, err = e.observes(ctx, t); err != nil {
			return err
		}
		if w.Version == was || w.Version != o.Version || w.Lost != nil {
			return errors.Errorf("from version %q Update returned %q, with %d bytes lost; Observe returned %q", was, w.Version, len(w.Lost), o.Version)
		}
		if err := e.holds(ctx, t, value(next), mark); err != nil {
			return err
		}
	}
	return nil
}

func writeUpdateSame(ctx context.Context, e *env) error {
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	for _, data := range [][]byte{value("a"), nil} {
		w, err := e.writer().Update(ctx, e.target("a"), o, data)
		if err != nil || w.Version != o.Version {
			return errors.Errorf("Update without a change: version %q, error %v; want %q", w.Version, err, o.Version)
		}
	}
	return e.holds(ctx, e.target("a"), value("a"), mark)
}

func writeUpdateMoved(ctx context.Context, e *env) error {
	if !e.writer().Features().Guarded {
		return nil
	}
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	if err := e.write(ctx, t.Key, value("theirs"), nil); err != nil {
		return err
	}
	w, err := e.writer().Update(ctx, t, o, value("ours"))
	if err != nil {
		return errors.Join(hasClass(err, provider.Conflict), e.holds(ctx, t, value("theirs"), mark))
	}
	if !bytes.Equal(e.spelled(w.Lost), e.spelled(value("theirs"))) {
		return errors.New("Update has overwritten the value of another writer, and did not return it as lost")
	}
	return e.holds(ctx, t, value("ours"), mark)
}

// spelled returns data in one format, if the provider does not keep the bytes.
func (e *env) spelled(data []byte) []byte {
	if e.h.JSONOnly {
		return normal(data)
	}
	return data
}

func writeUpdateDeleted(ctx context.Context, e *env) error {
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	if err := e.delete(ctx, t.Key); err != nil {
		return err
	}
	if !e.writer().Features().Guarded {
		return nil
	}
	_, err = e.writer().Update(ctx, t, o, value("b"))
	return errors.Join(hasClass(err, provider.Conflict), e.absent(ctx, t))
}

func writeMark(ctx context.Context, e *env) error {
	if !e.writer().Features().Exclusive {
		return nil
	}
	t := e.target("a")
	if len(e.h.Metadata) > 0 {
		t.Metadata = []byte(e.h.Metadata[0])
	}
	e.deleteAtEnd(t.Key)
	if _, err := e.writer().Create(ctx, t, value("a"), mark); err != nil {
		return errors.Wrap(err, "Create")
	}
	o, err := e.observes(ctx, t)
	if err != nil {
		return err
	}
	w, err := e.writer().Update(ctx, t, o, value("b"))
	if err != nil {
		return errors.Wrap(err, "Update")
	}
	o.Version, o.ID = w.Version, w.ID // Token is the one from before the update.
	if err := e.writer().Mark(ctx, t, o, other); err != nil {
		return errors.Wrap(err, "Mark")
	}
	now, err := e.observes(ctx, t)
	if err == nil && (now.Version != w.Version || now.ID != w.ID || len(now.Drift) > 0) {
		err = errors.Errorf("after Mark it has version %q and ID %q instead of %q and %q, and drifts in %q", now.Version, now.ID, w.Version, w.ID, now.Drift)
	}
	if err = errors.Join(err, e.holds(ctx, t, value("b"), other)); err != nil {
		return err
	}
	return e.remarks(ctx, t, now)
}

// remarks clears the mark of a secret, and sets another one, as two objects do for a hand-over. Then it deletes the secret.
func (e *env) remarks(ctx context.Context, t provider.Target, now provider.Observed) (err error) {
	for _, m := range []string{"", mark} {
		if err := e.writer().Mark(ctx, t, now, m); err != nil {
			return errors.Wrapf(err, "Mark %q", m)
		}
		if now, err = e.observes(ctx, t); err != nil {
			return err
		}
		if err := e.holds(ctx, t, value("b"), m); err != nil {
			return err
		}
	}
	return errors.Join(errors.Wrap(e.writer().Delete(ctx, t, now), "Delete"), e.absent(ctx, t))
}

func writeMarkMoved(ctx context.Context, e *env) error {
	if !e.writer().Features().Exclusive {
		return nil
	}
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	theirs := o
	theirs.Mark = other
	err = hasClass(e.writer().Mark(ctx, t, theirs, other), provider.Conflict)
	if err := errors.Join(errors.Wrap(err, "with another mark"), e.holds(ctx, t, value("a"), mark), e.write(ctx, t.Key, value("theirs"), nil)); err != nil {
		return err
	}
	err = hasClass(e.writer().Mark(ctx, t, o, other), provider.Conflict)
	if err := errors.Join(errors.Wrap(err, "with another value"), e.holds(ctx, t, value("theirs"), mark), e.delete(ctx, t.Key)); err != nil {
		return err
	}
	err = hasClass(e.writer().Mark(ctx, t, o, other), provider.Conflict)
	return errors.Join(errors.Wrap(err, "of a deleted secret"), e.absent(ctx, t))
}

func writeDelete(ctx context.Context, e *env) error {
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	for range 2 {
		if err := e.writer().Delete(ctx, t, o); err != nil {
			return errors.Wrap(err, "Delete")
		}
		if err := errors.Join(e.absent(ctx, t), e.fails(ctx, provider.Ref{Key: t.Key}, provider.NotFound)); err != nil {
			return err
		}
	}
	return nil
}

func writeDeleteMoved(ctx context.Context, e *env) error {
	t := e.target("a")
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	if err := e.write(ctx, t.Key, value("theirs"), nil); err != nil {
		return err
	}
	return errors.Join(
		hasClass(e.writer().Delete(ctx, t, o), provider.Conflict),
		e.holds(ctx, t, value("theirs"), mark),
	)
}

func writeUnmarked(ctx context.Context, e *env) error {
	key, err := e.put(ctx, "theirs")
	if err != nil {
		return err
	}
	t := provider.Target{Key: key}
	if err := e.holds(ctx, t, value("theirs"), ""); err != nil {
		return err
	}
	o, err := e.observes(ctx, t)
	if err != nil {
		return err
	}
	if _, err := e.writer().Update(ctx, t, o, value("ours")); err != nil {
		return errors.Wrap(err, "Update")
	}
	return e.holds(ctx, t, value("ours"), "")
}

func writeMetadata(ctx context.Context, e *env) error {
	if len(e.h.Metadata) != 2 {
		return errors.New("harness: Metadata is missing")
	}
	one, two := e.target("a"), e.target("a")
	one.Metadata, two.Metadata = []byte(e.h.Metadata[0]), []byte(e.h.Metadata[1])
	e.deleteAtEnd(one.Key)
	if _, err := e.writer().Create(ctx, one, value("a"), mark); err != nil {
		return errors.Wrap(err, "Create")
	}
	for _, step := range []struct {
		t      provider.Target
		drifts bool
	}{{one, false}, {two, true}, {two, false}, {one, true}} {
		o, err := e.observes(ctx, step.t)
		if err != nil {
			return err
		}
		if drifts := len(o.Drift) > 0; drifts != step.drifts {
			return errors.Errorf("%s: drift %q, want some: %t", step.t.Metadata, o.Drift, step.drifts)
		}
		w, err := e.writer().Update(ctx, step.t, o, nil)
		if err != nil || w.Version != o.Version {
			return errors.Errorf("%s: Update: version %q, error %v; want %q", step.t.Metadata, w.Version, err, o.Version)
		}
	}
	bare, err := e.observes(ctx, e.target("a"))
	if err == nil && len(bare.Drift) > 0 {
		err = errors.Errorf("without metadata it drifts in %q", bare.Drift)
	}
	return errors.Join(err, e.holds(ctx, e.target("a"), value("a"), mark))
}

func writeMetadataUnknown(ctx context.Context, e *env) error {
	t := e.target("a")
	t.Metadata = []byte(`{"noSuchSetting":"x"}`)
	_, err := e.writer().Observe(ctx, t)
	if bad := hasClass(err, provider.Invalid); bad != nil {
		return bad
	}
	if !strings.Contains(err.Error(), "noSuchSetting") {
		return errors.Errorf("the error does not name the setting: %v", err)
	}
	return nil
}

func writeValues(ctx context.Context, e *env) error {
	values := map[string][]byte{
		"empty": {}, "binary": {0, 0xff, 0xfe, '\n'}, "text": []byte(" b\tc\r\n"), "unicode": []byte("żółć 𝕏"),
		"number": []byte("007"), "large": bytes.Repeat([]byte("x"), e.maxSize()),
	}
	var errs []error
	for name, data := range values {
		t := e.target(name)
		e.deleteAtEnd(t.Key)
		switch _, err := e.writer().Create(ctx, t, data, mark); {
		case err != nil && (e.h.JSONOnly || slices.Contains([]string{"empty", "binary"}, name)):
			errs = append(errs, errors.Wrap(hasClass(err, provider.Invalid), name), errors.Wrap(e.absent(ctx, t), name))
		case err != nil:
			errs = append(errs, errors.Wrapf(err, "Create %s", name))
		default:
			errs = append(errs, errors.Wrap(e.holds(ctx, t, data, mark), name))
		}
	}
	return errors.Join(errs...)
}

func (e *env) maxSize() int {
	if e.h.MaxSize > 0 {
		return e.h.MaxSize
	}
	return 60 << 10
}

func writeTooLarge(ctx context.Context, e *env) error {
	if e.h.MaxWrite == 0 {
		return errors.New("harness: MaxWrite is missing")
	}
	data := func(size int) []byte {
		head, tail := `{"a":"`, `"}`
		return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
	}
	o, err := e.creates(ctx, "a", mark)
	if err != nil {
		return err
	}
	_, created := e.writer().Create(ctx, e.target("b"), data(e.h.MaxWrite+1), mark)
	_, updated := e.writer().Update(ctx, e.target("a"), o, data(e.h.MaxWrite+1))
	return errors.Join(
		errors.Wrap(hasClass(created, provider.Invalid), "Create"), errors.Wrap(hasClass(updated, provider.Invalid), "Update"),
		e.absent(ctx, e.target("b")), e.holds(ctx, e.target("a"), value("a"), mark),
	)
}

// writeCalls returns all calls of a Writer, each for its own secret.
func (e *env) writeCalls(ctx context.Context) (map[string]func(context.Context) error, func() error, error) {
	var seen [4]provider.Observed
	leaves := []string{"observed", "updated", "deleted", "marked"}
	for i, leaf := range leaves {
		var err error
		if seen[i], err = e.creates(ctx, leaf, mark); err != nil {
			return nil, nil, err
		}
	}
	w := e.writer()
	e.deleteAtEnd(e.key("created"))
	calls := map[string]func(context.Context) error{
		"Observe": func(ctx context.Context) error { _, err := w.Observe(ctx, e.target("observed")); return err },
		"Create": func(ctx context.Context) error {
			_, err := w.Create(ctx, e.target("created"), value("created"), mark)
			return err
		},
		"Update": func(ctx context.Context) error {
			_, err := w.Update(ctx, e.target("updated"), seen[1], value("b"))
			return err
		},
		"Delete": func(ctx context.Context) error { return w.Delete(ctx, e.target("deleted"), seen[2]) },
	}
	if w.Features().Exclusive {
		calls["Mark"] = func(ctx context.Context) error { return w.Mark(ctx, e.target("marked"), seen[3], other) }
	}
	return calls, func() error {
		errs := []error{e.absent(ctx, e.target("created"))}
		for _, leaf := range leaves {
			errs = append(errs, e.holds(ctx, e.target(leaf), value(leaf), mark))
		}
		return errors.Join(errs...)
	}, nil
}

func writeFailure(ctx context.Context, e *env) error {
	calls, unchanged, err := e.writeCalls(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range classes {
		errs = append(errs, e.under(Fault{Failure: c.failure}, func() error {
			var errs []error
			for name, call := range calls {
				errs = append(errs, errors.Wrap(hasClass(call(ctx), c.class), name))
			}
			return errors.Join(errs...)
		}), errors.Wrapf(unchanged(), "after %s", c.failure))
	}
	return errors.Join(errs...)
}

func writeHang(ctx context.Context, e *env) error {
	calls, unchanged, err := e.writeCalls(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for name, call := range calls {
		errs = append(errs, errors.Wrap(e.givesUp(ctx, call), name))
	}
	return errors.Join(append(errs, unchanged())...)
}

func writeCreateRace(ctx context.Context, e *env) error {
	if !e.writer().Features().Exclusive {
		return nil
	}
	t := e.target("race")
	e.deleteAtEnd(t.Key)
	errs := e.race(func(i int) error {
		_, err := e.writer().Create(ctx, t, value(fmt.Sprint(i)), fmt.Sprint(mark, i))
		return err
	})
	var wrong []error
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			wrong = append(wrong, errors.Errorf("both %d and %d have created it", winner, i))
		case err == nil:
			winner = i
		default:
			wrong = append(wrong, hasClass(err, provider.Conflict))
		}
	}
	if winner < 0 {
		return errors.Errorf("no call has created it: %v", errs[0])
	}
	return errors.Join(append(wrong, e.holds(ctx, t, value(fmt.Sprint(winner)), fmt.Sprint(mark, winner)))...)
}

// writeUpdateRace makes updates based on the same version. Each written value must be the current one in the end, or be
// returned as lost to another update. All other updates must be refused.
func writeUpdateRace(ctx context.Context, e *env) error {
	if !e.writer().Features().Guarded {
		return nil
	}
	t := e.target("race")
	o, err := e.creates(ctx, "race", mark)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var remained, written []string
	errs := e.race(func(i int) error {
		w, err := e.writer().Update(ctx, t, o, value(fmt.Sprint(i)))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			written = append(written, string(e.spelled(value(fmt.Sprint(i)))))
		}
		if w.Lost != nil {
			remained = append(remained, string(e.spelled(w.Lost)))
		}
		return err
	})
	var wrong []error
	for _, err := range errs {
		if err != nil {
			wrong = append(wrong, hasClass(err, provider.Conflict))
		}
	}
	last, err := e.observes(ctx, t)
	if err != nil {
		return err
	}
	remained = append(remained, string(e.spelled(last.Data)))
	slices.Sort(remained)
	slices.Sort(written)
	if len(written) == 0 || !slices.Equal(remained, written) {
		wrong = append(wrong, errors.Errorf("%d were written, and %d of them are current or were returned as lost", len(written), len(remained)))
	}
	return errors.Join(wrong...)
}

// race calls f eight times concurrently.
func (e *env) race(f func(i int) error) []error {
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}
