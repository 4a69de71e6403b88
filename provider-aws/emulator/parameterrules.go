package emulator

import (
	"cmp"
	"regexp"
	"strings"
)

const (
	maxParameterName   = 1011 // characters, including those of the ARN before the name
	maxParameterLevels = 15

	maxStandardValue = 4096
	maxAdvancedValue = 8192
)

var (
	parameterChars = regexp.MustCompile(`^[a-zA-Z0-9_.\-/]+$`)
	parameterID    = regexp.MustCompile(`^[a-zA-Z0-9_.\-/@+=!]+(:[a-zA-Z0-9_.\-]+)?$`)
	parameterLabel = regexp.MustCompile(`^[a-zA-Z_.\-][a-zA-Z0-9_.\-]{0,99}$`)
)

// checkParameterID validates a name to read like the service.
func checkParameterID(id string) error {
	if strings.HasPrefix(id, "arn:") {
		return nil
	}
	if err := checkLength("name", len(id), 1, 2048); err != nil {
		return err
	}
	if !parameterID.MatchString(id) {
		return badParameterName()
	}
	return nil
}

func badParameterName() *apiError {
	return badRequest("ValidationException", `Parameter name: can't be prefixed with "ssm" (case-insensitive). `+
		"If formed as a path, it can consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers and the following 3 symbols .-_")
}

// check validates the name, type and size of a new parameter like the service.
func (in *putParameterInput) check() error {
	if err := in.checkName(); err != nil {
		return err
	}
	if err := checkTags(in.Tags); err != nil {
		return err
	}
	if in.Overwrite && len(in.Tags) > 0 {
		return badRequest("ValidationException", "Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove overwrite flag. "+
			"To update tags for an existing parameter, please use AddTagsToResource or RemoveTagsFromResource.")
	}
	switch in.Type {
	case "", typeString, typeStringList, typeSecureString:
	default:
		return invalidField("type", "Member must satisfy enum value set: [SecureString, StringList, String]")
	}
	if in.Value == "" {
		return invalidField("value", "Member must have length greater than or equal to 1")
	}
	return nil
}

func (in *putParameterInput) checkName() error {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(in.Name, "/")), "/")
	switch {
	case len(in.Name) > maxParameterName:
		return badRequest("ValidationException", "Parameter name must be no longer than %d characters.", maxParameterName)
	case !parameterChars.MatchString(in.Name), strings.HasPrefix(first, "ssm"), strings.HasSuffix(in.Name, "/"), strings.Contains(in.Name, "//"):
		return badParameterName()
	case strings.HasPrefix(first, "aws"):
		return badRequest("AccessDeniedException", "No access to reserved parameter name: %s.", in.Name)
	case strings.Contains(in.Name, "/") && !strings.HasPrefix(in.Name, "/"):
		return badRequest("ValidationException", "Parameter name must be a fully qualified name.")
	case strings.Count(in.Name, "/") > maxParameterLevels:
		return badRequest("HierarchyLevelLimitExceededException", "A hierarchy can have a maximum of %d levels.", maxParameterLevels)
	}
	return nil
}

// tier returns the tier for a value of this size, given the present tier of the parameter.
func (in *putParameterInput) tier(before string) (string, error) {
	tier := cmp.Or(in.Tier, before, tierStandard)
	if tier == tierIntelligent {
		tier = cmp.Or(before, tierStandard)
		if len(in.Value) > maxStandardValue {
			tier = tierAdvanced
		}
	}
	switch {
	case tier != tierStandard && tier != tierAdvanced:
		return "", invalidField("tier", "Member must satisfy enum value set: [Standard, Advanced, Intelligent-Tiering]")
	case tier == tierStandard && before == tierAdvanced:
		return "", badRequest("ValidationException", "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the advanced-parameter tier to the standard-parameter tier.")
	case tier == tierStandard && len(in.Value) > maxStandardValue:
		return "", badRequest("ValidationException", "Standard tier parameters support a maximum parameter value of %d characters. "+
			"To create a larger parameter value, upgrade the parameter to use the advanced-parameter tier.", maxStandardValue)
	case len(in.Value) > maxAdvancedValue:
		return "", badRequest("ValidationException", "Advanced tier parameters support a maximum parameter value of %d characters.", maxAdvancedValue)
	}
	return tier, nil
}

func (in *putParameterInput) matchPattern(pattern string) error {
	if pattern == "" {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return badRequest("InvalidAllowedPatternException", "The allowed pattern is not a regular expression.")
	}
	if !re.MatchString(in.Value) {
		return badRequest("ParameterPatternMismatchException", "Parameter value, cannot be validated against allowedPattern: %s", pattern)
	}
	return nil
}
