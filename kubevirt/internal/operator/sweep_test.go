package operator_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const sweepDir = "../../config/sweep"

// The pods of the Jobs, run as processes on one machine, and the merge of their shards give the same bytes as one
// process that simulates all worlds.
func TestASweepOfPodsIsThatOfOneMachine(t *testing.T) {
	if os.Getenv("GODWIT_LONG") == "" {
		t.Skip("in the long tier (GODWIT_LONG=1): it builds godwit and simulates thousands of worlds")
	}
	dir := t.TempDir()
	godwit := filepath.Join(dir, "godwit")
	build := exec.Command("go", "build", "-o", godwit, "./cmd/godwit")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := manifests(t, sweepDir)
	simulate := all["Job godwit-simulate"].(map[string]any)
	completions := int(simulate["spec"].(map[string]any)["completions"].(float64))
	var pods sync.WaitGroup
	for i := range completions {
		pods.Go(func() {
			if _, err := container(simulate, godwit, dir, i); err != nil {
				t.Errorf("pod %d: %v", i, err)
			}
		})
	}
	pods.Wait()
	merge := all["Job godwit-merge"].(map[string]any)
	got, err := container(merge, godwit, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	one := exec.Command(godwit, "simulate", filepath.Join(sweepDir, "scenario.yaml"), "--samples", "1000", "--json")
	want, err := one.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes of pods differ from %d of one machine", len(got), len(want))
	}
	if err := os.Remove(filepath.Join(dir, "3")); err != nil {
		t.Fatal(err)
	}
	if _, err := container(merge, godwit, dir, 0); err == nil {
		t.Error("it merges although a shard is missing")
	}
}

// container runs the command of a Job's pod as a process, with its volumes in a folder.
func container(job map[string]any, godwit, dir string, index int) ([]byte, error) {
	pod := job["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	var args []string
	for _, a := range pod["containers"].([]any)[0].(map[string]any)["command"].([]any) {
		text := strings.ReplaceAll(a.(string), "$(JOB_COMPLETION_INDEX)", fmt.Sprint(index))
		text = strings.Replace(text, "/results/", dir+"/", 1)
		args = append(args, strings.Replace(text, "/scenario/", sweepDir+"/", 1))
	}
	if args[0] != "/godwit" {
		return nil, fmt.Errorf("it runs %s", args[0])
	}
	c := exec.Command(godwit, args[1:]...)
	c.Env = append(os.Environ(), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	return out, nil
}

// The API server takes the manifests, in a namespace that enforces the restricted Pod Security Standard.
func TestTheAPIServerTakesTheSweep(t *testing.T) {
	c := newCluster(t)
	out := c.kubectl("apply", "--dry-run=server", "--namespace=godwit-kubevirt", "-k", sweepDir)
	for _, want := range []string{"configmap/godwit-sweep", "persistentvolumeclaim/godwit-sweep", "job.batch/godwit-simulate", "job.batch/godwit-merge"} {
		if !strings.Contains(out, want+" created (server dry run)") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, "would violate PodSecurity") {
		t.Errorf("%s", out)
	}
}
