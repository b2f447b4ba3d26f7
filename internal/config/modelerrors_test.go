package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
)

// learned returns errors of twelve measurements of a class, of which some have a downtime.
func learned(downtimes int) *predict.Errors {
	var all []predict.Sample
	for i := range 12 {
		all = append(all, predict.Sample{Class: "multifd", NoDowntime: i >= downtimes,
			Predicted: predict.Times{Total: time.Minute, Downtime: time.Second},
			Measured:  predict.Times{Total: time.Minute + time.Duration(i)*time.Second, Downtime: time.Second}})
	}
	return predict.Learn(all)
}

// model writes a model with errors, and reads it.
func model(t *testing.T, e *predict.Errors) (*predict.Errors, string) {
	t.Helper()
	var b strings.Builder
	if err := config.WriteModel(&b, fake.QEMU()); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteModelErrors(&b, e); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, read, err := config.ReadModelFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return read, b.String()
}

// What is not known of a model is still not known when it is read from its file.
func TestAModelFileKeepsWhatWasNotMeasured(t *testing.T) {
	for downtimes, note := range map[int]string{0: `downtimes of "multifd" were never measured`, 5: "", 12: ""} {
		e := learned(downtimes)
		read, text := model(t, e)
		times := predict.Times{Total: time.Minute, Downtime: time.Second}
		want, got := e.Of("multifd", times, 0), read.Of("multifd", times, 0)
		if got.Note != want.Note || got.Note != note || got.Measured != 12 {
			t.Errorf("%d downtimes: %q, want %q\n%s", downtimes, got.Note, note, text)
		}
		near := func(s map[string]predict.Summary) predict.Summary {
			one := s["multifd"]
			return predict.Summary{Measured: one.Measured, Downtimes: one.Downtimes}
		}
		if diff := cmp.Diff(near(e.Summaries()), near(read.Summaries())); diff != "" {
			t.Errorf("%d downtimes (-learned +read):\n%s", downtimes, diff)
		}
	}
}

// A file of before says nothing of downtimes: they were all measured. More than were measured are refused.
func TestDowntimesOfAModelFileAreChecked(t *testing.T) {
	const factors = " total: [1, 1, 1], downtime: [1, 1, 1]}\n"
	for _, tt := range []struct{ says, want string }{
		{"measured: 12,", ""}, {"measured: 12, downtimes: 3,", ""},
		{"measured: 12, downtimes: 13,", "m.yaml:2: errors.tls.downtimes: needs 0 to measured, 12, has 13"},
		{"measured: 12, downtimes: -1,", "m.yaml:2: errors.tls.downtimes: needs 0 to measured, 12, has -1"},
	} {
		_, _, err := config.ParseModel("m.yaml", []byte("errors:\n  tls: {"+tt.says+factors))
		if got := errorText(err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.says, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
