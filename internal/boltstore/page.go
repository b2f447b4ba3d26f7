package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// The layout of a bbolt file: pages of one size, the first two of which are metas.
// Source: bbolt v1.5.0 internal/common/{page,meta,bucket}.go.
const (
	headerSize  = 16 // id, flags, count, overflow
	elementSize = 16
	metaSize    = 64
	bucketSize  = 16 // root, sequence

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10

	magic       = 0xED0CDAED
	layout      = 2
	noFreelist  = math.MaxUint64
	subBucket   = 1
	maxDepth    = 64
	minPageSize = 512
	maxPageSize = 1 << 20
)

// A damage says what is wrong with a file.
type damage struct{ what string }

func (d damage) Error() string { return "it is damaged: " + d.what }

func damaged(format string, a ...any) error { return damage{fmt.Sprintf(format, a...)} }

// meta says where everything is.
type meta struct {
	pageSize           int64
	root               uint64
	freelist, end, txn uint64 // end is the first page that was never used
}

// A pages reads a bbolt file that is not written to meanwhile, page by page, and believes
// nothing of it. bbolt does not: it maps the file and panics, also in goroutines of its
// own, on what makes no sense.
type pages struct {
	file io.ReaderAt
	meta meta
	used map[uint64]bool
	// found is called with every key and value of every bucket, in order.
	found func(bucket string, key, value []byte) error
}

// readPages goes through all of a file of a size, and answers which was the last
// transaction. The error is a damage, or what found or the file answers.
func readPages(file io.ReaderAt, size int64,
	found func(bucket string, key, value []byte) error) (txn uint64, err error) {
	p := &pages{file: file, used: map[uint64]bool{}, found: found}
	if err := p.readMetas(size); err != nil {
		return 0, err
	}
	if err := p.readTree(p.meta.root, span{bucket: ""}, 0); err != nil {
		return 0, err
	}
	return p.meta.txn, p.readFreelist()
}

// readMetas reads both metas. They tell of the last two transactions.
func (p *pages) readMetas(size int64) error {
	first, err := p.readMeta(0)
	if err != nil {
		return err
	}
	second, err := p.readMeta(first.pageSize)
	if err != nil {
		return err
	}
	if second.pageSize != first.pageSize {
		return damaged("its two meta pages differ")
	}
	older, newer := first, second
	if older.txn > newer.txn {
		older, newer = newer, older
	}
	if newer.txn-older.txn != 1 {
		return damaged("its meta pages are of the transactions %d and %d: one between is lost",
			older.txn, newer.txn)
	}
	if newer.end < 2 || newer.end > uint64(size/newer.pageSize) {
		return damaged("it is cut off: %d bytes, and %d pages of %d", size, newer.end,
			newer.pageSize)
	}
	p.meta = newer
	return nil
}

func (p *pages) readMeta(at int64) (meta, error) {
	var b [headerSize + metaSize]byte
	if _, err := p.file.ReadAt(b[:], at); err == io.EOF {
		return meta{}, damaged("it ends at a meta page")
	} else if err != nil {
		return meta{}, err
	}
	m, u32, u64 := b[headerSize:], binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])
	flags := binary.NativeEndian.Uint16(b[8:])
	size := int64(u32(m[8:]))
	switch {
	case flags != metaPage || u32(m) != magic:
		return meta{}, damaged("at byte %d there is no meta page of a bbolt file", at)
	case sum.Sum64() != u64(m[metaSize-8:]):
		return meta{}, damaged("the checksum of the meta page at byte %d is wrong", at)
	case u32(m[4:]) != layout:
		return meta{}, &newer{"layout", int(u32(m[4:])), layout}
	case size < minPageSize || size > maxPageSize || at > 0 && at != size:
		return meta{}, damaged("a page of %d bytes", size)
	}
	return meta{pageSize: size, root: u64(m[16:]), freelist: u64(m[32:]), end: u64(m[40:]),
		txn: u64(m[48:])}, nil
}

// page is one page, with those it continues on.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte // with its header
}

// read reads a page that nothing else refers to.
func (p *pages) read(id uint64) (page, error) {
	if id < 2 || id >= p.meta.end {
		return page{}, damaged("there is no page %d", id)
	}
	size, at := p.meta.pageSize, int64(id)*p.meta.pageSize
	var header [headerSize]byte
	if _, err := p.file.ReadAt(header[:], at); err != nil {
		return page{}, err
	}
	more := uint64(binary.NativeEndian.Uint32(header[12:]))
	if own := binary.NativeEndian.Uint64(header[:]); own != id {
		return page{}, damaged("page %d says that it is page %d", id, own)
	}
	if id+more >= p.meta.end {
		return page{}, damaged("page %d continues beyond the end", id)
	}
	for i := id; i <= id+more; i++ {
		if p.used[i] {
			return page{}, damaged("page %d is used twice", i)
		}
		p.used[i] = true
	}
	data := make([]byte, size*int64(1+more))
	if _, err := p.file.ReadAt(data, at); err != nil {
		return page{}, err
	}
	return page{id, binary.NativeEndian.Uint16(data[8:]),
		int(binary.NativeEndian.Uint16(data[10:])), data}, nil
}

// span is the part of a bucket in which keys must be: from low on, and below high.
type span struct {
	bucket    string
	low, high []byte // nil: no limit
}

// readTree reads the pages of a bucket.
func (p *pages) readTree(id uint64, in span, depth int) error {
	if depth > maxDepth {
		return damaged("page %d is too deep", id)
	}
	pg, err := p.read(id)
	if err != nil {
		return err
	}
	switch pg.flags {
	case branchPage:
		return p.readBranch(pg, in, depth)
	case leafPage:
		return p.readLeaf(pg, in, depth)
	}
	return damaged("page %d is of the kind %#x", id, pg.flags)
}

// slice cuts length bytes that begin at an offset from an element.
func (pg page) slice(element int, from, length uint32) ([]byte, error) {
	begin := int64(headerSize) + int64(element)*elementSize + int64(from)
	end := begin + int64(length)
	table := int64(headerSize) + int64(pg.count)*elementSize
	if begin < table || end > int64(len(pg.data)) {
		return nil, damaged("element %d of page %d is outside of it", element, pg.id)
	}
	return pg.data[begin:end:end], nil
}

// element is the fixed part of an element.
func (pg page) element(i int) ([]byte, error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(pg.data) {
		return nil, damaged("page %d has no room for %d elements", pg.id, pg.count)
	}
	return pg.data[at : at+elementSize], nil
}

func (p *pages) readBranch(pg page, in span, depth int) error {
	if pg.count == 0 {
		return damaged("page %d is empty", pg.id)
	}
	keys := make([][]byte, pg.count)
	ids := make([]uint64, pg.count)
	for i := range pg.count {
		e, err := pg.element(i)
		if err != nil {
			return err
		}
		u32 := binary.NativeEndian.Uint32
		ids[i] = binary.NativeEndian.Uint64(e[8:])
		if keys[i], err = pg.slice(i, u32(e), u32(e[4:])); err != nil {
			return err
		}
	}
	if err := ascending(pg, keys, in); err != nil {
		return err
	}
	for i, id := range ids {
		below := span{in.bucket, keys[i], in.high}
		if i+1 < len(keys) {
			below.high = keys[i+1]
		}
		if err := p.readTree(id, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// ascending checks that keys ascend within their span.
func ascending(pg page, keys [][]byte, in span) error {
	for i, k := range keys {
		if len(k) == 0 || bytes.Compare(k, in.low) < 0 ||
			in.high != nil && bytes.Compare(k, in.high) >= 0 ||
			i > 0 && bytes.Compare(keys[i-1], k) >= 0 {
			return damaged("key %d of page %d is not in order", i, pg.id)
		}
	}
	return nil
}

func (p *pages) readLeaf(pg page, in span, depth int) error {
	keys := make([][]byte, pg.count)
	for i := range pg.count {
		e, err := pg.element(i)
		if err != nil {
			return err
		}
		u32 := binary.NativeEndian.Uint32
		from, length := u32(e[4:]), u32(e[8:])
		if keys[i], err = pg.slice(i, from, length); err != nil {
			return err
		}
		if err := ascending(pg, keys[max(0, i-1):i+1], in); err != nil {
			return err
		}
		if uint64(from)+uint64(length) > math.MaxUint32 {
			return damaged("element %d of page %d is outside of it", i, pg.id)
		}
		value, err := pg.slice(i, from+length, u32(e[12:]))
		if err != nil {
			return err
		}
		if flags := u32(e); flags == 0 {
			err = p.found(in.bucket, keys[i], value)
		} else if flags == subBucket && len(value) >= bucketSize {
			err = p.readBucket(pg, in.bucket+"/"+string(keys[i]), value, depth+1)
		} else {
			err = damaged("a key of page %d is of the kind %#x", pg.id, flags)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readBucket reads a bucket, which a value in a page stands for, or holds.
func (p *pages) readBucket(pg page, name string, value []byte, depth int) error {
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return p.readTree(root, span{bucket: name}, depth)
	}
	inline := value[bucketSize:]
	if len(inline) < headerSize || binary.NativeEndian.Uint16(inline[8:]) != leafPage ||
		depth > maxDepth {
		return damaged("a bucket within page %d", pg.id)
	}
	count := int(binary.NativeEndian.Uint16(inline[10:]))
	return p.readLeaf(page{pg.id, leafPage, count, inline}, span{bucket: name}, depth)
}

// readFreelist checks that the pages that will be written next hold nothing.
func (p *pages) readFreelist() error {
	if p.meta.freelist == noFreelist {
		return nil
	}
	pg, err := p.read(p.meta.freelist)
	if err != nil {
		return err
	}
	if pg.flags != freelistPage {
		return damaged("page %d is of the kind %#x, and no freelist", pg.id, pg.flags)
	}
	ids := pg.data[headerSize:]
	count := uint64(pg.count)
	if pg.count == 0xFFFF {
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("the freelist has %d pages", count)
	}
	free := make([]uint64, count)
	for i := range free {
		free[i] = binary.NativeEndian.Uint64(ids[8*i:])
		if free[i] < 2 || free[i] >= p.meta.end || p.used[free[i]] {
			return damaged("page %d is free, and in use", free[i])
		}
	}
	slices.Sort(free)
	if len(slices.Compact(free)) != int(count) {
		return damaged("a page is free twice")
	}
	return nil
}
