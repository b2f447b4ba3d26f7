package predict_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

const ms = time.Millisecond

// measured reads the committed measurements.
func measured(t testing.TB) []predict.Migration {
	t.Helper()
	all, err := predict.Read("qemu-7.2.csv", strings.NewReader(predict.MeasuredQEMU))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The bounds are a little above what is reached; the fake's own tests say why the 90th
// percentile cannot be better on that machine.
func TestTheModelIsCloseToWhatWasMeasured(t *testing.T) {
	all := measured(t)
	r, err := predict.Compare(all, predict.Machine())
	if err != nil {
		t.Fatal(err)
	}
	if r.All.Count < 120 || r.All.Lost > 1 {
		t.Errorf("compared %d, of which %d do not complete in the model", r.All.Count, r.All.Lost)
	}
	if r.All.Total.Median > 0.05 || r.All.Total.P90 > 0.35 || r.All.Downtime.Median > 0.2 {
		t.Errorf("off by %+v, want a median of at most 5 %% and 20 %%", r.All)
	}
	if r.Endless < 10 || r.Agreed < r.Endless-2 {
		t.Errorf("of %d that did not complete only %d do not in the model", r.Endless, r.Agreed)
	}
	total := 0
	for _, c := range r.Classes {
		total += c.Count
	}
	if total != r.All.Count {
		t.Errorf("the classes have %d, all have %d", total, r.All.Count)
	}
}

func BenchmarkPredict(b *testing.B) {
	all, model := measured(b), predict.Machine()
	for i := 0; b.Loop(); i++ {
		if _, err := all[i%len(all)].Predict(model); err != nil {
			b.Fatal(err)
		}
	}
}

// A downtime of 15 ms where 5 ms were measured is half a floor off; a total of 150 ms where
// 100 ms were is half off.
func TestOff(t *testing.T) {
	m := &predict.Migration{Total: 100 * ms, Downtime: 5 * ms}
	total, downtime := m.Off(predict.Modeled{Total: 150 * ms, Downtime: 15 * ms})
	if total != 0.5 || downtime != 1 {
		t.Errorf("off by %v and %v, want 0.5 and 1", total, downtime)
	}
}

// Ten predictions that are 0 to 90 % too long.
func TestTheTallyKnowsItsQuantiles(t *testing.T) {
	var tally predict.Tally
	m := &predict.Migration{Completed: true, Total: 100 * ms, Downtime: 100 * ms}
	for i := range 10 {
		d := time.Duration(100+10*i) * ms
		tally.Add(m, predict.Modeled{Completed: i > 0, Total: d, Downtime: d})
	}
	tally.Add(&predict.Migration{Total: time.Second}, predict.Modeled{})
	want := predict.Accuracy{Class: "all", Count: 10, Lost: 1,
		Total:    predict.Error{Median: 0.5, P90: 0.9},
		Downtime: predict.Error{Median: 0.5, P90: 0.9}}
	r := tally.Report()
	if r.All != want || len(r.Classes) != 1 || r.Endless != 1 || r.Agreed != 1 {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// Two experiments: runs of 100, 100 and 200 ms, and one that is alone.
func TestNoiseIsWhatRunsDifferBy(t *testing.T) {
	all := read(t, "ram_mib,total_ms,downtime_ms\n1024,100,50\n1024,100,50\n1024,200,50\n"+
		"2048,300,50\n")
	n := predict.Noise(all) // 150 for 100, twice, and 100 for 200
	if n.Count != 3 || n.Total.Median != 0.5 || n.Total.P90 != 0.5 || n.Downtime.P90 != 0 {
		t.Errorf("%+v", n)
	}
	measured := predict.Noise(measured(t))
	if measured.Count < 100 || measured.Total.Median < 0.05 {
		t.Errorf("%+v", measured)
	}
}

// What is asked for reaches the fake: a cap, a slow link and writes make a migration longer,
// and a larger allowance a downtime.
func TestPredictionsFollowTheColumns(t *testing.T) {
	all := read(t, "ram_mib,total_ms,downtime_ms,ws_mib,rate_nominal_mib_s,fill_mib,cap_mib_s,"+
		"link_mib_s,downtime_limit_ms,options,accel,switch_after_ms,postcopy\n"+
		"1024,500,5,,,,,,,,,,\n"+ // 0: nothing special
		"1024,500,5,,,,,100,,,,,\n"+ // 1: a slow link
		"1024,500,5,,,,100,,,,,,\n"+ // 2: a cap
		"1024,500,5,,,256,,,,,,,\n"+ // 3: most of it is zero
		"1024,500,5,256,50,,100,,,,,,\n"+ // 4: it writes
		"1024,500,5,256,50,,100,,2000,,,,\n"+ // 5: and may stand longer
		"1024,500,5,,,,,,,tls-x509,,,\n"+ // 6: encrypted
		"1024,500,5,,,,,,,,tcg,,\n"+ // 7: emulated
		"1024,500,5,256,500,,100,,,,,300,1\n"+ // 8: it does not converge, but for post-copy
		"1024,500,5,256,500,,100,,,,,-1,0\n") // 9: it never converges
	p := make([]predict.Modeled, len(all))
	for i := range all {
		var err error
		if p[i], err = all[i].Predict(predict.Machine()); err != nil {
			t.Fatal(err)
		}
	}
	wire := 10 * time.Second // 1 GiB at 100 MiB/s, less a little
	for i, holds := range []bool{
		p[0].Completed && p[0].Total < time.Second, p[1].Total > wire, p[2].Total > wire,
		p[3].Total < p[0].Total/2, p[4].Total > p[2].Total+2*time.Second,
		p[5].Total < p[4].Total && p[5].Downtime > p[4].Downtime,
		p[6].Total > 3*p[0].Total, p[7].Total > p[0].Total,
		p[8].Completed, !p[9].Completed,
	} {
		if !holds {
			t.Errorf("line %d: %+v", i+2, p[i])
		}
	}
	for i, class := range map[int]string{0: "uncapped kvm", 1: "capped kvm", 2: "capped kvm", 6: "tls",
		7: "uncapped tcg", 8: "post-copy"} {
		if got := all[i].Class(); got != class {
			t.Errorf("line %d is of class %q, want %q", i+2, got, class)
		}
	}
}

// An empty downtime was not measured; 0 was.
func TestADowntimeThatIsEmptyIsNotKnown(t *testing.T) {
	all := read(t, "ram_mib,total_ms,downtime_ms\n1024,300,\n1024,300,0\n1024,300,40\n")
	for i, want := range []bool{true, false, false} {
		if all[i].NoDowntime != want {
			t.Errorf("line %d: %+v", i+2, all[i])
		}
	}
}

// Eight encrypted connections are as fast as a plan takes them for: the machine of the built-in measurements,
// which had two processors, says nothing about them.
func TestManyEncryptedConnectionsAreThoseOfAPlan(t *testing.T) {
	all := read(t, "ram_mib,total_ms,downtime_ms,multifd,options\n8192,9000,5,2,tls-x509\n8192,9000,5,8,tls-x509\n"+
		"8192,9000,5,8,\n")
	took := make([]time.Duration, len(all))
	for i := range all {
		model := fake.QEMU()
		if i == 2 {
			model = model.Encrypted(fake.TLSX509)
		}
		p, err := all[i].Predict(model)
		if err != nil || !p.Completed {
			t.Fatal(err, p)
		}
		took[i] = p.Total
	}
	if took[1] != took[2] || took[1] > took[0]*7/10 {
		t.Errorf("two take %v, eight %v, and in a plan %v", took[0], took[1], took[2])
	}
}

// The slower of cap and wire governs; what auto-converge did, and not that it was allowed.
func TestTheClassIsThatOfWhatGoverned(t *testing.T) {
	all := read(t, "ram_mib,total_ms,downtime_ms,cap_mib_s,link_mib_s,autoconverge,throttle_max\n"+
		"1024,5000,5,,,,\n1024,5000,5,,119,,\n1024,5000,5,1000,119,,\n1024,5000,5,200,1190,,\n"+
		"1024,5000,5,,1190,,\n1024,5000,5,,1190,1,0\n1024,5000,5,,1190,1,20\n1024,5000,5,,1190,1,\n")
	for i, want := range []string{"uncapped kvm", "capped kvm", "capped kvm", "capped kvm", "uncapped kvm",
		"uncapped kvm", "auto-converge", "auto-converge"} {
		if got := all[i].Class(); got != want {
			t.Errorf("line %d is of class %q, want %q", i+2, got, want)
		}
	}
}

func read(t *testing.T, text string) []predict.Migration {
	t.Helper()
	all, err := predict.Read("m.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestBadMeasurementsAreExplained(t *testing.T) {
	const header = "ram_mib,total_ms,downtime_ms,cap_mib_s,fill_mib\n"
	for _, c := range []struct{ what, text, want string }{
		{"nothing", "", "m.csv: it is empty"},
		{"no rows", header, "m.csv:1: there are no measurements below the header"},
		{"no column", "ram_mib,total_ms\n1,2\n", "m.csv:1: downtime_ms: the column is missing"},
		{"a word", header + "1024,fast,5,0,\n", `m.csv:2: total_ms: needs a number from 0 to `},
		{"a negative number", header + "1024,100,5,-1,\n",
			`m.csv:2: cap_mib_s: needs a number from 0`},
		{"no number", header + "1024,NaN,5,0,\n", `m.csv:2: total_ms: needs a number from 0 to `},
		{"a short row", header + "1024,100\n",
			"m.csv:2: it has another number of fields than the first line: is the file cut off?"},
		{"a quote", header + "\"1024,100\n", "m.csv:"},
		{"more than all memory", header + "1024,100,5,0,2048\n", "m.csv:2: ram_mib: fill_mib and"},
		{"seconds for milliseconds", header + "262144,25,0,0,\n",
			"m.csv:2: total_ms: 256GiB in 25 ms is faster than any memory: is the time in milli"},
		{"a downtime in another unit", header + "1024,10,150,0,\n",
			"m.csv:2: downtime_ms: needs at most total_ms, 10, has 150: are both in milliseconds?"},
		{"no time", header + "1024,0,0,0,\n",
			"m.csv:2: total_ms: a migration that completed takes"},
		{"no memory", header + "0,10,5,0,\n", "m.csv:2: ram_mib: a VM has more than 1 MiB"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := predict.Read("m.csv", strings.NewReader(c.text))
			if _, are := errors.AsType[yamldoc.Problems](err); !are ||
				!strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(predict.MeasuredQEMU[:4000])
	f.Add("ram_mib,total_ms,downtime_ms\n1024,500,5\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := predict.Read("m.csv", strings.NewReader(text))
		if _, are := errors.AsType[yamldoc.Problems](err); err != nil && !are {
			t.Fatalf("%T %v", err, err)
		}
	})
}
