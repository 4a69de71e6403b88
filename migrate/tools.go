package migrate

// A tool is one whose objects are converted.
type tool struct {
	// name is how reports call it.
	name string
	// internal is a Kind that the tool writes for itself.
	internal string
	// groups are its Kinds by their API group.
	groups map[string]map[string]source
}

// A source describes how the objects of a Kind are converted.
type source struct {
	// versions are the API versions that are read.
	versions []string
	// stage orders the conversions: objects that others refer to come first.
	stage   int
	convert func(*object)
}

// stages is the number of stages.
const stages = 3

// v1beta and the others are the API versions of Kinds.
var (
	allVersions = []string{"v1", "v1beta1", "v1alpha1"}
	v1beta      = []string{"v1", "v1beta1"}
	v1alpha     = []string{"v1alpha1"}
)

// eso is External Secrets Operator.
var eso = &tool{name: "External Secrets Operator", internal: "GeneratorState", groups: map[string]map[string]source{
	groupESO: {
		"SecretStore":           {allVersions, 0, store},
		"ClusterSecretStore":    {allVersions, 0, store},
		"ExternalSecret":        {allVersions, 1, externalSecret},
		"ClusterExternalSecret": {v1beta, 1, clusterExternalSecret},
		"PushSecret":            {v1alpha, 1, pushSecret},
		"ClusterPushSecret":     {v1alpha, 1, clusterPushSecret},
	},
	groupGenerators: {
		"ClusterGenerator":      {v1alpha, 0, clusterGenerator},
		"Password":              {v1alpha, 0, generator},
		"SSHKey":                {v1alpha, 0, generator},
		"UUID":                  {v1alpha, 0, generator},
		"ECRAuthorizationToken": {v1alpha, 0, generator},
		"STSSessionToken":       {v1alpha, 0, generator},
		"ACRAccessToken":        {v1alpha, 0, generator},
		"GCRAccessToken":        {v1alpha, 0, generator},
		"VaultDynamicSecret":    {v1alpha, 0, generator},
	},
}}

// tools are those that are known, by API group.
var tools = byGroup(eso, vso, csi, esoReloader)

func byGroup(all ...*tool) map[string]*tool {
	found := map[string]*tool{}
	for _, t := range all {
		for group := range t.groups {
			found[group] = t
		}
	}
	return found
}

// Knows reports whether an API group is of a tool whose objects are converted.
func Knows(group string) bool {
	_, found := tools[group]
	return found
}

// KnowsESO reports whether an API group is of External Secrets Operator.
func KnowsESO(group string) bool { return tools[group] == eso }

// groupOfKind returns the API group of a Kind of External Secrets Operator that is converted; "" if it is none.
func groupOfKind(kind string) string {
	for group, kinds := range eso.groups {
		if _, found := kinds[kind]; found {
			return group
		}
	}
	return ""
}

// source returns how an object is converted.
func (o *object) source() (source, bool) {
	s, found := o.from.groups[groupOf(o.APIVersion)][o.Kind]
	return s, found
}

// convertAll converts all objects, and then decides about those that became a part of others.
func (in *inputs) convertAll() {
	for stage := range stages {
		for _, o := range in.objects {
			if s, _ := o.source(); s.stage == stage {
				in.convert(o)
			}
		}
	}
	for _, o := range in.objects {
		o.decideAsPart()
	}
}
