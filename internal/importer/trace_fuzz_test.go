package importer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// fatal is a *testing.T or *rapid.T.
type fatal interface{ Fatal(...any) }

func save(t fatal, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sound checks what every reader promises: loads from 0 to 1, by time, from 0 on; or
// problems.
func sound(t *testing.T, path string) {
	t.Helper()
	got, err := importer.ReadTrace(path, importer.TraceOptions{VMs: 100})
	if _, are := errors.AsType[yamldoc.Problems](err); err != nil && !are {
		t.Fatalf("%T %v", err, err)
	}
	if got == nil {
		return
	}
	for _, v := range got.VMs {
		if v.CPUs < 1 || v.Memory < 1 || len(v.Load) == 0 || v.Load[0].At != 0 {
			t.Fatalf("%+v", v)
		}
		for i, p := range v.Load {
			if !(p.CPU >= 0 && p.CPU <= 1) || i > 0 && p.At < v.Load[i-1].At {
				t.Fatalf("load %d of %+v", i, v)
			}
		}
	}
}

// fuzzFile fuzzes one file of a folder, beside others.
func fuzzFile(f *testing.F, name string, others folder, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	path := f.TempDir()
	for other, text := range others {
		save(f, filepath.Join(path, other), text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		save(t, filepath.Join(path, name), text)
		sound(t, path)
	})
}

func FuzzBitbrains(f *testing.F) {
	fuzzFile(f, "2.csv", folder{"1.csv": bitHeader + bit(0, 7)}, bitHeader+bit(0, 7)+bit(300, 8),
		bitHeader+strings.ReplaceAll(bit(1376314846, 7), "\t", ""))
}

func FuzzAzureTable(f *testing.F) {
	fuzzFile(f, "vmtable.csv", folder{"vm_cpu_readings-1.csv": azureReadings}, azureTable)
}

func FuzzAzureReadings(f *testing.F) {
	fuzzFile(f, "vm_cpu_readings-1.csv", folder{"vmtable.csv": azureTable}, azureReadings,
		zipped(f, azureReadings))
}

func FuzzPlanetLab(f *testing.F) {
	fuzzFile(f, "a.csv", nil, "vm,t0,t300\na,24,50\n", "vm,t0,t300\na,,50\n", "24\n34\n")
}

func FuzzOpenDCTasks(f *testing.F) {
	fuzzFile(f, "tasks.parquet", folder{"fragments.parquet": fragments(f)}, tasks(f))
}

func FuzzOpenDCFragments(f *testing.F) {
	fuzzFile(f, "fragments.parquet", folder{"tasks.parquet": tasks(f)}, fragments(f))
}

// BenchmarkTraceRead reads Azure's readings, of which one VM in a hundred is used.
func BenchmarkTraceRead(b *testing.B) {
	var text strings.Builder
	for at := 0; at < 86400; at += 300 {
		for vm := range 100 {
			text.WriteString(strings.Replace("T,other,1,50,40\n", "T", strconv.Itoa(at), 1))
			if vm == 0 {
				text.WriteString(strconv.Itoa(at) + ",x/+=,1,50," + strconv.Itoa(at%100) + "\n")
			}
		}
	}
	path := write(b, folder{"vmtable.csv": azureTable, "vm_cpu_readings-1.csv": text.String()})
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := importer.ReadTrace(path, importer.TraceOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
