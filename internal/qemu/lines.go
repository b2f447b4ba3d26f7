package qemu

import (
	"bytes"
	"fmt"
	"io"
)

// firstBuffer is how much a Reader holds between long lines, in bytes. It is
// small because a host has one connection for each of its VMs.
const firstBuffer = 4 << 10

// A Reader cuts a stream into lines. It never holds more than its limit, and it
// gives up memory that one long line needed.
type Reader struct {
	from       io.Reader
	limit      int
	buf        []byte
	start, end int // what has been read and not been returned
}

// NewReader returns a Reader of lines of at most limit bytes, their ends
// included.
func NewReader(from io.Reader, limit int) *Reader { return &Reader{from: from, limit: limit} }

// Next returns the next line that is not blank, without its end. The bytes are
// valid until Next is called again. A line that is cut short by the end of the
// stream is no line: half a reply is not a reply; the error is then
// io.ErrUnexpectedEOF. A line over the limit is a *ProtocolError.
func (r *Reader) Next() ([]byte, error) {
	r.release()
	searched := r.start
	for {
		if i := bytes.IndexByte(r.buf[searched:r.end], '\n'); i >= 0 {
			line := bytes.TrimSpace(r.buf[r.start : searched+i])
			r.start = searched + i + 1
			searched = r.start
			if len(line) > 0 {
				return line, nil
			}
			continue
		}
		if r.end-r.start >= r.limit {
			what := fmt.Sprintf("a line is longer than %d bytes", r.limit)
			return nil, Violation(r.buf[r.start:r.end], what)
		}
		r.makeRoom()
		searched = r.end
		n, err := r.from.Read(r.buf[r.end:])
		r.end += n
		if n == 0 && err != nil {
			return nil, r.ended(err)
		}
	}
}

// release returns to a small buffer after a long line.
func (r *Reader) release() {
	if r.start != r.end {
		return
	}
	r.start, r.end = 0, 0
	if len(r.buf) > 16*firstBuffer {
		r.buf = nil
	}
}

// makeRoom lets at least one more byte be read. The caller has made sure that
// less than the limit is held.
func (r *Reader) makeRoom() {
	if r.end < len(r.buf) {
		return
	}
	grown := r.buf
	if len(r.buf) < r.limit && r.end-r.start >= len(r.buf)/2 {
		grown = make([]byte, min(r.limit, max(firstBuffer, 2*len(r.buf))))
	}
	r.end = copy(grown, r.buf[r.start:r.end])
	r.start = 0
	r.buf = grown
}

func (r *Reader) ended(err error) error {
	if r.start != r.end && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
