package migrate

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const (
	annotated = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  annotations:
    reloader.stakater.com/auto: "true"
    team: shop
spec:
  template: {spec: {containers: [{name: a, image: a, envFrom: [{secretRef: {name: db}}]}]}}
`
	none = "no object"
)

// TestRestartsInTree moves the annotations of workloads in a tree of files. A change that is not certain stays, with a line in the report.
func TestRestartsInTree(t *testing.T) {
	t.Parallel()
	plain := strings.Replace(annotated, "    reloader.stakater.com/auto: \"true\"\n", "", 1)
	const auto = "restart:\n      auto: true"
	cases := map[string]struct {
		reason string
		files  map[string]string
		// context is looked up, and not converted.
		context string
		// workload is what becomes of a.yaml; secret is in what becomes of db.yaml, unless it is empty: then no restart is.
		workload, secret string
		// report has the findings on workloads, and other places.
		report []string
	}{
		"Folder":   {"The ExternalSecret in the same folder makes the Secret.", map[string]string{"a/a.yaml": annotated, "a/db.yaml": kustomSecret, "b/db.yaml": kustomSecret}, "", plain, auto, []string{"metadata.annotations.reloader.stakater.com/auto: the ExternalSecret shop/db restarts it"}},
		"Several":  {"Two that could make it are not told apart.", map[string]string{"a.yaml": annotated, "a/db.yaml": kustomSecret, "b/db.yaml": kustomSecret}, "", annotated, "", []string{": several ExternalSecrets of the input make db", ": several ExternalSecrets of the input make db"}},
		"Others":   {"Another workload that uses the Secret, in the cluster, does not restart.", map[string]string{"a.yaml": annotated, "db.yaml": kustomSecret}, strings.NewReplacer("name: shop", "name: mail\n  namespace: shop", "reloader.stakater.com/auto", "a").Replace(annotated), plain, "restart:\n      workloads:\n      - kind: Deployment\n        name: shop", []string{"metadata.annotations.reloader.stakater.com/auto: the ExternalSecret shop/db restarts it"}},
		"Same":     {"A workload of the input is that of the cluster.", map[string]string{"a.yaml": annotated, "db.yaml": kustomSecret}, strings.NewReplacer("name: shop", "name: shop\n  namespace: shop", "reloader.stakater.com/auto", "a").Replace(annotated), plain, auto, []string{"metadata.annotations.reloader.stakater.com/auto: the ExternalSecret shop/db restarts it"}},
		"Named":    {"A workload that names the Secret, and does not use it, is listed.", map[string]string{"a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n  annotations: {secret.reloader.stakater.com/reload: db}\n", "db.yaml": kustomSecret}, "", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n", "restart:\n      workloads:\n      - kind: Deployment\n        name: shop", []string{"metadata.annotations.secret.reloader.stakater.com/reload: the ExternalSecret shop/db restarts it"}},
		"Cluster":  {"A workload of the cluster is changed by hand.", map[string]string{"a.yaml": none, "db.yaml": kustomSecret}, strings.Replace(annotated, "name: shop", "name: shop\n  namespace: shop", 1), none, auto, []string{"metadata.annotations.reloader.stakater.com/auto: the ExternalSecret shop/db restarts it -> remove the annotation from the workload"}},
		"Unedited": {"So is one whose text cannot be edited.", map[string]string{"a.yaml": strings.Replace(annotated, "team: shop", "&k team: shop\n    *k : a", 1), "db.yaml": kustomSecret}, "", strings.Replace(annotated, "team: shop", "&k team: shop\n    *k : a", 1), "", []string{"a.yaml:6: an annotation of Reloader is in a patch, in values of a chart, or in what cannot be read as a workload"}},
		"Patch":    {"A patch is changed by hand.", map[string]string{"a.yaml": annotated, "kustomization.yaml": "resources: [db.yaml]\npatches:\n- path: a.yaml\n", "db.yaml": kustomSecret}, "", annotated, "", []string{"a.yaml:6: an annotation of Reloader is in a patch, in values of a chart, or in what cannot be read as a workload"}},
		"Values":   {"So are values of a chart.", map[string]string{"a.yaml": "annotations:\n  # reloader.stakater.com/auto\n  reloader.stakater.com/auto: \"true\"\n", "db.yaml": kustomSecret}, "", "annotations:\n  # reloader.stakater.com/auto\n  reloader.stakater.com/auto: \"true\"\n", "", []string{"a.yaml:3: an annotation of Reloader is in a patch, in values of a chart, or in what cannot be read as a workload"}},
		"Nothing":  {"Without an ExternalSecret, nothing is reported.", map[string]string{"a.yaml": "annotations:\n  reloader.stakater.com/auto: \"true\"\n", "db.yaml": none}, "", "annotations:\n  reloader.stakater.com/auto: \"true\"\n", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.files["store.yaml"] = kustomStore
			options := Options{Namespace: "shop", Context: []Source{{Name: "cluster", Content: []byte(tc.context)}}}
			r, err := Convert(sourcesOf(tc.files), options)
			if err != nil {
				t.Fatal(err)
			}
			first := true
			for _, f := range r.Files {
				switch {
				case strings.HasSuffix(f.Name, "a.yaml"):
					if diff := gocmp.Diff(tc.workload, string(f.Content)); diff != "" {
						t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
					}
				case strings.HasSuffix(f.Name, "db.yaml"):
					got := string(f.Content)
					if want := first && tc.secret != ""; strings.Contains(got, "restart:") != want || !strings.Contains(got, tc.secret) && want {
						t.Errorf("%s: %s became\n%s\nwant in it\n%s", tc.reason, f.Name, got, tc.secret)
					}
					first = false
				}
			}
			if diff := gocmp.Diff(tc.report, workloadReport(r.Report)); diff != "" {
				t.Errorf("%s: report: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// workloadReport returns the findings on workloads, and other places.
func workloadReport(r Report) (all []string) {
	for _, o := range r.Objects {
		for _, f := range o.Findings {
			if o.Kind == "Deployment" {
				all = append(all, f.Field+": "+f.Reason)
			}
			if o.Kind == "Deployment" && o.File == "cluster" {
				all[len(all)-1] += " -> " + f.Todo
			}
		}
	}
	for _, n := range r.Others {
		all = append(all, Name{File: n.File, Line: n.Line}.String()+": "+n.Reason)
	}
	return all
}

// TestRemaining compares the annotations of a workload before and after ExternalSecrets restart it for the Secret db.
func TestRemaining(t *testing.T) {
	t.Parallel()
	const exclude = "secrets.exclude.reloader.stakater.com/reload"
	cases := map[string]struct {
		reason             string
		secrets, settings  []string
		annotations, after map[string]string
	}{
		"Auto":      {"Nothing is left.", []string{"db"}, nil, map[string]string{stakaterAuto: "true", "a": "b"}, nil},
		"ConfigMap": {"Reloader restarts for the ConfigMap.", []string{"db"}, []string{"a"}, map[string]string{stakaterAuto: "true"}, map[string]string{stakaterAuto: "true", exclude: "db"}},
		"Typed":     {"But not if it watches Secrets only.", []string{"db"}, []string{"a"}, map[string]string{"secret" + stakaterTyped: "true"}, nil},
		"Other":     {"Reloader restarts for another Secret.", []string{"db", "tls"}, nil, map[string]string{"secret" + stakaterTyped: "true"}, map[string]string{"secret" + stakaterTyped: "true", exclude: "db"}},
		"Excluded":  {"But not if it is excluded.", []string{"db", "tls"}, nil, map[string]string{stakaterAuto: "true", exclude: "tls"}, nil},
		"List":      {"A name is taken out of a list.", nil, nil, map[string]string{"secret" + stakaterReload: "a, db"}, map[string]string{"secret" + stakaterReload: "a"}},
		"ListUsed":  {"A list alone needs no exclusion.", []string{"db"}, nil, map[string]string{"secret" + stakaterReload: "db"}, nil},
		"Pattern":   {"An expression stays, and the Secret is excluded.", nil, nil, map[string]string{"secret" + stakaterReload: "d."}, map[string]string{"secret" + stakaterReload: "d.", exclude: "db"}},
		"False":     {"A switch that is off stays, for --auto-reload-all.", []string{"db"}, nil, map[string]string{stakaterAuto: "false", "secret" + stakaterReload: "db"}, map[string]string{stakaterAuto: "false"}},
		"Pause":     {"Other settings go with the last trigger.", []string{"db"}, nil, map[string]string{stakaterAuto: "true", stakaterPause: "5m"}, nil},
		"PauseStay": {"And stay with it.", []string{"db"}, []string{"a"}, map[string]string{"configmap" + stakaterTyped: "true", stakaterPause: "5m"}, map[string]string{"configmap" + stakaterTyped: "true", stakaterPause: "5m"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &workload{reads: map[string][]string{typeSecret: tc.secrets, typeConfigMap: tc.settings}, covered: map[string][]string{typeSecret: {"db"}}}
			if diff := gocmp.Diff(tc.after, w.remaining(tc.annotations)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
