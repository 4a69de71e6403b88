package emulator

import (
	"cmp"
	"regexp"
	"strings"
)

// maxValue is the maximum size of a value by tier.
var maxValue = map[string]int{tierStandard: 4096, tierAdvanced: 8192}

var (
	parameterChars = regexp.MustCompile(`^[a-zA-Z0-9_.\-/]+$`)
	parameterID    = regexp.MustCompile(`^[a-zA-Z0-9_.\-/@+=!]+(:[a-zA-Z0-9_.\-]+)?$`)
)

// checkParameterID validates a name to read like the service.
func checkParameterID(id string) error {
	if !strings.HasPrefix(id, "arn:") && !parameterID.MatchString(id) {
		return badParameterName()
	}
	return nil
}

func badParameterName() *apiError {
	return badRequest("ValidationException", `Parameter name: can't be prefixed with "ssm" (case-insensitive). `+
		"If formed as a path, it can consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers and the following 3 symbols .-_")
}

// check validates the name, value and tags of a new parameter like the service.
func (in *putParameterInput) check() error {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(in.Name, "/")), "/")
	switch {
	case !parameterChars.MatchString(in.Name), len(in.Name) > 1011, strings.HasPrefix(first, "ssm"), strings.HasPrefix(first, "aws"), strings.HasSuffix(in.Name, "/"), strings.Contains(in.Name, "//"):
		return badParameterName()
	case strings.Contains(in.Name, "/") && !strings.HasPrefix(in.Name, "/"):
		return badRequest("ValidationException", "Parameter name must be a fully qualified name.")
	case in.Overwrite && len(in.Tags) > 0:
		return badRequest("ValidationException", "Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove overwrite flag. "+
			"To update tags for an existing parameter, please use AddTagsToResource or RemoveTagsFromResource.")
	case in.Value == "":
		return invalidField("value", "Member must have length greater than or equal to 1")
	}
	return checkTags(in.Tags)
}

// tier returns the tier for a value of this size, given the present tier of the parameter.
func (in *putParameterInput) tier(before string) (string, error) {
	tier := cmp.Or(in.Tier, before, tierStandard)
	if tier == tierIntelligent {
		tier = cmp.Or(before, tierStandard)
		if len(in.Value) > maxValue[tierStandard] {
			tier = tierAdvanced
		}
	}
	if tier == tierStandard && before == tierAdvanced {
		return "", badRequest("ValidationException", "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the advanced-parameter tier to the standard-parameter tier.")
	}
	if len(in.Value) > maxValue[tier] {
		return "", badRequest("ValidationException", "%s tier parameters support a maximum parameter value of %d characters.", tier, maxValue[tier])
	}
	return tier, nil
}
