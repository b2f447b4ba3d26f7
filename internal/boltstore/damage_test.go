package boltstore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

func wantError(t testing.TB, err error, kind store.StoreKind, says ...string) {
	t.Helper()
	e, is := errors.AsType[*store.StoreError](err)
	if !is || e.Kind != kind {
		t.Fatalf("error %v, want a *record.StoreError of the kind %v", err, kind)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

// filled is a file with records on many pages, some of which were deleted, and what is in
// it.
func filled(t testing.TB) (path string, all []store.Record) {
	t.Helper()
	path = quickPath(t)
	s := open(t, path)
	for i := range 60 {
		vm := vmOn(fmt.Sprintf("vm-%03d", i), "n1")
		vm.NotMigratableReason = strings.Repeat("x", i*37)
		r := put(t, s, vm)
		if i%5 == 0 {
			must(t, s.Delete(ctx, r))
		}
	}
	big := vmOn("big", "n2")
	big.NotMigratableReason = strings.Repeat("big ", 5000)
	put(t, s, big)
	all = everything(t, s)
	must(t, s.Close())
	return path, all
}

// tryOpen opens a copy of a store with other bytes. It answers what is in it, or the error,
// and checks that what was refused is untouched.
func tryOpen(t testing.TB, path string, text []byte) ([]store.Record, error) {
	t.Helper()
	copied := filepath.Join(filepath.Dir(path), "copy.db")
	must(t, os.WriteFile(copied, text, 0o600))
	defer os.Remove(copied)
	s, err := boltstore.Open(copied)
	if err == nil {
		all := everything(t, s)
		must(t, s.Close())
		return all, nil
	}
	after, read := os.ReadFile(copied)
	must(t, read)
	if !bytes.Equal(after, text) {
		t.Errorf("a file that was refused (%v) has changed", err)
	}
	return nil, err
}

func TestADamagedFileIsRefusedUntouched(t *testing.T) {
	path, _ := filled(t)
	text, err := os.ReadFile(path)
	must(t, err)
	page := os.Getpagesize()
	newer := bytes.Clone(text)
	if metaTxn(newer, 0) > metaTxn(newer, page) {
		newer[16+20]++
	} else {
		newer[page+16+20]++
	}
	for name, damaged := range map[string][]byte{
		"empty":                           {},
		"one byte":                        {0},
		"garbage":                         bytes.Repeat([]byte("garbage "), 8192),
		"zeroes":                          make([]byte, len(text)),
		"the metas only":                  text[:2*page],
		"cut in the middle":               text[:len(text)/2],
		"a page of zeroes":                zeroed(text, 5*page, page),
		"the newest meta is damaged":      newer,
		"both metas are the same":         append(bytes.Clone(text[page:2*page]), text[page:]...),
		"the second meta is of long ago":  append(bytes.Clone(text[:page]), older(text, page)...),
		"text where a store should be":    []byte("{\"Format\":1}\n"),
		"the first page twice":            append(bytes.Clone(text[:page]), text...),
		"a sector of another file":        append(zeroed(text, 3*page, 512), 0),
		"the rest of the file is missing": text[:3*page+100],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryOpen(t, path, damaged)
			wantError(t, err, store.Unreadable, "copy.db", "damaged", "backup")
		})
	}
}

func zeroed(text []byte, at, n int) []byte {
	c := bytes.Clone(text)
	clear(c[at : at+n])
	return c
}

func metaTxn(text []byte, at int) byte { return text[at+16+48] }

// older is the file from its second page on, with that as it was at the beginning.
func older(text []byte, page int) []byte {
	fresh := zeroed(text[page:], 0, page)
	copy(fresh, text[page:page+16])
	return fresh
}

// TestNoFlippedBitGoesUnnoticed changes a file a little, everywhere, and opens it: either it
// is refused, or it was of no importance.
func TestNoFlippedBitGoesUnnoticed(t *testing.T) {
	path, want := filled(t)
	text, err := os.ReadFile(path)
	must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	var places []int
	page := os.Getpagesize()
	pages := page * testutil.Rounds(t, 4, 1)   // every fourth page, or all of them
	for at := 0; at < len(text); at += pages { // most of what matters is at the beginning
		places = append(places, at+random.IntN(16), at+16+random.IntN(64), at+random.IntN(page))
	}
	refused, accepted, was := 0, 0, fingerprint(t, want)
	for _, at := range places {
		bit := byte(1) << random.IntN(8)
		text[at] ^= bit
		got, err := boltstore.Check(text)
		if random.IntN(8) == 0 { // what Check lets through, bbolt must be able to read
			got, err = tryOpen(t, path, text)
		}
		if err != nil {
			wantError(t, err, store.Unreadable)
			refused++
		} else {
			accepted++
			if is := fingerprint(t, got); was != is {
				t.Fatalf("bit %#x of byte %d went unnoticed:\n%s\n%s", bit, at, was, is)
			}
		}
		text[at] ^= bit
	}
	t.Logf("%d bits were noticed, %d of no importance", refused, accepted)
	if refused == 0 || accepted == 0 {
		t.Errorf("refused %d, accepted %d: the test tests nothing", refused, accepted)
	}
}

// TestNoMetaIsIgnored changes every byte of both meta pages: bbolt would go back to the
// other one, and forget the last write.
func TestNoMetaIsIgnored(t *testing.T) {
	path, _ := filled(t)
	text, err := os.ReadFile(path)
	must(t, err)
	for _, meta := range []int{0, os.Getpagesize()} {
		for at := meta + 16; at < meta+16+64; at++ {
			text[at] ^= 1
			if _, err := boltstore.Check(text); err == nil {
				t.Errorf("byte %d of the meta page at %d is changed, and that is not noticed", at, meta)
			}
			text[at] ^= 1
		}
	}
}

// TestAPageThatClaimsAnotherIsNoticed has every page that is in use continue for one page
// more: what is in it is not touched, but bbolt would give the other one away with it.
func TestAPageThatClaimsAnotherIsNoticed(t *testing.T) {
	path, _ := filled(t)
	text, err := os.ReadFile(path)
	must(t, err)
	used, page := 0, os.Getpagesize()
	for at := 2 * page; at < len(text); at += page {
		if _, err := boltstore.Check(zeroed(text, at, 16)); err == nil {
			continue // it is not used
		}
		used++
		text[at+12]++
		_, err := boltstore.Check(text)
		wantError(t, err, store.Unreadable)
		text[at+12]--
	}
	if used < 10 {
		t.Errorf("%d pages are in use: the test tests nothing", used)
	}
}

// fingerprint is the same for the same records, in whatever order.
func fingerprint(t testing.TB, all []store.Record) string {
	t.Helper()
	var lines []string
	for _, r := range all {
		text, err := store.Encode(r)
		must(t, err)
		lines = append(lines, fmt.Sprintf("%s %d %x", r.Key().Name, r.RecordVersion(), sha256.Sum256(text)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestAPageOfAnotherTimeIsNoticed has a disk lose the write of one page. (A meta page from
// before makes an older copy of the file, which is one.)
func TestAPageOfAnotherTimeIsNoticed(t *testing.T) {
	path := quickPath(t)
	s := open(t, path)
	first := put(t, s, vmOn("v", "n1"))
	must(t, s.Close())
	before, err := os.ReadFile(path)
	must(t, err)
	s = open(t, path)
	moved := *first.(*store.VM)
	moved.Host = "n2"
	put(t, s, &moved)
	must(t, s.Close())
	after, err := os.ReadFile(path)
	must(t, err)
	page := os.Getpagesize()
	lost := 0
	for at := 2 * page; at < min(len(after), len(before)); at += page {
		mixed := bytes.Clone(after)
		copy(mixed[at:at+page], before[at:at+page])
		got, err := tryOpen(t, path, mixed)
		if err != nil {
			wantError(t, err, store.Unreadable)
			lost++
		} else if len(got) != 1 || got[0].(*store.VM).Host != "n2" {
			t.Errorf("page %d is from before, and the store holds %v", at/page, got)
		}
	}
	if lost == 0 {
		t.Error("no page mattered: the test tests nothing")
	}
}

// edit changes a file as another program with bbolt would.
func edit(t testing.TB, path string, change func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, errors.Join(db.Update(change), db.Close()))
}

func TestWhatGodwitDidNotWriteIsRefusedUntouched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*bbolt.Tx) error
		says   []string
	}{
		{"a newer format", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("godwit")).Put([]byte("format"), []byte("2"))
		}, []string{"format is 2", "up to 1", "upgrade"}},
		{"no format", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("godwit")).Delete([]byte("format"))
		}, []string{"which format"}},
		{"a newer format with buckets of its own", func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("novel"))
			return errors.Join(err, b.Put([]byte("k"), []byte("v")),
				tx.Bucket([]byte("godwit")).Put([]byte("format"), []byte("7")))
		}, []string{"format is 7", "upgrade"}},
		{"no totals", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("godwit")).Delete([]byte("totals"))
		}, []string{"how many"}},
		{"a record is missing", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("records")).Delete([]byte("vm/vm-001"))
		}, []string{"instead of"}},
		{"a record is of before", func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("records"))
			return b.Put([]byte("vm/vm-002"), b.Get([]byte("vm/vm-001")))
		}, []string{"vm-002"}},
		{"another database", func(tx *bbolt.Tx) error {
			return errors.Join(tx.DeleteBucket([]byte("records")),
				tx.DeleteBucket([]byte("godwit")))
		}, []string{"which format"}},
		{"a bucket that is not ours", func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("other"))
			return errors.Join(err, b.Put([]byte("k"), []byte("v")))
		}, []string{"not godwit's"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, _ := filled(t)
			edit(t, path, c.change)
			text, err := os.ReadFile(path)
			must(t, err)
			_, err = tryOpen(t, path, text)
			wantError(t, err, store.Unreadable, append(c.says, "nothing was changed")...)
		})
	}
}

func TestAFileThatIsCutOffWhileItIsOpen(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	v := put(t, s, vmOn("v", "n1"))
	must(t, os.Truncate(path, 0))
	_, err := s.Put(ctx, v)
	wantError(t, err, store.Unreadable, path)
	_, err = s.Get(ctx, v.Key())
	wantError(t, err, store.Unreadable)
	_, err = s.Backup(ctx, &bytes.Buffer{})
	wantError(t, err, store.Unreadable)
	must(t, s.Close())
	_, err = boltstore.Open(path) // the lock is free
	wantError(t, err, store.Unreadable, "damaged")
}
