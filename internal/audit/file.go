package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A File is an audit log that is being written. It is safe for concurrent use.
type File struct {
	path     string
	rotation Rotation

	mu     sync.Mutex
	file   *os.File
	opened int // how often
	seq    uint64
	prev   string
	err    error

	exposed   os.FileMode // what others could do with it when it was opened
	recorded  bool        // a Recorder says when to rotate
	unrotated error       // why the file could not be rotated
}

// maxLine bounds a line: see bounded.
const maxLine = 1 << 20

// Open opens an audit log, or makes one that only its owner may read. A last line that was
// torn is ended, and the numbers go on after the last whole one.
func Open(path string) (*File, error) { return OpenRotating(path, Rotation{}) }

// OpenRotating does what Open does, and rotates the file when it is full. When there is nothing in
// the file, numbers and hashes go on from the last one that was moved away to FILE.1.
func OpenRotating(path string, r Rotation) (*File, error) {
	if r.MaxSize > 0 && r.Keep < 1 {
		return nil, fmt.Errorf("audit log %s: of the full files %d are to be kept: keep 1 or more",
			path, r.Keep)
	}
	f := &File{path: path, rotation: r}
	return f, f.open()
}

func (f *File) open() error {
	file, mode, err := openPrivate(f.path)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if file, err = f.hold(file); err != nil {
		return err
	}
	if err := f.resume(file); err != nil {
		err = fmt.Errorf("audit log %s: %w", f.path, err)
		if file != f.file {
			err = errors.Join(err, file.Close())
		}
		return err
	}
	f.rotation.did()
	f.file, f.exposed = file, mode
	f.opened++
	return nil
}

// orphaned is how long the child of a process that has died may keep its lock: until its exec.
const orphaned = 500 * time.Millisecond

// hold locks a file that was opened: two processes that write one log give its lines the same numbers. It returns the
// file that is open already where that is the same, whose lock is ours. What is no file is not locked, and neither is one
// of a file system without locks.
func (f *File) hold(file *os.File) (*os.File, error) {
	about, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("audit log %s: %w", f.path, err), file.Close())
	}
	if f.file != nil {
		if old, err := f.file.Stat(); err == nil && os.SameFile(old, about) {
			return f.file, file.Close()
		}
	}
	if !about.Mode().IsRegular() {
		return file, nil
	}
	for end := time.Now().Add(orphaned); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && f.named(about) {
			return file, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("audit log %s: another process writes it: end that process, or give this one a file "+
				"of its own, such as --audit /var/log/godwit/NAME.log", f.path), file.Close())
		}
	}
}

// named reports whether a file has still its name: who holds its lock may just have rotated it.
func (f *File) named(about fs.FileInfo) bool {
	now, err := os.Lstat(f.path)
	return err == nil && os.SameFile(now, about)
}

// Exposed returns the mode of a file that was open to others when it was last opened, before it was
// set to 0600; 0 is that it was not. What others have done to it until then is not known.
func (f *File) Exposed() os.FileMode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exposed
}

// times returns how often the file was opened.
func (f *File) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// resume finds the last whole line, and ends one that was torn.
func (f *File) resume(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size == 0 {
		return f.follow()
	}
	tail := make([]byte, min(size, 2*maxLine))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	if !bytes.HasSuffix(tail, []byte("\n")) {
		if _, err := file.Write([]byte("\n")); err != nil {
			return err
		}
		tail = append(tail, '\n')
	}
	if f.last(tail) {
		return nil
	}
	if f.seq > 0 || size < 2*maxLine {
		return nil // nothing whole was ever written here
	}
	return errors.New("its end is no audit log: move it away")
}

// follow finds the last whole line of the file before, when this process has written none. The error
// says that there is one that cannot be read: the numbers would begin anew.
func (f *File) follow() error {
	if f.seq > 0 {
		return nil
	}
	path := older(f.path, 1)
	before, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(f.after(before), before.Close())
	}
	if err != nil {
		return fmt.Errorf("the numbers go on from those of %s, which cannot be read: %w", path, err)
	}
	return nil
}

// after takes the last whole line of a file.
func (f *File) after(before *os.File) error {
	size, err := before.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, 2*maxLine))
	if _, err := before.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	if !f.last(tail) && size > 0 {
		return errors.New("its end is no audit log: move it away")
	}
	return nil
}

// last takes the number and the hash of the last whole line, and reports whether there is one.
func (f *File) last(tail []byte) bool {
	for len(tail) > 0 {
		begin := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		text := bytes.TrimSuffix(tail[begin:], []byte("\n"))
		if l, err := parse(text); err == nil {
			f.seq, f.prev = l.Seq, hash(text)
			return true
		}
		tail = tail[:begin]
	}
	return false
}

func parse(text []byte) (Line, error) {
	var l Line
	err := json.Unmarshal(text, &l)
	if err == nil && l.Seq == 0 {
		err = errors.New("it has no number")
	}
	return l, err
}

// hash identifies a line.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Append writes lines, and returns when they are on disk. Their numbers and hashes are given
// here. An error stays: see Err.
func (f *File) Append(lines ...Line) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return f.err
	}
	if !f.recorded {
		f.unrotated = f.rotate()
	}
	seq, prev := f.seq, f.prev
	var all []byte
	for _, l := range lines {
		seq++
		l.Seq, l.Prev = seq, prev
		text, err := l.encode()
		if err != nil {
			return f.failed(err)
		}
		prev = hash(text)
		all = append(append(all, text...), '\n')
	}
	if _, err := f.file.Write(all); err != nil {
		return f.failed(err)
	}
	if err := f.file.Sync(); err != nil {
		return f.failed(err)
	}
	f.err, f.seq, f.prev = nil, seq, prev
	return nil
}

// failed keeps an error, and ends what is torn before the next line.
func (f *File) failed(err error) error {
	f.err = fmt.Errorf("audit log %s: %w", f.path, err)
	_ = f.resume(f.file)
	return f.err
}

// Err returns why the last line could not be written; nil when it was.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Unrotated returns why the file, which is full, is written on; nil when it is not.
func (f *File) Unrotated() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unrotated
}

// Reopen opens the file anew, after it was moved away. When that fails the old one is
// written on.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopen()
}

func (f *File) reopen() error {
	old := f.file
	if err := f.open(); err != nil {
		return err
	}
	if old == nil || old == f.file {
		return nil
	}
	defer f.rotation.did()
	return old.Close()
}

// Close closes the file. What is appended afterwards is refused.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.err = nil, fmt.Errorf("audit log %s: %w", f.path, os.ErrClosed)
	return err
}
