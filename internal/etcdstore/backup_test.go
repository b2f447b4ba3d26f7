package etcdstore_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/etcdtest"
)

// TestABackupIsASnapshotOfEtcd: it has the sum that etcdutl checks, and the record.
func TestABackupIsASnapshotOfEtcd(t *testing.T) {
	s := open(t, etcdtest.Start(t, 1), "/backup/")
	if _, err := s.Put(t.Context(), vmOn("v", "n1")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Backup(t.Context(), f)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) != n {
		t.Fatalf("%d bytes are there, of %d: %v", len(text), n, err)
	}
	pages := text[:len(text)-sha256.Size]
	if sum := sha256.Sum256(pages); string(text[len(pages):]) != string(sum[:]) {
		t.Error("its sum is wrong")
	}
	if !bytes.Contains(pages, []byte("/backup/")) {
		t.Error("the record is not in it")
	}
}
