package main

import (
	"reflect"
	"strings"
)

// A page shows a Kind, and its cluster Kind if there is one.
type page struct {
	File, Title string
	Kinds       []*kind
	Spec        []section
	Status      []section
	// Twin holds the fields that the cluster Kind has in addition, or that differ.
	Twin *twin
}

// Kind returns the Kind that the page is named after.
func (p page) Kind() *kind { return p.Kinds[0] }

// A twin is how a cluster Kind differs from its namespaced one.
type twin struct {
	*kind
	More   []field
	Others []field
}

// pagesOf returns one page for each Kind, together with the cluster Kind that has all of its fields.
func pagesOf(kinds []*kind) []page {
	byName := map[string]*kind{}
	for _, k := range kinds {
		byName[k.Name] = k
	}
	var out []page
	for _, k := range kinds {
		if base := byName[strings.TrimPrefix(k.Name, "Cluster")]; k.Cluster && base != nil && isTwin(base, k) {
			continue // It is on the page of the namespaced Kind.
		}
		out = append(out, pageOf(k, byName))
	}
	return out
}

// A group holds the pages of one API version.
type group struct {
	*kind
	Pages []page
}

// grouped returns the pages grouped by API version.
func grouped(pages []page) []group {
	var out []group
	for _, p := range pages {
		if len(out) == 0 || out[len(out)-1].APIVersion() != p.Kind().APIVersion() {
			out = append(out, group{kind: p.Kind()})
		}
		last := &out[len(out)-1]
		last.Pages = append(last.Pages, p)
	}
	return out
}

// isTwin reports whether a cluster Kind has all fields of a namespaced one.
func isTwin(base, cluster *kind) bool {
	for name := range base.Spec.Properties {
		if cluster.Spec.Properties[name] == nil {
			return false
		}
	}
	return true
}

func pageOf(k *kind, byName map[string]*kind) page {
	var r reader
	if base := strings.TrimPrefix(k.Name, "Cluster"); base != k.Name && byName[base] != nil {
		r.shown = map[string]*schema{"[spec of " + base + "](" + file(base) + "#spec)": byName[base].Spec}
	}
	p := page{File: file(k.Name), Title: k.Name, Kinds: []*kind{k}, Spec: r.sections("spec", k.Spec)}
	if k.Status != nil {
		p.Status = r.sections("status", k.Status)
	}
	if cluster := byName["Cluster"+k.Name]; cluster != nil && isTwin(k, cluster) {
		p.Title += " and " + cluster.Name
		p.Kinds = append(p.Kinds, cluster)
		p.Twin = twinOf(r, k, cluster)
	}
	return p
}

// twinOf compares the fields of two Kinds.
func twinOf(r reader, base, cluster *kind) *twin {
	has := map[string]field{}
	for _, f := range fieldsOf(r, base) {
		has[f.Path] = f
	}
	t := &twin{kind: cluster}
	for _, f := range fieldsOf(r, cluster) {
		switch same, found := has[f.Path]; {
		case !found:
			t.More = append(t.More, f)
		case !reflect.DeepEqual(same, f) && f.Path != "spec":
			t.Others = append(t.Others, f)
		}
	}
	return t
}

// fieldsOf returns all fields of a Kind with their full paths.
func fieldsOf(r reader, k *kind) []field {
	out := r.below(k.Spec, "spec")
	if k.Status != nil {
		out = append(out, r.below(k.Status, "status")...)
	}
	return out
}

func file(kind string) string { return strings.ToLower(kind) + ".md" }
