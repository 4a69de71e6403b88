package migrate

import (
	"regexp"
	"strconv"
	"strings"
)

const failover = "a store has one region"

var csiAWS = csiProvider{
	list: "objects", object: awsObject, login: awsLogin,
	parameters: rules{
		"spec.parameters.region":               usedBy("spec.region"),
		"spec.parameters.failoverRegion":       never(failover, "remove it, or make a second store and object by hand"),
		"spec.parameters.pathTranslation":      usedBy("spec.data[].secretKey"),
		"spec.parameters.preferredAddressType": drop("it is about Pod Identity"),
		"spec.parameters.usePodIdentity": func(f *field) {
			on, err := strconv.ParseBool(f.node.Value)
			switch {
			case err != nil:
				f.invalid("true or false")
			case on:
				f.unsupported("Pod Identity is for pods of the ServiceAccount only", "let the role trust the ServiceAccount by IRSA, remove usePodIdentity, and give the role with --role")
			default:
				f.dropped("it is the default")
			}
		},
	},
}

// awsObject converts one object of AWS.
func awsObject(c *class, f *field) {
	if !f.only("objectName", "objectType", "objectAlias", "objectVersion", "objectVersionLabel", "jmesPath", "failoverObject", "filePermission") {
		return
	}
	if n := child(f.node, "failoverObject"); n != nil {
		f.below(nil, n, "failoverObject").unsupported(failover, "remove it, or make a second store and object by hand")
		return
	}
	name := text(f.node, "objectName")
	k, known := awsKind(name, text(f.node, "objectType"))
	version, valid := awsVersion(k, text(f.node, "objectVersion"), text(f.node, "objectVersionLabel"))
	switch {
	case name == "":
		f.unsupported("it has no objectName", "correct it, and convert it again")
		return
	case !known:
		f.below(nil, nil, "objectType").unsupported("the value is not one of secretsmanager, ssmparameter", "correct it, and convert it again")
		return
	case !valid:
		f.below(nil, nil, "objectVersion").unsupported("a version is read by its id or by its label, not by both", "remove one of them")
		return
	}
	f.fileMode("filePermission")
	store := c.store(k, "")
	ref := mapping("key", plain(name))
	if version != "" {
		ref.Content = append(ref.Content, plain("version"), plain(version))
	}
	file := name
	if alias := text(f.node, "objectAlias"); alias != "" {
		file = alias
	}
	c.addFile(f, &csiFile{name: c.translated(file), store: store, ref: ref})
	f.add(Finding{Field: f.String(), To: "spec.data[].remoteRef", Verdict: Exact})
	entries := child(f.node, "jmesPath")
	for i := range length(entries) {
		at := f.below(nil, entries.Content[i], "jmesPath").below(nil, entries.Content[i], index(i))
		if !at.only("path", "objectAlias", "filePermission") {
			return
		}
		property, simple := jmesProperty(text(at.node, "path"))
		alias := strings.Trim(text(at.node, "objectAlias"), `"`)
		if !simple || alias == "" {
			at.unsupported("it is no path of names", "write the ExternalSecret by hand, with a property or a template")
			continue
		}
		at.fileMode("filePermission")
		part := new(expansion).copied(ref, 0)
		part.Content = append(part.Content, plain("property"), plain(property))
		c.addFile(at, &csiFile{name: c.translated(alias), store: store, ref: part})
	}
}

// awsKind returns the Kind of store that reads an object.
func awsKind(name, of string) (kind, bool) {
	if parts := strings.Split(name, ":"); of == "" && len(parts) > 5 && parts[0] == "arn" {
		of = parts[2]
	}
	switch of {
	case "secretsmanager":
		return awsSecretsManager, true
	case "ssmparameter", "ssm":
		return awsParameterStore, true
	}
	return kind{}, false
}

// awsVersion returns the version of an object; it has an id, or a label.
func awsVersion(k kind, id, label string) (string, bool) {
	switch {
	case id != "" && label != "":
		return "", false
	case id != "" && k == awsSecretsManager:
		return "uuid/" + id, true
	default:
		return id + label, true
	}
}

// translated returns the name of a file: by default without slashes.
func (c *class) translated(name string) string {
	switch by := text(c.node, "spec", "parameters", "pathTranslation"); {
	case strings.EqualFold(by, "false"):
		return strings.TrimLeft(name, "/")
	case by == "":
		return strings.ReplaceAll(name, "/", "_")
	default:
		return strings.ReplaceAll(name, "/", by)
	}
}

// jmesName matches one name of a path, quoted or not.
var jmesName = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9_]*)|"([^"\\]+)")(?:\.|$)`)

// jmesProperty returns the property that a JMESPath of names is.
func jmesProperty(path string) (string, bool) {
	var all []string
	for path != "" {
		m := jmesName.FindStringSubmatch(path)
		if m == nil || strings.HasSuffix(m[0], ".") && len(m[0]) == len(path) {
			return "", false
		}
		all = append(all, literalProperty(m[1]+m[2]))
		path = path[len(m[0]):]
	}
	return strings.Join(all, "."), len(all) > 0
}

// awsLogin completes the stores of AWS.
func awsLogin(c *class) {
	region := text(c.node, "spec", "parameters", "region")
	if region == "" {
		c.add(Finding{Field: "spec.parameters.region", Verdict: Unsupported, Reason: "without region, the driver uses that of the node", Todo: "set region, and convert it again"})
		return
	}
	account := c.account()
	if account == "" {
		return
	}
	ref := mapping("name", plain(account))
	role, known := c.annotatedRole("spec.parameters", ref)
	if !known {
		return
	}
	for _, s := range c.stores {
		s.spec = mapping("region", plain(region), "role", plain(role), "auth", mapping("serviceAccountRef", mapping("name", plain(account))))
		c.used.tokens(&s.kind)
	}
	c.add(Finding{Field: "spec.parameters", To: "spec.role", Verdict: Exact, Reason: "the driver reads the role from the annotation " + roleAnnotation + " of the ServiceAccount"})
}
