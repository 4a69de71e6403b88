package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// A release is one unit of a plan.
type release struct {
	Unit string `json:"unit"`
	// Tag marks the release, for example provider-aws/v0.2.0.
	Tag string `json:"tag"`
	// From is the version of the release before; empty if this is the first one. To has the form v0.2.0, too.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Changes are the subjects of the commits.
	Changes []string `json:"changes"`
	// Written is true if the tree has the version and the changelog.
	Written bool `json:"-"`
	unit    unit
}

// A plan says what is to be released.
type plan struct {
	Releases []release
	// Waiting are units that have changed and are released only after common.
	Waiting []string
	// Refused are faults that are to be corrected before anything is released.
	Refused []string
}

// A state is what the plan needs to know of a unit.
type state struct {
	unit
	// Last is the version of its last release; empty if there is none.
	Last string
	// Commits have changed it since.
	Commits []commit
	// Common is the version of common that a module requires, and LastCommon that of its last release; empty for others.
	Common, LastCommon string
	// Pinned are the versions of modules in the last release of the umbrella chart, by name, without the v; nil for others.
	Pinned map[string]string
	// Version is that of its chart; empty for common. Log is true if its changelog has an entry for a version.
	Version string
	Log     func(version string) bool
}

// decide makes the plan. It does no I/O.
func decide(all []state) plan {
	var p plan
	common := all[0]
	if due := p.due(common, common.first(all), demand{level: patch}); due != nil {
		p.Releases = []release{*due}
		for _, s := range all[1:] {
			if len(s.Commits) > 0 || s.Last == "" {
				p.Waiting = append(p.Waiting, s.Name)
			}
		}
		return p
	}
	moved := demand{level: patch}
	for _, s := range all[1:] {
		of := demand{level: step(s.LastCommon, s.Common)}
		if s.Name == umbrella {
			of = moved
		}
		due := p.due(s, "v"+s.Version, of)
		if due != nil {
			if s.Name != umbrella && s.Common != common.Last {
				p.Refused = append(p.Refused, fmt.Sprintf("%s requires common %s, and the last release is %s: merge the change of Renovate first", s.Name, s.Common, common.Last))
			}
			p.Releases = append(p.Releases, *due)
		}
		moved.pin(s, due, all[len(all)-1].Pinned[s.Name])
	}
	return p
}

// A demand is what other units ask of a release: its least level, and changes that it contains besides its own.
type demand struct {
	level   string
	changes []string
}

// pin adds a module that the umbrella chart had in version was at its last release. It compares releases and not the plan,
// because a release that was cut has tagged some modules already.
func (d *demand) pin(s state, due *release, was string) {
	is := s.Last
	if due != nil {
		is = due.To
	}
	if is == "v"+was {
		return
	}
	d.changes = append(d.changes, fmt.Sprintf("Pin %s %s", s.Name, is))
	if step("v"+was, is) == minor {
		d.level = minor
	}
}

// step returns whether the way from one version to another is a minor one. Without a former version it is a patch.
func step(from, to string) string {
	if semver.IsValid(from) && semver.MajorMinor(from) != semver.MajorMinor(to) {
		return minor
	}
	return patch
}

// first returns the version of the first release of common: the one that modules require.
func (s state) first(all []state) string {
	for _, other := range all {
		if other.Common != "" {
			return other.Common
		}
	}
	return "v0.1.0"
}

const (
	patch = "patch"
	minor = "minor"
)

// due returns the release of a unit that has changed; nil if it has not. first is the version if it was never released.
func (p *plan) due(s state, first string, of demand) *release {
	if s.Last != "" && len(s.Commits) == 0 && len(of.changes) == 0 {
		return nil
	}
	level := of.level
	for _, c := range s.Commits {
		schema := slices.ContainsFunc(c.Files, isSchema)
		switch {
		case c.Level != "" && c.Level != patch && c.Level != minor:
			p.Refused = append(p.Refused, fmt.Sprintf("%q has the trailer Release: %s; it must be patch or minor", c.Subject, c.Level))
		case c.Level == patch && schema && s.Last != "":
			p.Refused = append(p.Refused, fmt.Sprintf("%q changes a schema of %s and has the trailer Release: patch, but a patch release changes no schema", c.Subject, s.Name))
		case c.Level == minor || schema:
			level = minor
		}
	}
	r := s.next(level, first)
	r.Changes = append(r.Changes, of.changes...)
	if s.Chart != "" && r.From != "" && s.Version != r.From[1:] && s.Version != r.To[1:] {
		p.Refused = append(p.Refused, fmt.Sprintf("%s has the version %s, which is neither the last release %s nor the next one %s", s.Chart, s.Version, r.From, r.To))
	}
	return r
}

// isSchema reports whether a file describes what users write: a CRD or the values of a chart.
func isSchema(file string) bool {
	return strings.Contains(file, "/manifests/crds/") || strings.HasSuffix(file, "/values.schema.json")
}

// next returns the next release of a unit.
func (s state) next(level, first string) *release {
	r := &release{Unit: s.Name, From: s.Last, To: first, unit: s.unit}
	if s.Last == "" {
		r.Changes = []string{"First release"}
	} else {
		r.To = raise(s.Last, level)
		for _, c := range s.Commits {
			if !c.Release {
				r.Changes = append(r.Changes, c.Subject)
			}
		}
	}
	r.Tag = s.Prefix + r.To
	r.Written = (s.Chart == "" || "v"+s.Version == r.To) && s.Log(r.To)
	return r
}

// raise returns the version after a release v1.2.3.
func raise(v, level string) string {
	part := func(s string) int {
		n, _ := strconv.Atoi(s) // A valid version has numbers only.
		return n
	}
	parts := strings.Split(strings.TrimPrefix(semver.Canonical(v), "v"), ".")
	if level == minor {
		return fmt.Sprintf("%s.%d.0", semver.Major(v), part(parts[1])+1)
	}
	return fmt.Sprintf("%s.%d", semver.MajorMinor(v), part(parts[2])+1)
}

// refusal returns why nothing can be released; nil if it can.
func (p plan) refusal() error {
	if len(p.Refused) == 0 {
		return nil
	}
	return errors.New(strings.Join(p.Refused, "\n"))
}

// String describes the plan.
func (p plan) String() string {
	b := &strings.Builder{}
	for _, r := range p.Releases {
		from := "first release"
		if r.From != "" {
			from = "after " + r.From
		}
		fmt.Fprintf(b, "%s (%s)\n", r.Tag, from)
		if r.From == "" {
			continue
		}
		for _, c := range r.Changes {
			fmt.Fprintf(b, "  - %s\n", c)
		}
	}
	if len(p.Waiting) > 0 {
		fmt.Fprintf(b, "After common, with the change of Renovate that moves to it: %s\n", strings.Join(p.Waiting, ", "))
	}
	for _, r := range p.Refused {
		fmt.Fprintf(b, "Refused: %s\n", r)
	}
	if b.Len() == 0 {
		return "Nothing is due.\n"
	}
	return b.String()
}
