package emulator

import (
	"bytes"
	"slices"
	"time"
)

// These are the staging labels that the service itself moves.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

// maxVersions is how many versions a secret keeps. If there are more, the oldest without a label are removed.
const maxVersions = 100

// A version is one value of a secret. Its id and value never change.
type version struct {
	id      string
	value   payload
	created time.Time
	stages  []string
}

// A payload is a secret value: text or binary.
type payload struct {
	data   []byte
	binary bool
}

func (p payload) equal(o payload) bool {
	return p.binary == o.binary && bytes.Equal(p.data, o.data)
}

func (s *secret) version(id string) *version {
	for _, v := range s.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (s *secret) staged(stage string) *version {
	for _, v := range slices.Backward(s.versions) {
		if slices.Contains(v.stages, stage) {
			return v
		}
	}
	return nil
}

// put adds a version and moves the given labels to it. The first version of a secret is always the current one.
func (s *secret) put(id string, value payload, stages []string, now time.Time) *version {
	v := &version{id: id, value: value, created: now}
	first := len(s.versions) == 0
	s.versions = append(s.versions, v)
	for _, stage := range stages {
		s.move(stage, v)
	}
	if first {
		s.move(stageCurrent, v)
	}
	s.changed = now
	s.prune()
	return v
}

// move moves a label from the version that has it to another, or removes it. The version that was current gets
// AWSPREVIOUS.
func (s *secret) move(stage string, to *version) {
	from := s.staged(stage)
	if from == to {
		return
	}
	if from != nil {
		from.stages = slices.DeleteFunc(from.stages, func(l string) bool { return l == stage })
	}
	if to != nil {
		to.stages = append(to.stages, stage)
	}
	if stage == stageCurrent && from != nil {
		s.move(stagePrevious, from)
	}
}

func (s *secret) prune() {
	excess := len(s.versions) - maxVersions
	s.versions = slices.DeleteFunc(s.versions, func(v *version) bool {
		if excess <= 0 || len(v.stages) > 0 {
			return false
		}
		excess--
		return true
	})
}

// read returns the version that a request selects. Without an id and a label it is the current one.
func (s *secret) read(id, stage string) (*version, error) {
	if id == "" {
		if stage == "" {
			stage = stageCurrent
		}
		if v := s.staged(stage); v != nil {
			return v, nil
		}
		return nil, noSuchValue("staging label", stage)
	}
	v := s.version(id)
	if v == nil {
		return nil, noSuchValue("VersionId", id)
	}
	if stage != "" && !slices.Contains(v.stages, stage) {
		return nil, invalidRequest("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	return v, nil
}

// labels maps version ids to their labels. Versions without a label are omitted.
func (s *secret) labels() map[string][]string {
	var m map[string][]string
	for _, v := range s.versions {
		if len(v.stages) == 0 {
			continue
		}
		if m == nil {
			m = map[string][]string{}
		}
		m[v.id] = slices.Clone(v.stages)
	}
	return m
}
