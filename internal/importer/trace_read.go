package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

const (

	// maxFiles is how many files a folder may have.
	maxFiles = 1 << 20
)

// ReadTrace reads a trace, a file or a folder. Its errors are [yamldoc.Problems], unless a file
// cannot be read.
func ReadTrace(path string, o TraceOptions) (*Trace, error) {
	at, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if at.IsDir() {
		return traceReadFolder(path, o)
	}
	start, err := traceBeginning(path)
	if err != nil {
		return nil, err
	}
	switch formatOf(start) {
	case bitbrains:
		return readBitbrains(path, []string{path}, o)
	case planetLabTable:
		return readPlanetLabTable(path, o)
	case planetLabFile:
		return readPlanetLab(path, []string{path}, o)
	case azureTable, azureReadings, parquetFile: // one of several
		return traceReadFolder(filepath.Dir(path), o)
	}
	return nil, unknown(path)
}

func unknown(path string) error {
	return yamldoc.Problems{{File: path, Message: "it is no trace that is known: Bitbrains, " +
		"Azure, PlanetLab (CSV) or OpenDC (tasks.parquet and fragments.parquet)"}}
}

// traceReadFolder reads a trace of several files.
func traceReadFolder(path string, o TraceOptions) (*Trace, error) {
	files, err := list(path)
	if err != nil {
		return nil, err
	}
	if tasks := named(files, "tasks", "parquet"); len(tasks) > 0 {
		return readOpenDC(path, tasks[0], named(files, "fragments", "parquet"), o)
	}
	if table := named(files, "vmtable", "csv"); len(table) > 0 {
		return readAzure(path, table[0], named(files, "vm_cpu_readings", "csv"), o)
	}
	kind, same, left, err := alike(files)
	if err != nil {
		return nil, err
	}
	var t *Trace
	switch kind {
	case bitbrains:
		t, err = readBitbrains(path, same, o)
	case planetLabFile:
		t, err = readPlanetLab(path, same, o)
	case planetLabTable:
		t, err = readPlanetLabTable(same[0], o)
	default:
		return nil, unknown(path)
	}
	if t != nil {
		t.Warnings = append(t.Warnings, left...)
	}
	return t, err
}

// alike returns the files that have the format of the first one that has any, and says which
// do not.
func alike(files []string) (kind format, same []string, left []yamldoc.Problem, err error) {
	for _, file := range files {
		start, err := traceBeginning(file)
		if err != nil {
			return kind, nil, nil, err
		}
		f := formatOf(start)
		if kind == other {
			kind = f
		}
		if f == kind && f != other {
			same = append(same, file)
		} else if len(left) < yamldoc.MaxWarnings {
			left = append(left, yamldoc.Problem{File: file,
				Message: "left out: it is no file of such a trace"})
		}
	}
	return kind, same, left, nil
}

// list returns the files of a folder, those with shorter names first, so that 2.csv comes
// before 10.csv.
func list(path string) ([]string, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxFiles)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return files, nil
}

// named returns the files whose names begin and end so, compressed or not.
func named(files []string, prefix, ending string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		name := strings.TrimSuffix(filepath.Base(file), ".gz")
		return !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, "."+ending)
	})
}

// The formats of files.
type format int

const (
	other format = iota
	bitbrains
	azureTable
	azureReadings
	planetLabTable
	planetLabFile
	parquetFile
)

// formatOf tells what a file is from its beginning.
func formatOf(start []byte) format {
	if bytes.HasPrefix(start, []byte("PAR1")) {
		return parquetFile
	}
	first, _, _ := strings.Cut(string(start), "\n")
	first = strings.TrimSpace(strings.TrimPrefix(first, "\ufeff"))
	fields := strings.Split(first, ",")
	switch {
	case strings.Contains(first, ";") && strings.Contains(first, "CPU usage"):
		return bitbrains
	case len(fields) > 1 && fields[0] == "vm" && strings.HasPrefix(fields[1], "t"):
		return planetLabTable
	case len(fields) == azureTableFields:
		return azureTable
	case len(fields) == azureReadingFields && number(fields[0]):
		return azureReadings
	case number(first):
		return planetLabFile
	}
	return other
}

func number(text string) bool { return text != "" && strings.Trim(text, "0123456789.") == "" }

// traceBeginning returns the first 4 KiB of a file.
func traceBeginning(path string) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	start, err := f.buffer.Peek(4096)
	if err == io.EOF || errors.Is(err, bufio.ErrBufferFull) || f.zipped && !unread(err) {
		err = nil // the reader of the lines reports what is wrong
	}
	return start, err
}

// lines are those of a file, which may be compressed.
type lines struct {
	name   string
	line   int
	buffer *bufio.Reader
	under  *os.File
	text   []byte
	zipped bool
	cut    bool // the last line has no end
}

func open(path string) (*lines, error) {
	under, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &lines{name: path, under: under, buffer: bufio.NewReaderSize(under, 1<<16)}
	if magic, _ := f.buffer.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(f.buffer)
		if err != nil {
			under.Close()
			return nil, yamldoc.Problems{{File: path, Message: "it is not compressed as gzip: " +
				err.Error()}}
		}
		f.buffer, f.zipped = bufio.NewReaderSize(unzipped, 1<<16), true
	}
	return f, nil
}

// Close closes the file.
func (f *lines) Close() error { return f.under.Close() }

// next reads a line, which holds until the next one. At the end it returns false and no
// error. A file that breaks off is a problem.
func (f *lines) next() ([]byte, bool, error) {
	f.text = f.text[:0]
	f.line++
	for {
		part, err := f.buffer.ReadSlice('\n')
		f.text = append(f.text, part...)
		switch {
		case len(f.text) > maxLine:
			return nil, false, f.problem("the line is longer than %d KiB", maxLine>>10)
		case err == nil:
			return bytes.TrimRight(f.text, "\r\n"), true, nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF:
			f.cut = true
			return f.text, len(f.text) > 0, nil
		case f.zipped && !unread(err):
			return nil, false, f.problem("the compressed file is damaged or cut off: %v", err)
		default:
			return nil, false, fmt.Errorf("%s: %w", f.name, err)
		}
	}
}

// unread reports whether the system could not read, whatever is in the file.
func unread(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

func (f *lines) problem(format string, args ...any) error {
	r := yamldoc.Report{File: f.name}
	r.Errorf(f.line, "", format, args...)
	return r.Err()
}

// short says that a line has fewer fields than it needs.
func (f *lines) short(need, have int) string {
	text := fmt.Sprintf("needs %d fields, has %d", need, have)
	if f.cut {
		text += ": the file is cut off"
	}
	return text
}
