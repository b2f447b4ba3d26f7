package operator_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const chart = "../../charts/godwit-kubevirt"

// The chart installs what kubectl apply -k config/default does, in the namespace of the release: that one, helm
// creates itself. The templates are rendered by the package that helm renders them with; they use nothing of helm's own.
func TestTheChartInstallsWhatTheManifestsDo(t *testing.T) {
	want := manifests(t, "../../config/default")
	delete(want, "Namespace godwit-kubevirt")
	got := map[string]any{}
	data := map[string]any{"Values": document(t, filepath.Join(chart, "values.yaml")), "Release": map[string]any{"Namespace": "godwit-kubevirt"}}
	for _, path := range files(t, filepath.Join(chart, "templates", "*.yaml")) {
		page, err := template.New(filepath.Base(path)).Option("missingkey=error").ParseFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := page.Execute(&text, data); err != nil {
			t.Fatal(err)
		}
		objects(t, path, text.Bytes(), got)
	}
	for _, path := range files(t, filepath.Join(chart, "crds", "*.yaml")) {
		objects(t, path, read(t, path), got)
		for _, o := range got { // helm changes nothing about these
			if o := o.(map[string]any); o["kind"] == "CustomResourceDefinition" {
				o["metadata"].(map[string]any)["labels"] = map[string]any{"app.kubernetes.io/part-of": "godwit"}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart differs from config/default (-): %s", diff)
	}
}

// The chart has values for what differs between clusters.
func TestTheChartTakesValues(t *testing.T) {
	values := document(t, filepath.Join(chart, "values.yaml"))
	values["args"] = []any{"--leader-elect=false"}
	page, err := template.ParseFiles(filepath.Join(chart, "templates", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := page.Execute(&text, map[string]any{"Values": values, "Release": map[string]any{"Namespace": "other"}}); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	objects(t, "deployment.yaml", text.Bytes(), all)
	if !strings.Contains(text.String(), "\n        args:\n        - \"--leader-elect=false\"\n        ports:") || len(all) != 1 {
		t.Errorf("%s", text.String())
	}
}

// manifests reads a kustomization: resources, labels on objects and images, which is all that ours have.
func manifests(t *testing.T, dir string) map[string]any {
	t.Helper()
	all := map[string]any{}
	k := document(t, filepath.Join(dir, "kustomization.yaml"))
	for _, r := range k["resources"].([]any) {
		path := filepath.Join(dir, r.(string))
		if filepath.Ext(path) == ".yaml" {
			objects(t, path, read(t, path), all)
			continue
		}
		for name, o := range manifests(t, path) {
			all[name] = o
		}
	}
	labels, _ := k["labels"].([]any)
	for _, l := range labels {
		for key, value := range l.(map[string]any)["pairs"].(map[string]any) {
			for _, o := range all {
				m := o.(map[string]any)["metadata"].(map[string]any)
				if m["labels"] == nil {
					m["labels"] = map[string]any{}
				}
				m["labels"].(map[string]any)[key] = value
			}
		}
	}
	images, _ := k["images"].([]any)
	for _, i := range images {
		i := i.(map[string]any)
		for _, o := range all {
			if o := o.(map[string]any); o["kind"] == "Deployment" {
				pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
				c := pod["containers"].([]any)[0].(map[string]any)
				if c["image"] == i["name"] {
					c["image"] = i["newName"].(string) + ":" + i["newTag"].(string)
				}
			}
		}
	}
	return all
}

// objects adds those of a file by kind and name.
func objects(t *testing.T, path string, text []byte, to map[string]any) {
	t.Helper()
	for _, one := range strings.Split("\n"+string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(one), &o); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if o == nil {
			continue
		}
		name := o["kind"].(string) + " " + o["metadata"].(map[string]any)["name"].(string)
		if to[name] != nil {
			t.Fatalf("%s: there are two of %s", path, name)
		}
		to[name] = o
	}
}

func document(t *testing.T, path string) (o map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, path), &o); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return o
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %v, %v", pattern, all, err)
	}
	slices.Sort(all)
	return all
}
