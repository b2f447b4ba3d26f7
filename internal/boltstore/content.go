package boltstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/store"
)

// Format is the version of the layout of the file. A file of a newer one is not opened.
const Format = 1

// The buckets, and the keys of the first.
const (
	aboutBucket   = "godwit"
	recordsBucket = "records"
	formatKey     = "format"
	totalsKey     = "totals"
	historyKey    = "history"
)

// totals are kept with the records: they tell when one of them has gone missing.
type totals struct {
	txn   uint64 // the transaction that wrote this, so that a page from before it shows
	last  uint64 // the last version that was given
	count uint64
	sum   uint64 // of the sums of all records
}

// with is t after a record has replaced another; each is given by its sum, and whether
// it is there.
func (t totals) with(old, now uint64, was, is bool) totals {
	t.sum += now - old
	if was {
		t.count--
	}
	if is {
		t.count++
	}
	return t
}

func (t totals) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, t.txn)
	b = binary.BigEndian.AppendUint64(b, t.last)
	b = binary.BigEndian.AppendUint64(b, t.count)
	return binary.BigEndian.AppendUint64(b, t.sum)
}

// newer says that a newer godwit has written the file.
type newer struct {
	what       string
	has, knows int
}

func (n *newer) Error() string {
	return fmt.Sprintf("its %s is %d, and this godwit knows up to %d: upgrade godwit here",
		n.what, n.has, n.knows)
}

// keyOf is the name of a record in its bucket.
func keyOf(k store.Key) []byte { return []byte(k.Kind.String() + "/" + k.Name) }

// valueOf is what is stored of a record: its version, a sum, and its text.
func valueOf(key []byte, v store.Version, text []byte) (value []byte, sum uint64) {
	sum = sumOf(key, uint64(v), text)
	value = binary.BigEndian.AppendUint64(nil, uint64(v))
	value = binary.BigEndian.AppendUint64(value, sum)
	return append(value, text...), sum
}

func sumOf(key []byte, v uint64, text []byte) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(key))))
	h.Write(key)
	h.Write(binary.BigEndian.AppendUint64(nil, v))
	h.Write(text)
	return h.Sum64()
}

// stored is a record as the file has it.
type stored struct {
	record store.Record
	sum    uint64
}

// contents are all that a file holds.
type contents struct {
	records map[store.Key]stored
	totals  totals
	counted totals // over the records that were found
	format  string
	history *store.History // nil: an earlier godwit has written the file
}

// readContents reads and checks all of a file of a size. Nothing of a file that it refuses
// is used.
func readContents(file io.ReaderAt, size int64) (*contents, error) {
	c, wrong := inspect(file, size)
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	return c, nil
}

// inspect reads all of a file of a size, and says all that is wrong with it, what matters most first.
// What it has read of such a file is for operators to see.
func inspect(file io.ReaderAt, size int64) (c *contents, wrong []error) {
	c = &contents{records: map[store.Key]stored{}}
	others := map[string][]byte{}
	var unread []error // told last: of a newer format, it means nothing
	txn, err := readPages(file, size, func(bucket string, key, value []byte) error {
		switch bucket {
		case "/" + aboutBucket:
			others[string(key)] = value
		case "/" + recordsBucket:
			if err := c.add(key, value); err != nil {
				unread = append(unread, err)
			}
		default:
			unread = append(unread, damaged("%q is not godwit's", bucket+"/"+string(key)))
		}
		return nil
	})
	if err != nil {
		return c, append([]error{err}, unread...)
	}
	if err := c.about(others); err != nil {
		if _, is := errors.AsType[*newer](err); is {
			return c, []error{err}
		}
		return c, append([]error{err}, unread...)
	}
	return c, append(unread, c.disagrees(txn)...)
}

// disagrees says where the records, and the last transaction, are not what the totals say.
func (c *contents) disagrees(txn uint64) (wrong []error) {
	for _, key := range slices.SortedFunc(maps.Keys(c.records), compareKeys) {
		if at := c.records[key].record.RecordVersion(); uint64(at) > c.totals.last {
			wrong = append(wrong, damaged("%s %q is of the version %d, after the last one", key.Kind,
				key.Name, at))
		}
	}
	if c.counted.count != c.totals.count || c.counted.sum != c.totals.sum {
		wrong = append(wrong, damaged("it holds %d records with the sum %x, instead of %d with %x",
			c.counted.count, c.counted.sum, c.totals.count, c.totals.sum))
	}
	if txn != c.totals.txn {
		wrong = append(wrong, damaged("the last transaction was %d, and the last one of godwit %d", txn,
			c.totals.txn))
	}
	return wrong
}

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// about reads what the file says about itself.
func (c *contents) about(others map[string][]byte) error {
	c.format = string(others[formatKey])
	format, err := strconv.Atoi(c.format)
	if err != nil || format < 1 {
		return damaged("it does not say which format it has: %q", c.format)
	}
	if format > Format {
		return &newer{"format", format, Format}
	}
	t := others[totalsKey]
	if len(t) != 32 {
		return damaged("it does not say how many records it holds")
	}
	u64 := binary.BigEndian.Uint64
	c.totals = totals{txn: u64(t), last: u64(t[8:]), count: u64(t[16:]), sum: u64(t[24:])}
	value, is := others[historyKey]
	if !is {
		return nil
	}
	sum, text := value[:min(8, len(value))], value[min(8, len(value)):]
	c.history = new(store.History)
	if !bytes.Equal(sum, historySum(text)) || json.Unmarshal(text, c.history) != nil {
		return damaged("what it says of its past is not what was written")
	}
	return nil
}

// add reads one record.
func (c *contents) add(key, value []byte) error {
	word, name, _ := strings.Cut(string(key), "/")
	if len(value) < 16 {
		return damaged("of %q only %d bytes are there", key, len(value))
	}
	v, sum, text := binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:]), value[16:]
	if sumOf(key, v, text) != sum {
		return damaged("the checksum of %q is wrong", key)
	}
	for _, kind := range store.Kinds() {
		if kind.String() != word {
			continue
		}
		r, err := store.Decode(store.Key{Kind: kind, Name: name}, text, store.Version(v))
		if err != nil {
			return err
		}
		c.records[r.Key()] = stored{r, sum}
		c.counted = c.counted.with(0, sum, false, true)
		return nil
	}
	return fmt.Errorf("%q is no kind of record: upgrade godwit here", word)
}
