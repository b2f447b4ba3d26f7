package convergence_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

func TestVerdictsAsWordsAndAdjustments(t *testing.T) {
	for _, row := range []struct {
		verdict convergence.Decision
		words   string
		stored  string
		want    hypervisor.Adjustment
	}{
		{goOn, "Continue", `{"Action":"Continue","Limit":0,"Why":""}`, nil},
		{tune(150 * ms), "SetDowntime 150ms (tuning)",
			`{"Action":"SetDowntime","Limit":150000000,"Why":"tuning"}`,
			hypervisor.SetDowntime{Limit: 150 * ms}},
		{post, "StartPostCopy (over-budget)",
			`{"Action":"StartPostCopy","Limit":0,"Why":"over-budget"}`, hypervisor.StartPostCopy{}},
		{pause, "Pause (over-budget)",
			`{"Action":"Pause","Limit":0,"Why":"over-budget"}`, hypervisor.PauseGuest{}},
		{stuck, "Abort (stuck)", `{"Action":"Abort","Limit":0,"Why":"stuck"}`,
			hypervisor.Cancel{}},
	} {
		t.Run(row.words, func(t *testing.T) {
			same(t, "words", row.words, row.verdict.String())
			got, ok := row.verdict.Adjustment()
			same(t, "adjustment", row.want, got)
			same(t, "is there one", row.want != nil, ok)
			text, err := json.Marshal(row.verdict)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "stored", row.stored, string(text))
			var back convergence.Decision
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			same(t, "read back", row.verdict, back)
		})
	}
}

func TestWordsThatDoNotExist(t *testing.T) {
	var a convergence.Action
	var r convergence.Reason
	var m convergence.Method
	for _, err := range []error{a.UnmarshalText([]byte("Hope")), r.UnmarshalText([]byte("hope")),
		m.UnmarshalText([]byte("Hope"))} {
		if err == nil {
			t.Error("an unknown word was read")
		}
	}
	if _, err := convergence.Action(99).MarshalText(); err == nil {
		t.Error("an unknown action was stored")
	}
	same(t, "as a word", "invalid", convergence.Reason(99).String())
	for _, m := range []convergence.Method{0, convergence.Legacy, convergence.Stall} {
		text, err := m.MarshalText()
		var back convergence.Method
		if err != nil || back.UnmarshalText(text) != nil || back != m {
			t.Errorf("%s was stored as %q and read as %s", m, text, back)
		}
	}
}

// TestTheStoredWordOfTheDowntimeStays: the first release wrote, and reads, another word for it.
func TestTheStoredWordOfTheDowntimeStays(t *testing.T) {
	text, err := convergence.Downtime.MarshalText()
	if err != nil || string(text) != "blackout" {
		t.Errorf("it is stored as %q: %v", text, err)
	}
	for _, word := range []string{"blackout", "downtime"} {
		var r convergence.Reason
		if err := r.UnmarshalText([]byte(word)); err != nil || r != convergence.Downtime {
			t.Errorf("%q was read as %v: %v", word, r, err)
		}
	}
}

func TestTheStart(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	for _, row := range []struct {
		name      string
		told, now time.Time
		want      time.Time
	}{
		{"is what the hypervisor says", noon.In(zone), at(100), noon},
		{"is the first look when it says nothing", time.Time{}, at(100), at(100)},
		{"is never in the future", at(200), at(100), at(100)},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := hypervisor.Progress{Started: row.told}
			s, _ := convergence.Converge(convergence.Config{}, convergence.State{}, p, row.now)
			same(t, "start", row.want.String(), s.Started.String())
			s, _ = convergence.Converge(convergence.Config{}, s, p, row.now.Add(time.Hour))
			same(t, "start at the next look", row.want.String(), s.Started.String())
		})
	}
}
