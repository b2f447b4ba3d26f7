package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// slip is a store to which one writing is made on another condition.
type slip struct {
	store.Store
	left *int // writings until then
}

// Put implements store.Store.
func (s slip) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if *s.left--; *s.left == 0 {
		r = r.WithVersion(r.RecordVersion() + 1)
	}
	return s.Store.Put(ctx, r, while...)
}

// slipped replays a log to its end with a version that errs once, at a writing.
func slipped(log []byte, at int) (*audit.Result, error) {
	return audit.Replay(bytes.NewReader(log), audit.Options{Configure: configure, All: true,
		Begin: func(c controller.Config, s store.Store, n store.EventRecorder) store.Participant {
			return controller.New(c, slip{s, &at}, n)
		}})
}

// TestOneSlipIsOneDifference: whichever writing a version gets wrong, it is the only one that
// differs, and after it everything is the same.
func TestOneSlipIsOneDifference(t *testing.T) {
	testutil.Unraced(t)
	log := drained(t, "{}\n")
	whole := replay(t, log)
	for at := 1; at <= whole.Writes; at++ {
		r, err := slipped(log, at)
		if err != nil {
			t.Fatal(err)
		}
		if r.Differing != 1 || r.Looks != whole.Looks || len(r.Further) > 0 || r.Agrees == nil ||
			r.Agrees.Look != r.Difference.Look+1 ||
			r.Agrees.Looks != whole.Looks-int(r.Difference.Look) {
			t.Errorf("after a slip at writing %d of %d: %+v", at, whole.Writes, r)
		}
	}
}

// wantOneSlip checks that a replay of all ends with the log, and that a version that errs once,
// anywhere, differs once at most: what follows from that is the same.
func wantOneSlip(t *rapid.T, log []byte, whole *audit.Result) {
	at := rapid.IntRange(1, whole.Writes+1).Draw(t, "the writing that is wrong")
	r, err := slipped(log, at)
	if err != nil {
		t.Fatal(err)
	}
	if r.Looks != whole.Looks || r.Terms != whole.Terms || r.Differing > 1 ||
		(r.Differing == 0) != r.Same() {
		t.Fatalf("%+v after %+v", r, whole)
	}
}

// TestAnotherConfigurationDiffersUntilItMattersNoMore.
func TestAnotherConfigurationDiffersUntilItMattersNoMore(t *testing.T) {
	log := drained(t, "{}\n")
	for _, tt := range []struct {
		config string
		want   []string
	}{
		{"config: {parallelOutboundMigrationsPerNode: 1}\n",
			[]string{" with other decisions; the same again from look "}},
		{"config: {parallelOutboundMigrationsPerNode: 3}\n",
			[]string{"\n3 looks with other decisions; the same again from look ",
				"\nanother: look 8 of controller/a in term 1, 2026-01-01 00:00:06.",
				"\nrecorded  nothing\nnow       migration default/"}},
	} {
		r, err := audit.Replay(bytes.NewReader(log), audit.Options{All: true,
			Configure: func(string) (controller.Config, error) { return configure(tt.config) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Further {
			if r.Agrees == nil || r.Agrees.Look <= d.Look {
				t.Errorf("%s: the same again from %+v on, but not in look %d", tt.config,
					r.Agrees, d.Look)
			}
		}
		var b strings.Builder
		if err := r.WriteText(&b, false); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not told:\n%s", tt.config, want, &b)
			}
		}
	}
}

// TestTheFirstOfManyDifferencesAreTold, and how many there are.
func TestTheFirstOfManyDifferencesAreTold(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	drainMany(c, 12)
	r, err := audit.Replay(bytes.NewReader(c.log()), audit.Options{Configure: configure,
		All: true, Begin: func(c controller.Config, s store.Store,
			n store.EventRecorder) store.Participant {
			return controller.New(c, hasty{s}, n)
		}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("\n… and %d looks more\n", r.Differing-1-audit.MostFurther)
	if len(r.Further) != audit.MostFurther || !strings.HasSuffix(b.String(), more) ||
		strings.Count(b.String(), "\nanother: ") != audit.MostFurther {
		t.Errorf("%+v\n%s", r, &b)
	}
}
