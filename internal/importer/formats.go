package importer

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-vm/godwit/inventory"
)

// sample is how much of a file tells its format.
const sample = 1 << 16

// Read reads a fleet. What the format does not know comes from d; godwit's own YAML has
// defaults of its own. Its errors are [inventory.Problems], unless the file cannot be read
// or d is invalid.
func Read(path string, d inventory.Defaults) (*inventory.Fleet, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if at, err := file.Stat(); err == nil && at.IsDir() {
		return readFolder(path, d)
	}
	buffered := bufio.NewReaderSize(file, sample)
	start, err := buffered.Peek(sample)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case IsGaneti(start):
		return ReadGaneti(path, buffered, d)
	case IsNova(start):
		return ReadNova(path, []string{path}, d)
	}
	return ReadKubeVirtFile(path, d)
}

// Files returns what was read where a file was, or a folder, and where links lead.
func Files(path string) []string {
	var files []string
	root, _ := filepath.EvalSymlinks(path) // there is none where it fails, and the walk fails
	err := filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if at, failed := os.Stat(file); err == nil && failed == nil && at.Mode().IsRegular() {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		files = append(files, path) // its reader reports why
	}
	return files
}

// beginning returns what tells a file's format.
func beginning(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, sample))
}

// readFolder reads the JSON files of a cloud, or the folders of libvirt's hosts.
func readFolder(path string, d inventory.Defaults) (*inventory.Fleet, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files, others []string
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		if at, err := os.Stat(file); err != nil || !at.Mode().IsRegular() || !strings.HasSuffix(file, ".json") {
			continue
		}
		start, err := beginning(file)
		if err != nil {
			return nil, err
		}
		if IsNova(start) {
			files = append(files, file)
		} else {
			others = append(others, file)
		}
	}
	switch {
	case len(files) > 0:
		return readNova(path, files, others, d)
	case IsDomains(path):
		return ReadDomains(path, d)
	}
	return nil, inventory.Problems{{File: path, Message: "the folder has neither JSON files, as " +
		"openstack prints them, nor folders with the XML of libvirt's domains; of the other " +
		"formats (hosts: and vms:, what kubectl get prints, the text format of Ganeti's htools) a " +
		"fleet is one file"}}
}
