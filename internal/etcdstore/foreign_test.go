package etcdstore_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/store"
)

// TestAForeignKeyIsRemovedAsAdvised: a key of others among godwit's is named, and the record of a VM is
// as it was when the key is gone.
func TestAForeignKeyIsRemovedAsAdvised(t *testing.T) {
	c := etcdtest.Start(t, 1)
	s := open(t, c, "/foreign/")
	v, err := s.Put(t.Context(), vmOn("v", "n1"))
	if err != nil {
		t.Fatal(err)
	}
	const key = "/foreign/r/novel/x"
	if _, err := c.Client().Put(t.Context(), key, "{}"); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, c, "/foreign/").Changes(t.Context(), store.Everything, 0)
	if err == nil || !strings.Contains(err.Error(), `remove the key if it is not godwit's`) ||
		!strings.Contains(err.Error(), "novel/x") {
		t.Fatalf("a foreign key is read: %v", err)
	}
	if _, err := c.Client().Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, c, "/foreign/").Changes(t.Context(), store.Everything, 0)
	if err != nil || len(all.Records) != 1 || all.Records[0].RecordVersion() != v.RecordVersion() {
		t.Errorf("without the key: %v, %v", all.Records, err)
	}
}
