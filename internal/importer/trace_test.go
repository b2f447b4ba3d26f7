package importer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

const (
	min = time.Minute
)

// bitHeader is the header of Bitbrains, which says that times are in milliseconds.
const bitHeader = "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\t" +
	"CPU usage [MHZ];\tCPU usage [%];\tMemory capacity provisioned [KB];\tMemory usage [KB]\n"

// bit is a line of Bitbrains: a VM with 2 CPUs and 4 GiB.
func bit(at int, load float64) string {
	return fmt.Sprintf("%d;\t2;\t5200;\t%.0f;\t%v;\t4194304.0;\t110448.5\n", at, 52*load, load)
}

// azureTable has a VM that exists from the beginning, and one that is created later.
const azureTable = "x/+=,sub,dep,0,2591700,99.3,3.4,10.1,Delay-insensitive,8,56\n" +
	"late,sub,dep,600,2591700,99.3,3.4,10.1,Interactive,1,1.75\n"

const azureReadings = "0,x/+=,1,50,40\n0,other,1,2,3\n300,x/+=,1,50,10\n600,late,0,3,2\n"

// A task and a fragment are rows of OpenDC's tables.
type (
	task struct {
		ID       string  `parquet:"id"`
		Submit   int64   `parquet:"submission_time"`
		Duration int64   `parquet:"duration"`
		CPUs     int32   `parquet:"cpu_count"`
		Capacity float64 `parquet:"cpu_capacity"`
		Memory   int64   `parquet:"mem_capacity"`
	}
	fragment struct {
		ID       string  `parquet:"id"`
		Duration int64   `parquet:"duration"`
		Usage    float64 `parquet:"cpu_usage"`
	}
)

func table[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tasks(t testing.TB) string {
	return table(t, task{"1019", 1376314546000, 900000, 4, 10000, 8192},
		task{"7", 1376314546000, 900000, 1, 2500, 2048})
}

func fragments(t testing.TB) string {
	return table(t, fragment{"1019", 300000, 5000}, fragment{"1019", 600000, 1000},
		fragment{"7", 300000, 2500})
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A folder is files by name.
type folder map[string]string

// write writes the files of a folder and returns where it is.
func write(t testing.TB, files folder) string {
	t.Helper()
	path := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// load rounds loads to percent, which is what is kept of them.
func load(at time.Duration, percent float64) importer.TracePoint {
	return importer.TracePoint{At: at, CPU: percent}
}

func rounded(v *importer.Trace) []importer.TraceVM {
	for i := range v.VMs {
		for j := range v.VMs[i].Load {
			p := &v.VMs[i].Load[j]
			p.CPU = float64(int(p.CPU*100 + 0.5))
		}
	}
	return v.VMs
}

func TestEveryFormatIsRead(t *testing.T) {
	for _, c := range []struct {
		what  string
		files folder
		want  []importer.TraceVM
	}{
		{"Bitbrains: a file for each VM", folder{
			"10.csv": bitHeader + bit(1376314846, 10) + bit(1376315146, 60),
			"2.csv":  bitHeader + bit(1376314846, 7) + bit(1376315146, 8) + bit(1376315446, 30),
		}, []importer.TraceVM{
			{ID: "2", CPUs: 2, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 7), load(10*min, 30)}},
			{ID: "10", CPUs: 2, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 10), load(5*min, 60)}},
		}},
		{"Bitbrains: names with points in them", folder{
			"web.1.csv":    bitHeader + bit(0, 10),
			"web.2.csv.gz": zipped(t, bitHeader+bit(0, 20)),
		}, []importer.TraceVM{
			{ID: "web.1", CPUs: 2, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 10)}},
			{ID: "web.2", CPUs: 2, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 20)}},
		}},
		{"Azure: what exists at the beginning", folder{"vmtable.csv": azureTable,
			"vm_cpu_readings-file-1-of-125.csv": azureReadings}, []importer.TraceVM{
			{ID: "x/+=", CPUs: 8, Memory: 56 * gib,
				Load: []importer.TracePoint{load(0, 40), load(5*min, 10)}}}},
		{"Azure: several compressed files", folder{"vmtable.csv.gz": zipped(t, azureTable),
			"vm_cpu_readings-file-2-of-125.csv.gz":  zipped(t, "300,x/+=,1,50,70\n"),
			"vm_cpu_readings-file-10-of-125.csv.gz": zipped(t, "600,x/+=,1,50,90\n")}, []importer.TraceVM{
			{ID: "x/+=", CPUs: 8, Memory: 56 * gib,
				Load: []importer.TracePoint{load(0, 70), load(5*min, 90)}}}},
		{"PlanetLab: a table", folder{"day.csv": "vm,t0,t300,t600\na,24,,50\nb,1,2,3\n"},
			[]importer.TraceVM{
				{ID: "a", CPUs: 1, Memory: 4 * gib,
					Load: []importer.TracePoint{load(0, 24), load(10*min, 50)}},
				{ID: "b", CPUs: 1, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 1)}}}},
		{"PlanetLab: a file for each VM", folder{"host_a": "24\n34\n", "host_b": "5\n"}, []importer.TraceVM{
			{ID: "host_a", CPUs: 1, Memory: 4 * gib,
				Load: []importer.TracePoint{load(0, 24), load(5*min, 34)}},
			{ID: "host_b", CPUs: 1, Memory: 4 * gib, Load: []importer.TracePoint{load(0, 5)}}}},
		{"OpenDC", folder{"tasks.parquet": tasks(t), "fragments.parquet": fragments(t)}, []importer.TraceVM{
			{ID: "1019", CPUs: 4, Memory: 8 * gib,
				Load: []importer.TracePoint{load(0, 50), load(5*min, 10)}},
			{ID: "7", CPUs: 1, Memory: 2 * gib, Load: []importer.TracePoint{load(0, 100)}}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := importer.ReadTrace(write(t, c.files), importer.TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rounded(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneFileOfAFolderIsEnough(t *testing.T) {
	azure := write(t, folder{"vmtable.csv": azureTable, "vm_cpu_readings-1.csv": azureReadings})
	opendc := write(t, folder{"tasks.parquet": tasks(t), "fragments.parquet": fragments(t)})
	bitbrains := write(t, folder{"1.csv": bitHeader + bit(0, 7)})
	for path, want := range map[string]string{azure + "/vmtable.csv": "Azure",
		azure + "/vm_cpu_readings-1.csv": "Azure", opendc + "/fragments.parquet": "OpenDC",
		bitbrains + "/1.csv": "Bitbrains"} {
		if got, err := importer.ReadTrace(path, importer.TraceOptions{}); err != nil || got.Format != want {
			t.Errorf("%s: %v %v, want %s", path, got, err, want)
		}
	}
}

// What can be worked with is said.
func TestWarnings(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"times in another unit than the header says",
			bitHeader + bit(1376314846, 7) + bit(1376315146, 8), "1.csv:3: time: times are " +
				"said to be in milliseconds, but 1376314846 and a step of 300 are in seconds"},
		{"samples are missing",
			bitHeader + bit(1376314846000, 7) + bit(1376315146000, 8) + bit(1376319000000, 9),
			"1.csv:4: time: samples are missing before this one; the load is taken to stay"},
		{"more than there is", bitHeader + bit(0, 107), "1.csv:2: load: more than 100 % counts as"},
		{"a time twice", bitHeader + bit(300, 7) + bit(300, 8),
			"1.csv:3: time: a second sample of this time is left out"},
		{"shares instead of percentages", bitHeader + strings.Join(func() (all []string) {
			for i := range 20 {
				all = append(all, bit(i*300000, 0.5))
			}
			return all
		}(), ""), "load: no load is above 1 %: are they shares rather than percentages?"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := importer.ReadTrace(write(t, folder{"1.csv": c.text}), importer.TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if all := fmt.Sprint(got.Warnings); len(got.Warnings) != 1 ||
				!strings.Contains(all, c.want) {
				t.Errorf("warnings %s, want %s", all, c.want)
			}
		})
	}
}

func TestUnitsAreToldByPlausibility(t *testing.T) {
	for _, c := range []struct {
		table string
		want  time.Duration
	}{
		{"vm,t0,t300,t600\na,1,2,90\n", 10 * min},             // seconds, as always
		{"vm,t0,t300000,t600000\na,1,2,90\n", 10 * min},       // milliseconds
		{"vm,t0,t300000000,t600000000\na,1,2,90\n", 10 * min}, // microseconds
		{"vm,t1376314846000,t1376315146000\na,1,90\n", 5 * min},
	} {
		got, err := importer.ReadTrace(write(t, folder{"a.csv": c.table}), importer.TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p := got.VMs[0].Load[1]; p.At != c.want {
			t.Errorf("%q: the load changes at %v, want %v", c.table, p.At, c.want)
		}
	}
}

func TestBadTracesAreExplained(t *testing.T) {
	const sound = "vm,t0,t300\na,24,50\n"
	good := folder{"tasks.parquet": tasks(t), "fragments.parquet": fragments(t)}
	with := func(name, text string) folder {
		return folder{"tasks.parquet": good["tasks.parquet"],
			"fragments.parquet": good["fragments.parquet"], name: text}
	}
	whole := zipped(t, strings.Repeat(azureReadings, 100))
	for _, c := range []struct {
		what  string
		files folder
		want  string
	}{
		{"a negative load", folder{"a.csv": sound + "b,-3,4\n"}, "a.csv:3: load: needs a load " +
			"that is not negative, has -0.03"},
		{"a load that is none", folder{"a.csv": sound + "b,NaN,4\n"},
			"a.csv:3: load: needs a load"},
		{"a word", folder{"a.csv": sound + "b,lots,4\n"},
			`a.csv:3: load: needs a number, has "lots"`},
		{"a short row", folder{"a.csv": sound + "b,3\nc,4,5\n"},
			"a.csv:3: needs 3 fields, has 2"},
		{"a file that is cut off", folder{"a.csv": sound + "b,3"},
			"a.csv:3: needs 3 fields, has 2: the file is cut off"},
		{"a VM twice", folder{"a.csv": sound + "a,3,4\n"}, `a.csv:3: vm: "a" is there twice`},
		{"time goes back", folder{"a.csv": "vm,t0,t300,t100\na,1,2,3\n"},
			"a.csv:2: time: it goes back, from 300 to 100: is the file sorted?"},
		{"a negative time", folder{"a.csv": "vm,t-300,t0\na,1,2\n"},
			"a.csv:2: time: -300 is no time"},
		{"a time beyond all", folder{"a.csv": "vm,t1,t1e300\na,1,2\n"}, "a.csv:1: t1e300: "},
		{"no samples", folder{"a.csv": "vm,t0\na,\n"}, "a.csv: there are no samples of the 1 VMs"},
		{"no VMs", folder{"a.csv": "vm,t0\n"}, "a.csv: there are no VMs"},
		{"a negative size", folder{"1.csv": bitHeader + strings.Replace(bit(0, 1), "4194304", "-5",
			1)}, "1.csv:2: memory: needs an amount of memory"},
		{"an endless line", folder{"a.csv": "vm,t0\na," + strings.Repeat("1", 1<<21)},
			"a.csv:2: the line is longer than 1024 KiB"},
		{"no readings", folder{"vmtable.csv": azureTable}, "there are no readings beside it"},
		{"deleted before created", folder{"vmtable.csv": "a,s,d,9,3,1,1,1,x,1,1\n"},
			"vmtable.csv:1: deleted: it is deleted at 3, before it was created at 9"},
		{"half a compressed file", folder{"vmtable.csv": azureTable,
			"vm_cpu_readings-1.csv.gz": whole[:len(whole)/2]},
			"the compressed file is damaged or cut off"},
		{"half a Parquet file", with("fragments.parquet", fragments(t)[:200]),
			"fragments.parquet: it is no complete Parquet file; is it cut off?"},
		{"no fragments", folder{"tasks.parquet": tasks(t)}, "there is no fragments.parquet beside"},
		{"a column is missing", with("fragments.parquet", tasks(t)),
			"fragments.parquet: cpu_usage: the column is missing"},
		{"a negative duration", with("fragments.parquet", table(t, fragment{"7", -5, 3})),
			"fragments.parquet:1: duration: needs a time above 0, has -5"},
		{"a negative usage", with("fragments.parquet", table(t, fragment{"7", 5, -3})),
			"fragments.parquet:1: load: needs a load that is not negative"},
		{"no capacity", with("tasks.parquet", table(t, task{"7", 0, 9, 1, 0, 9})),
			"tasks.parquet:1: cpu_capacity: needs MHz, has 0"},
		{"nothing that is known", folder{"a.txt": "hello\n"}, "it is no trace that is known"},
		{"an empty folder", folder{}, "it is no trace that is known"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := importer.ReadTrace(write(t, c.files), importer.TraceOptions{})
			if _, are := errors.AsType[yamldoc.Problems](err); !are ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	_, err := importer.ReadTrace(filepath.Join(t.TempDir(), "none"), importer.TraceOptions{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
