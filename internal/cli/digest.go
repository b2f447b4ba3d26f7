package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// digest returns what the contents of files come to; each counts once.
func digest(paths []string) (string, error) {
	sum, seen := sha256.New(), map[string]bool{}
	for _, path := range paths {
		if seen[path] {
			continue
		}
		seen[path] = true
		if err := digestFile(sum, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// digestFile adds a file, which may be larger than the memory, and its length.
func digestFile(sum io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(sum, f)
	fmt.Fprintf(sum, "%d\n", n)
	return err
}
