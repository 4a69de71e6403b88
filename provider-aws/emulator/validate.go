package emulator

import (
	"fmt"
	"regexp"
)

var nameChars = regexp.MustCompile(`^[A-Za-z0-9/_+=.@!-]+$`)

func checkName(name string) error {
	if len(name) > 512 || !nameChars.MatchString(name) {
		return invalidName()
	}
	return nil
}

func invalidName() *apiError {
	return badRequest("ValidationException",
		"Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!")
}

func checkLength(field string, n, atLeast, atMost int) error {
	if n < atLeast {
		return invalidField(field, fmt.Sprintf("Member must have length greater than or equal to %d", atLeast))
	}
	if n > atMost {
		return invalidField(field, fmt.Sprintf("Member must have length less than or equal to %d", atMost))
	}
	return nil
}

// pageSize returns MaxResults, or the maximum if it is not set.
func pageSize(given *int, atMost int) (int, error) {
	if given == nil {
		return atMost, nil
	}
	if *given < 1 {
		return 0, invalidField("maxResults", "Member must have value greater than or equal to 1")
	}
	if *given > atMost {
		return 0, invalidField("maxResults", fmt.Sprintf("Member must have value less than or equal to %d", atMost))
	}
	return *given, nil
}

const maxTags = 50

func checkTags(tags []tag) error {
	for _, t := range tags {
		if err := checkLength("tags.member.key", len(t.Key), 1, 128); err != nil {
			return err
		}
		if err := checkLength("tags.member.value", len(t.Value), 0, 256); err != nil {
			return err
		}
	}
	return checkLength("tags", len(tags), 0, maxTags)
}
