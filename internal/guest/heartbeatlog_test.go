package guest

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hear plays a score: "a:" and "b:" say which process, every other byte is sent
// by it, one each millisecond, and "_" is a millisecond of silence.
func hear(score string) HeartbeatLog {
	var l ledger
	at, process := time.Unix(1, 0), "a"
	for _, part := range strings.Fields(score) {
		if name, ok := strings.CutSuffix(part, ":"); ok {
			process = name
			continue
		}
		for i := range len(part) {
			at = at.Add(time.Millisecond)
			if part[i] != '_' || len(part) > 1 {
				l.hear(process, at, part[i])
			}
		}
	}
	return l.now
}

func TestRhythm(t *testing.T) {
	rows := []struct {
		name, score string
		want        HeartbeatLog // of the counts only
	}{
		{"a guest boots and beats", "<>ABCD",
			HeartbeatLog{Boots: 1, Ready: true, Beats: 4, From: "a"}},
		{"it is heard late", "QRST", HeartbeatLog{Ready: true, Beats: 4, From: "a"}},
		{"its numbers wrap", "|}~\x7f@AB", HeartbeatLog{Ready: true, Beats: 7, From: "a"}},
		{"it boots and its first beat is lost", "<>B",
			HeartbeatLog{Boots: 1, Ready: true, Beats: 1, Holes: 1, From: "a"}},
		{"it boots and is not ready", "<>AB <", HeartbeatLog{Boots: 2, Beats: 2, From: "a"}},
		{"it boots again and counts from one", "<>ABCD <>AB",
			HeartbeatLog{Boots: 2, Ready: true, Beats: 6, From: "a"}},
		{"it is off", "<>AB.", HeartbeatLog{Boots: 1, Ready: true, Off: true, Beats: 2, From: "a"}},
		{"it moves", "a: ABC _ _ b: DEF", HeartbeatLog{Ready: true, Beats: 6, From: "b"}},
		{"it moves on, and on", "a: AB b: CD c: EF",
			HeartbeatLog{Ready: true, Beats: 6, From: "c"}},
		{"it moves and loses two", "a: ABC b: FG",
			HeartbeatLog{Ready: true, Beats: 5, Holes: 2, From: "b"}},
		{"it moves and runs the last again", "a: ABC b: CD",
			HeartbeatLog{Ready: true, Beats: 5, Repeats: 1, From: "b"}},
		{"it moves and the source goes on", "a: ABC b: D a: D",
			HeartbeatLog{Ready: true, Beats: 5, Repeats: 1, Returns: 1, From: "a"}},
		{"it starts elsewhere while it runs", "a: ABC b: <>A a: D b: B a: E",
			HeartbeatLog{Boots: 1, Ready: true, Beats: 7, Holes: 4, Repeats: 1, Returns: 3, From: "a"}},
		{"it finds damage", "AB!C!D", HeartbeatLog{Ready: true, Beats: 4, Errors: 2, From: "a"}},
		{"another program writes", "AB\x00C", HeartbeatLog{Ready: true, Beats: 3, Unknown: 1, From: "a"}},
		{"nothing is heard", "", HeartbeatLog{}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := hear(r.score)
			bad := got.Holes+got.Repeats+got.Returns+got.Errors+got.Unknown > 0
			if (got.Check() != nil) != bad {
				t.Errorf("the check says %v of %+v", got.Check(), got)
			}
			got.Last, got.Gap, got.Troubles = time.Time{}, Gap{}, nil
			if g, w := counts(got), counts(r.want); g != w {
				t.Errorf("heard %+v; want %+v", g, w)
			}
		})
	}
}

// counts is all of a HeartbeatLog that can be compared with ==.
func counts(r HeartbeatLog) [11]any {
	return [...]any{r.Boots, r.Ready, r.Off, r.Beats, r.From, r.Holes, r.Repeats, r.Returns,
		r.Errors, r.Unknown, len(r.Troubles)}
}

func TestTheLargestGapSaysWhere(t *testing.T) {
	g := hear("a: AB _ C _ _ _ b: DE _ F").Gap
	if g.Length != 4*time.Millisecond || g.From != "a" || g.To != "b" ||
		g.End.Sub(g.Begin) != g.Length {
		t.Errorf("the largest gap is %+v", g)
	}
}

// TestASoundRhythmHasNoTrouble draws moves and reboots that are all right.
func TestASoundRhythmHasNoTrouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		process, number := 'a', rapid.IntRange(0, 63).Draw(t, "first")
		for i, what := range rapid.SliceOf(rapid.SampledFrom([]string{"beat", "beat", "move",
			"boot"})).Draw(t, "what") {
			switch what {
			case "move":
				process++
			case "boot":
				l.hear(string(process), time.Unix(int64(i), 0), '<')
				number = 1
			case "beat":
				l.hear(string(process), time.Unix(int64(i), 0), 0x40|byte(number))
				number = (number + 1) % 64
			}
		}
		if err := l.now.Check(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzRhythm(f *testing.F) {
	f.Add("a: <>ABC b: DE! a: F.")
	f.Fuzz(func(t *testing.T, score string) {
		if r := hear(score); len(r.Troubles) > maxTroubles || r.Gap.Length < 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestAGuestThatIsStartedAnew is heard together with what was started before: both are the VM.
func TestAGuestThatIsStartedAnew(t *testing.T) {
	rows := []struct {
		name   string
		heard  []string // each is heard at once, after the guest was said to be started anew at b
		twice  bool
		ailing bool
	}{
		{"it is heard from its boot", []string{"b: <>ABC"}, false, false},
		{"it is heard late", []string{"b: QRS"}, false, false},
		{"it loses two beats afterwards", []string{"b: QRUV"}, false, true},
		{"it is started elsewhere, and is no news", []string{"c: QRS"}, false, true},
		{"the old one had something to say before", []string{"a: D", "b: QRS"}, false, false},
		{"the old one runs on", []string{"b: QR", "a: D"}, true, true},
		{"the old one runs on at a distance", []string{"b: QRSTUVWXYZ", "b: [", "a: D"}, true, true},
		{"it moves on", []string{"b: QR", "c: ST"}, false, false},
		{"it moves on, and runs on here", []string{"b: QR", "c: ST", "b: S"}, true, true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var l ledger
			at := time.Unix(1, 0)
			say := func(process, codes string) {
				for i := range len(codes) {
					at = at.Add(time.Millisecond)
					l.hear(process, at, codes[i])
				}
			}
			say("a", "<>ABC")
			l.renew("b")
			if l.now.Ready {
				t.Error("it is ready before it was heard")
			}
			for _, h := range r.heard {
				process, codes, _ := strings.Cut(h, ": ")
				say(process, codes)
			}
			if err := l.now.Twice(); (err != nil) != r.twice {
				t.Errorf("it ran twice: %v", err)
			}
			if err := l.now.Check(); (err != nil) != r.ailing {
				t.Errorf("it is ailing: %v", err)
			}
		})
	}
}
