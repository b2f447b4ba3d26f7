package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
)

// roundTrip sends r and waits for its reply, and not longer than ctx. Every
// error is an *Error or a *Failure.
func (l *link) roundTrip(ctx context.Context, r request) (json.RawMessage, error) {
	if r.outOfBand && !l.offers("oob") && l.reason() == nil {
		return nil, r.failed(NotSent, &UnsupportedError{"out-of-band commands"})
	}
	if _, ok := l.conn.(*net.UnixConn); r.file != nil && !ok && l.reason() == nil {
		return nil, r.failed(NotSent, &UnsupportedError{"files along with commands"})
	}
	if err := l.enter(ctx, r); err != nil {
		return nil, r.failed(NotSent, err)
	}
	c, err := l.send(ctx, r)
	if err != nil {
		return nil, err
	}
	select {
	case m := <-c.reply:
		return r.result(m)
	case <-l.ended:
		err = l.reason()
	case <-ctx.Done():
		err = fmt.Errorf("no reply: %w", context.Cause(ctx))
	}
	select {
	case m := <-c.reply: // it came at the same moment, and is better than none
		return r.result(m)
	default:
		return nil, r.failed(Unknown, err)
	}
}

// enter acquires the semaphores that r needs; they are released when its reply comes.
func (l *link) enter(ctx context.Context, r request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := l.reason(); err != nil {
		return err
	}
	if r.file != nil {
		if err := l.files.acquire(ctx, l); err != nil {
			return err
		}
	}
	if err := l.band(r).acquire(ctx, l); err != nil {
		if r.file != nil {
			l.files.release()
		}
		return err
	}
	return nil
}

func (l *link) leave(r request) {
	l.band(r).release()
	if r.file != nil {
		l.files.release()
	}
}

func (l *link) band(r request) semaphore {
	if r.outOfBand {
		return l.outOfBand
	}
	return l.inBand
}

// send writes r as the next command.
func (l *link) send(ctx context.Context, r request) (*call, error) {
	if err := l.writing.acquire(ctx, l); err != nil {
		l.leave(r)
		return nil, r.failed(NotSent, err)
	}
	defer l.writing.release()
	c, id := l.register(r)
	line, err := r.encoded(id)
	if err != nil {
		l.abort(id)
		return nil, r.failed(NotSent, err)
	}
	n, err := l.write(ctx, line, r.file)
	switch {
	case err == nil:
		return c, nil
	case n > 0: // the stream is in the middle of a command: nothing can follow
		err = fmt.Errorf("%w after %d of %d bytes of a command: %w", ErrLost, n, len(line), err)
		l.fail(err)
		return nil, r.failed(Unknown, err)
	}
	l.abort(id)
	return nil, r.failed(NotSent, l.unsent(ctx, err))
}

// unsent explains why nothing of a command left, and ends the connection if
// it is the connection's fault.
func (l *link) unsent(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("QEMU does not read: %w", context.Cause(ctx))
	}
	if _, ok := errors.AsType[badFile](err); ok {
		return fmt.Errorf("the file cannot be passed: %w", err)
	}
	l.fail(fmt.Errorf("%w: %w", ErrLost, err))
	return l.reason()
}

func (l *link) register(r request) (c *call, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	c = &call{request: r, reply: make(chan Message, 1)}
	l.pending[l.lastID] = c
	return c, l.lastID
}

// abort forgets a call that was not sent. A peer may have answered it all the
// same, by guessing its number; then there is nothing left to forget.
func (l *link) abort(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[id] != nil {
		l.forget(id)
	}
}

// write writes line, with f attached to its first bytes, until ctx ends. It
// returns how many bytes left.
func (l *link) write(ctx context.Context, line []byte, f *os.File) (n int, err error) {
	defer l.interruptedBy(ctx, l.conn.SetWriteDeadline)()
	if f != nil {
		if n, err = l.attach(line, f); err != nil {
			return n, err
		}
	}
	if n < len(line) {
		var rest int
		rest, err = l.conn.Write(line[n:])
		n += rest
	}
	return n, err
}

// attach writes the beginning of line with f. It borrows the descriptor
// without Fd, which would make the file block.
func (l *link) attach(line []byte, f *os.File) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, badFile{err}
	}
	borrowed := raw.Control(func(fd uintptr) {
		n, _, err = l.conn.(*net.UnixConn).WriteMsgUnix(line, rights(int(fd)), nil)
	})
	if borrowed != nil {
		return 0, badFile{borrowed}
	}
	return n, err
}

// badFile is a file that cannot be passed: no fault of the connection.
type badFile struct{ error }

// Unwrap returns why.
func (b badFile) Unwrap() error { return b.error }
